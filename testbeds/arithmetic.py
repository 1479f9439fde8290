"""Exact arithmetic on text: a tokenizer, a bounded parser and rational values for what a policy writes.

The grammar has four operators, parentheses and unsigned whole numbers, and nothing else::

    EXPR   := TERM (("+" | "-") TERM)*
    TERM   := FACTOR (("*" | "/") FACTOR)*
    FACTOR := NUMBER | "(" EXPR ")"
    NUMBER := "0" | one of 1-9, then digits

No function here raises for any text or evaluates it as code. Numerals stay text until they are known to be few and
short, so the work is linear in the text and bounded by ``LONGEST_ANSWER``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

Numerals = Literal["digits", "whole"]

OPERATORS = ("+", "-", "*", "/")
PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2}
LONGEST_ANSWER = 4096  # symbols; a right answer needs a few dozen, the rest is room for redundant parentheses
LONGEST_TEXT = 100_000  # characters with white space, which takes a millisecond to leave out

_TOKEN = re.compile(r"[0-9]+|[^0-9]")
_SHOWN = 24  # characters of a policy's text that a reason quotes


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """Why a text is not in the grammar, or why its value does not exist."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Postfix:
    """A parsed expression, operands before operators: ``(3+4)*5`` is ``3 4 + 5 *``."""

    tokens: tuple[str, ...]

    @property
    def numerals(self) -> tuple[str, ...]:
        """The numbers as written, from left to right."""
        return tuple(token for token in self.tokens if token not in PRECEDENCE)


def shown(text: str) -> str:
    """``text`` as a reason quotes it: escaped, and cut where it is long."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


def tighten(text: str, numerals: Numerals) -> str | Flaw:
    """``text`` without white space, or a Flaw: empty, too long, or two whole-number symbols side by side.

    Digits are symbols of their own under ``digits``, so "1 5" is 15; under ``whole`` it is the symbols 1 and 5.
    """
    if len(text) > LONGEST_TEXT:
        return Flaw(reason=f"the answer has {len(text)} characters, at most {LONGEST_TEXT} are read")
    pieces = text.split()
    tight = "".join(pieces)
    if not tight:
        return Flaw(reason="the answer is empty")
    if len(tight) > LONGEST_ANSWER:
        return Flaw(reason=f"the answer has {len(tight)} symbols, at most {LONGEST_ANSWER} are read")
    if numerals == "whole":
        for left, right in pairwise(pieces):
            if _is_numeral(left[-1]) and _is_numeral(right[0]):
                return Flaw(reason=f"two numbers stand side by side at {shown(left + ' ' + right)}")
    return tight


def parse(text: str, operators: tuple[str, ...] = OPERATORS) -> Postfix | Flaw:
    """The postfix form of an expression without white space, or the first Flaw (Dijkstra's shunting yard).

    Iterative, so nesting costs no stack; ``text`` is at most ``LONGEST_ANSWER`` characters after ``tighten``.
    """
    output: list[str] = []
    waiting: list[str] = []
    wants_operand = True
    for token in _TOKEN.findall(text):
        if token in operators and not wants_operand:
            _release(waiting, output, until=PRECEDENCE[token])
            waiting.append(token)
            wants_operand = True
        elif wants_operand and "0" <= token[0] <= "9" and (token[0] != "0" or token == "0"):
            output.append(token)
            wants_operand = False
        elif token == "(" and wants_operand:
            waiting.append(token)
        elif token == ")" and not wants_operand:
            _release(waiting, output, until=0)
            if not waiting:
                return Flaw(reason="a closing parenthesis has no partner")
            waiting.pop()
        else:
            return _out_of_place(token, wants_operand, operators)
    return _finished(waiting, output, wants_operand)


def _finished(waiting: list[str], output: list[str], wants_operand: bool) -> Postfix | Flaw:  # noqa: FBT001 (parser state)
    if wants_operand:
        return Flaw(reason="the expression ends where a number is due")
    _release(waiting, output, until=0)
    return Flaw(reason="an opening parenthesis has no partner") if waiting else Postfix(tokens=tuple(output))


def apply(operator: str, left: Fraction, right: Fraction) -> Fraction | None:
    """The exact value of one operation; None for a division by zero."""
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right if right else None
    raise ValueError(f"an operator is one of {' '.join(OPERATORS)}, got {operator!r}")


def evaluate(expression: Postfix, permitted: Callable[[Fraction], bool]) -> Fraction | Flaw:
    """The exact value of an expression, or a Flaw at the first result that does not exist or is not permitted.

    The caller first checks that the numerals are few and short: this function computes with whatever it is given.
    """
    stack: list[Fraction] = []
    for token in expression.tokens:
        if token not in PRECEDENCE:
            stack.append(Fraction(int(token)))
            continue
        right, left = stack.pop(), stack.pop()
        result = apply(token, left, right)
        if result is None:
            return Flaw(reason=f"{write(left)}{token}{write(right)} divides by zero")
        if not permitted(result):
            return Flaw(
                reason=f"the task does not permit the result {write(left)}{token}{write(right)}={write(result)}"
            )
        stack.append(result)
    return stack[0]


def ratio(expression: Postfix, permitted: Callable[[int, int], bool] | None) -> tuple[int, int] | Flaw:
    """What ``evaluate`` gives, as (top, bottom) with bottom > 0, not reduced: several times as fast.

    ``permitted`` takes top and bottom; None permits every result.
    """
    stack: list[tuple[int, int]] = []
    for token in expression.tokens:
        if token not in PRECEDENCE:
            stack.append((int(token), 1))
            continue
        right, left = stack.pop(), stack.pop()
        result = joined(token, left, right)
        if result is None or (permitted is not None and not permitted(*result)):
            equation = f"{write(Fraction(*left))}{token}{write(Fraction(*right))}"
            if result is None:
                return Flaw(reason=f"{equation} divides by zero")
            return Flaw(reason=f"the task does not permit the result {equation}={write(Fraction(*result))}")
        stack.append(result)
    return stack[0]


def joined(operator: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int] | None:
    """(top, bottom) of one operation, bottom > 0, not reduced; None for a division by zero."""
    a, b = left
    c, d = right
    if b == d == 1 and operator != "/":
        return (a + c if operator == "+" else a - c if operator == "-" else a * c), 1
    if operator == "+":
        return a * d + c * b, b * d
    if operator == "-":
        return a * d - c * b, b * d
    if operator == "*":
        return a * c, b * d
    if c == 0:
        return None
    return (a * d, b * c) if c > 0 else (-a * d, -b * c)


def write(value: Fraction) -> str:
    """The one way in which a value is written: ``8``, and in parentheses ``(-2)``, ``(8/3)``, ``(-8/3)``."""
    return written(value.numerator, value.denominator)


def written(top: int, bottom: int) -> str:
    """How ``write`` writes top/bottom, which is in lowest terms."""
    if bottom == 1:
        return str(top) if top >= 0 else f"({top})"
    return f"({top}/{bottom})"


def _release(waiting: list[str], output: list[str], until: int) -> None:
    """Move the operators that bind at least as tightly as ``until`` to the output, back to a parenthesis."""
    while waiting and waiting[-1] != "(" and PRECEDENCE[waiting[-1]] >= until:
        output.append(waiting.pop())


def _out_of_place(token: str, wants_operand: bool, operators: tuple[str, ...]) -> Flaw:  # noqa: FBT001 (parser state)
    """The Flaw of a token that cannot stand here."""
    if _is_numeral(token[0]):
        if not wants_operand:
            return Flaw(reason=f"{shown(token)} stands where an operator is due")
        return Flaw(reason=f"{shown(token)} has a leading zero")
    if token in ("(", ")") or token in operators:
        return Flaw(reason=f"{shown(token)} stands where {'a number' if wants_operand else 'an operator'} is due")
    return Flaw(reason=f"{shown(token)} is not a symbol of an answer; operators are {' '.join(operators)}")


def _is_numeral(symbol: str) -> bool:
    """Whether a character is one of the ten ASCII digits; str.isdigit would let others in."""
    return "0" <= symbol <= "9"
