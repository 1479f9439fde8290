"""The learner: policy, optimizer and Fabric, and the one place where a gradient becomes an update."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from jaxtyping import Float
from torch import Tensor

from models import Policy
from models.scoring import Readable
from training.optimizers import AdamW

if TYPE_CHECKING:  # importing it takes seconds, and whoever only declares recipes never needs it
    from lightning.fabric import Fabric


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What one optimizer step did."""

    loss: float
    gradient_norm: float
    """Global norm before clipping."""
    rate: float
    """Learning rate of this step."""


class Learner:
    """A policy in training."""

    def __init__(self, *, fabric: Fabric, policy: Policy, declared: AdamW, parent: Path | None) -> None:
        """Wrap a policy for training.

        Args:
            fabric: Devices and precision.
            policy: The policy, on the fabric's device; its weights are changed in place.
            declared: The optimizer.
            parent: Artifact that the stage started from, the reference of KL terms; None for new weights.
        """
        self.fabric = fabric
        self.policy = policy
        self.declared = declared
        self.parent = parent
        module, optimizer = fabric.setup(policy.decoder, declared.build(policy.decoder))
        module.mark_forward_method("features")  # what scoring calls; a data-parallel strategy must see it
        # Fabric's wrapper passes everything on to the decoder, which its type does not say.
        self.module = cast(Readable, module)
        self.optimizer: torch.optim.Optimizer = optimizer

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.fabric.device

    @property
    def exact(self) -> bool:
        """Whether passes are computed in full float32, so that sampler and trainer must agree."""
        precision: str = self.fabric.strategy.precision.precision
        return precision == "32-true"

    @cached_property
    def reference(self) -> Policy:
        """The frozen parent of the stage. Raises ValueError for a stage that has none."""
        if self.parent is None:
            raise ValueError("a KL term needs a parent policy, and this stage starts from new weights; use kl=None")
        reference = Policy.load(self.parent, device=str(self.device))
        reference.decoder.requires_grad_(requires_grad=False)
        return reference

    def update(self, parts: Sequence[Callable[[], Float[Tensor, ""]]], *, fraction: float) -> Update:
        """One optimizer step on the sum of ``parts``: the losses of the micro-batches of one optimizer batch.

        The parts are normalised already by the counts of the whole batch, so their gradients simply add up.

        Args:
            parts: Each computes the loss of one micro-batch; none means a step on a zero gradient.
            fraction: Share of the budget spent after this step, for the schedule.

        Raises:
            FloatingPointError: where loss or gradient is not finite; the weights are left as they were.
        """
        rate = self.declared.rate * self.declared.schedule(fraction)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self._zero_gradient()
        total = 0.0
        for part in parts:
            with self.fabric.autocast():  # Fabric's own casts cover ``forward`` alone, and scoring calls ``features``
                loss = part()
            self.fabric.backward(loss)
            total += float(loss.detach())
        norm = self._clip()
        if not (math.isfinite(total) and math.isfinite(norm)):
            raise FloatingPointError(
                f"the loss is {total} and the gradient norm {norm}: training has diverged;"
                f" lower AdamW.rate (now {rate}) or clip the gradient"
            )
        self.optimizer.step()
        return Update(loss=total, gradient_norm=norm, rate=rate)

    def _zero_gradient(self) -> None:
        """Gradients become zero, not None: AdamW then steps every parameter, also on a batch without signal."""
        for parameter in self.policy.decoder.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            else:
                parameter.grad.zero_()

    def _clip(self) -> float:
        largest = self.declared.clip_norm if self.declared.clip_norm is not None else float("inf")
        return float(torch.nn.utils.clip_grad_norm_(self.policy.decoder.parameters(), largest))
