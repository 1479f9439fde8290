"""The right chains of a multiset of numbers: listed one by one, and counted for all targets at once. Pure functions.

A chain is a sequence of written lines ``a*b=c``, each with two values that are still available. A value that is
available twice is one value on paper. Results stand before the given numbers and are used first, so that a chain is
complete as soon as any reading of it leaves no result but the last unused.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from testbeds.arithmetic import apply, write
from testbeds.countdown_chain_kernel import chain_tally
from testbeds.countdown_search import Rules, rule_code

Ints = NDArray[np.int64]


def chains(numbers: tuple[int, ...], rules: Rules, target: int) -> Iterator[str]:
    """Every right chain once, as tight text, in a stable order."""
    yield from _chains(tuple(Fraction(number) for number in sorted(numbers)), 0, (), rules, target)


def _chains(
    available: tuple[Fraction, ...], results: int, lines: tuple[str, ...], rules: Rules, target: int
) -> Iterator[str]:
    for i, j in _distinct_pairs(available):
        rest = tuple(value for k, value in enumerate(available) if k not in (i, j))
        unused = results - (i < results) - (j < results)
        for operator in rules.operators:
            result = apply(operator, available[i], available[j])
            if result is None or not rules.permit(result):
                continue
            longer = (*lines, f"{write(available[i])}{operator}{write(available[j])}={write(result)}")
            if result == target and not unused and not (rest and rules.exact_use):
                yield ",".join(longer)
            if rest:
                yield from _chains((result, *rest), unused + 1, longer, rules, target)


def _distinct_pairs(available: tuple[Fraction, ...]) -> Iterator[tuple[int, int]]:
    """Ordered pairs of places, the first for each pair of values."""
    seen: set[tuple[Fraction, Fraction]] = set()
    for i, j in permutations(range(len(available)), 2):
        values = (available[i], available[j])
        if values not in seen:
            seen.add(values)
            yield i, j


def chain_counts(numbers: tuple[int, ...], rules: Rules, low: int, high: int) -> dict[int, int]:
    """Number of right chains (as ``chains`` lists them) for every target in [low, high] that has one."""
    highest = high if rules.largest is None else min(high, rules.largest)
    counts = chain_tally(np.array([numbers]), rule_code(rules), np.array([low]), np.array([max(low, highest)]))[0]
    return {low + place: count for place, count in enumerate(counts.tolist()) if count and low + place <= highest}


def count_chains(numbers_RN: Ints, targets_R: Ints, rules: Rules) -> Ints:
    """Number of right chains of one permitted target for each multiset of numbers."""
    return chain_tally(numbers_RN, rule_code(rules), targets_R, targets_R)[:, 0]
