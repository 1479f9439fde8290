"""Random whole numbers in compiled code: xoshiro256** (Blackman and Vigna 2018), seeded from the caller's stream."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.random import Generator
from numpy.typing import NDArray

Words = NDArray[np.uint64]


def dice(rng: Generator) -> Words:
    """A state for ``below``: 256 bits of ``rng`` (all zero, which would stay zero, has probability 2**-256)."""
    return rng.integers(0, 2**64, size=4, dtype=np.uint64)


@njit(cache=True)
def _next(state: Words) -> np.uint64:
    """The next 64 bits."""
    result = state[1] * np.uint64(5)
    result = ((result << np.uint64(7)) | (result >> np.uint64(57))) * np.uint64(9)
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << np.uint64(45)) | (state[3] >> np.uint64(19))
    return np.uint64(result)


@njit(cache=True)
def below(state: Words, bound: int) -> np.int64:
    """A whole number from 0 to ``bound - 1``, exactly uniform; ``bound`` is at most 2**32 (Lemire 2019)."""
    span = np.uint64(bound)
    threshold = (np.uint64(1 << 32) - span) % span
    while True:
        product = (_next(state) >> np.uint64(32)) * span
        if (product & np.uint64(0xFFFFFFFF)) >= threshold:
            return np.int64(product >> np.uint64(32))


@njit(cache=True)
def shuffle(state: Words, items: NDArray[np.int64]) -> None:
    """``items`` in a uniformly random order, in place (Fisher and Yates)."""
    for last in range(len(items) - 1, 0, -1):
        other = below(state, last + 1)
        items[last], items[other] = items[other], items[last]
