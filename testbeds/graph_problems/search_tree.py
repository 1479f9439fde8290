"""The search for a largest independent set as a tree of decisions, and runs through it with so many dead ends.

A node is (chosen, left): what is taken so far, and which vertices are undecided and may still be taken. It branches on
one undecided vertex: *take* it (its neighbours are then out) or *leave* it. A node where even all undecided vertices
together cannot reach the wanted size is a dead end; one of the wanted size is a solution. Which vertex is branched on
is a fixed function of the undecided ones, so the tree is one and the same for all runs; a run may enter the two
branches of a node in either order, and leaves a branch when all of it has been seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from numpy.random import Generator

HEURISTICS: Final = ("degree", "name")
"""What is branched on: the first vertex (by name) with the most undecided neighbours, or the first of all."""

Sign = Literal["+", "-"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One node that a run enters."""

    sign: Sign
    """``+`` the vertex was taken, ``-`` it was left."""
    vertex: int
    chosen: int
    """Mask of what is taken, after the decision."""
    left: int
    """Mask of what is undecided, after the decision."""
    is_dead: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """All runs that look for an independent set of size ``wanted``."""

    masks: tuple[int, ...]
    """Neighbours of each vertex."""
    wanted: int
    heuristic: str = "degree"
    _known: dict[tuple[int, int], int] = field(default_factory=dict, compare=False, repr=False)

    def branch(self, left: int) -> int:
        """The vertex that is decided next."""
        undecided = [v for v in range(len(self.masks)) if left >> v & 1]
        if self.heuristic == "name":
            return undecided[0]
        return max(undecided, key=lambda v: (self.masks[v] & left).bit_count())

    def children(self, chosen: int, left: int) -> tuple[Visit, Visit]:
        """Take and leave."""
        vertex = self.branch(left)
        taken = self._visit("+", vertex, chosen | 1 << vertex, left & ~(self.masks[vertex] | 1 << vertex))
        return taken, self._visit("-", vertex, chosen, left & ~(1 << vertex))

    def dead_ends(self, chosen: int, left: int) -> int:
        """Dead ends below a node, itself included, if there is no solution there; else -1."""
        return self._count(self.wanted - chosen.bit_count(), left)

    def first_run(self) -> tuple[Visit, ...]:
        """The run that takes before it leaves: dead ends and all, up to the first solution."""
        chosen, left = 0, (1 << len(self.masks)) - 1
        run: list[Visit] = []
        while chosen.bit_count() < self.wanted:
            taken, passed = self.children(chosen, left)
            visit = taken
            if self.dead_ends(taken.chosen, taken.left) > 0:
                run += self._all_below(taken)
                visit = passed
            run.append(visit)
            chosen, left = visit.chosen, visit.left
        return tuple(run)

    def run_with(self, solutions: tuple[int, ...], dead_ends: int, rng: Generator) -> tuple[Visit, ...] | None:
        """A run to one of the solutions that meets exactly so many dead ends, or None if there is none.

        The solutions are tried in a random order, and the branches without one that are entered first are a random
        choice among those that add up.
        """
        for place in rng.permutation(len(solutions)).tolist():
            path = self._path_to(solutions[place])
            barren = [
                (where, count)
                for where, (_, sibling) in enumerate(path)
                if (count := self.dead_ends(sibling.chosen, sibling.left)) > 0
            ]
            entered = _adding_up([barren[i] for i in rng.permutation(len(barren)).tolist()], dead_ends)
            if entered is None:
                continue
            run: list[Visit] = []
            for where, (visit, sibling) in enumerate(path):
                run += self._all_below(sibling) if where in entered else ()
                run.append(visit)
            return tuple(run)
        return None

    def _visit(self, sign: Sign, vertex: int, chosen: int, left: int) -> Visit:
        is_dead = chosen.bit_count() + left.bit_count() < self.wanted
        return Visit(sign=sign, vertex=vertex, chosen=chosen, left=left, is_dead=is_dead)

    def _count(self, missing: int, left: int) -> int:
        if missing == 0:
            return -1
        if left.bit_count() < missing:
            return 1
        known = self._known.get((missing, left))
        if known is None:
            vertex = self.branch(left)
            taken = self._count(missing - 1, left & ~(self.masks[vertex] | 1 << vertex))
            passed = self._count(missing, left & ~(1 << vertex)) if taken > 0 else -1
            known = taken + passed if taken > 0 and passed > 0 else -1
            self._known[missing, left] = known
        return known

    def _path_to(self, solution: int) -> list[tuple[Visit, Visit]]:
        """The nodes on the way to a solution, each with the other branch of the node before."""
        chosen, left = 0, (1 << len(self.masks)) - 1
        path = []
        while chosen.bit_count() < self.wanted:
            taken, passed = self.children(chosen, left)
            visit, sibling = (taken, passed) if solution >> taken.vertex & 1 else (passed, taken)
            path.append((visit, sibling))
            chosen, left = visit.chosen, visit.left
        return path

    def _all_below(self, visit: Visit) -> list[Visit]:
        """A node without solution and everything below it, taking before leaving."""
        run, waiting = [], [visit]
        while waiting:
            node = waiting.pop()
            run.append(node)
            if not node.is_dead:
                waiting += reversed(self.children(node.chosen, node.left))
        return run


def _adding_up(items: list[tuple[int, int]], total: int) -> frozenset[int] | None:
    """The places of some items whose counts add up to ``total``, those listed first preferred; None if none do."""
    ways: dict[int, tuple[int, ...]] = {0: ()}
    for place, count in items:
        for reached, chosen in list(ways.items()):
            if reached + count <= total and reached + count not in ways:
                ways[reached + count] = (*chosen, place)
    return frozenset(ways[total]) if total in ways else None
