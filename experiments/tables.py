"""The tables of a report as plain rows: which policies, which numbers, which rollouts, at what cost.

Nothing here knows HTML, and nothing here knows a study.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.experiment import Experiment
from experiments.results import Policy, Results, band_entries, rollouts
from experiments.store import Store
from training.ledger import Ledger, Spent

CORRECTED = "_corrected"
FLOOR = "floor"
PROBLEMS_SHOWN = 4  # enough to see what a policy does, few enough to read on paper


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyGroup:
    """Arms that share their policies after a stage in every seed: one row instead of equal ones."""

    arms: tuple[str, ...]
    stage: int
    stage_name: str
    policies: tuple[Policy, ...]
    """One per seed."""
    shared_by_all: bool
    """Whether these are all arms of the experiment."""

    @property
    def label(self) -> str:
        """The arms, for a row of a table."""
        return "all arms" if self.shared_by_all else " / ".join(self.arms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A metric's mean over the seeds that have it."""

    raw: float
    corrected: float | None
    """The same above the guessing floor; None for a metric that has no floor."""
    seeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """One evaluation by policy: a metric in every band, or every metric over all bands."""

    evaluation: str
    metric: str | None
    """The metric, where columns are bands; None where columns are metrics."""
    columns: tuple[str, ...]
    rows: tuple[tuple[PolicyGroup, tuple[Cell | None, ...]], ...]
    """Cells in the order of ``columns``; None where nothing was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRollout:
    """One completion of one arm."""

    arm: str
    text: str
    correct: bool
    well_formed: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownProblem:
    """One problem with a completion of every arm."""

    prompt: str
    reference: str
    rollouts: tuple[ShownRollout, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutTable:
    """Problems chosen by a rule, with what each arm answered."""

    rule: str
    """How the problems were chosen, in a sentence."""
    problems: tuple[ShownProblem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What something cost."""

    label: str
    steps: float
    training: Spent
    sampling: Spent
    evaluation: Spent
    seeds: int

    @property
    def flops(self) -> int:
        """Training and sampling together: what a study that matches compute holds equal."""
        return self.training.flops + self.sampling.flops

    @property
    def cpu_s(self) -> float:
        """CPU seconds of everything."""
        return self.training.cpu_s + self.sampling.cpu_s + self.evaluation.cpu_s


def policy_groups(results: Results, order: Sequence[str]) -> tuple[PolicyGroup, ...]:
    """Distinct policies in the order of the arms, each with the arms that share it in every seed."""
    by_place: dict[tuple[str, int], list[Policy]] = {}
    for policy in results.policies:
        by_place.setdefault((policy.arm, policy.stage), []).append(policy)
    grouped: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for place in sorted(by_place, key=lambda place: (order.index(place[0]), place[1])):
        grouped.setdefault(tuple(policy.stage_id for policy in by_place[place]), []).append(place)
    groups = []
    for places in grouped.values():
        policies = by_place[places[0]]
        arms = tuple(dict.fromkeys(arm for arm, _ in places))
        groups.append(
            PolicyGroup(
                arms=arms,
                stage=places[0][1],
                stage_name=policies[0].stage_name,
                policies=tuple(policies),
                shared_by_all=len(arms) == len(order) > 1,
            )
        )
    return tuple(groups)


def band_table(experiment: Experiment, results: Results, evaluation: str) -> ScoreTable | None:
    """One evaluation's accuracy by policy and band; None while nothing of it is there."""
    found = _found(results, evaluation)
    if not found:
        return None
    bands = sorted({band for entries in found for band in band_entries(entries)}, key=_band_order)
    metric = _shown_metric(experiment, found[0]["metrics"])
    places = [(band, metric) for band in bands]
    rows = _score_rows(experiment, results, evaluation, places)
    return ScoreTable(evaluation=evaluation, metric=metric, columns=tuple(bands), rows=rows)


def metric_table(experiment: Experiment, results: Results, evaluation: str) -> ScoreTable | None:
    """All metrics of one evaluation over all its problems, by policy; None while nothing of it is there."""
    found = _found(results, evaluation)
    if not found:
        return None
    metrics = [name for name in found[0]["metrics"] if not name.endswith((CORRECTED, f"_{FLOOR}"))]
    rows = _score_rows(experiment, results, evaluation, [("all", metric) for metric in metrics])
    return ScoreTable(evaluation=evaluation, metric=None, columns=tuple(metrics), rows=rows)


def rollout_table(experiment: Experiment, results: Results, store: Store) -> RolloutTable | None:
    """The first problems of the primary evaluation with every arm's first completion; None while there is none.

    Right and wrong come as they come: the rule looks at no verdict.
    """
    primary = experiment.primary
    for seed in results.seeds:
        last = {policy.arm: policy for policy in results.of(seed=seed)}
        shown: dict[str, list[dict[str, Any]]] = {}
        for arm in experiment.order:
            identity = dict(last[arm].evaluation_ids)[primary.evaluation]
            if identity in results.artifacts.evaluations:
                shown[arm] = rollouts(store, identity, PROBLEMS_SHOWN, band=primary.band)
        if shown and any(shown.values()):
            where = "" if primary.band == "all" else f" in band {primary.band}"
            rule = (
                f"The first {PROBLEMS_SHOWN} problems of evaluation {primary.evaluation}{where} at seed {seed}, each"
                " with the first sampled completion of every arm after its last stage: picked before any outcome."
            )
            return RolloutTable(rule=rule, problems=_problems(shown))
    return None


def ledger_rows(experiment: Experiment, results: Results) -> tuple[LedgerRow, ...]:
    """What each arm cost per seed (shared stages counted in every arm), then what the experiment really cost."""
    ledgers = results.artifacts.ledgers
    rows = []
    for arm in experiment.order:
        per_seed = []
        for seed in results.seeds:
            policies = list(results.of(seed=seed, arm=arm))
            if all(policy.finished for policy in policies):
                per_seed.append(_total([ledgers[i] for policy in policies for i in _ids(policy) if i in ledgers]))
        if per_seed:
            rows.append(_mean_row(arm, per_seed))
    everything = dict.fromkeys(i for policy in results.policies for i in _ids(policy) if i in ledgers)
    if everything:
        total = _total([ledgers[identity] for identity in everything])
        seeds = len({policy.seed for policy in results.policies if policy.finished})
        rows.append(
            LedgerRow(
                label="whole experiment, every stage once",
                steps=total.steps,
                training=total.training,
                sampling=total.sampling,
                evaluation=total.evaluation,
                seeds=seeds,
            )
        )
    return tuple(rows)


def mean_of(group: PolicyGroup, results: Results, evaluation: str, band: str, metric: str) -> tuple[float, int] | None:
    """A metric's mean over the seeds that have it, and their number."""
    values = [value for _, value in seed_values(group, results, evaluation, band, metric)]
    return (math.fsum(values) / len(values), len(values)) if values else None


def seed_values(
    group: PolicyGroup, results: Results, evaluation: str, band: str, metric: str
) -> list[tuple[int, float]]:
    """(seed, value) of a metric for the seeds that have it."""
    found = []
    for policy in group.policies:
        entries = results.artifacts.evaluations.get(dict(policy.evaluation_ids)[evaluation])
        value = None if entries is None else band_entries(entries).get(band, {}).get(metric)
        if value is not None:
            found.append((policy.seed, float(value)))
    return found


def _found(results: Results, evaluation: str) -> list[Mapping[str, Any]]:
    return [
        results.artifacts.evaluations[identity]
        for policy in results.policies
        for name, identity in policy.evaluation_ids
        if name == evaluation and identity in results.artifacts.evaluations
    ]


def _score_rows(
    experiment: Experiment, results: Results, evaluation: str, places: Sequence[tuple[str, str]]
) -> tuple[tuple[PolicyGroup, tuple[Cell | None, ...]], ...]:
    """For every policy that was evaluated, a cell for each (band, metric)."""
    rows = []
    for group in policy_groups(results, experiment.order):
        cells = tuple(_cell(group, results, evaluation, band, metric) for band, metric in places)
        if any(cell is not None for cell in cells):
            rows.append((group, cells))
    return tuple(rows)


def _band_order(band: str) -> tuple[bool, str, float, str]:
    """The whole evaluation first, then bands by their number: ``depth=2`` before ``depth=10``."""
    feature, _, value = band.partition("=")
    try:
        return band != "all", feature, float(value), value
    except ValueError:
        return band != "all", feature, math.inf, value


def _shown_metric(experiment: Experiment, metrics: Mapping[str, float]) -> str:
    """The study's metric where the evaluation has it, else the first one that has a floor."""
    wanted = experiment.primary.metric.removesuffix(CORRECTED)
    with_floor = [metric for metric in metrics if metric + CORRECTED in metrics]
    return wanted if wanted in metrics else next(iter(with_floor or metrics))


def _cell(group: PolicyGroup, results: Results, evaluation: str, band: str, metric: str) -> Cell | None:
    raw = mean_of(group, results, evaluation, band, metric)
    corrected = mean_of(group, results, evaluation, band, metric + CORRECTED)
    if raw is None:
        return None
    return Cell(raw=raw[0], corrected=None if corrected is None else corrected[0], seeds=raw[1])


def _problems(shown: dict[str, list[dict[str, Any]]]) -> tuple[ShownProblem, ...]:
    by_key: dict[str, dict[str, dict[str, Any]]] = {}
    for arm, rows in shown.items():
        for row in rows:
            by_key.setdefault(row["key"], {})[arm] = row
    problems = []
    for by_arm in by_key.values():
        first = next(iter(by_arm.values()))
        problems.append(
            ShownProblem(
                prompt=first["prompt"],
                reference=first["reference"] or "",
                rollouts=tuple(_rollout(arm, row["completions"][0]) for arm, row in by_arm.items()),
            )
        )
    return tuple(problems)


def _rollout(arm: str, completion: dict[str, Any]) -> ShownRollout:
    return ShownRollout(
        arm=arm,
        text=completion["text"],
        correct=completion["correct"],
        well_formed=completion["well_formed"],
        reason=completion["reason"],
    )


def _ids(policy: Policy) -> list[str]:
    return [policy.stage_id, *(identity for _, identity in policy.evaluation_ids)]


def _total(ledgers: Iterable[Ledger]) -> Ledger:
    total = Ledger()
    for ledger in ledgers:
        total = Ledger(
            steps=total.steps + ledger.steps,
            training=total.training + ledger.training,
            sampling=total.sampling + ledger.sampling,
            evaluation=total.evaluation + ledger.evaluation,
        )
    return total


def _mean_row(label: str, ledgers: Sequence[Ledger]) -> LedgerRow:
    total = _total(ledgers)
    return LedgerRow(
        label=label,
        steps=total.steps / len(ledgers),
        training=_divided(total.training, len(ledgers)),
        sampling=_divided(total.sampling, len(ledgers)),
        evaluation=_divided(total.evaluation, len(ledgers)),
        seeds=len(ledgers),
    )


def _divided(spent: Spent, by: int) -> Spent:
    return Spent(tokens=round(spent.tokens / by), flops=round(spent.flops / by), cpu_s=spent.cpu_s / by)
