"""Which problems reach the positions that an evaluation asks: the predicate that keeps them out of training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol, runtime_checkable

from testbeds.core import Problem
from testbeds.mixture import component_of, innermost
from testbeds.suites import Suite

__all__ = ["Positioned", "Reaches"]


@runtime_checkable
class Positioned(Protocol):
    """A certificate of a chess testbed: it lists the positions that training on its problem shows."""

    def position_hashes(self) -> tuple[int, ...]:
        """The canonical hashes (``rules.canonical_hash``) of every position that the problem and its text show."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaches:
    """Holds for a problem that shows a position which one of some evaluations asks, or a mirror image of it.

    For ``Splits.held_out``: under ``Splits(held_out=(("reaches", Reaches(suites=...)),))`` no text of a fraction split
    passes through a position that is asked, by whatever moves it comes there. Such texts are in the split ``reaches``,
    where they can be counted; of a game in windows these are the windows with the position alone. Problems without
    positions, such as those of another testbed in a mixture, reach none.

    The suites bring ``Splits`` of their own, with the same fractions and salt and without this predicate, which cannot
    contain itself. They may hold out by other ones of its kind: being values, these end. So a suite to train on and one
    to evaluate differ in their ``Splits`` by this predicate alone. A problem reaches its own position, so in the suite
    to train on every problem that is asked is in the split ``reaches``.

    The positions are listed once in a process, from the problems that ``Suite.distinct`` gives: what that costs the
    evaluation, it costs here.
    """

    revision: ClassVar[int] = 1

    suites: tuple[tuple[Suite, str, int | None], ...]
    """Each evaluation: its suite, its split, and how many distinct problems of it are asked; None: all that there are.
    """

    def __post_init__(self) -> None:
        if not self.suites:
            raise ValueError("Reaches.suites is empty; give at least one (suite, split, count)")
        for suite, split, count in self.suites:
            suite.splits.require(split)
            if count is None and suite.task.enumerate() is None:
                raise ValueError(
                    f"Reaches asks for all problems of split {split!r} of {type(suite.task).__name__}, which cannot be"
                    f" walked; give the number that is evaluated"
                )
            if count is not None and (type(count) is not int or count < 1):
                raise ValueError(f"Reaches.suites needs a count of at least 1 problem or None, got {count!r}")

    def __call__(self, problem: Problem) -> bool:
        certificate = innermost(problem.certificate)
        return isinstance(certificate, Positioned) and not self.positions().isdisjoint(certificate.position_hashes())

    def positions(self) -> frozenset[int]:
        """The hashes of all positions that are asked.

        Raises:
            ValueError: where an evaluation asks no position, as one of games or of another testbed.
        """
        return _positions(self)


@lru_cache(maxsize=16)  # the predicates of the studies of one process
def _positions(predicate: Reaches) -> frozenset[int]:
    return frozenset().union(*(_asked(suite, split, count) for suite, split, count in predicate.suites))


@lru_cache(maxsize=64)  # the evaluations of these
def _asked(suite: Suite, split: str, count: int | None) -> frozenset[int]:
    found = frozenset(
        position for problem in suite.each_distinct(split, count) for position in _asked_by(suite, problem)
    )
    if not found:
        raise ValueError(
            f"split {split!r} of {type(suite.task).__name__} asks no position of chess, so nothing can reach one; leave"
            f" it out of Reaches.suites"
        )
    return found


def _asked_by(suite: Suite, problem: Problem) -> Iterator[int]:
    """The positions among what a problem asks: games ask for themselves, and list no position of theirs."""
    _, task, inner = component_of(suite.task, problem)
    asked = getattr(task, "asked", None)
    if callable(asked) and isinstance(inner.certificate, Positioned):
        positions = set(inner.certificate.position_hashes())
        yield from (mark for mark in asked(inner) if mark in positions)
