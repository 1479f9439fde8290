"""Trace styles by name, for the command line: ``composed/2 backward``, ``depth_first backtracks=3``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, get_args

from testbeds.core import EXPLICIT, IMPLICIT, Granularity, Order, Search, Task, TraceNoise, TraceStyle, Unrealisable
from testbeds.demonstrations import demonstration
from testbeds.noise import DroppedSteps, ShuffledSteps, UnrelatedWorking, WrongResult
from testbeds.streams import stream

USUAL_GROUP = 2  # steps that ``composed`` folds into one where no number is given
NOISES: Final[dict[str, Callable[[float], TraceNoise]]] = {
    "wrong_result": lambda rate: WrongResult(rate=rate),
    "dropped_steps": lambda rate: DroppedSteps(rate=rate),
    "shuffled_steps": lambda rate: ShuffledSteps(rate=rate),
    "unrelated_working": lambda rate: UnrelatedWorking(rate=rate),
}
HELP: Final = (
    "How demonstrations are written, in quotes: explicit, implicit or composed/2 (steps at a time); backward or"
    " shuffled; depth_first, with backtracks=3 for exactly that many dead ends, or breadth_first, each with"
    " heuristic=NAME; spoiled: " + ", ".join(f"{name}=RATE" for name in NOISES) + "."
    " (default: explicit; implicit where a task has no room for steps)"
)


def style_for(task: Task, text: str | None) -> TraceStyle:
    """The style that some words describe; without words, every step, or the answer alone where a task has no steps."""
    if text is not None:
        return style_named(text)
    try:
        demonstration(task, task.generate(stream("usual style"), 1)[0], EXPLICIT)
    except Unrealisable:
        return EXPLICIT
    except ValueError:  # the documented refusal of a style
        return IMPLICIT
    return EXPLICIT


def style_named(text: str) -> TraceStyle:
    """The style that some words describe.

    Raises:
        ValueError: for a word that means nothing here, or words that do not go together.
    """
    fields: dict[str, object] = {}
    grouped = re.fullmatch(r"\s*composed/([0-9]{1,6})(.*)", text, re.DOTALL)
    if grouped:
        fields |= {"granularity": "composed", "group": int(grouped[1])}
    for word in (grouped[2] if grouped else text).split():
        name, value = _meaning(word, text)
        if name in fields:
            raise ValueError(f"--style {text!r} says twice what {name} is; say it once")
        fields[name] = value
    if fields.get("granularity") == "composed":
        fields.setdefault("group", USUAL_GROUP)
    return TraceStyle(**fields)  # type: ignore[arg-type]  # names and values are those of _meaning


def _meaning(word: str, text: str) -> tuple[str, object]:
    """The field that a word sets, and its value."""
    for name, choices in (
        ("granularity", get_args(Granularity)),
        ("order", get_args(Order)),
        ("search", get_args(Search)),
    ):
        if word in choices:
            return name, word
    name, _, value = word.partition("=")
    if name == "backtracks" and re.fullmatch(r"[0-9]{1,6}", value):
        return "backtracks", int(value)
    if name == "heuristic" and value:
        return "heuristic", value
    if name in NOISES and re.fullmatch(r"[01](\.[0-9]+)?|\.[0-9]+", value):
        return "noise", NOISES[name](float(value))
    raise ValueError(f"--style {text!r}: {word!r} means nothing here. {HELP}")
