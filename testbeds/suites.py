"""Suites: a task cut into splits that cannot overlap, with random access to its problems.

A problem's split depends on its family (see ``Problem``) and on ``Splits`` alone, never on the suite's seed: two suites
that share their ``Splits`` can never leak into each other, whatever their seeds and tasks. Problem ``i`` of a stream is
a pure function of (task, splits, suite seed, split, key of the stream, i): any worker can ask for any problem in any
order, and nothing needs saving to resume. The task is no part of the key that names the random numbers: tasks that draw
alike and differ in what counts as an answer see the same problems, so arms that compare them are paired.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count as count_from
from itertools import islice
from typing import ClassVar, Protocol, TypeVar, overload

from numpy.random import Generator

from testbeds.census import Census, content_digest
from testbeds.core import Predicate, Problem, Task
from testbeds.identity import canonical, fingerprint
from testbeds.streams import KeyPart, stream, unit_interval, unit_intervals

BLOCK = 64  # problems per block: enough to vectorise a draw; of a 10 % split it already takes 640 candidates
LARGEST_DRAW = 16 * BLOCK  # candidates asked of a task at a time, however rare the split: bounds memory
HELD_OUT_DRAW = 4 * BLOCK  # candidates at a time for a held-out split, whose share of the draws is not known
BARREN_DRAWS = 64  # draws in a row without one problem of the split after which the split is called empty
STALLED = BLOCK // 8  # fewer new keys than this in a block: walking the space is cheaper than drawing from it
BARREN_BLOCKS = 64  # blocks in a row without a new key after which a space that cannot be walked is called exhausted
SMALL_SPACE = 4096  # keys that are counted before drawing, so that an impossible request fails at once
COUNTED_SPACE = 1 << 14  # keys up to which a manifest counts each split's; walking more takes many seconds
LONGEST_SHOWN = 240  # characters of a task in a message; a mixture of ten would bury the rest
CACHED_BLOCKS = 32  # streams that are read in turn (stages, evaluations) times the one or two blocks each is in


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """How problems are dealt to splits. All suites of a study share one, so that no stage leaks into an evaluation."""

    revision: ClassVar[int] = 1

    fractions: tuple[tuple[str, float], ...] = (("train", 0.8), ("validation", 0.1), ("test", 0.1))
    """Name and share of each split of the in-distribution part; the shares sum to 1."""
    salt: int = 0
    """Another salt deals the keys anew."""
    held_out: tuple[tuple[str, Predicate], ...] = ()
    """Name and predicate of each out-of-distribution split, checked first and in order. A problem for which a
    predicate holds is in no fraction split."""

    def __post_init__(self) -> None:
        if not self.fractions:
            raise ValueError("Splits.fractions is empty; give at least (('train', 1.0),)")
        repeated = [name for name, times in Counter(self.names).items() if times > 1]
        if repeated:
            raise ValueError(f"Splits has the name {repeated[0]!r} more than once; each split needs a name of its own")
        if not all(name.strip() for name in self.names):
            raise ValueError(f"Splits has an empty name among {self.names}; name every split")
        for name, share in self.fractions:
            if not share > 0:
                raise ValueError(f"Splits.fractions gives {name!r} the share {share}; shares are above 0")
        total = math.fsum(share for _, share in self.fractions)
        if abs(total - 1) > 1e-9:  # far above the rounding of a few decimal shares, far below any share meant
            raise ValueError(f"Splits.fractions sum to {total}, not to 1: {self.fractions}")

    @property
    def names(self) -> tuple[str, ...]:
        """Every split: the fractions first, then the held-out ones."""
        return tuple(name for name, _ in (*self.fractions, *self.held_out))

    def of(self, problem: Problem) -> str:
        """The name of the split that the problem belongs to."""
        for name, holds in self.held_out:
            if holds(problem):
                return name
        position = _dealer(self.salt)(problem.family or problem.key)
        for name, share in self.fractions:
            position -= share
            if position < 0:
                return name
        return self.fractions[-1][0]  # what rounding leaves over

    def share(self, split: str) -> float | None:
        """The share of the in-distribution part that a fraction split gets; None for a held-out split."""
        self.require(split)
        return dict(self.fractions).get(split)

    def require(self, split: str) -> None:
        """Raises ValueError, with the names that exist, unless ``split`` is one of them."""
        if split not in self.names:
            raise ValueError(f"there is no split {split!r}; these are the splits: {', '.join(self.names)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A task (or a mixture of tasks) under splits, with a seed."""

    revision: ClassVar[int] = 1

    task: Task
    """What the problems are of."""
    splits: Splits = Splits()
    """How they are dealt."""
    seed: int = 0
    """Another seed draws other problems; it never moves a problem to another split."""

    def stream(self, split: str, *key: KeyPart) -> ProblemStream:
        """An endless sequence of problems of ``split``, drawn with replacement; each key names one of its own."""
        self.splits.require(split)
        return ProblemStream(suite=self, split=split, key=key)

    def distinct(self, split: str, count: int) -> tuple[Problem, ...]:
        """The first ``count`` problems of ``split`` with different keys, in an order that does not depend on ``count``.

        Raises:
            ValueError: where the split holds fewer; the message names both numbers.
        """
        return tuple(self.each_distinct(split, count))

    def each_distinct(self, split: str, count: int | None = None) -> Iterator[Problem]:
        """The problems of ``distinct``, one at a time: only their keys stay in memory. None: as many as there are."""
        if count is None:
            self.splits.require(split)
            return _in_fixed_order(self, split)
        self.require(split, count)
        return _counted(self, split, count)

    def require(self, split: str, count: int) -> None:
        """Raises ValueError unless ``split`` exists and, as far as is known before drawing, is large enough."""
        self.splits.require(split)
        if count < 0:
            raise ValueError(f"count must not be negative, got {count}")
        whole = self.task.capacity
        if whole is not None and (whole < count or whole <= SMALL_SPACE):
            available = self.capacity(split) if whole <= SMALL_SPACE else whole
            if available is not None and available < count:
                raise _too_few(self, split, count, f"holds {'' if whole <= SMALL_SPACE else 'at most '}{available}")

    def digest(self, split: str, count: int) -> str:
        """Content digest of ``distinct(split, count)``, 32 hexadecimal digits."""
        return content_digest(self.each_distinct(split, count))

    def capacity(self, split: str) -> int | None:
        """Number of distinct keys of ``split``, exact by walking the task's space; None where it cannot be walked."""
        self.splits.require(split)
        sizes = _split_sizes(self.task, self.splits)
        return None if sizes is None else dict(sizes).get(split, 0)

    def manifest(self, counts: Mapping[str, int]) -> dict[str, object]:
        """What there is to know of ``distinct(split, n)`` for each ``split: n`` of ``counts``, ready for JSON."""
        census = Census(self.task, counts)
        for split, count in counts.items():
            for problem in self.each_distinct(split, count):
                census.add(split, problem)
        return self.describe(census)

    def describe(self, census: Census) -> dict[str, object]:
        """The manifest of problems that were counted on the way to somewhere else, such as a file.

        ``capacities`` are counted for small spaces alone, and else None.
        """
        small = (self.task.capacity or math.inf) <= COUNTED_SPACE
        return census.entries() | {
            "task": canonical(self.task),
            "task_fingerprint": fingerprint(self.task),
            "task_capacity": self.task.capacity,
            "seed": self.seed,
            "splits": canonical(self.splits),
            "splits_fingerprint": fingerprint(self.splits),
            "suite_fingerprint": fingerprint(self),
            "capacities": {split: self.capacity(split) if small else None for split in census.splits},
            "keys": key_note(self.task),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemStream:
    """An endless, indexable sequence of problems of one split, drawn independently and with replacement.

    ``stream[i]`` and ``stream[a:b]`` cost one block of 64 problems beyond what is asked, however large ``i`` is.
    """

    suite: Suite
    """What is drawn from."""
    split: str
    """The split to which all problems belong."""
    key: tuple[KeyPart, ...] = ()
    """Names this stream among those of the suite and split."""
    purpose: str = "stream"
    """Keeps the draws behind ``Suite.distinct`` apart from every stream that a caller can name."""

    @overload
    def __getitem__(self, index: int) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> list[Problem]: ...
    def __getitem__(self, index: int | slice) -> Problem | list[Problem]:
        if isinstance(index, slice):
            if index.stop is None or index.stop < 0 or index.step not in (None, 1):
                raise ValueError(f"a slice of an endless stream is [start:stop] with 0 <= stop, got {index}")
            start = index.start or 0
            return self.take(start, max(index.stop - start, 0))
        return self.take(index, 1)[0]

    def __iter__(self) -> Iterator[Problem]:
        for number in count_from():
            yield from _cached_block(self, number)

    def take(self, start: int, count: int) -> list[Problem]:
        """Problems ``start`` to ``start + count - 1``."""
        if start < 0 or count < 0:
            raise IndexError(f"a stream starts at 0 and has no end to count from, got start={start}, count={count}")
        first, offset = divmod(start, BLOCK)
        last = -(-(start + count) // BLOCK)
        problems = [problem for number in range(first, last) for problem in _cached_block(self, number)]
        return problems[offset : offset + count]

    def block(self, number: int) -> tuple[Problem, ...]:
        """The problems from ``number * BLOCK`` on, ``BLOCK`` of them, drawn anew."""
        rng = stream("suite", self.purpose, self.suite.seed, self.split, *self.key, number)
        return tuple(_draw(self.suite, self.split, rng))


def key_note(task: Task) -> str:
    """One sentence that says which problems a task counts as the same: its class's ``key_note``, where it has one."""
    note = getattr(task, "key_note", None)
    return note if isinstance(note, str) else "canonical form as documented by the task's class"


@lru_cache(maxsize=8)  # the salts of one process
def _dealer(salt: int) -> Callable[[str], float]:
    return unit_intervals("split", salt)


@lru_cache(maxsize=CACHED_BLOCKS)
def _cached_block(source: ProblemStream, number: int) -> tuple[Problem, ...]:
    return source.block(number)


def _draw(suite: Suite, split: str, rng: Generator) -> list[Problem]:
    """One block of problems of ``split``, by drawing candidates and keeping those that belong."""
    share = suite.splits.share(split)
    accepted: list[Problem] = []
    candidates = barren = 0
    while len(accepted) < BLOCK:
        wanted = math.ceil((BLOCK - len(accepted)) / share) if share else HELD_OUT_DRAW
        drawn = suite.task.generate(rng, min(max(wanted, STALLED), LARGEST_DRAW))
        found = [problem for problem in drawn if suite.splits.of(problem) == split]
        accepted += found
        candidates += len(drawn)
        barren = 0 if found else barren + 1
        if barren == BARREN_DRAWS:
            raise _barren(suite, split, candidates, len(accepted))
    return accepted[:BLOCK]


def _counted(suite: Suite, split: str, count: int) -> Iterator[Problem]:
    found = 0
    for problem in islice(_in_fixed_order(suite, split), count):
        found += 1
        yield problem
    if found < count:
        known = suite.capacity(split) is not None
        raise _too_few(suite, split, count, f"holds {found}" if known else f"showed {found} before nothing new came")


def _in_fixed_order(suite: Suite, split: str) -> Iterator[Problem]:
    """Each key of the split once: as drawn while draws bring new keys, then what is left of the space, shuffled."""
    source = distinct_source(suite, split)
    blocks = (source.block(number) for number in count_from())
    for fresh in new_in_each(suite, split, blocks, seen=set()):
        yield from fresh


def distinct_source(suite: Suite, split: str) -> ProblemStream:
    """The stream whose blocks ``Suite.distinct`` takes new keys from, in order."""
    return ProblemStream(suite=suite, split=split, purpose="distinct")


class Keyed(Protocol):
    """A problem, or what was made of one."""

    @property
    def key(self) -> str:
        """The problem's key."""
        ...


T = TypeVar("T", bound=Keyed)


def new_in_each(suite: Suite, split: str, blocks: Iterable[Sequence[T]], seen: set[str]) -> Iterator[list[T | Problem]]:
    """What each block of ``distinct_source`` adds to the keys ``seen``, which grow; at the end what is left, shuffled.

    It ends when the space is exhausted: walked to its end or, where it cannot be walked, barren for many blocks.
    """
    barren = 0
    for block in blocks:
        fresh: list[T | Problem] = []
        for problem in block:
            if problem.key not in seen:
                seen.add(problem.key)
                fresh.append(problem)
        if len(fresh) < STALLED and (space := suite.task.enumerate()) is not None:
            left = [problem for problem in space if problem.key not in seen and suite.splits.of(problem) == split]
            left.sort(key=lambda problem: unit_interval("distinct", suite.seed, split, problem.key))
            yield [*fresh, *left]
            return
        yield fresh
        barren = 0 if fresh else barren + 1
        if barren == BARREN_BLOCKS:
            return


@lru_cache(maxsize=8)  # the suites that one process looks at together
def _split_sizes(task: Task, splits: Splits) -> tuple[tuple[str, int], ...] | None:
    space = task.enumerate()
    return None if space is None else tuple(Counter(splits.of(problem) for problem in space).items())


def _barren(suite: Suite, split: str, candidates: int, accepted: int) -> ValueError:
    share = suite.splits.share(split)
    what = f"its share is {share:g}" if share else "it is a held-out split, whose predicate hardly ever holds"
    size = suite.capacity(split)
    counted = "" if size is None else f", and it holds {size} of the task's keys"
    return ValueError(
        f"split {split!r} of {_shown(suite.task)} gave {accepted} problems of {BLOCK} in {candidates} candidates"
        f" ({what}{counted}); enlarge the split or the task, or draw from a task whose problems all belong to it"
    )


def _too_few(suite: Suite, split: str, count: int, available: str) -> ValueError:
    return ValueError(
        f"{count} distinct problems asked of split {split!r}, which {available};"
        f" ask for fewer, enlarge the split, or enlarge the task {_shown(suite.task)}"
    )


def _shown(task: Task) -> str:
    text = repr(task)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
