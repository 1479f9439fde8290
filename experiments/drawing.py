"""What all figures share: palette, style, guessing floor, and files with the same bytes for the same results.

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

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from experiments.experiment import Experiment
from experiments.files import whole_file
from experiments.results import CORRECTED, FLOOR, Results

OKABE_ITO: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SHARED: Final = "#6E6E6E"  # what all arms share belongs to none of them
LINE_STYLES: Final = ("-", "--", ":", "-.")
STAGE_MARKERS: Final = ("o", "s", "D", "^", "v", "P")
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


def floors_of(experiment: Experiment, results: Results) -> list[float]:
    """Guessing floor of the primary metric in each seed; empty for a metric that has none, or is corrected already."""
    reading = experiment.primary
    floors: dict[int, float] = {}
    for score in results.scores:
        if (score.evaluation, score.band) != (reading.evaluation, reading.band):
            continue
        if score.metric == f"{reading.metric}_{FLOOR}":
            floors.setdefault(score.seed, score.value)
    return [floor for floor in floors.values() if floor < 1.0 and not reading.metric.endswith(CORRECTED)]


def draw_floor(axes: Axes, floors: Sequence[float], *, vertical: bool) -> None:
    """Draw a dashed line at each different floor."""
    for floor in sorted(set(floors)):
        line = axes.axvline if vertical else axes.axhline
        line(floor, color="#000000", linestyle="--", linewidth=1.0, zorder=1)


def arm_colour(index: int) -> str:
    """The colour of the arm with this place in the order."""
    return OKABE_ITO[index % len(OKABE_ITO)]


def arm_line_style(index: int) -> str:
    """The line style of the arm with this place in the order: another one when the colours are used up."""
    return LINE_STYLES[index // len(OKABE_ITO) % len(LINE_STYLES)]


def mean_of(values: Sequence[float]) -> float:
    """The mean, summed without rounding."""
    return math.fsum(values) / len(values)


def fixed(number: float, digits: int) -> str:
    """A number with fixed digits after the point, and never a negative zero."""
    return f"{round(number, digits) + 0.0:.{digits}f}"


def svg_of(figure: Figure, prefix: str) -> str:
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


def save_figure(figure: Figure, destination: Path, kind: str) -> None:
    """Write the figure as ``svg`` or ``png``, whole or not at all."""
    with whole_file(destination) as temporary:
        if kind == "png":
            FigureCanvasAgg(figure)
            figure.savefig(temporary, format="png", dpi=RASTER_DPI, metadata={"Software": None})
        else:
            figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None})


def stage_names(stages: Iterable[tuple[int, str]]) -> list[str]:
    """Names of stages in the order of a pipeline: by the latest place that each has in an arm."""
    latest: dict[str, int] = {}
    for index, name in stages:
        latest[name] = max(index, latest.get(name, index))
    return sorted(latest, key=latest.__getitem__)
