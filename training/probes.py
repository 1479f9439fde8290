"""Probes: the exact probability of texts that nobody sampled, at temperature 1.

A task that lists the answers a problem allows (``choices``) has every policy asked how likely each of them is *as an
immediate answer*: its tokens with the end token, right after the prompt. That says what a policy would prefer, and by
how much, where sampling says only what it did. A policy that writes working first gives such answers little
probability in all (``legal_mass``); shares and ranks then speak of what it would say if it answered at once, which need
not be what its working leads to.

The second kind of probe is a problem's demonstration: its probability and its loss in nats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, runtime_checkable

import torch

from models import Policy
from testbeds.core import Choice, Problem, Task, Trace
from testbeds.demonstrations import Compound

CORRECT: Final = "correct"
"""The kind of the choices that the verifier accepts."""
ROWS_PER_PASS: Final = 256  # bounds the keys and values in memory: some 400 MB for ten million parameters
DIGITS: Final = 6  # significant digits of a probability in rollouts.jsonl: more is rounding of float32


@runtime_checkable
class Choosable(Protocol):
    """A task that can list the answers that a problem allows."""

    def choices(self, problem: Problem) -> tuple[Choice, ...]:
        """Every answer that the problem allows, right or wrong, each once; empty where there are none."""
        ...


def choices_of(task: Task, problem: Problem) -> tuple[Choice, ...]:
    """The choices of a problem as ``task`` writes them, under any mixtures; empty where its task lists none."""
    if isinstance(task, Compound):
        component, inner = task.component(problem)
        return tuple(
            replace(choice, text=task.written(problem, Trace.worked((), choice.text)).text)
            for choice in choices_of(component, inner)
        )
    return task.choices(problem) if isinstance(task, Choosable) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """How likely a policy is to answer a problem at once with each of its choices.

    A share is a probability divided by that of all choices together: what remains when the policy must answer at once
    with one of them.
    """

    choices: tuple[Choice, ...]
    logp: tuple[float, ...]
    """Log-probability of each choice in nats; minus infinity for one that is longer than the token budget."""

    @property
    def floor(self) -> float:
        """Share of the correct choices under a policy that likes all choices alike."""
        return len(self._correct) / len(self.choices)

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of each choice, also where all their probabilities are too small for a float.

        There are none where no choice fits into the token budget.
        """
        most = max(self.logp)
        weights = [math.exp(logp - most) for logp in self.logp]
        total = math.fsum(weights)
        return tuple(weight / total for weight in weights)

    @property
    def means(self) -> dict[str, float]:
        """Quantities without a guessing floor.

        * ``legal_mass``: probability of all choices together.
        * ``KIND_mass`` for each kind that one of the choices has; that of the correct ones is called
          ``correct_choice_mass``, since ``correct_mass`` counts every way to write a correct answer. It is the smaller.
        * ``correct_rank``: 1 + the number of choices that are likelier than the likeliest correct one; not there where
          no choice fits into the token budget.
        """
        masses = {"legal_mass": self._mass(range(len(self.choices)))}
        for kind in dict.fromkeys(kind for choice in self.choices for kind in choice.kinds):
            having = [i for i, choice in enumerate(self.choices) if kind in choice.kinds]
            masses["correct_choice_mass" if kind == CORRECT else f"{kind}_mass"] = self._mass(having)
        if self._correct and max(self.logp) > -math.inf:
            best = max(self.logp[i] for i in self._correct)
            masses["correct_rank"] = 1.0 + sum(logp > best for logp in self.logp)
        return masses

    @property
    def rates(self) -> dict[str, float]:
        """Quantities whose guessing floor is ``floor``; none where no choice is correct or fits into the token budget.

        * ``correct_share``: share of the correct choices.
        * ``correct_top``: whether the likeliest choice is correct; of several equally likely ones, how many are.
        """
        if not self._correct or max(self.logp) == -math.inf:
            return {}
        shares, best = self.shares, max(self.logp)
        top = [i for i, logp in enumerate(self.logp) if logp == best]
        return {
            "correct_share": math.fsum(shares[i] for i in self._correct),
            "correct_top": len(set(top) & set(self._correct)) / len(top),
        }

    @property
    def rows(self) -> list[tuple[str, float, bool]]:
        """(text, probability, whether it is correct) of each choice, the likeliest first."""
        order = sorted(range(len(self.choices)), key=lambda i: -self.logp[i])
        return [
            (
                self.choices[i].text,
                float(f"{math.exp(self.logp[i]):.{DIGITS}g}"),
                CORRECT in self.choices[i].kinds,
            )
            for i in order
        ]

    @property
    def _correct(self) -> list[int]:
        return [i for i, choice in enumerate(self.choices) if CORRECT in choice.kinds]

    def _mass(self, chosen: Iterable[int]) -> float:
        return math.fsum(math.exp(self.logp[i]) for i in chosen)


def probe(policy: Policy, task: Task, problems: Sequence[Problem], *, max_new_tokens: int) -> list[Probe | None]:
    """The policy's probability of every choice of each problem, from one scoring; None for a problem without choices.

    A choice that takes more than ``max_new_tokens`` with its end token has probability 0, as in sampling.
    """
    listed = [choices_of(task, problem) for problem in problems]
    rows = []
    for problem, choices in zip(problems, listed, strict=True):
        prompt = policy.tokenizer.encode(problem.prompt) if choices else []
        rows += [(prompt, completion) for completion in _completions(policy, problem, choices)]
    scored = iter(_within(policy, rows, max_new_tokens))
    return [
        Probe(choices=choices, logp=tuple(next(scored) for _ in choices)) if choices else None for choices in listed
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Likelihood:
    """How likely a policy is to write one text, at temperature 1."""

    mass: float
    """Its probability as a completion; 0 where it is longer than the token budget."""
    nats: float
    """Negative log-likelihood of the text and its end token, whatever the token budget."""
    tokens: int
    """Its tokens, end token included."""


def likelihoods(
    policy: Policy, problems: Sequence[Problem], texts: Sequence[str | None], *, max_new_tokens: int
) -> list[Likelihood | None]:
    """The likelihood of one text for each problem, from one scoring; None where there is no text."""
    tokenizer = policy.tokenizer
    asked = [(problem, text) for problem, text in zip(problems, texts, strict=True) if text is not None]
    if not asked:
        return [None] * len(problems)
    prompts = [tokenizer.encode(problem.prompt) for problem, _ in asked]
    completions = [[*tokenizer.encode(text), tokenizer.eos] for _, text in asked]
    scored = zip(completions, policy.score(prompts, completions).logp_BC.double().sum(1).tolist(), strict=True)
    found = iter(
        Likelihood(
            mass=math.exp(logp) if len(completion) <= max_new_tokens else 0.0, nats=-logp, tokens=len(completion)
        )
        for completion, logp in scored
    )
    return [None if text is None else next(found) for text in texts]


def _completions(policy: Policy, problem: Problem, choices: Sequence[Choice]) -> list[list[int]]:
    tokenizer = policy.tokenizer
    completions = [[*ids, tokenizer.eos] for ids in tokenizer.encode_many(choice.text for choice in choices)]
    if len(set(map(tuple, completions))) < len(completions):
        texts = ", ".join(choice.text for choice in choices)
        raise ValueError(f"the choices of {problem.prompt!r} are not all different token sequences: {texts}")
    return completions


Row = tuple[list[int], list[int]]
"""A prompt and a completion, as token ids."""


def _within(policy: Policy, rows: Sequence[Row], limit: int) -> list[float]:
    """Log-probability of each completion; minus infinity for one of more than ``limit`` tokens, which is not scored."""
    possible = [i for i, (_, completion) in enumerate(rows) if len(completion) <= limit]
    logp = [-math.inf] * len(rows)
    for start in range(0, len(possible), ROWS_PER_PASS):
        part = possible[start : start + ROWS_PER_PASS]
        for i, total in zip(part, shared_prompt_logp(policy, [rows[i] for i in part]), strict=True):
            logp[i] = total
    return logp


@torch.no_grad()
def shared_prompt_logp(policy: Policy, rows: Sequence[Row]) -> list[float]:
    """Log-probability of each (prompt, completion) at temperature 1: what ``policy.score`` gives, up to rounding.

    Rows with the same prompt share its forward pass. A position has some thirty moves of a few tokens after a prompt of
    seventy, so that is most of the work.
    """
    decoder, device = policy.decoder, policy.decoder.lm_head.weight.device
    context, width = decoder.architecture.context, max(len(completion) for _, completion in rows)
    if (longest := max(len(prompt) + len(completion) for prompt, completion in rows)) > context:
        raise ValueError(f"a choice needs {longest} tokens with its prompt; the policy has a context of {context}")
    number_of: dict[tuple[int, ...], int] = {}
    row_B = torch.tensor([number_of.setdefault(tuple(prompt), len(number_of)) for prompt, _ in rows], device=device)
    length_U = torch.tensor([len(prompt) for prompt in number_of], device=device)
    token_UT = _padded(list(number_of), policy.tokenizer.pad).to(device)
    cache = decoder.empty_cache(len(number_of), min(token_UT.shape[1] + width - 1, context))
    features_UTD = decoder.features(token_UT, None, cache)
    logits_UV = decoder.lm_head(features_UTD[torch.arange(len(length_U), device=device), length_U - 1])
    token_BC = _padded([completion for _, completion in rows], policy.tokenizer.pad).to(device)
    logits_BCV = logits_UV[row_B, None]
    if width > 1:
        # What pads a completion may point beyond the context; its last slot is read by no token of any completion.
        index_C = torch.arange(width - 1, device=device)
        position_BC = (length_U[row_B, None] + index_C).clamp(max=context - 1)
        rest_BCV = decoder(token_BC[:, :-1], position_BC, cache.select(row_B))
        logits_BCV = torch.cat((logits_BCV, rest_BCV), dim=1)
    logp_BC = logits_BCV.float().log_softmax(-1).gather(-1, token_BC[..., None])[..., 0]
    length_B = torch.tensor([len(completion) for _, completion in rows], device=device)
    mask_BC = torch.arange(width, device=device) < length_B[:, None]
    totals: list[float] = logp_BC.double().masked_fill(~mask_BC, 0.0).sum(1).tolist()
    return totals


def _padded(rows: Sequence[Sequence[int]], pad: int) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows])
