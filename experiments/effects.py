"""Effects beyond differences: slopes over several arms, and rank correlations within a seed.

A slope is a weighted sum of measures, so ``slope`` gives a plain ``Effect``, and slopes of slopes are slopes: "the gain
per tenfold of RL grows with each tenfold of pretraining" is ``slope`` of points whose second entries are slopes. A rank
correlation is no weighted sum and has a class of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from experiments.claims import Effect, Measure, Undefined

DIGITS: Final = 12  # beyond these, numbers differ by rounding: on another machine, or in another order of adding
MIN_PAIRS: Final = 3  # two ranks always agree or disagree perfectly

Value = Measure | Effect


def slope(points: Sequence[tuple[float, Value]]) -> Effect:
    """The least-squares slope of measures or effects y over given numbers x, within a seed.

    With the mean m of the x: sum of (x - m) y / sum of (x - m)^2. A point at the mean has no weight and is left out.

    Args:
        points: (x, y) pairs, such as (log10 of RL steps, accuracy of the arm); at least two different x.
    """
    numbers = [float(x) for x, _ in points]
    if len(set(numbers)) < 2 or not all(map(math.isfinite, numbers)):
        raise ValueError(f"a slope needs at least two different finite x, got {numbers}")
    mean = math.fsum(numbers) / len(numbers)
    spread = math.fsum((x - mean) ** 2 for x in numbers)
    return _combined([((x - mean) / spread, y) for x, (_, y) in zip(numbers, points, strict=True)])


def _combined(weighted: Sequence[tuple[float, Value]]) -> Effect:
    """The weighted sum of measures and effects, each measure once."""
    parts: dict[Measure, list[float]] = {}
    for weight, value in weighted:
        terms = value.terms if isinstance(value, Effect) else ((1.0, value),)
        for inner, measure in terms:
            parts.setdefault(measure, []).append(weight * inner)
    sums = {measure: math.fsum(weights) for measure, weights in parts.items()}
    largest = max(map(abs, sums.values()))
    negligible = largest * 10.0**-DIGITS
    kept = tuple((_rounded(weight), measure) for measure, weight in sums.items() if abs(weight) > negligible)
    if not kept:
        raise ValueError("the measures of this slope cancel out; give each point measures of its own")
    return Effect(terms=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Spearman's rank correlation of x and y over the pairs, within one seed: 1 where they rise together.

    Equal values share their mean rank. Where all x or all y are equal it has no value.
    """

    revision: ClassVar[int] = 1
    pairs: tuple[tuple[Value, Value], ...]
    """(x, y), mostly one pair per arm: measures, or effects such as the gain of one stage over the one before."""

    def __post_init__(self) -> None:
        if len(self.pairs) < MIN_PAIRS:
            raise ValueError(f"Correlation.pairs needs at least {MIN_PAIRS} (x, y) pairs, got {len(self.pairs)}")
        if len(set(self.pairs)) < len(self.pairs):
            raise ValueError(f"Correlation.pairs holds a pair twice: {[(str(x), str(y)) for x, y in self.pairs]}")

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of all pairs, each once, in the order of the pairs."""
        values = [value for pair in self.pairs for value in pair]
        found = [value.measures if isinstance(value, Effect) else (value,) for value in values]
        return tuple(dict.fromkeys(measure for measures in found for measure in measures))

    def value(self, read: Callable[[Measure], float]) -> float:
        """The correlation of one seed, given that seed's measures."""
        from scipy.stats import spearmanr  # a declaration needs no SciPy: `stagecraft list` stays fast

        xs, ys = ([_rounded(_value(pair[side], read)) for pair in self.pairs] for side in (0, 1))
        for name, values in (("x", xs), ("y", ys)):
            if len(set(values)) == 1:
                raise Undefined(f"all {len(values)} {name} of the correlation are {values[0]:g}")
        return float(spearmanr(np.asarray(xs), np.asarray(ys)).statistic)

    def __str__(self) -> str:
        return f"rank correlation of (x, y) over {'; '.join(f'({x}, {y})' for x, y in self.pairs)}"


def _value(of: Value, read: Callable[[Measure], float]) -> float:
    return of.value(read) if isinstance(of, Effect) else read(of)


def _rounded(number: float) -> float:
    """The number without the digits that are rounding: ties stay ties, and fingerprints agree between machines."""
    return float(f"{number:.{DIGITS}g}")
