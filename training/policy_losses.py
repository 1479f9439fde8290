"""Policy losses: credit to gradient, one number per token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from training.batch import TokenBatch

LOG_RATIO_BOUND = 20.0  # exp(20) = 4.9e8: beyond it a ratio says only "far off policy"


@runtime_checkable
class PolicyLoss(Protocol):
    """A per-token loss on rollouts, aggregated by the stage."""

    def __call__(self, batch: TokenBatch) -> Float[Tensor, "B T"]:
        """Loss of each token; slots outside the mask may hold anything."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """``-A log pi(y_t)``: the score-function gradient, for one update per batch (REINFORCE)."""

    revision: ClassVar[int] = 1

    def __call__(self, batch: TokenBatch) -> Float[Tensor, "B T"]:
        return -batch.need("advantage_BT", "Score") * batch.logp_BT


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedRatio:
    """PPO's clipped surrogate, ``max(-A r, -A clip(r, 1-low, 1+high))`` with ``r = pi / behaviour``.

    Source: Schulman et al. 2017. With ``dual``, tokens of negative advantage cost at most ``-dual A`` (Ye et al. 2020).
    """

    revision: ClassVar[int] = 1
    low: float = 0.2
    """How far below 1 the ratio may pull a token of negative advantage."""
    high: float = 0.2
    """How far above 1 the ratio may push a token of positive advantage; DAPO's clip-higher is 0.28."""
    dual: float | None = None
    """Dual-clip constant c > 1; None for none (verl's default is 3)."""

    def __post_init__(self) -> None:
        if not 0 < self.low <= 1:
            raise ValueError(f"ClippedRatio.low must be in (0, 1], got {self.low}")
        if self.high <= 0:
            raise ValueError(f"ClippedRatio.high must be positive, got {self.high}")
        if self.dual is not None and self.dual <= 1:
            raise ValueError(f"ClippedRatio.dual must be above 1, or None for no dual clip, got {self.dual}")

    def __call__(self, batch: TokenBatch) -> Float[Tensor, "B T"]:
        advantage_BT = batch.need("advantage_BT", "ClippedRatio")
        ratio_BT = importance_ratio(batch)
        clipped_BT = ratio_BT.clamp(1 - self.low, 1 + self.high)
        loss_BT = torch.maximum(-advantage_BT * ratio_BT, -advantage_BT * clipped_BT)
        if self.dual is None:
            return loss_BT
        return torch.where(advantage_BT < 0, torch.minimum(loss_BT, -self.dual * advantage_BT), loss_BT)


def importance_ratio(batch: TokenBatch) -> Float[Tensor, "B T"]:
    """``pi(y_t) / behaviour(y_t)``, with the log-ratio clamped to +-20."""
    log_ratio_BT = batch.logp_BT - batch.need("behaviour_BT", "the importance ratio")
    return log_ratio_BT.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).exp()


def clipped_tokens(batch: TokenBatch, loss: ClippedRatio) -> int:
    """Number of trained tokens whose gradient the clip silences: r > 1+high at A > 0, r < 1-low at A < 0."""
    ratio_BT = importance_ratio(batch).detach()
    advantage_BT = batch.need("advantage_BT", "counting clipped tokens")
    high_BT = (advantage_BT > 0) & (ratio_BT > 1 + loss.high)
    low_BT = (advantage_BT < 0) & (ratio_BT < 1 - loss.low)
    return int(((high_BT | low_BT) & batch.mask_BT).sum())


POLICY_LOSSES: Final[tuple[type[PolicyLoss], ...]] = (Score, ClippedRatio)
