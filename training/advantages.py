"""Advantages: rewards of groups of rollouts to the credit of each rollout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class Advantage(Protocol):
    """Maps the rewards of P problems x G rollouts to advantages."""

    def __call__(self, reward_PG: Float[Tensor, "P G"]) -> Float[Tensor, "P G"]:
        """The advantage of each rollout. Raises ValueError where the group size gives none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardItself:
    """The reward, without a baseline (REINFORCE; Williams 1992)."""

    revision: ClassVar[int] = 1

    def __call__(self, reward_PG: Float[Tensor, "P G"]) -> Float[Tensor, "P G"]:
        return reward_PG


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCentred:
    """Reward minus the mean reward of the whole batch (REINFORCE with a batch baseline)."""

    revision: ClassVar[int] = 1

    def __call__(self, reward_PG: Float[Tensor, "P G"]) -> Float[Tensor, "P G"]:
        return reward_PG - reward_PG.mean()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCentred:
    """Reward minus the mean reward of its group, own sample included (Dr. GRPO)."""

    revision: ClassVar[int] = 1

    def __call__(self, reward_PG: Float[Tensor, "P G"]) -> Float[Tensor, "P G"]:
        _need_group(reward_PG, "the group mean", minimum=2)
        return reward_PG - reward_PG.mean(1, keepdim=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOneOut:
    """Reward minus the mean reward of the *other* members of its group (RLOO; Kool et al. 2019).

    ``A_i = R_i - mean_{j != i} R_j = G/(G-1) (R_i - mean R)``: unbiased.
    """

    revision: ClassVar[int] = 1

    def __call__(self, reward_PG: Float[Tensor, "P G"]) -> Float[Tensor, "P G"]:
        _need_group(reward_PG, "leave-one-out", minimum=2)
        size = reward_PG.shape[1]
        return (reward_PG - reward_PG.mean(1, keepdim=True)) * (size / (size - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNormalised:
    """Centred reward over the standard deviation of its group (GRPO; Shao et al. 2024).

    ``A_i = (R_i - mean R) / (std R + epsilon)``. A group whose rewards are all equal gets exactly 0.
    """

    revision: ClassVar[int] = 1
    deviation: Literal["sample", "population"] = "sample"
    """``sample`` divides by G-1 (TRL, verl, OpenRLHF), ``population`` by G."""
    epsilon: float = 1e-6
    """Added to the standard deviation: 1e-6 in verl, 1e-4 in TRL, 1e-9 in OpenRLHF."""

    def __post_init__(self) -> None:
        if self.deviation not in ("sample", "population"):
            raise ValueError(f"GroupNormalised.deviation must be sample or population, got {self.deviation!r}")
        if self.epsilon <= 0:
            raise ValueError(f"GroupNormalised.epsilon must be positive, got {self.epsilon}")

    def __call__(self, reward_PG: Float[Tensor, "P G"]) -> Float[Tensor, "P G"]:
        _need_group(reward_PG, "a group's standard deviation", minimum=2)
        centred_PG = reward_PG - reward_PG.mean(1, keepdim=True)
        deviation_P1 = reward_PG.std(1, keepdim=True, correction=int(self.deviation == "sample"))
        # The mean of equal numbers may differ from them in the last bit, which a small epsilon would blow up.
        uniform_P1 = (reward_PG == reward_PG[:, :1]).all(1, keepdim=True)
        return torch.where(uniform_P1, 0.0, centred_PG / (deviation_P1 + self.epsilon))


def _need_group(reward_PG: Tensor, what: str, *, minimum: int) -> None:
    if reward_PG.shape[1] < minimum:
        raise ValueError(
            f"{what} needs groups of at least {minimum} rollouts, got G={reward_PG.shape[1]};"
            " raise RL.group, or use RewardItself or BatchCentred"
        )


ADVANTAGES: Final[tuple[type[Advantage], ...]] = (
    RewardItself,
    BatchCentred,
    GroupCentred,
    LeaveOneOut,
    GroupNormalised,
)
