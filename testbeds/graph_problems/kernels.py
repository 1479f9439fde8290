"""Exact optima of small graphs, compiled: independent sets by bits, tours by Held and Karp's tables, path counts.

A set of vertices is a bit mask: vertex v is bit ``1 << v``.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MOST_LARGEST_SETS = 512  # 16 vertices have at most 4 * 3^4 = 324 largest independent sets (Moon and Moser 1965)


@njit(cache=True)
def _count(mask: int) -> int:
    bits = 0
    while mask:
        mask &= mask - 1
        bits += 1
    return bits


@njit(cache=True)
def largest_independent_sets(adjacent_N: Ints, found_S: Ints) -> int:
    """Writes all independent sets of the largest size to ``found_S``, in descending order of mask; their number.

    Branches on the highest vertex left, taking it first, and cuts where even all that is left would be too small.
    """
    size = len(adjacent_N)
    chosen_D = np.zeros(size + 2, dtype=np.int64)  # a stack of what to explore
    left_D = np.zeros(size + 2, dtype=np.int64)
    left_D[0] = (1 << size) - 1
    depth, best, found = 1, 0, 0
    while depth > 0:
        depth -= 1
        chosen, left = chosen_D[depth], left_D[depth]
        have = _count(chosen)
        if have + _count(left) < best:
            continue
        if left == 0:
            if have > best:
                best, found = have, 0
            found_S[found] = chosen
            found += 1
            continue
        v = 0
        while left >> (v + 1):
            v += 1
        chosen_D[depth], left_D[depth] = chosen, left & ~(1 << v)
        chosen_D[depth + 1], left_D[depth + 1] = chosen | (1 << v), left & ~(1 << v) & ~adjacent_N[v]
        depth += 2
    return found


@njit(cache=True)
def tour_tables(weight_NN: Ints, least_MN: Ints, ways_MN: Ints) -> None:
    """For visited vertices and the last of them, the least weight of what completes the tour, and in how many ways.

    A tour begins and ends at vertex 0; a visited vertex v is bit ``1 << (v - 1)``. Source: Held and Karp (1962).
    """
    others = len(weight_NN) - 1
    everything = (1 << others) - 1
    for visited in range(everything, -1, -1):
        for last in range(others + 1):
            if visited == everything:
                least_MN[visited, last] = weight_NN[last, 0]
                ways_MN[visited, last] = 1
                continue
            least, ways = -1, 0
            for v in range(1, others + 1):
                if visited >> (v - 1) & 1:
                    continue
                after = visited | 1 << (v - 1)
                total = weight_NN[last, v] + least_MN[after, v]
                if least < 0 or total < least:
                    least, ways = total, 0
                if total == least:
                    ways += ways_MN[after, v]
            least_MN[visited, last], ways_MN[visited, last] = least, ways


@njit(cache=True)
def simple_paths(adjacent_N: Ints, start: int, end: int, number_E: Ints) -> None:
    """Writes how many simple paths from start to end have 0, 1, 2, ... edges.

    By counts for each set of visited vertices and last vertex: 2^16 sets at most.
    """
    size = len(adjacent_N)
    ways_MN = np.zeros((1 << size, size), dtype=np.int64)
    ways_MN[1 << start, start] = 1
    for visited in range(1 << size):
        for last in range(size):
            ways = ways_MN[visited, last]
            if ways == 0:
                continue
            if last == end:
                number_E[_count(visited) - 1] += ways
                continue
            onward = adjacent_N[last] & ~visited
            for v in range(size):
                if onward >> v & 1:
                    ways_MN[visited | 1 << v, v] += ways
