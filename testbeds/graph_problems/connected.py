"""Whether a graph is connected, and how often a random one is."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

from testbeds.streams import stream

PILOT_DRAWS = 500  # a task is refused if fewer than PILOT_HITS of these random graphs are connected, 2 %
PILOT_HITS = 10


def is_connected(vertices: int, pairs: list[tuple[int, int]]) -> bool:
    """Whether edges join all vertices, directly or not."""
    around = [0] * vertices
    for a, b in pairs:
        around[a] |= 1 << b
        around[b] |= 1 << a
    seen, fresh = 1, 1
    while fresh:
        vertex = fresh.bit_length() - 1
        fresh = (fresh & ~(1 << vertex)) | (around[vertex] & ~seen)
        seen |= around[vertex]
    return seen == (1 << vertices) - 1


@lru_cache(maxsize=256)
def pilot(vertices: int, edges: int) -> tuple[int, int]:
    """(hits, draws): how many random graphs are connected, until there are PILOT_HITS or PILOT_DRAWS draws."""
    pairs = list(combinations(range(vertices), 2))
    rng = stream("graph_problems", "pilot", vertices, edges)
    hits = 0
    for draws in range(1, PILOT_DRAWS + 1):
        hits += is_connected(vertices, [pairs[place] for place in rng.permutation(len(pairs))[:edges].tolist()])
        if hits == PILOT_HITS:
            return hits, draws
    return hits, PILOT_DRAWS
