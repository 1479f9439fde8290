"""The loop that counts right chains, compiled; see countdown_chains.py for what a chain is.

Every sequence of lines is walked, those that differ in the order of the operands of + and * together.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from testbeds.countdown_kernels import combined, permitted, whole_between

Ints = NDArray[np.int64]

WAYS = 6  # + - * / of a pair of values, then - and / the other way round
LAST = 2  # values before the last line


@njit(cache=True, error_model="numpy")
def chain_tally(numbers_RN: Ints, rules: Ints, low_R: Ints, high_R: Ints) -> Ints:
    """For each multiset the number of right chains of every target from its ``low`` to its ``high``.

    ``rules`` is as in countdown_kernels.evaluate.
    """
    rows, width = numbers_RN.shape
    most = 1
    for r in range(rows):
        most = max(most, high_R[r] - low_R[r] + 1)
    counts = np.zeros((rows, most), np.int64)
    top, bottom = np.ones((width + 1, width), np.int64), np.ones((width + 1, width), np.int64)
    marks = np.zeros((width + 1, 7), np.int64)
    for r in range(rows):
        for i in range(width):
            top[width, i] = numbers_RN[r, i]
        if width == LAST:
            _end(top[LAST], bottom[LAST], 1, rules, low_R[r], high_R[r], counts[r])
            continue
        _walk(top, bottom, marks, rules, low_R[r], high_R[r], counts[r])
    return counts


RESULTS, WEIGHT, NEXT, LEFT, RIGHT, SAME, UNUSED = range(7)
"""What is marked at each depth: how many of the values are results (they stand first); how many chains led here; the
next step to try; the pair of values at hand, whether they are equal, and the unused results once they are joined."""


@njit(cache=True, error_model="numpy")
def _walk(top: Ints, bottom: Ints, marks: Ints, rules: Ints, low: int, high: int, counts: Ints) -> None:  # noqa: PLR0913, PLR0917
    """Depth first; row ``width`` of top and bottom holds the values while there are ``width`` of them."""
    most = top.shape[1]
    width = most
    marks[width, RESULTS], marks[width, WEIGHT], marks[width, NEXT] = 0, 1, 0
    while width <= most:
        step = marks[width, NEXT]
        if step == WAYS * (width * (width - 1) // 2):
            width += 1
            continue
        marks[width, NEXT] += 1
        if step % WAYS == 0 and not _choose(top, bottom, marks, width, step // WAYS):
            marks[width, NEXT] += WAYS - 1
            continue
        lines = _write(top, bottom, marks, width, rules)
        if lines == 0:
            continue
        if marks[width, UNUSED] == 1 and not rules[3]:
            value = whole_between(top[width - 1, 0], bottom[width - 1, 0], low, high)
            if value:
                counts[value - low] += lines
        if width - 1 == LAST:
            _end(top[LAST], bottom[LAST], lines, rules, low, high, counts)
        else:
            width -= 1
            marks[width, RESULTS], marks[width, WEIGHT], marks[width, NEXT] = marks[width + 1, UNUSED], lines, 0


@njit(cache=True, error_model="numpy")
def _write(top: Ints, bottom: Ints, marks: Ints, width: int, rules: Ints) -> int:
    """Put the result of the step at hand before the other values; the number of chains that are now written, or 0."""
    way = (marks[width, NEXT] - 1) % WAYS
    operator = way if way < 4 else 2 * way - 7
    same = marks[width, SAME] != 0
    if not (rules[4] >> operator) & 1 or (same and way > 3):
        return 0
    left, right = marks[width, LEFT], marks[width, RIGHT]
    if way > 3:
        left, right = right, left
    p, q = combined(operator, top[width, left], bottom[width, left], top[width, right], bottom[width, right])
    if q == 0 or not permitted(p, q, rules[1] != 0, rules[2]):
        return 0
    top[width - 1, 0], bottom[width - 1, 0] = p, q
    weight: int = marks[width, WEIGHT]
    return weight if same or operator in (1, 3) else 2 * weight


@njit(cache=True, error_model="numpy")
def _end(top: Ints, bottom: Ints, lines: int, rules: Ints, low: int, high: int, counts: Ints) -> None:  # noqa: C901, PLR0913, PLR0917
    """Count the last lines: a target, being natural and in range, is permitted."""
    a, b, c, d = top[0], bottom[0], top[1], bottom[1]
    ad, bc, bd = a * d, b * c, b * d
    same = ad == bc
    one_target = low == high
    for way in range(WAYS):
        operator = way if way < 4 else 2 * way - 7
        p, q = ad + bc, bd
        if way == 1:
            p = ad - bc
        elif way == 2:
            p = a * c
        elif way == 3:
            p, q = ad, bc
        elif way == 4:
            p = bc - ad
        elif way == 5:
            p, q = bc, ad
        if one_target and p != low * q:  # it may overflow, which whole_between would notice
            continue
        if (same and way > 3) or not (rules[4] >> operator) & 1:
            continue
        value = whole_between(-p if q < 0 else p, abs(q), low, high)
        if value:
            counts[value - low] += lines if same or operator in (1, 3) else 2 * lines


@njit(cache=True, error_model="numpy")
def _choose(top: Ints, bottom: Ints, marks: Ints, width: int, pair: int) -> bool:
    """Take up a pair of values, unless equal ones stood before, and lay the others out for the next line."""
    i = 0
    while pair >= width - 1 - i:
        pair -= width - 1 - i
        i += 1
    j = i + 1 + pair
    if _stands_before(top, bottom, width, i, i) or _stands_before(top, bottom, width, j, i):
        return False
    slot = 1
    for k in range(width):
        if k != i and k != j:  # noqa: PLR1714 (a tuple would be built)
            top[width - 1, slot], bottom[width - 1, slot] = top[width, k], bottom[width, k]
            slot += 1
    results = marks[width, RESULTS]
    marks[width, LEFT], marks[width, RIGHT] = i, j
    marks[width, SAME] = 1 if top[width, i] * bottom[width, j] == top[width, j] * bottom[width, i] else 0
    marks[width, UNUSED] = results + 1 - (1 if i < results else 0) - (1 if j < results else 0)
    return True


@njit(cache=True, error_model="numpy")
def _stands_before(top: Ints, bottom: Ints, width: int, place: int, apart: int) -> bool:
    """Whether the value at ``place`` stands before it, too, ``apart`` not counted."""
    for k in range(place):
        if k != apart and top[width, k] * bottom[width, place] == top[width, place] * bottom[width, k]:
            return True
    return False
