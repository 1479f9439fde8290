"""Reinforcement learning with verifiable rewards: sample, judge, credit, update."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models import (
    PackedRows,
    Tokenizer,
    Transformer,
    completion_logp,
    forward_flops,
    pack,
    sampling_flops,
    training_flops,
)
from models.sampling import Decoding
from testbeds import Suite
from testbeds.core import Task
from testbeds.streams import lanes, stream
from testbeds.verifiers import Exact, Verifier
from training.aggregation import Counts, aggregate
from training.audit import shown
from training.batch import TokenBatch
from training.budget import Budget
from training.kl import KL, kl_estimate
from training.learner import Learner, Update
from training.ledger import Ledger, Spent
from training.methods import PolicyGradient
from training.metrics import above_floor, mixed_share, mixed_share_at
from training.optimizers import AdamW
from training.policy_losses import ClippedRatio, Score, clipped_tokens, importance_ratio
from training.rewards import Outcome, Reward
from training.rollouts import Rollouts, roll_out
from training.stage import StepFunction, StepResult
from training.supervised import check_batch, slices

# In float32, kernels of different shapes differ by 1e-5; more means a wrong temperature or mask. In mixed precision the
# gap is real and only reported.
SAMPLER_GAP_NATS = 1e-3
PROMPTS_FOR_LENGTH = 64  # their longest stands for the stage's when a recipe is checked; a longer one fails its step


@dataclass(frozen=True, slots=True, kw_only=True)
class RL:
    """Policy-gradient training on the problems of one split."""

    revision: ClassVar[int] = 1
    suite: Suite
    method: PolicyGradient
    budget: Budget
    optimizer: AdamW
    seed: int
    max_new_tokens: int
    """Token budget of a completion, end token included; what has not ended by then is wrong."""
    split: str = "train"
    prompts: int = 32
    """Problems per rollout batch."""
    group: int = 8
    """Rollouts per problem."""
    temperature: float = 1.0
    """Of sampling and, equally, of the log-probabilities in the loss."""
    verifier: Verifier = Exact()
    reward: Reward = Outcome()
    minibatches: int = 1
    """Optimizer steps that one pass over a rollout batch is cut into, by problems."""
    epochs: int = 1
    """Passes over each rollout batch."""
    microbatch: int | None = None
    """Rollouts per forward and backward pass; None takes a whole minibatch at once."""

    def __post_init__(self) -> None:
        check_batch("RL", self.prompts * self.group, self.microbatch)
        for name in ("prompts", "group", "minibatches", "epochs", "max_new_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"RL.{name} must be at least 1, got {getattr(self, name)}")
        if not 0 < self.temperature < math.inf:
            raise ValueError(
                f"RL.temperature must be positive and finite, got {self.temperature}: RL needs varied rollouts"
            )
        if self.prompts % self.minibatches:
            raise ValueError(
                f"RL.prompts ({self.prompts}) must be a multiple of minibatches ({self.minibatches}),"
                f" so that no rollout is dropped; try {self.prompts // self.minibatches * self.minibatches}"
            )
        if self.updates > 1 and isinstance(self.method.loss, Score):
            raise ValueError(
                f"Score is for one update per rollout batch, got {self.updates} (minibatches x epochs);"
                " use ClippedRatio, which corrects for the policy having moved"
            )
        # Refuse at declaration, not at step 1, a group size that the advantage cannot use.
        self.method.advantage(torch.zeros(1, self.group))

    @property
    def name(self) -> str:
        return "RL"

    @property
    def task(self) -> Task:
        return self.suite.task

    def longest(self) -> int:
        return max(self._prompt_lengths(PROMPTS_FOR_LENGTH)) + self.max_new_tokens

    @property
    def updates(self) -> int:
        """Optimizer steps per rollout batch."""
        return self.minibatches * self.epochs

    def describe(self) -> str:
        return f"RL, {self.budget.describe()}, {self.prompts} problems x {self.group} rollouts"

    def estimated_flops(self, model: Transformer, vocabulary: int) -> int:
        if self.budget.flops is not None:
            return self.budget.flops
        rows = self.prompts * self.group
        prompt_lengths = self._prompt_lengths(self.prompts) * self.group
        # What a completion will be is unknown before the run: half the budget of tokens is the guess.
        completion = max(1, self.max_new_tokens // 2)
        lengths = [prompt + completion for prompt in prompt_lengths]
        training = self.epochs * training_flops(model, vocabulary, lengths)
        sampling = sampling_flops(model, vocabulary, prompt_lengths, [completion] * rows)
        steps = self.budget.steps or self.budget.limit / (self.epochs * sum(lengths))
        return int((training + sampling) * steps)

    def start(self, learner: Learner) -> StepFunction:
        if self.method.kl is not None and learner.parent is None:
            raise ValueError("a KL term needs a parent policy, and this stage starts from new weights; use kl=None")
        return _Reinforce(stage=self, learner=learner)

    def _prompt_lengths(self, count: int) -> list[int]:
        """Tokens of the first prompts."""
        tokenizer = Tokenizer.of(self.task.symbols)
        problems = self.suite.stream(self.split, "prompts", self.seed).take(0, count)
        return [len(tokenizer.encode(problem.prompt)) for problem in problems]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditedRollouts:
    """Rollouts with everything that the loss needs, one row each; T counts completion tokens."""

    rows: PackedRows
    mask_BT: Bool[Tensor, "B T"]
    behaviour_BT: Float[Tensor, "B T"]
    """The sampler's log-probabilities."""
    reference_BT: Float[Tensor, "B T"] | None
    """The parent's log-probabilities; None for a method without KL."""
    reward_PG: Float[Tensor, "P G"]
    """What was paid, before any KL penalty."""
    advantage_B: Float[Tensor, " B"]
    active_B: Bool[Tensor, " B"]
    """Rows that can carry a gradient. The others are left out of the passes, never out of the counts."""


class _Reinforce:
    """The running form of an RL stage."""

    def __init__(self, *, stage: RL, learner: Learner) -> None:
        self.stage = stage
        self.learner = learner
        self.prompts = stage.suite.stream(stage.split, "prompts", stage.seed)
        self.decoding = Decoding(temperature=stage.temperature)

    def __call__(self, step: int, ledger: Ledger) -> StepResult:
        began = time.process_time()
        rollouts = self._roll_out(step)
        sampling = self._sampling_cost(rollouts, cpu_s=time.process_time() - began)
        began = time.process_time()
        credited = self._credit(rollouts, step)
        training = self._training_cost(credited)
        fraction = self.stage.budget.fraction(ledger.plus(steps=1, training=training, sampling=sampling))
        probe = _Probe(stage=self.stage, step=step, exact=self.learner.exact)
        updates = [
            self._update(credited, chosen_B, fraction, probe)
            for chosen_B in minibatches(self.stage, step, self.learner.device)
        ]
        training += Spent(cpu_s=time.process_time() - began)
        metrics = _reward_metrics(rollouts, credited) | probe.metrics() | _update_metrics(updates)
        keys = tuple(mark for problem in rollouts.problems for mark in shown(self.stage.task, problem))
        return StepResult(metrics=metrics, keys=keys, training=training, sampling=sampling)

    def _roll_out(self, step: int) -> Rollouts:
        """The rollouts of one step, none of them cut short by the context."""
        stage = self.stage
        with self.learner.fabric.autocast():  # the sampler computes in the trainer's precision
            return roll_out(
                self.learner.policy,
                stage.task,
                self.prompts.take(step * stage.prompts, stage.prompts),
                lanes_PG=lanes("rollouts", stage.seed, step, rows=stage.prompts, columns=stage.group),
                verifier=stage.verifier,
                max_new_tokens=stage.max_new_tokens,
                temperature=stage.temperature,
            )

    def _credit(self, rollouts: Rollouts, step: int) -> CreditedRollouts:
        stage, device = self.stage, self.learner.device
        rows = pack(rollouts.row_prompts, rollouts.row_completions, self.learner.policy.tokenizer.pad).to(device)
        mask_BT = rollouts.completions.mask_BT
        behaviour_BT = rollouts.completions.logp_BT
        reference_BT = self._reference(rows)
        reward_PG = stage.reward(rollouts.correct_PG, stage.seed, step)
        paid_PG = penalised(stage.method.kl, reward_PG, behaviour_BT, reference_BT, mask_BT)
        advantage_B = stage.method.advantage(paid_PG).reshape(-1).to(device)
        everywhere = stage.method.entropy_bonus > 0 or _kl_in_loss(stage.method)
        return CreditedRollouts(
            rows=rows,
            mask_BT=mask_BT,
            behaviour_BT=behaviour_BT,
            reference_BT=reference_BT,
            reward_PG=reward_PG,
            advantage_B=advantage_B,
            active_B=torch.ones_like(advantage_B, dtype=torch.bool) if everywhere else advantage_B != 0,
        )

    def _reference(self, rows: PackedRows) -> Float[Tensor, "B T"] | None:
        if self.stage.method.kl is None:
            return None
        with torch.no_grad(), self.learner.fabric.autocast():
            return completion_logp(self.learner.reference.decoder, rows, self.decoding).logp_BC

    def _update(
        self, credited: CreditedRollouts, chosen_B: Int[Tensor, " B"], fraction: float, probe: _Probe
    ) -> Update:
        """One optimizer step on the rollouts ``chosen_B``."""
        mask_BT = credited.mask_BT[chosen_B]
        weight_BT = self.stage.method.aggregation.weights(mask_BT, Counts.of(mask_BT))
        active_B = credited.active_B[chosen_B]
        rows_B, weight_BT = chosen_B[active_B], weight_BT[active_B]
        parts = [
            self._part(credited, rows_B[part], weight_BT[part], probe)
            for part in slices(len(rows_B), self.stage.microbatch)
        ]
        update = self.learner.update(parts, fraction=fraction)
        probe.first = False
        return update

    def _part(
        self, credited: CreditedRollouts, rows_B: Int[Tensor, " B"], weight_BT: Float[Tensor, "B T"], probe: _Probe
    ) -> Callable[[], Float[Tensor, ""]]:
        """The loss of one micro-batch."""
        method = self.stage.method

        def loss() -> Float[Tensor, ""]:
            scores = completion_logp(self.learner.module, credited.rows.take(rows_B), self.decoding)
            width = scores.logp_BC.shape[1]
            sampled_BT = credited.behaviour_BT[rows_B, :width]
            batch = TokenBatch(
                logp_BT=scores.logp_BC,
                mask_BT=credited.mask_BT[rows_B, :width],
                advantage_BT=credited.advantage_B[rows_B, None].expand(-1, width),
                # One update per rollout batch is on policy: the ratio is exactly 1, not 1 up to the sampler's rounding.
                behaviour_BT=scores.logp_BC.detach() if self.stage.updates == 1 else sampled_BT,
                reference_BT=None if credited.reference_BT is None else credited.reference_BT[rows_B, :width],
                entropy_BT=scores.entropy_BC,
            )
            probe.look(batch, sampled_BT)
            return aggregate(token_loss(method, batch), weight_BT[:, :width])

        return loss

    def _sampling_cost(self, rollouts: Rollouts, *, cpu_s: float) -> Spent:
        policy = self.learner.policy
        lengths = [len(ids) for ids in rollouts.row_completions]
        prompt_lengths = [len(prompt) for prompt in rollouts.row_prompts]
        flops = sampling_flops(policy.decoder.architecture, policy.tokenizer.size, prompt_lengths, lengths)
        return Spent(tokens=sum(lengths), flops=flops, cpu_s=cpu_s)

    def _training_cost(self, credited: CreditedRollouts) -> Spent:
        """All passes over the rows that carry a gradient, and the reference's one pass over all rows."""
        policy = self.learner.policy
        model, vocabulary = policy.decoder.architecture, policy.tokenizer.size
        trained = credited.rows.length_B[credited.active_B].tolist()
        flops = self.stage.epochs * training_flops(model, vocabulary, trained)
        if credited.reference_BT is not None:
            flops += forward_flops(model, vocabulary, credited.rows.length_B.tolist())
        return Spent(tokens=self.stage.epochs * int(credited.rows.length_B.sum()), flops=flops)


class _Probe:
    """What is measured inside the passes of one rollout batch."""

    def __init__(self, *, stage: RL, step: int, exact: bool) -> None:
        self.stage = stage
        self.step = step
        self.exact = exact
        self.first = True  # until the first update the policy in training is the one that sampled
        self.gap_nats: float | None = None
        self.clipped = 0
        self.trained = 0

    def look(self, batch: TokenBatch, sampled_BT: Float[Tensor, "B T"]) -> None:
        """Note the clip fraction and, before the first update, how far the trainer is from the sampler."""
        if isinstance(self.stage.method.loss, ClippedRatio):
            self.clipped += clipped_tokens(batch, self.stage.method.loss)
            self.trained += int(batch.mask_BT.sum())
        if self.first:
            gap_BT = (batch.logp_BT.detach() - sampled_BT).abs()
            self.gap_nats = max(self.gap_nats or 0.0, float(torch.where(batch.mask_BT, gap_BT, 0.0).max()))

    def metrics(self) -> dict[str, float]:
        """The measurements, checked; nothing that was not measured, since no row carried a gradient.

        Raises:
            RuntimeError: where trainer and sampler are different policies.
        """
        if self.gap_nats is None:
            return {}
        if self.exact and self.gap_nats > SAMPLER_GAP_NATS:
            raise RuntimeError(
                f"step {self.step}: the trainer's log-probabilities differ from the sampler's by {self.gap_nats:.2g}"
                f" nats (allowed: {SAMPLER_GAP_NATS}); the gradient would be that of another policy"
            )
        measured = {"sampler_gap_nats": self.gap_nats}
        if self.trained:
            measured["clip_fraction"] = self.clipped / self.trained
        return measured


def minibatches(stage: RL, step: int, device: torch.device) -> list[Int[Tensor, " B"]]:
    """Row numbers of each optimizer batch: whole groups in a keyed order, every row exactly once per epoch."""
    rows_PG = np.arange(stage.prompts * stage.group).reshape(stage.prompts, stage.group)
    batches: list[Int[Tensor, " B"]] = []
    for epoch in range(stage.epochs):
        order = stream("minibatches", stage.seed, step, epoch).permutation(stage.prompts)
        parts = np.split(rows_PG[order], stage.minibatches)
        batches += [torch.from_numpy(np.sort(part, axis=None)).to(device) for part in parts]
    return batches


def penalised(
    kl: KL | None,
    reward_PG: Float[Tensor, "P G"],
    behaviour_BT: Float[Tensor, "B T"],
    reference_BT: Float[Tensor, "B T"] | None,
    mask_BT: Bool[Tensor, "B T"],
) -> Float[Tensor, "P G"]:
    """``R - beta sum_t k(y_t)``, detached, where the method puts its KL in the reward; else the reward itself."""
    if kl is None or kl.placement != "reward" or reference_BT is None:
        return reward_PG
    estimate_BT = kl_estimate(behaviour_BT, reference_BT, kl.estimator)
    total_B = torch.where(mask_BT, estimate_BT, 0.0).sum(1)
    return reward_PG - kl.coefficient * total_B.reshape(reward_PG.shape).to(reward_PG.device)


def token_loss(method: PolicyGradient, batch: TokenBatch) -> Float[Tensor, "B T"]:
    """The whole per-token loss of a method: policy loss, plus KL in the loss, minus the entropy bonus."""
    loss_BT = method.loss(batch)
    if method.kl is not None and method.kl.placement == "loss":
        reference_BT = batch.need("reference_BT", "KL in the loss")
        penalty_BT = kl_estimate(batch.logp_BT, reference_BT, method.kl.estimator)
        if method.kl.weighted:
            penalty_BT = importance_ratio(batch).detach() * penalty_BT
        loss_BT = loss_BT + method.kl.coefficient * penalty_BT
    if method.entropy_bonus:
        loss_BT = loss_BT - method.entropy_bonus * batch.need("entropy_BT", "an entropy bonus")
    return loss_BT


def _kl_in_loss(method: PolicyGradient) -> bool:
    return method.kl is not None and method.kl.placement == "loss"


def _reward_metrics(rollouts: Rollouts, credited: CreditedRollouts) -> dict[str, float]:
    """Reward, accuracy and mixed groups, each beside what blind guessing alone would give."""
    correct_PG = rollouts.correct_PG
    floor = fmean(rollouts.floors)
    group = rollouts.group
    mixed_at_floor = fmean(mixed_share_at(of_problem, group) for of_problem in rollouts.floors)
    metrics = {
        "reward": float(credited.reward_PG.mean()),
        "reward_deviation": float(credited.reward_PG.std(1).mean()) if group > 1 else 0.0,
        "accuracy": float(correct_PG.mean()),
        "floor": floor,
        "mixed_groups": mixed_share(correct_PG.bool().tolist()),
        "mixed_groups_at_floor": mixed_at_floor,
        "well_formed": fmean(verdict.well_formed for verdict in rollouts.verdicts),
        "truncated": 1 - float(rollouts.completions.finished_B.float().mean()),
        "length_tokens": float(credited.mask_BT.sum(1).float().mean()),
        # Per token: -log p of samples is an unbiased estimate of the entropy at the sampling temperature.
        "entropy_estimate_nats": -float(credited.behaviour_BT[credited.mask_BT].mean()),
    }
    if floor < 1:
        metrics["accuracy_corrected"] = above_floor(metrics["accuracy"], floor)
    if credited.reference_BT is not None:
        gap_BT = credited.behaviour_BT - credited.reference_BT
        metrics["kl_nats"] = float(torch.where(credited.mask_BT, gap_BT, 0.0).sum(1).mean())
    return metrics


def _update_metrics(updates: list[Update]) -> dict[str, float]:
    return {
        "loss": fmean(update.loss for update in updates),
        "gradient_norm": fmean(update.gradient_norm for update in updates),
        "rate": updates[-1].rate,
    }
