"""What a family of puzzles need not write itself: generation, verdicts, demonstrations and features, from its puzzles.

A family is one file, testbeds/smt/NAME.py, that ends with ``TESTBED`` and ``LEVELS``; the command line, the gallery and
the contract tests then find it. tests/testbeds/example_family.py is a complete one of 70 lines. It has a frozen
dataclass whose fields are the difficulty, made on ``Family``, which says

``instance(rng)``    the facts that are drawn for one puzzle, as nested tuples of numbers and words, with a solution
``puzzle(facts)``    the puzzle that they stand for, as a value of the language
``prompt(facts)``    how it is told
``lexicon``          the symbols of its prompts, names, words and labels, such as "row", digits aside
``rules``            in English: how to read the prompt, and what is asked

and, where the defaults are not what it wants, ``canonical(facts)`` (what counts as the same puzzle),
``engine(facts)`` (one search engine for all its puzzles instead of one for each), ``measured(facts)`` (its own
features) and ``width`` (below).

Answers (white space is free; ``WORKING #`` may come before, WORKING being free text):

=============  ==================================  ==================================================================
width          example                             grammar
=============  ==================================  ==================================================================
0              ``a=1,b=3,c=2``                     ``NAME "=" WORD ("," NAME "=" WORD)*``: each variable once, any order
2              ``12/21`` or ``1,12/12,1``          ``ROW ("/" ROW)*``, the values in the order of the variables, so many
                                                   a row; commas between them unless every word is one character
=============  ==================================  ==================================================================

Working: steps, joined by ``;``. ``row1:a1!2!3`` says that by row1 the variable a1 is neither 2 nor 3; ``row1:a1=4``
that it must be 4; ``?a1=4`` is a guess; ``row1:a1!`` that by row1 no value is left for a1, and ``row1!`` that row1
cannot be met: then the latest guess was wrong, and the next step is another guess for its variable, or for an earlier
one. A search is written without the losses that settle no variable. Where there is an objective, a search looks for a
solution as good as the best, and ``best`` stands for that wish as a constraint.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, ClassVar, Final

from numpy.random import Generator

from testbeds.arithmetic import shown
from testbeds.core import ANSWER_MARK, Problem, Step, Trace, TraceStyle, Verdict
from testbeds.smt.answers import Flaw, Form, read, write
from testbeds.smt.deduction import BOUND, HEURISTICS, Move, Walker
from testbeds.smt.language import Puzzle, violation
from testbeds.smt.model import Integers
from testbeds.smt.search import Effort, Engine
from testbeds.smt.working import arranged, check_style

Facts = tuple[Any, ...]  # of numbers, words and tuples of them; each family knows the shape of its own

DIGITS: Final = tuple("0123456789")
WORKING_SYMBOLS: Final = (":", ";", "!", "?", "=", ",", "/", ANSWER_MARK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """What was drawn."""

    facts: Facts
    """All that this puzzle has of its own: numbers, words and tuples of them."""
    solution: tuple[int, ...]
    """A right answer, as values in the order of the variables; a best one where there is an objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PuzzleCertificate:
    """What the verifier needs, and one right answer."""

    facts: Facts
    solution: tuple[int, ...]


class Family(ABC):
    """The base of the families: all that follows from their puzzles.

    Unless a family says otherwise, the floor is 1 / (size of the product of the domains): blind to all constraints.
    """

    __slots__ = ()
    revision: ClassVar[int] = 1
    name: ClassVar[str]
    """The testbed's name, which begins its keys."""

    @abstractmethod
    def instance(self, rng: Generator) -> Instance:
        """One draw."""

    @abstractmethod
    def puzzle(self, facts: Facts) -> Puzzle:
        """The puzzle that the facts stand for; a pure function of them and of the family."""

    @abstractmethod
    def prompt(self, facts: Facts) -> str:
        """How the puzzle is told, in symbols of the lexicon."""

    @property
    @abstractmethod
    def lexicon(self) -> tuple[str, ...]:
        """Symbols beyond digits and those of the working."""

    @property
    @abstractmethod
    def rules(self) -> str:
        """In English: how to read the prompt, and what is asked."""

    @property
    def width(self) -> int:
        """Values in a row of the answer; 0 for an answer by names."""
        return 0

    def canonical(self, facts: Facts) -> str:
        """The puzzle under its symmetries, as text: equal for puzzles that count as one."""
        return "".join(self.prompt(facts).split())

    def engine(self, facts: Facts) -> tuple[Engine, Integers]:
        """The search made ready for this puzzle, and which of its rows count."""
        return _engine(self, facts)

    def measured(self, facts: Facts, effort: Effort) -> dict[str, int | float]:
        """Features of the family's own; the same names for each of its puzzles."""
        return {}

    # ------------------------------------------------------------------------------------- what follows from these

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*DIGITS, *self.lexicon, *WORKING_SYMBOLS)))

    @property
    def instructions(self) -> str:
        if self.width:
            form = (
                "Answer with the values, row by row, rows separated by '/'; values of more than one character by ','."
            )
        else:
            form = "Answer with name=value for each unknown, separated by commas, in any order."
        return f"{self.rules} {form} You may reason first; then write one '{ANSWER_MARK}' and after it only the answer."

    @property
    def capacity(self) -> int | None:
        return None

    def enumerate(self) -> Iterable[Problem] | None:
        return None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        return [self.problem(self.instance(rng)) for _ in range(count)]

    def problem(self, instance: Instance) -> Problem:
        """The problem of a draw, with its features."""
        facts = instance.facts
        engine, active = self.engine(facts)
        effort = engine.effort(active)
        features: dict[str, int | float] = {
            "variables": len(engine.puzzle.variables),
            "nodes": effort.nodes,
            "guess_free": int(effort.nodes == 0),
            "solutions": effort.solutions,
        }
        return Problem(
            prompt=self.prompt(facts),
            key=f"{self.name}:{self.canonical(facts)}",
            certificate=PuzzleCertificate(facts=facts, solution=instance.solution),
            features=features | self.measured(facts, effort),
        )

    def answer(self, puzzle: Puzzle, solution: tuple[int, ...]) -> str:
        """A solution as an answer is written."""
        return write(puzzle, solution, self.width)

    def answers(self, problem: Problem, most: int = 1000) -> Iterator[str]:
        """Up to ``most`` right answers without working, each solution once."""
        facts, solution = contents(problem)
        engine, active = self.engine(facts)
        best = None if engine.puzzle.objective is None else _value(engine.puzzle, solution)
        found = engine.solutions(active, most, best=best)
        if found is None:
            raise ValueError(f"the solutions of {shown(problem.prompt)} are too hard to find to be listed")
        return (self.answer(engine.puzzle, tuple(row)) for row in found.tolist())

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """None: any working may stand before an answer. See ``answers``."""
        return None

    def floor(self, problem: Problem) -> float:
        facts, _ = contents(problem)
        puzzle = self.engine(facts)[0].puzzle
        return 1.0 / prod(len(variable.domain) for variable in puzzle.variables)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by evaluating each constraint; progress is the share of them that is met.

        Where there is an objective, half the progress is for being feasible, and the rest for the objective's value.
        """
        facts, best = contents(problem)
        form = _form(self, facts)
        puzzle = form.puzzle
        values = read(form, completion)
        if isinstance(values, Flaw):
            return values.verdict
        flaw = violation(puzzle, values)
        share = 1.0 if puzzle.objective is None else 0.5
        if flaw is not None:
            return Verdict(correct=False, well_formed=True, progress=share * flaw.held, reason=flaw.reason)
        if puzzle.objective is None:
            return Verdict(correct=True, well_formed=True, progress=1.0, reason="every constraint is met")
        return _judged(puzzle, values, _value(puzzle, best))

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """A worked solution: deductions (explicit, or some at a time), the answer alone, or a depth-first search.

        The usual heuristic (deduction.py) is ``plain`` where a number of backtracks is asked for, because nearly every
        puzzle has so many dead ends then, and else ``given``, because few puzzles have too many to be written then.
        """
        check_style(style, of=self.name, heuristics=HEURISTICS)
        facts, solution = contents(problem)
        engine, active = self.engine(facts)
        puzzle = engine.puzzle
        if style.search == "depth_first":
            best = None if puzzle.objective is None else _value(puzzle, solution)
            usual = "given" if style.backtracks is None else "plain"
            walker = Walker(engine, active, style.heuristic or usual, best=best)
            if style.backtracks is None:
                moves, solution = walker.first_found()
            else:
                moves = walker.with_dead_ends(solution, style.backtracks, rng)
            steps = [_step(puzzle, move) for move in moves if move.kind != "deduced" or len(move.values) == 1]
        else:
            steps = self.worked(puzzle, facts, solution)
        return Trace.worked(arranged(steps, style, rng, _fold), self.answer(puzzle, solution), separator=";")

    def worked(self, puzzle: Puzzle, facts: Facts, solution: tuple[int, ...]) -> list[Step]:
        """The steps to the solution when no wrong branch is shown: deductions, and right guesses where they end."""
        engine, active = self.engine(facts)
        return [_step(puzzle, move) for move in Walker(engine, active).forward(solution)]


def _judged(puzzle: Puzzle, values: dict[str, int], best: int) -> Verdict:
    """The verdict on a feasible answer to a puzzle with an objective."""
    objective = puzzle.objective
    value = objective.value(values) if objective is not None else best
    if value == best:
        return Verdict(correct=True, well_formed=True, progress=1.0, reason=f"feasible, and {value} is optimal")
    ratio = min(abs(value), abs(best)) / max(abs(value), abs(best)) if value * best > 0 else 0.0
    return Verdict(
        correct=False,
        well_formed=True,
        progress=0.5 + 0.49 * ratio,  # below 1 whatever rounding does
        reason=f"feasible, but its value {value} is not the optimum {best}",
    )


def _step(puzzle: Puzzle, move: Move) -> Step:
    variable = puzzle.variables[move.variable] if move.variable >= 0 else None
    name = variable.name if variable is not None else ""
    operation = "?" if move.kind == "guessed" else _told(puzzle, move.constraint)
    colon = "" if move.kind == "guessed" or variable is None else ":"
    if variable is None or move.kind == "dead":
        result = f"{name}!"
    elif len(move.values) == 1:
        result = f"{name}={variable.word(move.values[0])}"
    else:
        result = name + "".join(f"!{variable.word(value)}" for value in move.lost)
    return Step(operation=operation, result=result, text=f"{operation}{colon}{result}")


def _told(puzzle: Puzzle, constraint: int) -> str:
    return "best" if constraint == BOUND else puzzle.constraints[constraint].text


def _fold(group: Sequence[Step]) -> Step:
    """Several steps as one: by which constraints, each once, and then all that they gave."""
    operation = ",".join(dict.fromkeys(step.operation for step in group))
    result = ",".join(step.result for step in group)
    return Step(operation=operation, result=result, text=f"{operation}:{result}")


@lru_cache(maxsize=1024)
def _form(family: Family, facts: Facts) -> Form:
    """How answers to a puzzle are read: kept, because many completions of one problem are judged in a row."""
    return Form.of(family.puzzle(facts), family.width)


@lru_cache(maxsize=256)
def _engine(family: Family, facts: Facts) -> tuple[Engine, Integers]:
    engine = Engine(family.puzzle(facts))
    return engine, engine.active()


def contents(problem: Problem) -> tuple[Facts, tuple[int, ...]]:
    """The facts and the solution of a problem that a family made."""
    certificate = problem.certificate
    if not isinstance(certificate, PuzzleCertificate):
        raise TypeError(
            f"a puzzle family reads problems with a PuzzleCertificate, got {type(certificate).__name__} for the prompt"
            f" {shown(problem.prompt)}; ask the task that made the problem"
        )
    return certificate.facts, certificate.solution


def _value(puzzle: Puzzle, solution: tuple[int, ...]) -> int:
    return puzzle.objective.value(puzzle.assignment(solution)) if puzzle.objective is not None else 0


def check_whole(field: str, value: object, least: int, most: int) -> None:
    """Refuses a field of a family that is no whole number in its range."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{field} must be a whole number from {least} to {most}, got {value!r}")
