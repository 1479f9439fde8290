"""Measures of sampled answers: exact estimators, each with its guessing floor."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Probability that k of n samples, drawn without replacement, hold a correct one (Chen et al. 2021).

    ``1 - C(n-c, k) / C(n, k)``: unbiased. Exact integers, so no overflow and no log space.

    Raises:
        ValueError: for k > n, where no unbiased estimate exists.
    """
    if not 0 <= correct <= samples:
        raise ValueError(f"correct ({correct}) must be between 0 and samples ({samples})")
    if not 1 <= k <= samples:
        raise ValueError(f"pass@k needs 1 <= k <= samples, got k={k} and {samples} samples; draw more samples")
    return 1 - comb(samples - correct, k) / comb(samples, k)


def above_floor(rate: float, floor: float) -> float:
    """``(rate - floor) / (1 - floor)``: 0 for blind guessing, 1 for perfection, negative below guessing."""
    if not 0 <= floor < 1:
        raise ValueError(f"a floor must be in [0, 1), got {floor}: with a floor of 1 nothing can be measured")
    return (rate - floor) / (1 - floor)


def floor_at_k(floor: float, k: int) -> float:
    """Most that k independent blind guesses reach: ``1 - (1 - floor)^k``.

    Exact where all answers are equally likely. Elsewhere no blind policy gets that far, since its best guess repeats
    itself, so a rate corrected by this floor is too low rather than too high.
    """
    return 1 - (1 - floor) ** k


def mixed_share_at(rate: float, group: int) -> float:
    """Expected share of groups with both right and wrong answers: ``1 - q^G - (1-q)^G`` at pass rate q.

    At the floor this is what lucky guesses alone produce: reward variance without anything to learn from.
    """
    return 1 - rate**group - (1 - rate) ** group


def mixed_share(correct: Sequence[Sequence[bool]]) -> float:
    """Observed share of groups with both right and wrong answers."""
    return sum(any(group) and not all(group) for group in correct) / len(correct)
