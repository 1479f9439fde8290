"""Rows of a suite in their order, made by any number of processes and kept in parts, so that a stop loses little.

The rows of a split are those of ``Suite.distinct``, in order, without the problems that have no trace in the asked
style. Which they are depends on the suite and the style alone: blocks of problems are made anywhere, in any order, and
joined in one place. A part is the rows of some consecutive blocks, as many as are made in seconds; whoever resumes
starts at the first block that is in no finished part, with the keys that the parts hold.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain, takewhile
from itertools import count as count_from
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import TypedDict, cast

from testbeds.core import Problem, TraceStyle, Unrealisable
from testbeds.demonstrations import MOST_REJECTED, Demonstrated, demonstration
from testbeds.mixture import component_of
from testbeds.rows import Row, row_of
from testbeds.suites import Suite, distinct_source, new_in_each

PART_BLOCKS = 256  # 16,384 candidates at most: tens of megabytes of rows in memory
PART_S = 5.0  # after which a part is closed, however small: what a stop loses
JOB_BLOCKS = 8  # 512 problems a job: milliseconds of reading and writing to tenths of a second of work
AHEAD = 3  # jobs in the hands of each worker: enough to keep it busy, few enough to bound memory

Report = Callable[[int], None]
"""Told the number of rows that are finished, of all splits together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be made: everything that the rows depend on. Hashed, so that parts of another order are not taken."""

    suite: Suite
    counts: tuple[tuple[str, int], ...]
    """(split, number of rows)."""
    style: TraceStyle


class PartHead(TypedDict):
    """First line of a part."""

    rows: int
    blocks: int
    """Blocks whose new problems it holds."""
    rejected: int
    """Problems that have no trace in the style."""
    unkept_keys: list[str]
    """Keys of the rejected problems, which are taken as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A problem and its row, or why it has none."""

    key: str
    row: Row | None
    refusal: str = ""


def make_parts(order: Order, directory: Path, *, workers: int, report: Report) -> None:
    """Leaves the parts of every split of ``order`` in ``directory``, taking over those that are there.

    Raises:
        ValueError: where a split does not hold that many problems with such a trace.
    """
    done = 0
    with _pool(workers) as pool:
        for split, count in order.counts:
            made = _SplitParts(order, split, count, directory)
            report(done + made.rows)
            asked = _Asked(order=order, split=split, directory=directory)
            starts = count_from(made.next_block, JOB_BLOCKS)
            blocks = _from_pool(asked, starts, pool, workers) if pool else chain.from_iterable(map(asked.make, starts))
            for rows in made.extend(blocks):
                report(done + rows)
            done += count


def rows_in(order: Order, directory: Path) -> Iterator[Row]:
    """The rows of finished parts, split by split."""
    for split, _ in order.counts:
        for part in _finished(order, directory, split):
            with part.open(encoding="utf-8") as lines:
                next(lines)
                for line in lines:
                    yield cast(Row, json.loads(line))


def rejected_in(order: Order, directory: Path) -> dict[str, int]:
    """Number of rejected problems by split, from finished parts."""
    return {
        split: sum(_head(part)["rejected"] for part in _finished(order, directory, split)) for split, _ in order.counts
    }


class _SplitParts:
    """The parts of one split: what is there, and what is still to come."""

    def __init__(self, order: Order, split: str, count: int, directory: Path) -> None:
        self._order, self._split, self._count, self._directory = order, split, count, directory
        self._seen: set[str] = set()
        self.rows = 0
        self.next_block = 0
        finished = _finished(order, directory, split)
        for part in finished:
            head = _head(part)
            self.rows += head["rows"]
            self.next_block += head["blocks"]
            self._seen.update(head["unkept_keys"])
            with part.open(encoding="utf-8") as lines:
                next(lines)
                self._seen.update(json.loads(line)["key"] for line in lines)
        self._parts = len(finished)

    def extend(self, blocks: Iterable[list[Made]]) -> Iterator[int]:
        """Makes what is missing; gives the number of rows after each block."""
        if self.rows == self._count:
            return
        suite, open_part = self._order.suite, _OpenPart()
        in_a_row = 0
        for fresh in new_in_each(suite, self._split, blocks, self._seen):
            open_part.blocks += 1
            for entry in fresh:
                made = _made(self._order, self._split, entry) if isinstance(entry, Problem) else entry
                open_part.add(made, self.rows)
                in_a_row = 0 if made.row else in_a_row + 1
                self.rows += made.row is not None
                if self.rows == self._count:
                    self._close(open_part)
                    yield self.rows
                    return
                if in_a_row == MOST_REJECTED:
                    raise ValueError(
                        f"{in_a_row} problems in a row have no trace in the style {self._order.style.name!r}:"
                        f" {made.refusal}; ask for a style that this task's problems have, or for larger problems"
                    )
            yield self.rows
            if open_part.is_due():
                self._close(open_part)
                open_part = _OpenPart()
        raise ValueError(
            f"{self._count} distinct problems asked of split {self._split!r}, which holds {self.rows} that can be"
            f" demonstrated in the style {self._order.style.name!r}; ask for fewer, or enlarge the split or the task"
        )

    def _close(self, part: _OpenPart) -> None:
        """Writes a part under a temporary name and renames it: a part is finished or is not there."""
        path = self._directory / f"{_prefix(self._order, self._split)}{self._parts:06}.part"
        temporary = path.with_suffix(".tmp")
        with temporary.open("w", encoding="utf-8") as file:
            file.write(json.dumps(part.head()) + "\n")
            file.writelines(part.lines)
        temporary.replace(path)
        self._parts += 1


class _OpenPart:
    """Rows that wait for their part to be complete."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.blocks = 0
        self._unkept: list[str] = []
        self._opened = time.monotonic()

    def is_due(self) -> bool:
        """Whether it is large or old enough to be closed."""
        return self.blocks >= PART_BLOCKS or time.monotonic() - self._opened >= PART_S

    def add(self, made: Made, index: int) -> None:
        """Takes in a problem; its row, if it has one, stands at ``index`` of its split."""
        if made.row is None:
            self._unkept.append(made.key)
            return
        row = made.row
        row["index"] = row["extra_info"]["index"] = index
        self.lines.append(json.dumps(row, separators=(",", ":")) + "\n")

    def head(self) -> PartHead:
        """What the part's first line says."""
        return PartHead(rows=len(self.lines), blocks=self.blocks, rejected=len(self._unkept), unkept_keys=self._unkept)


def _prefix(order: Order, split: str) -> str:
    """What the names of a split's parts begin with: its place, since its name may be no file's name."""
    return f"{[name for name, _ in order.counts].index(split)}-"


def _finished(order: Order, directory: Path, split: str) -> list[Path]:
    """The finished parts of a split, in order."""
    prefix = _prefix(order, split)
    return list(takewhile(Path.is_file, (directory / f"{prefix}{number:06}.part" for number in count_from())))


def _head(part: Path) -> PartHead:
    with part.open(encoding="utf-8") as lines:
        return cast(PartHead, json.loads(next(lines)))


def _made(order: Order, split: str, problem: Problem) -> Made:
    """The row of a problem, still without its place."""
    _, task, problem = component_of(order.suite.task, problem)
    try:
        trace = demonstration(task, problem, order.style)
    except Unrealisable as refusal:
        return Made(key=problem.key, row=None, refusal=str(refusal))
    found = Demonstrated(problem=problem, style=order.style, trace=trace)
    return Made(key=problem.key, row=row_of(found, task, index=0, split=split))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a job is of; a worker gets it and the first of the job's blocks."""

    order: Order
    split: str
    directory: Path

    def make(self, first: int) -> list[list[Made]]:
        """Blocks ``first`` and following, each problem with its row; the same problem twice in a job is made once."""
        source = distinct_source(self.order.suite, self.split)
        seen: set[str] = set()
        blocks = []
        for number in range(first, first + JOB_BLOCKS):
            fresh = []
            for problem in source.block(number):
                if problem.key not in seen:
                    seen.add(problem.key)
                    fresh.append(_made(self.order, self.split, problem))
            blocks.append(fresh)
        return blocks

    def leave(self, first: int) -> Path:
        """``make`` in a file. A worker that dies while it sends rows through a pipe would leave the parent waiting."""
        path = self.directory / f"{_prefix(self.order, self.split)}{first}.job"
        with path.open("w", encoding="utf-8") as file:
            for block in self.make(first):
                file.write(json.dumps([[made.key, made.row, made.refusal] for made in block]) + "\n")
        return path


def _taken(path: Path) -> list[list[Made]]:
    """The blocks of a job that a worker left."""
    with path.open(encoding="utf-8") as lines:
        blocks = [[Made(key=key, row=row, refusal=why) for key, row, why in json.loads(line)] for line in lines]
    path.unlink()
    return blocks


def _from_pool(asked: _Asked, starts: Iterator[int], pool: ProcessPoolExecutor, workers: int) -> Iterator[list[Made]]:
    """The blocks of all jobs, in order."""
    waiting: deque[Future[Path]] = deque()
    try:
        while True:
            while len(waiting) < AHEAD * workers:
                waiting.append(pool.submit(asked.leave, next(starts)))
            yield from _taken(waiting.popleft().result())
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a worker process died, perhaps for lack of memory; what is finished is kept: the same command, with fewer"
            " --workers, goes on from there"
        ) from error
    finally:
        for future in waiting:
            future.cancel()


def _pool(workers: int) -> AbstractContextManager[ProcessPoolExecutor | None]:
    """Processes that are started afresh: a fork would copy the locks of threads that it does not copy."""
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    if workers == 1:
        return nullcontext()
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=serve_only_the_parent)


def serve_only_the_parent() -> None:
    """Lets the parent alone answer Ctrl-C, and ends this worker when the parent is killed: it would wait for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
