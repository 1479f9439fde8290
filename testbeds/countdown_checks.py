"""Which declarations of Countdown make sense; the errors say what is wrong and what would be right."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from testbeds.arithmetic import OPERATORS
from testbeds.countdown_search import MOST_TARGETS

if TYPE_CHECKING:
    from testbeds.countdown import Countdown

MOST_NUMBERS = 8
LARGEST_LEXICON = 4096  # whole-number symbols; more rows than that would be most of a small model's weights
LARGEST_MAGNITUDE = 2**62  # numerators and denominators are 64-bit integers in the search
HIGHEST_TARGET = 2**50  # floats tell whole numbers below it from everything else in the search


def check_choices(task: Countdown) -> None:
    """Refuses what is none of the named choices."""
    for name, value, choices in (
        ("form", task.form, ("expression", "chain")),
        ("numerals", task.numerals, ("digits", "whole")),
        ("intermediates", task.intermediates, ("any", "positive")),
        ("targets", task.targets, ("uniform", "stratified")),
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


def check_ranges(task: Countdown) -> None:
    """Refuses ranges that are none, and counts of numbers out of bounds."""
    if type(task.numbers) is not int or not 2 <= task.numbers <= MOST_NUMBERS:
        raise ValueError(f"Countdown.numbers must be a whole number from 2 to {MOST_NUMBERS}, got {task.numbers!r}")
    _check_range("values", task.values)
    _check_range("target", task.target)
    if task.largest is not None and (type(task.largest) is not int or task.largest < task.target[1]):
        raise ValueError(
            f"Countdown.largest bounds the last result too, so it must be None or at least the highest target"
            f" {task.target[1]}, got {task.largest!r}"
        )
    if task.largest is not None and task.largest > LARGEST_MAGNITUDE:
        raise ValueError(
            f"Countdown.largest is at most {LARGEST_MAGNITUDE}, since results are 64-bit integers, got {task.largest};"
            f" None sets no bound"
        )
    low, high = task.target
    if high - low >= MOST_TARGETS or high > HIGHEST_TARGET:
        raise ValueError(
            f"Countdown.target spans at most {MOST_TARGETS} numbers and ends at {HIGHEST_TARGET} at most,"
            f" got {task.target}"
        )


def check_feasible(task: Countdown) -> None:
    """Refuses what 64-bit integers or the search for many numbers cannot hold."""
    # Before a result is reduced and held against ``largest``, it is as large as without that bound.
    largest = replace(task.rules, largest=None, positive=False).magnitude(task.numbers, task.values[1])
    if largest >= LARGEST_MAGNITUDE:
        raise ValueError(
            f"Countdown computes in 64 bits, which {task.numbers} numbers up to {task.values[1]} may exceed;"
            f" lower values[1] or numbers"
        )
    most = task.rules.most_counted
    if task.numbers <= most:
        return
    if task.targets == "stratified":
        raise ValueError(
            f"Countdown.targets='stratified' goes by the number of solutions, which is counted for at most {most}"
            f" numbers under these rules, got numbers={task.numbers}; set targets='uniform'"
        )
    if "-" in task.operators and "+" not in task.operators and task.intermediates == "any":
        raise ValueError(
            f"Countdown with {task.numbers} numbers and - needs + beside it, or intermediates='positive', got"
            f" operators={task.operators}"
        )
    highest = replace(task.rules, largest=None).magnitude(task.numbers, task.values[1]) * task.target[1]
    if highest >= LARGEST_MAGNITUDE:
        raise ValueError(
            f"Countdown seeks targets up to {task.target[1]} of {task.numbers} numbers up to {task.values[1]} in 64"
            f" bits, which that may exceed; lower target[1], values[1] or numbers"
        )


def _check_range(name: str, bounds: object) -> None:
    match bounds:
        case (int(low), int(high)) if type(low) is type(high) is int and isinstance(bounds, tuple) and 1 <= low <= high:
            return
    raise ValueError(f"Countdown.{name} must be a tuple (low, high) of whole numbers, 1 <= low <= high, got {bounds!r}")


def check_lexicon(task: Countdown) -> None:
    """Refuses more whole-number symbols than a lexicon should have."""
    if task.numerals == "whole" and task.magnitude > LARGEST_LEXICON:
        raise ValueError(
            f"Countdown.numerals='whole' needs a symbol for every number up to {task.magnitude}, at most"
            f" {LARGEST_LEXICON} are allowed; set numerals='digits', or a bound such as"
            f" largest={max(99, task.target[1])}, or lower values and target"
        )
