"""Rewards as fields of a stage: what a rollout is paid, and when it counts as an answer at all.

An answer is a completion that *ended*: one that was cut at the token budget is never correct, whatever it contains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from testbeds.core import Problem, Task, Verdict
from testbeds.streams import stream
from testbeds.verifiers import Verifier


@runtime_checkable
class Reward(Protocol):
    """Turns the verdicts of a batch into rewards."""

    def __call__(self, correct_PG: Float[Tensor, "P G"], seed: int, step: int) -> Float[Tensor, "P G"]:
        """Rewards of P problems x G rollouts; ``seed`` and ``step`` key any randomness."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """1 for a correct completion, 0 for any other."""

    revision: ClassVar[int] = 1

    def __call__(self, correct_PG: Float[Tensor, "P G"], seed: int, step: int) -> Float[Tensor, "P G"]:
        return correct_PG


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled:
    """The rewards of ``of``, permuted over the whole batch: a placebo with the same rewards and no information."""

    revision: ClassVar[int] = 1
    of: Reward = Outcome()

    def __call__(self, correct_PG: Float[Tensor, "P G"], seed: int, step: int) -> Float[Tensor, "P G"]:
        reward_PG = self.of(correct_PG, seed, step)
        order = stream("shuffled reward", seed, step).permutation(reward_PG.numel())
        shuffled = reward_PG.flatten()[torch.from_numpy(order.astype(np.int64)).to(reward_PG.device)]
        return shuffled.reshape(reward_PG.shape)


def judge(verifier: Verifier, task: Task, problem: Problem, completion: str, *, flaw: str | None) -> Verdict:
    """The verdict on a sampled completion. One with a ``flaw`` (see ``sampling_flaw``) is not an answer."""
    if flaw is None:
        return verifier(task, problem, completion)
    return Verdict(correct=False, well_formed=False, progress=0.0, reason=flaw)


def sampling_flaw(ids: Sequence[int], *, finished: bool, reserved: frozenset[int], max_new_tokens: int) -> str | None:
    """Why a sampled completion is no text at all: cut off, or with a reserved token that its text would not show."""
    if not finished:
        return f"did not end within {max_new_tokens} tokens"
    if not reserved.isdisjoint(ids):
        return "contains a reserved token, which no text can contain"
    return None
