"""Shifts: what a stage did to the answer that a policy prefers, problem by problem.

Two policies were asked for the probability of every choice of the same problem (see training/probes.py). Each problem
falls into one category, by the likeliest choice before and after and by the correct choices' share of the probability
of all choices, as arXiv 2607.16097 sorts its puzzles:

===================  ==================  ===========================  ==========================================
category             before              after                        and
===================  ==================  ===========================  ==========================================
``amplified``        correct is top      correct is top               its share grew
``faded``            correct is top      correct is top               its share did not grow
``regressed``        correct is top      a wrong one is top
``corrected``        a wrong one is top  correct is top               its share before was ``VISIBLE`` or more
``discovered``       a wrong one is top  correct is top               its share before was less
``wrong_amplified``  a wrong one is top  the same wrong one is top    the share of that wrong one grew
``unmoved``          a wrong one is top  a wrong one is top           otherwise
===================  ==================  ===========================  ==========================================

Shares are conditional on answering at once with one of the choices; a policy that writes working first is asked for
what it would say without.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, get_args

from experiments.claims import Measure

Category = Literal["amplified", "faded", "corrected", "discovered", "regressed", "wrong_amplified", "unmoved"]
CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
VISIBLE: Final = 0.05
"""Share from which on the correct choices count as something that the policy already knew."""

Asked = Sequence[tuple[str, float, bool]]
"""(text, probability, whether it is correct) of every choice, the likeliest first: ``choices`` of rollouts.jsonl."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift(Measure):
    """Share of the problems whose preferred answer a stage changed in one way: ``metric`` names the category.

    ``Shift(arm="A", evaluation="puzzles", band="rating_band=1200", metric="discovered")`` is the share of the problems
    of that band for which the last stage of A brought a correct answer to the top that was hardly visible before.
    """

    revision: ClassVar[int] = 1
    since: int = -2
    """Index of the stage before, whose policy is compared with that of ``stage``; -2 is the last but one."""

    def __post_init__(self) -> None:
        if self.metric not in CATEGORIES:
            raise ValueError(f"Shift.metric must be one of {', '.join(CATEGORIES)}, got {self.metric!r}")
        if self.since == self.stage:
            raise ValueError(f"Shift.since and stage are both {self.stage}; a shift is between two stages")

    def __str__(self) -> str:
        band = "" if self.band == "all" else f", {self.band}"
        stages = "" if (self.since, self.stage) == (-2, -1) else f", stage {self.since} to stage {self.stage}"
        return f"share of problems {self.metric} in {self.arm} ({self.evaluation}{band}{stages})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifted:
    """One problem's shift, with what says to which bands it belongs."""

    category: Category | None
    """None where nothing is preferred (see ``shift``)."""
    features: Mapping[str, float]
    component: str
    """Name of the component of a mixture; empty where the task is no mixture."""


def shift(before: Asked, after: Asked) -> Category | None:
    """The category of one problem.

    None where there is nothing to prefer (no choice is correct, or every one), or where one of the policies gives no
    choice any probability.
    """
    if {text for text, _, _ in before} != {text for text, _, _ in after}:
        raise ValueError(f"a shift compares the same choices, got {_texts(before)} and {_texts(after)}")
    totals = [math.fsum(probability for _, probability, _ in asked) for asked in (before, after)]
    if not all(total > 0 for total in totals) or len({right for _, _, right in before}) < 2:
        return None
    old, new = (_Preferred.of(asked, total) for asked, total in zip((before, after), totals, strict=True))
    if old.is_correct:
        return _of_correct(old, new)
    if new.is_correct:
        return "corrected" if old.correct_share >= VISIBLE else "discovered"
    return "wrong_amplified" if new.text == old.text and new.share > old.share else "unmoved"


def in_band(features: Mapping[str, float], component: str, band: str) -> bool:
    """Whether a problem is in a band such as ``all``, ``depth=5`` or, of a mixture, ``task=NAME``."""
    if band == "all":
        return True
    feature, _, value = band.partition("=")
    if feature == "task" and component:
        return component == value
    return feature in features and f"{features[feature]:g}" == value


@lru_cache(maxsize=128)  # for the claims and tables of one report; an artifact never changes
def shifts(before: Path, after: Path) -> tuple[Shifted, ...]:
    """Every problem with choices, with its shift, from the artifacts of one evaluation of two policies."""
    found = []
    for old, new in zip(_rows(before), _rows(after), strict=True):
        if old["key"] != new["key"]:
            raise ValueError(f"{before} and {after} are evaluations of different problems; compare stages of one arm")
        if "choices" not in old or "choices" not in new:
            continue
        category = shift(old["choices"], new["choices"])
        found.append(Shifted(category=category, features=old["features"], component=old.get("component", "")))
    return tuple(found)


def shares(found: Iterable[Shifted], band: str = "all") -> tuple[int, dict[str, float]]:
    """Number of problems of a band that have a category, and the share of each among them; no shares without any."""
    counts = Counter(
        each.category for each in found if each.category is not None and in_band(each.features, each.component, band)
    )
    total = counts.total()
    return total, {category: counts[category] / total for category in CATEGORIES} if total else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Preferred:
    """The likeliest choice of one policy."""

    text: str
    share: float
    is_correct: bool
    correct_share: float
    """Share of all correct choices together."""

    @classmethod
    def of(cls, asked: Asked, total: float) -> _Preferred:
        text, probability, is_correct = asked[0]
        correct = math.fsum(probability for _, probability, right in asked if right)
        return cls(text=text, share=probability / total, is_correct=is_correct, correct_share=correct / total)


def _of_correct(old: _Preferred, new: _Preferred) -> Category:
    if not new.is_correct:
        return "regressed"
    return "amplified" if new.correct_share > old.correct_share else "faded"


def _rows(artifact: Path) -> Iterable[dict[str, Any]]:
    with (artifact / "rollouts.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _texts(asked: Asked) -> list[str]:
    return sorted(text for text, _, _ in asked)
