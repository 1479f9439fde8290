"""What a person sees of a run: live bars on a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from experiments.graph import Node, title
from experiments.progress import Snapshot
from experiments.worker import Outcome

HEARTBEAT_S = 30.0  # between plain lines on what is running
BAR_WIDTH = 12
ABOVE_FLOOR = "accuracy_corrected"


class Display(Protocol):
    """Follows a run. Used as a context manager; nothing that it does may change the run."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def begin(self, *, total: int, reused: int) -> None:
        """The plan has ``total`` nodes, of which ``reused`` are in the store."""
        ...

    def started(self, node: Node) -> None:
        """A worker has taken the node."""
        ...

    def update(self, running: Mapping[str, Snapshot | None], *, left_s: float | None) -> None:
        """The progress of the running nodes by id, and the seconds that the whole run may still take."""
        ...

    def busy(self, node: Node) -> None:
        """Another run on this store is making the node."""
        ...

    def retried(self, node: Node, deaths: int) -> None:
        """The node's worker died; the node goes back into the queue."""
        ...

    def finished(self, node: Node, outcome: Outcome) -> None:
        """The node's artifact is in the store."""
        ...

    def failed(self, node: Node, message: str) -> None:
        """The node raised; no further node starts."""
        ...


class Lines:
    """One plain line for each event, and a heartbeat."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._done = self._total = 0
        self._names: dict[str, str] = {}
        self._elsewhere: set[str] = set()
        self._beat = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def begin(self, *, total: int, reused: int) -> None:
        self._total, self._done = total, reused
        self._print(f"{total} stages and evaluations, {reused} reused, {total - reused} to run")

    def started(self, node: Node) -> None:
        self._names[node.id] = title(node)

    def update(self, running: Mapping[str, Snapshot | None], *, left_s: float | None) -> None:
        if time.monotonic() - self._beat < HEARTBEAT_S:
            return
        self._beat = time.monotonic()
        for node_id, seen in running.items():
            if seen is not None:
                self._print(f"        {seen.share:4.0%}  {self._names[node_id]}  {headline(seen.metrics)}".rstrip())
        if left_s is not None:
            self._print(f"        {_left(left_s)}")

    def busy(self, node: Node) -> None:
        if node.id in self._elsewhere:  # the driver looks again every second, and the line would say nothing new
            return
        self._elsewhere.add(node.id)
        self._print(f"another run is making: {title(node)}")

    def retried(self, node: Node, deaths: int) -> None:
        self._print(f"a worker died (time {deaths}), trying again from its checkpoint: {title(node)}")

    def finished(self, node: Node, outcome: Outcome) -> None:
        self._done += 1
        if outcome.status == "found":
            self._print(f"[{self._done}/{self._total}] made by another run: {title(node)}")
            return
        facts = f"{duration(outcome.seconds)}  {headline(outcome.metrics)}".rstrip()
        self._print(f"[{self._done}/{self._total}] {title(node)}  {facts}")

    def failed(self, node: Node, message: str) -> None:
        self._print(f"failed: {title(node)}: {message}")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bars:
    """One bar for the whole run and one for each running node, above them the lines of what is done."""

    def __init__(self, console: Console) -> None:
        self._lines = Lines(console)
        self._progress = Progress(
            # On a narrow terminal the description gives way; the numbers stay.
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)),
            BarColumn(bar_width=BAR_WIDTH, table_column=Column(min_width=BAR_WIDTH)),
            _Count(table_column=Column(no_wrap=True, min_width=9, justify="right")),
            TextColumn("{task.fields[metric]}", style="cyan", markup=False, table_column=Column(min_width=12)),
            TextColumn("{task.fields[left]}", style="dim", markup=False, table_column=Column(min_width=11)),
            console=console,
            expand=True,
            transient=True,
        )
        self._bars: dict[str, TaskID] = {}
        self._first: dict[str, tuple[float, int]] = {}
        self._whole: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begin(self, *, total: int, reused: int) -> None:
        self._lines.begin(total=total, reused=reused)
        self._whole = self._add("all stages and evaluations", total, reused)

    def started(self, node: Node) -> None:
        self._bars[node.id] = self._add(title(node), None, 0)

    def update(self, running: Mapping[str, Snapshot | None], *, left_s: float | None) -> None:
        if self._whole is not None:
            self._progress.update(self._whole, left=_left(left_s))
        for node_id, seen in running.items():
            if seen is not None:
                self._progress.update(
                    self._bars[node_id],
                    total=seen.total,
                    completed=seen.done,
                    metric=headline(seen.metrics),
                    left=_left(self._left_s(node_id, seen)),
                )

    def busy(self, node: Node) -> None:
        self._drop(node)
        self._lines.busy(node)

    def retried(self, node: Node, deaths: int) -> None:
        self._drop(node)
        self._lines.retried(node, deaths)

    def finished(self, node: Node, outcome: Outcome) -> None:
        self._drop(node)
        self._lines.finished(node, outcome)
        if self._whole is not None:
            self._progress.advance(self._whole)

    def failed(self, node: Node, message: str) -> None:
        self._drop(node)
        self._lines.failed(node, message)

    def _add(self, name: str, total: int | None, done: int) -> TaskID:
        return self._progress.add_task(name, total=total, completed=done, metric="", left="")

    def _drop(self, node: Node) -> None:
        self._first.pop(node.id, None)
        self._progress.remove_task(self._bars.pop(node.id))

    def _left_s(self, node_id: str, seen: Snapshot) -> float | None:
        """By the rate since this process first saw the node: a resumed node does not start at 0."""
        now = time.monotonic()
        then, done = self._first.setdefault(node_id, (now, seen.done))
        if seen.done <= done:
            return None
        return (now - then) * (seen.total - seen.done) / (seen.done - done)


class _Count(ProgressColumn):
    """``done/total``, in thousands of millions where the unit is FLOPs."""

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text("starting", style="dim")
        return Text(f"{_short(task.completed)}/{_short(task.total)}")


def headline(metrics: Mapping[str, float]) -> str:
    """What tells most about a node in work: its reward, with the accuracy above what guessing gives, or its loss."""
    if "reward" in metrics:
        above = f", above floor {metrics[ABOVE_FLOOR]:.2f}" if ABOVE_FLOOR in metrics else ""
        return f"reward {metrics['reward']:.2f}{above}"
    return f"loss {metrics['loss']:.3f}" if "loss" in metrics else ""


def duration(seconds: float) -> str:
    """Seconds in words, short."""
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 3600 * 2:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f"{duration(seconds)} left"


def _short(count: float) -> str:
    return f"{count:,.0f}" if count < 1e6 else f"{count:.3g}"


@contextmanager
def rows_bar(console: Console, total: int) -> Iterator[Callable[[int], None]]:
    """Follows the writing of ``total`` rows: a function to tell how many are finished. Plain lines off a terminal."""
    if not console.is_terminal:
        yield _row_lines(console, total)
        return
    columns = (TextColumn("problems"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("problems", total=total)
        yield lambda done: progress.update(bar, completed=done)


def _row_lines(console: Console, total: int) -> Callable[[int], None]:
    beat = time.monotonic()

    def report(done: int) -> None:
        nonlocal beat
        if time.monotonic() - beat >= HEARTBEAT_S:
            beat = time.monotonic()
            console.print(f"{done} of {total} problems")

    return report
