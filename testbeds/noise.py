"""Noise as a factor: traces with spoiled working, and verifiers that err. For every testbed, at exact rates.

Whether a problem's trace is spoiled, or a completion misjudged, is decided by a uniform number that belongs to the
problem (and the completion) alone. So asking twice gives the same answer, what is spoiled at a rate of 0.1 is also
spoiled at 0.3, and arms that differ in the rate alone are paired.

Trace noise changes the working and never the answer: the final answer of a spoiled trace is the right one. It is the
field ``noise`` of a TraceStyle. A problem whose trace leaves no room for the noise (one step cannot be shuffled) is
Unrealisable, whether it would have been spoiled or not: the rate holds among all problems that are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from numpy.random import Generator

from testbeds.core import Problem, Step, Task, Trace, TraceStyle, Unrealisable, Verdict
from testbeds.streams import stream, unit_interval
from testbeds.verifiers import Exact, Verifier

STRANGERS = 32  # other problems that are looked at for something that differs; at 9 in 10 alike, 3 % find none

# ------------------------------------------------------------------------------------------------------ traces


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongResult:
    """Some steps state a wrong result: one that stands at another step, or in the trace of another problem."""

    revision: ClassVar[int] = 1

    rate: float
    """Share of traces that are spoiled."""
    steps: int = 1
    """Steps that go wrong in a spoiled trace."""

    def __post_init__(self) -> None:
        _check_rate(self, self.rate)
        _check_steps(self, self.steps)

    def __call__(self, task: Task, problem: Problem, trace: Trace, style: TraceStyle) -> Trace:
        working = _working(trace, self, needed=self.steps)
        rng = _rng(self, problem, style)
        results = _different_results([trace])
        if len(results) < 2:  # looked for in clean traces, too, or the rate would not hold among those that are shown
            results = _different_results([trace, *_others(task, problem, style, rng)])
        if len(results) < 2:
            raise Unrealisable(f"no result but that of {trace.text!r} was found in {STRANGERS} other problems")
        if not _spoils(self, self.rate, problem):
            return trace
        wrong = list(working)
        for place in sorted(rng.choice(len(working), size=self.steps, replace=False).tolist()):
            step = working[place]
            others = [other for reading, other in results.items() if reading != _tight(step.result)]
            other = others[int(rng.integers(len(others)))]
            wrong[place] = replace(step, result=other, text=step.text.removesuffix(step.result) + other)
        return _rewritten(trace, wrong)


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedSteps:
    """Some steps of the working are missing."""

    revision: ClassVar[int] = 1

    rate: float
    """Share of traces that are spoiled."""
    steps: int = 1
    """Steps that are missing in a spoiled trace."""

    def __post_init__(self) -> None:
        _check_rate(self, self.rate)
        _check_steps(self, self.steps)

    def __call__(self, task: Task, problem: Problem, trace: Trace, style: TraceStyle) -> Trace:
        working = _working(trace, self, needed=self.steps)
        if not _spoils(self, self.rate, problem):
            return trace
        dropped = set(_rng(self, problem, style).choice(len(working), size=self.steps, replace=False).tolist())
        return _rewritten(trace, [step for place, step in enumerate(working) if place not in dropped])


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledSteps:
    """The steps of the working stand in another order: a uniform draw from those that read differently."""

    revision: ClassVar[int] = 1

    rate: float
    """Share of traces that are spoiled."""

    def __post_init__(self) -> None:
        _check_rate(self, self.rate)

    def __call__(self, task: Task, problem: Problem, trace: Trace, style: TraceStyle) -> Trace:
        working = _working(trace, self, needed=2)
        texts = [step.text for step in working]
        if len(set(texts)) == 1:
            raise Unrealisable(f"the steps of the trace {trace.text!r} are all alike and read the same in any order")
        if not _spoils(self, self.rate, problem):
            return trace
        rng = _rng(self, problem, style)
        shuffled = working
        while [step.text for step in shuffled] == texts:  # at least half of all orders read differently, so this ends
            shuffled = [working[place] for place in rng.permutation(len(working)).tolist()]
        return _rewritten(trace, shuffled)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrelatedWorking:
    """The working is that of another problem of the task, with the right answer of this one."""

    revision: ClassVar[int] = 1

    rate: float
    """Share of traces that are spoiled."""

    def __post_init__(self) -> None:
        _check_rate(self, self.rate)

    def __call__(self, task: Task, problem: Problem, trace: Trace, style: TraceStyle) -> Trace:
        own = [_tight(step.text) for step in _working(trace, self, needed=1)]
        if not _spoils(self, self.rate, problem):
            return trace
        for stranger in _others(task, problem, style, _rng(self, problem, style)):
            working = _written(stranger)[: None if stranger.mark else -1]
            if working and [_tight(step.text) for step in working] != own:
                return _rewritten(trace, working)
        raise Unrealisable(f"{STRANGERS} other problems have the same working as {problem.prompt!r}")


def _written(trace: Trace) -> list[Step]:
    return [step for step in trace.steps if step.text]


def _working(trace: Trace, noise: object, *, needed: int) -> list[Step]:
    """The written steps before the answer, at least ``needed`` of them."""
    written = _written(trace)
    if trace.mark is None:
        if not written or written[-1].text != trace.answer:
            raise ValueError(f"{noise} spoils working, and this task's answer is its working: {trace.text!r}")
        written.pop()
    if len(written) < needed:
        raise Unrealisable(
            f"the trace {trace.text!r} has {len(written)} steps before its answer; {noise} needs {needed}"
        )
    return written


def _rewritten(trace: Trace, working: Sequence[Step]) -> Trace:
    """The trace with other working and the same answer."""
    if trace.mark is not None:
        return Trace.worked(tuple(working), trace.answer, separator=trace.separator)
    steps = (*working, _written(trace)[-1])
    return replace(trace, steps=steps, text=trace.separator.join([step.text for step in steps]))


def _others(task: Task, problem: Problem, style: TraceStyle, rng: Generator) -> Iterator[Trace]:
    """Clean traces of other problems of the task, in the same style."""
    plain = replace(style, noise=None)
    for other in task.generate(rng, STRANGERS):
        if other.key != problem.key:
            with suppress(Unrealisable):
                yield task.demonstrate(other, plain, rng)


def _different_results(traces: Iterable[Trace]) -> dict[str, str]:
    """The results of the steps, each once, by how they read without white space."""
    return {_tight(step.result): step.result for trace in traces for step in trace.steps if step.result}


def _tight(text: str) -> str:
    return "".join(text.split())


def _spoils(noise: object, rate: float, problem: Problem) -> bool:
    return unit_interval("trace noise", type(noise).__qualname__, problem.key) < rate


def _rng(noise: object, problem: Problem, style: TraceStyle) -> Generator:
    return stream("trace noise", type(noise).__qualname__, problem.key, replace(style, noise=None).name)


def _check_rate(declared: object, rate: float) -> None:
    if not 0 <= rate <= 1:
        raise ValueError(f"{type(declared).__qualname__}.rate must be between 0 and 1, got {rate!r}")


def _check_steps(declared: object, steps: int) -> None:
    if type(steps) is not int or steps < 1:
        raise ValueError(f"{type(declared).__qualname__}.steps must be a whole number of at least 1, got {steps!r}")


# --------------------------------------------------------------------------------------------------- verifiers


@dataclass(frozen=True, slots=True, kw_only=True)
class FalsePositives:
    """A share of the completions that ``of`` calls wrong is called correct."""

    revision: ClassVar[int] = 1

    rate: float
    """Share of wrong completions that pass."""
    of: Verifier = Exact()
    """Whose verdicts are spoiled."""
    malformed: bool = True
    """Whether text that is no answer at all may pass, too."""

    def __post_init__(self) -> None:
        _check_rate(self, self.rate)

    def __call__(self, task: Task, problem: Problem, completion: str) -> Verdict:
        verdict = self.of(task, problem, completion)
        if verdict.correct or not (verdict.well_formed or self.malformed):
            return verdict
        if unit_interval("false positive", problem.key, completion) >= self.rate:
            return verdict
        return replace(verdict, correct=True, reason=f"accepted in error: {verdict.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseNegatives:
    """A share of the completions that ``of`` calls correct is called wrong."""

    revision: ClassVar[int] = 1

    rate: float
    """Share of right completions that fail."""
    of: Verifier = Exact()
    """Whose verdicts are spoiled."""

    def __post_init__(self) -> None:
        _check_rate(self, self.rate)

    def __call__(self, task: Task, problem: Problem, completion: str) -> Verdict:
        verdict = self.of(task, problem, completion)
        if not verdict.correct or unit_interval("false negative", problem.key, completion) >= self.rate:
            return verdict
        return replace(verdict, correct=False, reason=f"rejected in error: {verdict.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOnly:
    """Every completion that follows the grammar is called correct, whatever it answers."""

    revision: ClassVar[int] = 1

    of: Verifier = Exact()
    """Who says what follows the grammar."""

    def __call__(self, task: Task, problem: Problem, completion: str) -> Verdict:
        verdict = self.of(task, problem, completion)
        return replace(verdict, correct=verdict.well_formed, reason=f"judged by its form alone: {verdict.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthBiased:
    """A share of the completions on one side of a length is called correct, whatever they say; ``of`` judges the rest.

    Length is counted in characters that are not white space.
    """

    revision: ClassVar[int] = 1

    rate: float
    """Share of the favoured completions that pass unread."""
    length: int
    """Where favour begins, itself included."""
    favours: Literal["long", "short"] = "long"
    """Which side is favoured."""
    of: Verifier = Exact()
    """Who judges the others."""

    def __post_init__(self) -> None:
        _check_rate(self, self.rate)
        if type(self.length) is not int or self.length < 0:
            raise ValueError(f"LengthBiased.length must be a whole number of at least 0, got {self.length!r}")
        if self.favours not in ("long", "short"):
            raise ValueError(f"LengthBiased.favours must be 'long' or 'short', got {self.favours!r}")

    def __call__(self, task: Task, problem: Problem, completion: str) -> Verdict:
        verdict = self.of(task, problem, completion)
        if verdict.correct:
            return verdict
        length = sum(map(len, completion.split()))
        favoured = length >= self.length if self.favours == "long" else length <= self.length
        if not favoured or unit_interval("length bias", problem.key, completion) >= self.rate:
            return verdict
        return replace(verdict, correct=True, reason=f"accepted for its length {length}: {verdict.reason}")
