"""The tables of a report as plain rows: which policies, which numbers, which rollouts, at what cost.

Nothing here knows HTML, and nothing here knows a study.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.claims import CheckFinding, Effect, Finding, Measure
from experiments.experiment import Experiment
from experiments.results import CORRECTED, FLOOR, Policy, Results, band_entries, rollouts
from experiments.store import Store
from training.ledger import Ledger, Spent

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
    part: tuple[int, int] = (1, 1)
    """Which of its arm's stages of this name the stage is, and how many there are."""

    @property
    def after(self) -> str:
        """The stage, for a row of a table: RL in three parts is not three rows of one name."""
        number, of = self.part
        return self.stage_name if of == 1 else f"{self.stage_name}, part {number} of {of}"

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
class EndTable:
    """The study's number at the end of every arm: the answer to "how much?"."""

    evaluation: str
    band: str
    metric: str
    """The raw metric, also where the study reads it above its floor."""
    rows: tuple[tuple[str, Cell | None], ...]
    """(arm, its number after its last stage); None where nothing was measured."""

    @property
    def has_floor(self) -> bool:
        """Whether the metric has a guessing floor."""
        return any(cell is not None and cell.corrected is not None for _, cell in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRollout:
    """One completion of one arm."""

    arm: str
    text: str
    correct: bool
    well_formed: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A problem as its task draws it, with what one policy would answer at once."""

    caption: str
    """Which policy, and its likeliest answers in words."""
    svg: str
    """One ``<svg>`` element, whose ids are its own on the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownProblem:
    """One problem with a completion of every arm."""

    prompt: str
    key: str
    reference: str
    rollouts: tuple[ShownRollout, ...]
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutTable:
    """Problems chosen by a rule, with what each arm answered."""

    rule: str
    """How the problems were chosen, in a sentence."""
    seed: int
    problems: tuple[ShownProblem, ...]
    note: str = ""
    """Why there are no pictures where there should be some; empty else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What something cost."""

    label: str
    steps: float
    training: Spent
    sampling: Spent
    evaluation: Spent | None
    """None while no seed has all its evaluations."""
    seeds: int
    """Seeds that have all stages: what ``steps``, ``training`` and ``sampling`` are over."""
    evaluated_seeds: int
    """Seeds that have all stages and evaluations: what ``evaluation`` is over."""

    @property
    def flops(self) -> int:
        """Training and sampling together: what a study that matches compute holds equal."""
        return self.training.flops + self.sampling.flops


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
                part=_part(by_place, places[0]),
            )
        )
    return tuple(groups)


def _part(by_place: Mapping[tuple[str, int], Sequence[Policy]], place: tuple[str, int]) -> tuple[int, int]:
    """Which of its arm's stages of the same name a stage is, and how many there are."""
    name = by_place[place][0].stage_name
    alike = sorted(stage for (arm, stage), found in by_place.items() if (arm, found[0].stage_name) == (place[0], name))
    return alike.index(place[1]) + 1, len(alike)


def band_table(experiment: Experiment, results: Results, evaluation: str) -> ScoreTable | None:
    """One evaluation's accuracy by policy and band; None while nothing of it is there."""
    found = _found(results, evaluation)
    if not found:
        return None
    bands = sorted({band for entries in found for band in band_entries(entries)}, key=band_order)
    metric = _shown_metric(experiment, found[0]["metrics"])
    places = [(band, metric) for band in bands]
    rows = _score_rows(experiment, results, evaluation, places)
    return ScoreTable(evaluation=evaluation, metric=metric, columns=tuple(bands), rows=rows)


def metric_table(experiment: Experiment, results: Results, evaluation: str) -> ScoreTable | None:
    """All metrics of one evaluation over all its problems, by policy; None while nothing of it is there."""
    found = _found(results, evaluation)
    if not found:
        return None
    # Of all policies: an older artifact may lack what a newer one has.
    names = dict.fromkeys(name for entries in found for name in entries["metrics"])
    metrics = tuple(name for name in names if not name.endswith((CORRECTED, f"_{FLOOR}")))
    rows = _score_rows(experiment, results, evaluation, [("all", metric) for metric in metrics])
    return ScoreTable(evaluation=evaluation, metric=None, columns=metrics, rows=rows)


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
            return RolloutTable(rule=rule, seed=seed, problems=_problems(shown))
    return None


def end_table(experiment: Experiment, results: Results) -> EndTable | None:
    """The primary reading of every arm after its last stage; None while nothing is measured."""
    reading = experiment.primary
    metric = reading.metric.removesuffix(CORRECTED)
    rows = tuple(
        (arm, _cell(_end_of(results, arm), results, reading.evaluation, reading.band, metric))
        for arm in experiment.order
    )
    if all(cell is None for _, cell in rows):
        return None
    return EndTable(evaluation=reading.evaluation, band=reading.band, metric=metric, rows=rows)


def effect_above_floor(finding: Finding, results: Results) -> float | None:
    """A claim's mean effect in rates above the guessing floor; None where one of its metrics has no floor.

    None also for what is no sum of rates, such as a correlation.
    """
    if not isinstance(finding.claim.effect, Effect):
        return None
    read = results.corrected_reader()
    values = []
    for seed, _ in finding.per_seed:
        corrected = {measure: read(measure, seed) for measure in finding.claim.effect.measures}
        known: dict[Measure, float] = {measure: value for measure, value in corrected.items() if value is not None}
        if len(known) < len(corrected):
            return None
        values.append(finding.claim.effect.value(known.__getitem__))
    return math.fsum(values) / len(values) if values else None


def check_values(finding: CheckFinding, results: Results) -> tuple[tuple[int, float, float | None], ...]:
    """(seed, value, value above the guessing floor) of a check; the last is None where there is no floor."""
    read = results.corrected_reader()
    return tuple((seed, value, read(finding.check.measure, seed)) for seed, value in finding.per_seed)


def ledger_rows(experiment: Experiment, results: Results) -> tuple[LedgerRow, ...]:
    """What each arm cost per seed (shared stages counted in every arm), then what the experiment really cost.

    A seed without all its stages counts in no mean, and one without all its evaluations not in that of evaluation: a
    gap is not a cost of 0.
    """
    rows = [row for arm in experiment.order if (row := _arm_row(arm, results)) is not None]
    ledgers = results.artifacts.ledgers
    everything = dict.fromkeys(
        i for each in results.policies for i in (each.stage_id, *_evaluation_ids(each)) if i in ledgers
    )
    if everything:
        total = _total([ledgers[identity] for identity in everything])
        seeds = len({policy.seed for policy in results.policies if policy.finished})
        rows.append(
            LedgerRow(
                label=f"whole experiment{' so far' if results.missing else ''}, every stage once",
                steps=total.steps,
                training=total.training,
                sampling=total.sampling,
                evaluation=total.evaluation,
                seeds=seeds,
                evaluated_seeds=seeds,
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


def band_order(band: str) -> tuple[bool, str, float, str]:
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
                key=first["key"],
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


def _end_of(results: Results, arm: str) -> PolicyGroup:
    """An arm's policies after its last stage."""
    policies = tuple({policy.seed: policy for policy in results.of(arm=arm)}.values())
    return PolicyGroup(
        arms=(arm,),
        stage=policies[0].stage,
        stage_name=policies[0].stage_name,
        policies=policies,
        shared_by_all=False,
    )


def _evaluation_ids(policy: Policy) -> list[str]:
    return [identity for _, identity in policy.evaluation_ids]


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


def _arm_row(arm: str, results: Results) -> LedgerRow | None:
    """An arm's mean cost over the seeds that have it; None while no seed has all its stages."""
    artifacts = results.artifacts
    trained, evaluated = [], []
    for seed in results.seeds:
        policies = list(results.of(seed=seed, arm=arm))
        if not all(policy.finished for policy in policies):
            continue
        stages = [policy.stage_id for policy in policies]
        trained.append(_ledger_of(stages, results))
        evaluations = [identity for policy in policies for identity in _evaluation_ids(policy)]
        if all(identity in artifacts.evaluations for identity in evaluations):
            evaluated.append(_ledger_of(stages + evaluations, results))
    if not trained:
        return None
    total = _total(trained)
    return LedgerRow(
        label=arm,
        steps=total.steps / len(trained),
        training=_divided(total.training, len(trained)),
        sampling=_divided(total.sampling, len(trained)),
        evaluation=_divided(_total(evaluated).evaluation, len(evaluated)) if evaluated else None,
        seeds=len(trained),
        evaluated_seeds=len(evaluated),
    )


def _ledger_of(identities: Sequence[str], results: Results) -> Ledger:
    ledgers = results.artifacts.ledgers
    return _total([ledgers[identity] for identity in identities if identity in ledgers])


def _divided(spent: Spent, by: int) -> Spent:
    return Spent(tokens=round(spent.tokens / by), flops=round(spent.flops / by), cpu_s=spent.cpu_s / by)
