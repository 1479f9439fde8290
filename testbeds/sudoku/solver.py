"""The reference solver: candidates as bit masks, singles to the end, then a branch on the cell with fewest candidates.

It counts solutions up to a limit. Everything is iterative and bounded by ``MOST_NODES``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from testbeds.sudoku.geometry import ZERO, Geometry, Ints

MOST_NODES = 1_000_000  # a few seconds; a puzzle with one solution needs a few hundred at most, and most need one
UNDECIDED = -1


class Count(NamedTuple):
    """What a search found."""

    solutions: int
    """Number of solutions, up to the limit; ``UNDECIDED`` where ``MOST_NODES`` did not suffice."""
    nodes: int
    """States that were searched: 1 where singles alone decide."""


@njit(cache=True)
def copy(source: Ints, target: Ints) -> None:
    """Fills ``target`` with ``source``; compiles in a tenth of the time of a slice, whose shapes numba checks."""
    for i in range(len(source)):
        target[i] = source[i]


@njit(cache=True)
def is_single(mask: int) -> bool:
    """Whether a mask holds exactly one digit."""
    return mask != 0 and mask & (mask - 1) == 0


@njit(cache=True)
def digits_in(mask: int) -> int:
    """How many digits a mask holds."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@njit(cache=True)
def start(geo: Geometry, cells: Ints, candidates: Ints) -> bool:
    """Fills ``candidates``: of an empty cell the digits that no peer has, of a filled one its digit.

    False where two peers hold the same digit.
    """
    used = np.zeros(3 * geo.size, dtype=np.int64)
    for cell in range(len(cells)):
        if cells[cell]:
            bit = 1 << (cells[cell] - 1)
            for k in range(3):
                if used[geo.unit_of[cell, k]] & bit:
                    return False
                used[geo.unit_of[cell, k]] |= bit
    full = (1 << geo.size) - 1
    for cell in range(len(cells)):
        of = geo.unit_of[cell]
        candidates[cell] = 1 << (cells[cell] - 1) if cells[cell] else full & ~(used[of[0]] | used[of[1]] | used[of[2]])
    return True


@njit(cache=True)
def _spread(geo: Geometry, candidates: Ints, done: Ints, todo: Ints, top: int) -> bool:
    """Takes the digits of the cells in ``todo[:top]`` from their peers, and so on; False at a contradiction."""
    while top:
        top -= 1
        cell = todo[top]
        done[cell] = 1
        bit = candidates[cell]
        for peer in geo.peers[cell]:
            if candidates[peer] & bit:
                left = candidates[peer] ^ bit
                if left == 0:
                    return False
                candidates[peer] = left
                if left & (left - 1) == 0:
                    todo[top] = peer
                    top += 1
    return True


@njit(cache=True)
def _hidden(geo: Geometry, candidates: Ints, todo: Ints) -> int:
    """Reduces cells that are the only place of a digit in a unit, onto the stack: how many, or -1: contradiction."""
    full = (1 << geo.size) - 1
    top = 0
    for unit in range(len(geo.units)):
        once, twice = 0, 0
        for cell in geo.units[unit]:
            twice |= once & candidates[cell]
            once |= candidates[cell]
        if once != full:
            return -1
        if twice == full:
            continue
        for cell in geo.units[unit]:
            bit = candidates[cell] & ~twice
            if bit and candidates[cell] != bit:
                if bit & (bit - 1):
                    return -1
                candidates[cell] = bit
                todo[top] = cell
                top += 1
    return top


@njit(cache=True)
def settle(geo: Geometry, candidates: Ints, done: Ints, todo: Ints) -> bool:
    """Naked and hidden singles until there are no more; False at a contradiction."""
    top = ZERO
    for cell in range(len(candidates)):
        if candidates[cell] == 0:
            return False
        if not done[cell] and candidates[cell] & (candidates[cell] - 1) == 0:
            todo[top] = cell
            top += 1
    while True:
        if not _spread(geo, candidates, done, todo, top):
            return False
        top = _hidden(geo, candidates, todo)
        if top <= 0:
            return top == 0


@njit(cache=True)
def _tightest(candidates: Ints) -> int:
    """The first cell with fewest candidates, but more than one; -1 where every cell has one."""
    best, fewest = -1, 99
    for cell in range(len(candidates)):
        if candidates[cell] & (candidates[cell] - 1):
            count = digits_in(candidates[cell])
            if count == 2:
                return cell
            if count < fewest:
                best, fewest = cell, count
    return best


class Workspace(NamedTuple):
    """Memory of a search: one row a level."""

    candidates: Ints
    done: Ints
    todo: Ints
    branch: Ints
    """The cell that a level branches on."""


def workspace(cells: int) -> Workspace:
    """Memory for grids of so many cells."""
    return Workspace(
        np.zeros((cells + 1, cells), np.int64),
        np.zeros((cells + 1, cells), np.int64),
        np.zeros(cells, np.int64),
        np.zeros(cells + 1, np.int64),
    )


@njit(cache=True)
def _node(geo: Geometry, work: Workspace, level: int) -> int:
    """Settles one level: 0 a contradiction, 1 a solution, 2 a cell to branch on."""
    if not settle(geo, work.candidates[level], work.done[level], work.todo):
        return 0
    work.branch[level] = _tightest(work.candidates[level])
    return 1 if work.branch[level] < 0 else 2


@njit(cache=True)
def count_from(geo: Geometry, work: Workspace, limit: int) -> tuple[int, int]:
    """Solutions (up to ``limit``) and nodes of the search that starts with ``work.candidates[0]`` and ``work.done[0]``.

    After a count of 1 under limit 1, the solution stands in ``work.candidates[len(cells)]``.
    """
    found, nodes, level = 0, 0, ZERO
    last = len(work.todo)
    while level >= 0:
        nodes += 1
        if nodes > MOST_NODES:
            return UNDECIDED, nodes
        outcome = _node(geo, work, level)
        if outcome == 1:
            found += 1
            copy(work.candidates[level], work.candidates[last])
            if found == limit:
                return found, nodes
        if outcome < 2:
            level -= 1  # back to the level above, without the digit that led here
            continue
        cell = work.branch[level]
        bit = work.candidates[level, cell] & -work.candidates[level, cell]
        copy(work.candidates[level], work.candidates[level + 1])
        copy(work.done[level], work.done[level + 1])
        work.candidates[level + 1, cell] = bit
        work.candidates[level, cell] ^= bit
        level += 1
    return found, nodes


@njit(cache=True)
def count_at(geo: Geometry, work: Workspace, cells: Ints, limit: int) -> tuple[int, int]:
    """Solutions of ``cells``, up to ``limit``, and nodes, as ``count_from`` finds them."""
    if not start(geo, cells, work.candidates[0]):
        return 0, 1
    for cell in range(len(cells)):
        work.done[0, cell] = cells[cell] > 0
    return count_from(geo, work, limit)


def count_solutions(geo: Geometry, cells: NDArray[np.int64], limit: int = 2) -> tuple[Count, NDArray[np.int64]]:
    """How many solutions ``cells`` (0 for empty) has, up to ``limit``, and the last one found: zeros for none."""
    work = workspace(len(cells))
    found, nodes = count_at(geo, work, cells, limit)
    masks = work.candidates[len(cells)].tolist()
    return Count(int(found), int(nodes)), np.array([mask.bit_length() for mask in masks], dtype=np.int64)
