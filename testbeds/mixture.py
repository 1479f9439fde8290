"""Mixtures: several tasks in fixed proportions, as one task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from numpy.random import Generator

from testbeds.core import Problem, Task, Trace, TraceStyle, Verdict

COUNTED_SPACE = 1 << 16  # keys up to which the size of a union is counted; walking more takes seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Certificate of a mixture's problem: which task it is of, and that task's own certificate."""

    index: int
    """Position of the task in ``Mixture.tasks``."""
    certificate: object
    """The certificate that the task gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Problems of several tasks, each drawn from one of them by weight.

    Prompts, keys and features are those of the component task, so a problem has the same key in the mixture and in a
    suite of its task alone, and falls into the same split. Where two components can give the same problem, it counts
    once.
    """

    revision: ClassVar[int] = 1

    tasks: tuple[Task, ...]
    """The components."""
    weights: tuple[float, ...]
    """Their shares: positive and of any sum; only ratios count."""

    def __post_init__(self) -> None:
        if not self.tasks:
            raise ValueError("Mixture.tasks is empty; give at least one task")
        if len(self.tasks) != len(self.weights):
            raise ValueError(
                f"Mixture has {len(self.tasks)} tasks and {len(self.weights)} weights; give one weight each"
            )
        if not all(weight > 0 and math.isfinite(weight) for weight in self.weights):
            raise ValueError(
                f"Mixture.weights must be positive and finite, got {self.weights}; leave out unwanted tasks"
            )

    @property
    def shares(self) -> tuple[float, ...]:
        """The weights, scaled to sum to 1."""
        total = math.fsum(self.weights)
        return tuple(weight / total for weight in self.weights)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Union of the components' symbols, in order of first appearance."""
        return tuple(dict.fromkeys(symbol for task in self.tasks for symbol in task.symbols))

    @property
    def key_note(self) -> str:
        """The components' notes about their keys."""
        notes = [getattr(task, "key_note", None) for task in self.tasks]
        return "; ".join(dict.fromkeys(note for note in notes if isinstance(note, str)))

    @property
    def capacity(self) -> int | None:
        """Number of distinct keys of the union, counted where the components can be walked and are small enough."""
        return _union_size(self)

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        chosen = rng.choice(len(self.tasks), size=count, p=self.shares)
        pools = [
            iter(task.generate(rng, int((chosen == index).sum())) if (chosen == index).any() else ())
            for index, task in enumerate(self.tasks)
        ]
        return [_wrapped(next(pools[index]), index) for index in chosen.tolist()]

    def enumerate(self) -> Iterable[Problem] | None:
        spaces = [task.enumerate() for task in self.tasks]
        walkable = [space for space in spaces if space is not None]
        return _union(walkable) if len(walkable) == len(spaces) else None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        task, inner = self.component(problem)
        return task.demonstrate(inner, style, rng)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        task, inner = self.component(problem)
        return task.verify(inner, completion)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        task, inner = self.component(problem)
        return task.solutions(inner)

    def floor(self, problem: Problem) -> float:
        """Success probability of the best blind guess of the component, which is known."""
        task, inner = self.component(problem)
        return task.floor(inner)

    def component(self, problem: Problem) -> tuple[Task, Problem]:
        """The task that a problem of this mixture is of, and the problem as that task gave it."""
        certificate = problem.certificate
        if not isinstance(certificate, Component):
            raise TypeError(f"the problem {problem.prompt!r} is not of a mixture: its certificate is {certificate!r}")
        inner = Problem(
            prompt=problem.prompt,
            key=problem.key,
            certificate=certificate.certificate,
            features=problem.features,
            family=problem.family,
        )
        return self.tasks[certificate.index], inner


def innermost(certificate: object) -> object:
    """The certificate under any mixtures: what a predicate looks at, so that it holds in a mixture as outside of it."""
    while isinstance(certificate, Component):
        certificate = certificate.certificate
    return certificate


def _wrapped(problem: Problem, index: int) -> Problem:
    return Problem(
        prompt=problem.prompt,
        key=problem.key,
        family=problem.family,
        certificate=Component(index=index, certificate=problem.certificate),
        features=problem.features,
    )


def _union(spaces: list[Iterable[Problem]]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, space in enumerate(spaces):
        for problem in space:
            if problem.key not in seen:
                seen.add(problem.key)
                yield _wrapped(problem, index)


@lru_cache(maxsize=8)  # the mixtures of one study
def _union_size(mixture: Mixture) -> int | None:
    sizes = [task.capacity for task in mixture.tasks]
    if any(size is None for size in sizes) or sum(size or 0 for size in sizes) > COUNTED_SPACE:
        return None
    space = mixture.enumerate()
    return None if space is None else sum(1 for _ in space)
