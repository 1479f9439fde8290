"""Designs: what a scale of an experiment is made of, at one seed, in the form in which it is registered.

Claims alone would leave recipes and evaluations free to change unseen. The ids of all stages and the fingerprints of
all evaluations are registered beside them; the id of an evaluation's artifact is a hash of the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from testbeds.identity import fingerprint

if TYPE_CHECKING:
    from experiments.experiment import Experiment, Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignedStage:
    """One stage of an arm."""

    revision: ClassVar[int] = 1
    id: str
    """Id of the stage's artifact: a hash of its declaration and of all that is before it."""
    name: str
    """Such as ``SFT``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Arms and evaluations of one scale at one seed."""

    revision: ClassVar[int] = 1
    scale: str
    seed: int
    arms: tuple[tuple[str, tuple[DesignedStage, ...]], ...]
    """(arm, its stages)."""
    evaluations: tuple[tuple[str, str], ...]
    """(evaluation, fingerprint of its declaration)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How something differs from what was registered first."""

    kind: Literal["claim", "check", "arm", "evaluation"]
    name: str
    what: str
    """Such as ``was added``, or ``changed in`` with the fields."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} {self.what}"


def design_of(experiment: Experiment, scale: Scale, seed: int) -> Design:
    """What runs at this scale and seed."""
    from training.recipe import stage_id  # a declaration needs no torch: `stagecraft list` stays fast

    recipes = experiment.arms(seed, scale)
    return Design(
        scale=scale.name,
        seed=seed,
        arms=tuple(
            (
                arm,
                tuple(
                    DesignedStage(id=stage_id(recipes[arm], index), name=stage.name)
                    for index, stage in enumerate(recipes[arm].stages)
                ),
            )
            for arm in experiment.order
        ),
        evaluations=tuple((name, fingerprint(each)) for name, each in experiment.evaluations(seed, scale).items()),
    )


def is_design(content: Mapping[str, Any]) -> bool:
    """Whether a canonical form can be compared with that of today's design."""
    try:
        ids = [stage[".id"] + stage[".name"] for _, stages in content[".arms"] for stage in stages]
        return all(isinstance(each, str) for each in ids + [mark for _, mark in content[".evaluations"]])
    except (KeyError, TypeError, ValueError):
        return False


def design_changes(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> tuple[Change, ...]:
    """How designs differ, given (the first registered one, today's) in canonical form for every seed.

    Equal changes of several seeds are one.
    """
    seeds_of: dict[tuple[Literal["arm", "evaluation"], str, str], list[int]] = {}
    for first, today in pairs:
        for name, what in _arm_changes(dict(first[".arms"]), dict(today[".arms"])):
            seeds_of.setdefault(("arm", name, what), []).append(today[".seed"])
        for name, what in _evaluation_changes(dict(first[".evaluations"]), dict(today[".evaluations"])):
            seeds_of.setdefault(("evaluation", name, what), []).append(today[".seed"])
    return tuple(
        Change(kind=kind, name=name, what=what + _at(seeds, len(pairs)))
        for (kind, name, what), seeds in seeds_of.items()
    )


def _arm_changes(first: Mapping[str, Any], today: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    yield from _set_changes(first, today)
    for arm in (arm for arm in today if arm in first):
        old, new = first[arm], today[arm]
        if [stage[".id"] for stage in old] == [stage[".id"] for stage in new]:
            continue
        same = 0
        while same < min(len(old), len(new)) and old[same][".id"] == new[same][".id"]:
            same += 1
        if same == len(new):
            yield arm, f"lost its stages from {same} ({old[same]['.name']}) on"
        elif same == len(old):
            yield arm, f"has new stages from {same} ({new[same]['.name']}) on"
        else:
            yield arm, f"changed from stage {same} ({new[same]['.name']}) on"


def _evaluation_changes(first: Mapping[str, str], today: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    yield from _set_changes(first, today)
    for name in (name for name in today if name in first and first[name] != today[name]):
        yield name, "changed"


def _set_changes(first: Mapping[str, Any], today: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    yield from ((name, "was added") for name in today if name not in first)
    yield from ((name, "was removed") for name in first if name not in today)


def _at(seeds: Sequence[int], total: int) -> str:
    if len(seeds) == total:
        return ""
    return f" at seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
