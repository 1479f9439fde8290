"""Progress of work that goes on in other processes.

A worker writes a small file into its workspace, at most a few times a second, and the driver reads the files of the
running nodes. There is no queue between them: a queue has a lock, and a worker that is killed while it holds the lock
would stop all others. A file needs nothing of anybody, and works on a shared file system as well.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a worker imports this module before it may import torch, which training does
    from training.execution import Progress

FILE = "progress.json"
INTERVAL_S = 0.2  # five updates a second look live and cost nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The progress of work in another process, as last written."""

    done: int
    total: int
    metrics: Mapping[str, float]
    """The newest values worth a look, such as ``loss`` or ``reward``."""

    @property
    def share(self) -> float:
        """The part that is done, in [0, 1]."""
        return min(1.0, self.done / self.total) if self.total else 0.0


class ProgressFile:
    """Reports by writing a file; called by the job after every step."""

    def __init__(self, workspace: Path) -> None:
        self.metrics: Mapping[str, float] = {}
        self._file = workspace / FILE
        self._due = 0.0

    def __call__(self, progress: Progress) -> None:
        """Note the progress; most calls only compare a clock."""
        self.metrics = progress.metrics
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + INTERVAL_S
        unfinished = self._file.with_suffix(".tmp")
        metrics = {name: float(value) for name, value in progress.metrics.items()}
        entries = {"done": progress.done, "total": progress.total, "metrics": metrics}
        with suppress(OSError):  # a disk that is full fails the work itself, never its progress bar
            unfinished.write_text(json.dumps(entries), encoding="utf-8")
            unfinished.replace(self._file)


def read_progress(workspace: Path) -> Snapshot | None:
    """The newest progress of the work in ``workspace``; None before the first."""
    try:
        return Snapshot(**json.loads((workspace / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # not there yet, or left behind by a version that wrote other fields
        return None
