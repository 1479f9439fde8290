"""Sources of text for supervised stages: which problems, which traces, how often each comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from testbeds import Suite, demonstration
from testbeds.core import EXPLICIT, Problem, TraceStyle
from testbeds.streams import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One sequence to imitate."""

    problem: Problem
    completion: str


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
        task = self.suite.task
        return [
            Text(problem=problem, completion=task.demonstrate(problem, style, rng).text)
            for problem, style in zip(problems, styles, strict=True)
        ]

    def describe(self) -> str:
        return "fresh problems"


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
    task = source.suite.task
    texts = []
    for problem in source.suite.distinct(source.split, source.count):
        (style,) = source.styles.draw(stream("demonstration style", problem.key), 1)
        texts.append(Text(problem=problem, completion=demonstration(task, problem, style).text))
    return tuple(texts)
