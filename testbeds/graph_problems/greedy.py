"""What a greedy answer comes to: how far the optimum is from the obvious measures a problem's difficulty."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def greedy_independent(masks: tuple[int, ...]) -> int:
    """Size of the independent set that takes, again and again, the first vertex with the fewest neighbours left."""
    left, taken = (1 << len(masks)) - 1, 0
    while left:
        vertex = min((v for v in range(len(masks)) if left >> v & 1), key=lambda v: (masks[v] & left).bit_count())
        left &= ~(masks[vertex] | 1 << vertex)
        taken += 1
    return taken


def fewest_edges(neighbours: tuple[tuple[tuple[int, int], ...], ...], start: int, end: int) -> int:
    """Weight of the lightest among the paths with the fewest edges."""
    lightest = {start: 0}
    seen = {start}
    while end not in lightest:
        following: dict[int, int] = {}
        for vertex, weight_so_far in lightest.items():
            for v, weight in neighbours[vertex]:
                if v not in seen:
                    following[v] = min(following.get(v, weight_so_far + weight), weight_so_far + weight)
        if not following:
            raise ValueError(f"no path leads from vertex {start} to vertex {end}")
        seen |= set(following)
        lightest = following
    return lightest[end]


def nearest_neighbour(weight_NN: NDArray[np.int64], start: int) -> tuple[int, ...]:
    """The tour that goes on to the nearest vertex that is left, the first by name."""
    rows = weight_NN.tolist()
    tour = [start]
    left = [v for v in range(len(rows)) if v != start]
    while left:
        here = rows[tour[-1]]
        following = min(left, key=lambda v: here[v])
        left.remove(following)
        tour.append(following)
    return tuple(tour)


def shortened(weight_NN: NDArray[np.int64], tour: tuple[int, ...]) -> tuple[int, ...] | None:
    """The tour after the 2-opt move (one stretch reversed) that shortens it most, the first such; None if none does."""
    size, best, chosen = len(tour), 0, None
    rows = weight_NN.tolist()
    for i in range(size - 1):
        for j in range(i + 1, size):
            a, b, c, d = tour[i], tour[i + 1], tour[j], tour[(j + 1) % size]
            change = rows[a][c] + rows[b][d] - rows[a][b] - rows[c][d]
            if d not in (a, b) and change < best:
                best, chosen = change, (*tour[: i + 1], *reversed(tour[i + 1 : j + 1]), *tour[j + 1 :])
    return chosen
