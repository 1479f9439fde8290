"""Aggregation: how per-token losses become one number, normalised over the whole optimizer batch.

Each rule turns the mask of an *optimizer batch* (all micro-batches, all ranks) into one weight per token, so that the
loss is ``sum(weight_BT * loss_BT)``. The weights are computed once, before the batch is cut into micro-batches: however
it is cut, the sum is the same. Common abbreviations stand in brackets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What an optimizer batch holds over all micro-batches and ranks."""

    tokens: int
    """Tokens that the mask keeps."""
    sequences: int
    """Sequences with at least one such token: a fully masked sequence does not count."""

    @classmethod
    def of(cls, mask_BT: Bool[Tensor, "B T"]) -> Counts:
        """The counts of one mask."""
        return cls(tokens=int(mask_BT.sum()), sequences=int(mask_BT.any(1).sum()))

    def __add__(self, other: Counts) -> Counts:
        return Counts(tokens=self.tokens + other.tokens, sequences=self.sequences + other.sequences)


@runtime_checkable
class Aggregation(Protocol):
    """A rule that weights the tokens of an optimizer batch."""

    def weights(self, mask_BT: Bool[Tensor, "B T"], counts: Counts) -> Float[Tensor, "B T"]:
        """One weight per token, 0 where the mask is False.

        ``mask_BT`` may be a part of the optimizer batch (the rows of one rank); ``counts`` are those of the whole.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMean:
    """Sum over tokens / number of tokens (TOK): cross-entropy, DAPO."""

    revision: ClassVar[int] = 1

    def weights(self, mask_BT: Bool[Tensor, "B T"], counts: Counts) -> Float[Tensor, "B T"]:
        return mask_BT.float() / max(1, counts.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceMeanTokenMean:
    """Mean over sequences of the mean over their tokens (SMTM): GRPO as published."""

    revision: ClassVar[int] = 1

    def weights(self, mask_BT: Bool[Tensor, "B T"], counts: Counts) -> Float[Tensor, "B T"]:
        length_B = mask_BT.sum(1, keepdim=True).clamp(min=1)
        return mask_BT.float() / length_B / max(1, counts.sequences)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceMeanTokenSum:
    """Mean over sequences of the sum over their tokens (SMTS): REINFORCE and RLOO on sequence log-probabilities."""

    revision: ClassVar[int] = 1

    def weights(self, mask_BT: Bool[Tensor, "B T"], counts: Counts) -> Float[Tensor, "B T"]:
        return mask_BT.float() / max(1, counts.sequences)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantLength:
    """Sum over tokens / (number of sequences x a fixed length) (CONST): Dr. GRPO (Liu et al. 2025).

    The length is declared, never read off the batch: a padded width would change from step to step.
    """

    revision: ClassVar[int] = 1
    length: int
    """The generation budget in tokens, constant through training."""

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"ConstantLength.length is the generation budget, at least 1, got {self.length}")

    def weights(self, mask_BT: Bool[Tensor, "B T"], counts: Counts) -> Float[Tensor, "B T"]:
        return mask_BT.float() / (max(1, counts.sequences) * self.length)


def aggregate(loss_BT: Float[Tensor, "B T"], weight_BT: Float[Tensor, "B T"]) -> Float[Tensor, ""]:
    """The weighted sum of per-token losses. Slots of weight 0 may hold anything, NaN included."""
    return torch.where(weight_BT != 0, loss_BT * weight_BT, torch.zeros_like(loss_BT)).sum()


AGGREGATIONS: Final[tuple[type[Aggregation], ...]] = (
    TokenMean,
    SequenceMeanTokenMean,
    SequenceMeanTokenSum,
    ConstantLength,
)
