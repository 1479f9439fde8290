"""The canonical form of a small labelled graph, exactly: two graphs have one form if and only if they are isomorphic.

Individualisation and refinement (McKay, "Practical graph isomorphism", 1981): vertices are split into ordered cells
by their labels and by what their neighbours' cells are, until nothing splits; where a cell of several vertices is left,
each of them is singled out in turn, and of all the numberings so reached the least graph is the form. Automorphisms
that turn up on the way prune branches that could only repeat what was seen. Hashes decide how fast cells split, never
what the form is: vertices whose hashes collide stay in one cell and are told apart by branching.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

STEP = -7046029254386353131  # 2^64 divided by the golden ratio, as a signed number; any odd number would do
STIR = -4658895280553007687  # SplitMix64's first multiplier (Steele, Lea and Flood 2014), as a signed number


@njit(cache=True)
def _surroundings(cell_N: Ints, edge_NN: Ints, size: int, v: int) -> int:
    """A hash of how many edges with which labels join v to vertices of which cells."""
    total = 0
    for u in range(size):
        if edge_NN[v, u] != 0 or edge_NN[u, v] != 0:
            mixed = ((cell_N[u] + 1) * 1_000_003 + edge_NN[v, u]) * 1_000_003 + edge_NN[u, v]
            mixed *= STEP
            mixed ^= mixed >> 29
            mixed *= STIR
            total += mixed ^ (mixed >> 31)
    return total


@njit(cache=True)
def _split(cell_N: Ints, hash_N: Ints, order_N: Ints) -> int:
    """Splits cells by hash, in place; their number. ``order_N`` is room to work in."""
    for v in range(len(hash_N)):  # insertion sort by cell, then hash
        place = v
        while place > 0:
            before = order_N[place - 1]
            if cell_N[before] < cell_N[v] or (cell_N[before] == cell_N[v] and hash_N[before] <= hash_N[v]):
                break
            order_N[place] = before
            place -= 1
        order_N[place] = v
    cells = 0
    last_cell, last_hash = cell_N[order_N[0]], hash_N[order_N[0]]
    for v in order_N:
        if cell_N[v] != last_cell or hash_N[v] != last_hash:
            cells += 1
            last_cell, last_hash = cell_N[v], hash_N[v]
        cell_N[v] = cells
    return cells + 1


@njit(cache=True)
def refine(cell_N: Ints, edge_NN: Ints, size: int) -> int:
    """Splits the ordered cells of the first ``size`` vertices until they are stable, in place; their number.

    ``cell_N`` numbers the cells 0, 1, ... in order; ``edge_NN[v, u]`` labels the edge from v to u, 0 where none is.
    """
    hash_N = np.empty(size, dtype=np.int64)
    order_N = np.empty(size, dtype=np.int64)
    cells = -1
    while True:
        for v in range(size):
            hash_N[v] = _surroundings(cell_N, edge_NN, size, v)
        split = _split(cell_N, hash_N, order_N)
        if split in (cells, size):
            return split
        cells = split


@njit(cache=True)
def refine_each(cell_PN: Ints, edge_PNN: Ints, size_P: Ints) -> None:
    """Numbers the labels in ``cell_PN`` of each graph's first ``size_P`` vertices as cells, and refines them."""
    label_N = np.empty(cell_PN.shape[1], dtype=np.int64)
    for p in range(len(size_P)):
        size = size_P[p]
        for v in range(size):
            label_N[v] = cell_PN[p, v]
        for v in range(size):
            cell = 0
            for u in range(size):  # the number of different lower labels
                fresh = label_N[u] < label_N[v]
                for w in range(u):
                    fresh = fresh and label_N[w] != label_N[u]
                cell += fresh
            cell_PN[p, v] = cell
        refine(cell_PN[p], edge_PNN[p], size)


def canonical_order(label_N: Ints, edge_NN: Ints) -> tuple[int, ...]:
    """The vertices in canonical order: relabelled by their places, isomorphic graphs become one and the same.

    ``label_N`` are whole numbers that an isomorphism keeps; ``edge_NN[v, u]`` is the label of the edge from v to u, 0
    for none, from 0 to 2^32 - 1.
    """
    cell_N = np.unique(label_N, return_inverse=True)[1].astype(np.int64)
    refine(cell_N, edge_NN, len(cell_N))
    return order_of_cells(cell_N, edge_NN)


def canonical_text(weight_NN: NDArray[np.int64], ends: tuple[int, ...]) -> str:
    """The text that all renamings of a weighted graph with two ends (or none) share and no other has."""
    label_N = np.zeros(len(weight_NN), dtype=np.int64)
    label_N[list(ends)] = 1
    order = list(canonical_order(label_N, weight_NN))
    ordered_NN = weight_NN[np.ix_(order, order)]
    listed = zip(*np.nonzero(np.triu(ordered_NN)), strict=True)
    edges = ",".join([f"{a}-{b}*{ordered_NN[a, b]}" for a, b in listed])
    return f"{len(order)};{edges};{','.join(str(order.index(v)) for v in sorted(ends, key=order.index))}"


def order_of_cells(cell_N: Ints, edge_NN: Ints) -> tuple[int, ...]:
    """``canonical_order``, from cells that ``refine`` has made stable."""
    if int(cell_N.max()) + 1 == len(cell_N):
        return tuple(np.argsort(cell_N).tolist())
    search = _Search(edge_NN=edge_NN)
    search.visit(cell_N, ())
    return tuple(search.best.order.tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaf:
    """A numbering of all vertices, with the choices that led to it."""

    path: tuple[int, ...]
    order: Ints
    form: bytes

    def common(self, path: tuple[int, ...]) -> int:
        """How many choices two paths begin with alike."""
        return next((depth for depth, (a, b) in enumerate(zip(self.path, path, strict=False)) if a != b), len(path))


@dataclass(slots=True, kw_only=True)
class _Search:
    """The tree of choices. ``visit`` says to which depth the caller should go back."""

    edge_NN: Ints
    leaves: list[_Leaf] = field(default_factory=list)
    """The first leaf and, where another is less, the least."""
    automorphisms: list[Ints] = field(default_factory=list)

    @property
    def best(self) -> _Leaf:
        return self.leaves[-1]

    def visit(self, cell_N: Ints, path: tuple[int, ...]) -> int:
        size_C = np.bincount(cell_N)
        if len(size_C) == len(cell_N):
            return self._leaf(cell_N, path)
        chosen = int(np.argmax(size_C > 1))
        members: list[int] = np.flatnonzero(cell_N == chosen).tolist()
        if self._are_twins(members):  # any order of them gives the same graph, so one is enough
            alone_N = cell_N + (cell_N > chosen) * (len(members) - 1)
            alone_N[members] += np.arange(len(members))
            refine(alone_N, self.edge_NN, len(alone_N))
            return min(self.visit(alone_N, (*path, *members)), len(path))
        explored: list[int] = []
        for vertex in members:
            if self._is_image(vertex, explored, path):
                continue
            explored.append(vertex)
            alone_N = cell_N + (cell_N >= chosen)
            alone_N[vertex] = chosen
            refine(alone_N, self.edge_NN, len(alone_N))
            back = self.visit(alone_N, (*path, vertex))
            if back < len(path):
                return back
        return len(path)

    def _are_twins(self, members: list[int]) -> bool:
        """Whether exchanging any two of these vertices leaves the graph as it is."""
        first = members[0]
        for vertex in members[1:]:
            swap_N = np.arange(len(self.edge_NN))
            swap_N[[first, vertex]] = vertex, first
            if not np.array_equal(self.edge_NN[swap_N][:, swap_N], self.edge_NN):
                return False
        return True

    def _leaf(self, cell_N: Ints, path: tuple[int, ...]) -> int:
        order_N = np.argsort(cell_N)
        form = self.edge_NN[np.ix_(order_N, order_N)].astype(">u4").tobytes()
        leaf = _Leaf(path=path, order=order_N, form=form)
        for known in self.leaves:
            if known.form == form:
                image_N = np.empty_like(order_N)
                image_N[known.order] = order_N
                self.automorphisms.append(image_N)
                return known.common(path)  # the whole branch repeats one that was seen
        if not self.leaves or form < self.best.form:
            self.leaves = [*self.leaves[:1], leaf]
        return len(path)

    def _is_image(self, vertex: int, explored: list[int], path: tuple[int, ...]) -> bool:
        """Whether an automorphism that keeps the path takes an explored vertex to this one."""
        if not explored:
            return False
        keeping = [image_N for image_N in self.automorphisms if all(image_N[v] == v for v in path)]
        orbit, fresh = {vertex}, [vertex]
        while fresh:
            v = fresh.pop()
            for image_N in keeping:  # powers of a permutation come back, so images alone reach the whole orbit
                image = int(image_N[v])
                if image not in orbit:
                    orbit.add(image)
                    fresh.append(image)
        return not orbit.isdisjoint(explored)
