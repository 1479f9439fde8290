"""Evaluation: what a policy can do on held-out problems, by sampling and, where answers can be listed, exactly.

Every rate comes with the guessing floor and the floor-corrected rate ``(rate - floor) / (1 - floor)``: a pass rate of
8 % is nothing where blind guessing gives 8 %.

Where a task lists its choices, and for the demonstrations of the declared styles, exact probabilities stand beside what
was sampled (see probes.py). ``STYLE_nats_per_token`` is a loss: the negative log-likelihood of the demonstrations of
all problems, divided by the number of all their tokens, end tokens included; the token budget does not cut it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from statistics import fmean
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from models import Policy, forward_flops, sampling_flops
from testbeds import Suite, demonstration
from testbeds.core import EXPLICIT, IMPLICIT, Problem, Task, TraceStyle, Unrealisable, Verdict
from testbeds.identity import fingerprint
from testbeds.mixture import Mixture, component_of
from testbeds.streams import lanes
from testbeds.verifiers import Exact, Verifier
from training.ledger import Spent
from training.metrics import above_floor, floor_at_k, mixed_share, mixed_share_at, pass_at_k
from training.probes import Likelihood, likelihoods, probe
from training.rollouts import Rollouts, roll_out

ROWS_PER_BATCH = 2048  # rollouts sampled at once; fixed, since the batch's shape may change the last bit of a logit


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemSet:
    """Distinct problems of one split."""

    revision: ClassVar[int] = 1
    suite: Suite
    count: int | None
    """Number of problems; None takes every problem of the split, where the task can list them."""
    split: str = "test"

    def problems(self) -> tuple[Problem, ...]:
        """The problems, the same for every policy."""
        count = self.count
        if count is None:
            count = self.suite.capacity(self.split)
        if count is None:
            raise ValueError(f"split {self.split!r} cannot be listed in full; give ProblemSet.count a number")
        return self.suite.distinct(self.split, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What is measured, on which problems, from how many samples."""

    revision: ClassVar[int] = 1
    sets: tuple[ProblemSet, ...]
    max_new_tokens: int
    """Token budget of a completion, end token included."""
    seed: int
    """Keys the sampling noise; policies are compared under the same noise."""
    samples: int = 16
    """Sampled completions per problem."""
    temperature: float = 1.0
    passes: tuple[int, ...] = (4,)
    """Each k of pass@k; at most ``samples``. Its floor is that of k independent guesses (see ``floor_at_k``)."""
    band: str | None = None
    """Feature by which results are also reported, such as ``depth``."""
    styles: tuple[TraceStyle, ...] = ()
    """Trace styles whose exact probability is measured, for the demonstration of each problem, and their loss in nats
    per token: on a task whose demonstrations are texts, such as games, that is the pretraining loss."""
    verifier: Verifier = Exact()
    most_answers: int = 2000
    """A problem with more correct answers than this is not listed; then ``correct_mass`` is not reported at all."""
    seen: bool = False
    """Whether the problems are meant to be training data: a check of memorisation, exempt from the overlap proof."""

    def __post_init__(self) -> None:
        if not self.sets:
            raise ValueError("an Evaluation needs at least one ProblemSet, got none")
        if self.samples < 1 or self.max_new_tokens < 1:
            raise ValueError(
                f"Evaluation.samples and max_new_tokens must be at least 1, got {self.samples}, {self.max_new_tokens}"
            )
        if self.temperature <= 0:
            raise ValueError(
                f"Evaluation.temperature must be positive, got {self.temperature}; greedy is always measured"
            )
        if len({_style_name(style) for style in self.styles}) < len(self.styles):
            raise ValueError(f"Evaluation.styles holds a style twice: {self.styles}")
        for k in self.passes:
            if not 1 <= k <= self.samples:
                raise ValueError(f"Evaluation.passes holds {k}, which must be between 1 and samples={self.samples}")

    def describe(self) -> str:
        """One line for a plan."""
        counts = ", ".join("all" if chosen.count is None else str(chosen.count) for chosen in self.sets)
        return f"{counts} problems x {self.samples} samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Everything that was measured on one problem."""

    problem: Problem
    component: str
    """Name of the component of a mixture that the problem is of; empty where the task is no mixture."""
    floor: float
    correct: tuple[bool, ...]
    greedy_correct: bool
    rates: dict[str, float]
    """Other quantities in [0, 1] that have a guessing floor, by name."""
    means: dict[str, float]
    """Quantities without a floor, such as lengths and entropies."""
    row: dict[str, Any]
    """The problem's line in rollouts.jsonl."""
    spent: Spent
    """Greedy and random sampling, and scoring of the samples; probabilities of listed answers are not counted."""
    floors: dict[str, float] = field(default_factory=dict)
    """Guessing floors of those ``rates`` that have another one than the problem's ``floor``."""
    totals: dict[str, tuple[float, int]] = field(default_factory=dict)
    """(sum, number of tokens) of quantities that are averaged over the tokens of all problems, by name."""


def evaluation_id(evaluation: Evaluation, policy_id: str) -> str:
    """32 hexadecimal digits that identify the evaluation of one policy."""
    return fingerprint(_Node(evaluation=evaluation, policy=policy_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    evaluation: Evaluation
    policy: str


def check_fits(evaluation: Evaluation, policy: Policy, sets: Sequence[tuple[Task, Sequence[Problem]]]) -> None:
    """Nothing, if the evaluation can be made of this policy; all is checked before anything is sampled.

    Raises:
        ValueError: for a band that is no feature, or a prompt that leaves no room for the completion budget or for a
            demonstration whose likelihood is asked for.
    """
    context = policy.decoder.architecture.context
    for task, problems in sets:
        for problem in problems:
            if evaluation.band not in (None, *problem.features) and not isinstance(task, Mixture):
                raise ValueError(
                    f"Evaluation.band={evaluation.band!r} is not a feature of {problem.prompt!r}, which has"
                    f" {sorted(problem.features)}"
                )
            needed = len(policy.tokenizer.encode(problem.prompt)) + evaluation.max_new_tokens
            if needed > context:
                raise ValueError(
                    f"{problem.prompt!r} and max_new_tokens={evaluation.max_new_tokens} need a context of {needed}"
                    f" tokens, and the policy has {context}; lower max_new_tokens or raise Transformer.context"
                )
            _check_demonstrations(evaluation, policy, task, problem)
    if evaluation.band and not any(evaluation.band in problem.features for _, problems in sets for problem in problems):
        raise ValueError(f"Evaluation.band={evaluation.band!r} is a feature of none of the problems")


def _check_demonstrations(evaluation: Evaluation, policy: Policy, task: Task, problem: Problem) -> None:
    """Nothing, if the problem's demonstration in each declared style fits into the context with its prompt."""
    tokenizer, context = policy.tokenizer, policy.decoder.architecture.context
    for style, text in _demonstrations(task, problem, evaluation):
        needed = len(tokenizer.encode(problem.prompt)) + len(tokenizer.encode(text)) + 1  # and the end token
        if needed > context:
            raise ValueError(
                f"the demonstration of {problem.prompt!r} in the style {style.name!r} needs a context of {needed}"
                f" tokens, and the policy has {context}; leave it out of Evaluation.styles or raise Transformer.context"
            )


def measure(  # a batch and its place in the evaluation
    policy: Policy,
    task: Task,
    problems: Sequence[Problem],
    evaluation: Evaluation,
    *,
    number: int = 0,
    start: int = 0,
) -> list[Measured]:
    """All measurements on problems ``start`` and following of problem set ``number``, which key their noise."""
    greedy, sampled = (
        roll_out(
            policy,
            task,
            problems,
            lanes_PG=lanes("evaluation", evaluation.seed, number, rows=len(problems), columns=columns, first=start),
            verifier=evaluation.verifier,
            max_new_tokens=evaluation.max_new_tokens,
            temperature=evaluation.temperature,
            greedy=is_greedy,
        )
        for columns, is_greedy in ((1, True), (evaluation.samples, False))
    )
    entropy_PG = _entropies(policy, sampled)
    probes = probe(policy, task, problems, max_new_tokens=evaluation.max_new_tokens)
    demonstrated = [dict(_demonstrations(task, problem, evaluation)) for problem in problems]
    likelihood = _likelihoods(policy, problems, demonstrated, evaluation)
    return [
        Measured(
            problem=problem,
            component=component_of(task, problem)[0] if isinstance(task, Mixture) else "",
            floor=sampled.floors[i],
            correct=tuple(verdict.correct for verdict in _of(sampled, i)),
            greedy_correct=greedy.verdicts[i].correct,
            rates=_listed_mass(policy, task, problem, evaluation) | (found.rates if found else {}),
            floors=dict.fromkeys(found.rates, found.floor) if found else {},
            means={
                **_means(sampled, i),
                "entropy_nats": float(np.mean(entropy_PG[i])),
                **(found.means if found else {}),
                **{f"{style}_demonstration_mass": written.mass for style, written in likelihood[i].items()},
            },
            totals={f"{style}_nats_per_token": (text.nats, text.tokens) for style, text in likelihood[i].items()},
            row=_row(problem, sampled, greedy, i)
            | {"reference": next(iter(demonstrated[i].values()), None) or _answer(task, problem)}
            | ({"component": component_of(task, problem)[0]} if isinstance(task, Mixture) else {})
            | ({"choices": found.rows} if found else {}),
            spent=_spent(policy, sampled, i, scored=True) + _spent(policy, greedy, i, scored=False),
        )
        for i, (problem, found) in enumerate(zip(problems, probes, strict=True))
    ]


def summarise(measured: Sequence[Measured], evaluation: Evaluation) -> dict[str, Any]:
    """Means over all problems, over each band and, of a mixture, over each component: as in results.json."""
    bands: defaultdict[str, list[Measured]] = defaultdict(list)
    for one in measured:
        if one.component:
            bands[f"task={one.component}"].append(one)
        if evaluation.band is not None and evaluation.band in one.problem.features:
            bands[f"{evaluation.band}={one.problem.features[evaluation.band]:g}"].append(one)
    return {
        "metrics": _summary(measured, evaluation),
        "bands": {band: _summary(members, evaluation) for band, members in sorted(bands.items())},
    }


def _summary(measured: Sequence[Measured], evaluation: Evaluation) -> dict[str, int | float]:
    floor = fmean(one.floor for one in measured)
    metrics: dict[str, int | float] = {"problems": len(measured), "samples": evaluation.samples, "floor": floor}
    _add_rate(metrics, "accuracy", fmean(fmean(one.correct) for one in measured), floor)
    _add_rate(metrics, "greedy_accuracy", fmean(one.greedy_correct for one in measured), floor)
    for k in evaluation.passes:
        rate = fmean(pass_at_k(len(one.correct), sum(one.correct), k) for one in measured)
        _add_rate(metrics, f"pass@{k}", rate, fmean(floor_at_k(one.floor, k) for one in measured))
    for name in sorted(set.intersection(*(set(one.rates) for one in measured))):
        rate_floor = fmean(one.floors.get(name, one.floor) for one in measured)
        _add_rate(metrics, name, fmean(one.rates[name] for one in measured), rate_floor)
    for name in dict.fromkeys(name for one in measured for name in one.means):
        had = [one.means[name] for one in measured if name in one.means]
        metrics[name] = fmean(had)
        if len(had) < len(measured):  # some problems have no demonstration in this style, or no choices
            metrics[f"{name}_problems"] = len(had)
    for name in dict.fromkeys(name for one in measured for name in one.totals):
        sums = [one.totals[name] for one in measured if name in one.totals]
        # Over the tokens of all problems together: a long text weighs more than a short one, as in training.
        metrics[name] = math.fsum(total for total, _ in sums) / sum(tokens for _, tokens in sums)
        if len(sums) < len(measured):
            metrics[f"{name}_problems"] = len(sums)
    metrics["mixed_groups"] = mixed_share([one.correct for one in measured])
    metrics["mixed_groups_floor"] = fmean(mixed_share_at(one.floor, len(one.correct)) for one in measured)
    metrics["mixed_groups_excess"] = metrics["mixed_groups"] - metrics["mixed_groups_floor"]
    return metrics


def _add_rate(metrics: dict[str, int | float], name: str, rate: float, floor: float) -> None:
    """A rate, its floor and the corrected rate, which is left out where guessing cannot fail."""
    metrics[name] = rate
    metrics[f"{name}_floor"] = floor
    if floor < 1:
        metrics[f"{name}_corrected"] = above_floor(rate, floor)


def problems_per_batch(evaluation: Evaluation) -> int:
    """Problems whose rollouts are sampled together."""
    return max(1, ROWS_PER_BATCH // evaluation.samples)


def _of(rollouts: Rollouts, i: int) -> tuple[Verdict, ...]:
    return rollouts.verdicts[i * rollouts.group : (i + 1) * rollouts.group]


def _entropies(policy: Policy, rollouts: Rollouts) -> NDArray[np.float32]:
    """Mean entropy per sampled token at temperature 1, in nats, shape (P, G)."""
    scored = policy.score(rollouts.row_prompts, rollouts.row_completions)
    mean_B = scored.entropy_BC.sum(1) / scored.mask_BC.sum(1)
    mean_PG: NDArray[np.float32] = mean_B.reshape(len(rollouts.problems), rollouts.group).cpu().numpy()
    return mean_PG


def _spent(policy: Policy, rollouts: Rollouts, i: int, *, scored: bool) -> Spent:
    lengths = [len(ids) for ids in rollouts.row_completions[i * rollouts.group : (i + 1) * rollouts.group]]
    prompts = [len(rollouts.prompts[i])] * rollouts.group
    model, vocabulary = policy.decoder.architecture, policy.tokenizer.size
    flops = sampling_flops(model, vocabulary, prompts, lengths)
    if scored:
        flops += forward_flops(model, vocabulary, [p + n for p, n in zip(prompts, lengths, strict=True)])
    return Spent(tokens=sum(lengths), flops=flops)


def _means(rollouts: Rollouts, i: int) -> dict[str, float]:
    verdicts = _of(rollouts, i)
    rows = slice(i * rollouts.group, (i + 1) * rollouts.group)
    return {
        "well_formed": fmean(verdict.well_formed for verdict in verdicts),
        "progress": fmean(verdict.progress for verdict in verdicts),
        "entropy_sampling_nats": _token_mean(rollouts.completions.entropy_BT[rows], rollouts.completions.mask_BT[rows]),
        "truncated": 1 - fmean(rollouts.completions.finished_B[rows].tolist()),
        "length_tokens": fmean(rollouts.completions.mask_BT[rows].sum(1).tolist()),
    }


def _token_mean(value_BT: Float[Tensor, "B T"], mask_BT: Bool[Tensor, "B T"]) -> float:
    """Mean over sequences of the mean over their tokens."""
    return float((torch.where(mask_BT, value_BT, 0.0).sum(1) / mask_BT.sum(1)).mean())


def _listed_mass(policy: Policy, task: Task, problem: Problem, evaluation: Evaluation) -> dict[str, float]:
    """Exact probability of all correct completions within the token budget; nothing where they are not listed."""
    solutions = task.solutions(problem)
    if solutions is None:
        return {}
    texts = list(islice(solutions, evaluation.most_answers + 1))
    if len(texts) > evaluation.most_answers:
        return {}
    return {"correct_mass": _mass(policy, problem, texts, evaluation)}


def _demonstrations(task: Task, problem: Problem, evaluation: Evaluation) -> Iterator[tuple[TraceStyle, str]]:
    """The problem's demonstration in each declared style in which it has one; the summary says how many problems do."""
    for style in evaluation.styles:
        with suppress(Unrealisable):
            yield style, demonstration(task, problem, style).text


def _likelihoods(
    policy: Policy, problems: Sequence[Problem], demonstrated: Sequence[dict[TraceStyle, str]], evaluation: Evaluation
) -> list[dict[str, Likelihood]]:
    """Of each problem, the likelihood of its demonstration by name of the style."""
    found: list[dict[str, Likelihood]] = [{} for _ in problems]
    for style in evaluation.styles:
        texts = [texts.get(style) for texts in demonstrated]
        written = likelihoods(policy, problems, texts, max_new_tokens=evaluation.max_new_tokens)
        for of_problem, likelihood in zip(found, written, strict=True):
            if likelihood is not None:
                of_problem[_style_name(style)] = likelihood
    return found


def _answer(task: Task, problem: Problem) -> str:
    """A right completion for the reader where no declared style has one: the answer alone, if the task writes that."""
    for style in (IMPLICIT, EXPLICIT):
        with suppress(ValueError):  # a style that this problem, or this task, does not have
            return demonstration(task, problem, style).text
    return ""


def _style_name(style: TraceStyle) -> str:
    return style.name.replace("/", "").replace(" ", "_")


def _mass(policy: Policy, problem: Problem, texts: Sequence[str], evaluation: Evaluation) -> float:
    """Total probability, at temperature 1, of these completions; one that is over the token budget counts 0."""
    tokenizer = policy.tokenizer
    prompt = tokenizer.encode(problem.prompt)
    completions = [[*ids, tokenizer.eos] for ids in tokenizer.encode_many(texts)]
    possible = [completion for completion in completions if len(completion) <= evaluation.max_new_tokens]
    if not possible:
        return 0.0
    scored = policy.score([prompt] * len(possible), possible)
    return float(scored.logp_BC.double().sum(1).exp().sum())


def _row(problem: Problem, sampled: Rollouts, greedy: Rollouts, i: int) -> dict[str, Any]:
    logp_B = (sampled.completions.logp_BT * sampled.completions.mask_BT).sum(1).tolist()
    completions = [
        {
            "text": sampled.texts[row],
            "correct": sampled.verdicts[row].correct,
            "well_formed": sampled.verdicts[row].well_formed,
            "reason": sampled.verdicts[row].reason,
            "logp": logp_B[row],
            "truncated": not bool(sampled.completions.finished_B[row]),
        }
        for row in range(i * sampled.group, (i + 1) * sampled.group)
    ]
    return {
        "prompt": problem.prompt,
        "key": problem.key,
        "features": dict(problem.features),
        "floor": sampled.floors[i],
        "greedy": {"text": greedy.texts[i], "correct": greedy.verdicts[i].correct, "reason": greedy.verdicts[i].reason},
        "completions": completions,
    }
