"""Who judges a completion: the task itself, or a verifier that errs (see noise.py).

A verifier is a value that a stage or an evaluation declares, so that a faulty one is a factor of an experiment like any
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from testbeds.core import Problem, Task, Verdict


@runtime_checkable
class Verifier(Protocol):
    """Judges one completion of one problem."""

    def __call__(self, task: Task, problem: Problem, completion: str) -> Verdict:
        """The verdict; equal arguments give equal verdicts."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """The task's own verdict."""

    revision: ClassVar[int] = 1

    def __call__(self, task: Task, problem: Problem, completion: str) -> Verdict:
        return task.verify(problem, completion)
