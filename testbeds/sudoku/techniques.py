"""Solving as people do: at each step the easiest technique that gets anywhere.

=====  =================  ==========================================================================================
level  technique          what it sees
=====  =================  ==========================================================================================
1      naked single       a cell with one candidate
2      hidden single      a digit with one place in a box, row or column
3      locked candidates  all places of a digit in one unit lie in a second one: it is nowhere else there
4      naked pair         two cells of a unit with the same two candidates: no other cell of the unit has these
5      hidden pair        two digits of a unit with the same two places: these cells have no other candidates
6      search             none of these helps: a cell with fewest candidates gets its digit from the solution
=====  =================  ==========================================================================================

Units are searched boxes first, then rows, then columns; cells and digits in ascending order. More candidates removed
never hinder a technique, so the hardest level that a puzzle needs does not depend on this order.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from testbeds.sudoku.geometry import Geometry, Ints, constant
from testbeds.sudoku.solver import digits_in, is_single, start

TECHNIQUES: Final = ("naked_single", "hidden_single", "locked_candidates", "naked_pair", "hidden_pair", "search")
NAKED_SINGLE, HIDDEN_SINGLE, LOCKED, NAKED_PAIR, HIDDEN_PAIR, SEARCH = map(constant, range(1, 7))
NONE: Final = constant(-1)

TECHNIQUE, UNIT, OTHER_UNIT, CELL, OTHER_CELL, DIGITS, REMOVED = range(7)
"""Columns of ``Log.steps``; units and cells are -1 where the technique has none."""


class Log(NamedTuple):
    """What was done, one row a step."""

    steps: Ints
    """Shape (steps, 7), by the columns above; DIGITS is a mask, REMOVED the number of rows of ``removed`` so far."""
    removed: Ints
    """Shape (removals, 2): a cell and the mask of the candidates that it lost."""
    sizes: Ints
    """Rows used of ``steps`` and of ``removed``."""


class Paper(NamedTuple):
    """A puzzle being solved."""

    cells: Ints
    """Digits, 0 for empty."""
    candidates: Ints
    """Masks; 0 for filled cells."""
    solution: Ints
    """Where level 6 takes its digit from."""


def new_log(size: int) -> Log:
    """Room for the longest solution: a cell is placed once, a candidate removed once."""
    most = size * size * (size + 1)
    return Log(np.zeros((most, 7), np.int64), np.zeros((most, 2), np.int64), np.zeros(2, np.int64))


def new_paper(cells: int) -> Paper:
    """An empty grid of so many cells."""
    return Paper(np.zeros(cells, np.int64), np.zeros(cells, np.int64), np.zeros(cells, np.int64))


@njit(cache=True)
def _record(log: Log, technique: int, units: tuple[int, int], cells: tuple[int, int], digits: int) -> None:
    row = log.steps[log.sizes[0]]
    row[TECHNIQUE], row[UNIT], row[OTHER_UNIT] = technique, units[0], units[1]
    row[CELL], row[OTHER_CELL], row[DIGITS], row[REMOVED] = cells[0], cells[1], digits, log.sizes[1]
    log.sizes[0] += 1


@njit(cache=True)
def _place(geo: Geometry, paper: Paper, cell: int, bit: int) -> None:
    digit = 1
    while bit >> digit:
        digit += 1
    paper.cells[cell] = digit
    paper.candidates[cell] = 0
    for peer in geo.peers[cell]:
        paper.candidates[peer] &= ~bit


@njit(cache=True)
def _remove(paper: Paper, log: Log, cell: int, mask: int) -> int:
    """Takes candidates from a cell and notes it; 1 if it had any of them."""
    lost = paper.candidates[cell] & mask
    if lost == 0:
        return 0
    paper.candidates[cell] ^= lost
    row = log.removed[log.sizes[1]]
    row[0], row[1] = cell, lost
    log.sizes[1] += 1
    return 1


@njit(cache=True)
def _naked_single(geo: Geometry, paper: Paper, log: Log) -> bool:
    for cell in range(len(paper.cells)):
        bit = paper.candidates[cell]
        if is_single(bit):
            _place(geo, paper, cell, bit)
            _record(log, NAKED_SINGLE, (NONE, NONE), (cell, NONE), bit)
            return True
    return False


@njit(cache=True)
def _hidden_single(geo: Geometry, paper: Paper, log: Log) -> bool:
    for k in range(3 * geo.size):
        unit = (k + 2 * geo.size) % (3 * geo.size)  # boxes first
        once, twice = 0, 0
        for cell in geo.units[unit]:
            twice |= once & paper.candidates[cell]
            once |= paper.candidates[cell]
        bit = once & ~twice
        if bit == 0:
            continue
        bit &= -bit
        for cell in geo.units[unit]:
            if paper.candidates[cell] & bit:
                _place(geo, paper, cell, bit)
                _record(log, HIDDEN_SINGLE, (unit, NONE), (cell, NONE), bit)
                return True
    return False


@njit(cache=True)
def _shared_unit(geo: Geometry, paper: Paper, unit: int, bit: int) -> int:
    """The second unit in which all places of a digit of ``unit`` lie; -1 where there is none."""
    for k in range(3):
        shared = -2  # no place seen yet; -1: in different units
        for cell in geo.units[unit]:
            if paper.candidates[cell] & bit:
                of = geo.unit_of[cell, k]
                shared = of if shared == of or shared == -2 else -1  # noqa: PLR1714
        if shared >= 0 and shared != unit:
            return int(shared)
    return -1


@njit(cache=True)
def _locked(geo: Geometry, paper: Paper, log: Log) -> bool:
    for k in range(3 * geo.size):
        unit = (k + 2 * geo.size) % (3 * geo.size)
        for digit in range(geo.size):
            other = _shared_unit(geo, paper, unit, 1 << digit)
            if other < 0:
                continue
            lost = 0
            for cell in geo.units[other]:
                of = geo.unit_of[cell]
                if unit != of[0] and unit != of[1] and unit != of[2]:
                    lost += _remove(paper, log, cell, 1 << digit)
            if lost:
                _record(log, LOCKED, (unit, other), (NONE, NONE), 1 << digit)
                return True
    return False


@njit(cache=True)
def _clear_unit(geo: Geometry, paper: Paper, log: Log, unit: int, pair: tuple[int, int]) -> bool:
    """Takes the two candidates of a naked pair from the other cells of the unit, if any has one."""
    lost = 0
    digits = paper.candidates[pair[0]]
    for cell in geo.units[unit]:
        if cell != pair[0] and cell != pair[1]:  # numba takes long over tuples
            lost += _remove(paper, log, cell, digits)
    if lost:
        _record(log, NAKED_PAIR, (unit, NONE), pair, digits)
    return lost > 0


@njit(cache=True)
def _naked_pair(geo: Geometry, paper: Paper, log: Log) -> bool:
    for k in range(3 * geo.size):
        unit = (k + 2 * geo.size) % (3 * geo.size)
        for i in range(geo.size):
            one = geo.units[unit, i]
            if digits_in(paper.candidates[one]) != 2:
                continue
            for j in range(i + 1, geo.size):
                two = geo.units[unit, j]
                same = paper.candidates[two] == paper.candidates[one]
                if same and _clear_unit(geo, paper, log, unit, (one, two)):
                    return True
    return False


@njit(cache=True)
def _places(geo: Geometry, paper: Paper, unit: int, bit: int) -> int:
    """Which cells of a unit, as a mask of their places in it, can hold a digit."""
    places = 0
    for i in range(geo.size):
        if paper.candidates[geo.units[unit, i]] & bit:
            places |= 1 << i
    return places


@njit(cache=True)
def _clear_pair(geo: Geometry, paper: Paper, log: Log, found: tuple[int, int, int]) -> bool:
    """Takes all but the two digits of a hidden pair (unit, places, digits) from its cells, if there are others."""
    unit, places, digits = found
    one, two = NONE, NONE
    for i in range(geo.size):
        if places >> i & 1:
            one, two = two, geo.units[unit, i]
    lost = _remove(paper, log, one, ~digits) + _remove(paper, log, two, ~digits)
    if lost:
        _record(log, HIDDEN_PAIR, (unit, NONE), (one, two), digits)
    return lost > 0


@njit(cache=True)
def _hidden_pair(geo: Geometry, paper: Paper, log: Log) -> bool:
    for k in range(3 * geo.size):
        unit = (k + 2 * geo.size) % (3 * geo.size)
        for d in range(geo.size):
            places = _places(geo, paper, unit, 1 << d)
            if digits_in(places) != 2:
                continue
            for e in range(d + 1, geo.size):
                same = _places(geo, paper, unit, 1 << e) == places
                if same and _clear_pair(geo, paper, log, (unit, places, 1 << d | 1 << e)):
                    return True
    return False


@njit(cache=True)
def _guess(geo: Geometry, paper: Paper, log: Log) -> bool:
    best, fewest = NONE, 99
    for cell in range(len(paper.cells)):
        count = digits_in(paper.candidates[cell])
        if paper.cells[cell] == 0 and count < fewest:
            best, fewest = cell, count
    bit = 1 << (paper.solution[best] - 1)
    _place(geo, paper, best, bit)
    _record(log, SEARCH, (NONE, NONE), (best, NONE), bit)
    return True


@njit(cache=True)
def _step(geo: Geometry, paper: Paper, log: Log, level: int) -> int:
    """One step by the easiest technique up to ``level``; which one, or 0 where none gets anywhere."""
    if _naked_single(geo, paper, log):
        return NAKED_SINGLE
    if level >= HIDDEN_SINGLE and _hidden_single(geo, paper, log):
        return HIDDEN_SINGLE
    if level >= LOCKED and _locked(geo, paper, log):
        return LOCKED
    if level >= NAKED_PAIR and _naked_pair(geo, paper, log):
        return NAKED_PAIR
    if level >= HIDDEN_PAIR and _hidden_pair(geo, paper, log):
        return HIDDEN_PAIR
    return SEARCH if level >= SEARCH and _guess(geo, paper, log) else 0


@njit(cache=True)
def work_out(geo: Geometry, paper: Paper, log: Log, level: int, target: int) -> int:
    """Solves ``paper.cells`` by the techniques up to ``level``: the hardest one used, or 0 where they do not suffice.

    It stops when the cell ``target`` is filled (-1: when all are). Of ``paper``, ``cells`` is read and filled;
    ``solution`` is read at level 6 only. ``log`` starts anew.
    """
    log.sizes[0] = log.sizes[1] = 0
    start(geo, paper.cells, paper.candidates)
    empty = 0
    for cell in range(len(paper.cells)):
        if paper.cells[cell]:
            paper.candidates[cell] = 0
        else:
            empty += 1
    hardest = 0
    while empty:
        technique = _step(geo, paper, log, level)
        if technique == 0:
            return 0
        hardest = max(hardest, technique)
        if technique < LOCKED or technique == SEARCH:  # the others remove candidates alone
            empty -= 1
        if target >= 0 and paper.cells[target]:
            return hardest
    return hardest


def work_out_puzzle(geo: Geometry, cells: Ints, solution: Ints) -> Log:
    """How a puzzle is solved, guesses included, as a log of its own."""
    log, paper = new_log(geo.size), new_paper(len(cells))
    paper.cells[:], paper.solution[:] = cells, solution
    work_out(geo, paper, log, int(SEARCH), -1)
    return log
