"""Countdown: reach a target from a few numbers with + - * / and parentheses.

Texts (white space between symbols is free, and means nothing):

==================  ==========================  =====================================================================
what                example                     grammar
==================  ==========================  =====================================================================
prompt              ``22:3,5,7>``               ``TARGET ":" NUMBER ("," NUMBER)* ">"``, numbers in the order drawn
expression          ``3*5+7``                   ``EXPR`` of arithmetic.py, with the task's operators
.. with working     ``3*5=15,15+7=22#3*5+7``    ``WORKING "#" EXPR``: one mark; only what follows it is read
chain               ``3*5=15,15+7=22``          ``LINE ("," LINE)*`` with ``LINE := VALUE OPERATOR VALUE "=" VALUE``
==================  ==========================  =====================================================================

A VALUE is written in one way: ``8``, or in parentheses and lowest terms ``(-2)``, ``(8/3)``, ``(-8/3)``. There is no
unary minus, no leading zero, no implicit multiplication, no operator but the task's. WORKING is free text.

An expression is right if its exact value is the target and it uses the numbers as the task demands. A chain is right
if each line takes two values that are still available (in either order) and states their exact result, which is
available from then on, and the last result is the target, with every number used and no other result left over. Both
must obey the task's rules on results (``intermediates``, ``largest``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import ClassVar, Final, Literal

from numpy.random import Generator

from testbeds import countdown_chains, countdown_search
from testbeds.arithmetic import OPERATORS, Numerals, shown
from testbeds.core import Problem, Step, Task, Trace, TraceStyle, Verdict
from testbeds.countdown_search import Rules
from testbeds.countdown_verify import MARK, Question, verify_chain, verify_expression
from testbeds.streams import stream

Form = Literal["expression", "chain"]
Intermediates = Literal["any", "positive"]

MOST_NUMBERS = 5  # 27,142 distinct expressions; six numbers have 793,002, too many to keep for every pattern of ties
MOST_CHAINED = 4  # chains of four numbers are counted in a millisecond, of five in a tenth of a second
LARGEST_LEXICON = 4096  # whole-number symbols; more rows than that would be most of a small model's weights
LARGEST_MAGNITUDE = 2**62  # numerators and denominators are 64-bit integers in the search
MOST_MULTISETS = {2: 20_000, 3: 10_000, 4: 5_000, 5: 500}  # by count of numbers: enumerated within a few seconds
PILOT_DRAWS = 500  # a task is refused if fewer than PILOT_HITS of these draws have a reachable target, 2 % ...
PILOT_HITS = 10
MOST_DRAWS = 4_000  # ... so that this many all fail with probability below 1e-30 at 2 %


@dataclass(frozen=True, slots=True, kw_only=True)
class CountdownCertificate:
    """What the verifier needs, and one right answer."""

    numbers: tuple[int, ...]
    """In ascending order."""
    target: int
    witness: str
    """A right expression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Countdown:
    """Numbers and a reachable target; the answer is an expression or a chain of steps.

    The numbers are drawn uniformly from ``values`` with replacement (again, while they reach nothing), then the target
    uniformly from the targets in range that these numbers reach. The key sorts the numbers and names the rules, not
    the form of the answer: the same puzzle asked for as an expression and as a chain is one problem. The family leaves
    out the rules, too: a puzzle under other operators is dealt to the same split, since one answer may serve both.
    """

    revision: ClassVar[int] = 1
    numbers: int = 3
    """How many numbers, 2 to 5."""
    operators: tuple[str, ...] = OPERATORS
    """Some of + - * /, in this order."""
    values: tuple[int, int] = (1, 10)
    """Lowest and highest number, both included."""
    target: tuple[int, int] = (1, 100)
    """Lowest and highest target, both included."""
    form: Form = "expression"
    """What the answer is."""
    numerals: Numerals = "digits"
    """A symbol for each digit, or for each whole number."""
    intermediates: Intermediates = "any"
    """``positive``: every result in a solution must be a positive whole number; ``any``: no such rule."""
    largest: int | None = None
    """Bound on the numerator and denominator of every result in a solution, in lowest terms; None for no bound."""
    exact_use: bool = True
    """Whether a solution uses every number exactly once; else at most once, and no target is one of its numbers."""

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_ranges(self)
        _check_lexicon(self)
        _check_solvable(self)

    @property
    def rules(self) -> Rules:
        """What a solution may do."""
        return Rules(
            operators=self.operators,
            positive=self.intermediates == "positive",
            largest=self.largest,
            exact_use=self.exact_use,
        )

    @property
    def magnitude(self) -> int:
        """The largest whole number that a prompt, a clean trace or an answer in lowest terms can contain."""
        return max(self.rules.magnitude(self.numbers, self.values[1]), self.values[1], self.target[1])

    @property
    def symbols(self) -> tuple[str, ...]:
        highest = 9 if self.numerals == "digits" else self.magnitude
        writes_brackets = self.form == "expression" or self.intermediates == "any"
        return (
            *(str(number) for number in range(highest + 1)),
            *self.operators,
            *(("(", ")") if writes_brackets else ()),
            *("=", ",", ":", ">"),
            *((MARK,) if self.form == "expression" else ()),
        )

    @property
    def capacity(self) -> int | None:
        return _capacity(self) if _is_walkable(self) else None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        low, high = self.values
        return [self._draw(tuple(row), rng) for row in rng.integers(low, high + 1, size=(count, self.numbers)).tolist()]

    def enumerate(self) -> Iterable[Problem] | None:
        return self._walk() if _is_walkable(self) else None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """A solution drawn uniformly from the distinct ones, with its steps; a chain is written out in every style."""
        if style.granularity == "composed":
            raise ValueError(
                "Countdown writes explicit and implicit traces, got granularity='composed': the steps of a tree do not"
                " fold into equal groups"
            )
        numbers, target = _puzzle(problem)
        places = countdown_search.positions(numbers, self.rules, target)
        if not places:
            raise ValueError(f"{problem.prompt!r} has no solution under the rules of {self}; demonstrate its own task")
        tree = countdown_search.solution(numbers, self.rules, places[int(rng.integers(len(places)))])
        is_written = self.form == "chain" or style.granularity == "explicit"
        steps = tuple(
            Step(operation=operation, result=result, text=f"{operation}={result}" if is_written else "")
            for operation, result in tree.lines()
        )
        working = ",".join(step.text for step in steps)
        if self.form == "chain":
            return Trace(steps=steps, text=working, answer=working)
        answer = tree.text()
        return Trace(steps=steps, text=f"{working}{MARK}{answer}" if is_written else answer, answer=answer)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the grammar at the top of this file.

        ``progress`` is 1 for a right answer; else 1/2 for an expression with the right numbers and a permitted value,
        and for a chain its right lines, counted up to the first wrong one, divided by the count of numbers.
        """
        numbers, target = _puzzle(problem)
        question = Question(numbers=numbers, target=target, rules=self.rules, numerals=self.numerals)
        judge = verify_chain if self.form == "chain" else verify_expression
        return judge(question, completion)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """Every right chain; None for expressions, which redundant parentheses make countless (see ``expressions``)."""
        numbers, target = _puzzle(problem)
        return countdown_chains.chains(numbers, self.rules, target) if self.form == "chain" else None

    def expressions(self, problem: Problem) -> Iterator[str]:
        """One right expression for each distinct solution, under the equivalence of countdown_search.py."""
        numbers, target = _puzzle(problem)
        return (tree.text() for tree in countdown_search.expressions(numbers, self.rules, target))

    def floor(self, problem: Problem) -> float:
        """Success probability of the best guess that sees the numbers but not the target: 1 / (reachable targets).

        Exact for ``generate``: an answer hits one target at most, and the target is uniform over those in range that
        the numbers reach.
        """
        numbers, _ = _puzzle(problem)
        reached = countdown_search.reachable(numbers, self.rules, *self.target)
        if not reached:
            raise ValueError(f"{problem.prompt!r} is no problem of {self}: its numbers reach no target in range")
        return 1.0 / len(reached)

    def _draw(self, numbers: tuple[int, ...], rng: Generator) -> Problem:
        low, high = self.values
        for _ in range(MOST_DRAWS):
            reached = countdown_search.reachable(numbers, self.rules, *self.target)
            if reached:
                return self._problem(numbers, *reached[int(rng.integers(len(reached)))])
            numbers = tuple(rng.integers(low, high + 1, size=self.numbers).tolist())
        raise ValueError(_unsolvable(self, hits=0, draws=MOST_DRAWS))

    def _walk(self) -> Iterator[Problem]:
        low, high = self.values
        for numbers in combinations_with_replacement(range(low, high + 1), self.numbers):
            for target, count in countdown_search.reachable(numbers, self.rules, *self.target):
                # In an order of its own, as drawn problems are: sorted prompts would be another distribution.
                shuffled = stream("countdown order", target, *numbers).permutation(numbers)
                yield self._problem(tuple(shuffled.tolist()), target, count)

    def _problem(self, numbers: tuple[int, ...], target: int, solutions: int) -> Problem:
        ordered = tuple(sorted(numbers))
        puzzle = f"{target}<-{','.join(map(str, ordered))}"
        features: dict[str, int | float] = {"numbers": self.numbers, "target": target, "solutions": solutions}
        if self.numbers <= MOST_CHAINED:
            features["chains"] = countdown_chains.chain_counts(ordered, self.rules, *self.target)[target]
        return Problem(
            prompt=f"{target}:{','.join(map(str, numbers))}>",
            key=f"countdown:{_rules_text(self.rules)};{puzzle}",
            family=f"countdown:{puzzle}",
            certificate=CountdownCertificate(
                numbers=ordered, target=target, witness=_witness(ordered, self.rules, target)
            ),
            features=features,
        )


def _puzzle(problem: Problem) -> tuple[tuple[int, ...], int]:
    """The numbers, ascending, and the target of a problem."""
    certificate = problem.certificate
    if not isinstance(certificate, CountdownCertificate):
        raise TypeError(
            f"Countdown reads problems with a CountdownCertificate, got {type(certificate).__name__} for the prompt"
            f" {shown(problem.prompt)}; ask the task that made the problem"
        )
    return certificate.numbers, certificate.target


@lru_cache(maxsize=countdown_search.CACHED_MULTISETS)
def _witness(numbers: tuple[int, ...], rules: Rules, target: int) -> str:
    """The first of the distinct solutions."""
    return next(countdown_search.expressions(numbers, rules, target)).text()


def _rules_text(rules: Rules) -> str:
    """The rules that change which answers are right, as the key names them."""
    return ";".join(
        (
            f"ops={''.join(rules.operators)}",
            *(() if rules.exact_use else ("use=some",)),
            *(("positive",) if rules.positive else ()),
            *(() if rules.largest is None else (f"largest={rules.largest}",)),
        )
    )


def _is_walkable(task: Countdown) -> bool:
    """Whether all multisets of numbers are few enough to visit in a few seconds."""
    low, high = task.values
    return comb(high - low + task.numbers, task.numbers) <= MOST_MULTISETS[task.numbers]


@lru_cache(maxsize=64)
def _capacity(task: Countdown) -> int:
    low, high = task.values
    multisets = combinations_with_replacement(range(low, high + 1), task.numbers)
    return sum(len(countdown_search.reachable(numbers, task.rules, *task.target)) for numbers in multisets)


# -------------------------------------------------------------------------------------------------- validation


def _check_choices(task: Countdown) -> None:
    for name, value, choices in (
        ("form", task.form, ("expression", "chain")),
        ("numerals", task.numerals, ("digits", "whole")),
        ("intermediates", task.intermediates, ("any", "positive")),
    ):
        if value not in choices:
            raise ValueError(f"Countdown.{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    if type(task.exact_use) is not bool:
        raise ValueError(f"Countdown.exact_use must be True or False, got {task.exact_use!r}")
    operators: object = task.operators
    in_order = tuple(
        operator for operator in OPERATORS if isinstance(operators, tuple | list | str) and operator in operators
    )
    if not in_order or operators != in_order:
        suggestion = f"; write {in_order}" if in_order else ""
        raise ValueError(
            f"Countdown.operators must be a tuple of one or more of + - * /, each once and in this order,"
            f" got {task.operators!r}{suggestion}"
        )


def _check_ranges(task: Countdown) -> None:
    if type(task.numbers) is not int or not 2 <= task.numbers <= MOST_NUMBERS:
        raise ValueError(f"Countdown.numbers must be a whole number from 2 to {MOST_NUMBERS}, got {task.numbers!r}")
    _check_range("values", task.values)
    _check_range("target", task.target)
    if task.largest is not None and (type(task.largest) is not int or task.largest < task.target[1]):
        raise ValueError(
            f"Countdown.largest bounds the last result too, so it must be None or at least the highest target"
            f" {task.target[1]}, got {task.largest!r}"
        )
    # Before a result is reduced and held against ``largest``, it is as large as without that bound.
    if replace(task.rules, largest=None, positive=False).magnitude(task.numbers, task.values[1]) >= LARGEST_MAGNITUDE:
        raise ValueError(
            f"Countdown computes in 64 bits, which {task.numbers} numbers up to {task.values[1]} may exceed;"
            f" lower values[1] or numbers"
        )


def _check_range(name: str, bounds: object) -> None:
    match bounds:
        case (int(low), int(high)) if isinstance(bounds, tuple) and 1 <= low <= high:
            return
    raise ValueError(f"Countdown.{name} must be a tuple (low, high) of whole numbers, 1 <= low <= high, got {bounds!r}")


def _check_lexicon(task: Countdown) -> None:
    if task.numerals == "whole" and task.magnitude > LARGEST_LEXICON:
        raise ValueError(
            f"Countdown.numerals='whole' needs a symbol for every number up to {task.magnitude}, at most"
            f" {LARGEST_LEXICON} are allowed; set numerals='digits', or a bound such as"
            f" largest={max(99, task.target[1])}, or lower values and target"
        )


@lru_cache(maxsize=256)
def _pilot(task: Countdown) -> tuple[int, int]:
    """(hits, draws): how many draws of numbers reach a target, until there are PILOT_HITS or PILOT_DRAWS draws."""
    low, high = task.values
    hits = 0
    for draws, row in enumerate(stream("countdown", "pilot").integers(low, high + 1, (PILOT_DRAWS, task.numbers)), 1):
        hits += bool(countdown_search.reachable(tuple(row.tolist()), task.rules, *task.target))
        if hits == PILOT_HITS:
            return hits, draws
    return hits, PILOT_DRAWS


def _check_solvable(task: Countdown) -> None:
    hits, draws = _pilot(task)
    if hits < PILOT_HITS:
        raise ValueError(_unsolvable(task, hits, draws))


def _unsolvable(task: Countdown, hits: int, draws: int) -> str:
    low, high = task.target
    return (
        f"Countdown: {hits} of {draws} draws of {task.numbers} numbers from {task.values[0]} to {task.values[1]} reach"
        f" a target from {low} to {high} with {' '.join(task.operators)}, too few to draw problems from; move or widen"
        f" target, change values, or allow more numbers, operators or intermediates"
    )


TESTBED: Final[type[Task]] = Countdown
LEVELS: Final[dict[str, Task]] = {
    "easy": Countdown(numbers=3, operators=("+", "-", "*"), values=(1, 9), target=(1, 60), intermediates="positive"),
    "medium": Countdown(numbers=3, values=(1, 20), target=(1, 100)),
    "hard": Countdown(numbers=4, values=(1, 20), target=(10, 100)),
}
