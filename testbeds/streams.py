"""Keyed randomness: every random number of the laboratory comes from a stream that is named by a key.

A key is a tuple of strings and whole numbers, such as ``("suite", seed, "train", block)``. Equal keys give equal
streams in every process, whatever the hash seed, the number of workers or the order of calls; different keys give
independent ones. Nothing here, and nothing elsewhere, uses a global generator or ``seed + i``.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

import numpy as np
from numpy.random import Generator, Philox
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

KeyPart = str | int


def key_bytes(*key: KeyPart, size: int) -> bytes:
    """``size`` bytes of BLAKE2b over a key; parts are length-prefixed and typed, so ("1",) and (1,) differ."""
    if not key:
        raise ValueError("a stream needs a key of at least one part, got none")
    return blake2b(b"".join([_encoded(part) for part in key]), digest_size=size).digest()


def _encoded(part: object) -> bytes:
    """One part of a key: its type, its length, and its text."""
    if isinstance(part, str):
        encoded = part.encode("utf-8", "surrogatepass")  # a completion may hold half a character
        return b"s%d:%b" % (len(encoded), encoded)
    if isinstance(part, int) and not isinstance(part, bool):
        encoded = b"%d" % part
        return b"i%d:%b" % (len(encoded), encoded)
    raise TypeError(f"a stream's key is made of str and int, got {part!r} of type {type(part).__name__}")


def stream(*key: KeyPart) -> Generator:
    """A generator of its own for this key: Philox-4x64, keyed by 128 bits of BLAKE2b (Salmon et al. 2011)."""
    words = np.frombuffer(key_bytes(*key, size=16), dtype="<u8")
    return Generator(Philox(_Key(words)))  # type: ignore[arg-type]  # numpy's stub lacks the documented ISeedSequence


class _Key(ISeedSequence):
    """Gives Philox its key; ``Philox(key=...)`` would first gather entropy from the system, at three times the cost."""

    __slots__ = ("_words",)

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> NDArray[np.uint64]:
        """The two words of the key, which is what Philox asks for."""
        return self._words


def seed_from_key(*key: KeyPart) -> int:
    """63 bits for libraries that take a seed (torch.Generator.manual_seed)."""
    return int.from_bytes(key_bytes(*key, size=8), "little") >> 1


def unit_interval(*key: KeyPart) -> float:
    """A uniform number in [0, 1) that belongs to this key: what cuts splits and keys noise."""
    return (int.from_bytes(key_bytes(*key, size=8), "little") >> 11) * 2.0**-53


def unit_intervals(*key: KeyPart) -> Callable[[str], float]:
    """The function that gives ``unit_interval(*key, part)`` for a last part, at a third of the time."""
    begun = blake2b(b"".join([_encoded(part) for part in key]), digest_size=8)

    def draw(part: str) -> float:
        hasher = begun.copy()
        hasher.update(_encoded(part))
        return (int.from_bytes(hasher.digest(), "little") >> 11) * 2.0**-53

    return draw


def lanes(*key: KeyPart, rows: int, columns: int, first: int = 0) -> NDArray[np.int64]:
    """One 63-bit integer per (row, column), shape (rows, columns): a key for each rollout of a batch.

    Lane (p, g) depends on the key, p and g alone: asking for more rows or columns leaves the others as they were. Rows
    are counted from ``first``, so that a long table can be taken in parts.
    """
    columns_of_row = [stream(*key, row).integers(0, 2**63, size=columns) for row in range(first, first + rows)]
    return np.stack(columns_of_row) if columns_of_row else np.zeros((0, columns), dtype=np.int64)
