"""Magic squares: complete a square of different numbers in which each row, column and diagonal has one sum.

Texts (white space between symbols is free, and means nothing; answers as in family.py, in rows):

=======  =============================  ======================================================================
what     example                        grammar
=======  =============================  ======================================================================
prompt   ``15:9:_,7,_/_,_,_/4,_,_>``    the sum, ``:``, the highest number, ``:``, rows of cells, then ``>``;
                                        ``_`` is an empty cell
answer   ``2,7,6/9,5,1/4,3,8``          the whole square; without commas where the highest number is 9
=======  =============================  ======================================================================

The numbers are different, from 1 to the highest. Each puzzle has one solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np
from numpy.random import Generator

from testbeds.core import Problem, Task
from testbeds.smt.constraints import AllDifferent, Is, SumIs
from testbeds.smt.family import Facts, Family, Instance, check_whole, contents
from testbeds.smt.grids import images, turned
from testbeds.smt.language import Puzzle, Variable
from testbeds.smt.logic import Told
from testbeds.smt.model import Integers
from testbeds.smt.search import Effort, Engine

LETTERS = "abcd"
HIGHEST = 40
SUM_4 = 34  # 1 + ... + 16, in four rows
CELLS_4: Final[tuple[tuple[int, list[int]], ...]] = (
    (0, []),
    (1, []),
    (2, []),
    (3, [0, 1, 2]),
    (4, []),
    (8, []),
    (12, [0, 4, 8]),
    (15, [0, 3, 12]),
    (9, []),
    (6, [3, 9, 12]),
    (5, []),
    (10, [5, 6, 9]),
    (7, [4, 5, 6]),
    (13, [1, 5, 9]),
    (11, [8, 9, 10]),
    (14, [12, 13, 15]),
)
"""The cells of a square of order 4 in the order in which they are filled, and which others leave a cell one number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MagicSquare(Family):
    """A magic square with some cells given; exactly one completion.

    A square is drawn uniformly from all with different numbers in range. Then cells are emptied in random order while
    the solution stays the only one, down to ``givens``. Facts: the sum, then the cells by rows, 0 where empty. The key
    is the square under rotation, reflection and counting from the other end: puzzles of one key are images of each
    other, with other answers. The floor is 1 / (number of squares with the sum), exact: blind to the given cells.
    """

    name: ClassVar[str] = "magic_square"
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = "the same square up to rotation, reflection and counting from the other end"

    size: int = 3
    """Rows, 3 or 4."""
    highest: int = 20
    """The highest number: 9 to 40 for size 3, 16 for size 4."""
    givens: int = 3
    """Cells that are given, at least; more where fewer would not leave one solution."""

    def __post_init__(self) -> None:
        check_whole("MagicSquare.size", self.size, 3, 4)
        least, most = (9, HIGHEST) if self.size == 3 else (16, 16)
        check_whole(f"MagicSquare.highest for size {self.size}", self.highest, least, most)
        # Of order 4, below 6 givens whether there is another solution takes the search too long.
        check_whole(
            f"MagicSquare.givens for size {self.size}", self.givens, 0 if self.size == 3 else 6, self.size**2 - 1
        )

    @property
    def width(self) -> int:
        return self.size

    @property
    def lexicon(self) -> tuple[str, ...]:
        return (*LETTERS[: self.size], "row", "col", "down", "up", "different", "given", "_", ">")

    @property
    def rules(self) -> str:
        return (
            f"Complete the {self.size} x {self.size} square with different whole numbers so that every row, every"
            " column and both diagonals have the same sum. The prompt gives that sum, the highest number allowed (the"
            " lowest is 1) and the rows, separated by '/'; '_' is an empty cell."
        )

    def instance(self, rng: Generator) -> Instance:
        squares = squares_of(self.size, self.highest)
        drawn = tuple(squares[int(rng.integers(len(squares)))].tolist())
        engine = _board(self.size, self.highest, sum(drawn[: self.size]))
        total = sum(drawn[: self.size])
        clues = [place * self.highest + value - 1 for place, value in enumerate(drawn)]
        order = [clues[place] for place in rng.permutation(len(clues)).tolist()]
        kept = {clue // self.highest for clue in engine.unique_set(order, self.givens)}
        return Instance(
            facts=(total, *(value if place in kept else 0 for place, value in enumerate(drawn))), solution=drawn
        )

    def puzzle(self, facts: Facts) -> Puzzle:
        engine, active = self.engine(facts)
        return engine.told(active)

    def engine(self, facts: Facts) -> tuple[Engine, Integers]:
        total, *cells = facts
        engine = _board(self.size, self.highest, total)
        return engine, engine.active(place * self.highest + cell - 1 for place, cell in enumerate(cells) if cell)

    def prompt(self, facts: Facts) -> str:
        total, *cells = facts
        text = [str(cell) if cell else "_" for cell in cells]
        rows = [",".join(text[start : start + self.size]) for start in range(0, len(text), self.size)]
        return f"{total}:{self.highest}:{'/'.join(rows)}>"

    def canonical(self, facts: Facts) -> str:
        total, *cells = facts
        ends = self.highest + 1
        mirrored = [ends - cell if cell else 0 for cell in cells]
        squares = ((total, cells), (self.size * ends - total, mirrored))
        least = min((t, turned(self.size, square, image)) for t, square in squares for image in images(self.size))
        return f"{self.highest}:{least[0]}:{','.join(map(str, least[1]))}"

    def floor(self, problem: Problem) -> float:
        (total, *_), _ = contents(problem)
        sums = squares_of(self.size, self.highest)[:, : self.size].sum(axis=1)
        return 1.0 / int((sums == total).sum())

    def measured(self, facts: Facts, effort: Effort) -> dict[str, int | float]:
        return {"size": self.size, "clues": self.size**2 - facts[1:].count(0)}


@lru_cache(maxsize=32)
def squares_of(size: int, highest: int) -> Integers:
    """All magic squares of different numbers from 1 to ``highest``, by rows: each of order 3, or those of 1 to 16."""
    if size == 4:
        return _of_order_4()
    ends = np.arange(1 - highest, highest)
    c, a, b = (grid.ravel() for grid in np.meshgrid(np.arange(1, highest + 1), ends, ends, indexing="ij"))
    # All have this form; 3 c is the sum.
    every = np.stack((c + b, c - a - b, c + a, c + a - b, c, c + b - a, c - a, c + a + b, c - b), axis=1)
    return _with_different(every, highest)


def _of_order_4() -> Integers:
    """Cell after cell: tried with all numbers, or what a line leaves (the corners, and the centre, are lines, too)."""
    squares = np.zeros((1, 16), dtype=np.int8)  # half a million rows at most
    filled: list[int] = []
    for cell, line in CELLS_4:
        if line:
            squares[:, cell] = SUM_4 - squares[:, line].sum(axis=1, dtype=np.int8)
        else:
            squares = np.repeat(squares, 16, axis=0)
            squares[:, cell] = np.tile(np.arange(1, 17, dtype=np.int8), len(squares) // 16)
        fits = (squares[:, cell] >= 1) & (squares[:, cell] <= 16)
        fits &= (squares[:, filled] != squares[:, [cell]]).all(axis=1)
        squares = squares[fits]
        filled.append(cell)
    grid = squares.reshape(-1, 4, 4)
    lines = (*grid.sum(axis=1).T, *grid.sum(axis=2).T, grid.trace(axis1=1, axis2=2))
    magic: Integers = squares[np.all([line == SUM_4 for line in lines], axis=0)].astype(np.int64)
    return magic


def _with_different(squares: Integers, highest: int) -> Integers:
    in_range: Integers = squares[(squares.min(axis=1) >= 1) & (squares.max(axis=1) <= highest)]
    ascending = np.sort(in_range, axis=1)
    different: Integers = in_range[(ascending[:, 1:] != ascending[:, :-1]).all(axis=1)]
    return different


@lru_cache(maxsize=128)
def _board(size: int, highest: int, total: int) -> Engine:
    """The engine for all squares of a sum, with any number in any cell as a clue."""
    names = [[f"{letter}{column}" for column in range(1, size + 1)] for letter in LETTERS[:size]]
    flat = tuple(name for row in names for name in row)
    down = tuple(names[place][place] for place in range(size))
    up = tuple(names[place][size - 1 - place] for place in range(size))
    lines = [(f"row{place}", tuple(row)) for place, row in enumerate(names, 1)]
    lines += [(f"col{place}", column) for place, column in enumerate(zip(*names, strict=True), 1)]
    lines += [("down", down), ("up", up)]
    values = tuple(range(1, highest + 1))
    return Engine(
        Puzzle(
            variables=tuple(Variable(name=name, domain=values) for name in flat),
            rules=(
                AllDifferent(flat, label="different"),
                *(SumIs(line, total, label=label) for label, line in lines),
            ),
            clues=tuple(Told(Is(name, value), "given") for name in flat for value in values),
        )
    )


TESTBED: Final[type[Task]] = MagicSquare
LEVELS: Final[dict[str, Task]] = {
    "easy": MagicSquare(highest=20, givens=4),
    "medium": MagicSquare(highest=40, givens=0),
    "hard": MagicSquare(size=4, highest=16, givens=8),
}
