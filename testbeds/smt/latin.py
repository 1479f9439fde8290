"""Latin squares and futoshiki: fill a square so that no row and no column repeats a number.

Texts (white space between symbols is free, and means nothing; answers as in family.py, in rows):

==============  ==========================  =====================================================================
what            example                     grammar
==============  ==========================  =====================================================================
latin prompt    ``_2_/___/3__>``            the rows, joined by ``/``, then ``>``; ``_`` is an empty cell
futoshiki       ``_2_._/.^./_._._/v../``    rows of cells with a sign between neighbours, and between two rows the
                ``3._<_>``                  signs of each column; ``.`` is no sign
answer          ``123/231/312``             the whole square
==============  ==========================  =====================================================================

Between neighbours, ``<`` says that the left number is the smaller and ``>`` that the right one is; between rows,
``^`` says that the upper number is the smaller and ``v`` that the lower one is. Each puzzle has one solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

from numpy.random import Generator

from testbeds.core import Problem, Task
from testbeds.smt.constraints import AllDifferent, Constraint, Is, LessThan
from testbeds.smt.family import Facts, Family, Instance, check_whole
from testbeds.smt.grids import images, relabelled, rows_of
from testbeds.smt.language import Puzzle, Variable
from testbeds.smt.latin_squares import random_square
from testbeds.smt.logic import Told
from testbeds.smt.model import Integers
from testbeds.smt.search import Effort, Engine

LETTERS = "abcdefghi"
LARGEST_WITH_SIGNS = 7  # of size 8, it can take ten seconds to prove that a square is the only one, of size 9 forever
SQUARES = {
    3: 12,
    4: 576,
    5: 161_280,
    6: 812_851_200,
    7: 61_479_419_904_000,
    8: 108_776_032_459_082_956_800,
    9: 5_524_751_496_156_892_842_531_225_600,
}
"""Latin squares of each size (OEIS A002860)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latin(Family):
    """A square with some cells, and perhaps some signs, given; exactly one square fits.

    A solution is drawn uniformly from all Latin squares. Then come clues: a minimal set, and ``extra`` ones. In
    futoshiki cells are dropped before signs, so that signs do most of the telling. Facts: the cells by rows, 0 where
    empty, then the signs between the cells of each row, then those between rows.

    Without signs the key is the puzzle under permutation of its rows, of its columns and of its numbers, and under
    exchange of these three roles; with signs, under rotation, reflection and counting from the other end. Puzzles of
    one key are images of each other, with other answers. The floor is 1 / (number of Latin squares), exact: blind to
    all clues.
    """

    name: ClassVar[str] = "latin"
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = (
        "the same up to permuting and exchanging rows, columns and numbers; with signs, up to rotation, reflection and"
        " counting from the other end"
    )

    size: int = 4
    """Rows, 3 to 9; with signs, 3 to 7."""
    signs: bool = False
    """Whether there are signs between neighbours: futoshiki."""
    extra: int = 2
    """Clues beyond a minimal set, at most half as many as there are cells: 0 makes each clue indispensable."""

    def __post_init__(self) -> None:
        most = LARGEST_WITH_SIGNS if self.signs is True else len(LETTERS)
        check_whole(f"Latin.size with signs={self.signs!r}", self.size, 3, most)
        check_whole(f"Latin.extra for size {self.size}", self.extra, 0, self.size**2 // 2)
        if type(self.signs) is not bool:
            raise ValueError(f"Latin.signs must be True or False, got {self.signs!r}")

    @property
    def width(self) -> int:
        return self.size

    @property
    def lexicon(self) -> tuple[str, ...]:
        return (*LETTERS[: self.size], "row", "col", "given", "_", ">", *(("<", "^", "v", ".") if self.signs else ()))

    @property
    def rules(self) -> str:
        signs = (
            " Between neighbours, '<' and '>' compare the left with the right number, and between rows '^' says that"
            " the upper number is the smaller, 'v' that the lower one is; '.' is no sign."
        )
        return (
            f"Fill the {self.size} x {self.size} square with the numbers 1 to {self.size} so that no row and no column"
            f" has a number twice. Rows are separated by '/'; '_' is an empty cell.{signs if self.signs else ''}"
        )

    def instance(self, rng: Generator) -> Instance:
        engine, clues = _board(self.size, signs=self.signs)
        drawn = tuple(number + 1 for number in random_square(self.size, rng))
        values = dict(zip(engine.puzzle.names, drawn, strict=True))
        true = [place for place, clue in enumerate(clues) if clue.holds(values)]
        shuffled = [true[place] for place in rng.permutation(len(true)).tolist()]
        cells = self.size**3
        order = [c for c in shuffled if c < cells] + [c for c in shuffled if c >= cells] if self.signs else shuffled
        chosen = engine.clue_set(order, self.extra)
        return Instance(facts=_facts(self.size, chosen, signs=self.signs), solution=drawn)

    def puzzle(self, facts: Facts) -> Puzzle:
        engine, active = self.engine(facts)
        return engine.told(active)

    def engine(self, facts: Facts) -> tuple[Engine, Integers]:
        engine, _ = _board(self.size, signs=self.signs)
        return engine, engine.active(_clues(self.size, facts))

    def prompt(self, facts: Facts) -> str:
        cells, across, down = facts
        n = self.size
        text = ["_" if cell == 0 else str(cell) for cell in cells]
        if not self.signs:
            return "/".join(rows_of("".join(text), n)) + ">"
        lines = []
        for row in range(n):
            joined = [text[row * n + column] + across[row * (n - 1) + column] for column in range(n - 1)]
            lines.append("".join(joined) + text[row * n + n - 1])
        between = rows_of(down, n)
        return "/".join([line for pair in zip(lines, [*between, ""], strict=True) for line in pair if line]) + ">"

    def canonical(self, facts: Facts) -> str:
        cells, across, down = facts
        if self.signs:
            return _least_futoshiki(self.size, cells, across, down)
        return relabelled(self.size, cells)

    def floor(self, problem: Problem) -> float:
        return 1.0 / SQUARES[self.size]

    def measured(self, facts: Facts, effort: Effort) -> dict[str, int | float]:
        cells, across, down = facts
        given = self.size**2 - cells.count(0)
        signs = sum(sign != "." for sign in f"{across}{down}")
        return {"size": self.size, "givens": given, "signs": signs, "clues": given + signs}


@lru_cache(maxsize=16)
def _board(size: int, *, signs: bool) -> tuple[Engine, tuple[Constraint, ...]]:
    """The engine for all squares of a size, and all that its puzzles may tell."""
    names = [[f"{letter}{column}" for column in range(1, size + 1)] for letter in LETTERS[:size]]
    flat = [name for row in names for name in row]
    rows = [AllDifferent(tuple(row), label=f"row{place}") for place, row in enumerate(names, 1)]
    columns = [
        AllDifferent(tuple(column), label=f"col{place}") for place, column in enumerate(zip(*names, strict=True), 1)
    ]
    clues: list[Constraint] = [Told(Is(name, value), "given") for name in flat for value in range(1, size + 1)]
    if signs:
        across = [(row[place], row[place + 1]) for row in names for place in range(size - 1)]
        down = list(zip(flat, flat[size:], strict=False))
        clues += [LessThan(*pair[::way]) for pair in across + down for way in (1, -1)]
    puzzle = Puzzle(
        variables=tuple(Variable(name=name, domain=tuple(range(1, size + 1))) for name in flat),
        rules=(*rows, *columns),
        clues=tuple(clues),
    )
    return Engine(puzzle), tuple(clues)


def _facts(size: int, chosen: Sequence[int], *, signs: bool) -> Facts:
    cells = [0] * size**2
    marks = ["."] * (2 * size * (size - 1))
    for clue in chosen:
        if clue < size**3:
            cells[clue // size] = clue % size + 1
        else:
            place, way = divmod(clue - size**3, 2)
            marks[place] = ("<>" if place < size * (size - 1) else "^v")[way]
    half = size * (size - 1)
    return tuple(cells), "".join(marks[:half]) if signs else "", "".join(marks[half:]) if signs else ""


def _clues(size: int, facts: Facts) -> list[int]:
    cells, across, down = facts
    given = [place * size + cell - 1 for place, cell in enumerate(cells) if cell]
    marks = f"{across}{down}"
    return given + [size**3 + 2 * place + (mark in ">v") for place, mark in enumerate(marks) if mark != "."]


def _least_futoshiki(size: int, cells: tuple[int, ...], across: str, down: str) -> str:
    """The least writing among the rotations and reflections, each with the numbers as they are and reversed."""
    # Signs as a difference between neighbouring cells: how they turn follows from where their cells go.
    pairs = [(r * size + c, r * size + c + 1) for r in range(size) for c in range(size - 1)]
    pairs += [(place, place + size) for place in range(size * (size - 1))]
    less = [
        pair if mark in "<^" else pair[::-1] for pair, mark in zip(pairs, across + down, strict=True) if mark != "."
    ]
    writings = []
    for image in images(size):
        moved = sorted((image[low], image[high]) for low, high in less)
        turned = [0] * size**2
        for place, cell in enumerate(cells):
            turned[image[place]] = cell
        reversed_cells = [size + 1 - cell if cell else 0 for cell in turned]
        writings.append((turned, moved))
        writings.append((reversed_cells, sorted((high, low) for low, high in moved)))
    cells_text, less_text = min(writings)
    return f"{size}:{''.join(map(str, cells_text))}:{','.join(f'{low}<{high}' for low, high in less_text)}"


TESTBED: Final[type[Task]] = Latin
LEVELS: Final[dict[str, Task]] = {
    "easy": Latin(size=4, extra=4),
    "medium": Latin(size=5, extra=1),
    "hard": Latin(size=7, extra=0),
    "futoshiki": Latin(size=4, signs=True, extra=2),
    "futoshiki_hard": Latin(size=5, signs=True, extra=0),
}
