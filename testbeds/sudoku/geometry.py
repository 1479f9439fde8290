"""Where the cells of a grid lie: rows, columns, boxes, and who sees whom, as tables for the compiled code.

Cells are numbered in reading order from 0. Units are numbered rows first, then columns, then boxes (these in reading
order too). A set of digits is a mask: bit ``d - 1`` stands for the digit ``d``.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

BOXES: Final = {4: (2, 2), 6: (2, 3), 9: (3, 3)}
"""Rows and columns of a box, by the size of the grid."""


def constant(value: int) -> int:
    """``value`` as a number of numpy's; numba compiles a function anew for each of Python's that is passed to it."""
    return np.int64(value)  # type: ignore[return-value]  # an int in all that matters here


ZERO: Final = constant(0)


class Geometry(NamedTuple):
    """The tables of one size."""

    size: int
    height: int
    """Rows of a box."""
    width: int
    """Columns of a box."""
    units: Ints
    """Cells of each unit, shape (3 * size, size)."""
    unit_of: Ints
    """Row, column and box of each cell, as numbers of units, shape (size ** 2, 3)."""
    peers: Ints
    """The other cells that share a unit with a cell, shape (size ** 2, number of peers)."""


@cache
def geometry(size: int) -> Geometry:
    """The tables of a 4x4, 6x6 or 9x9 grid."""
    height, width = BOXES[size]
    cells = np.arange(size * size)
    row, column = np.divmod(cells, size)
    box = row // height * (size // width) + column // width
    unit_of = np.stack([row, size + column, 2 * size + box], axis=1)
    units = np.stack([np.flatnonzero((unit_of == unit).any(1)) for unit in range(3 * size)])
    sees = (unit_of[:, None, :] == unit_of[None, :, :]).any(2) & ~np.eye(size * size, dtype=bool)
    peers = np.stack([np.flatnonzero(line) for line in sees])
    return Geometry(size, height, width, units.astype(np.int64), unit_of.astype(np.int64), peers.astype(np.int64))


def cell_name(size: int, cell: int) -> str:
    """How a cell is written: ``r1c2``."""
    return f"r{cell // size + 1}c{cell % size + 1}"


def unit_name(size: int, unit: int) -> str:
    """How a unit is written in a trace: ``r1``, ``c2`` or ``b3``."""
    return f"{'rcb'[unit // size]}{unit % size + 1}"


def unit_words(size: int, unit: int) -> str:
    """How a unit is named to a reader: ``row 1``."""
    return f"{('row', 'column', 'box')[unit // size]} {unit % size + 1}"
