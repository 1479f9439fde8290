"""The search that depth-first traces show, written so that every line of it can be checked by hand.

A state is the grid as filled so far. The candidates of an empty cell are the digits that no filled cell in its row,
column or box has: nothing else is propagated. A heuristic names the cell that is looked at next:

* ``fewest``: the empty cell with fewest candidates, the first of them in reading order;
* ``first``: the first empty cell in reading order.

With one candidate, the digit is forced and no choice is made. With several, they are tried in ascending order, each a
guess. With none, the state is a dead end, and the latest guess is taken back with all that followed from it; where that
was the last candidate of its cell, so is the guess before it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.random import Generator

from testbeds.core import Unrealisable
from testbeds.sudoku.geometry import ZERO, Geometry, Ints, constant
from testbeds.sudoku.solver import digits_in

HEURISTICS: Final = ("fewest", "first")
GUESS, FORCED, DEAD, BACK = map(constant, range(4))

SOLVED, EXHAUSTED, OVERFLOW = range(3)
MOST_EVENTS = 4_096  # lines of a trace; a longer one fits in no context, and the problem counts as having none


class Event(NamedTuple):
    """One line of a search."""

    kind: int
    cell: int
    digit: int
    """0 for a dead end."""


@njit(cache=True)
def _candidates(geo: Geometry, cells: Ints, cell: int) -> int:
    mask = (1 << geo.size) - 1
    for peer in geo.peers[cell]:
        if cells[peer]:
            mask &= ~(1 << (cells[peer] - 1))
    return mask


@njit(cache=True)
def _look(geo: Geometry, cells: Ints, rule: int) -> tuple[int, int]:
    """The cell that is looked at next and its candidates; cell -1 where none is empty."""
    best, best_mask, fewest = -1, 0, 99
    for cell in range(len(cells)):
        if cells[cell]:
            continue
        mask = _candidates(geo, cells, cell)
        if rule == 1:
            return cell, mask
        count = digits_in(mask)
        if count < fewest:
            best, best_mask, fewest = cell, mask, count
    return best, best_mask


class _Trail(NamedTuple):
    """The decisions that led to the present state."""

    cell: Ints
    left: Ints
    """Candidates that were not tried yet."""
    is_guess: Ints


@njit(cache=True)
def _write(events: Ints, count: int, kind: int, cell: int, digit: int) -> int:
    events[count, 0], events[count, 1], events[count, 2] = kind, cell, digit
    return count + 1


@njit(cache=True)
def _try_next(cells: Ints, trail: _Trail, level: int) -> None:
    """Puts the least untried candidate into the cell of a level."""
    bit = trail.left[level] & -trail.left[level]
    trail.left[level] ^= bit
    digit = 1
    while bit >> digit:
        digit += 1
    cells[trail.cell[level]] = digit


@njit(cache=True)
def _take_back(cells: Ints, trail: _Trail, level: int, events: Ints, count: int) -> tuple[int, int]:
    """Takes back decisions up to a guess with an untried candidate: its level (-1: none) and the count of events."""
    while level > 0:
        level -= 1
        cell = trail.cell[level]
        if trail.is_guess[level]:
            count = _write(events, count, BACK, cell, cells[cell])
        cells[cell] = 0
        if trail.left[level]:
            return level, count
    return -1, count


@njit(cache=True)
def explore(geo: Geometry, cells: Ints, rule: int, most_dead: int, events: Ints) -> tuple[int, int, int]:
    """Searches from ``cells``, which it fills: (outcome, dead ends, events written).

    It stops at the first solution, when all is exhausted, or beyond ``most_dead`` dead ends or the room in ``events``.
    """
    room = len(events) - len(cells) - 2  # what taking back may write at once
    memory = np.zeros((3, len(cells)), np.int64)
    trail = _Trail(memory[0], memory[1], memory[2])
    level, dead, count = ZERO, 0, ZERO
    while count < room:
        cell, mask = _look(geo, cells, rule)
        if cell < 0:
            return SOLVED, dead, count
        if mask == 0:
            dead += 1
            count = _write(events, count, DEAD, cell, ZERO)
            if dead > most_dead:
                break
            level, count = _take_back(cells, trail, level, events, count)
            if level < 0:
                return EXHAUSTED, dead, count
        else:
            trail.cell[level], trail.left[level] = cell, mask
            trail.is_guess[level] = mask & (mask - 1)
        _try_next(cells, trail, level)
        kind = GUESS if trail.is_guess[level] else FORCED
        count = _write(events, count, kind, trail.cell[level], cells[trail.cell[level]])
        level += 1
    return OVERFLOW, dead, count


def whole_search(geo: Geometry, givens: Ints, heuristic: str) -> tuple[Event, ...]:
    """All that the search does until it finds the solution.

    Raises:
        Unrealisable: where that is more than ``MOST_EVENTS`` lines.
    """
    events = np.empty((MOST_EVENTS + len(givens) + 2, 3), dtype=np.int64)
    outcome, _, count = explore(geo, givens.copy(), HEURISTICS.index(heuristic), MOST_EVENTS, events)
    if outcome != SOLVED:
        raise Unrealisable(f"the search takes more than {MOST_EVENTS} lines to find the solution")
    return _events(events, count)


class _Branch(NamedTuple):
    """A wrong guess beside the path to the solution, with all that refutes it."""

    place: int
    """Number of the decision on the path that it stands before."""
    dead: int
    events: tuple[Event, ...]


def search_with(
    geo: Geometry, puzzle: tuple[Ints, Ints], heuristic: str, dead_ends: int, rng: Generator
) -> tuple[Event, ...]:
    """A search of the same tree that meets exactly so many dead ends: which wrong guesses it tries first is drawn.

    ``puzzle`` is the givens and the solution. Wherever the path to the solution has a choice, any of the wrong
    candidates may be tried before the right one, and each is refuted to its last dead end. All selections whose dead
    ends add up to ``dead_ends`` are equally likely.

    Raises:
        Unrealisable: where no selection does.
    """
    if dead_ends > MOST_EVENTS:
        raise Unrealisable(f"{dead_ends} dead ends make a trace of more than {MOST_EVENTS} lines")
    path, branches = _path(geo, puzzle, HEURISTICS.index(heuristic), dead_ends)
    chosen = _selection([branch.dead for branch in branches], dead_ends, rng)
    if chosen is None:
        raise Unrealisable(
            f"no choice among this puzzle's {len(branches)} wrong guesses with up to {dead_ends} dead ends each meets"
            f" exactly {dead_ends}, with the heuristic {heuristic!r}"
        )
    detours: dict[int, list[Event]] = {}
    for i in chosen:
        detours.setdefault(branches[i].place, []).extend(branches[i].events)
    return tuple(line for place, event in enumerate(path) for line in (*detours.get(place, ()), event))


def _path(geo: Geometry, puzzle: tuple[Ints, Ints], rule: int, most_dead: int) -> tuple[list[Event], list[_Branch]]:
    """The search that always guesses right, and the wrong guesses beside it with up to ``most_dead`` dead ends."""
    cells, solution = puzzle[0].copy(), puzzle[1]
    events = np.empty(((most_dead + 2) * 2 * (len(cells) + 1), 3), dtype=np.int64)
    path: list[Event] = []
    branches: list[_Branch] = []
    while True:
        cell, mask = _look(geo, cells, rule)
        if cell < 0:
            return path, branches
        right = int(solution[cell])
        wrong = [digit for digit in range(1, geo.size + 1) if mask >> (digit - 1) & 1 and digit != right]
        for digit in wrong if most_dead else ():
            trial = cells.copy()
            trial[cell] = digit
            outcome, dead, count = explore(geo, trial, rule, most_dead, events)
            if outcome == EXHAUSTED:
                lines = (Event(GUESS, cell, digit), *_events(events, count), Event(BACK, cell, digit))
                branches.append(_Branch(place=len(path), dead=dead, events=lines))
        path.append(Event(GUESS if wrong else FORCED, cell, right))
        cells[cell] = right


def _selection(sizes: list[int], total: int, rng: Generator) -> list[int] | None:
    """A subset of ``sizes`` that sums to ``total``, as places, uniform among all such; None where there is none."""
    ways = [[1] + [0] * total]  # ways[i][s]: subsets of the first i that sum to s
    for size in sizes:
        last = ways[-1]
        ways.append([last[s] + (last[s - size] if s >= size else 0) for s in range(total + 1)])
    if not ways[-1][total]:
        return None
    chosen: list[int] = []
    for i in range(len(sizes), 0, -1):
        without = ways[i - 1][total] / ways[i][total]
        if rng.random() >= without:
            chosen.append(i - 1)
            total -= sizes[i - 1]
    return chosen[::-1]


def _events(events: Ints, count: int) -> tuple[Event, ...]:
    return tuple(Event(*row) for row in events[:count].tolist())
