"""Results: what the store holds of an experiment, as one tidy table with its training curves, ledgers and gaps.

A policy is an arm at a seed after one of its stages. Arms with a common prefix share its policies: they have one id,
and are read once.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TextIO

import pandas as pd

from experiments.claims import Measure, Undefined
from experiments.experiment import Experiment, Scale
from experiments.shifts import Shift, in_band, shares, shifts
from experiments.store import Store, StoreError, damaged
from training.evaluation import evaluation_id
from training.ledger import Ledger
from training.recipe import stage_id

CORRECTED: Final = "_corrected"
"""Ending of a metric's name above its guessing floor: 0 is blind guessing and 1 perfection."""
FLOOR: Final = "floor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One row of the tidy table."""

    seed: int
    arm: str
    stage: int
    """Index of the stage after which the policy was evaluated."""
    stage_name: str
    evaluation: str
    band: str
    """Band of difficulty; ``all`` is the whole evaluation."""
    metric: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One arm at one seed after one of its stages: the stage that made it and the evaluations of it."""

    seed: int
    arm: str
    stage: int
    stage_name: str
    description: str
    """One line on the stage."""
    stage_id: str
    finished: bool
    """Whether the stage's artifact is in the store."""
    evaluation_ids: tuple[tuple[str, str], ...]
    """(name of the evaluation, id of its artifact)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """What was read from the store, by artifact id; an id that is missing here is missing there."""

    curves: Mapping[str, tuple[Mapping[str, float], ...]]
    """Rows of ``metrics.jsonl`` of each stage."""
    ledgers: Mapping[str, Ledger]
    """Ledger of each stage, and of each evaluation that has one."""
    evaluations: Mapping[str, Mapping[str, Any]]
    """``results.json`` of each evaluation."""
    directories: Mapping[str, Path]
    """Where the artifact of each evaluation is: its rollouts are too many to be kept here."""
    versions: Mapping[str, tuple[tuple[str, str], ...]]
    """(package, version) under which each artifact was made; ``code`` is the commit of a checkout, where known."""
    created: Mapping[str, datetime]
    """When each artifact was finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that a report needs from the store."""

    seeds: tuple[int, ...]
    """All seeds of the scale, present or not."""
    policies: tuple[Policy, ...]
    """Every policy of the design, present or not: seed by seed, arm by arm, stage by stage."""
    artifacts: Artifacts
    scores: tuple[Score, ...]
    """The tidy table of what is present."""
    missing: tuple[str, ...]
    """What the design has and the store has not, in few sentences: stages, and evaluations of stages that are there."""
    gaps: int
    """Number of these artifacts; one that several arms share is one."""

    def of(self, *, seed: int | None = None, arm: str | None = None) -> Iterator[Policy]:
        """The policies of a seed, of an arm, or of both."""
        for policy in self.policies:
            if seed in (None, policy.seed) and arm in (None, policy.arm):
                yield policy

    def reader(self) -> Callable[[Measure, int], float | None]:
        """A function from (measure, seed) to its value; None where the result is missing.

        It raises ValueError for a metric or band that the evaluation did not measure: a gap is not a misspelt name.
        It raises Undefined for a shift of problems of which none can be sorted.
        """
        identify, artifacts = self._identifier(), self.artifacts

        def read(measure: Measure, seed: int) -> float | None:
            identity = identify(measure, seed, measure.stage)
            if isinstance(measure, Shift):
                return _shift_share(measure, artifacts, identify(measure, seed, measure.since), identity)
            entries = artifacts.evaluations.get(identity)
            return None if entries is None else _value(entries, measure)

        return read

    def corrected_reader(self) -> Callable[[Measure, int], float | None]:
        """A function from (measure, seed) to its value above the guessing floor; None also where there is no floor."""
        identify = self._identifier()

        def read(measure: Measure, seed: int) -> float | None:
            if isinstance(measure, Shift):
                return None
            corrected = replace(measure, metric=measure.metric + CORRECTED)
            entries = self.artifacts.evaluations.get(identify(measure, seed, measure.stage))
            metrics = {} if entries is None else band_entries(entries).get(measure.band, {})
            return _value(entries, corrected) if entries is not None and corrected.metric in metrics else None

        return read

    def _identifier(self) -> Callable[[Measure, int, int], str]:
        """A function from (measure, seed, stage) to the id of the evaluation that it is read from."""
        by_policy: dict[tuple[int, str], list[Policy]] = {}
        for policy in self.policies:
            by_policy.setdefault((policy.seed, policy.arm), []).append(policy)

        def identify(measure: Measure, seed: int, stage: int) -> str:
            return dict(by_policy[seed, measure.arm][stage].evaluation_ids)[measure.evaluation]

        return identify

    def frame(self) -> pd.DataFrame:
        """The tidy table as a data frame: one row per seed, arm, stage, evaluation, band and metric."""
        return pd.DataFrame([astuple(score) for score in self.scores], columns=[field.name for field in fields(Score)])

    def write_csv(self, out: TextIO) -> None:
        """Writes the tidy table as CSV."""
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([field.name for field in fields(Score)])
        writer.writerows(astuple(score) for score in self.scores)


def load(experiment: Experiment, scale: Scale, store: Store) -> Results:
    """The results of an experiment at a scale, complete or not.

    Raises:
        ValueError: if the experiment does not fit together at this scale.
        DamagedArtifact: if an artifact does not agree with its record; nothing is read from it.
    """
    experiment.validate(scale)
    policies = tuple(_policies(experiment, scale, store))
    artifacts = _read(policies, store)
    missing = tuple(_missing(policies, artifacts))
    return Results(
        seeds=experiment.seeds_of(scale),
        policies=policies,
        artifacts=artifacts,
        scores=tuple(score for policy in policies for score in _scores(policy, artifacts)),
        missing=tuple(_sentences(missing)),
        gaps=len(missing),
    )


def band_entries(entries: Mapping[str, Any]) -> dict[str, Mapping[str, float]]:
    """The metrics of one ``results.json`` by band, ``all`` first."""
    return {"all": entries["metrics"], **entries["bands"]}


def rollouts(store: Store, evaluation_artifact: str, count: int, *, band: str = "all") -> list[dict[str, Any]]:
    """The first ``count`` problems of an evaluation, or of one of its bands, with their completions."""
    rows: list[dict[str, Any]] = []
    with (store.path(evaluation_artifact) / "rollouts.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if in_band(row["features"], row.get("component", ""), band):
                rows.append(row)
            if len(rows) == count:
                break
    return rows


def _policies(experiment: Experiment, scale: Scale, store: Store) -> Iterator[Policy]:
    for seed in experiment.seeds_of(scale):
        arms, evaluations = experiment.arms(seed, scale), experiment.evaluations(seed, scale)
        for arm in experiment.order:
            for index, stage in enumerate(arms[arm].stages):
                identity = stage_id(arms[arm], index)
                yield Policy(
                    seed=seed,
                    arm=arm,
                    stage=index,
                    stage_name=stage.name,
                    description=stage.describe(),
                    stage_id=identity,
                    finished=store.has(identity),
                    evaluation_ids=tuple((name, evaluation_id(each, identity)) for name, each in evaluations.items()),
                )


def _read(policies: tuple[Policy, ...], store: Store) -> Artifacts:
    """Reads every artifact once, however many arms share it."""
    stages = dict.fromkeys(policy.stage_id for policy in policies if policy.finished)
    evaluated = dict.fromkeys(identity for policy in policies for _, identity in policy.evaluation_ids)
    evaluations = [identity for identity in evaluated if store.has(identity)]
    found = [*stages, *evaluations]
    ledgers = {identity: _ledger(store.path(identity)) for identity in found}
    records = {identity: store.record(identity) for identity in found}
    return Artifacts(
        curves={identity: _curve(store.path(identity)) for identity in stages},
        ledgers={identity: ledger for identity, ledger in ledgers.items() if ledger is not None},
        evaluations={identity: _json(store.path(identity) / "results.json") for identity in evaluations},
        directories={identity: store.path(identity) for identity in evaluations},
        versions={identity: _versions(record) for identity, record in records.items()},
        created={identity: _created(store.location(identity), record) for identity, record in records.items()},
    )


def _versions(record: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Library versions, and last the code where a record names its commit."""
    versions = tuple(sorted(record.get("versions", {}).items()))
    code = record.get("code")
    if not isinstance(code, dict) or "commit" not in code:
        return versions
    return (*versions, ("code", f"{code['commit']}{' with changes' if code.get('dirty') else ''}"))


def _created(directory: Path, record: Mapping[str, Any]) -> datetime:
    """When an artifact was finished: what shows whether its claims are older."""
    stated = record.get("created")
    try:
        created = datetime.fromisoformat(str(stated))
    except ValueError:
        created = None
    if created is None or created.tzinfo is None:
        raise damaged(directory, f"was created at {stated!r} by its record, which is no time with a zone")
    return created


def _scores(policy: Policy, artifacts: Artifacts) -> Iterator[Score]:
    for evaluation, identity in policy.evaluation_ids:
        entries = artifacts.evaluations.get(identity)
        if entries is None:
            continue
        for band, metrics in band_entries(entries).items():
            for metric, value in metrics.items():
                yield Score(
                    seed=policy.seed,
                    arm=policy.arm,
                    stage=policy.stage,
                    stage_name=policy.stage_name,
                    evaluation=evaluation,
                    band=band,
                    metric=metric,
                    value=float(value),
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """One missing artifact."""

    seed: int
    arms: tuple[str, ...]
    what: str
    """What is the same at other seeds."""
    evaluation: str | None
    """Its name; None for a stage."""


def _missing(policies: tuple[Policy, ...], artifacts: Artifacts) -> Iterator[_Gap]:
    """Missing stages, then missing evaluations of finished stages."""
    sharing: dict[tuple[int, str], list[Policy]] = {}
    for policy in policies:
        sharing.setdefault((policy.seed, policy.stage_id), []).append(policy)
    for shared in sharing.values():
        first, arms = shared[0], tuple(dict.fromkeys(policy.arm for policy in shared))
        if not first.finished:
            what = f"stage {first.stage} ({first.description}) has not finished"
            yield _Gap(seed=first.seed, arms=arms, what=what, evaluation=None)
    for shared in sharing.values():
        first, arms = shared[0], tuple(dict.fromkeys(policy.arm for policy in shared))
        for name, identity in first.evaluation_ids:
            if first.finished and identity not in artifacts.evaluations:
                what = f"after stage {first.stage} ({first.stage_name})"
                yield _Gap(seed=first.seed, arms=arms, what=what, evaluation=name)


def _sentences(gaps: Sequence[_Gap]) -> Iterator[str]:
    """One sentence for gaps that differ in their evaluation or their seed alone."""
    by_seed: dict[tuple[tuple[str, ...], str, int], list[str | None]] = {}
    for gap in gaps:
        by_seed.setdefault((gap.arms, gap.what, gap.seed), []).append(gap.evaluation)
    alike: dict[tuple[tuple[str, ...], str, tuple[str | None, ...]], list[int]] = {}
    for (arms, what, seed), evaluations in by_seed.items():
        alike.setdefault((arms, what, tuple(evaluations)), []).append(seed)
    for (arms, what, lacked), seeds in alike.items():
        names = [name for name in lacked if name is not None]
        lacking = f"no evaluation{_s(names)} {', '.join(names)} " if names else ""
        whose = f"seed{_s(seeds)} {', '.join(map(str, seeds))}, arm{_s(arms)} {', '.join(arms)}"
        yield f"{whose}: {lacking}{what}"


def _s(items: Sequence[object]) -> str:
    return "" if len(items) == 1 else "s"


def _value(entries: Mapping[str, Any], measure: Measure) -> float:
    bands = band_entries(entries)
    if measure.band not in bands:
        raise ValueError(f"{measure}: the evaluation has no band {measure.band!r}; it has {sorted(bands)}")
    metrics = bands[measure.band]
    if measure.metric not in metrics:
        raise ValueError(f"{measure}: the evaluation has no metric {measure.metric!r}; it has {sorted(metrics)}")
    return float(metrics[measure.metric])


def _shift_share(measure: Shift, artifacts: Artifacts, before: str, after: str) -> float | None:
    """Share of the problems of the measure's band in its category; None where one of the evaluations is missing."""
    if before not in artifacts.directories or after not in artifacts.directories:
        return None
    found = shifts(artifacts.directories[before], artifacts.directories[after])
    count, of_band = shares(found, measure.band)
    if count == 0:
        listing = sum(in_band(each.features, each.component, measure.band) for each in found)
        if listing:
            raise Undefined(
                f"{measure}: none of the {listing} problems can be sorted, since its choices are all right, all wrong,"
                " or without any probability before or after"
            )
        raise ValueError(
            f"{measure}: no problem of band {measure.band!r} lists choices; {len(found)} problems of all bands do"
        )
    return of_band[measure.metric]


def _ledger(directory: Path) -> Ledger | None:
    file = directory / "ledger.json"
    return Ledger.from_json(_json(file)) if file.exists() else None


def _curve(directory: Path) -> tuple[Mapping[str, float], ...]:
    file = directory / "metrics.jsonl"
    with file.open(encoding="utf-8") as lines:
        return tuple(_parse(line, file) for line in lines)


def _json(file: Path) -> dict[str, Any]:
    return _parse(file.read_text(encoding="utf-8"), file)


def _parse(text: str, file: Path) -> dict[str, Any]:
    try:
        entries: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise StoreError(f"{file} is not JSON ({error}); delete the artifact's directory and run again") from None
    return entries
