"""Latin squares, drawn exactly uniformly, a row at a time.

The rows that can stand below k rows are counted (a permanent, by subsets of the numbers): r of them. That number is at
most B(k), whatever the k rows are. A whole number u is drawn uniformly from 0 to B(k) - 1; where u < r, the row that
comes at place u is taken, else all begins anew. Each square is then met with the same probability in one attempt, the
product of 1 / B(k). The bounds: B(0) = n!; B(1), the derangements, and B(n - 1) = 1 are exact; before the last two rows
the choices are cycles, at most floor(n / 2), of two ways each; otherwise Bregman's bound on the permanent of a matrix
with s = n - k ones in each row, (s!)^(n / s).

Sources: Bregman, "Some properties of nonnegative matrices and their permanents", 1973. Rejection along bounds on
permanents: Huber, "Exact sampling from perfect matchings of dense regular bipartite graphs", 2006.
"""

from __future__ import annotations

from functools import cache
from math import factorial

import numpy as np
from numba import njit
from numpy.random import Generator

from testbeds.smt.model import Integers

ATTEMPTS = 64  # of which the random numbers are drawn at once; two in 5 succeed for size 5, one in 237 for size 9
MOST_BATCHES = 10_000  # far beyond what any draw needs


def random_square(size: int, rng: Generator) -> tuple[int, ...]:
    """A Latin square of the numbers 0 to size - 1, by rows, uniform over all.

    Raises:
        ValueError: where no attempt of very many succeeded, which for sizes up to 9 does not happen.
    """
    square = np.zeros((size, size), dtype=np.int64)
    for _ in range(MOST_BATCHES):
        if build(square, rng.integers(0, row_bounds(size), size=(ATTEMPTS, size))):
            return tuple(square.ravel().tolist())
    raise ValueError(
        f"no Latin square of size {size} was drawn in {MOST_BATCHES * ATTEMPTS} attempts; the sizes are 1 to 9"
    )


@cache
def row_bounds(size: int) -> tuple[int, ...]:
    """For each k, at least as many as the rows that can stand below any k rows of a Latin square."""
    derangements = [1, 0]
    for n in range(2, size + 1):
        derangements.append((n - 1) * (derangements[-1] + derangements[-2]))
    bounds = [factorial(size), derangements[size]]
    for rows in range(2, size):
        free = size - rows
        # Rounding may cost the bound itself where it is a whole number: the last digits are given away.
        bounds.append(int(factorial(free) ** (size / free) + 1e-6) if free != 2 else 2 ** (size // 2))
    return tuple(bounds[:size])


@njit(cache=True)
def build(square: Integers, draws: Integers) -> bool:  # noqa: C901
    """Writes into ``square`` what the first attempt that succeeds gives; a row of ``draws`` is an attempt."""
    size = square.shape[0]
    full = (1 << size) - 1
    ways = np.empty(1 << size, dtype=np.int64)
    free = np.empty(size, dtype=np.int64)
    for attempt in range(draws.shape[0]):
        free[:] = full
        row = 0
        while row < size:
            left = draws[attempt, row]
            count_ways(free, ways)
            if left >= ways[full]:
                break
            numbers = full
            for column in range(size):
                for number in range(size):
                    bit = 1 << number
                    if numbers & free[column] & bit:
                        if left < ways[numbers ^ bit]:
                            square[row, column] = number
                            numbers ^= bit
                            free[column] ^= bit
                            break
                        left -= ways[numbers ^ bit]
            row += 1
        if row == size:
            return True
    return False


@njit(cache=True)
def count_ways(free: Integers, ways: Integers) -> None:
    """For each set of numbers: in how many ways the last so many columns can each take one that is free there."""
    size = free.shape[0]
    ways[0] = 1
    for numbers in range(1, ways.shape[0]):
        count = 0
        rest = numbers
        while rest:
            rest &= rest - 1
            count += 1
        choices = numbers & free[size - count]
        total = 0
        while choices:
            bit = choices & -choices
            total += ways[numbers ^ bit]
            choices ^= bit
        ways[numbers] = total
