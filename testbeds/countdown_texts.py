"""What a person, or a language model that has never seen the notation, is told about Countdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbeds.arithmetic import OPERATORS
from testbeds.core import ANSWER_MARK

if TYPE_CHECKING:
    from testbeds.countdown import Countdown

NAMES = {"+": "addition", "-": "subtraction", "*": "multiplication", "/": "division"}


def instructions(task: Countdown) -> str:
    """How to read a prompt and what to answer."""
    is_chain = task.form == "chain"
    allowed = ", ".join(f"{operator} ({NAMES[operator]})" for operator in OPERATORS if operator in task.operators)
    some = " Numbers may be left unused." if not task.exact_use else ""
    return " ".join(
        (
            'A prompt such as "22:3,5,7>" names a target, here 22, and numbers, here 3, 5 and 7.',
            f"Reach the target from the numbers with {allowed}{'' if is_chain else ' and parentheses'}.",
            f"Use each given number {'exactly' if task.exact_use else 'at most'} once.{some}",
            *_rules(task),
            *(_chain(task) if is_chain else _expression()),
            "White space does not matter" + (", but each number is one word." if task.numerals == "whole" else "."),
        )
    )


def _rules(task: Countdown) -> tuple[str, ...]:
    bound = () if task.largest is None else (f"No numerator or denominator of a result may exceed {task.largest}.",)
    if task.intermediates == "positive":
        return ("Every result on the way must be a positive whole number.", *bound)
    kinds = [name for operator, name in (("-", "negative"), ("/", "fractions")) if operator in task.operators]
    return (f"Results on the way may be {' or '.join(kinds)}.", *bound) if kinds else bound


def _expression() -> tuple[str, ...]:
    return (
        "Answer with one expression whose value is exactly the target, without an equals sign; no number has a sign of"
        " its own, and every multiplication is written.",
        f"Working may stand before it, separated by a single {ANSWER_MARK}; only what follows that mark is judged.",
    )


def _chain(task: Countdown) -> tuple[str, ...]:
    brackets = (
        " Negative numbers and fractions are written in parentheses and lowest terms, such as (-2) or (8/3)."
        if task.intermediates == "any"
        else ""
    )
    return (
        "Answer with a chain of equations separated by commas, each with one operation on two numbers that are still"
        " available and its exact result, which can be used once from then on. The last result is the target, and no"
        " other result is left over." + brackets,
        "Write nothing else.",
    )
