"""Knapsack and subset sum: choose among items, the best choice that fits, or one that fits exactly.

Texts (white space between symbols is free, and means nothing; answers as in family.py, in one row):

===============  =========================  ====================================================================
what             example                    grammar
===============  =========================  ====================================================================
knapsack prompt  ``10:4/7,3/2,7/9>``        the capacity, ``:``, ``WEIGHT "/" VALUE`` of each item, then ``>``
subset prompt    ``10:4,3,7>``              the sum to be reached, ``:``, the numbers, then ``>``
answer           ``011``                    for each item in order, 1 where it is chosen, else 0
===============  =========================  ====================================================================

A knapsack's answer is right if the weights fit and no choice that fits is worth more; a subset's if it adds up
exactly. All such choices are right. Working, beside what family.py says: ``b:7/9`` after item b was chosen gives the
weight and the value so far, ``b:7`` the sum so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final, Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from testbeds.core import Problem, Step, Task
from testbeds.smt.constraints import SumAtMost, SumIs
from testbeds.smt.family import Facts, Family, Instance, check_whole, contents
from testbeds.smt.language import Objective, Puzzle, Variable
from testbeds.smt.search import Effort

LETTERS = "abcdefghijklmn"
MOST_WEIGHT = 1000

Kind = Literal["knapsack", "subset_sum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Knapsack(Family):
    """Items with weights, and values unless a sum is asked for; numbers are drawn uniformly from 1 to ``highest``.

    A knapsack holds between a third and two thirds of all weight, uniformly; the sum of a subset is that of a set drawn
    uniformly from all but the empty and the full one. Facts: capacity, weights, values (none for subset sum). The key
    sorts the items; puzzles of one key are images of each other, with other answers. The floor is an
    upper bound for guesses that are blind to the numbers: items stand in random order, so all choices of one size are
    as good, and it is the share of right ones among those of the best size.
    """

    name: ClassVar[str] = "knapsack"
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = "the same items in any order"

    kind: Kind = "knapsack"
    """What is asked."""
    items: int = 5
    """3 to 14."""
    highest: int = 20
    """The highest weight and value, 2 to 1000."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"Knapsack.kind must be one of {', '.join(get_args(Kind))}, got {self.kind!r}")
        check_whole("Knapsack.items", self.items, 3, len(LETTERS))
        check_whole("Knapsack.highest", self.highest, 2, MOST_WEIGHT)

    @property
    def width(self) -> int:
        return self.items

    @property
    def lexicon(self) -> tuple[str, ...]:
        return (*LETTERS[: self.items], *(("capacity", "best") if self.kind == "knapsack" else ("sum",)), ">")

    @property
    def rules(self) -> str:
        if self.kind == "subset_sum":
            return (
                "Choose some of the numbers so that they add up exactly to the sum. The prompt gives the sum, ':', and"
                " the numbers. For each number in order write 1 if it is chosen and 0 if not, without separators."
            )
        return (
            "Choose the items whose total value is the largest possible while their total weight is at most the"
            " capacity. The prompt gives the capacity, ':', and weight/value of each item. For each item in order write"
            " 1 if it is chosen and 0 if not, without separators."
        )

    def instance(self, rng: Generator) -> Instance:
        weights = rng.integers(1, self.highest + 1, size=self.items)
        values = rng.integers(1, self.highest + 1, size=self.items)
        choices = _choices(self.items)
        if self.kind == "subset_sum":
            chosen = choices[int(rng.integers(1, len(choices) - 1))]
            facts: Facts = (int(chosen @ weights), tuple(weights.tolist()), ())
            return Instance(facts=facts, solution=tuple(chosen.tolist()))
        total = int(weights.sum())
        capacity = int(rng.integers(-(-total // 3), 2 * total // 3 + 1))
        facts = (capacity, tuple(weights.tolist()), tuple(values.tolist()))
        return Instance(facts=facts, solution=tuple(choices[int(np.argmax(_right(facts)))].tolist()))

    def puzzle(self, facts: Facts) -> Puzzle:
        limit, weights, values = _parts(facts)
        names = tuple(LETTERS[: self.items])
        variables = tuple(Variable(name=name, domain=(0, 1)) for name in names)
        if self.kind == "subset_sum":
            return Puzzle(variables=variables, clues=(SumIs(names, limit, weights, "sum"),))
        return Puzzle(
            variables=variables,
            clues=(SumAtMost(names, limit, weights, "capacity"),),
            objective=Objective(variables=names, coefficients=values, maximise=True),
        )

    def prompt(self, facts: Facts) -> str:
        limit, weights, values = _parts(facts)
        items = [f"{weight}/{value}" for weight, value in zip(weights, values, strict=True)] if values else weights
        return f"{limit}:{','.join(map(str, items))}>"

    def canonical(self, facts: Facts) -> str:
        limit, weights, values = _parts(facts)
        items = sorted(zip(weights, values, strict=True)) if values else [(weight,) for weight in sorted(weights)]
        return f"{self.kind}:{limit}:{','.join('/'.join(map(str, item)) for item in items)}"

    def measured(self, facts: Facts, effort: Effort) -> dict[str, int | float]:
        limit, weights, _ = _parts(facts)
        return {"solutions": int(_right(facts).sum()), "tightness": limit / sum(weights)}

    def floor(self, problem: Problem) -> float:
        right = _right(contents(problem)[0])
        sizes = _choices(self.items).sum(axis=1)
        return float((np.bincount(sizes, weights=right) / np.bincount(sizes)).max())

    def worked(self, puzzle: Puzzle, facts: Facts, solution: tuple[int, ...]) -> list[Step]:
        """The chosen items, one after the other, with weight and value so far."""
        _, weights, values = _parts(facts)
        steps, weight, value = [], 0, 0
        for place, chosen in enumerate(solution):
            if chosen:
                weight += weights[place]
                value += values[place] if values else 0
                result = f"{weight}/{value}" if values else f"{weight}"
                steps.append(Step(operation=LETTERS[place], result=result, text=f"{LETTERS[place]}:{result}"))
        return steps


def _parts(facts: Facts) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    limit, weights, values = facts
    return limit, weights, values


@lru_cache(maxsize=16)
def _choices(items: int) -> NDArray[np.int64]:
    """All choices, a row of 0 and 1 each."""
    return np.arange(2**items)[:, None] >> np.arange(items) & 1


def _right(facts: Facts) -> NDArray[np.bool_]:
    """Which of all choices are right."""
    limit, weights, values = _parts(facts)
    choices = _choices(len(weights))
    weight = choices @ np.array(weights)
    if not values:
        exact: NDArray[np.bool_] = weight == limit
        return exact
    value = np.where(weight <= limit, choices @ np.array(values), -1)
    best: NDArray[np.bool_] = value == value.max()
    return best


TESTBED: Final[type[Task]] = Knapsack
LEVELS: Final[dict[str, Task]] = {
    "easy": Knapsack(items=5, highest=20),
    "medium": Knapsack(items=8, highest=50),
    "hard": Knapsack(items=12, highest=99),
    "subset_sum": Knapsack(kind="subset_sum", items=6, highest=20),
    "subset_sum_hard": Knapsack(kind="subset_sum", items=10, highest=99),
}
