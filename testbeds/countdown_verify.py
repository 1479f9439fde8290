"""The verdict on any text as an answer to a Countdown puzzle, by the grammar of countdown.py: total, exact, linear."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from testbeds.arithmetic import Flaw, Numerals, Postfix, apply, evaluate, parse, shown, tighten, write
from testbeds.core import Verdict
from testbeds.countdown_search import Rules

MARK = "#"

_VALUE = r"(0|[1-9][0-9]*|\(-[1-9][0-9]*\)|\(-?[1-9][0-9]*/[1-9][0-9]*\))"
_LINE = re.compile(rf"{_VALUE}([-+*/]){_VALUE}={_VALUE}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an answer is held against."""

    numbers: tuple[int, ...]
    target: int
    rules: Rules
    numerals: Numerals


class _Line(NamedTuple):
    left: str
    operator: str
    right: str
    result: str


def verify_expression(question: Question, completion: str) -> Verdict:
    """The verdict on ``EXPR`` or ``WORKING # EXPR``; progress is 1/2 for the right numbers with a wrong value."""
    expression = _read_expression(question, completion)
    if isinstance(expression, Flaw):
        return _malformed(expression.reason)
    # Numerals are compared as text: without leading zeros that is exact, and nothing is computed with a huge number.
    used, given = Counter(expression.numerals), Counter(map(str, question.numbers))
    exact = question.rules.exact_use
    if not (used == given if exact else used <= given):
        return _wrong(f"each of {_list(question.numbers)} is to be used {'exactly' if exact else 'at most'} once")
    value = evaluate(expression, question.rules.permit)
    if isinstance(value, Flaw):
        return _wrong(value.reason)
    if value != question.target:
        return _wrong(f"the value is {write(value)}, not {question.target}", progress=0.5)
    return _right(f"the value is {question.target}")


def verify_chain(question: Question, completion: str) -> Verdict:
    """The verdict on ``LINE ("," LINE)*``; progress counts right lines up to the first wrong one, per given number."""
    tight = tighten(completion, question.numerals)
    if isinstance(tight, Flaw):
        return _malformed(tight.reason)
    lines = _read_lines(tight, question.rules.operators)
    if isinstance(lines, Flaw):
        return _malformed(lines.reason)
    paper = _Paper(question)
    for done, line in enumerate(lines):
        flaw = paper.take(line)
        if flaw is not None:
            return _wrong(flaw.reason, progress=done / len(question.numbers))
    progress = len(lines) / len(question.numbers)  # at most n-1 lines can be right, so below 1
    if lines[-1].result != str(question.target):
        return _wrong(f"the last result is {lines[-1].result}, not {question.target}", progress)
    unused = paper.unused(lines[-1].result)
    if unused:
        return _wrong(f"{_list(unused)} is left unused", progress)
    return _right(f"the last result is {question.target}")


class _Paper:
    """The values that a chain has at hand, as they are written. Results are used before equal given numbers."""

    def __init__(self, question: Question) -> None:
        self._rules = question.rules
        self._given = Counter(map(str, question.numbers))
        self._results: Counter[str] = Counter()
        self._value = {str(number): Fraction(number) for number in question.numbers}

    def take(self, line: _Line) -> Flaw | None:
        """Use up the operands of a line and add its result; the Flaw where that is not right."""
        for operand in (line.left, line.right):
            pile = self._results if self._results[operand] else self._given
            if not pile[operand]:
                return Flaw(reason=f"{shown(operand)} is not available")
            pile[operand] -= 1
        result = apply(line.operator, self._value[line.left], self._value[line.right])
        equation = f"{line.left}{line.operator}{line.right}"
        if result is None:
            return Flaw(reason=f"{equation} divides by zero")
        if write(result) != line.result:
            return Flaw(reason=f"{equation} is {write(result)}, not {shown(line.result)}")
        if not self._rules.permit(result):
            return Flaw(reason=f"the task does not permit the result {equation}={line.result}")
        self._value[line.result] = result
        self._results[line.result] += 1
        return None

    def unused(self, last: str) -> tuple[str, ...]:
        """What had to be used and was not, once ``last`` is the result that answers."""
        open_values = self._results - Counter((last,))
        if self._rules.exact_use:
            open_values += self._given
        return tuple(open_values.elements())


def _read_expression(question: Question, completion: str) -> Postfix | Flaw:
    marks = completion.count(MARK)
    if marks > 1:
        return Flaw(reason=f"{marks} answer marks {MARK}, at most one is allowed")
    answer = tighten(completion.rpartition(MARK)[2], question.numerals)
    return answer if isinstance(answer, Flaw) else parse(answer, question.rules.operators)


def _read_lines(tight: str, operators: tuple[str, ...]) -> tuple[_Line, ...] | Flaw:
    lines = []
    for text in tight.split(","):
        match = _LINE.fullmatch(text)
        if match is None or match[2] not in operators:
            return Flaw(reason=f"{shown(text)} is not a line such as 2{operators[0]}1={_example(operators[0])}")
        lines.append(_Line(*match.groups()))
    return tuple(lines)


def _example(operator: str) -> str:
    value = apply(operator, Fraction(2), Fraction(1))
    return "" if value is None else write(value)


def _list(values: tuple[int, ...] | tuple[str, ...]) -> str:
    return ", ".join(map(str, values))


def _malformed(reason: str) -> Verdict:
    return Verdict(correct=False, well_formed=False, progress=0.0, reason=f"malformed: {reason}")


def _wrong(reason: str, progress: float = 0.0) -> Verdict:
    return Verdict(correct=False, well_formed=True, progress=progress, reason=reason)


def _right(reason: str) -> Verdict:
    return Verdict(correct=True, well_formed=True, progress=1.0, reason=reason)
