"""The demonstration of a problem: one text per style, the same for training, evaluation and export."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from numpy.random import Generator

from testbeds.core import Problem, Task, Trace, TraceStyle, Unrealisable
from testbeds.identity import fingerprint
from testbeds.streams import KeyPart, stream

MOST_REJECTED = 4096  # problems in a row without a trace in the asked style after which the style is called impossible


def demonstration(task: Task, problem: Problem, style: TraceStyle) -> Trace:
    """The worked solution of ``problem`` in ``style``: where several are possible, always the same one.

    Its randomness is keyed by the problem and the style alone. So what was trained on is what an evaluation scores and
    what an export holds, and a smaller set of demonstrations has the same texts as a larger one.

    Raises:
        ValueError: for a style that the task cannot write.
        Unrealisable: for a problem that has no trace in this style.
    """
    return demonstrated(task, problem, style, stream(*_key(problem, style)))


def demonstrated(task: Task, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
    """A worked solution that is drawn with ``rng``, with the noise of its style."""
    if style.noise is None:
        return task.demonstrate(problem, style, rng)
    if isinstance(task, Compound):  # noise looks at other problems of the same component, not of the others
        component, inner = task.component(problem)
        return task.written(problem, demonstrated(component, inner, style, rng))
    return style.noise(task, problem, task.demonstrate(problem, style, rng), style)


@runtime_checkable
class Compound(Protocol):
    """A task whose problems are those of other tasks (see mixture.py)."""

    def component(self, problem: Problem) -> tuple[Task, Problem]:
        """The task that the problem is of, and the problem as that task gave it."""
        ...

    def written(self, problem: Problem, trace: Trace) -> Trace:
        """The component's trace as this task writes it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstrated:
    """A problem with its demonstration."""

    problem: Problem
    style: TraceStyle
    trace: Trace
    rejected: int = 0
    """Problems that were passed over just before it, because they have no trace in the style asked for them."""


def each_demonstrated(
    task: Task, problems: Iterable[Problem], style_of: Callable[[Problem], TraceStyle]
) -> Iterator[Demonstrated]:
    """The problems that have a trace in the style that ``style_of`` gives them, in order, with how many were rejected.

    Raises:
        ValueError: for a style that the task cannot write, or that no problem of ``MOST_REJECTED`` in a row has.
    """
    rejected = 0
    for problem in problems:
        style = style_of(problem)
        try:
            trace = demonstration(task, problem, style)
        except Unrealisable as refusal:
            rejected += 1
            if rejected == MOST_REJECTED:
                raise ValueError(
                    f"{rejected} problems in a row have no trace in the style {style.name!r}: {refusal}; ask for a"
                    f" style that this task's problems have, or for larger problems"
                ) from refusal
            continue
        yield Demonstrated(problem=problem, style=style, trace=trace, rejected=rejected)
        rejected = 0


def _key(problem: Problem, style: TraceStyle) -> tuple[KeyPart, ...]:
    """What keys the randomness of a demonstration. Noise has a key of its own: it spoils the very same trace."""
    clean = style if style.noise is None else replace(style, noise=None)
    if clean == _PLAIN.get(style.granularity):
        return "demonstration", problem.key, style.granularity
    return "demonstration", problem.key, fingerprint(clean)


_PLAIN = {
    granularity: TraceStyle(granularity=granularity)  # spares a fingerprint for the two styles that are usual
    for granularity in ("explicit", "implicit")
}
