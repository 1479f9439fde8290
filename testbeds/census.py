"""What a manifest says of a set of problems, gathered while they pass: only their keys stay in memory."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

from testbeds.core import Problem, Task
from testbeds.identity import DIGEST_BYTES, Canonical, canonical
from testbeds.mixture import component_of


class ContentDigest:
    """Digest over the keys, prompts and certificates of problems, in their order."""

    def __init__(self) -> None:
        self._hasher = blake2b(digest_size=DIGEST_BYTES)

    def add(self, problem: Problem) -> None:
        """Takes in one problem."""
        self.add_form(problem.key, problem.prompt, canonical(problem.certificate))

    def add_form(self, key: str, prompt: str, certificate: Canonical) -> None:
        """Takes in one problem whose certificate is in canonical form."""
        self._hasher.update(json.dumps([key, prompt, certificate], sort_keys=True).encode() + b"\n")

    def hexdigest(self) -> str:
        """32 hexadecimal digits of what was taken in."""
        return self._hasher.hexdigest()


def content_digest(problems: Iterable[Problem]) -> str:
    """32 hexadecimal digits over the keys, prompts and certificates of ``problems``, in their order."""
    digest = ContentDigest()
    for problem in problems:
        digest.add(problem)
    return digest.hexdigest()


class Census:
    """Counts, digests, floors and shared keys of the problems of some splits."""

    def __init__(self, task: Task, splits: Iterable[str]) -> None:
        self._task = task
        self._keys: dict[str, set[str]] = {split: set() for split in splits}
        self._counts = dict.fromkeys(self._keys, 0)
        self._floors: dict[str, Counter[float]] = {split: Counter() for split in self._keys}
        self._digests = {split: ContentDigest() for split in self._keys}

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that are counted."""
        return tuple(self._counts)

    def add(self, split: str, problem: Problem) -> None:
        """Takes in one problem of a split."""
        _, _, inner = component_of(self._task, problem)
        self.add_form(split, inner.key, inner.prompt, canonical(inner.certificate), self._task.floor(problem))

    def add_form(self, split: str, key: str, prompt: str, certificate: Canonical, floor: float) -> None:
        """Takes in one problem of a split as a file has it: a mixture's as its component gave it."""
        self._keys[split].add(key)
        self._counts[split] += 1
        self._floors[split][floor] += 1
        self._digests[split].add_form(key, prompt, certificate)

    def entries(self) -> dict[str, object]:
        """The manifest's entries that rest on problems, ready for JSON.

        ``mean_floor`` is the success rate of the best blind guess; ``shared_keys[a][b]`` counts keys in both splits.
        """
        return {
            "counts": dict(self._counts),
            "distinct_keys": {split: len(keys) for split, keys in self._keys.items()},
            "digests": {split: digest.hexdigest() for split, digest in self._digests.items()},
            "mean_floor": {split: _mean(floors) for split, floors in self._floors.items()},
            "shared_keys": {
                one: {other: len(keys & self._keys[other]) for other in self._keys if other != one}
                for one, keys in self._keys.items()
            },
        }


def _mean(counted: Counter[float]) -> float | None:
    return math.fsum(number * times for number, times in counted.items()) / counted.total() if counted else None
