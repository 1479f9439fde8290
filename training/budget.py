"""Budgets: what a study holds equal, in steps, tokens or FLOPs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from training.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a stage stops: after the first step that reaches the one limit that is given.

    A step is never cut short, so a stage that is limited in tokens or FLOPs may exceed its limit by less than the
    cost of one step; the ledger holds what was really spent.
    """

    revision: ClassVar[int] = 1
    steps: int | None = None
    """Optimizer steps (in RL: rollout batches)."""
    tokens: int | None = None
    """Tokens of the training batches without padding, prompt and completion; in RL of all rollouts, also of those that
    carry no gradient and cost no FLOPs of training: a batch without signal still uses the budget up."""
    flops: int | None = None
    """Training and sampling FLOPs of the stage, exact (see ``models.flops``); evaluation excluded."""

    def __post_init__(self) -> None:
        given = {name: limit for name in ("steps", "tokens", "flops") if (limit := getattr(self, name)) is not None}
        if len(given) != 1:
            raise ValueError(f"a Budget has exactly one limit (steps, tokens or flops), got {given or 'none'}")
        for name, limit in given.items():
            if not isinstance(limit, int) or limit < 1:
                raise ValueError(f"Budget.{name} must be a whole number of at least 1, got {limit}")

    @property
    def limit(self) -> int:
        """The limit, in the unit of the budget."""
        return self.steps or self.tokens or self.flops or 0

    def spent(self, ledger: Ledger) -> int:
        """What a ledger has used of this budget, in the unit of the budget."""
        if self.steps is not None:
            return ledger.steps
        if self.tokens is not None:
            return ledger.training.tokens
        return ledger.training.flops + ledger.sampling.flops

    def exhausted(self, ledger: Ledger) -> bool:
        """Whether no further step is due."""
        return self.spent(ledger) >= self.limit

    def fraction(self, ledger: Ledger) -> float:
        """The share of the budget that a ledger has used, in [0, 1]: what schedules run on."""
        return min(1.0, self.spent(ledger) / self.limit)

    def describe(self) -> str:
        """The limit in words."""
        if self.steps is not None:
            return f"{self.steps:,} steps"
        if self.tokens is not None:
            return f"{self.tokens:,} tokens"
        return f"{self.flops:.3g} FLOPs"
