"""A family of puzzles in one file, as a reader would add it: who sits where in a row?

Put such a file into testbeds/smt/, and it is a testbed: generated, verified, demonstrated and listed like the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar, Final

from numpy.random import Generator

from testbeds.core import Task
from testbeds.smt import Adjacent, AllDifferent, Constraint, LessThan, Puzzle, Variable, minimal_clues
from testbeds.smt.family import Facts, Family, Instance, check_whole

KINDS: Final[dict[str, type[Adjacent | LessThan]]] = {"<": LessThan, "~": Adjacent}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats(Family):
    """People on seats in a row; clues say who sits left of whom (``a<b``) and who are neighbours (``a~b``)."""

    name: ClassVar[str] = "seats"

    people: int = 4
    """3 to 6."""

    def __post_init__(self) -> None:
        check_whole("Seats.people", self.people, 3, 6)

    @property
    def lexicon(self) -> tuple[str, ...]:
        return (*"abcdef"[: self.people], *KINDS, ">", "seats")

    @property
    def rules(self) -> str:
        return (
            f"The people {', '.join('abcdef'[: self.people])} sit on seats 1 to {self.people}, one each. a<b says that"
            " a has the smaller seat, a~b that their seats are side by side. Who sits where?"
        )

    def instance(self, rng: Generator) -> Instance:
        solution = tuple((rng.permutation(self.people) + 1).tolist())
        empty = self.puzzle(())
        seats = empty.assignment(solution)
        pairs = permutations(range(self.people), 2)
        told = [(kind, i, j) for i, j in pairs for kind in KINDS if kind == "<" or i < j]
        true = [fact for fact in told if self._clue(fact).holds(seats)]
        clues = minimal_clues(empty, [self._clue(fact) for fact in true], rng)
        return Instance(facts=tuple(fact for fact in true if self._clue(fact) in clues), solution=solution)

    def puzzle(self, facts: Facts) -> Puzzle:
        names = tuple("abcdef"[: self.people])
        return Puzzle(
            variables=tuple(Variable(name=name, domain=tuple(range(1, self.people + 1))) for name in names),
            rules=(AllDifferent(names, label="seats"),),
            clues=tuple(self._clue(fact) for fact in facts),
        )

    def prompt(self, facts: Facts) -> str:
        return f"{','.join(self._clue(fact).text for fact in facts)}>"

    def _clue(self, fact: tuple[str, int, int]) -> Constraint:
        kind, left, right = fact
        return KINDS[kind]("abcdef"[left], "abcdef"[right])


TESTBED: Final[type[Task]] = Seats
LEVELS: Final[dict[str, Task]] = {"easy": Seats(people=4), "hard": Seats(people=6)}
