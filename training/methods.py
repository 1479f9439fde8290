"""Policy-gradient methods as declarations: an advantage, a policy loss, an aggregation and regularisers.

The published names are presets. Where frameworks give one name to different losses, each reading is a preset with a
name that says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from training.advantages import Advantage, GroupCentred, GroupNormalised, LeaveOneOut, RewardItself
from training.aggregation import (
    Aggregation,
    ConstantLength,
    SequenceMeanTokenMean,
    SequenceMeanTokenSum,
    TokenMean,
)
from training.kl import KL
from training.policy_losses import ClippedRatio, PolicyLoss, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyGradient:
    """From rewards to gradient: everything about an RL method that is not data or optimizer."""

    revision: ClassVar[int] = 1
    advantage: Advantage
    loss: PolicyLoss
    aggregation: Aggregation
    kl: KL | None = None
    """Penalty towards the parent of the stage; None for none."""
    entropy_bonus: float = 0.0
    """Weight c of ``- c H_t`` per token (nats, training temperature), aggregated like the loss."""

    def __post_init__(self) -> None:
        if self.entropy_bonus < 0:
            raise ValueError(
                f"PolicyGradient.entropy_bonus must be at least 0, got {self.entropy_bonus};"
                " a negative bonus would reward collapse"
            )
        if isinstance(self.advantage, GroupNormalised) and self.kl is not None and self.kl.placement == "reward":
            raise ValueError(
                "GroupNormalised divides by the group's deviation, so in a group with equal outcomes the KL in the"
                " reward would be the whole advantage, however small its coefficient; put the KL in the loss, or use"
                " LeaveOneOut"
            )


REINFORCE: Final = PolicyGradient(advantage=RewardItself(), loss=Score(), aggregation=SequenceMeanTokenSum())
"""Williams 1992, on sequence log-probabilities, no baseline."""

RLOO: Final = PolicyGradient(advantage=LeaveOneOut(), loss=Score(), aggregation=SequenceMeanTokenSum())
"""Ahmadian et al. 2024."""

GRPO: Final = PolicyGradient(
    advantage=GroupNormalised(),
    loss=ClippedRatio(),
    aggregation=SequenceMeanTokenMean(),
    kl=KL(coefficient=0.04, estimator="k3", placement="loss"),
)
"""Shao et al. 2024 as published: sample deviation, sequence means, k3 in the loss with beta 0.04."""

GRPO_AS_TRL: Final = PolicyGradient(
    advantage=GroupNormalised(epsilon=1e-4), loss=ClippedRatio(), aggregation=TokenMean()
)
"""TRL 1.x defaults: loss_type "dapo" (token mean over the whole batch), epsilon 1e-4, beta 0."""

GRPO_AS_VERL: Final = PolicyGradient(
    advantage=GroupNormalised(epsilon=1e-6), loss=ClippedRatio(dual=3.0), aggregation=TokenMean()
)
"""verl defaults: token mean, dual clip 3, no KL."""


def dr_grpo(*, max_tokens: int) -> PolicyGradient:
    """Dr. GRPO (Liu et al. 2025): no deviation, constant normaliser ``max_tokens``, no KL."""
    return PolicyGradient(advantage=GroupCentred(), loss=ClippedRatio(), aggregation=ConstantLength(length=max_tokens))
