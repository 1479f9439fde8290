"""What data a stage or an evaluation really used, and whether two of them share a problem.

Every artifact holds ``keys.npy``: the sorted 63-bit hashes of the families of all problems that went through it (see
``Problem.cut``), collected while it ran. Overlap is counted on these, not argued from seeds. (Two different families
share a hash with probability 2^-63: about 1e-9 for a hundred thousand problems against a hundred thousand.)

One problem can give another one away without being of its family: a game of chess shows every position on its way. A
task says so with two methods, and what a training stage ``shown`` is compared with what an evaluation ``asked``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from testbeds.core import Problem, Task
from testbeds.mixture import component_of
from testbeds.streams import seed_from_key

Mark = str | int
"""What identifies something that was used: a key, or a hash of 63 bits that the task computes itself."""

KEYS = "keys.npy"
BUFFER = 1 << 20  # keys held before they are merged: bounds memory at 8 bytes per distinct key


class KeyLog:
    """The distinct problem keys that were seen so far."""

    def __init__(self, known: NDArray[np.int64] | None = None) -> None:
        self._merged = np.zeros(0, dtype=np.int64) if known is None else known
        self._buffer: set[int] = set()

    def add(self, keys: Iterable[Mark]) -> None:
        """Note some keys."""
        self._buffer.update(seed_from_key("problem key", key) if isinstance(key, str) else key for key in keys)
        if len(self._buffer) >= BUFFER:
            self.hashes()

    def hashes(self) -> NDArray[np.int64]:
        """Sorted distinct hashes of all keys so far."""
        if self._buffer:
            self._merged = np.union1d(self._merged, np.fromiter(self._buffer, dtype=np.int64))
            self._buffer = set()
        return self._merged

    def save(self, artifact: Path) -> None:
        """Write the hashes into an artifact."""
        np.save(artifact / KEYS, self.hashes(), allow_pickle=False)


def shown(task: Task, problem: Problem) -> tuple[Mark, ...]:
    """What training on a problem shows: its family, or all that the task's method ``shown`` lists."""
    return _marks("shown", task, problem)


def asked(task: Task, problem: Problem) -> tuple[Mark, ...]:
    """What evaluating on a problem asks, which no training may have shown: its family, or what ``asked`` lists."""
    return _marks("asked", task, problem)


def _marks(method: str, task: Task, problem: Problem) -> tuple[Mark, ...]:
    _, component, inner = component_of(task, problem)
    listed = getattr(component, method, None)
    return tuple(listed(inner)) if callable(listed) else (problem.cut,)


def keys_of(artifact: Path) -> NDArray[np.int64]:
    """Sorted hashes of the problem keys that an artifact used."""
    hashes: NDArray[np.int64] = np.load(artifact / KEYS, allow_pickle=False)
    return hashes


def overlap(first: Path, second: Path) -> int:
    """Number of problems that two artifacts have both used."""
    return int(np.intersect1d(keys_of(first), keys_of(second), assume_unique=True).size)
