"""Execution: where and how a stage runs. Nothing here may change a result, so nothing here is hashed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Device = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Device and checkpoint cadence of a run."""

    device: Device = "auto"
    """``auto`` takes CUDA where there is one, else the CPU."""
    checkpoint_every_s: float = 20.0
    """Seconds between checkpoints: the most work that a kill can cost. 0 writes one after every step."""

    def __post_init__(self) -> None:
        if self.device not in ("auto", "cpu", "cuda"):
            raise ValueError(f"Execution.device must be auto, cpu or cuda, got {self.device!r}")
        if self.checkpoint_every_s < 0:
            raise ValueError(f"Execution.checkpoint_every_s must be at least 0, got {self.checkpoint_every_s}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a stage or an evaluation is, for a progress bar."""

    done: int
    total: int
    """In the unit of the stage's budget (steps, tokens or FLOPs), or problems for an evaluation."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The newest values worth a look, such as ``loss`` or ``reward``."""


Reporter = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Report to nobody."""
