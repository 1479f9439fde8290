"""The figures of a report: matplotlib without pyplot, the same bytes for the same results.

Colours are those of Okabe and Ito (2008), which stay apart for colour-blind readers; beyond seven arms, line styles
tell them apart. Figures stand on a white card, so that they read alike on a light page, a dark one and paper.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from experiments.experiment import Experiment
from experiments.files import whole_file
from experiments.results import CORRECTED, FLOOR, Policy, Results
from experiments.tables import PolicyGroup, policy_groups, seed_values

OKABE_ITO: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SHARED: Final = "#6E6E6E"  # what all arms share belongs to none of them
LINE_STYLES: Final = ("-", "--", ":", "-.")
DASHES: Final[Mapping[str, str]] = {"-": "", "--": "6 3", ":": "2 3", "-.": "7 3 2 3"}
STAGE_MARKERS: Final = ("o", "s", "D", "^", "v", "P")
CURVES: Final = ("reward", "loss")  # fields of metrics.jsonl that every stage of the laboratory has, if any
INCH_PER_ROW: Final = 0.18
RASTER_DPI: Final = 160
STYLE: Final[Mapping[Any, Any]] = {
    "svg.hashsalt": "stagecraft",  # ids from content, not from a random salt
    "svg.fonttype": "none",  # text stays text: searchable, and read by a screen reader
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "figure.facecolor": "white",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A figure for the page."""

    title: str
    """A few words."""
    svg: str
    """Inline SVG without ids that could clash with another figure's."""
    description: str
    """What it shows, in words and numbers, for those who do not see it."""


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
        Key(label=arm, colour=_colour(index), dashes=DASHES[_line_style(index)])
        for index, arm in enumerate(experiment.order)
    ]
    shared = Key(label="shared by all arms", colour=SHARED, dashes="")
    return (*keys, shared, Key(label="guessing floor", colour="#000000", dashes=DASHES["--"]))


def main_figure(experiment: Experiment, results: Results) -> Drawn | None:
    """The primary metric of every arm after each of its stages; None while nothing is measured."""
    rows = _arm_rows(experiment, results)
    if not any(row.values for row in rows):
        return None
    with mpl.rc_context(dict(STYLE)):
        svg = _svg(_main(experiment, results, rows), "main")
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
        _save(figure, destination, suffix[1:])
    return destination


def learning_curves(experiment: Experiment, results: Results) -> tuple[Drawn, ...]:
    """One figure per stage name and logged quantity: thin lines are seeds, the thick line is their mean."""
    groups = policy_groups(results, experiment.order)
    figures: list[Drawn] = []
    for stage_name in _stage_names((group.stage, group.stage_name) for group in groups):
        of_stage = [group for group in groups if group.stage_name == stage_name]
        for field in CURVES:
            curves = {group: found for group in of_stage if (found := _curves(group, results, field))}
            if not curves:
                continue
            with mpl.rc_context(dict(STYLE)):
                figure = _curve_figure(experiment, results, stage_name, field, curves)
                svg = _svg(figure, f"curve-{len(figures)}")
            ends = [
                f"{group.label} {_mean([values[-1] for _, values in found]):.3f}" for group, found in curves.items()
            ]
            floors = _reward_floors(experiment, results, curves)[0] if field == "reward" else []
            floor = f"; guessing floor {_mean(floors):.3f}" if floors else ""
            description = (
                f"{field} per step of {stage_name}. Mean over seeds at the last step: {'; '.join(ends)}{floor}."
            )
            figures.append(
                Drawn(title=f"{field.capitalize()} per step of {stage_name}", svg=svg, description=description)
            )
    return tuple(figures)


# ---- the main figure -----------------------------------------------------------------------------------------------


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
        above = f" ({_fixed(_mean(self.corrected), digits)})" if self.corrected else ""
        few = "" if len(self.values) == self.seeds else f", n = {len(self.values)}"
        return f"{_fixed(_mean(self.values), digits)}{above}{few}"


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
    names = _stage_names((row.stage, row.stage_name) for row in rows)
    gaps = len(experiment.order) - 1
    figure = Figure(figsize=(8.0, 1.5 + INCH_PER_ROW * (len(rows) + gaps)), layout="constrained")
    axes = figure.add_subplot()
    heights = _heights(experiment, rows)
    floors = _floors(experiment, results)
    if floors:
        _draw_floor(axes, floors, vertical=True)
    for arm in experiment.order:
        of_arm = [row for row in rows if row.arm == arm and row.values]
        means = [_mean(row.values) for row in of_arm]
        axes.plot(means, [heights[arm, row.stage] for row in of_arm], color="#B0B0B0", linewidth=1.0, zorder=2)
        for row, mean in zip(of_arm, means, strict=True):
            _draw_row(axes, row, mean, heights[arm, row.stage], names.index(row.stage_name))
    _label_arms(axes, experiment, rows, heights)
    reading = experiment.primary
    band = "" if reading.band == "all" else f", {reading.band}"
    axes.set_xlabel(f"{reading.metric.replace('_', ' ')} ({reading.evaluation}{band})")
    if floors:
        _add_corrected_axis(axes, _mean(floors))
    handles: list[Line2D] = [_handle(name, index) for index, name in enumerate(names)]
    if floors:
        handles.append(Line2D([], [], color="#000000", linestyle="--", linewidth=1.0, label="guessing floor"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _stage_names(stages: Iterable[tuple[int, str]]) -> list[str]:
    """Names of stages in the order of a pipeline: by the latest place that each has in an arm."""
    latest: dict[str, int] = {}
    for index, name in stages:
        latest[name] = max(index, latest.get(name, index))
    return sorted(latest, key=latest.__getitem__)


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


# ---- learning curves -------------------------------------------------------------------------------------------------

Curve = tuple[tuple[float, ...], tuple[float, ...]]
"""Steps and values of one seed."""


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
    floor = _mean(floors)
    _draw_floor(axes, [floor], vertical=False)
    if not own:
        place = ("axes fraction", "data")
        axes.annotate("floor of the evaluation", (1.0, floor), xycoords=place, ha="right", va="bottom", fontsize=8.0)


def _reward_floors(experiment: Experiment, results: Results, curves: Iterable[PolicyGroup]) -> tuple[list[float], bool]:
    """The floors that a stage logged, and True; where it logged none, those of the primary evaluation, and False."""
    logged = [value for group in curves for _, values in _curves(group, results, FLOOR) for value in values]
    return (logged, True) if logged else (_floors(experiment, results), False)


def _mean_curve(curves: Sequence[Curve]) -> tuple[list[float], list[float]]:
    """Mean over seeds at the steps that every seed has."""
    by_seed = [dict(zip(steps, values, strict=True)) for steps, values in curves]
    shared = sorted(set.intersection(*(set(seed) for seed in by_seed)))
    return shared, [_mean([seed[step] for seed in by_seed]) for step in shared]


# ---- looks and files -----------------------------------------------------------------------------------------------


def _floors(experiment: Experiment, results: Results) -> list[float]:
    """Guessing floor of the primary metric in each seed; empty for a metric that has none, or is corrected already."""
    reading = experiment.primary
    floors: dict[int, float] = {}
    for score in results.scores:
        if (score.evaluation, score.band) != (reading.evaluation, reading.band):
            continue
        if score.metric == f"{reading.metric}_{FLOOR}":
            floors.setdefault(score.seed, score.value)
    return [floor for floor in floors.values() if floor < 1.0 and not reading.metric.endswith(CORRECTED)]


def _draw_floor(axes: Axes, floors: Sequence[float], *, vertical: bool) -> None:
    for floor in sorted(set(floors)):
        line = axes.axvline if vertical else axes.axhline
        line(floor, color="#000000", linestyle="--", linewidth=1.0, zorder=1)


def _stage_look(index: int) -> tuple[str, str]:
    colours = (SHARED, *OKABE_ITO[::-1][2:], *OKABE_ITO[:2])
    return colours[index % len(colours)], STAGE_MARKERS[index % len(STAGE_MARKERS)]


def _arm_look(experiment: Experiment, group: PolicyGroup) -> tuple[str, str]:
    if group.shared_by_all:
        return SHARED, "-"
    index = experiment.order.index(group.arms[0])
    return _colour(index), _line_style(index)


def _colour(index: int) -> str:
    return OKABE_ITO[index % len(OKABE_ITO)]


def _line_style(index: int) -> str:
    return LINE_STYLES[index // len(OKABE_ITO) % len(LINE_STYLES)]


def _handle(name: str, index: int) -> Line2D:
    colour, marker = _stage_look(index)
    return Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=7.0, label=f"after {name}")


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _fixed(number: float, digits: int) -> str:
    """A number with fixed digits after the point, and never a negative zero."""
    return f"{round(number, digits) + 0.0:.{digits}f}"


def _in_brackets(rows: Iterable[_Row]) -> str:
    return " (in brackets above the guessing floor)" if any(row.corrected for row in rows) else ""


def _svg(figure: Figure, prefix: str) -> str:
    """The figure as one inline ``<svg>`` element whose ids start with ``prefix``."""
    out = StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<style type="text/css">.*?</style>', "", text, flags=re.DOTALL)  # it would style the whole page
    text = re.sub(r'(?<= id=")', f"{prefix}-", text)
    text = re.sub(r"(?<=url\(#)", f"{prefix}-", text)
    text = re.sub(r'(?<=href="#)', f"{prefix}-", text)
    text = re.sub(r'^<svg ([^>]*?)width="[^"]*" ?', r"<svg \1", text)
    text = re.sub(r'^<svg ([^>]*?)height="[^"]*" ?', r"<svg \1", text)
    return text.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1).strip()


def _save(figure: Figure, destination: Path, kind: str) -> None:
    with whole_file(destination) as temporary:
        if kind == "png":
            FigureCanvasAgg(figure)
            figure.savefig(temporary, format="png", dpi=RASTER_DPI, metadata={"Software": None})
        else:
            figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None})
