"""The verdict on any text as an answer to a Countdown puzzle, by the grammar of countdown.py: total, exact, linear."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import gcd
from typing import NamedTuple

from testbeds.arithmetic import (
    PRECEDENCE,
    Flaw,
    Numerals,
    apply,
    joined,
    parse,
    ratio,
    shown,
    tighten,
    write,
    written,
)
from testbeds.core import ANSWER_MARK, Verdict
from testbeds.countdown_search import Rules

MARK = ANSWER_MARK

_VALUE = r"(0|[1-9][0-9]*|\(-[1-9][0-9]*\)|\(-?[1-9][0-9]*/[1-9][0-9]*\))"
_NUMERAL = re.compile("([0-9]+)")  # a group, so that splitting keeps what stands between
_LONGEST_SHAPE = 64  # characters of an answer whose shape is remembered; eight numbers and their parentheses need fewer
_LINE = re.compile(rf"{_VALUE}([-+*/]){_VALUE}={_VALUE}")


class Question(NamedTuple):
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
    answer = _read_answer(question, completion)
    if isinstance(answer, Flaw):
        return _malformed(answer.reason)
    value = _quick_value(question, answer)
    return _verify_slowly(question, answer) if value is None else _judged(question.target, *value)


def _quick_value(question: Question, answer: str) -> tuple[int, int] | None:
    """The value of an answer as (top, bottom), not reduced; None wherever its verdict needs a second look.

    Answers to many problems have few shapes, such as ``0*(0+0)-0``: each is parsed once.
    """
    if len(answer) > _LONGEST_SHAPE:
        return None
    pieces = _NUMERAL.split(answer)
    numerals = pieces[1::2]
    rules = question.rules
    if not _uses(numerals, question):
        return None
    operations = _operations("0".join(pieces[::2]), rules.operators)
    if operations is None:
        return None
    values = [(int(numeral), 1) for numeral in numerals]  # few and short: they are given numbers
    permitted = None if rules.permits_all else rules.permit_ratio
    for operator, left, right in operations:
        value = joined(operator, values[left], values[right])
        if value is None or (permitted is not None and not permitted(*value)):
            return None
        values.append(value)
    return values[-1]


@lru_cache(maxsize=8192)
def _operations(shape: str, operators: tuple[str, ...]) -> tuple[tuple[str, int, int], ...] | None:
    """(operator, left, right) of an expression whose numerals are all 0: places among its numerals, then its results.

    None where it is malformed.
    """
    expression = parse(shape, operators)
    if isinstance(expression, Flaw):
        return None
    numerals = expression.numerals
    operands, results = count(), count(len(numerals))
    stack: list[int] = []
    operations = []
    for token in expression.tokens:
        if token in PRECEDENCE:
            right, left = stack.pop(), stack.pop()
            operations.append((token, left, right))
            stack.append(next(results))
        else:
            stack.append(next(operands))
    return tuple(operations)


def _verify_slowly(question: Question, answer: str) -> Verdict:
    """The verdict on any answer, with its reason: parsed, held against the numbers, evaluated."""
    rules = question.rules
    expression = parse(answer, rules.operators)
    if isinstance(expression, Flaw):
        return _malformed(expression.reason)
    # Numerals are compared as text: without leading zeros that is exact, and nothing is computed with a huge number.
    if not _uses(list(expression.numerals), question):
        return _wrong(
            f"each of {_list(question.numbers)} is to be used {'exactly' if rules.exact_use else 'at most'} once"
        )
    value = ratio(expression, None if rules.permits_all else rules.permit_ratio)
    return _wrong(value.reason) if isinstance(value, Flaw) else _judged(question.target, *value)


def _judged(target: int, top: int, bottom: int) -> Verdict:
    """The verdict on a permitted value of the right numbers."""
    if top == target * bottom:
        return _right(target)
    divisor = gcd(top, bottom)
    return _wrong(f"the value is {written(top // divisor, bottom // divisor)}, not {target}", progress=0.5)


@lru_cache(maxsize=4096)
def _sorted(numbers: tuple[int, ...]) -> list[str]:
    """The numbers as text, sorted as text."""
    return sorted(map(str, numbers))


def _uses(numerals: list[str], question: Question) -> bool:
    """Whether the numerals are the given numbers, or some of them where not all must be used."""
    given = _sorted(question.numbers)
    if question.rules.exact_use or len(numerals) > len(given):
        return sorted(numerals) == given
    left = given.copy()
    for numeral in numerals:
        if numeral not in left:
            return False
        left.remove(numeral)
    return True


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
    return Verdict(correct=True, well_formed=True, progress=1.0, reason=f"the last result is {question.target}")


class _Paper:
    """The values that a chain has at hand, as they are written. Results are used before equal given numbers."""

    def __init__(self, question: Question) -> None:
        self._rules = question.rules
        self._given = Counter(map(str, question.numbers))
        self._results: Counter[str] = Counter()
        self._value = {str(number): (number, 1) for number in question.numbers}

    def take(self, line: _Line) -> Flaw | None:
        """Use up the operands of a line and add its result; the Flaw where that is not right."""
        for operand in (line.left, line.right):
            pile = self._results if self._results[operand] else self._given
            if not pile[operand]:
                return Flaw(reason=f"{shown(operand)} is not available")
            pile[operand] -= 1
        result = joined(line.operator, self._value[line.left], self._value[line.right])
        equation = f"{line.left}{line.operator}{line.right}"
        if result is None:
            return Flaw(reason=f"{equation} divides by zero")
        top, bottom = result
        divisor = gcd(top, bottom)
        right = written(top // divisor, bottom // divisor)
        if right != line.result:
            return Flaw(reason=f"{equation} is {right}, not {shown(line.result)}")
        if not self._rules.permit_ratio(top, bottom):
            return Flaw(reason=f"the task does not permit the result {equation}={line.result}")
        self._value[line.result] = (top // divisor, bottom // divisor)
        self._results[line.result] += 1
        return None

    def unused(self, last: str) -> tuple[str, ...]:
        """What had to be used and was not, once ``last`` is the result that answers."""
        open_values = self._results - Counter((last,))
        if self._rules.exact_use:
            open_values += self._given
        return tuple(open_values.elements())


def _read_answer(question: Question, completion: str) -> str | Flaw:
    marks = completion.count(MARK)
    if marks > 1:
        return Flaw(reason=f"{marks} answer marks {MARK}, at most one is allowed")
    return tighten(completion.rpartition(MARK)[2] if marks else completion, question.numerals)


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


@lru_cache(maxsize=1024)
def _right(target: int) -> Verdict:
    return Verdict(correct=True, well_formed=True, progress=1.0, reason=f"the value is {target}")
