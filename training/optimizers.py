"""AdamW with its schedule and gradient clipping, as one declaration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import nn


def _check_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise ValueError(f"{name} is a share of the budget in [0, 1], got {share}")


def _warmup(fraction: float, warmup: float) -> float:
    return min(1.0, fraction / warmup) if warmup > 0 else 1.0


@runtime_checkable
class Schedule(Protocol):
    """The learning-rate multiplier as a function of the share of the budget that is spent."""

    def __call__(self, fraction: float) -> float:
        """A multiplier in [0, 1] for ``fraction`` in (0, 1], counted after the step: the first step's rate is not 0."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """Full rate after a linear warm-up."""

    revision: ClassVar[int] = 1
    warmup: float = 0.0
    """Share of the budget over which the rate rises linearly to its peak."""

    def __post_init__(self) -> None:
        _check_share("Constant.warmup", self.warmup)

    def __call__(self, fraction: float) -> float:
        return _warmup(fraction, self.warmup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosine:
    """Linear warm-up, then half a cosine from 1 to ``final``."""

    revision: ClassVar[int] = 1
    warmup: float = 0.025
    """Share of the budget over which the rate rises linearly to its peak."""
    final: float = 0.1
    """Multiplier at the end of the budget."""

    def __post_init__(self) -> None:
        _check_share("Cosine.warmup", self.warmup)
        _check_share("Cosine.final", self.final)

    def __call__(self, fraction: float) -> float:
        if fraction <= self.warmup:
            return _warmup(fraction, self.warmup)
        past = (fraction - self.warmup) / (1 - self.warmup)
        return self.final + (1 - self.final) * 0.5 * (1 + math.cos(math.pi * past))


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupStableDecay:
    """Linear warm-up, a plateau, then a linear decay to ``final`` (WSD; Hu et al. 2024, MiniCPM)."""

    revision: ClassVar[int] = 1
    warmup: float = 0.025
    """Share of the budget over which the rate rises linearly to its peak."""
    decay: float = 0.2
    """Share of the budget, at its end, over which the rate falls."""
    final: float = 0.0
    """Multiplier at the end of the budget."""

    def __post_init__(self) -> None:
        _check_share("WarmupStableDecay.warmup", self.warmup)
        _check_share("WarmupStableDecay.final", self.final)
        _check_share("WarmupStableDecay.decay", self.decay)
        if self.warmup + self.decay > 1:
            raise ValueError(
                f"WarmupStableDecay: warmup ({self.warmup}) and decay ({self.decay}) may not exceed the budget"
                " together; their sum must be at most 1"
            )

    def __call__(self, fraction: float) -> float:
        if fraction <= self.warmup:
            return _warmup(fraction, self.warmup)
        if fraction <= 1 - self.decay or self.decay == 0:
            return 1.0
        return self.final + (1 - self.final) * (1 - fraction) / self.decay


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamW:
    """Adam with decoupled weight decay on matrices (Loshchilov and Hutter 2019), clipped by global gradient norm."""

    revision: ClassVar[int] = 1
    rate: float
    """Peak learning rate."""
    schedule: Schedule = Constant()
    """Multiplier over the budget."""
    betas: tuple[float, float] = (0.9, 0.95)
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    """Applied to tensors of rank 2 and more; norms' gains are never decayed."""
    clip_norm: float | None = 1.0
    """Largest global gradient norm; None leaves gradients alone."""

    def __post_init__(self) -> None:
        if not 0 < self.rate < math.inf:
            raise ValueError(f"AdamW.rate must be positive and finite, got {self.rate}")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"AdamW.weight_decay must be at least 0 and finite, got {self.weight_decay}")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ValueError(f"AdamW.clip_norm must be positive, or None for no clipping, got {self.clip_norm}")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"AdamW.betas must be in [0, 1), got {self.betas}")
        if not 0 < self.epsilon < math.inf:
            raise ValueError(f"AdamW.epsilon must be positive and finite, got {self.epsilon}")

    def build(self, module: nn.Module) -> torch.optim.AdamW:
        """The running optimizer over the module's parameters; a tied matrix is one parameter."""
        matrices = [p for p in module.parameters() if p.ndim >= 2]
        gains = [p for p in module.parameters() if p.ndim < 2]
        groups = [
            {"params": matrices, "weight_decay": self.weight_decay},
            {"params": gains, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=self.rate,
            betas=self.betas,
            eps=self.epsilon,
            fused=True,
        )
