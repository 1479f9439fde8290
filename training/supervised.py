"""Pretraining and supervised fine-tuning: likelihood of given text.

The two differ in what they declare (fresh text and all tokens, or demonstrations and the completion only), not in how
they run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from models import PackedRows, Tokenizer, Transformer, completion_logp, pack, training_flops
from testbeds.core import Task
from training.aggregation import Aggregation, Counts, TokenMean, aggregate
from training.audit import shown
from training.batch import TokenBatch
from training.budget import Budget
from training.learner import Learner
from training.ledger import Ledger, Spent
from training.objectives import CrossEntropy, Objective
from training.optimizers import AdamW
from training.sources import Source, Text
from training.stage import StepFunction, StepResult

SAMPLE_FOR_ESTIMATE = 256  # texts whose lengths stand for the stage's in its cost and in the check of the context


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervised:
    """What pretraining and fine-tuning declare alike."""

    prompt_is_target: ClassVar[bool]
    """Whether the prompt is predicted, too, all but its first token."""
    source: Source
    """Which text, in which order."""
    budget: Budget
    optimizer: AdamW
    seed: int
    """Keys the order of the text."""
    batch: int
    """Sequences per optimizer step."""
    objective: Objective = CrossEntropy()
    aggregation: Aggregation = TokenMean()
    microbatch: int | None = None
    """Sequences per forward and backward pass; None takes the whole batch at once."""

    def __post_init__(self) -> None:
        check_batch(self.name, self.batch, self.microbatch)

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def task(self) -> Task:
        return self.source.suite.task

    def longest(self) -> int:
        return max(_lengths(self.source, self.seed))

    def describe(self) -> str:
        return f"{self.name}, {self.budget.describe()}, {self.source.describe()}"

    def estimated_flops(self, model: Transformer, vocabulary: int) -> int:
        if self.budget.flops is not None:
            return self.budget.flops
        lengths = _lengths(self.source, self.seed)
        flops = training_flops(model, vocabulary, lengths)
        if self.budget.steps is not None:
            return flops * self.batch * self.budget.steps // len(lengths)
        return flops * self.budget.limit // sum(lengths)

    def start(self, learner: Learner) -> StepFunction:
        return _Running(stage=self, learner=learner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretrain(Supervised):
    """Next-token prediction, every token a target."""

    revision: ClassVar[int] = 1
    prompt_is_target: ClassVar[bool] = True
    batch: int = 128
    """Sequences per optimizer step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SFT(Supervised):
    """Imitation of demonstrations: the prompt is given, the completion is the target."""

    revision: ClassVar[int] = 1
    prompt_is_target: ClassVar[bool] = False
    batch: int = 64
    """Sequences per optimizer step."""


class _Running:
    """The running form of a supervised stage."""

    def __init__(self, *, stage: Supervised, learner: Learner) -> None:
        self.stage = stage
        self.learner = learner

    def __call__(self, step: int, ledger: Ledger) -> StepResult:
        began = time.process_time()
        stage, policy = self.stage, self.learner.policy
        texts = stage.source.texts(stage.seed, step, stage.batch)
        rows = self._pack(texts)
        mask_BT = rows.completion_mask_BC
        weight_BT = stage.aggregation.weights(mask_BT, Counts.of(mask_BT))
        flops = training_flops(policy.decoder.architecture, policy.tokenizer.size, rows.length_B.tolist())
        spent = Spent(tokens=int(rows.length_B.sum()), flops=flops)
        fraction = stage.budget.fraction(ledger.plus(steps=1, training=spent))
        parts = [self._part(rows.take(part), weight_BT[part]) for part in slices(len(texts), stage.microbatch)]
        update = self.learner.update(parts, fraction=fraction)
        return StepResult(
            metrics={
                "loss": update.loss,
                "gradient_norm": update.gradient_norm,
                "rate": update.rate,
                "rejected": sum(text.rejected for text in texts),
            },
            keys=tuple(mark for text in texts for mark in shown(stage.task, text.problem)),
            training=spent + Spent(cpu_s=time.process_time() - began),
        )

    def _pack(self, texts: Sequence[Text]) -> PackedRows:
        """The whole optimizer batch. Where prompts are targets too, only the first token of a row is given."""
        tokenizer = self.learner.policy.tokenizer
        prompts = tokenizer.encode_many([text.problem.prompt for text in texts])
        completions = [[*ids, tokenizer.eos] for ids in tokenizer.encode_many([text.completion for text in texts])]
        if self.stage.prompt_is_target:
            completions = [prompt[1:] + rest for prompt, rest in zip(prompts, completions, strict=True)]
            prompts = [prompt[:1] for prompt in prompts]
        return pack(prompts, completions, tokenizer.pad).to(self.learner.device)

    def _part(self, rows: PackedRows, weight_BT: Float[Tensor, "B T"]) -> Callable[[], Float[Tensor, ""]]:
        """The loss of one micro-batch."""

        def loss() -> Float[Tensor, ""]:
            scores = completion_logp(self.learner.module, rows)
            batch = TokenBatch(logp_BT=scores.logp_BC, mask_BT=scores.mask_BC, entropy_BT=scores.entropy_BC)
            return aggregate(self.stage.objective(batch), weight_BT[:, : scores.logp_BC.shape[1]])

        return loss


def slices(rows: int, microbatch: int | None) -> list[slice]:
    """The row ranges of the micro-batches, in order; the last may be shorter, and none is dropped."""
    size = microbatch or max(1, rows)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def check_batch(stage: str, batch: int, microbatch: int | None) -> None:
    """Refuse batch sizes below 1."""
    if batch < 1:
        raise ValueError(f"{stage}.batch must be at least 1, got {batch}")
    if microbatch is not None and microbatch < 1:
        raise ValueError(f"{stage}.microbatch must be at least 1, or None for the whole batch, got {microbatch}")


@lru_cache(maxsize=64)
def _lengths(source: Source, seed: int) -> tuple[int, ...]:
    """Tokens of the first sequences of a source, end token included."""
    tokenizer = Tokenizer.of(source.suite.task.symbols)
    texts = source.sample(seed, SAMPLE_FOR_ESTIMATE)
    return tuple(len(tokenizer.encode(f"{text.problem.prompt} {text.completion}")) + 1 for text in texts)
