"""Learning curves: reward and loss per step, thin lines for seeds and thick ones for their mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.drawing import (
    SHARED,
    STYLE,
    Drawn,
    arm_colour,
    arm_line_style,
    draw_floor,
    floors_of,
    mean_of,
    stage_names,
    svg_of,
)
from experiments.experiment import Experiment
from experiments.results import FLOOR, Results
from experiments.tables import PolicyGroup, policy_groups

DASHES: Final[Mapping[str, str]] = {"-": "", "--": "6 3", ":": "2 3", "-.": "7 3 2 3"}
CURVES: Final = ("reward", "loss")  # fields of metrics.jsonl that every stage of the laboratory has, if any
Curve = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One entry of the key to the learning curves."""

    label: str
    colour: str
    dashes: str
    """SVG's ``stroke-dasharray``; empty for a solid line."""


def curve_key(experiment: Experiment) -> tuple[Key, ...]:
    """The key to all learning curves: one line per arm, what all arms share, and the guessing floor."""
    keys = [
        Key(label=arm, colour=arm_colour(index), dashes=DASHES[arm_line_style(index)])
        for index, arm in enumerate(experiment.order)
    ]
    shared = Key(label="shared by all arms", colour=SHARED, dashes="")
    return (*keys, shared, Key(label="guessing floor", colour="#000000", dashes=DASHES["--"]))


def learning_curves(experiment: Experiment, results: Results) -> tuple[Drawn, ...]:
    """One figure per stage name and logged quantity: thin lines are seeds, the thick line is their mean."""
    groups = policy_groups(results, experiment.order)
    figures: list[Drawn] = []
    for stage_name in stage_names((group.stage, group.stage_name) for group in groups):
        of_stage = [group for group in groups if group.stage_name == stage_name]
        for field in CURVES:
            curves = {group: found for group in of_stage if (found := _curves(group, results, field))}
            if not curves:
                continue
            with mpl.rc_context(dict(STYLE)):
                figure = _curve_figure(experiment, results, stage_name, field, curves)
                svg = svg_of(figure, f"curve-{len(figures)}")
            ends = [
                f"{group.label} {mean_of([values[-1] for _, values in found]):.3f}" for group, found in curves.items()
            ]
            floors = _reward_floors(experiment, results, curves)[0] if field == "reward" else []
            floor = f"; guessing floor {mean_of(floors):.3f}" if floors else ""
            description = (
                f"{field} per step of {stage_name}. Mean over seeds at the last step: {'; '.join(ends)}{floor}."
            )
            figures.append(
                Drawn(title=f"{field.capitalize()} per step of {stage_name}", svg=svg, description=description)
            )
    return tuple(figures)


def _curves(group: PolicyGroup, results: Results, field: str) -> list[Curve]:
    found = []
    for policy in group.policies:
        rows = [row for row in results.artifacts.curves.get(policy.stage_id, ()) if field in row]
        if rows:
            found.append((tuple(row["step"] for row in rows), tuple(row[field] for row in rows)))
    return found


def _curve_figure(
    experiment: Experiment,
    results: Results,
    stage_name: str,
    field: str,
    curves: Mapping[PolicyGroup, Sequence[Curve]],
) -> Figure:
    figure = Figure(figsize=(5.2, 3.0), layout="constrained")
    axes = figure.add_subplot()
    for group, of_group in curves.items():
        colour, line = _arm_look(experiment, group)
        for steps, values in of_group:
            axes.plot(steps, values, color=colour, linestyle=line, linewidth=0.6, alpha=0.35)
        shared_steps, mean = _mean_curve(of_group)
        axes.plot(shared_steps, mean, color=colour, linestyle=line, linewidth=1.8)
    if field == "reward":
        _draw_reward_floor(axes, experiment, results, curves)
    axes.set_xlabel(f"step of {stage_name}")
    axes.set_ylabel(field)
    axes.set_title(f"{stage_name}: {field}")
    return figure


def _draw_reward_floor(
    axes: Axes, experiment: Experiment, results: Results, curves: Mapping[PolicyGroup, Sequence[Curve]]
) -> None:
    """The floor as a line; where it is not the stage's own, the label says so."""
    floors, own = _reward_floors(experiment, results, curves)
    if not floors:
        return
    floor = mean_of(floors)
    draw_floor(axes, [floor], vertical=False)
    if not own:
        place = ("axes fraction", "data")
        axes.annotate("floor of the evaluation", (1.0, floor), xycoords=place, ha="right", va="bottom", fontsize=8.0)


def _reward_floors(experiment: Experiment, results: Results, curves: Iterable[PolicyGroup]) -> tuple[list[float], bool]:
    """The floors that a stage logged, and True; where it logged none, those of the primary evaluation, and False."""
    logged = [value for group in curves for _, values in _curves(group, results, FLOOR) for value in values]
    return (logged, True) if logged else (floors_of(experiment, results), False)


def _mean_curve(curves: Sequence[Curve]) -> tuple[list[float], list[float]]:
    """Mean over seeds at the steps that every seed has."""
    by_seed = [dict(zip(steps, values, strict=True)) for steps, values in curves]
    shared = sorted(set.intersection(*(set(seed) for seed in by_seed)))
    return shared, [mean_of([seed[step] for seed in by_seed]) for step in shared]


def _arm_look(experiment: Experiment, group: PolicyGroup) -> tuple[str, str]:
    if group.shared_by_all:
        return SHARED, "-"
    index = experiment.order.index(group.arms[0])
    return arm_colour(index), arm_line_style(index)
