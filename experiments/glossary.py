"""What the metrics of an evaluation mean, in one sentence each, for readers of a report."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

MEANINGS: Final = (
    ("problems", "Number of problems."),
    ("samples", "Sampled completions of each problem."),
    ("floor", "Success rate of the best blind guess, mean over problems."),
    ("accuracy", "Share of the sampled completions that are right."),
    ("greedy_accuracy", "Share of the problems that greedy decoding, the likeliest token at each step, gets right."),
    (r"pass@(\d+)", "Chance that at least one of {} samples is right."),
    (
        "correct_share",
        "Of an answer at once, without working: probability of the right answers, divided by that of all possible ones"
        " together. Its floor is the share of the possible answers that are right; both are 1 where all are.",
    ),
    (
        "correct_top",
        "Of an answer at once, without working: share of the problems whose likeliest possible answer is right.",
    ),
    (
        "correct_rank",
        "Of an answer at once, without working: place of the likeliest right answer among the possible ones; 1 is"
        " best.",
    ),
    (
        "legal_mass",
        "Probability that the policy answers at once, without working, with one of the answers that the problem allows"
        " (in chess: the legal moves). A policy that writes working first has little, however good it is.",
    ),
    (
        "correct_choice_mass",
        "Probability that the policy answers at once, without working, with a right one of the answers that the problem"
        " allows.",
    ),
    ("correct_mass", "Exact probability of all right completions together."),
    (
        r"(\w+)_demonstration_mass",
        "Probability of writing exactly the problem's demonstration in the style {}.",
    ),
    (
        r"(\w+)_nats_per_token",
        "Loss: negative log-likelihood of the demonstrations in the style {}, over the number of their tokens, end"
        " tokens included.",
    ),
    (
        r"(\w+)_mass",
        "Probability that the policy answers at once, without working, with one of the possible answers of the kind"
        " {}.",
    ),
    ("well_formed", "Share of the sampled completions that can be read as an answer, right or wrong."),
    ("progress", "How far sampled completions get, from 0 to 1, as the task measures it."),
    ("entropy_sampling_nats", "Entropy of the distribution that tokens were sampled from, mean over tokens."),
    ("entropy_nats", "Entropy of a token at temperature 1, mean over sampled tokens."),
    ("truncated", "Share of the sampled completions that were cut at the token budget."),
    ("length_tokens", "Tokens of a sampled completion, end token included."),
    ("mixed_groups", "Share of the problems with both right and wrong samples: those that RL can learn from."),
    ("mixed_groups_excess", "Mixed groups less what blind guessing would give."),
    (r"(\w+)_problems", "Number of problems that {} is the mean of; the others have none."),
)
"""(pattern of the whole name, meaning with a place for what the pattern's group found); the first that fits counts."""


def meanings(metrics: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """(metric, what it means) of each metric that has a known meaning, in the order given."""
    found = ((metric, _meaning(metric)) for metric in metrics)
    return tuple((metric, meaning) for metric, meaning in found if meaning is not None)


def _meaning(metric: str) -> str | None:
    for pattern, meaning in MEANINGS:
        if fitting := re.fullmatch(pattern, metric):
            return meaning.format(*(group.replace("_", " ") for group in fitting.groups()))
    return None
