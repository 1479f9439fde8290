"""Claims: predictions with their decision rule, and the registration that writes them down before the first run.

A claim predicts that the mean over seeds of an effect lies in an open band (low, high). An effect is one number within
one seed, mostly a weighted sum of measures (``experiments/effects.py`` has others): all arms of a seed share the base,
the problems and the sampling noise, so the comparison is paired. ``experiments/judgement.py`` decides;
``experiments/statistics.py`` has the tests.

With the claims, the stages and evaluations of the scale are registered (``experiments/designs.py``), in files that
``experiments/registry.py`` describes. A registration is a date, not a proof: the report compares it with the dates of
the artifacts that it judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

from experiments.designs import Change, design_changes, design_of, is_design
from experiments.registry import (
    CLAIMS,
    DESIGNS,
    RUNS,
    Entry,
    Run,
    canonical_json,
    enter,
    entry,
    note_run,
    runs,
    unreadable,
)
from experiments.store import explained
from testbeds.identity import fingerprint

if TYPE_CHECKING:
    from experiments.experiment import Experiment, Scale

Outcome = Literal["supported", "refuted", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number per seed: a metric of one arm, after one of its stages."""

    revision: ClassVar[int] = 1
    arm: str
    """Name of the arm."""
    evaluation: str
    """Name of the evaluation."""
    metric: str = "accuracy"
    """Name of the metric in the evaluation's results."""
    band: str = "all"
    """Band of difficulty, such as ``depth=5``; ``all`` is the whole evaluation."""
    stage: int = -1
    """Index into the arm's stages; -1 is the last."""

    def __str__(self) -> str:
        band = "" if self.band == "all" else f", {self.band}"
        stage = "" if self.stage == -1 else f", stage {self.stage}"
        return f"{self.metric} of {self.arm} ({self.evaluation}{band}{stage})"


class Undefined(ValueError):  # noqa: N818  # said of a number, not of the caller's mistake
    """The measures of a seed are there, but the effect has no value for them, such as a correlation with a constant."""


@runtime_checkable
class Quantity(Protocol):
    """What a claim is about: one number per seed, made of that seed's measures. A frozen dataclass fulfils it.

    Its text is the formula that the report prints.
    """

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Every measure that the number is made of."""
        ...

    def value(self, read: Callable[[Measure], float]) -> float:
        """The number of one seed, given that seed's measures.

        Raises:
            Undefined: if there is none for these measures; the message says why.
        """
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A weighted sum of measures of the same seed."""

    revision: ClassVar[int] = 1
    terms: tuple[tuple[float, Measure], ...]
    """(weight, measure) pairs."""

    def __post_init__(self) -> None:
        if not self.terms:
            raise ValueError("Effect.terms is empty; an effect needs at least one (weight, measure)")
        for weight, measure in self.terms:
            if not math.isfinite(weight) or weight == 0.0:
                raise ValueError(f"the weight of {measure} must be finite and not zero, got {weight}")
        # A weight of 1 and of 1.0 is the same effect and must have the same fingerprint.
        object.__setattr__(self, "terms", tuple((float(weight), measure) for weight, measure in self.terms))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures, in the order of the terms."""
        return tuple(measure for _, measure in self.terms)

    def value(self, read: Callable[[Measure], float]) -> float:
        """The effect of one seed, given that seed's measures."""
        return math.fsum(weight * read(measure) for weight, measure in self.terms)

    def __str__(self) -> str:
        text = " ".join(f"{_signed(weight)}{measure}" for weight, measure in self.terms)
        return text.removeprefix("+ ")


def level(a: Measure) -> Effect:
    """The measure itself."""
    return Effect(terms=((1.0, a),))


def difference(a: Measure, b: Measure) -> Effect:
    """The measure a less the measure b: a - b."""
    return Effect(terms=((1.0, a), (-1.0, b)))


def interaction(a: Measure, b: Measure, c: Measure, d: Measure) -> Effect:
    """By how much the step from b to a exceeds the step from d to c: (a - b) - (c - d)."""
    return Effect(terms=((1.0, a), (-1.0, b), (-1.0, c), (1.0, d)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A prediction: the mean of ``effect`` over seeds lies above ``low`` and below ``high``.

    One open end is a directional claim; two ends are an equivalence claim, and so must be as narrow as "equal" means.
    """

    revision: ClassVar[int] = 1
    name: str
    """Short name, unique in the experiment."""
    statement: str
    """The prediction as a sentence that is true if the claim holds."""
    effect: Quantity
    """What is measured in every seed."""
    low: float | None = None
    """Lower end of the predicted band, not included; None is open."""
    high: float | None = None
    """Upper end of the predicted band, not included; None is open."""

    def __post_init__(self) -> None:
        _check_named("Claim", self.name, self.statement)
        check_band(f"claim {self.name!r}", self.low, self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A condition for the comparison to mean anything: it must hold in every seed, or every claim is void."""

    revision: ClassVar[int] = 1
    name: str
    """Short name, unique in the experiment."""
    statement: str
    """The condition as a sentence."""
    measure: Measure
    """What is measured in every seed."""
    low: float | None = None
    """Smallest value that passes; None is open."""
    high: float | None = None
    """Largest value that passes; None is open."""

    def __post_init__(self) -> None:
        _check_named("Check", self.name, self.statement)
        check_band(f"check {self.name!r}", self.low, self.high)

    def holds(self, value: float) -> bool:
        """Whether one seed passes; the ends pass."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of one claim, with every number that the decision used."""

    claim: Claim
    """The claim that was judged."""
    outcome: Outcome
    """``supported``, ``refuted`` or ``inconclusive``."""
    reason: str
    """Why, in one sentence with the numbers."""
    per_seed: tuple[tuple[int, float], ...]
    """(seed, effect) of the seeds that have all measures."""
    missing: tuple[int, ...]
    """Seeds of the scale that lack a measure."""
    undefined: tuple[tuple[int, str], ...] = ()
    """(seed, why) of the seeds that have all measures, for which the effect has no value nevertheless."""
    effect: float | None = None
    """Mean effect over seeds; None without a seed."""
    interval: tuple[float, float] | None = None
    """Student 95 % interval of the mean; None with fewer than two seeds."""
    p_inside: float | None = None
    """p value against "the mean is outside the band", Holm-adjusted over the experiment's claims."""
    p_outside: float | None = None
    """p value against "the mean is inside the band", Holm-adjusted over the experiment's claims."""
    raw_p_inside: float | None = None
    """``p_inside`` before Holm."""
    raw_p_outside: float | None = None
    """``p_outside`` before Holm."""
    sign_flip_inside: float | None = None
    """Exact sign-flip p value of the same test as ``raw_p_inside``: robustness, never the decision."""
    sign_flip_outside: float | None = None
    """Exact sign-flip p value of the same test as ``raw_p_outside``."""

    @property
    def n(self) -> int:
        """Number of seeds that were used."""
        return len(self.per_seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFinding:
    """The outcome of one check."""

    check: Check
    """The check."""
    holds: bool | None
    """Whether it holds in every seed; None while a seed is missing and no seed has failed."""
    per_seed: tuple[tuple[int, float], ...]
    """(seed, value) of the seeds that have the measure."""
    reason: str
    """Why, in one sentence with the numbers."""


# ---- registration: claims are written down before the first run


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The claims and checks of one experiment, as far as they can be registered."""

    revision: ClassVar[int] = 1
    name: str
    """Name of the experiment."""
    claims: tuple[Claim, ...]
    """The claims."""
    checks: tuple[Check, ...]
    """The checks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What stands in the store about an experiment's claims, and about one of its scales."""

    fingerprint: str
    """Fingerprint of the claims that were registered first."""
    registered: str
    """When, in UTC."""
    designed: str | None
    """When the last of the scale's seeds had its stages and evaluations registered; None while one has not."""
    edited: tuple[str, ...]
    """Files whose content has not the fingerprint that stands in them: they were changed after they were written."""
    changes: tuple[Change, ...]
    """How today's claims, checks, arms and evaluations differ from those; empty if they do not."""
    runs: tuple[Run, ...]
    """Every run that was started at any scale, oldest first."""
    unreadable_runs: int
    """Lines of the log of runs that cannot be read."""


def register(experiment: Experiment, scale: Scale, root: Path, *, now: datetime | None = None) -> Registration:
    """The registration after noting that this scale is about to run; called before the first stage.

    Writes ``experiments/<name>/claims.json`` and ``designs/<scale>/<seed>.json`` below the store's root where they are
    not there. Where today's differ, the old file stays and today's goes beside it; the report marks it.
    """
    moment = (now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds")
    folder = registration_folder(experiment, root)
    seeds = experiment.seeds_of(scale)
    declared = _declared(experiment)
    designs = {seed: design_of(experiment, scale, seed) for seed in seeds}
    with explained(root):
        enter(folder / CLAIMS, "claims", declared, moment=moment)
        for seed, design in designs.items():
            enter(_design_file(folder, scale, seed), "design", design, moment=moment)
        note_run(folder / RUNS, Run(time=moment, scale=scale.name, seeds=seeds), fingerprint(declared))
    return _registration(experiment, scale, folder)


def registration(experiment: Experiment, scale: Scale, root: Path) -> Registration | None:
    """What is registered, without noting a run; None if the experiment never ran in this store."""
    folder = registration_folder(experiment, root)
    return _registration(experiment, scale, folder) if (folder / CLAIMS).exists() else None


def registration_folder(experiment: Experiment, root: Path) -> Path:
    """The folder of an experiment in a store: its registration and its reports."""
    return root / "experiments" / experiment.name


def check_band(where: str, low: float | None, high: float | None) -> None:
    """Nothing, if the band has at least one end, finite ends, and ``low < high``."""
    if low is None and high is None:
        raise ValueError(f"{where} has no end of its band, so nothing could contradict it; give low, high or both")
    for end, value in (("low", low), ("high", high)):
        if value is not None and not math.isfinite(value):
            raise ValueError(f"{end} of {where} must be finite, got {value}; None leaves the end open")
    if low is not None and high is not None and low >= high:
        raise ValueError(f"{where} needs low < high, got low={low} and high={high}")


def _declared(experiment: Experiment) -> Registered:
    return Registered(name=experiment.name, claims=experiment.claims, checks=experiment.checks)


def _design_file(folder: Path, scale: Scale, seed: int) -> Path:
    return folder / DESIGNS / scale.name / f"{seed}.json"


def _design_entry(file: Path) -> Entry:
    found = entry(file, "design")
    if not is_design(found.content):
        raise unreadable(file, "holds no design")
    return found


def _registration(experiment: Experiment, scale: Scale, folder: Path) -> Registration:
    first = entry(folder / CLAIMS, "claims")
    if not _are_claims(first.content):
        raise unreadable(folder / CLAIMS, "holds no claims")
    files = {seed: _design_file(folder, scale, seed) for seed in experiment.seeds_of(scale)}
    designs = {seed: _design_entry(file) for seed, file in files.items() if file.exists()}
    pairs = [(design.content, canonical_json(design_of(experiment, scale, seed))) for seed, design in designs.items()]
    started, unreadable_runs = runs(folder / RUNS)
    found = {folder / CLAIMS: first} | {files[seed]: design for seed, design in designs.items()}
    return Registration(
        fingerprint=first.fingerprint,
        registered=first.registered,
        designed=max(each.registered for each in designs.values()) if len(designs) == len(files) else None,
        edited=tuple(file.relative_to(folder).as_posix() for file, each in found.items() if not each.sound),
        changes=_changes(first.content, canonical_json(_declared(experiment))) + design_changes(pairs),
        runs=started,
        unreadable_runs=unreadable_runs,
    )


def _are_claims(content: Mapping[str, Any]) -> bool:
    """Whether a canonical form can be compared with that of today's claims."""
    lists = [content.get(".claims"), content.get(".checks")]
    return all(
        isinstance(each, list) and all(isinstance(one, dict) and ".name" in one for one in each) for each in lists
    )


def _changes(first: Mapping[str, Any], today: Mapping[str, Any]) -> tuple[Change, ...]:
    """How two canonical registrations differ."""
    kinds: tuple[tuple[Literal["claim", "check"], str], ...] = (("claim", ".claims"), ("check", ".checks"))
    changes = []
    for kind, field in kinds:
        old = {entry[".name"]: entry for entry in first[field]}
        new = {entry[".name"]: entry for entry in today[field]}
        changes += [Change(kind=kind, name=name, what="was added") for name in new if name not in old]
        changes += [Change(kind=kind, name=name, what="was removed") for name in old if name not in new]
        for name in (name for name in new if name in old and new[name] != old[name]):
            entries = sorted(old[name].keys() | new[name].keys())
            parts = [entry.removeprefix(".") for entry in entries if old[name].get(entry) != new[name].get(entry)]
            changes.append(Change(kind=kind, name=name, what=f"changed in {', '.join(parts)}"))
    return tuple(changes)


def _check_named(kind: str, name: str, statement: str) -> None:
    if not name.strip() or not statement.strip():
        raise ValueError(f"a {kind} needs a name and a statement, got name={name!r} and statement={statement!r}")


def _signed(weight: float) -> str:
    sign = "+ " if weight > 0 else "- "
    return sign if abs(weight) == 1.0 else f"{sign}{abs(weight):g} x "
