"""Sources of text for supervised stages: which problems, which traces, how often each comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from testbeds import Suite
from testbeds.core import EXPLICIT, Problem, TraceStyle, Unrealisable
from testbeds.demonstrations import Demonstrated, demonstrated, each_demonstrated
from testbeds.streams import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One sequence to imitate."""

    problem: Problem
    completion: str
    rejected: int = 0
    """Problems that were passed over just before, because they have no trace in the style asked for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Styles:
    """A mixture of trace styles."""

    revision: ClassVar[int] = 1
    styles: tuple[TraceStyle, ...] = (EXPLICIT,)
    weights: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not self.styles or len(self.styles) != len(self.weights):
            raise ValueError(f"Styles needs one weight per style, got {len(self.styles)} and {len(self.weights)}")
        if min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-9:
            raise ValueError(f"Styles.weights must be at least 0 and sum to 1, got {self.weights}")

    def draw(self, rng: np.random.Generator, count: int) -> list[TraceStyle]:
        """``count`` styles, independently."""
        return [self.styles[i] for i in rng.choice(len(self.styles), size=count, p=self.weights)]


@runtime_checkable
class Source(Protocol):
    """Gives the texts of each step of a supervised stage; a frozen dataclass."""

    def __hash__(self) -> int: ...

    @property
    def suite(self) -> Suite:
        """Where the problems come from."""
        ...

    def texts(self, seed: int, step: int, count: int) -> Sequence[Text]:
        """The ``count`` texts of batch ``step``: a pure function of its arguments."""
        ...

    def sample(self, seed: int, count: int) -> Sequence[Text]:
        """Up to ``count`` texts that stand for all: what a cost and a longest text are estimated from."""
        ...

    def describe(self) -> str:
        """A few words for a plan."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshText:
    """New problems at every step, with replacement: a training stream."""

    revision: ClassVar[int] = 1
    suite: Suite
    split: str = "train"
    styles: Styles = Styles()

    def texts(self, seed: int, step: int, count: int) -> Sequence[Text]:
        problems = self.suite.stream(self.split, "fresh text", seed).take(step * count, count)
        rng = stream("traces", seed, step)
        styles = self.styles.draw(rng, count)
        return [
            self._text(problem, style, rng, seed, step * count + place)
            for place, (problem, style) in enumerate(zip(problems, styles, strict=True))
        ]

    def sample(self, seed: int, count: int) -> Sequence[Text]:
        return self.texts(seed, 0, count)

    def describe(self) -> str:
        return "fresh problems"

    def _text(self, problem: Problem, style: TraceStyle, rng: np.random.Generator, seed: int, place: int) -> Text:
        """The text of the problem at ``place``, or of the first of a stream of its own that has this style."""
        task = self.suite.task
        try:
            return Text(problem=problem, completion=demonstrated(task, problem, style, rng).text)
        except Unrealisable:
            others = self.suite.stream(self.split, "fresh text", seed, "in place of", place)
            found = next(each_demonstrated(task, others, lambda _: style))
            return _text_of(found, rejected=1 + found.rejected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstrations:
    """A fixed set of distinct problems, one trace each, repeated in a new order every epoch.

    The first 16 of 64 demonstrations are the same 16 that ``count=16`` has, with the same traces.
    """

    revision: ClassVar[int] = 1
    suite: Suite
    count: int
    """Number of distinct demonstrations."""
    split: str = "train"
    styles: Styles = Styles()

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Demonstrations.count must be at least 1, got {self.count}")

    def all_texts(self) -> tuple[Text, ...]:
        """Every demonstration once."""
        return _demonstrations(self)

    def texts(self, seed: int, step: int, count: int) -> Sequence[Text]:
        texts = self.all_texts()
        return [texts[i] for i in self._order(seed, step * count, count)]

    def sample(self, seed: int, count: int) -> Sequence[Text]:
        """The first demonstrations alone: a plan does not write ninety thousand to learn how long they are."""
        return _first_demonstrations(self, min(count, self.count))

    def describe(self) -> str:
        return f"{self.count} demonstrations"

    def _order(self, seed: int, start: int, count: int) -> list[int]:
        """Positions ``start`` to ``start + count`` of an endless sequence of epochs, each a new permutation."""
        order: list[int] = []
        position = start
        while len(order) < count:
            epoch, offset = divmod(position, self.count)
            permutation = stream("demonstration order", seed, epoch).permutation(self.count)
            order.extend(int(i) for i in permutation[offset : offset + count - len(order)])
            position = start + len(order)
        return order


@lru_cache(maxsize=8)
def _demonstrations(source: Demonstrations) -> tuple[Text, ...]:
    return _first_demonstrations(source, source.count)


def _first_demonstrations(source: Demonstrations, count: int) -> tuple[Text, ...]:
    source.suite.require(source.split, source.count)

    def style_of(problem: Problem) -> TraceStyle:
        return source.styles.draw(stream("demonstration style", problem.key), 1)[0]

    problems = source.suite.each_distinct(source.split)
    found = islice(each_demonstrated(source.suite.task, problems, style_of), count)
    texts = tuple(_text_of(one, one.rejected) for one in found)
    if len(texts) < count:
        raise ValueError(
            f"{source.count} demonstrations asked of split {source.split!r}, whose problems have {len(texts)} in these"
            f" styles; ask for fewer, enlarge the split or the task, or take styles that more problems have"
        )
    return texts


def _text_of(found: Demonstrated, rejected: int) -> Text:
    return Text(problem=found.problem, completion=found.trace.text, rejected=rejected)
