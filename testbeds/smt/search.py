"""Exact answers about puzzles by search: bit-mask domains, propagation, the variable with the fewest values first.

An ``Engine`` is a puzzle made ready: constraints as the rows of arrays (model.py), each of which can be switched on and
off. A family makes one Engine for all its problems, with every clue that it might tell as a row, and then asks about
the rows of one problem at a time; that is what makes minimal clue sets cheap. The functions below make an Engine for
one puzzle.

A search gives up after ``most_nodes`` branches (``MOST_NODES``, about a second for small puzzles); then z3 is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from testbeds.smt import kernels, oracle
from testbeds.smt.compilation import compiled
from testbeds.smt.constraints import Constraint
from testbeds.smt.language import Puzzle
from testbeds.smt.model import Integers

MOST_NODES = 200_000
UNBOUNDED = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How hard a puzzle is for the search."""

    nodes: int
    """Branches tried until all solutions, or two, were found; 0 where propagation alone decides."""
    complete: bool
    """Whether the search ended within its bound."""
    solutions: int
    """Solutions found, at most 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """A best solution."""

    value: int
    """Of the objective."""
    solution: tuple[int, ...]
    """Values in the order of the variables; one of the best, always the same one."""


class Engine:
    """A puzzle made ready for many questions. ``rows[i]`` is the place of constraint i, in rules then clues."""

    def __init__(self, puzzle: Puzzle) -> None:
        self.puzzle = puzzle
        ready = compiled(puzzle)
        self.model = ready.model
        self.high = ready.high
        self.masks = ready.masks
        self.rows = ready.rows
        self.goal = ready.goal
        """The row of the objective, or -1."""
        self._all = np.zeros(len(self.high), dtype=np.int64)
        self._all[list(ready.rows)] = 1
        self._rules = self._all.copy()
        self._rules[list(ready.rows[len(puzzle.rules) :])] = 0
        self.source = {row: place for place, row in enumerate(ready.rows)}
        """The constraint, by its place in rules then clues, that stands in a row."""

    def active(self, clues: Iterable[int] | None = None) -> Integers:
        """Which rows count: the rules with the clues at some places (all where None)."""
        if clues is None:
            return self._all.copy()
        active = self._rules.copy()
        first = len(self.puzzle.rules)
        for clue in clues:
            active[self.rows[first + clue]] = 1
        return active

    def as_good_as(self, active: Integers, best: int | None) -> tuple[Integers, Integers]:
        """The rows that count and their bounds where the objective must be as good as ``best`` (None: it need not)."""
        objective = self.puzzle.objective
        if best is None or objective is None:
            return active, self.high
        active, high = active.copy(), self.high.copy()
        active[self.goal] = 1
        high[self.goal] = -best if objective.maximise else best
        return active, high

    def effort(
        self, active: Integers, *, most: int = 2, most_nodes: int = MOST_NODES, masks: Integers | None = None
    ) -> Effort:
        """How many solutions, up to ``most``, and branches."""
        found = np.empty((most, len(self.masks)), dtype=np.int64)
        start = self.masks if masks is None else masks
        count, nodes = kernels.search(self.model, active, self.high, start, -1, 0, found, most_nodes)
        return Effort(nodes=nodes, complete=nodes <= most_nodes, solutions=count)

    def solutions(
        self, active: Integers, most: int, *, most_nodes: int = MOST_NODES, seed: int = 0, best: int | None = None
    ) -> Integers | None:
        """Up to ``most`` solutions as values, a row each, as good as ``best``; None where the search gave up before."""
        found = np.empty((most, len(self.masks)), dtype=np.int64)
        active, high = self.as_good_as(active, best)
        count, nodes = kernels.search(self.model, active, high, self.masks, -1, seed, found, most_nodes)
        if nodes > most_nodes:
            return None
        values: Integers = found[:count] + self.model.base
        return values

    def is_unique(self, active: Integers, *, most_nodes: int = MOST_NODES) -> bool:
        """Whether exactly one solution is left."""
        found = np.empty((2, len(self.masks)), dtype=np.int64)
        count, nodes = kernels.search(self.model, active, self.high, self.masks, -1, 0, found, most_nodes)
        if count == 2:
            return False
        if nodes <= most_nodes:
            return bool(count == 1)
        return oracle.is_unique(self.told(active))

    def told(self, active: Integers) -> Puzzle:
        """The puzzle of the constraints whose rows count."""
        kept = [self.puzzle.constraints[place] for place, row in enumerate(self.rows) if active[row]]
        return replace(self.puzzle, rules=tuple(kept), clues=())

    def minimal(self, active: Integers, order: Sequence[int], *, most_nodes: int = MOST_NODES) -> Integers:
        """The rows that still count after each clue in ``order`` was dropped where one solution is left without it.

        The clues that remain of ``order`` are minimal: without any one of them there are more solutions. (A clue that
        was needed while more clues were there is needed when fewer are.) ``active`` must leave one solution.
        """
        kept = active.copy()
        first = len(self.puzzle.rules)
        for clue in order:
            row = self.rows[first + clue]
            kept[row] = 0
            if not self.is_unique(kept, most_nodes=most_nodes):
                kept[row] = 1
        return kept

    def clue_set(self, order: Sequence[int], extra: int) -> list[int]:
        """Clues out of ``order``, ascending: a minimal set, dropped in that order, and the ``extra`` ones dropped last.

        Fewer where fewer were dropped. All of ``order`` together must leave one solution.
        """
        first = len(self.puzzle.rules)
        kept = self.minimal(self.active(order), order)
        needed = [clue for clue in order if kept[self.rows[first + clue]]]
        dropped = [clue for clue in order if not kept[self.rows[first + clue]]]
        return sorted(needed + dropped[len(dropped) - min(extra, len(dropped)) :])

    def unique_set(self, order: Sequence[int], least: int) -> list[int]:
        """Clues out of ``order``, ascending, that leave one solution: dropped in order until ``least`` are left.

        As ``clue_set``, but minimal only where more than ``least`` are returned.
        """
        first = len(self.puzzle.rules)
        active = self.active(order)
        kept = list(order)
        for clue in order:
            if len(kept) <= least:
                break
            active[self.rows[first + clue]] = 0
            if self.is_unique(active):
                kept.remove(clue)
            else:
                active[self.rows[first + clue]] = 1
        return sorted(kept)


def solutions(puzzle: Puzzle, most: int, *, most_nodes: int = MOST_NODES) -> list[tuple[int, ...]]:
    """Up to ``most`` different solutions, as values in the order of the variables; in ascending order of the search."""
    engine = Engine(puzzle)
    found = engine.solutions(engine.active(), most, most_nodes=most_nodes)
    if found is None:
        return oracle.solutions(puzzle, most)
    return [tuple(row) for row in found.tolist()]


def count(puzzle: Puzzle, most: int, *, most_nodes: int = MOST_NODES) -> int:
    """Number of solutions, counted up to ``most``."""
    return len(solutions(puzzle, most, most_nodes=most_nodes))


def is_unique(puzzle: Puzzle, *, most_nodes: int = MOST_NODES) -> bool:
    """Whether there is exactly one solution."""
    engine = Engine(puzzle)
    return engine.is_unique(engine.active(), most_nodes=most_nodes)


def effort(puzzle: Puzzle, *, most_nodes: int = MOST_NODES) -> Effort:
    """How hard the puzzle is for the search, until it knows whether the solution is unique."""
    engine = Engine(puzzle)
    return engine.effort(engine.active(), most_nodes=most_nodes)


def optimum(puzzle: Puzzle, *, most_nodes: int = 20 * MOST_NODES) -> Best | None:
    """The best value of the objective and a solution with it, by branch and bound; None where there is no solution.

    Raises:
        ValueError: where the puzzle has no objective, or the search exceeds its bound.
    """
    if puzzle.objective is None:
        raise ValueError("the puzzle has no objective; ask for its solutions")
    engine = Engine(puzzle)
    active, high = engine.active(), engine.high.copy()
    active[engine.goal] = 1
    found = np.empty((1, len(engine.masks)), dtype=np.int64)
    hits, nodes = kernels.search(engine.model, active, high, engine.masks, engine.goal, 0, found, most_nodes)
    if nodes > most_nodes:
        raise ValueError(f"the search for an optimum exceeded {most_nodes} branches; ask for a smaller puzzle")
    if not hits:
        return None
    solution = tuple((found[0] + engine.model.base).tolist())
    return Best(value=puzzle.objective.value(puzzle.assignment(solution)), solution=solution)


def random_solution(puzzle: Puzzle, rng: Generator, *, most_nodes: int = MOST_NODES) -> tuple[int, ...]:
    """A solution, by a search that tries values in random order; every one can come, but not all equally often.

    Raises:
        ValueError: where there is none, or the search exceeds its bound.
    """
    engine = Engine(puzzle)
    found = engine.solutions(engine.active(), 1, most_nodes=most_nodes, seed=int(rng.integers(1, 2**62)))
    if found is None or not len(found):
        raise ValueError(f"no solution was found within {most_nodes} branches for {puzzle.names}")
    return tuple(found[0].tolist())


def minimal_clues(
    puzzle: Puzzle, candidates: Sequence[Constraint], rng: Generator, *, most_nodes: int = MOST_NODES
) -> tuple[Constraint, ...]:
    """Some of ``candidates`` that, with the rules and clues of ``puzzle``, leave one solution: a minimal set.

    Without any one of them there are more. They are dropped in random order and returned in the order of
    ``candidates``.

    Raises:
        ValueError: where even all candidates do not leave exactly one solution.
    """
    whole = replace(puzzle, rules=puzzle.constraints, clues=tuple(candidates))
    engine = Engine(whole)
    active = engine.active()
    if not engine.is_unique(active, most_nodes=most_nodes):
        raise ValueError(f"all {len(candidates)} candidates together do not leave exactly one solution")
    kept = engine.minimal(active, rng.permutation(len(candidates)).tolist(), most_nodes=most_nodes)
    first = len(whole.rules)
    return tuple(clue for place, clue in enumerate(candidates) if kept[engine.rows[first + place]])
