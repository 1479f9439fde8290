"""The main figure of a report: every arm after each of its stages. matplotlib without pyplot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from experiments.drawing import (
    OKABE_ITO,
    SHARED,
    STAGE_MARKERS,
    STYLE,
    Drawn,
    draw_floor,
    fixed,
    floors_of,
    mean_of,
    save_figure,
    stage_names,
    svg_of,
)
from experiments.experiment import Experiment
from experiments.results import CORRECTED, Policy, Results
from experiments.tables import PolicyGroup, seed_values

INCH_PER_ROW: Final = 0.18


def main_figure(experiment: Experiment, results: Results) -> Drawn | None:
    """The primary metric of every arm after each of its stages; None while nothing is measured."""
    rows = _arm_rows(experiment, results)
    if not any(row.values for row in rows):
        return None
    with mpl.rc_context(dict(STYLE)):
        svg = svg_of(_main(experiment, results, rows), "main")
    ends = [f"{row.arm} after {row.stage_name} {row.reading(3)}" for row in rows if row.values and row.is_last]
    reading = f"{experiment.primary.metric}, {experiment.primary.evaluation}, {experiment.primary.band}"
    return Drawn(
        title=f"{experiment.primary.metric} after each stage",
        svg=svg,
        description=f"Mean over seeds of {reading} at the end of each arm{_in_brackets(rows)}: {'; '.join(ends)}.",
    )


def save_main_figure(experiment: Experiment, results: Results, destination: Path) -> Path:
    """Writes the main figure as SVG or PNG, by the suffix of ``destination``, whole or not at all: for a README.

    Raises:
        ValueError: for another suffix, or while nothing is measured.
    """
    suffix = destination.suffix.lower()
    if suffix not in (".svg", ".png"):
        raise ValueError(f"a figure is saved as .svg or .png, got {destination.name!r}")
    rows = _arm_rows(experiment, results)
    if not any(row.values for row in rows):
        raise ValueError(f"experiment {experiment.name} has no results to draw; run it first")
    with mpl.rc_context(dict(STYLE)):
        figure = _main(experiment, results, rows)
        save_figure(figure, destination, suffix[1:])
    return destination


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One policy of one arm in the main figure."""

    arm: str
    stage: int
    stage_name: str
    is_last: bool
    values: tuple[float, ...]
    """The primary metric of each seed that has it."""
    corrected: tuple[float, ...]
    """The same above the guessing floor; empty for a metric that has none, or is above it already."""
    seeds: int
    """Seeds of the scale."""

    def reading(self, digits: int) -> str:
        """The mean, in brackets above the guessing floor, and the number of seeds where some are missing."""
        above = f" ({fixed(mean_of(self.corrected), digits)})" if self.corrected else ""
        few = "" if len(self.values) == self.seeds else f", n = {len(self.values)}"
        return f"{fixed(mean_of(self.values), digits)}{above}{few}"


def _arm_rows(experiment: Experiment, results: Results) -> list[_Row]:
    primary = experiment.primary
    rows = []
    for arm in experiment.order:
        by_stage: dict[int, list[Policy]] = {}
        for policy in results.of(arm=arm):
            by_stage.setdefault(policy.stage, []).append(policy)
        for stage, policies in by_stage.items():
            group = PolicyGroup(
                arms=(arm,),
                stage=stage,
                stage_name=policies[0].stage_name,
                policies=tuple(policies),
                shared_by_all=False,
            )
            values, corrected = (
                tuple(value for _, value in seed_values(group, results, primary.evaluation, primary.band, metric))
                for metric in (primary.metric, primary.metric + CORRECTED)
            )
            rows.append(
                _Row(
                    arm=arm,
                    stage=stage,
                    stage_name=group.stage_name,
                    is_last=stage == max(by_stage),
                    values=values,
                    corrected=corrected,
                    seeds=len(results.seeds),
                )
            )
    return rows


def _main(experiment: Experiment, results: Results, rows: Sequence[_Row]) -> Figure:
    """Arms from top to bottom; within an arm, one line per stage; the grey path joins the means."""
    names = stage_names((row.stage, row.stage_name) for row in rows)
    gaps = len(experiment.order) - 1
    figure = Figure(figsize=(8.0, 1.5 + INCH_PER_ROW * (len(rows) + gaps)), layout="constrained")
    axes = figure.add_subplot()
    heights = _heights(experiment, rows)
    floors = floors_of(experiment, results)
    if floors:
        draw_floor(axes, floors, vertical=True)
    for arm in experiment.order:
        of_arm = [row for row in rows if row.arm == arm and row.values]
        means = [mean_of(row.values) for row in of_arm]
        axes.plot(means, [heights[arm, row.stage] for row in of_arm], color="#B0B0B0", linewidth=1.0, zorder=2)
        for row, mean in zip(of_arm, means, strict=True):
            _draw_row(axes, row, mean, heights[arm, row.stage], names.index(row.stage_name))
    _label_arms(axes, experiment, rows, heights)
    reading = experiment.primary
    band = "" if reading.band == "all" else f", {reading.band}"
    axes.set_xlabel(f"{reading.metric.replace('_', ' ')} ({reading.evaluation}{band})")
    if floors:
        _add_corrected_axis(axes, mean_of(floors))
    handles: list[Line2D] = [_handle(name, index) for index, name in enumerate(names)]
    if floors:
        handles.append(Line2D([], [], color="#000000", linestyle="--", linewidth=1.0, label="guessing floor"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _heights(experiment: Experiment, rows: Sequence[_Row]) -> dict[tuple[str, int], float]:
    """Vertical place of every row, top down, with an empty line between arms."""
    heights: dict[tuple[str, int], float] = {}
    height = 0.0
    for arm in experiment.order:
        for row in (row for row in rows if row.arm == arm):
            heights[arm, row.stage] = height
            height -= 1.0
        height -= 1.0
    return heights


def _draw_row(axes: Axes, row: _Row, mean: float, height: float, kind: int) -> None:
    colour, marker = _stage_look(kind)
    axes.plot(
        row.values,
        [height] * len(row.values),
        linestyle="none",
        marker=marker,
        markersize=4.0,
        markerfacecolor="none",
        markeredgecolor=colour,
        markeredgewidth=0.8,
        alpha=0.8,
        zorder=3,
    )
    axes.plot([mean], [height], marker=marker, markersize=7.0, color=colour, zorder=4)
    if row.is_last:
        axes.annotate(
            row.reading(2),
            (max(row.values), height),
            textcoords="offset points",
            xytext=(8, 0),
            va="center",
            fontsize=8.0,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},  # readable where it meets the floor's line
        )


def _label_arms(
    axes: Axes, experiment: Experiment, rows: Sequence[_Row], heights: Mapping[tuple[str, int], float]
) -> None:
    places = []
    for arm in experiment.order:
        stages = [row.stage for row in rows if row.arm == arm]
        places.append(float(np.mean([heights[arm, stage] for stage in stages])))
    axes.set_yticks(places, experiment.order)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(min(heights.values()) - 0.9, 0.9)


def _add_corrected_axis(axes: Axes, floor: float) -> None:
    """A second scale on top: 0 is blind guessing and 1 is perfection."""

    def corrected(raw: ArrayLike) -> ArrayLike:
        return (np.asarray(raw, dtype=np.float64) - floor) / (1.0 - floor)

    def raw(corrected: ArrayLike) -> ArrayLike:
        return np.asarray(corrected, dtype=np.float64) * (1.0 - floor) + floor

    upper = axes.secondary_xaxis("top", functions=(corrected, raw))
    upper.set_xlabel(f"above the guessing floor of {floor:.3g}")


def _stage_look(index: int) -> tuple[str, str]:
    colours = (SHARED, *OKABE_ITO[::-1][2:], *OKABE_ITO[:2])
    return colours[index % len(colours)], STAGE_MARKERS[index % len(STAGE_MARKERS)]


def _handle(name: str, index: int) -> Line2D:
    colour, marker = _stage_look(index)
    return Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=7.0, label=f"after {name}")


def _in_brackets(rows: Iterable[_Row]) -> str:
    return " (in brackets above the guessing floor)" if any(row.corrected for row in rows) else ""
