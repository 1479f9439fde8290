"""Mixtures: several tasks in fixed proportions, as one task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from numpy.random import Generator

from testbeds.core import Problem, Task, Trace, TraceStyle, Verdict
from testbeds.lexicon import can_be_misread, spaced

COUNTED_SPACE = 1 << 16  # keys up to which the size of a union is counted; walking more takes seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Certificate of a mixture's problem: which task it is of, and that task's own certificate."""

    index: int
    """Position of the task in ``Mixture.tasks``."""
    certificate: object
    """The certificate that the task gave."""
    prompt: str | None = None
    """The prompt as the task wrote it, where the mixture writes white space between all symbols; None: it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Problems of several tasks, each drawn from one of them by weight.

    Prompts, keys and features are those of the component task, so a problem has the same key in the mixture and in a
    suite of its task alone, and falls into the same split. Where two components can give the same problem, it counts
    once.

    Lexicons may clash: beside a task that has the symbol "12", the digits "1" and "2" of another one would be read as
    that. Texts of a component that could be misread have white space between all their symbols, which means nothing to
    its verifier and keeps them apart; see ``lexicon.can_be_misread``.
    """

    revision: ClassVar[int] = 1

    tasks: tuple[Task, ...]
    """The components."""
    weights: tuple[float, ...]
    """Their shares: positive and of any sum; only ratios count."""
    names: tuple[str, ...] = ()
    """What the components are called in measurements; empty: their testbeds' names, numbered where one repeats."""

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
        if self.names and len(set(self.names)) != len(self.tasks):
            raise ValueError(f"Mixture.names needs one name of its own for each task, got {self.names}")

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
    def instructions(self) -> str:
        """The components' instructions, one paragraph each; an export gives a problem only its own."""
        return "\n\n".join(dict.fromkeys(task.instructions for task in self.tasks))

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each component, under which its problems are measured apart."""
        if self.names:
            return self.names
        plain = [testbed_name(task) for task in self.tasks]
        return tuple(
            name if plain.count(name) == 1 else f"{name} {plain[: place + 1].count(name)}"
            for place, name in enumerate(plain)
        )

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
        apart = _kept_apart(self)
        return [_wrapped(next(pools[index]), index, apart[index]) for index in chosen.tolist()]

    def enumerate(self) -> Iterable[Problem] | None:
        spaces = [task.enumerate() for task in self.tasks]
        walkable = [space for space in spaces if space is not None]
        return _union(walkable, _kept_apart(self)) if len(walkable) == len(spaces) else None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        task, inner = self.component(problem)
        return self.written(problem, task.demonstrate(inner, style, rng))

    def written(self, problem: Problem, trace: Trace) -> Trace:
        """The component's trace as it stands in the mixture: the same symbols, kept apart where that is needed."""
        symbols = self._symbols_kept_apart(problem)
        if symbols is None:
            return trace
        steps = tuple(
            replace(step, text=spaced(step.text, symbols), result=spaced(step.result, symbols)) for step in trace.steps
        )
        return replace(trace, steps=steps, text=spaced(trace.text, symbols), answer=spaced(trace.answer, symbols))

    def verify(self, problem: Problem, completion: str) -> Verdict:
        task, inner = self.component(problem)
        return task.verify(inner, completion)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        task, inner = self.component(problem)
        listed, symbols = task.solutions(inner), self._symbols_kept_apart(problem)
        return listed if listed is None or symbols is None else (spaced(text, symbols) for text in listed)

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
            prompt=problem.prompt if certificate.prompt is None else certificate.prompt,
            key=problem.key,
            certificate=certificate.certificate,
            features=problem.features,
            family=problem.family,
        )
        return self.tasks[certificate.index], inner

    def _symbols_kept_apart(self, problem: Problem) -> tuple[str, ...] | None:
        """The symbols of the problem's component, where its texts have white space between them all."""
        certificate = problem.certificate
        if not isinstance(certificate, Component) or certificate.prompt is None:
            return None
        return self.tasks[certificate.index].symbols


def component_of(task: Task, problem: Problem) -> tuple[str, Task, Problem]:
    """The name, the task and the problem as that task gave it, under any mixtures; names of nested ones are joined."""
    names = []
    while isinstance(task, Mixture) and isinstance(problem.certificate, Component):
        names.append(task.labels[problem.certificate.index])
        task, problem = task.component(problem)
    return "/".join(names) or testbed_name(task), task, problem


def testbed_name(task: Task) -> str:
    """The name of the testbed that a task is of, as in the catalogue."""
    packages = type(task).__module__.split(".")[1:]
    return packages[-1] if packages[:1] in (["smt"], ["chess"]) else (packages or [type(task).__name__])[0]


def innermost(certificate: object) -> object:
    """The certificate under any mixtures: what a predicate looks at, so that it holds in a mixture as outside of it."""
    while isinstance(certificate, Component):
        certificate = certificate.certificate
    return certificate


@lru_cache(maxsize=64)  # the mixtures of a plan
def _kept_apart(mixture: Mixture) -> tuple[tuple[str, ...] | None, ...]:
    """The symbols of each component whose texts could be misread in the common lexicon; None for the others."""
    union = mixture.symbols
    lexicons = [task.symbols for task in mixture.tasks]
    return tuple(symbols if can_be_misread(symbols, union) else None for symbols in lexicons)


def _wrapped(problem: Problem, index: int, apart: tuple[str, ...] | None) -> Problem:
    """The problem in a mixture, with white space between its symbols where they must be kept ``apart``."""
    return Problem(
        prompt=problem.prompt if apart is None else spaced(problem.prompt, apart),
        key=problem.key,
        family=problem.family,
        certificate=Component(
            index=index, certificate=problem.certificate, prompt=None if apart is None else problem.prompt
        ),
        features=problem.features,
    )


def _union(spaces: list[Iterable[Problem]], apart: tuple[tuple[str, ...] | None, ...]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, space in enumerate(spaces):
        for problem in space:
            if problem.key not in seen:
                seen.add(problem.key)
                yield _wrapped(problem, index, apart[index])


@lru_cache(maxsize=8)  # the mixtures of one study
def _union_size(mixture: Mixture) -> int | None:
    sizes = [task.capacity for task in mixture.tasks]
    if any(size is None for size in sizes) or sum(size or 0 for size in sizes) > COUNTED_SPACE:
        return None
    space = mixture.enumerate()
    return None if space is None else sum(1 for _ in space)
