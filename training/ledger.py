"""The compute ledger: what a stage has spent on training, sampling and evaluation, counted apart."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Tokens, FLOPs and CPU seconds of one kind of work."""

    tokens: int = 0
    """Without padding. For sampling: the tokens that were sampled."""
    flops: int = 0
    """Exact matrix-multiply and attention FLOPs (a multiply-add is 2)."""
    cpu_s: float = 0.0
    """Process CPU seconds: a measurement of this machine, never an input to anything."""

    def __add__(self, other: Spent) -> Spent:
        return Spent(tokens=self.tokens + other.tokens, flops=self.flops + other.flops, cpu_s=self.cpu_s + other.cpu_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Everything that a stage has spent so far."""

    steps: int = 0
    training: Spent = Spent()
    """Forward and backward passes, scoring by a reference policy included."""
    sampling: Spent = Spent()
    """Rollouts and their verification."""
    evaluation: Spent = Spent()
    """Measurements; they never count against a budget."""

    def plus(self, *, steps: int = 0, training: Spent = Spent(), sampling: Spent = Spent()) -> Ledger:  # frozen
        """This ledger after more work."""
        return replace(
            self, steps=self.steps + steps, training=self.training + training, sampling=self.sampling + sampling
        )

    def to_json(self) -> dict[str, Any]:
        """The ledger as plain numbers."""
        return asdict(self)

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Ledger:
        """The ledger that ``to_json`` wrote."""
        return cls(
            steps=entries["steps"],
            training=Spent(**entries["training"]),
            sampling=Spent(**entries["sampling"]),
            evaluation=Spent(**entries["evaluation"]),
        )
