"""The Stage protocol: what the one training loop asks of pretraining, fine-tuning and reinforcement learning alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from models import Transformer
from testbeds.core import Task
from training.audit import Mark
from training.budget import Budget
from training.learner import Learner
from training.ledger import Ledger, Spent
from training.optimizers import AdamW


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What one step did."""

    metrics: Mapping[str, float]
    """Numbers of this step for metrics.jsonl, the same on every run of the recipe (no times)."""
    keys: tuple[Mark, ...]
    """What the problems that were used have shown, for the audit."""
    training: Spent
    sampling: Spent = field(default_factory=Spent)


StepFunction = Callable[[int, Ledger], StepResult]
"""``(step, ledger before it) -> result``. The data of step t is a pure function of the stage's seed and t."""


@runtime_checkable
class Stage(Protocol):
    """One training step of a pipeline, as a frozen dataclass."""

    @property
    def name(self) -> str:
        """The stage's kind, such as ``RL``."""
        ...

    @property
    def seed(self) -> int:
        """Keys the data order and the sampling noise of the stage."""
        ...

    @property
    def budget(self) -> Budget:
        """When the stage stops."""
        ...

    @property
    def optimizer(self) -> AdamW:
        """A new optimizer for each stage: its state is not handed on."""
        ...

    @property
    def task(self) -> Task:
        """The task that the stage's problems come from."""
        ...

    def longest(self) -> int:
        """The longest sequence in tokens among the first of the stage, end token included."""
        ...

    def describe(self) -> str:
        """One line for a plan or a report."""
        ...

    def estimated_flops(self, model: Transformer, vocabulary: int) -> int:
        """Expected training and sampling FLOPs."""
        ...

    def start(self, learner: Learner) -> StepFunction:
        """The stage's step, bound to a learner. Called once per process, also on resume: it must hold no progress."""
        ...
