"""Whether numbers, among them fractions and negative ones, can reach a target: by exhausting their tree, compiled.

The engine of countdown_search.py answers for the natural numbers of a puzzle. A search also stands at states that it
never sees, such as (-2), (8/3), 7; here they are proved dead or alive. All arithmetic is exact, in 64 bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from testbeds.countdown_search import Rules

Ints = NDArray[np.int64]

# The operations on the values at places i < j, by number; the operator of each, and whether j stands on the left.
OPERATIONS = (("+", False), ("-", False), ("-", True), ("*", False), ("/", False), ("/", True))
# Places in the code of rules.
_PLUS, _MINUS, _TIMES, _DIVIDE, _POSITIVE, _WHOLE, _LARGEST, _EXACT_USE = range(8)


def rule_code(rules: Rules, *, whole: bool = False) -> Ints:
    """The rules as whole numbers; ``whole``: every result must be a whole number, of any sign."""
    return np.array(
        [
            *(operator in rules.operators for operator in "+-*/"),
            rules.positive,
            whole,
            rules.largest or 0,
            rules.exact_use,
        ],
        np.int64,
    )


def find(tops: Ints, bottoms: Ints, target: int, code: Ints) -> Ints:
    """For each row of values ``tops / bottoms``: 1 and a path to the target, flat; 0 where it cannot be reached.

    A path has three numbers for each step: places i < j, and the operation on their values. After a step its result
    stands first and the other values follow in their order. Steps after the one that reaches the target (where numbers
    may be left over) are -1.
    """
    found = np.full((tops.shape[0], 3 * tops.shape[1] - 2), -1, np.int64)
    scratch = np.empty((2, tops.shape[1] + 1, tops.shape[1]), np.int64)
    _find(tops, bottoms, target, code, found, scratch)
    return found


@njit(cache=True, error_model="numpy")
def _find(tops: Ints, bottoms: Ints, target: int, code: Ints, found: Ints, scratch: Ints) -> None:
    size = tops.shape[1]
    for row in range(tops.shape[0]):
        for place in range(size):
            scratch[0, size, place], scratch[1, size, place] = tops[row, place], bottoms[row, place]
        found[row, 0] = 1 if _extend(scratch[0], scratch[1], size, target, code, found[row]) else 0


@njit(cache=True, error_model="numpy")
def _extend(top: Ints, bottom: Ints, size: int, target: int, code: Ints, path: Ints) -> bool:
    """Whether the ``size`` values of row ``size`` reach the target; the rows below are scratch."""
    step = 1 + 3 * (top.shape[1] - size)
    for i in range(size):
        for j in range(i + 1, size):
            if _is_repeated(top[size], bottom[size], i, j):
                continue
            a, b, c, d = top[size, i], bottom[size, i], top[size, j], bottom[size, j]
            last = _hit(a, b, c, d, target, code) if size == 2 or not code[_EXACT_USE] else -1
            path[step], path[step + 1], path[step + 2] = i, j, last
            if last >= 0:
                return True
            _keep_others(top, bottom, size, i, j)
            for operation in range(6 if size > 2 else 0):
                path[step + 2] = operation
                top[size - 1, 0], bottom[size - 1, 0] = _result(operation, a, b, c, d, code)
                if bottom[size - 1, 0] and _extend(top, bottom, size - 1, target, code, path):
                    return True
    path[step], path[step + 1], path[step + 2] = -1, -1, -1
    return False


@njit(cache=True, error_model="numpy")
def _is_repeated(top: Ints, bottom: Ints, i: int, j: int) -> bool:
    """Whether an equal pair of values stands at places before i < j."""
    for place in range(j):  # compiled code knows no generator expressions
        other = i if place < i else j
        if place != i and top[place] * bottom[other] == top[other] * bottom[place]:
            return True
    return False


@njit(cache=True, error_model="numpy")
def _keep_others(top: Ints, bottom: Ints, size: int, i: int, j: int) -> None:
    """Write the values of row ``size`` but those at i < j to the row below, behind the place of the result."""
    for place in range(size):
        if place != i and place != j:  # noqa: PLR1714 (compiled code would build the tuple)
            below = place + 1 - (place > i) - (place > j)
            top[size - 1, below], bottom[size - 1, below] = top[size, place], bottom[size, place]


@njit(cache=True, error_model="numpy")
def _hit(a: int, b: int, c: int, d: int, target: int, code: Ints) -> int:  # noqa: PLR0911 (one for each operation)
    """The first operation that makes the target of a/b and c/d; -1 where none does."""
    left, right, below = a * d, c * b, b * d
    if code[_PLUS] and _is(left + right, below, target):
        return 0
    if code[_MINUS] and _is(left - right, below, target):
        return 1
    if code[_MINUS] and _is(right - left, below, target):
        return 2
    if code[_TIMES] and _is(a * c, below, target):
        return 3
    if code[_DIVIDE] and right != 0 and _is(left, right, target):
        return 4
    if code[_DIVIDE] and left != 0 and _is(right, left, target):
        return 5
    return -1


@njit(cache=True, error_model="numpy")
def _is(top: int, bottom: int, target: int) -> bool:
    """Whether top / bottom is the target. The product, which may wrap, spares nearly all of the exact divisions."""
    return top == bottom * target and top % bottom == 0 and top // bottom == target


@njit(cache=True, error_model="numpy")
def _result(operation: int, a: int, b: int, c: int, d: int, code: Ints) -> tuple[int, int]:
    """The operation on a/b and c/d as a fraction with a positive denominator; (0, 0) where it is not permitted."""
    if operation in (2, 5):
        a, b, c, d = c, d, a, b
    if operation == 0 and code[_PLUS]:
        top, bottom = a * d + c * b, b * d
    elif operation in (1, 2) and code[_MINUS]:
        top, bottom = a * d - c * b, b * d
    elif operation == 3 and code[_TIMES]:
        top, bottom = a * c, b * d
    elif operation in (4, 5) and code[_DIVIDE] and c != 0:
        top, bottom = (a * d, b * c) if c > 0 else (-a * d, -b * c)
    else:
        return 0, 0
    return _permitted(top, bottom, code)


@njit(cache=True, error_model="numpy")
def _permitted(top: int, bottom: int, code: Ints) -> tuple[int, int]:
    """The fraction, reduced where a rule looks at its terms; (0, 0) where a rule forbids it."""
    if code[_WHOLE] or code[_POSITIVE]:
        if top % bottom != 0:
            return 0, 0
        top, bottom = top // bottom, 1
    if code[_POSITIVE] and top <= 0:
        return 0, 0
    if code[_LARGEST]:
        divisor, rest = bottom, abs(top)
        while rest:
            divisor, rest = rest, divisor % rest
        top, bottom = top // divisor, bottom // divisor
        if abs(top) > code[_LARGEST] or bottom > code[_LARGEST]:
            return 0, 0
    return top, bottom
