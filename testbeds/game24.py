"""The 24 game: make 24 from a hand of numbers, each used once, with + - * / and parentheses.

Texts (white space between symbols is free, and means nothing):

==================  ===================================  ============================================================
what                example                              grammar
==================  ===================================  ============================================================
prompt              ``24:3,8,3,8>``                      ``TARGET ":" NUMBER ("," NUMBER)* ">"``, in the order drawn
answer              ``8/(3-8/3)``                        ``EXPR`` of arithmetic.py, with the task's operators
.. with working     ``8/3=(8/3),3-(8/3)=(1/3),           ``WORKING "#" EXPR``: one mark; only what follows it is
                    8/(1/3)=24#8/(3-8/3)``               read, and the working is free text
.. with a search    see countdown_traces.py
==================  ===================================  ============================================================

An answer is right if its exact value is the target and it uses each number of the hand exactly once. It is Countdown
with one target, and shares Countdown's arithmetic, verifier, traces and families: a hand and target that a Countdown
suite trains on is never in a test split of this game under the same splits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import ClassVar, Final, Literal

import numpy as np
from numpy.random import Generator

from testbeds import countdown_search
from testbeds.arithmetic import OPERATORS, shown
from testbeds.core import ANSWER_MARK, Problem, Task, Trace, TraceStyle, Verdict
from testbeds.countdown_search import Rules
from testbeds.countdown_traces import SEARCH_SYMBOLS
from testbeds.countdown_traces_kernel import Ints
from testbeds.countdown_traces_states import Puzzle
from testbeds.countdown_verify import Question, verify_expression
from testbeds.game24_hands import MOST_HANDS, are_solvable, facts, has_lucky_play, worked
from testbeds.streams import stream

Intermediates = Literal["any", "positive"]

LARGEST_MAGNITUDE = 2**62  # numerators and denominators are 64-bit integers in the search


@dataclass(frozen=True, slots=True, kw_only=True)
class Game24Certificate:
    """What the verifier needs, and one right answer."""

    numbers: tuple[int, ...]
    """In ascending order."""
    dealt: tuple[int, ...]
    """In the order of the prompt."""
    target: int
    witness: str
    """A right expression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Game24:
    """A hand of numbers that makes the target.

    Hands are drawn uniformly from ``values`` with replacement, conditional on being solvable. From 1 to 13, 1,362 of
    1,820 hands of four make 24; 16 of these need a fraction. The key sorts the numbers and names the rules.

    Floor: the best constant answer, blind to the hand. An expression solves one hand only, so it is the probability
    of the likeliest hand, exactly.
    """

    revision: ClassVar[int] = 1
    key_note: ClassVar[str] = (
        "a problem is its multiset of numbers, the target and the rules; splits are dealt by numbers and target alone,"
        " together with Countdown's puzzles"
    )

    numbers: int = 4
    """How many numbers a hand has, 3 to 6."""
    values: tuple[int, int] = (1, 13)
    """Lowest and highest number, both included."""
    target: int = 24
    """What is to be made."""
    operators: tuple[str, ...] = OPERATORS
    """Some of + - * /, in this order."""
    intermediates: Intermediates = "any"
    """``positive``: every result in a solution must be a positive whole number; ``any``: no such rule."""

    def __post_init__(self) -> None:
        _check_fields(self)
        _check_size(self)
        if not _is_solvable(self):
            raise ValueError(
                f"Game24: no hand of {self.numbers} numbers from {self.values[0]} to {self.values[1]} makes"
                f" {self.target} with {' '.join(self.operators)}; change values, target or operators"
            )

    @property
    def rules(self) -> Rules:
        """What a solution may do."""
        return Rules(operators=self.operators, positive=self.intermediates == "positive", largest=None, exact_use=True)

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*"0123456789", *self.operators, *"()=,:>", ANSWER_MARK, *SEARCH_SYMBOLS)

    @property
    def instructions(self) -> str:
        whole = " Every intermediate result must be a positive whole number." if self.rules.positive else ""
        return (
            f"You play the 24 game with the target {self.target}. The prompt shows the target, a colon, and a hand of"
            f" {self.numbers} numbers separated by commas; it ends with >. Combine the numbers to exactly"
            f" {self.target}. Use each number exactly once, the operators {' '.join(self.operators)} and"
            f" parentheses, and nothing else; numbers must not be joined to longer ones and nothing is rounded.{whole}"
            f" Answer with one expression, such as 8/(3-8/3) for 24:3,3,8,8>. You may write your working before it;"
            f" then put a single {ANSWER_MARK} between the working and the expression."
        )

    @property
    def capacity(self) -> int | None:
        return len(_table(self).hands)

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        table = _table(self)
        chosen = np.searchsorted(table.cumulative, rng.integers(table.cumulative[-1], size=count), side="right")
        return [self._problem(tuple(row)) for row in rng.permuted(table.hands[chosen], axis=1).tolist()]

    def enumerate(self) -> Iterable[Problem] | None:
        return self._walk()

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """A solution drawn uniformly from the distinct ones, its steps in any order, or a search for one."""
        hand = _hand(problem)
        puzzle = Puzzle(numbers=hand.dealt, target=hand.target, rules=self.rules, witness=hand.witness)
        return worked(puzzle, (), style, rng)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the grammar at the top; progress is 1/2 for the right numbers with a wrong value."""
        hand = _hand(problem)
        question = Question(numbers=hand.numbers, target=hand.target, rules=self.rules, numerals="digits")
        return verify_expression(question, completion)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """None: working and redundant parentheses make them countless (see ``answers``)."""
        return None

    def answers(self, problem: Problem) -> Iterator[str]:
        """One right expression for each distinct solution, under the equivalence of countdown_search.py."""
        hand = _hand(problem)
        return (tree.text() for tree in countdown_search.expressions(hand.numbers, self.rules, hand.target))

    def floor(self, problem: Problem) -> float:
        """Success probability of the best answer that does not look at the hand."""
        return _table(self).likeliest

    def _walk(self) -> Iterator[Problem]:
        for hand in _table(self).hands.tolist():
            # In an order of its own, as drawn hands are: sorted prompts would be another distribution.
            shuffled = stream("game24 order", self.target, *hand).permutation(hand)
            yield self._problem(tuple(shuffled.tolist()))

    def _problem(self, dealt: tuple[int, ...]) -> Problem:
        numbers = tuple(sorted(dealt))
        known = facts(numbers, self.target, self.rules)
        puzzle = f"{self.target}<-{','.join(map(str, numbers))}"
        rules = f"ops={''.join(self.operators)}{';positive' if self.rules.positive else ''}"
        return Problem(
            prompt=f"{self.target}:{','.join(map(str, dealt))}>",
            key=f"game24:{rules};{puzzle}",
            family=f"countdown:{puzzle}",
            certificate=Game24Certificate(numbers=numbers, dealt=dealt, target=self.target, witness=known.witness),
            features=known.features,
        )


def _hand(problem: Problem) -> Game24Certificate:
    certificate = problem.certificate
    if not isinstance(certificate, Game24Certificate):
        raise TypeError(
            f"Game24 reads problems with a Game24Certificate, got {type(certificate).__name__} for the prompt"
            f" {shown(problem.prompt)}; ask the task that made the problem"
        )
    return certificate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """All solvable hands of a task."""

    hands: Ints
    """One ascending row each."""
    cumulative: Ints
    """Running sum of the number of orders in which each hand can be drawn."""
    likeliest: float
    """Probability of the likeliest hand."""


@lru_cache(maxsize=8)  # the tasks that one process works with
def _table(task: Game24) -> _Table:
    hands = _hands(task)
    hands = hands[are_solvable(hands, task.target, task.rules)]
    orders = _orders(hands)
    return _Table(hands=hands, cumulative=orders.cumsum(), likeliest=int(orders.max()) / int(orders.sum()))


def _hands(task: Game24) -> Ints:
    low, high = task.values
    return np.array(list(combinations_with_replacement(range(low, high + 1), task.numbers)), np.int64)


def _orders(hands: Ints) -> Ints:
    """In how many orders each ascending row can be drawn: n! over the product of the factorials of its ties."""
    orders = np.ones(len(hands), np.int64)
    run = np.ones(len(hands), np.int64)
    for place in range(1, hands.shape[1]):
        run = np.where(hands[:, place] == hands[:, place - 1], run + 1, 1)
        orders = orders * (place + 1) // run
    return orders


# -------------------------------------------------------------------------------------------------- validation


def _check_fields(task: Game24) -> None:
    if type(task.numbers) is not int or not 3 <= task.numbers <= 6:
        raise ValueError(f"Game24.numbers must be a whole number from 3 to 6, got {task.numbers!r}")
    values: object = task.values
    match values:
        case (int(low), int(high)) if isinstance(values, tuple) and bool not in map(type, values) and 1 <= low <= high:
            pass
        case _:
            raise ValueError(
                f"Game24.values must be a tuple (low, high) of whole numbers, 1 <= low <= high, got {values!r}"
            )
    if type(task.target) is not int or task.target < 1:
        raise ValueError(f"Game24.target must be a whole number of at least 1, got {task.target!r}")
    operators: object = task.operators
    if not isinstance(operators, tuple) or not operators or operators != tuple(o for o in OPERATORS if o in operators):
        raise ValueError(
            f"Game24.operators must be a tuple of one or more of + - * /, each once and in this order, got"
            f" {operators!r}"
        )
    if task.intermediates not in ("any", "positive"):
        raise ValueError(f"Game24.intermediates must be 'any' or 'positive', got {task.intermediates!r}")


def _check_size(task: Game24) -> None:
    low, high = task.values
    size = comb(high - low + task.numbers, task.numbers)
    if size > MOST_HANDS:
        raise ValueError(
            f"Game24 solves all hands once, at most {MOST_HANDS}; {task.numbers} numbers from {low} to {high} have"
            f" {size}; narrow values, or use Countdown with target=({task.target}, {task.target})"
        )
    if task.rules.magnitude(task.numbers, high) >= LARGEST_MAGNITUDE:
        raise ValueError(
            f"Game24 computes in 64 bits, which {task.numbers} numbers up to {high} may exceed; lower values[1]"
        )


@lru_cache(maxsize=256)
def _is_solvable(task: Game24) -> bool:
    """Whether there is a solvable hand: a lucky play says so at once, else all hands are tried."""
    low, high = task.values
    if task.target > task.rules.magnitude(task.numbers, high):
        return False
    rng = stream("game24", "pilot")
    deal = lambda: tuple(rng.integers(low, high + 1, task.numbers).tolist())  # noqa: E731
    if has_lucky_play(deal, task.target, task.rules, rng):
        return True
    return bool(are_solvable(_hands(task), task.target, task.rules).any())


TESTBED: Final[type[Task]] = Game24
LEVELS: Final[dict[str, Task]] = {
    "easy": Game24(values=(1, 10)),
    "medium": Game24(),
    "hard": Game24(numbers=5, values=(1, 9)),
    "positive": Game24(intermediates="positive"),
    "target_36": Game24(target=36),
}
