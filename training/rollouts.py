"""Rollouts: a batch of problems, G sampled completions each, with their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from models import Completions, Policy
from testbeds.core import Problem, Task, Verdict
from testbeds.verifiers import Verifier
from training.rewards import judge, sampling_flaw


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollouts:
    """G completions of each of P problems; row p * G + g is rollout g of problem p."""

    problems: tuple[Problem, ...]
    group: int
    prompts: tuple[tuple[int, ...], ...]
    """Token ids of each problem's prompt."""
    completions: Completions
    row_completions: tuple[tuple[int, ...], ...]
    """The sampled tokens of each row, the end token included where it was sampled."""
    texts: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    floors: tuple[float, ...]
    """Success probability of the best blind guess, per problem."""

    @property
    def correct_PG(self) -> Float[Tensor, "P G"]:
        """1 where the completion is correct, else 0."""
        values = [float(verdict.correct) for verdict in self.verdicts]
        return torch.tensor(values, dtype=torch.float32).reshape(len(self.problems), self.group)

    @property
    def row_prompts(self) -> list[tuple[int, ...]]:
        """The prompt of each row."""
        return [prompt for prompt in self.prompts for _ in range(self.group)]


def roll_out(  # noqa: PLR0913  # the conditions of sampling are what makes two sets of rollouts comparable
    policy: Policy,
    task: Task,
    problems: Sequence[Problem],
    *,
    lanes_PG: NDArray[np.int64],
    verifier: Verifier,
    max_new_tokens: int,
    temperature: float,
    greedy: bool = False,
) -> Rollouts:
    """Sample and judge completions; rollout (p, g) depends on its lane alone, never on the batch around it."""
    group = lanes_PG.shape[1]
    prompts = policy.tokenizer.encode_many([problem.prompt for problem in problems])
    longest, context = max(map(len, prompts)), policy.decoder.architecture.context
    if longest + max_new_tokens > context:
        raise ValueError(
            f"a prompt of {longest} tokens leaves no room for max_new_tokens={max_new_tokens} in the policy's context"
            f" of {context}; lower max_new_tokens or raise Transformer.context to {longest + max_new_tokens}"
        )
    completions = policy.sample(
        [prompt for prompt in prompts for _ in range(group)],
        lanes=lanes_PG.reshape(-1),
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        greedy=greedy,
    )
    lengths = completions.mask_BT.sum(1).tolist()
    rows = tuple(tuple(ids[:n]) for ids, n in zip(completions.token_BT.tolist(), lengths, strict=True))
    texts = tuple(policy.tokenizer.decode(ids) for ids in rows)
    reserved = frozenset({policy.tokenizer.pad, policy.tokenizer.bos})
    flaws = [
        sampling_flaw(ids, finished=finished, reserved=reserved, max_new_tokens=max_new_tokens)
        for ids, finished in zip(rows, completions.finished_B.tolist(), strict=True)
    ]
    verdicts = tuple(
        judge(verifier, task, problems[row // group], text, flaw=flaw)
        for row, (text, flaw) in enumerate(zip(texts, flaws, strict=True))
    )
    return Rollouts(
        problems=tuple(problems),
        group=group,
        prompts=tuple(tuple(prompt) for prompt in prompts),
        completions=completions,
        row_completions=rows,
        texts=texts,
        verdicts=verdicts,
        floors=tuple(task.floor(problem) for problem in problems),
    )
