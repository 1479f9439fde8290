"""Supervised objectives: per-token losses on given text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from training.batch import TokenBatch


@runtime_checkable
class Objective(Protocol):
    """A per-token loss, aggregated by the stage."""

    def __call__(self, batch: TokenBatch) -> Float[Tensor, "B T"]:
        """Loss of each token in nats; slots outside the mask may hold anything."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEntropy:
    """Negative log-likelihood in nats, ``-log pi(y_t)``."""

    revision: ClassVar[int] = 1

    def __call__(self, batch: TokenBatch) -> Float[Tensor, "B T"]:
        return -batch.logp_BT


OBJECTIVES: Final[tuple[type[Objective], ...]] = (CrossEntropy,)
