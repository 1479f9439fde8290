"""KL to the parent policy: three estimators, two placements (Schulman 2020).

With ``d = log pi - log ref`` at a sampled token: ``k1 = d``, ``k2 = d^2/2``, ``k3 = exp(-d) - 1 + d``. The placement
decides which divergence is optimised. In the reward (constant, detached) k1 gives the gradient of the reverse KL. In
the loss (differentiated through log pi) k1 has expected gradient 0, k2 has that of the reverse KL(pi || ref), and k3
that of the forward KL(ref || pi). ``tests/training/test_kl.py`` enumerates all six.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor

EXPONENT_BOUND = 20.0  # an exponent beyond this is a broken reference, not a divergence

Estimator = Literal["k1", "k2", "k3"]


def kl_estimate(
    logp_BT: Float[Tensor, "B T"], reference_BT: Float[Tensor, "B T"], estimator: Estimator
) -> Float[Tensor, "B T"]:
    """Per-token estimate of KL(policy || reference) in nats from samples of the policy, with gradient."""
    gap_BT = logp_BT - reference_BT
    if estimator == "k1":
        return gap_BT
    if estimator == "k2":
        return gap_BT.square() / 2
    # Bounded as a whole: a bound on the exponent alone would leave a gradient of the wrong sign beyond it.
    bounded_BT = gap_BT.clamp(-EXPONENT_BOUND, EXPONENT_BOUND)
    return (-bounded_BT).exp() - 1 + bounded_BT


@dataclass(frozen=True, slots=True, kw_only=True)
class KL:
    """A penalty that keeps the policy near its parent."""

    revision: ClassVar[int] = 1
    coefficient: float
    """Weight beta of the penalty, in reward (or loss) per nat."""
    estimator: Estimator = "k1"
    placement: Literal["reward", "loss"] = "reward"
    """``reward``: R - beta sum_t k(y_t), detached; ``loss``: + beta k(y_t) per token, aggregated like the loss."""
    weighted: bool = False
    """In the loss: multiply k by the detached importance ratio, which keeps its gradient right when several updates are
    made per rollout batch. Published GRPO does not."""

    def __post_init__(self) -> None:
        if not 0 < self.coefficient < math.inf:
            raise ValueError(
                f"KL.coefficient must be positive and finite, got {self.coefficient}; use kl=None for no penalty"
            )
        if self.weighted and self.placement == "reward":
            raise ValueError("KL.weighted is about the loss; in the reward the policy loss's own ratio does it")
        if self.estimator not in ("k1", "k2", "k3"):
            raise ValueError(f"KL.estimator must be k1, k2 or k3, got {self.estimator!r}")
        if self.placement not in ("reward", "loss"):
            raise ValueError(f"KL.placement must be reward or loss, got {self.placement!r}")
        if (self.estimator, self.placement) == ("k1", "loss"):
            raise ValueError(
                "k1 in the loss has an expected gradient of exactly 0 and would only add noise;"
                " put k1 in the reward, or use k2 in the loss for the same divergence"
            )
