"""TokenBatch: what every objective sees, supervised or reinforced."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBatch:
    """Per-token quantities of one micro-batch. Row b, position t is the target token t of sequence b.

    All log-probabilities are in nats, at the training temperature. Slots where ``mask_BT`` is False hold garbage.
    """

    logp_BT: Float[Tensor, "B T"]
    """log pi(token) under the policy in training; carries the gradient."""
    mask_BT: Bool[Tensor, "B T"]
    """Tokens that are trained on."""
    advantage_BT: Float[Tensor, "B T"] | None = None
    """Credit of each token; None for supervised batches."""
    behaviour_BT: Float[Tensor, "B T"] | None = None
    """log-probability under the policy that sampled the token; None for supervised batches."""
    reference_BT: Float[Tensor, "B T"] | None = None
    """log-probability under the frozen parent; None where no term asks for it."""
    entropy_BT: Float[Tensor, "B T"] | None = None
    """Entropy of the next-token distribution in nats, with gradient; None where no term asks for it."""

    def need(self, name: str, who: str) -> Tensor:
        """The field ``name``; ValueError where the batch does not have it."""
        value: Tensor | None = getattr(self, name)
        if value is None:
            raise ValueError(f"{who} needs TokenBatch.{name}, and this batch has none")
        return value
