"""Hands of numbers with a fixed target: which of them are solvable, what there is to know of each, worked solutions.

Shared by the 24 game and by GeneralPoints, which differ in how a hand is dealt and shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, prod

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from testbeds.arithmetic import apply
from testbeds.core import Step, Trace, TraceStyle
from testbeds.countdown_search import Rules, positions
from testbeds.countdown_traces import SEARCH_SYMBOLS, search_steps
from testbeds.countdown_traces_kernel import OPERATIONS, Ints, find, rule_code
from testbeds.countdown_traces_states import (
    MOST_COUNTED,
    Branch,
    Puzzle,
    State,
    drawn_solution,
    expression_of,
)

MOST_HANDS = 20_000  # hands of a task: all are solved once, in a tenth of a second for 4 numbers, in 4 s for 6
MOST_STATES = 100_000_000  # of the trees of unsolvable hands, about ten seconds; 4 numbers never have as many
CACHED_HANDS = 1 << 15
PLAYOUTS = 1_000  # random plays that may spare the exact check at construction; one in 40 hits 24 with four cards
LARGE_HAND = 5  # numbers from which on a hand is costly to prove unsolvable ...
LUCKY_PLAYS = 5  # ... so that few lucky plays, of a target that few hands make, spare nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What there is to know of a solvable hand."""

    witness: str
    """A right expression."""
    solutions: int | None
    """Distinct solutions, under the equivalence of countdown_search.py; None for more than MOST_COUNTED numbers."""
    needs_fractions: bool
    """Whether every solution has a result that is no whole number."""
    positive_suffice: bool
    """Whether some solution has positive whole results only."""

    @property
    def features(self) -> dict[str, int | float]:
        """The facts as measured difficulty."""
        counted = {} if self.solutions is None else {"solutions": self.solutions}
        return {
            **counted,
            "needs_fractions": int(self.needs_fractions),
            "positive_suffice": int(self.positive_suffice),
        }


def are_solvable(hands: Ints, target: int, rules: Rules) -> NDArray[np.bool_]:
    """For each row of natural numbers, whether it makes the target: exact.

    Raises:
        ValueError: where so many hands do not that exhausting the trees of all of them would take minutes or hours.
    """
    size = hands.shape[1]
    tree = prod(comb(left, 2) * len(OPERATIONS) for left in range(3, size + 1))
    at_once = max(1, MOST_STATES // 10 // tree)
    is_solvable = np.zeros(len(hands), np.bool_)
    exhausted = 0
    for first in range(0, len(hands), at_once):
        some = np.ascontiguousarray(hands[first : first + at_once])
        found = np.equal(find(some, np.ones_like(some), target, rule_code(rules))[:, 0], 1)
        is_solvable[first : first + at_once] = found
        exhausted += int(np.count_nonzero(~found))
        if exhausted * tree > MOST_STATES:
            raise ValueError(
                f"{exhausted} of {first + len(some)} hands of {size} numbers do not make {target}, and to prove it for"
                f" all {len(hands)} takes too long; take a target that more hands make, or fewer numbers"
            )
    return is_solvable


@lru_cache(maxsize=CACHED_HANDS)
def facts(numbers: tuple[int, ...], target: int, rules: Rules) -> Facts:
    """The facts of a solvable hand, ascending."""
    path = _path(numbers, target, rule_code(rules))
    if path is None:
        raise ValueError(f"{numbers} do not make {target} under {rules}; ask for the facts of a solvable hand")
    positive = Rules(operators=rules.operators, positive=True, largest=rules.largest, exact_use=rules.exact_use)
    return Facts(
        witness=expression_of(_branches(path), tuple((number, 1) for number in numbers)),
        solutions=len(positions(numbers, rules, target)) if len(numbers) <= MOST_COUNTED else None,
        needs_fractions=_path(numbers, target, rule_code(rules, whole=True)) is None,
        positive_suffice=_path(numbers, target, rule_code(positive)) is not None,
    )


def _path(numbers: tuple[int, ...], target: int, code: Ints) -> list[int] | None:
    """The steps of some solution as ``find`` gives them; None where there is none."""
    tops = np.array([numbers], np.int64)
    is_found, *path = find(tops, np.ones_like(tops), target, code)[0].tolist()
    return path if is_found else None


def _branches(path: list[int]) -> list[Branch]:
    """The steps of a path; the states after them are not looked at, and left empty."""
    steps = []
    nothing: State = ()
    for i, j, number in zip(path[::3], path[1::3], path[2::3], strict=True):
        if number >= 0:
            operator, is_swapped = OPERATIONS[number]
            steps.append(Branch(*((j, operator, i) if is_swapped else (i, operator, j)), nothing, nothing))
    return steps


def has_lucky_play(deal: Callable[[], tuple[int, ...]], target: int, rules: Rules, rng: Generator) -> bool:
    """Whether one of PLAYOUTS random plays of dealt hands makes the target; for large hands, LUCKY_PLAYS of them.

    True proves that some hand is solvable, without compiling anything; False proves nothing.
    """
    lucky = 0
    for _ in range(PLAYOUTS):
        hand = deal()
        pair = _play([Fraction(number) for number in hand], rules, rng)
        if pair is not None:
            (a, b), operators = pair, rules.operators
            lucky += any(target in (apply(operator, a, b), apply(operator, b, a)) for operator in operators)
            if lucky == (LUCKY_PLAYS if len(hand) >= LARGE_HAND else 1):
                return True
    return False


def _play(values: list[Fraction], rules: Rules, rng: Generator) -> tuple[Fraction, Fraction] | None:
    """The two values that random operations leave; None where one of them is not permitted."""
    while len(values) > 2:
        left, right = values.pop(int(rng.integers(len(values)))), values.pop(int(rng.integers(len(values))))
        result = apply(rules.operators[int(rng.integers(len(rules.operators)))], left, right)
        if result is None or not rules.permit(result):
            return None
        values.append(result)
    return values[0], values[1]


def worked(puzzle: Puzzle, opening: tuple[Step, ...], style: TraceStyle, rng: Generator) -> Trace:
    """A solution drawn uniformly from the distinct ones, or a search for one, after some steps that come first.

    Every order can be written, for the working is free text; the steps of a tree do not fold into equal groups.
    """
    if style.granularity == "composed":
        raise ValueError(
            "hands of numbers are solved in explicit and implicit traces, got granularity='composed': the steps of a"
            " tree do not fold into equal groups"
        )
    if style.search != "optimal":
        steps, answer = search_steps(puzzle, style, rng)
        return Trace.worked((*opening, *steps), answer, separator=SEARCH_SYMBOLS[0])
    tree = drawn_solution(puzzle, rng)
    lines = [Step(operation=line, result=result, text=f"{line}={result}") for line, result in tree.lines()]
    ordered = _in_order([*opening, *lines], style, rng)
    if style.granularity == "implicit":
        ordered = [Step(operation=step.operation, result=step.result, text="") for step in ordered]
    return Trace.worked(tuple(ordered), tree.text(), separator=",")


def _in_order(steps: list[Step], style: TraceStyle, rng: Generator) -> list[Step]:
    match style.order:
        case "forward":
            return steps
        case "backward":
            return steps[::-1]
        case "shuffled":
            return [steps[place] for place in rng.permutation(len(steps)).tolist()]
