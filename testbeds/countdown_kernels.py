"""The loops of Countdown, compiled: values of all forms of many multisets at once, and targets drawn from them.

Values are fractions (top, bottom) of 64-bit integers with bottom > 0, or bottom == 0 for what does not exist. They are
not reduced unless a bound on results asks for it: unreduced numerators and denominators obey the same bound as reduced
ones (see ``Rules.magnitude``). Nothing here is random: draws are handed in.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Rows = NDArray[np.uint32]
Floats = NDArray[np.float64]
Span = tuple[int, int, int, int]
"""(first position that uses every number, number of positions, lowest target, highest target)."""

LISTED = 16  # positions of solutions that a problem carries; most targets of up to 4 numbers have fewer solutions
STRATA = 64  # solution counts of 1, 2-3, 4-7, ...: one per bit


@njit(cache=True, error_model="numpy")
def reduced(top: int, bottom: int) -> tuple[int, int]:
    """The fraction in lowest terms."""
    a, b = abs(top), bottom
    while b:
        a, b = b, a % b
    return (top // a, bottom // a) if a > 1 else (top, bottom)


@njit(cache=True, error_model="numpy")
def combined(operator: int, a: int, b: int, c: int, d: int) -> tuple[int, int]:
    """(a/b) o (c/d) with bottom 0 for a division by zero; not reduced."""
    if operator == 0:
        return a * d + c * b, b * d
    if operator == 1:
        return a * d - c * b, b * d
    if operator == 2:
        return a * c, b * d
    if c < 0:
        return -a * d, -b * c
    return a * d, b * c


@njit(cache=True, error_model="numpy")
def _fractions(rows: Rows, letters: int, top: Ints, bottom: Ints) -> None:
    """Forms without a rule on results: one exists unless it divides by zero."""
    for r in range(rows.shape[0]):
        operator, left, right = rows[r, 0], rows[r, 1], rows[r, 2]
        a, b, c, d = top[left], bottom[left], top[right], bottom[right]
        p, q = a * c, b * d  # 0 where an operand does not exist
        if operator == 0:
            p = a * d + c * b
        elif operator == 1:
            p = a * d - c * b
        elif operator == 3:
            p, q = a * d, b * c
            if q < 0:
                p, q = -p, -q
            if d == 0:
                q = 0
        place = np.uint64(letters + r)  # an unsigned index needs no check for negative ones
        top[place], bottom[place] = p, q


@njit(cache=True, error_model="numpy")
def _naturals(rows: Rows, letters: int, top: Ints, bottom: Ints) -> None:
    """Forms of which one sign has positive whole results alone.

    A sum may pass through 0 on its way, since its terms can be taken in another order; a factor or term may not be 0.
    """
    for r in range(rows.shape[0]):
        operator, left, right = rows[r, 0], rows[r, 1], rows[r, 2]
        a, c = top[left], top[right]
        exists = bottom[left] & bottom[right]
        value = a * c
        if operator == 0:
            value = a + c
        elif operator == 1:
            value = a - c
        elif value == 0:
            exists = 0
        elif operator == 3 and exists:
            exists = 0
            if abs(a) >= abs(c):  # else no whole number, and dividing is the slowest step
                value = a // c
                exists = 1 if value * c == a else 0
        place = np.uint64(letters + r)
        top[place], bottom[place] = value, exists


@njit(cache=True, error_model="numpy")
def _derived(rows: Rows, positive: bool, largest: int, top: Ints, bottom: Ints) -> None:  # noqa: FBT001
    """Signed expressions, by all their derivations: one exists if some derivation has permitted results alone."""
    for r in range(rows.shape[0]):
        left, right, place = rows[r, 1], rows[r, 2], rows[r, 3]
        if bottom[place] or not bottom[left] or not bottom[right]:
            continue
        p, q = combined(rows[r, 0], top[left], bottom[left], top[right], bottom[right])
        if q and permitted(p, q, positive, largest):
            top[place], bottom[place] = reduced(p, q)


@njit(cache=True, error_model="numpy")
def permitted(top: int, bottom: int, positive: bool, largest: int) -> bool:  # noqa: FBT001
    """Whether a result may occur; ``largest`` is 0 for no bound."""
    if positive and (top <= 0 or top % bottom):
        return False
    if largest:
        p, q = reduced(top, bottom)
        return abs(p) <= largest and q <= largest
    return True


@njit(cache=True, error_model="numpy")
def evaluate(rows: Rows, values: Ints, rules: Ints, top: Ints, bottom: Ints) -> None:
    """Fill in all values; ``rules`` is (signed, positive, largest or 0, exact use, a bit for each operator)."""
    letters = values.shape[0]
    for place in range(letters):
        top[place], bottom[place] = values[place], 1
    if rules[0]:
        for place in range(letters, bottom.shape[0]):
            bottom[place] = 0
        _derived(rows, rules[1] != 0, rules[2], top, bottom)
    elif rules[1]:
        _naturals(rows, letters, top, bottom)
    else:
        _fractions(rows, letters, top, bottom)


@njit(cache=True, error_model="numpy")
def whole_between(top: int, bottom: int, low: int, high: int) -> int:
    """The value where it is a whole number from ``low`` >= 1 to ``high`` <= 2^50, else 0.

    A quotient of floats is within 2^-51 of the value, relatively: near enough to a whole number of that size. Most
    values are out of range, which is seen without a division, much the slowest step.
    """
    if bottom == 0 or top < (low - 0.5) * bottom or top > (high + 0.5) * bottom:
        return 0
    value = int(top / bottom + 0.5)
    return value if value * bottom == top and low <= value <= high else 0


@njit(cache=True, error_model="numpy")
def _is_given(values: Ints, target: int) -> bool:
    for value in values:  # noqa: SIM110 (numba compiles loops, no generators)
        if value == target:
            return True
    return False


@njit(cache=True, error_model="numpy")
def _collect(values: Ints, rules: Ints, span: Span, top: Ints, bottom: Ints) -> int:
    """Overwrite ``top`` and ``bottom`` with position and value of every solution of a target in range; their number."""
    whole, size, low, high = span
    count = 0
    for place in range(whole if rules[3] else values.shape[0], size):
        value = whole_between(top[place] if rules[0] else abs(top[place]), bottom[place], low, high)
        if value and (rules[3] or not _is_given(values, value)):
            top[count], bottom[count] = place, value  # count <= place: written behind what is still to be read
            count += 1
    return count


@njit(cache=True, error_model="numpy")
def _tally(value: Ints, solutions: int, low: int, counts: Ints, touched: Ints) -> int:
    """Add the solutions of every target to ``counts``; the number of targets, whose places are in ``touched``."""
    reached = 0
    for k in range(solutions):
        place = value[k] - low
        if counts[place] == 0:
            touched[reached] = place
            reached += 1
        counts[place] += 1
    return reached


@njit(cache=True, error_model="numpy")
def stratum(solutions: int) -> int:
    """0 for 1 solution, 1 for 2-3, 2 for 4-7, and so on."""
    level = 0
    while solutions > 1:
        solutions >>= 1
        level += 1
    return level


@njit(cache=True, error_model="numpy")
def _stratified(counts: Ints, touched: Ints, reached: int, draw: Floats) -> int:
    """A place in ``counts``: uniform over the occupied strata, then over the targets of the stratum."""
    sizes = np.zeros(STRATA, np.int64)
    occupied = 0
    for k in range(reached):
        level = stratum(counts[touched[k]])
        occupied += 1 if sizes[level] == 0 else 0
        sizes[level] += 1
    level = _nth_occupied(sizes, int(draw[0] * occupied))
    wanted = int(draw[1] * sizes[level])
    place: int = touched[0]
    for k in range(reached):
        if stratum(counts[touched[k]]) == level:
            if wanted == 0:
                place = touched[k]
            wanted -= 1
    return place


@njit(cache=True, error_model="numpy")
def _nth_occupied(sizes: Ints, number: int) -> int:
    """The stratum with this many occupied ones before it."""
    for level in range(STRATA):
        if sizes[level]:
            if number == 0:
                return level
            number -= 1
    return 0


@njit(cache=True, error_model="numpy")
def survey(
    rows: Rows,
    span: Span,
    letters_RL: Ints,
    rules: Ints,
    draws_R2: Floats,
    stratified: bool,  # noqa: FBT001
) -> Ints:
    """For each multiset a drawn target, the number of its solutions and the first LISTED of their positions, else -1.

    All zeros where no target in range is reached.
    """
    _, size, low, high = span
    found = np.zeros((letters_RL.shape[0], 2 + LISTED), np.int64)
    top, bottom = np.empty(size, np.int64), np.empty(size, np.int64)
    counts, touched = np.zeros(high - low + 1, np.int64), np.empty(size, np.int64)
    for r in range(letters_RL.shape[0]):
        evaluate(rows, letters_RL[r], rules, top, bottom)
        solutions = _collect(letters_RL[r], rules, span, top, bottom)
        reached = _tally(bottom, solutions, low, counts, touched)
        if reached:
            if stratified:
                place = _stratified(counts, touched, reached, draws_R2[r])
            else:
                place = touched[int(draws_R2[r, 0] * reached)]
            found[r, 0], found[r, 1] = low + place, counts[place]
            listed = 2
            for k in range(solutions):
                if bottom[k] == low + place and listed < found.shape[1]:
                    found[r, listed] = top[k]
                    listed += 1
            for k in range(listed, found.shape[1]):
                found[r, k] = -1
        for k in range(reached):
            counts[touched[k]] = 0
    return found


@njit(cache=True, error_model="numpy")
def scan(rows: Rows, span: Span, values: Ints, rules: Ints) -> tuple[int, Ints, Ints]:
    """The number of solutions of the targets in range; their positions, ascending, and targets, before other things."""
    top, bottom = np.empty(span[1], np.int64), np.empty(span[1], np.int64)
    evaluate(rows, values, rules, top, bottom)
    return _collect(values, rules, span, top, bottom), top, bottom
