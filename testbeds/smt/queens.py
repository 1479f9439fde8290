"""Queens completion: put the missing queens on a board so that none attacks another.

Texts (white space between symbols is free, and means nothing; answers as in family.py, in one row):

=======  ========================  ===========================================================================
what     example                   grammar
=======  ========================  ===========================================================================
prompt   ``6:_4____>``             size, ``:``, the column of the queen in each row, ``_`` where it is missing
answer   ``246135``                the column of the queen in each row; with commas from size 10 on
=======  ========================  ===========================================================================

Each puzzle has one solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np
from numpy.random import Generator

from testbeds.core import Problem, Task
from testbeds.smt.constraints import AllDifferent, Is
from testbeds.smt.family import Facts, Family, Instance, check_whole
from testbeds.smt.grids import images
from testbeds.smt.language import Puzzle, Variable
from testbeds.smt.logic import Told
from testbeds.smt.model import Integers
from testbeds.smt.search import Effort, Engine

LETTERS = "abcdefghijkl"
MOST_SOLUTIONS = 20_000  # of 12 queens there are 14,200


@dataclass(frozen=True, slots=True, kw_only=True)
class Queens(Family):
    """A board with some queens given; exactly one way to put the others.

    One of all solutions for the empty board is drawn uniformly, then queens are taken away in random order while the
    solution stays the only one; ``extra`` come back. Facts: the column of the queen in each row, 0 where it is missing.
    The key is the board under rotation and reflection: puzzles of one key are images of each other, with other answers.
    The floor is 1 / (number of solutions for the empty board): blind to the given queens.
    """

    name: ClassVar[str] = "queens"
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = "the same board up to rotation and reflection"

    size: int = 8
    """Rows, 6 to 12."""
    extra: int = 1
    """Queens beyond a minimal set, where there are more."""

    def __post_init__(self) -> None:
        check_whole("Queens.size", self.size, 6, len(LETTERS))
        check_whole("Queens.extra", self.extra, 0, len(LETTERS))

    @property
    def width(self) -> int:
        return self.size

    @property
    def lexicon(self) -> tuple[str, ...]:
        return (*LETTERS[: self.size], "columns", "rising", "falling", "given", "_", ">")

    @property
    def rules(self) -> str:
        return (
            f"Put one queen in each row of a {self.size} x {self.size} board so that no two share a column or a"
            " diagonal. The prompt gives the size, then the column (from 1) of the queen in each row; '_' is a missing"
            " queen."
        )

    def instance(self, rng: Generator) -> Instance:
        engine, solutions = _board(self.size)
        solution = tuple(solutions[int(rng.integers(len(solutions)))].tolist())
        order = [row * self.size + solution[row] - 1 for row in rng.permutation(self.size).tolist()]
        given = {clue // self.size: clue % self.size + 1 for clue in engine.clue_set(order, self.extra)}
        return Instance(facts=tuple(given.get(row, 0) for row in range(self.size)), solution=solution)

    def puzzle(self, facts: Facts) -> Puzzle:
        engine, active = self.engine(facts)
        return engine.told(active)

    def engine(self, facts: Facts) -> tuple[Engine, Integers]:
        engine, _ = _board(self.size)
        return engine, engine.active(row * self.size + column - 1 for row, column in enumerate(facts) if column)

    def prompt(self, facts: Facts) -> str:
        comma = "," if self.size > 9 else ""
        return f"{self.size}:{comma.join(str(column) if column else '_' for column in facts)}>"

    def canonical(self, facts: Facts) -> str:
        squares = [row * self.size + column - 1 for row, column in enumerate(facts) if column]
        least = min(sorted(image[square] for square in squares) for image in images(self.size))
        return f"{self.size}:{','.join(map(str, least))}"

    def floor(self, problem: Problem) -> float:
        return 1.0 / len(_board(self.size)[1])

    def measured(self, facts: Facts, effort: Effort) -> dict[str, int | float]:
        return {"size": self.size, "clues": self.size - facts.count(0)}


@lru_cache(maxsize=8)
def _board(size: int) -> tuple[Engine, Integers]:
    """The engine for all boards of a size, with any queen as a clue, and all solutions of the empty board."""
    names = tuple(LETTERS[:size])
    puzzle = Puzzle(
        variables=tuple(Variable(name=name, domain=tuple(range(1, size + 1))) for name in names),
        rules=tuple(
            AllDifferent(names, label=label, offsets=tuple(slope * row for row in range(size)))
            for label, slope in (("columns", 0), ("rising", 1), ("falling", -1))
        ),
        clues=tuple(Told(Is(name, column), "given") for name in names for column in range(1, size + 1)),
    )
    engine = Engine(puzzle)
    solutions = engine.solutions(engine.active(()), MOST_SOLUTIONS, most_nodes=10_000_000)
    return engine, solutions if solutions is not None else np.empty((0, size), dtype=np.int64)


TESTBED: Final[type[Task]] = Queens
LEVELS: Final[dict[str, Task]] = {
    "easy": Queens(size=8, extra=2),
    "medium": Queens(size=9, extra=1),
    "hard": Queens(size=11, extra=0),
}
