"""Puzzles made from complete grids: cells are emptied one by one, in random order, while the puzzle stays sound.

Sound means: one solution only, or (where techniques are restricted, which implies it) solvable by them. A cell that
cannot be emptied now never can be later, so one pass over the cells ends in the wished number of givens or in a minimal
puzzle; then another order is tried on the same grid. So the solution's distribution is the uniform one of grids.py, up
to grids that fail ``MOST_ORDERS`` times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from testbeds.sudoku.dice import Words, shuffle
from testbeds.sudoku.geometry import Geometry, Ints, constant
from testbeds.sudoku.solver import Workspace, copy, count_at, count_from, digits_in, start, workspace
from testbeds.sudoku.techniques import NONE, SEARCH, TECHNIQUE, Log, Paper, new_log, new_paper, work_out

MOST_ORDERS = 1_000  # orders tried on one grid
STATISTICS = 8  # nodes of the reference solver, hardest technique, then steps of each of the six techniques


ONE, TWO = constant(1), constant(2)  # limits of a count


class Bench(NamedTuple):
    """Memory that all puzzles of a batch use in turn."""

    work: Workspace
    paper: Paper
    log: Log


def new_bench(size: int) -> Bench:
    """Memory for grids of a size."""
    return Bench(workspace(size * size), new_paper(size * size), new_log(size))


@njit(cache=True)
def _is_forced(geo: Geometry, bench: Bench, cells: Ints, cell: int, digit: int) -> bool:
    """Whether the digit of ``cell``, which is empty now, follows: no solution has another one there."""
    work = bench.work
    start(geo, cells, work.candidates[0])
    work.candidates[0, cell] &= ~(1 << (digit - 1))
    if work.candidates[0, cell] == 0:
        return True
    for i in range(len(cells)):
        work.done[0, i] = cells[i] > 0
    return count_from(geo, work, ONE)[0] == 0


@njit(cache=True)
def _is_workable(geo: Geometry, bench: Bench, cells: Ints, cell: int, level: int) -> bool:
    """Whether the techniques up to ``level`` fill ``cell``, which is empty now; once it is filled, they do the rest."""
    used = 0
    for peer in geo.peers[cell]:
        used |= 1 << cells[peer]
    if digits_in(used >> 1) == geo.size - 1:
        return True  # a naked single at sight
    copy(cells, bench.paper.cells)
    return work_out(geo, bench.paper, bench.log, level, cell) > 0


@njit(cache=True)
def _empty_cells(geo: Geometry, bench: Bench, cells: Ints, order: Ints, wish: tuple[int, int]) -> bool:
    """Empties cells of a complete grid down to ``wish = (givens, level)``; whether that was reached."""
    givens, level = wish
    left = len(cells)
    for i in range(len(order)):
        if left == givens:
            return True
        if left - givens > len(order) - i:
            return False  # not enough cells left to try
        cell = order[i]
        digit = cells[cell]
        cells[cell] = 0
        if level < SEARCH:
            sound = _is_workable(geo, bench, cells, cell, level)
        else:
            sound = _is_forced(geo, bench, cells, cell, digit)
        if sound:
            left -= 1
        else:
            cells[cell] = digit
    return left == givens


@njit(cache=True)
def _measure(geo: Geometry, bench: Bench, cells: Ints, solution: Ints, statistics: Ints) -> None:
    statistics[0] = count_at(geo, bench.work, cells, TWO)[1]
    copy(cells, bench.paper.cells)
    copy(solution, bench.paper.solution)
    statistics[1] = work_out(geo, bench.paper, bench.log, SEARCH, NONE)
    for i in range(bench.log.sizes[0]):
        statistics[1 + bench.log.steps[i, TECHNIQUE]] += 1


def measure(geo: Geometry, cells: Ints, solutions: Ints) -> Ints:
    """The statistics of each puzzle, one a row: see ``STATISTICS``."""
    statistics = np.zeros((len(cells), STATISTICS), dtype=np.int64)
    _measure_all(geo, new_bench(geo.size), cells, solutions, statistics)
    return statistics


@njit(cache=True)
def _measure_all(geo: Geometry, bench: Bench, cells: Ints, solutions: Ints, statistics: Ints) -> None:
    for i in range(len(cells)):
        _measure(geo, bench, cells[i], solutions[i], statistics[i])


def dig(geo: Geometry, state: Words, cells: Ints, wishes: Ints) -> int:
    """Turns each complete grid, a row of ``cells``, into a puzzle with ``wishes[i] = (givens, level)``.

    Returns the number of rows done: less than all where a grid failed MOST_ORDERS times.
    """
    order = np.arange(geo.size * geo.size)
    return int(_dig_all(geo, new_bench(geo.size), (state, order), cells, wishes))


@njit(cache=True)
def _dig_all(geo: Geometry, bench: Bench, chance: tuple[Words, Ints], cells: Ints, wishes: Ints) -> int:
    state, order = chance
    solution = bench.paper.solution
    for i in range(len(cells)):
        copy(cells[i], solution)
        wish = (wishes[i, 0], wishes[i, 1])
        for attempt in range(MOST_ORDERS + 1):
            if attempt == MOST_ORDERS:
                return i
            copy(solution, cells[i])
            shuffle(state, order)
            if _empty_cells(geo, bench, cells[i], order, wish):
                break
    return len(cells)
