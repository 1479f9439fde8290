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

Where to look, from the surface down (``_kernel(s)``, ``_outline`` and ``_values`` hold compiled loops):

=========================  ==========================================================================================
countdown_checks, _pilot   which declarations make sense; whether problems can be drawn from one at all
countdown_texts            the instructions for a reader
countdown_verify           the verdict on an answer
countdown_draws            a target for each row of numbers, and the floor
countdown_search           values and distinct solutions of up to six numbers, the equivalence that tells them apart
.. _forms, _kernels        the table of all expressions of a pattern of ties, and the loops that evaluate it
.. _derivations            the same where rules on results make the order of operations matter
countdown_many, _values    targets and one solution of seven or eight numbers, by meeting in the middle
countdown_trees, _outline  a solution as a tree, and how it is written: steps, folded steps, expression
countdown_chains, _kernel  right chains, listed and counted (countdown_chain_kernel)
countdown_traces, ..       demonstrations that show a search, with their states and kernel
=========================  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import ClassVar, Final, Literal, cast

from numpy.random import Generator

from testbeds import countdown_chains, countdown_many, countdown_search
from testbeds.arithmetic import OPERATORS, Numerals, shown
from testbeds.core import ANSWER_MARK, Problem, Step, Task, Trace, TraceStyle, Verdict
from testbeds.countdown_checks import check_choices, check_feasible, check_lexicon, check_ranges
from testbeds.countdown_draws import Drawn, counts_chains, draw, draw_one, floor_of, is_counted, reached_targets
from testbeds.countdown_pilot import check_solvable, unsolvable
from testbeds.countdown_search import Rules
from testbeds.countdown_texts import instructions
from testbeds.countdown_traces import SEARCH_SYMBOLS, search_trace
from testbeds.countdown_trees import Outline, folded, written_out
from testbeds.countdown_verify import Question, verify_chain, verify_expression
from testbeds.streams import stream

Form = Literal["expression", "chain"]
Intermediates = Literal["any", "positive"]
Targets = Literal["uniform", "stratified"]

MOST_MULTISETS = {2: 20_000, 3: 20_000, 4: 10_000, 5: 2_000, 6: 200}  # by count of numbers: walked within seconds
MOST_ROUNDS = 4_000  # at 2 %, the least share that a pilot passes, all fail with probability below 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class CountdownCertificate:
    """What the verifier needs, and one right answer."""

    numbers: tuple[int, ...]
    """In ascending order."""
    target: int
    witness: str
    """A right expression."""
    places: tuple[int, ...] = ()
    """Where the distinct solutions stand among all expressions under ``rules``; empty where they are too many."""
    rules: str = ""
    """The rules under which the places hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Countdown:
    """Numbers and a reachable target; the answer is an expression or a chain of steps.

    The numbers are drawn uniformly from ``values`` with replacement (again, while they reach nothing), then the target
    from those in range that these numbers reach, as ``targets`` says. The key sorts the numbers and names the rules,
    not the form of the answer: the same puzzle asked for as an expression and as a chain is one problem. The family
    leaves out the rules, too: a puzzle under other operators is dealt to the same split, since one answer may serve
    both.

    Features: ``numbers``, ``target``; ``solutions``, the count of distinct solutions, for up to six numbers, or up to
    five where ``largest`` is set, or - or / stand without + or *; for ``form="chain"`` with up to four numbers
    ``chains``, the count of right answers. Beyond, solutions are too many to count: a demonstration is then found as
    countdown_many.py says, which is no uniform draw; and numbers for which its bounded search leaves a target
    undecided are drawn again.

    The floor is blind to the target: it is the success probability of the best guess that sees the numbers.
    """

    key_note: ClassVar[str] = (
        "the same numbers in any order, target and rules; families (by which splits are cut) leave out the rules"
    )
    revision: ClassVar[int] = 2
    numbers: int = 3
    """How many numbers, 2 to 8."""
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

    targets: Targets = "uniform"
    """``uniform``: over the reachable targets in range; ``stratified``: first uniformly a stratum of the number of
    distinct solutions (1, 2-3, 4-7, 8-15, ...) among those that the reachable targets occupy, then a target in it."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_ranges(self)
        check_feasible(self)
        check_lexicon(self)
        check_solvable(self)

    @property
    def rules(self) -> Rules:
        """What a solution may do."""
        return _ruling(self.operators, self.intermediates, self.largest, self.exact_use)[0]

    @property
    def instructions(self) -> str:
        return instructions(self)

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
            *((ANSWER_MARK, *SEARCH_SYMBOLS) if self.form == "expression" else ()),
        )

    @property
    def capacity(self) -> int | None:
        return _capacity(self) if _is_walkable(self) else None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        low, high = self.values
        rows = rng.integers(low, high + 1, size=(count, self.numbers))
        drawn = draw(self, rows, rng)
        missing = [place for place, one in enumerate(drawn) if one is None]
        for _ in range(MOST_ROUNDS):
            if not missing:
                return _problems(self, drawn)
            rows[missing] = rng.integers(low, high + 1, size=(len(missing), self.numbers))
            for place, one in zip(missing, draw(self, rows[missing], rng), strict=True):
                drawn[place] = one
            missing = [place for place in missing if drawn[place] is None]
        raise ValueError(unsolvable(self, hits=0, draws=MOST_ROUNDS))

    def enumerate(self) -> Iterable[Problem] | None:
        return self._walk() if _is_walkable(self) else None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """A solution with its steps, drawn uniformly from the distinct ones where they are counted.

        A chain is its own answer: it is written out, forward, in explicit and in implicit styles. An expression may
        have any working: its steps one by one or folded (see ``countdown_trees.folded``), in any order, or a search.
        """
        _check_style(self, style)
        if style.search != "optimal":
            return search_trace(self, problem, style, rng)
        answer, lines = self._worked(problem, style, rng)
        if style.order == "backward":
            lines.reverse()
        elif style.order == "shuffled":
            lines = [lines[place] for place in rng.permutation(len(lines)).tolist()]
        is_chain = self.form == "chain"
        is_written = is_chain or style.granularity != "implicit"
        steps = tuple(
            [
                Step(operation=operation, result=result, text=line if is_written else "")
                for line in lines
                for operation, _, result in [line.rpartition("=")]
            ]
        )
        working = ",".join(lines)
        if is_chain:
            return Trace(steps=steps, text=working, answer=working, separator=",", mark=None)
        text = f"{working}{ANSWER_MARK}{answer}" if is_written else answer
        return Trace(steps=steps, text=text, answer=answer, separator=",", mark=ANSWER_MARK)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the grammar at the top of this file.

        ``progress`` is 1 for a right answer; else 1/2 for an expression with the right numbers and a permitted value,
        and for a chain its right lines, counted up to the first wrong one, divided by the count of numbers.
        """
        numbers, target = _puzzle(problem)
        question = Question(numbers, target, self.rules, self.numerals)
        judge = verify_chain if self.form == "chain" else verify_expression
        return judge(question, completion)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """Every right chain; None for expressions, which redundant parentheses make countless (see ``expressions``)."""
        numbers, target = _puzzle(problem)
        return countdown_chains.chains(numbers, self.rules, target) if self.form == "chain" else None

    def expressions(self, problem: Problem) -> Iterator[str]:
        """One right expression for each distinct solution, under the equivalence of countdown_search.py.

        Raises:
            ValueError: where distinct solutions are not counted.
        """
        numbers, target = _puzzle(problem)
        return (tree.text() for tree in countdown_search.expressions(numbers, self.rules, target))

    def floor(self, problem: Problem) -> float:
        """Success probability of the best guess that sees the numbers but not the target; exact for ``generate``.

        With uniform targets it is 1 / (reachable targets in range).
        """
        numbers, _ = _puzzle(problem)
        floor = floor_of(self, numbers)
        if floor is None:
            raise ValueError(f"{problem.prompt!r} is no problem of {self}: its numbers reach no target in range")
        return floor

    def _worked(self, problem: Problem, style: TraceStyle, rng: Generator) -> tuple[str, list[str]]:
        """The solution that a demonstration writes: its expression, and its steps in order, one by one or folded."""
        numbers, target = _puzzle(problem)
        rules, rules_text = _ruling(self.operators, self.intermediates, self.largest, self.exact_use)
        facts = cast(CountdownCertificate, problem.certificate)
        outline: Outline | None = None
        places = facts.places if facts.rules == rules_text else ()
        if places or is_counted(self):
            places = places or countdown_search.positions(numbers, rules, target)
            if places:
                place = places[int(rng.random() * len(places))] if len(places) > 1 else places[0]
                if style.granularity != "composed":
                    return countdown_search.worked_at(numbers, rules, place)
                outline = countdown_search.outline_at(numbers, rules, place)
        else:
            outline = countdown_many.solution_from(countdown_many.listing(numbers, rules), target, rng)
        if outline is None:
            raise ValueError(f"{problem.prompt!r} has no solution under the rules of {self}; demonstrate its own task")
        answer, lines = written_out(outline)
        if style.granularity == "composed":
            lines = [f"{operation}={result}" for operation, result in folded(outline, style.group)]
        return answer, lines

    def _walk(self) -> Iterator[Problem]:
        low, high = self.values
        for numbers in combinations_with_replacement(range(low, high + 1), self.numbers):
            for target, count in reached_targets(self, numbers):
                # In an order of its own, as drawn problems are: sorted prompts would be another distribution.
                shuffled = stream("countdown order", target, *numbers).permutation(numbers)
                yield self._problem(draw_one(self, tuple(shuffled.tolist()), target, count))

    def _problem(self, drawn: Drawn) -> Problem:
        return _problems(self, [drawn])[0]


def _problems(task: Countdown, drawn: list[Drawn | None]) -> list[Problem]:
    """The problems of what was drawn."""
    _, rules = _ruling(task.operators, task.intermediates, task.largest, task.exact_use)
    head, counted, chained, size = f"countdown:{rules};", is_counted(task), counts_chains(task), task.numbers
    listed = ",".join(["%d"] * size)
    prompt, puzzle = f"%d:{listed}>", f"%d<-{listed}"  # filled in at a third of the cost of joining
    made = []
    for one in drawn:
        if one is None:
            continue
        numbers, target, witness, solutions, places, chains = one
        ordered = tuple(sorted(numbers))
        name = puzzle % (target, *ordered)
        features: dict[str, int | float] = {"numbers": size, "target": target}
        if counted:
            features["solutions"] = solutions
        if chained:
            features["chains"] = chains
        made.append(
            Problem(
                prompt=prompt % (target, *numbers),
                key=head + name,
                family="countdown:" + name,
                certificate=CountdownCertificate(
                    numbers=ordered, target=target, witness=witness, places=places, rules=rules
                ),
                features=features,
            )
        )
    return made


def _puzzle(problem: Problem) -> tuple[tuple[int, ...], int]:
    """The numbers, ascending, and the target of a problem."""
    certificate = problem.certificate
    if not isinstance(certificate, CountdownCertificate):
        raise TypeError(
            f"Countdown reads problems with a CountdownCertificate, got {type(certificate).__name__} for the prompt"
            f" {shown(problem.prompt)}; ask the task that made the problem"
        )
    return certificate.numbers, certificate.target


@lru_cache(maxsize=256)
def _ruling(
    operators: tuple[str, ...],
    intermediates: Intermediates,
    largest: int | None,
    exact_use: bool,  # noqa: FBT001 (a field's value)
) -> tuple[Rules, str]:
    """The rules that change which answers are right, and how the key names them."""
    positive = intermediates == "positive"
    rules = Rules(operators=operators, positive=positive, largest=largest, exact_use=exact_use)
    named = (
        f"ops={''.join(operators)}",
        *(() if exact_use else ("use=some",)),
        *(("positive",) if positive else ()),
        *(() if largest is None else (f"largest={largest}",)),
    )
    return rules, ";".join(named)


def _check_style(task: Countdown, style: TraceStyle) -> None:
    """Refuses the styles that a chain cannot have."""
    if task.form == "chain" and (
        style.granularity == "composed" or style.order != "forward" or style.search != "optimal"
    ):
        raise ValueError(
            f"the steps of a chain are its answer, so Countdown(form='chain') writes them one by one, forward and"
            f" without dead ends, got the style {style.name!r}; ask for form='expression'"
        )


def _is_walkable(task: Countdown) -> bool:
    """Whether all multisets of numbers are few enough to visit in a few seconds."""
    low, high = task.values
    return comb(high - low + task.numbers, task.numbers) <= MOST_MULTISETS.get(task.numbers, 0) and is_counted(task)


@lru_cache(maxsize=64)
def _capacity(task: Countdown) -> int:
    low, high = task.values
    multisets = combinations_with_replacement(range(low, high + 1), task.numbers)
    return sum(len(reached_targets(task, numbers)) for numbers in multisets)


TESTBED: Final[type[Task]] = Countdown
LEVELS: Final[dict[str, Task]] = {
    "easy": Countdown(numbers=3, operators=("+", "-", "*"), values=(1, 9), target=(1, 60), intermediates="positive"),
    "medium": Countdown(numbers=3, values=(1, 20), target=(1, 100)),
    "hard": Countdown(numbers=4, values=(1, 20), target=(10, 100)),
    "chain": Countdown(numbers=3, values=(1, 20), target=(1, 100), form="chain"),
    "classic": Countdown(numbers=6, values=(1, 10), target=(100, 999), intermediates="positive", exact_use=False),
    "many": Countdown(numbers=7, values=(1, 10), target=(1, 100), intermediates="positive"),
    "stratified": Countdown(numbers=4, values=(1, 20), target=(1, 100), targets="stratified"),
}
