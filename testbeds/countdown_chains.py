"""The right chains of a multiset of numbers: listed one by one, and counted for all targets at once. Pure functions.

A chain is a sequence of written lines ``a*b=c``, each with two values that are still available. A value that is
available twice is one value on paper. Results stand before the given numbers and are used first, so that a chain is
complete as soon as any reading of it leaves no result but the last unused.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import permutations

import numpy as np

from testbeds.arithmetic import apply, write
from testbeds.countdown_search import CACHED_MULTISETS, Ints, Rules, combine


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


@lru_cache(maxsize=CACHED_MULTISETS)
def chain_counts(numbers: tuple[int, ...], rules: Rules, low: int, high: int) -> dict[int, int]:
    """Number of right chains (as ``chains`` lists them) for every target in [low, high] that has one."""
    top = np.array([sorted(numbers)], np.int64)
    bottom, results = np.ones_like(top), np.zeros(1, np.int64)
    final: list[Ints] = []
    while top.shape[1] > 1:
        top, bottom, results = _extend(top, bottom, results, rules)
        if top.shape[1] == 1 or not rules.exact_use:
            complete = (results == 1) & (bottom[:, 0] == 1) & (top[:, 0] >= low) & (top[:, 0] <= high)
            final.append(top[complete, 0])
    targets, counts = np.unique(np.concatenate(final), return_counts=True)
    return dict(zip(targets.tolist(), counts.tolist(), strict=True))


def _extend(top: Ints, bottom: Ints, results: Ints, rules: Rules) -> tuple[Ints, Ints, Ints]:
    """All states one line further on: row = state, column = available value, results first."""
    width = top.shape[1]
    pairs = np.array(list(permutations(range(width), 2)))
    others = np.array([[k for k in range(width) if k not in pair] for pair in pairs.tolist()], np.int64)
    equal = (top[:, :, None] == top[:, None, :]) & (bottom[:, :, None] == bottom[:, None, :])
    rank = np.tril(equal, -1).sum(2)  # how many equal values stand before this one
    i, j = pairs.T
    first = (rank[:, i] == 0) & (rank[:, j] == equal[:, i, j])
    state, pair = np.nonzero(first)
    left, right, rest = pairs[pair, 0], pairs[pair, 1], (state[:, None], others[pair])
    rest_top, rest_bottom = top[rest], bottom[rest]
    before = results[state]
    after = before - (left < before) - (right < before) + 1
    a, b = (top[state, left], bottom[state, left]), (top[state, right], bottom[state, right])
    parts = []
    for operator in rules.operators:
        value_top, value_bottom, permitted = combine(operator, a, b, rules)
        parts.append(
            (
                np.column_stack((value_top[permitted], rest_top[permitted])),
                np.column_stack((value_bottom[permitted], rest_bottom[permitted])),
                after[permitted],
            )
        )
    tops, bottoms, counts = zip(*parts, strict=True)
    return np.concatenate(tops), np.concatenate(bottoms), np.concatenate(counts)
