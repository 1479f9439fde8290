"""Complete grids, drawn exactly uniformly from all of them.

**4x4 and 6x6.** Every grid is, in exactly one way, a relabelling of the digits of a grid whose first row is 1 2 3 ...
So the grids with that first row are listed once (12 and 39,168 of them; times 4! and 6! that is 288 and 28,200,960),
one is drawn, and its digits are relabelled by a uniform permutation.

**9x9.** There are 6,670,903,752,021,072,936,960 grids, too many to list, and every backtracking fill is biased. They
are drawn by rejection from the *column sets* of their bands, as follows.

A band (three rows) has nine columns of three cells. Its *signature* is the set of digits in each of them; within a box
the three sets divide the nine digits. Let ``n(s)`` be the number of bands with signature ``s``: in a box, the
arrangement is fixed by which digits stand in which row. Given the signature of the top band, the middle band's columns
must avoid the top's column by column, for which each stack has 1 + 27 + 27 + 1 = 56 ways, whatever the top is (the
first column takes ``k`` digits of one of the other two sets and ``3 - k`` of the other, which fixes how many the other
columns take: the sum over k of C(3, k)**3). The bottom band's column sets are what is left, and always divide the
digits in each box. Every grid is one such triple of signatures, top, middle and bottom, with one band for each. Hence:

1. draw the top signature uniformly (280 partitions of the digits for each box, times an order of its columns), and
   keep it with probability ``n(top) / m``;
2. draw the middle signature uniformly from the 56**3, and keep it with probability ``n(middle) / m``;
3. the bottom signature follows; keep it with probability ``n(bottom) / m``; on any refusal start again at 1;
4. draw each band uniformly from those with its signature.

With ``m = max n``, which is found by computing all of them, each grid comes out of one round with probability
``1/(1680**3 * 56**3) * (n n n / m**3) * 1/(n n n)``: the same for all. The comparison is between whole numbers, so
nothing is rounded. The first box's partition, the orders of columns and the labels are drawn last: ``n`` does not
depend on them. A test adds ``n(top) n(middle) n(bottom)`` over all triples and finds the number of grids above
(Felgenhauer and Jarvis 2005), to the last digit.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from testbeds.sudoku.dice import Words, below, shuffle
from testbeds.sudoku.geometry import Geometry, Ints, constant, geometry
from testbeds.sudoku.solver import copy

GRIDS = {4: 288, 6: 28_200_960, 9: 6_670_903_752_021_072_936_960}
"""Number of complete grids of each size."""

_RELABELLINGS = {4: 24, 6: 720}
PARTITIONS, AVOIDING = constant(280), constant(56)


class BandTables(NamedTuple):
    """Partitions of nine digits into three triples, and how bands are made of them.

    The three masks of a partition have a fixed order, which stands for its columns (or, in a row's role, its rows).
    """

    masks: Ints
    """The triples of each partition, shape (280, 3)."""
    crosses: NDArray[np.bool_]
    """Whether two partitions meet in nine different single digits: then they are the columns and rows of one box."""
    after: Ints
    """For each partition, the 56 ordered ones that avoid it place by place, shape (280, 56, 3)."""
    after_index: Ints
    """Which partitions these are, their order forgotten, shape (280, 56)."""
    rest_index: Ints
    """Which partitions are left over for the third place, shape (280, 56)."""
    relative: Ints
    """``relative[p, q]``: the partition that q becomes when p is relabelled as partition 0."""
    bands: Ints
    """``bands[q, r]``: bands whose boxes have the column sets 0, q and r, in all orders of their rows."""
    most: int
    """The largest of ``bands``."""


@cache
def band_tables() -> BandTables:
    """The tables behind 9x9 grids; computed once, in a tenth of a second."""
    masks = _partitions()
    index_of = np.full((512, 512), -1)
    ordered = np.sort(masks, axis=1)
    index_of[ordered[:, 0], ordered[:, 1]] = np.arange(len(masks))
    after = _avoiding(masks)
    rest = 511 ^ masks[:, None, :] ^ after
    relative = _index(index_of, _relabelled(masks))
    crosses = (np.bitwise_count(masks[:, None, :, None] & masks[None, :, None, :]) == 1).all((2, 3))
    after_index, rest_index = _index(index_of, after), _index(index_of, rest)
    # The first box's rows cross its columns; the second box's rows avoid them row by row, the third's are the rest.
    first = np.flatnonzero(crosses[0])
    second = crosses[after_index[first].reshape(-1)].astype(np.int64)
    third = crosses[rest_index[first].reshape(-1)].astype(np.int64)
    bands = 6 * second.T @ third  # six orders of the first box's rows
    return BandTables(masks, crosses, after, after_index, rest_index, relative, bands, int(bands.max()))


class _Sheet(NamedTuple):
    """Memory in which one 9x9 grid after another is drawn."""

    top: Ints
    """Partition of each box of the top band."""
    choice: Ints
    """For each stack, which of the 56 the middle band has."""
    columns: Ints
    """Column sets by band, stack and column."""
    parts: Ints
    """Which partitions these are, by band and stack."""
    rows: Ints
    """Row sets of a band, by stack and row."""
    row_order: Ints
    order: Ints
    """Of the columns."""
    label: Ints
    grid: Ints
    """Digits from 0, before columns and digits are shuffled."""


def _sheet() -> _Sheet:
    return _Sheet(
        top=np.zeros(3, dtype=np.int64),
        choice=np.zeros(3, dtype=np.int64),
        columns=np.zeros((3, 3, 3), dtype=np.int64),
        parts=np.zeros((3, 3), dtype=np.int64),
        rows=np.zeros((3, 3), dtype=np.int64),
        row_order=np.arange(3),
        order=np.arange(9),
        label=np.arange(1, 10),
        grid=np.zeros((9, 9), dtype=np.int64),
    )


def draw_grids(size: int, state: Words, count: int) -> NDArray[np.int64]:
    """``count`` independent grids, uniform over all of their size, shape (count, size ** 2), digits from 1."""
    out = np.empty((count, size * size), dtype=np.int64)
    if size == 9:
        _draw_nine(band_tables(), _sheet(), state, out)
    else:
        _draw_listed(reduced_grids(size), state, np.arange(1, size + 1), out)
    return out


@cache
def reduced_grids(size: int) -> NDArray[np.int64]:
    """Every 4x4 or 6x6 grid whose first row is 1 2 3 ..., in lexicographic order."""
    listed = np.empty((GRIDS[size] // _RELABELLINGS[size], size * size), dtype=np.int64)
    grid = np.zeros(size * size, dtype=np.int64)
    grid[:size] = np.arange(1, size + 1)
    _list_reduced(geometry(size), grid, listed)
    return listed


def _partitions() -> Ints:
    """The 280 partitions of nine digits into three triples, as masks; the first is 012 345 678."""
    found = []
    for pair in combinations(range(1, 9), 2):
        left = [digit for digit in range(1, 9) if digit not in pair]
        for other in combinations(left[1:], 2):
            second = (left[0], *other)
            third = set(left) - set(second)
            found.append([sum(1 << digit for digit in triple) for triple in ((0, *pair), second, third)])
    return np.array(found, dtype=np.int64)


def _avoiding(masks: Ints) -> Ints:
    """For each partition the 56 ordered partitions whose i-th triple avoids its i-th triple."""
    orders = np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    every = masks[:, orders].reshape(-1, 3)
    return np.stack([every[((every & partition) == 0).all(1)] for partition in masks])


def _relabelled(masks: Ints) -> Ints:
    """Masks of partition q after a relabelling that takes partition p to partition 0, shape (280, 280, 3)."""
    digits = np.arange(9)
    holds = (masks[:, :, None] >> digits) & 1  # (280, 3, 9)
    label = (3 * np.arange(3)[None, :, None] + np.cumsum(holds, axis=2) - 1) * holds  # (280, 3, 9)
    weight = np.left_shift(1, label.sum(1))  # (280, 9): the bit that each digit becomes
    relabelled: Ints = np.einsum("pd,qcd->pqc", weight, holds)
    return relabelled


def _index(index_of: Ints, masks: Ints) -> Ints:
    """The numbers of partitions that are given by masks in any order, along the last axis."""
    ordered = np.sort(masks, axis=-1)
    found: Ints = index_of[ordered[..., 0], ordered[..., 1]]
    return found


# ------------------------------------------------------------------------------------------------- compiled


@njit(cache=True)
def _fits(geo: Geometry, grid: Ints, cell: int, digit: int) -> bool:
    """Whether no peer before ``cell`` in reading order holds the digit."""
    for peer in geo.peers[cell]:  # noqa: SIM110  # numba compiles no generator expression
        if peer < cell and grid[peer] == digit:
            return False
    return True


@njit(cache=True)
def _list_reduced(geo: Geometry, grid: Ints, listed: Ints) -> None:
    """Every way to complete ``grid``, whose first row is filled, in ``listed``."""
    size = geo.size
    cell = size
    found = 0
    while cell >= size:
        if cell == size * size:
            copy(grid, listed[found])
            found += 1
            cell -= 1
            continue
        digit = grid[cell] + 1
        while digit <= size and not _fits(geo, grid, cell, digit):
            digit += 1
        grid[cell] = digit if digit <= size else 0
        cell += 1 if digit <= size else -1


@njit(cache=True)
def _draw_listed(listed: Ints, state: Words, label: Ints, out: Ints) -> None:
    for i in range(len(out)):
        shuffle(state, label)
        row = listed[below(state, len(listed))]
        for cell in range(len(row)):
            out[i, cell] = label[row[cell] - 1]


@njit(cache=True)
def _number_of_bands(tables: BandTables, p: int, q: int, r: int) -> int:
    return int(tables.bands[tables.relative[p, q], tables.relative[p, r]])


@njit(cache=True)
def _draw_signature(tables: BandTables, state: Words, top: Ints, choice: Ints) -> None:
    """Partitions of the top band's boxes (the first is 0) and, for each, which of the 56 the middle band has."""
    most = tables.most
    while True:
        top[0], top[1], top[2] = 0, below(state, PARTITIONS), below(state, PARTITIONS)
        if below(state, most) >= tables.bands[top[1], top[2]]:
            continue
        for stack in range(3):
            choice[stack] = below(state, AVOIDING)
        middle = tables.after_index
        p, q, r = middle[0, choice[0]], middle[top[1], choice[1]], middle[top[2], choice[2]]
        if below(state, most) >= _number_of_bands(tables, p, q, r):
            continue
        bottom = tables.rest_index
        p, q, r = bottom[0, choice[0]], bottom[top[1], choice[1]], bottom[top[2], choice[2]]
        if below(state, most) < _number_of_bands(tables, p, q, r):
            return


@njit(cache=True)
def _find_band(tables: BandTables, parts: Ints, wanted: int, rows: Ints) -> None:
    """Puts into ``rows`` (box, row) the rows of the ``wanted``-th band that has these partitions as columns.

    Bands that differ in the order of their rows are one here.
    """
    found = 0
    for x in range(280):
        if not tables.crosses[x, parts[0]]:
            continue
        for i in range(56):
            y, z = tables.after_index[x, i], tables.rest_index[x, i]
            if tables.crosses[y, parts[1]] and tables.crosses[z, parts[2]]:
                if found == wanted:
                    for j in range(3):
                        rows[0, j], rows[1, j] = tables.masks[x, j], tables.after[x, i, j]
                        rows[2, j] = 511 ^ rows[0, j] ^ rows[1, j]
                    return
                found += 1


@njit(cache=True)
def _write_band(columns: Ints, rows: Ints, order: Ints, band: Ints) -> None:
    """The digits, from 0, of a band whose cells are where columns and rows meet; ``band`` has shape (3, 9)."""
    for stack in range(3):
        for row in range(3):
            for column in range(3):
                bit = columns[stack, column] & rows[stack, order[row]]
                digit = 0
                while bit >> digit != 1:
                    digit += 1
                band[row, 3 * stack + column] = digit


@njit(cache=True)
def _draw_columns(tables: BandTables, sheet: _Sheet, state: Words) -> None:
    """The column sets of all bands, and which partitions they are; those of the first box are fixed."""
    _draw_signature(tables, state, sheet.top, sheet.choice)
    columns, parts = sheet.columns, sheet.parts
    for stack in range(3):
        part, i = sheet.top[stack], sheet.choice[stack]
        for j in range(3):
            columns[0, stack, j], columns[1, stack, j] = tables.masks[part, j], tables.after[part, i, j]
            columns[2, stack, j] = 511 ^ columns[0, stack, j] ^ columns[1, stack, j]
        parts[0, stack], parts[1, stack] = part, tables.after_index[part, i]
        parts[2, stack] = tables.rest_index[part, i]


@njit(cache=True)
def _draw_nine(tables: BandTables, sheet: _Sheet, state: Words, out: Ints) -> None:
    grid, parts = sheet.grid, sheet.parts
    for i in range(len(out)):
        _draw_columns(tables, sheet, state)
        for band in range(3):
            # Six orders of the rows for each way to divide the digits among them.
            ways = _number_of_bands(tables, parts[band, 0], parts[band, 1], parts[band, 2]) // 6
            _find_band(tables, parts[band], int(below(state, ways)), sheet.rows)
            shuffle(state, sheet.row_order)
            _write_band(sheet.columns[band], sheet.rows, sheet.row_order, grid[3 * band : 3 * band + 3])
        shuffle(state, sheet.label)
        for stack in range(3):
            shuffle(state, sheet.order[3 * stack : 3 * stack + 3])
        for row in range(9):
            for column in range(9):
                out[i, 9 * row + column] = sheet.label[grid[row, sheet.order[column]]]
