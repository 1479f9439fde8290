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
        flaw = _out_of_place(token, wants_operand, operators)
        if flaw is not None:
            return flaw
        if _is_numeral(token[0]):
            output.append(token)
            wants_operand = False
        elif token == "(":
            waiting.append(token)
        elif token == ")":
            _release(waiting, output, until=0)
            if not waiting:
                return Flaw(reason="a closing parenthesis has no partner")
            waiting.pop()
        else:
            _release(waiting, output, until=PRECEDENCE[token])
            waiting.append(token)
            wants_operand = True
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


def write(value: Fraction) -> str:
    """The one way in which a value is written: ``8``, and in parentheses ``(-2)``, ``(8/3)``, ``(-8/3)``."""
    if value.denominator == 1 and value >= 0:
        return str(value.numerator)
    return f"({value})"


def _release(waiting: list[str], output: list[str], until: int) -> None:
    """Move the operators that bind at least as tightly as ``until`` to the output, back to a parenthesis."""
    while waiting and waiting[-1] != "(" and PRECEDENCE[waiting[-1]] >= until:
        output.append(waiting.pop())


def _out_of_place(token: str, wants_operand: bool, operators: tuple[str, ...]) -> Flaw | None:  # noqa: FBT001 (parser state)
    """The Flaw of a token that cannot stand here, else None."""
    if _is_numeral(token[0]):
        if not wants_operand:
            return Flaw(reason=f"{shown(token)} stands where an operator is due")
        return Flaw(reason=f"{shown(token)} has a leading zero") if token[0] == "0" and len(token) > 1 else None
    if token in ("(", ")") or token in operators:
        if wants_operand != (token == "("):
            return Flaw(reason=f"{shown(token)} stands where {'a number' if wants_operand else 'an operator'} is due")
        return None
    return Flaw(reason=f"{shown(token)} is not a symbol of an answer; operators are {' '.join(operators)}")


def _is_numeral(symbol: str) -> bool:
    """Whether a character is one of the ten ASCII digits; str.isdigit would let others in."""
    return "0" <= symbol <= "9"
