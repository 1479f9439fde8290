"""What the latent testbeds hold out and count: modules, pairs, triples and routings of a composition, chain or DAG.

A composition applies modules to values; where the result of f is an argument of g, (f, g) is a pair of neighbours, and
where g's result goes on to h, (f, g, h) is a triple. Predicates look at the certificate alone, so they hold in a
mixture as outside of it, and are False for problems of other testbeds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from numpy.random import Generator

from testbeds.core import Problem
from testbeds.mixture import innermost

Pair = tuple[str, str]
Triple = tuple[str, str, str]
Part = TypeVar("Part")


class Composition(ABC):
    """A certificate that applies modules; a frozen dataclass inherits it."""

    __slots__ = ()

    @property
    @abstractmethod
    def applied(self) -> tuple[str, ...]:
        """The module of each application."""

    @property
    @abstractmethod
    def pairs(self) -> tuple[Pair, ...]:
        """(f, g) for each argument of an application of g that is the result of an application of f."""

    @property
    @abstractmethod
    def triples(self) -> tuple[Triple, ...]:
        """(f, g, h) for each two pairs that meet in one application of g."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldsTriple:
    """Holds for problems in which one of the ordered ``triples`` of modules follow each other."""

    revision: ClassVar[int] = 1

    triples: tuple[Triple, ...]
    """Triples (first applied, next, last), such as ``(("m1", "m3", "m2"),)``."""

    def __post_init__(self) -> None:
        check_tuples("HoldsTriple.triples", self.triples, 3)

    def __call__(self, problem: Problem) -> bool:
        composition = innermost(problem.certificate)
        return isinstance(composition, Composition) and any(triple in self.triples for triple in composition.triples)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldsRouting:
    """Holds for problems that apply one of the routing ``modules``, or in which one of the ``patterns`` occurs."""

    revision: ClassVar[int] = 1

    modules: tuple[str, ...] = ()
    """Routing modules of which no application is seen in training."""
    patterns: tuple[Pair, ...] = ()
    """Pairs (first applied, next) of a routing module and a skill, or a skill and a routing module."""

    def __post_init__(self) -> None:
        if not self.modules and not self.patterns:
            raise ValueError("HoldsRouting needs one or more modules or patterns, got none of either")
        if type(self.modules) is not tuple or not all(type(name) is str for name in self.modules):
            raise ValueError(f"HoldsRouting.modules must be a tuple of module names, got {self.modules!r}")
        if self.patterns or type(self.patterns) is not tuple:
            check_tuples("HoldsRouting.patterns", self.patterns, 2)

    def __call__(self, problem: Problem) -> bool:
        composition = innermost(problem.certificate)
        if not isinstance(composition, Composition):
            return False
        return any(name in self.modules for name in composition.applied) or (
            bool(self.patterns) and any(pair in self.patterns for pair in composition.pairs)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How often modules, and ordered pairs and triples of them that follow each other, occur in a set of problems."""

    modules: tuple[tuple[str, int], ...]
    """Each module that occurs, with its number of applications, by name."""
    pairs: tuple[tuple[Pair, int], ...]
    """Each pair (first applied, next applied) that occurs, with its number of places, by name."""
    triples: tuple[tuple[Triple, int], ...] = ()
    """Each triple that occurs, with its number of places, by name."""


def coverage(problems: Iterable[Problem]) -> Coverage:
    """Exact counts of the modules, pairs and triples in these problems, chains or DAGs; other testbeds' add nothing."""
    modules: Counter[str] = Counter()
    pairs: Counter[Pair] = Counter()
    triples: Counter[Triple] = Counter()
    for problem in problems:
        composition = innermost(problem.certificate)
        if isinstance(composition, Composition):
            modules.update(composition.applied)
            pairs.update(composition.pairs)
            triples.update(composition.triples)
    return Coverage(
        modules=tuple(sorted(modules.items())),
        pairs=tuple(sorted(pairs.items())),
        triples=tuple(sorted(triples.items())),
    )


def check_tuples(name: str, value: object, length: int) -> None:
    """Raises ValueError unless ``value`` is a tuple of one or more tuples of ``length`` module names."""
    described = {2: "pairs", 3: "triples"}[length]
    if (
        type(value) is not tuple
        or not value
        or not all(
            type(part) is tuple and len(part) == length and all(type(module) is str for module in part)
            for part in value
        )
    ):
        raise ValueError(f"{name} needs one or more {described} of module names, got {value}")


def first_spared(
    parts: Sequence[Part], count: int, rng: Generator, losses: Callable[[Part], Iterable[object]], seen: Counter[object]
) -> tuple[Part, ...]:
    """The first ``count`` of the ``parts``, in an order drawn with ``rng``, that can be spared.

    A part is spared if each of the things that go with it (``losses``) would still be seen, going by the numbers of
    sights in ``seen``. So the first parts do not depend on ``count``: more can be held out without letting any back in.
    """
    left = Counter(seen)
    spared: list[Part] = []
    for place in rng.permutation(len(parts)).tolist():
        if len(spared) == count:
            break
        lost = Counter(losses(parts[place]))
        if all(left[thing] > times for thing, times in lost.items()):
            left.subtract(lost)
            spared.append(parts[place])
    return tuple(spared)
