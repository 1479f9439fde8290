"""Results: what the store holds of an experiment, as one tidy table with its training curves, ledgers and gaps.

A policy is an arm at a seed after one of its stages. Arms with a common prefix share its policies: they have one id,
and are read once.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from experiments.claims import Measure
from experiments.experiment import Experiment, Scale
from experiments.store import Store, StoreError
from training.evaluation import evaluation_id
from training.ledger import Ledger
from training.recipe import stage_id


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
    versions: Mapping[str, tuple[tuple[str, str], ...]]
    """(package, version) under which each artifact was made."""


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
    """What the design has and the store has not, one sentence each."""

    def of(self, *, seed: int | None = None, arm: str | None = None) -> Iterator[Policy]:
        """The policies of a seed, of an arm, or of both."""
        for policy in self.policies:
            if seed in (None, policy.seed) and arm in (None, policy.arm):
                yield policy

    def reader(self) -> Callable[[Measure, int], float | None]:
        """A function from (measure, seed) to its value; None where the result is missing.

        It raises ValueError for a metric or band that the evaluation did not measure: a gap is not a misspelt name.
        """
        by_policy: dict[tuple[int, str], list[Policy]] = {}
        for policy in self.policies:
            by_policy.setdefault((policy.seed, policy.arm), []).append(policy)

        def read(measure: Measure, seed: int) -> float | None:
            policy = by_policy[seed, measure.arm][measure.stage]
            identity = dict(policy.evaluation_ids)[measure.evaluation]
            entries = self.artifacts.evaluations.get(identity)
            return None if entries is None else _value(entries, measure)

        return read

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
    return Results(
        seeds=experiment.seeds_of(scale),
        policies=policies,
        artifacts=artifacts,
        scores=tuple(score for policy in policies for score in _scores(policy, artifacts)),
        missing=tuple(_missing(policies, artifacts)),
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
            if band == "all" or _in_band(row["features"], band):
                rows.append(row)
            if len(rows) == count:
                break
    return rows


def _in_band(features: Mapping[str, float], band: str) -> bool:
    """Whether a problem with these features is in a band such as ``depth=5``."""
    feature, _, value = band.partition("=")
    return feature in features and f"{features[feature]:g}" == value


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
    ledgers = {identity: _ledger(store.path(identity)) for identity in [*stages, *evaluations]}
    return Artifacts(
        curves={identity: _curve(store.path(identity)) for identity in stages},
        ledgers={identity: ledger for identity, ledger in ledgers.items() if ledger is not None},
        evaluations={identity: _json(store.path(identity) / "results.json") for identity in evaluations},
        versions={
            identity: tuple(sorted(store.record(identity).get("versions", {}).items()))
            for identity in [*stages, *evaluations]
        },
    )


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


def _missing(policies: tuple[Policy, ...], artifacts: Artifacts) -> Iterator[str]:
    """Sentences on missing stages, then on missing evaluations of finished stages."""
    for policy in policies:
        if not policy.finished:
            yield f"seed {policy.seed}, arm {policy.arm}: stage {policy.stage} ({policy.description}) has not finished"
    for policy in policies:
        lacking = [name for name, identity in policy.evaluation_ids if identity not in artifacts.evaluations]
        if policy.finished and lacking:
            after = f"after stage {policy.stage} ({policy.stage_name})"
            yield f"seed {policy.seed}, arm {policy.arm}: no evaluation {', '.join(lacking)} {after}"


def _value(entries: Mapping[str, Any], measure: Measure) -> float:
    bands = band_entries(entries)
    if measure.band not in bands:
        raise ValueError(f"{measure}: the evaluation has no band {measure.band!r}; it has {sorted(bands)}")
    metrics = bands[measure.band]
    if measure.metric not in metrics:
        raise ValueError(f"{measure}: the evaluation has no metric {measure.metric!r}; it has {sorted(metrics)}")
    return float(metrics[measure.metric])


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
