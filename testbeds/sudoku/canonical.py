"""Canonical forms: one text for a puzzle and all its images under the symmetries of Sudoku.

The symmetries are: any relabelling of the digits; any order of the bands, of the rows in each band, of the stacks, of
the columns in each stack; and transposition, where boxes are square (4x4 and 9x9; it turns the 2x3 boxes of a 6x6 grid
into 3x2 ones, which is another kind of puzzle). That is 2 * 6**8 * 9! for 9x9.

A puzzle has one solution, so two puzzles are images of each other exactly if a symmetry takes solution to solution and
givens to givens. The canonical form is the least image of (solution, givens) in a normal form: the box at the top left
reads 1 2 3 ... in reading order, the other columns of a stack ascend in the first row and so do the stacks, the other
rows of a band ascend in the first column and so do the bands. An image in normal form is fixed by which box is at the
top left and in which order its rows and columns stand, and by transposition: 648 candidates for 9x9 (6x6: 72, 4x4: 32)
in place of 3,359,232, and every class of images has the same ones. The least is found by comparing cell by cell. Where
several candidates give the least solution, which its automorphisms do, the least givens among them decide.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numba import njit

from testbeds.sudoku.geometry import BOXES, ZERO, Geometry, Ints


@cache
def corners(size: int) -> Ints:
    """Every choice of rows, then columns, for the box at the top left, one a row."""
    height, width = BOXES[size]
    rows = [[band + i for i in order] for band in range(0, size, height) for order in permutations(range(height))]
    columns = [[stack + j for j in order] for stack in range(0, size, width) for order in permutations(range(width))]
    return np.array([[*some, *others] for some in rows for others in columns], dtype=np.int64)


class _View(NamedTuple):
    """One image: ``out[i, j] = label[grid[rows[i], columns[j]]]``, and scratch memory to find it."""

    grid: Ints
    givens: Ints
    rows: Ints
    columns: Ints
    label: Ints
    place: Ints
    slot: Ints
    band_of: Ints
    """The band of each row."""
    stack_of: Ints
    """The stack of each column."""


@njit(cache=True)
def _sort_lines(view: _View, order: Ints, group_of: Ints, thickness: int) -> None:
    """Completes ``order``, whose first ``thickness`` lines are known, by the names in ``view.place``.

    ``place[name]`` is the line on which a name stands; the ``thickness`` lines of a group stay together.
    """
    size = len(order)
    for line in range(size):
        view.slot[group_of[line]] = -1  # where the next line of the group goes; -1: not known yet
    view.slot[group_of[order[0]]] = size  # done
    fresh = thickness
    for name in range(1, size + 1):
        line = view.place[name]
        group = group_of[line]
        slot = view.slot[group]
        if slot == size:
            continue
        if slot < 0:
            slot = fresh
            fresh += thickness
        order[slot] = line
        view.slot[group] = slot + 1


@njit(cache=True)
def _compare(view: _View, source: Ints, first: int, last: int, best: Ints) -> int:
    """Rows ``first`` to ``last - 1`` of the image of ``source`` against ``best``: below 0 where less, 0 where equal."""
    size = len(view.columns)
    for i in range(first, last):
        row = view.rows[i]
        for j in range(size):
            difference = view.label[source[row, view.columns[j]]] - best[i, j]
            if difference:
                return int(difference)
    return 0


@njit(cache=True)
def _write(view: _View, source: Ints, out: Ints) -> None:
    size = len(view.columns)
    for i in range(size):
        for j in range(size):
            out[i, j] = view.label[source[view.rows[i], view.columns[j]]]


@njit(cache=True)
def _offer(view: _View, height: int, width: int, best: tuple[Ints, Ints]) -> None:
    """Keeps the image in ``best`` if it is the least so far; the first box's rows, columns and labels are known."""
    size = len(view.columns)
    _sort_lines(view, view.columns, view.stack_of, width)
    order = _compare(view, view.grid, ZERO, height, best[0])
    if order > 0:
        return
    for i in range(size):
        view.place[view.label[view.grid[i, view.columns[0]]]] = i
    _sort_lines(view, view.rows, view.band_of, height)
    if order == 0:
        order = _compare(view, view.grid, height, size, best[0])
    if order < 0:
        _write(view, view.grid, best[0])
        _write(view, view.givens, best[1])
    elif order == 0 and _compare(view, view.givens, ZERO, size, best[1]) < 0:
        _write(view, view.givens, best[1])


@njit(cache=True)
def _name(grid: Ints, lines: tuple[Ints, Ints], shape: tuple[int, int], label: Ints, place: Ints) -> None:
    """Names the digits of the first box 1, 2, 3, ... in reading order, and finds their columns in the first row."""
    rows, columns = lines
    name = 1
    for i in range(shape[0]):
        for j in range(shape[1]):
            label[grid[rows[i], columns[j]]] = name
            name += 1
    for j in range(len(columns)):
        place[label[grid[rows[0], j]]] = j


@njit(cache=True)
def _search(geo: Geometry, view: _View, corners: Ints, best: tuple[Ints, Ints]) -> None:
    """Offers every candidate of one orientation, unless its first row shows that it is not the least."""
    size, height, width = geo.size, geo.height, geo.width
    grid, label, place, stack_of = view.grid, view.label, view.place, view.stack_of
    rows, columns = view.rows, view.columns
    for k in range(len(corners)):
        for i in range(height):
            rows[i] = corners[k, i]
        for j in range(width):
            columns[j] = corners[k, height + j]
        _name(grid, (rows, columns), (height, width), label, place)
        # The first row goes on w+1, w+2 if these share a stack. In some candidate they do: of the digits in the second
        # row of a box, two lie in one stack of the first row, and some order of columns names them so.
        stack = stack_of[place[width + 1]]
        if stack_of[place[width + 2]] != stack:
            continue
        third = width + 3  # and then with the third name in that stack, where it has three columns
        while third <= size and stack_of[place[third]] != stack:
            third += 1
        if third > size or third <= best[0][0, width + 2]:
            _offer(view, height, width, best)


@njit(cache=True)
def _load(view: _View, puzzle: tuple[Ints, Ints], turned: bool) -> None:  # noqa: FBT001  # numba
    """Writes the givens and the solution, or their transposes, into ``view``."""
    size = len(view.columns)
    for i in range(size):
        for j in range(size):
            cell = j * size + i if turned else i * size + j
            view.givens[i, j], view.grid[i, j] = puzzle[0][cell], puzzle[1][cell]


@njit(cache=True)
def _canonise(geo: Geometry, view: _View, corners: Ints, puzzles: tuple[Ints, Ints], best: tuple[Ints, Ints]) -> None:
    """Replaces each puzzle and its solution (rows of ``puzzles``) by their canonical forms.

    ``corners``: see the function of that name. ``best`` is memory for one canonical form.
    """
    size = geo.size
    for k in range(len(puzzles[0])):
        puzzle = (puzzles[0][k], puzzles[1][k])
        for i in range(size):
            for j in range(size):
                best[0][i, j] = size + 1
        for turn in range(1 + (geo.height == geo.width)):
            _load(view, puzzle, turn == 1)
            _search(geo, view, corners, best)
        for i in range(size):
            for j in range(size):
                puzzle[0][i * size + j], puzzle[1][i * size + j] = best[1][i, j], best[0][i, j]


def canonical_forms(geo: Geometry, cells: Ints, solutions: Ints) -> tuple[Ints, Ints]:
    """The canonical forms of puzzles and of their solutions, rows of two arrays like the given ones."""
    size = geo.size
    grid, givens, best_givens, best_grid = (np.zeros((size, size), dtype=np.int64) for _ in range(4))
    rows, columns = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    label, place, slot = (np.zeros(size + 1, dtype=np.int64) for _ in range(3))
    band_of, stack_of = np.arange(size) // geo.height, np.arange(size) // geo.width
    view = _View(grid, givens, rows, columns, label, place, slot, band_of, stack_of)
    forms = cells.copy(), solutions.copy()
    _canonise(geo, view, corners(size), forms, (best_grid, best_givens))
    return forms
