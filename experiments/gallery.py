"""Problems, traces and completions in a form that people read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from experiments.lengths import lengths_of
from testbeds.core import Problem, Task, Trace, Verdict
from testbeds.gallery import drawing

if TYPE_CHECKING:  # the gallery shows problems without torch, too
    from experiments.sampling import Answered
    from training.probes import Probe

LIKELIEST: Final = 5  # choices of a problem that are shown with their probabilities


def problem_panel(heading: str, task: Task, problem: Problem, trace: Trace) -> RenderableType:
    """One problem with its worked solution, and what the verifier says of that."""
    verdict = task.verify(problem, trace.text)
    rows: list[tuple[str, RenderableType]] = [("problem", Text(problem.prompt, style="bold"))]
    drawn = drawing(task, problem)
    rows += [("drawn", Text(drawn))] if drawn else []
    rows += [
        ("step" if i == 0 else "", Text(step.text or _unwritten(step.operation, step.result)))
        for i, step in enumerate(trace.steps)
    ]
    rows += [
        ("completion", Text(trace.text)),
        ("answer", Text(trace.answer, style="bold")),
        ("verdict", verdict_text(verdict)),
        ("features", Text(features_text(problem.features))),
        ("floor", Text(f"{task.floor(problem):.3g}, the success probability of the best blind guess")),
        ("key", Text(problem.key, style="dim")),
    ]
    return Panel(_grid(rows), title=Text(heading), title_align="left", border_style="dim")


def levels_table(name: str, ladder: Mapping[str, Task]) -> RenderableType:
    """The named difficulties of a testbed with the numbers that a study must fit: context, token budget, bands."""
    measured = {level: lengths_of(task) for level, task in ladder.items()}
    (problems,) = {each.problems for each in measured.values()}
    heading = (
        f"Levels of {name}; the longest prompt and trace of {problems} problems, in tokens; traces with their end token"
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("level")
    table.add_column("prompt", justify="right")
    table.add_column("trace", justify="right")
    table.add_column("features, for Evaluation.band")
    for level, each in measured.items():
        table.add_row(level, str(each.prompt), str(each.trace), ", ".join(each.features) or "none")
    return Group(Text(heading, style="bold"), table, "")


def completion_panel(heading: str, answered: Answered) -> RenderableType:
    """One problem with what a policy said to it, the verdict on each completion, and what it would answer at once."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for text, verdict in answered.completions:
        table.add_row(Text(text or "(nothing)"), verdict_text(verdict))
    rows: list[tuple[str, RenderableType]] = [("problem", Text(answered.problem.prompt, style="bold"))]
    rows += [("drawn", Text(answered.drawn))] if answered.drawn else []
    rows += [("completions", table)]
    rows += [("at once", _choices(answered.probed))] if answered.probed else []
    return Panel(Group(_grid(rows)), title=Text(heading), title_align="left", border_style="dim")


def _choices(probed: Probe) -> RenderableType:
    """The likeliest choices with their exact probabilities, and what all of them come to."""
    number, mass = len(probed.choices), probed.means["legal_mass"]
    listed = f"the {LIKELIEST} likeliest of {number}" if number > LIKELIEST else f"all {number}"
    heading = f"exact probability at temperature 1 of an answer without working: {listed}; all together {mass:.3g}"
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for text, probability, is_correct in probed.rows[:LIKELIEST]:
        word, style = ("correct", "green") if is_correct else ("wrong", "red")
        table.add_row(Text(text), Text(f"{probability:.3g}"), Text(word, style=style))
    return Group(Text(heading), table)


def verdict_text(verdict: Verdict) -> Text:
    """A verdict as one coloured line."""
    word, style = ("correct", "green") if verdict.correct else ("wrong", "red")
    return Text.assemble((word, style), f": {verdict.reason}")


def features_text(features: Mapping[str, int | float]) -> str:
    """Features as ``name value`` pairs."""
    return ", ".join(f"{name} {value:g}" for name, value in sorted(features.items())) or "none"


def console() -> Console:
    """Standard output; as wide as the terminal, and wide enough for any problem elsewhere.

    Text is printed as it is: a file name or a claim may hold ``[b]`` or ``:x:``, which Rich would take for its own.
    """
    standard = Console(highlight=False, markup=False, emoji=False)
    return standard if standard.is_terminal else Console(highlight=False, markup=False, emoji=False, width=120)


def _grid(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, content in rows:
        grid.add_row(name, content)
    return grid


def _unwritten(operation: str, result: str) -> str:
    return f"({operation} gives {result}; not written in this style)"
