"""Cryptarithms: a sum whose digits are written as letters; find the digit of each letter.

Texts (white space between symbols is free, and means nothing):

============  ===========================================  ==========================================================
what          example                                      grammar
============  ===========================================  ==========================================================
prompt        ``SEND + MORE = MONEY ?``                    ``WORD ("+" WORD)+ "=" WORD "?"``; in another base than 10,
                                                           ``base 8 :`` stands before it
answer        ``D=7,E=5,M=1,N=6,O=0,R=8,S=9,Y=2``          ``LETTER "=" DIGIT ("," LETTER "=" DIGIT)*``
.. worked     ``D+E : 7+5=12 : Y=2 carry 1 ; ... # D=7..``  ``WORKING "#" ANSWER``: one mark, WORKING is free text
============  ===========================================  ==========================================================

Different letters stand for different digits, and no word begins with 0. An answer gives each letter of the prompt one
digit, in any order. Each puzzle has one right answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import factorial
from typing import ClassVar, Final

import numpy as np
from numpy.random import Generator

from testbeds.core import Problem, Step, Task, Trace, TraceStyle, Verdict
from testbeds.smt import cryptarithm_kernels as kernels
from testbeds.smt.answers import Flaw, Form, read
from testbeds.smt.constraints import AllDifferent, Is, SumIs
from testbeds.smt.language import Puzzle, Variable, violation
from testbeds.smt.logic import Not, Told
from testbeds.smt.working import arranged, check_style, depth_first
from testbeds.streams import stream

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LONGER_THAN_ANY = kernels.LONGEST_ADDEND + 1
MOST_DRAWS = 100_000  # sums drawn for one problem; a task whose pilot passes needs a few hundred
PILOT_PROBLEMS = 4
PILOT_DRAWS = 4_000  # at a rate where four problems came from this many draws each, MOST_DRAWS do not fail


@dataclass(frozen=True, slots=True, kw_only=True)
class CryptarithmCertificate:
    """The words, the result last, and the digit of each letter."""

    words: tuple[str, ...]
    base: int
    digits: tuple[tuple[str, int], ...]
    """In alphabetical order of the letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cryptarithm:
    """Sums of random numbers, lettered at random, of which one assignment is left.

    Numbers are drawn with uniform lengths and digits, again until the letters have one solution. The key forgets the
    letters, the order of the addends, and which of the addends has which digit of a column (where that moves no first
    letter): exactly what changes nothing but names. As the one solution names the letters, it is the sum itself.
    """

    revision: ClassVar[int] = 1
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = "the sum up to names of letters, order of addends and exchanges within a column"
    addends: int = 2
    """How many numbers are added, 2 to 4."""
    digits: tuple[int, int] = (3, 4)
    """Shortest and longest addend, 1 to 6 digits."""
    base: int = 10
    """Of the number system, 2 to 10; there are at most as many letters."""

    def __post_init__(self) -> None:
        for name, low, high in (("addends", 2, kernels.MOST_ADDENDS), ("base", 2, 10)):
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise ValueError(f"Cryptarithm.{name} must be a whole number from {low} to {high}, got {value!r}")
        bounds: object = self.digits
        match bounds:
            case (int(low), int(high)) if (
                type(bounds) is tuple and bool not in map(type, bounds) and 1 <= low <= high <= kernels.LONGEST_ADDEND
            ):
                pass
            case _:
                raise ValueError(
                    "Cryptarithm.digits must be a tuple (shortest, longest) of whole numbers from 1 to"
                    f" {kernels.LONGEST_ADDEND}, got {self.digits!r}"
                )
        if not _is_known(self) and not _is_feasible(self):
            raise ValueError(
                f"Cryptarithm: of {PILOT_DRAWS} sums of {self.addends} numbers of {self.digits[0]} to {self.digits[1]}"
                f" digits in base {self.base}, hardly any has one solution; allow longer numbers or another base"
            )

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*map(str, range(10)), *LETTERS, *"+=,;:?#", "base", "column", "carry", "try", "fails")

    @property
    def instructions(self) -> str:
        return (
            "The prompt is a sum in which each digit is written as a letter: the same digit always as the same letter,"
            " different digits as different letters, and no number begins with 0."
            f"{'' if self.base == 10 else f' All numbers are written in base {self.base}.'} Find the digit of each"
            " letter. Answer with every letter of the prompt and its digit, separated by commas, such as 'A=1,B=0'."
            " Working may stand before the answer, divided from it by one # mark."
        )

    @property
    def capacity(self) -> int | None:
        return None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        seeds = rng.integers(0, 2**64, size=count, dtype=np.uint64)
        letters = rng.permuted(np.tile(np.arange(len(LETTERS)), (count, 1)), axis=1)[:, : self.base].tolist()
        rows, columns, nodes, _ = kernels.draw(self.addends, *self.digits, self.base, seeds, MOST_DRAWS)
        if columns.min(initial=1) < 1:
            raise ValueError(f"{self} gave no sum with one solution in {MOST_DRAWS} draws; allow longer numbers")
        return [
            self._problem(
                [[digit for digit in row if digit >= 0] for row in digits],
                "".join(map(LETTERS.__getitem__, dealt)),
                effort,
            )
            for digits, dealt, effort in zip(rows.tolist(), letters, nodes.tolist(), strict=True)
        ]

    def enumerate(self) -> None:
        return None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """The columns from the right with their carries, or a search letter by letter in the same direction."""
        check_style(style, of="Cryptarithm")
        certificate = _certificate(problem)
        if style.search == "depth_first":
            tree = _lettering(certificate.words, certificate.base)
            known = dict(certificate.digits)
            steps = depth_first(tree, tuple(known[letter] for letter in tree.order), style.backtracks, rng)
        else:
            steps = arranged(_columns(certificate), style, rng)
        return Trace.worked(steps, _answer(certificate), separator=" ; ")

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the grammar at the top of this file; ``progress`` is the share of the rules that hold."""
        certificate = _certificate(problem)
        form = _form(certificate.words, certificate.base)
        digits = read(form, completion)
        if isinstance(digits, Flaw):
            return digits.verdict
        fault = violation(form.puzzle, digits)
        if fault is None:
            return Verdict(correct=True, well_formed=True, progress=1.0, reason="the sum is right")
        return Verdict(correct=False, well_formed=True, progress=fault.held, reason=fault.reason)

    def solutions(self, problem: Problem) -> None:
        """None: working is free text. See ``answers``."""
        return

    def answers(self, problem: Problem) -> tuple[str, ...]:
        """The one right answer, letters in alphabetical order."""
        return (_answer(_certificate(problem)),)

    def floor(self, problem: Problem) -> float:
        """An upper bound for guesses that see the letters but not where they stand: 1 / letters!.

        Letters are dealt to digits uniformly; the guess may even know which digits occur, and then the bound is exact.
        """
        return 1.0 / factorial(len(_certificate(problem).digits))

    def _problem(self, rows: list[list[int]], letters: str, nodes: int) -> Problem:
        words = tuple("".join([letters[digit] for digit in reversed(row)]) for row in rows)
        used = sorted({digit for row in rows for digit in row}, key=letters.__getitem__)
        prefix = "" if self.base == 10 else f"base {self.base} : "
        certificate = CryptarithmCertificate(
            words=words, base=self.base, digits=tuple((letters[digit], digit) for digit in used)
        )
        return Problem(
            prompt=f"{prefix}{' + '.join(words[:-1])} = {words[-1]} ?",
            key=f"cryptarithm:{canonical(certificate)}",
            certificate=certificate,
            features={
                "letters": len(used),
                "addends": self.addends,
                "columns": len(rows[-1]),
                "carries": sum(carry > 0 for _, _, carry in _additions(certificate)),
                "nodes": nodes,
            },
        )


def canonical(certificate: CryptarithmCertificate) -> str:
    """The base, the digits of the addends in each column from the right, and the digits that begin words."""
    digits = dict(certificate.digits)
    words = certificate.words
    columns = [sorted(digits[letter] for letter in _column(words, c)) for c in range(len(words[-1]))]
    told = "|".join("".join(map(str, column)) for column in columns)
    return f"{certificate.base}:{told};{''.join(map(str, sorted({digits[word[0]] for word in words})))}"


def puzzle(words: Sequence[str], base: int) -> Puzzle:
    """The puzzle in the puzzle language: a variable for each letter in alphabetical order, all different, one sum."""
    letters = sorted(set("".join(words)))
    weights = dict.fromkeys(letters, 0)
    for word, sign in zip(words, [1] * (len(words) - 1) + [-1], strict=True):
        for place, letter in enumerate(reversed(word)):
            weights[letter] += sign * base**place
    first = sorted({word[0] for word in words})
    return Puzzle(
        variables=tuple(Variable(name=letter, domain=tuple(range(base))) for letter in letters),
        rules=(
            AllDifferent(tuple(letters), label="a digit of its own for each letter"),
            *(Told(Not(Is(letter, 0)), f"{letter} is not 0") for letter in first),
        ),
        clues=(SumIs(tuple(letters), 0, tuple(weights.values()), label=f"{'+'.join(words[:-1])}={words[-1]}"),),
    )


@lru_cache(maxsize=256)
def _form(words: tuple[str, ...], base: int) -> Form:
    return Form.of(puzzle(words, base), 0)


def _certificate(problem: Problem) -> CryptarithmCertificate:
    certificate = problem.certificate
    if not isinstance(certificate, CryptarithmCertificate):
        raise TypeError(
            f"Cryptarithm reads problems with a CryptarithmCertificate, got {type(certificate).__name__}; ask the task"
            " that made the problem"
        )
    return certificate


def _answer(certificate: CryptarithmCertificate) -> str:
    return ",".join(f"{letter}={digit}" for letter, digit in certificate.digits)


def _is_known(task: Cryptarithm) -> bool:
    """Whether a task is one of those that were measured: a sum with one solution comes in a few hundred draws."""
    long_enough = {2: 2, 3: 3}.get(task.addends, LONGER_THAN_ANY)
    return task.base >= 5 and task.digits[0] >= long_enough


@lru_cache(maxsize=64)
def _is_feasible(task: Cryptarithm) -> bool:
    seeds = stream("cryptarithm", "pilot").integers(0, 2**64, size=PILOT_PROBLEMS, dtype=np.uint64)
    _, columns, _, _ = kernels.draw(task.addends, *task.digits, task.base, seeds, PILOT_DRAWS)
    return bool(columns.min() > 0)


# -------------------------------------------------------------------------------------------------------- columns


def _in_base(number: int, base: int) -> str:
    digits = str(number % base)
    while number := number // base:
        digits = f"{number % base}{digits}"
    return digits


def _column(words: Sequence[str], c: int) -> list[str]:
    """The addends' letters in a column, counted from the right."""
    return [word[-1 - c] for word in words[:-1] if c < len(word)]


def _additions(certificate: CryptarithmCertificate) -> list[tuple[int, int, int]]:
    """(carry in, total, carry out) of each column from the right."""
    digits = dict(certificate.digits)
    carry = 0
    additions = []
    for c in range(len(certificate.words[-1])):
        total = carry + sum(digits[letter] for letter in _column(certificate.words, c))
        additions.append((carry, total, total // certificate.base))
        carry = total // certificate.base
    return additions


def _columns(certificate: CryptarithmCertificate) -> list[Step]:
    """One step for each column: ``N+R+1 : 6+8+1=15 : E=5 carry 1``."""
    digits = dict(certificate.digits)
    steps = []
    for c, (carry, total, after) in enumerate(_additions(certificate)):
        letters = _column(certificate.words, c)
        carried = [_in_base(carry, certificate.base)] if carry else []
        told = "+".join([*letters, *carried]) or "0"
        values = "+".join([*(str(digits[letter]) for letter in letters), *carried]) or "0"
        operation = f"{told} : {values}={_in_base(total, certificate.base)}"
        result_letter = certificate.words[-1][-1 - c]
        result = f"{result_letter}={digits[result_letter]} carry {_in_base(after, certificate.base)}"
        steps.append(Step(operation=operation, result=result, text=f"{operation} : {result}"))
    return steps


class Lettering:
    """The search tree that gives digits to letters, column by column from the right; see working.py.

    An addend's letter tries the free digits from the lowest. A result's letter has no choice. A path fails at a digit
    that is taken or a first letter of 0, and at a column whose sum contradicts its result.
    """

    def __init__(self, words: tuple[str, ...], base: int) -> None:
        self._words = words
        self._base = base
        self._first = {word[0] for word in words}
        self._width = len(words[-1])
        placed: list[tuple[str, int, bool]] = []
        for c in range(self._width):
            for letter in (*_column(words, c), words[-1][-1 - c]):
                if letter not in [known for known, _, _ in placed]:
                    placed.append((letter, c, letter not in _column(words, c)))
        self._placed = placed

    @property
    def order(self) -> tuple[str, ...]:
        """The letters as they are tried."""
        return tuple(letter for letter, _, _ in self._placed)

    @property
    def depth(self) -> int:
        return len(self._placed)

    def choices(self, path: tuple[int, ...]) -> Sequence[int]:
        letter, column, is_result = self._placed[len(path)]
        if is_result:
            return [self._total(dict(zip(self.order, path, strict=False)), column) % self._base]
        return [digit for digit in range(letter in self._first, self._base) if digit not in path]

    def failure(self, path: tuple[int, ...]) -> str:
        letter = self._placed[len(path) - 1][0]
        if path[-1] in path[:-1] or (path[-1] == 0 and letter in self._first):
            return f"{letter} fails"
        digits = dict(zip(self.order, path, strict=False))
        for c in range(self._width):
            if any(known not in digits for known in (*_column(self._words, c), self._words[-1][-1 - c])):
                return ""
            if self._total(digits, c) % self._base != digits[self._words[-1][-1 - c]]:
                return f"column {c + 1} fails"
        return "carry fails" if self._total(digits, self._width - 1) >= self._base else ""

    def shown(self, path: tuple[int, ...]) -> str:
        return f"{self.order[len(path) - 1]}={path[-1]}"

    def _total(self, digits: dict[str, int], column: int) -> int:
        carry = 0
        for c in range(column):
            carry = (carry + sum(digits[letter] for letter in _column(self._words, c))) // self._base
        return carry + sum(digits[letter] for letter in _column(self._words, column))


_lettering = lru_cache(maxsize=256)(Lettering)


TESTBED: Final[type[Task]] = Cryptarithm
LEVELS: Final[dict[str, Task]] = {
    "easy": Cryptarithm(addends=2, digits=(3, 3)),
    "medium": Cryptarithm(addends=2, digits=(3, 4)),
    "hard": Cryptarithm(addends=2, digits=(4, 6)),
    "octal": Cryptarithm(addends=3, digits=(3, 4), base=8),
}
