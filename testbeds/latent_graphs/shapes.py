"""Shapes of graphs: how many applications stand on each level, and which results each takes.

The level of an application is 1 plus the highest level among the results that it takes, so the asked one alone stands
on the highest level, every other result is taken by at least one application, and at most one by each of its slots.

A shape is drawn in two steps, from the asked application downwards:

1. The number of applications on each level, uniformly among all rows of numbers with the asked modules, depth and
   width that these rules leave possible.
2. Level by level: in a tree, each application takes a result of its own from the level below, and each result left
   over goes to an application drawn uniformly from those with a free slot. In a general graph each application first
   takes a result drawn uniformly from the level below, with replacement, results left over are dealt as in a tree, and
   then results drawn uniformly are given to more applications until the asked number of them is reused.

A draw that comes out with other numbers than asked is drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final, Literal, NamedTuple

Shape = Literal["chain", "tree", "general"]
Below = Callable[[int], int]
Links = list[list[int]]

EXTRA_TRIES: Final = 20  # draws of a place for one more use; small graphs may have none


class Knobs(NamedTuple):
    """What a shape must come out with."""

    shape: Shape
    modules: int
    depth: int
    width: int
    reuse: int
    slots: int
    """Most arguments of a module."""


def draw_links(knobs: Knobs, below: Below) -> Links | None:
    """For each application, from the asked one downwards, the later ones whose results it takes; None to draw anew."""
    if knobs.shape == "chain":
        return [[number + 1] for number in range(knobs.modules - 1)] + [[]]
    levels = draw_levels(knobs, below)
    links: Links = [[] for _ in range(knobs.modules)]
    spread = _tree_level if knobs.shape == "tree" else _general_level
    start = 0
    for above, under in pairwise(levels):
        if not spread(links, range(start, start + above), range(start + above, start + above + under), knobs, below):
            return None
        start += above
    return links if knobs.shape == "tree" or _reuse(links, levels, knobs, below) else None


def draw_levels(knobs: Knobs, below: Below) -> list[int]:
    """Applications on each level, the asked one's first."""
    state = _first(knobs)
    levels = [1]
    while len(levels) < knobs.depth:
        at = below(_rows(knobs, state))
        for size, under, number in _options(knobs, state):
            if at < number:
                levels.append(size)
                state = under
                break
            at -= number
    return levels


def count_levels(knobs: Knobs) -> int:
    """Number of rows of levels that come out as asked."""
    return _rows(knobs, _first(knobs))


class _Placed(NamedTuple):
    """The levels so far, as far as they matter to those below."""

    lowest: int
    """Applications on the lowest level."""
    left: int
    """Applications still to place."""
    levels: int
    """Levels still to fill."""
    free: int
    """Slots without a result; more than could ever be used are not told apart."""
    wide: bool
    """Whether one level is as wide as asked."""
    narrowings: int
    """Levels with fewer applications than the one above: each has a result that is reused."""


def _first(knobs: Knobs) -> _Placed:
    return _Placed(1, knobs.modules - 1, knobs.depth - 1, knobs.slots, knobs.width == 1, 0)


@lru_cache(maxsize=1 << 16)
def _options(knobs: Knobs, placed: _Placed) -> tuple[tuple[int, _Placed, int], ...]:
    """Each size of the next level with what it leads to, and in how many ways the rest can follow."""
    found = []
    for size in range(1, min(knobs.width, placed.left) + 1):
        narrower = size < placed.lowest
        free = placed.free - max(size, placed.lowest)
        if free < 0 or (narrower and (knobs.shape == "tree" or placed.narrowings == knobs.reuse)):
            continue
        left = placed.left - size
        under = _Placed(
            lowest=size,
            left=left,
            levels=placed.levels - 1,
            free=min(free + size * knobs.slots, size + left + knobs.reuse),
            wide=placed.wide or size == knobs.width,
            narrowings=placed.narrowings + narrower,
        )
        if number := _rows(knobs, under):
            found.append((size, under, number))
    return tuple(found)


@lru_cache(maxsize=1 << 16)
def _rows(knobs: Knobs, placed: _Placed) -> int:
    if placed.levels == 0:
        return int(placed.left == 0 and placed.wide)
    if placed.left < placed.levels:
        return 0
    return sum(number for _, _, number in _options(knobs, placed))


def _tree_level(links: Links, above: range, under: range, knobs: Knobs, below: Below) -> bool:
    """Deals the results of the level ``under``, each to one application; whether there are slots for all."""
    for taker, result in zip(above, under, strict=False):
        links[taker].append(result)
    return _deal(links, above.stop, under[len(above) :], knobs, below)


def _general_level(links: Links, above: range, under: range, knobs: Knobs, below: Below) -> bool:
    """As ``_tree_level``, but an application may take a result that others take."""
    for taker in above:
        links[taker].append(under[below(len(under))])
    used = {links[taker][-1] for taker in above}
    return _deal(links, above.stop, [result for result in under if result not in used], knobs, below)


def _deal(links: Links, takers: int, results: Sequence[int], knobs: Knobs, below: Below) -> bool:
    """Gives each result to an application drawn from the first ``takers`` that have a free slot."""
    for result in results:
        free = [taken for taken in links[:takers] if len(taken) < knobs.slots]
        if not free:
            return False
        free[below(len(free))].append(result)
    return True


def _reuse(links: Links, levels: list[int], knobs: Knobs, below: Below) -> bool:
    """Gives results to more applications until ``reuse`` of them are taken more than once; whether that came out."""
    uses = [0] * knobs.modules
    for taken in links:
        for result in taken:
            uses[result] += 1
    reused = sum(number > 1 for number in uses)
    level_ends = [end for end, size in zip(accumulate(levels), levels, strict=True) for _ in range(size)]
    for _ in range(EXTRA_TRIES * knobs.reuse):
        if reused >= knobs.reuse:
            break
        taker = below(level_ends[-1] - levels[-1])  # the lowest level takes no results
        result = level_ends[taker] + below(knobs.modules - level_ends[taker])
        if len(links[taker]) < knobs.slots and result not in links[taker]:
            links[taker].append(result)
            uses[result] += 1
            reused += uses[result] == 2
    return reused == knobs.reuse
