"""The fast half of cryptarithms: sums drawn, lettered, and kept if one assignment fits, by compiled code.

A puzzle is an array of rows of letters, addends first and the result last, column 0 on the right, -1 where a row has no
letter. The search goes column by column from the right: each addend letter that is new tries all free digits, then the
column's sum and carry are known, which settles the result letter or contradicts it.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from testbeds.smt.zebra_kernels import random_below

Ints = NDArray[np.int64]
Seeds = NDArray[np.uint64]

MOST_ADDENDS = 4
LONGEST_ADDEND = 6
COLUMNS = LONGEST_ADDEND + 2  # four addends carry less than 4, which is two digits in base 2 and 3, else one


@njit(cache=True)
def _plan(rows: Ints, addends: int, columns: int, places: Ints) -> int:
    """Write into ``places`` the new letters in search order; the number of letters.

    A row of places is (letter, column, whether it is the column's result). A result letter that is not new, or that
    is in the same column as an addend, is a check and not a place: its row holds letter -1.
    """
    seen = 0
    count = 0
    for c in range(columns):
        for r in range(addends):
            letter = rows[r, c]
            if letter >= 0 and not seen >> letter & 1:
                seen |= 1 << letter
                places[count, 0], places[count, 1], places[count, 2] = letter, c, 0
                count += 1
        letter = rows[addends, c]
        is_new = not seen >> letter & 1
        seen |= 1 << letter
        places[count, 0], places[count, 1], places[count, 2] = (letter if is_new else -1), c, 1
        count += 1
    return count


@njit(cache=True)
def _column_sum(rows: Ints, addends: int, c: int, digits: Ints, carry: int) -> int:
    total = carry
    for r in range(addends):
        if rows[r, c] >= 0:
            total += digits[rows[r, c]]
    return total


@njit(cache=True)
def count_assignments(rows: Ints, addends: int, columns: int, base: int, leading: int, most: int) -> tuple[int, int]:  # noqa: C901, PLR0912, PLR0915
    """(assignments, digits tried): how many assignments fit, counted up to ``most``; bit l of ``leading``: l not 0."""
    places = np.empty((columns * (addends + 1), 3), dtype=np.int64)
    count = _plan(rows, addends, columns, places)
    digits = np.zeros(26, dtype=np.int64)
    carries = np.zeros(columns + 1, dtype=np.int64)
    tried = np.full(count, -1, dtype=np.int64)
    used = np.zeros(count + 1, dtype=np.int64)  # digits taken before each place
    found, nodes, p = 0, 0, 0
    while p >= 0:
        if p == count:
            found += carries[columns] == 0
            if found == most:
                break
            p -= 1
            continue
        letter, c, is_result = places[p, 0], places[p, 1], places[p, 2]
        goes_on = False
        if is_result:
            if tried[p] < 0:
                tried[p] = 0
                nodes += 1
                total = _column_sum(rows, addends, c, digits, carries[c])
                carries[c + 1] = total // base
                digit = total % base
                if letter < 0:
                    goes_on = digits[rows[addends, c]] == digit
                    used[p + 1] = used[p]
                else:
                    goes_on = not used[p] >> digit & 1 and not (digit == 0 and leading >> letter & 1)
                    digits[letter] = digit
                    used[p + 1] = used[p] | 1 << digit
        else:
            digit = tried[p] + 1
            while digit < base and (used[p] >> digit & 1 or (digit == 0 and leading >> letter & 1)):
                digit += 1
            tried[p] = digit
            if digit < base:
                nodes += 1
                digits[letter] = digit
                used[p + 1] = used[p] | 1 << digit
                goes_on = True
        if goes_on:
            p += 1
            if p < count:
                tried[p] = -1
        else:
            p -= 1
    return found, nodes


@njit(cache=True)
def _sum(state: Seeds, addends: int, low: int, high: int, base: int, rows: Ints) -> int:
    """Write digits of random addends and of their sum into ``rows``; the number of columns."""
    longest = 0
    for r in range(addends):
        length = low + random_below(state, high - low + 1)
        longest = max(longest, length)
        for c in range(length - 1):
            rows[r, c] = random_below(state, base)
        rows[r, length - 1] = 1 + random_below(state, base - 1)
    carry = 0
    columns = 0
    while columns < longest or carry:
        total = carry
        for r in range(addends):
            total += max(rows[r, columns], 0)
        rows[addends, columns] = total % base
        carry = total // base
        columns += 1
    return columns


@njit(cache=True)
def _has_twins(rows: Ints, addends: int, columns: int, base: int, leading: int) -> bool:
    """Whether two letters stand once each, in one column's addends, so that exchanging them gives a second solution."""
    times = np.zeros(base, dtype=np.int64)
    for r in range(addends + 1):
        for c in range(columns):
            if rows[r, c] >= 0:
                times[rows[r, c]] += 1
    for c in range(columns):
        for r in range(addends):
            for s in range(r):
                x, y = rows[r, c], rows[s, c]
                are_single = x >= 0 and y >= 0 and x != y and times[x] == 1 and times[y] == 1
                if are_single and ((leading >> x & 1) == (leading >> y & 1) or (x != 0 and y != 0)):
                    return True
    return False


@njit(cache=True)
def draw(addends: int, low: int, high: int, base: int, seeds: Seeds, most_draws: int) -> tuple[Ints, Ints, Ints, Ints]:
    """For each seed the digits of a sum whose digits can be lettered uniquely: (rows, columns, nodes, draws).

    Letters are digits: row entries say which digit a letter stands for, so the solution is that each letter is itself.
    ``columns`` is 0 where ``most_draws`` sums were drawn in vain.
    """
    problems = seeds.size
    rows = np.full((problems, addends + 1, COLUMNS), -1, dtype=np.int64)
    columns = np.zeros(problems, dtype=np.int64)
    nodes = np.zeros(problems, dtype=np.int64)
    draws = np.zeros(problems, dtype=np.int64)
    state = np.zeros(1, dtype=np.uint64)
    for i in range(problems):
        state[0] = seeds[i]
        while draws[i] < most_draws:
            draws[i] += 1
            rows[i] = -1
            width = _sum(state, addends, low, high, base, rows[i])
            leading = 0
            for r in range(addends + 1):
                c = width - 1
                while rows[i, r, c] < 0:
                    c -= 1
                leading |= 1 << rows[i, r, c]
            if _has_twins(rows[i], addends, width, base, leading):
                continue
            found, nodes[i] = count_assignments(rows[i], addends, width, base, leading, 2)
            if found == 1:
                columns[i] = width
                break
    return rows, columns, nodes, draws
