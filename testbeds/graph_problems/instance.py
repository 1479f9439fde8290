"""A graph problem's certificate, with its names, its exact optimum and all its best answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from testbeds.graph_problems import kernels

ProblemName = Literal["shortest_path", "independent_set", "vertex_cover", "clique", "travelling_salesman"]
SETS: Final = ("independent_set", "vertex_cover", "clique")
NAMES: Final = "abcdefghijklmnop"
"""Of vertices, in order; each is one symbol."""

Edge = tuple[int, int, int]
"""Two vertices, the lower first, and the weight: 1 where edges have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A graph and what is asked of it."""

    problem: ProblemName
    vertices: int
    edges: tuple[Edge, ...]
    """In ascending order."""
    terminals: tuple[int, int]
    """Where a path begins and ends; (-1, -1) for the other problems."""
    optimum: int
    """Weight of the best path or tour, size of the best set."""
    best: int
    """How many optimal answers there are: sets without their order, tours without start and direction."""

    @property
    def name(self) -> str:
        """What is asked for, in English."""
        return {"clique": "clique", "shortest_path": "path", "travelling_salesman": "tour"}.get(
            self.problem, self.problem.replace("_", " ")
        )


def letters(places: tuple[int, ...]) -> str:
    """Vertices as text."""
    return "".join([NAMES[place] for place in places])


def members(mask: int) -> tuple[int, ...]:
    """The vertices of a bit mask, ascending."""
    return tuple([v for v in range(mask.bit_length()) if mask >> v & 1])


def weights(vertices: int, edges: tuple[Edge, ...]) -> NDArray[np.int64]:
    """The symmetric matrix of weights, 0 where there is no edge."""
    weight_NN = np.zeros((vertices, vertices), dtype=np.int64)
    for a, b, weight in edges:
        weight_NN[a, b] = weight_NN[b, a] = weight
    return weight_NN


def conflicts(problem: ProblemName, vertices: int, edges: tuple[Edge, ...]) -> tuple[int, ...]:
    """For each vertex the mask of those that cannot stand in one independent set with it.

    The three set problems are one: a clique is independent in the complement, and what an independent set leaves out is
    a vertex cover.
    """
    masks = [0] * vertices
    for a, b, _ in edges:
        masks[a] |= 1 << b
        masks[b] |= 1 << a
    if problem == "clique":
        everything = (1 << vertices) - 1
        return tuple(everything & ~mask & ~(1 << v) for v, mask in enumerate(masks))
    return tuple(masks)


@lru_cache(maxsize=1024)
def largest_independent(masks: tuple[int, ...]) -> tuple[int, ...]:
    """All independent sets of the largest size, for the masks of ``conflicts``."""
    found_S = np.zeros(kernels.MOST_LARGEST_SETS, dtype=np.int64)
    found = kernels.largest_independent_sets(np.array(masks, dtype=np.int64), found_S)
    return tuple(found_S[:found].tolist())


def best_sets(instance: Instance) -> tuple[tuple[int, ...], ...]:
    """All optimal sets of a set problem, each ascending."""
    everything = (1 << instance.vertices) - 1
    masks = largest_independent(conflicts(instance.problem, instance.vertices, instance.edges))
    return tuple(members(everything & ~mask if instance.problem == "vertex_cover" else mask) for mask in masks)


# ------------------------------------------------------------------------------------------------------- paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A vertex whose distance Dijkstra's algorithm has settled."""

    vertex: int
    before: int
    """The vertex before it on a shortest path, itself for the start."""
    distance: int


def dijkstra(neighbours: tuple[tuple[tuple[int, int], ...], ...], start: int) -> tuple[Settled, ...]:
    """The vertices that can be reached, in the order in which they are settled; of equally near ones the first by name.

    Of several vertices before one, the one settled first is kept.
    """
    near: dict[int, tuple[int, int]] = {start: (0, start)}
    settled: list[Settled] = []
    done: set[int] = set()
    while near:
        vertex = min(near, key=lambda v: (near[v][0], v))
        distance, before = near.pop(vertex)
        settled.append(Settled(vertex=vertex, before=before, distance=distance))
        done.add(vertex)
        for v, weight in neighbours[vertex]:
            if v not in done and (v not in near or distance + weight < near[v][0]):
                near[v] = (distance + weight, vertex)
    return tuple(settled)


def neighbourhood(vertices: int, edges: tuple[Edge, ...]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each vertex its neighbours, with the weights of the edges to them."""
    around: list[list[tuple[int, int]]] = [[] for _ in range(vertices)]
    for a, b, weight in edges:
        around[a].append((b, weight))
        around[b].append((a, weight))
    return tuple(map(tuple, around))


def shortest_by_edges(
    neighbours: tuple[tuple[tuple[int, int], ...], ...], settled: tuple[Settled, ...], end: int
) -> dict[int, int]:
    """How many shortest paths to ``end`` there are, by their number of edges; weights are positive."""
    distance = {one.vertex: one.distance for one in settled}
    numbers: dict[int, dict[int, int]] = {settled[0].vertex: {0: 1}}
    for one in settled[1:]:
        here = numbers.setdefault(one.vertex, {})
        for v, weight in neighbours[one.vertex]:
            if v in numbers and distance[v] + weight == one.distance:
                for hops, ways in numbers[v].items():
                    here[hops + 1] = here.get(hops + 1, 0) + ways
    return numbers.get(end, {})


def best_paths(instance: Instance) -> Iterator[tuple[int, ...]]:
    """All shortest paths, from start to end."""
    start, end = instance.terminals
    neighbours = neighbourhood(instance.vertices, instance.edges)
    distance = {one.vertex: one.distance for one in dijkstra(neighbours, start)}
    waiting: list[tuple[int, ...]] = [(end,)]
    while waiting:
        path = waiting.pop()
        if path[0] == start:
            yield path
            continue
        waiting += [
            (v, *path) for v, weight in neighbours[path[0]] if distance.get(v, -1) + weight == distance[path[0]]
        ]


# ------------------------------------------------------------------------------------------------------- tours


def tour_tables(weight_NN: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Held and Karp's tables of a complete graph: see kernels.py."""
    shape = (1 << (len(weight_NN) - 1), len(weight_NN))
    least_MN, ways_MN = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    kernels.tour_tables(weight_NN, least_MN, ways_MN)
    return least_MN, ways_MN


def best_tours(weight_NN: NDArray[np.int64]) -> Iterator[tuple[int, ...]]:
    """All shortest tours, each once: from vertex 0 in the direction in which its second vertex is below its last."""
    least_MN, _ = tour_tables(weight_NN)
    size = len(weight_NN)
    waiting: list[tuple[int, ...]] = [(0,)]
    while waiting:
        tour = waiting.pop()
        if len(tour) == size:
            if tour[1] < tour[-1]:
                yield tour
            continue
        visited = sum(1 << (v - 1) for v in tour[1:])
        left = int(least_MN[visited, tour[-1]])
        waiting += [
            (*tour, v)
            for v in range(size - 1, 0, -1)
            if not visited >> (v - 1) & 1 and int(weight_NN[tour[-1], v] + least_MN[visited | 1 << (v - 1), v]) == left
        ]


def length(weight_NN: NDArray[np.int64], tour: tuple[int, ...]) -> int:
    """Weight of a tour, the way back to its first vertex included."""
    return int(sum(weight_NN[a, b] for a, b in pairwise((*tour, tour[0]))))
