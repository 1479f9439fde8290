"""Trace styles by name, for the command line: ``composed/2 backward``, ``depth_first backtracks=3``.

``candidates=4 depth=2 wrong_first=0.5 ordering=best_last`` is a chess testbed's CandidateStyle.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, get_args

from testbeds.chess.lines_style import ORDERINGS, CandidateStyle
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
    " heuristic=NAME; in chess, any of candidates=3 (moves that are weighed), depth=2 (moves of the line of each),"
    " wrong_first=1.0 (share of the wrong ones that stand before the right one), ordering="
    + " or ".join(ORDERINGS)
    + "; spoiled: "
    + ", ".join(f"{name}=RATE" for name in NOISES)
    + ". (default: explicit; implicit where a task has no room for steps)"
)

_COUNT: Final = "[0-9]{1,6}"
_SHARE: Final = r"[01](\.[0-9]+)?|\.[0-9]+"
_CANDIDATE_FIELDS: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "candidates": (_COUNT, int),
    "depth": (_COUNT, int),
    "wrong_first": (_SHARE, float),
    "ordering": (r"\S+", str),
}
_FIELDS: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "backtracks": (_COUNT, int),
    "heuristic": (r"\S+", str),
    **_CANDIDATE_FIELDS,
}
"""Fields that a word sets by name: the form of their values, and how one is read."""


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
    for word in text.split():
        for name, value in _meaning(word, text).items():
            if name in fields:
                raise ValueError(f"--style {text!r} says twice what {name} is; say it once")
            fields[name] = value
    if fields.get("granularity") == "composed":
        fields.setdefault("group", USUAL_GROUP)
    style = CandidateStyle if fields.keys() & _CANDIDATE_FIELDS.keys() else TraceStyle
    return style(**fields)  # type: ignore[arg-type]  # names and values are those of _meaning


def _meaning(word: str, text: str) -> dict[str, object]:
    """The fields that a word sets."""
    for name, choices in (
        ("granularity", get_args(Granularity)),
        ("order", get_args(Order)),
        ("search", get_args(Search)),
    ):
        if word in choices:
            return {name: word}
    grouped = re.fullmatch(f"composed/({_COUNT})", word)
    if grouped:
        return {"granularity": "composed", "group": int(grouped[1])}
    name, _, value = word.partition("=")
    form, read = _FIELDS.get(name, (None, str))
    if form and re.fullmatch(form, value):
        return {name: read(value)}
    if name in NOISES and re.fullmatch(_SHARE, value):
        return {"noise": NOISES[name](float(value))}
    raise ValueError(f"--style {text!r}: {word!r} means nothing here. {HELP}")
