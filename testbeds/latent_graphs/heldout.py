"""Which pairs, triples and routings of latent graphs to hold out, listed from a keyed salt.

Types and shapes decide what can follow what, so the lists come from a pool of drawn problems of the task: only what the
pool shows is held out, and what must stay in training is seen in 16 or more problems of the pool that hold none of it:
these are the proof. What the pool shows more rarely than that loses none of its problems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from testbeds.latent_graphs.graphs import Graph, workshop
from testbeds.latent_graphs.task import LatentGraphs, draw_graphs
from testbeds.latent_structure import Pair, Triple
from testbeds.streams import stream

POOL = 4096  # problems; a second's work
SEEN_ENOUGH = 4  # problems of the pool, one in a thousand, that show what is held out: its split is not nearly empty
STAYS = 16  # problems of the pool, one in 256, that at least must still show what stays in training

Part = TypeVar("Part", str, Pair, Triple)


def heldout_pairs(task: LatentGraphs, count: int, salt: int = 0) -> tuple[Pair, ...]:
    """``count`` pairs (first applied, next applied) to hold out; each module stays seen first and next in a pair."""
    return _first(task, count, f"pairs {salt}", lambda graph: graph.pairs, _sides)


def heldout_triples(task: LatentGraphs, count: int, salt: int = 0) -> tuple[Triple, ...]:
    """``count`` triples to hold out; every pair that the pool shows stays seen."""
    return _first(task, count, f"triples {salt}", lambda graph: graph.triples, lambda graph: graph.pairs)


def heldout_routings(task: LatentGraphs, count: int, salt: int = 0) -> tuple[str, ...]:
    """Names of ``count`` routings to hold out; every skill stays seen, and so does some routing."""
    routes = workshop(task.graph_world).routes

    def kept(graph: Graph) -> list[str]:
        return ["a routing" if name in routes else name for name in graph.applied]

    return _first(task, count, f"routings {salt}", lambda graph: [n for n in graph.applied if n in routes], kept)


def heldout_routing_pairs(task: LatentGraphs, count: int, salt: int = 0) -> tuple[Pair, ...]:
    """``count`` pairs of a routing and a skill, or the reverse, to hold out; modules stay seen as for pairs."""
    routes = workshop(task.graph_world).routes

    def mixed(graph: Graph) -> list[Pair]:
        return [pair for pair in graph.pairs if (pair[0] in routes) != (pair[1] in routes)]

    return _first(task, count, f"routing pairs {salt}", mixed, _sides)


def _sides(graph: Graph) -> list[tuple[str, str]]:
    return [side for first, second in graph.pairs for side in (("first", first), ("next", second))]


@lru_cache(maxsize=8)
def _pool(task: LatentGraphs) -> tuple[Graph, ...]:
    return tuple(draw_graphs(task, stream("latent-graphs", "pool", task.world), POOL))


def _first(
    task: LatentGraphs,
    count: int,
    purpose: str,
    parts: Callable[[Graph], Iterable[Part]],
    kept: Callable[[Graph], Iterable[object]],
) -> tuple[Part, ...]:
    """The first ``count`` parts, in a keyed order, that leave all that is kept in clean problems of the pool."""
    kept_of = [frozenset(kept(graph)) for graph in _pool(task)]
    holders: dict[Part, list[int]] = {}
    for number, graph in enumerate(_pool(task)):
        for part in dict.fromkeys(parts(graph)):
            holders.setdefault(part, []).append(number)
    found = sorted(part for part, numbers in holders.items() if len(numbers) >= SEEN_ENOUGH)
    clean = [True] * POOL
    left = Counter(thing for things in kept_of for thing in things)
    held: list[Part] = []
    for place in stream("latent-graphs", task.world, purpose).permutation(len(found)).tolist():
        numbers = [number for number in holders[found[place]] if clean[number]]
        lost = Counter(thing for number in numbers for thing in kept_of[number])
        stays = all(left[thing] - times >= STAYS for thing, times in lost.items())
        if stays and len(held) < count and len(numbers) >= SEEN_ENOUGH:  # seen beside what is held out already, too
            held.append(found[place])
            left.subtract(lost)
            for number in numbers:
                clean[number] = False
    if type(count) is not int or not 1 <= count <= len(held):
        most = f"{len(held)} can" if type(count) is int and count > 0 else "1 or more can"
        raise ValueError(
            f"count={count!r} {purpose.rpartition(' ')[0]} of {task} were asked for, of which {most} be held out with"
            " everything else still seen"
        )
    return tuple(held)
