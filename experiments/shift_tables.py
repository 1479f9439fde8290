"""Tables of shifts: what the end of each arm's training did to the answer that its policy prefers, by band.

The end of training is the last stage, with those of the same kind right before it: RL in three parts is one RL.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from experiments.experiment import Experiment
from experiments.results import Policy, Results, band_entries
from experiments.shifts import CATEGORIES, shares, shifts
from experiments.tables import band_order

PROBED = "legal_mass"  # the metric of an evaluation whose rows have choices


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftRow:
    """One arm in one band, mean over the seeds that have both policies."""

    arm: str
    since: str
    """Name of the stage before it, such as ``SFT``."""
    stage: str
    """Name of the last stage, such as ``RL``."""
    band: str
    problems: float
    """Problems per seed."""
    shares: tuple[float, ...]
    """Share of each of ``CATEGORIES``, in their order."""
    seeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftTable:
    """The shifts of one evaluation."""

    evaluation: str
    rows: tuple[ShiftRow, ...]
    """All bands together, one row per arm."""
    bands: tuple[ShiftRow, ...]
    """The bands, arm by arm."""


def shift_tables(experiment: Experiment, results: Results) -> tuple[ShiftTable, ...]:
    """A table for each evaluation whose problems list choices, of all arms with more than one stage."""
    names = dict.fromkeys(name for policy in results.policies for name, _ in policy.evaluation_ids)
    tables = []
    for name in names:
        rows = [row for arm in experiment.order for row in _rows(results, arm, name)]
        if rows:
            together = tuple(row for row in rows if row.band == "all")
            tables.append(
                ShiftTable(evaluation=name, rows=together, bands=tuple(row for row in rows if row.band != "all"))
            )
    return tuple(tables)


def last_stage(tables: Sequence[ShiftTable]) -> str:
    """The name of the last stage where all arms have the same one, such as ``RL``; else ``the last stage``."""
    names = {row.stage for table in tables for row in table.rows}
    return names.pop() if len(names) == 1 else "the last stage"


def _rows(results: Results, arm: str, evaluation: str) -> Iterator[ShiftRow]:
    """The rows of one arm, ``all`` first."""
    pairs = [pair for seed in results.seeds if (pair := _pair(results, seed, arm, evaluation)) is not None]
    if not pairs:
        return
    before, after = pairs[0]
    evaluations = [results.artifacts.evaluations[_identity(policy, evaluation)] for _, policy in pairs]
    for band in sorted({band for entries in evaluations for band in band_entries(entries)}, key=band_order):
        found = [_shares(results, pair, evaluation, band) for pair in pairs]
        having = [(count, of_band) for count, of_band in found if count]
        if having:
            yield ShiftRow(
                arm=arm,
                since=before.stage_name,
                stage=after.stage_name,
                band=band,
                problems=math.fsum(count for count, _ in having) / len(having),
                shares=tuple(
                    math.fsum(of_band[category] for _, of_band in having) / len(having) for category in CATEGORIES
                ),
                seeds=len(having),
            )


def before_and_after(policies: Sequence[Policy]) -> tuple[Policy, Policy] | None:
    """Of one arm's policies at one seed, the last one before the end of training and the last one; None with one stage.

    Where all stages are of one kind, the end of training is the last of them.
    """
    if len(policies) < 2:
        return None
    *earlier, after = policies
    others = [policy for policy in earlier if policy.stage_name != after.stage_name]
    return (others or earlier)[-1], after


def _pair(results: Results, seed: int, arm: str, evaluation: str) -> tuple[Policy, Policy] | None:
    """The policies to compare; None where one was not asked for choices, or not yet."""
    pair = before_and_after(list(results.of(seed=seed, arm=arm)))
    if pair is None:
        return None
    asked = [results.artifacts.evaluations.get(_identity(policy, evaluation)) for policy in pair]
    return pair if all(entries is not None and PROBED in entries["metrics"] for entries in asked) else None


def _shares(results: Results, pair: tuple[Policy, Policy], evaluation: str, band: str) -> tuple[int, dict[str, float]]:
    before, after = (results.artifacts.directories[_identity(policy, evaluation)] for policy in pair)
    return shares(shifts(before, after), band)


def _identity(policy: Policy, evaluation: str) -> str:
    return dict(policy.evaluation_ids)[evaluation]
