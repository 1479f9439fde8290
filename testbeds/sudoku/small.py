"""Every 4x4 puzzle, once per canonical form: a grid has 2**16 sets of givens, and two grids differ in more than names.

All 4,708 of them can be solved by naked singles.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from testbeds.sudoku.canonical import canonical_forms
from testbeds.sudoku.geometry import Ints, geometry
from testbeds.sudoku.grids import reduced_grids
from testbeds.sudoku.puzzles import measure

SIZE = 4
CELLS = SIZE * SIZE


class Puzzles(NamedTuple):
    """Puzzles with one solution, in canonical form, in lexicographic order: arrays with one row each."""

    cells: Ints
    solutions: Ints
    statistics: Ints
    """See puzzles.py."""


@cache
def every_puzzle() -> Puzzles:
    """All 4x4 puzzles up to symmetry that have one solution and an empty cell; computed in half a second."""
    geo = geometry(SIZE)
    full = reduced_grids(SIZE)
    classes = np.unique(canonical_forms(geo, full, full)[1], axis=0)
    labels = np.array([[0, *order] for order in permutations(range(1, SIZE + 1))])
    grids = labels[:, full].reshape(-1, CELLS)  # all 288
    found = []
    for solution in classes:
        kept = _unlike_images(solution, _unique_givens(solution, grids))
        cells = np.where((kept[:, None] >> np.arange(CELLS)) & 1, solution, 0)
        found.append(np.concatenate(canonical_forms(geo, cells, np.tile(solution, (len(cells), 1))), axis=1))
    both = np.unique(np.concatenate(found), axis=0)
    cells, solutions = np.ascontiguousarray(both[:, :CELLS]), np.ascontiguousarray(both[:, CELLS:])
    return Puzzles(cells, solutions, measure(geo, cells, solutions))


def _unique_givens(solution: Ints, grids: Ints) -> Ints:
    """The sets of cells, as masks, whose digits in ``solution`` no other grid has; the full set is left out."""
    masks = np.arange(2**CELLS - 1)
    differences = (grids != solution) @ (1 << np.arange(CELLS))
    for difference in differences[differences > 0]:
        masks = masks[(masks & difference) > 0]
    return masks


def _unlike_images(solution: Ints, masks: Ints) -> Ints:
    """One of each set of masks that the automorphisms of ``solution`` turn into each other."""
    least = masks
    for places in _moves():
        pairs = set(zip(solution[places].tolist(), solution.tolist(), strict=True))
        if len(pairs) == SIZE:  # moving the cells only renames the digits
            least = np.minimum(least, (((masks[:, None] >> places) & 1) << np.arange(CELLS)).sum(1))
    kept: Ints = masks[least == masks]
    return kept


def _moves() -> Ints:
    """The 128 symmetries of the cells: for each place, which cell comes to stand there."""
    grid = np.arange(CELLS).reshape(SIZE, SIZE)
    lines = [order for order in permutations(range(SIZE)) if {*order[:2]} in ({0, 1}, {2, 3})]
    return np.array([image[list(r)][:, list(c)].reshape(-1) for image in (grid, grid.T) for r in lines for c in lines])
