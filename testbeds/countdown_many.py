"""Targets and one solution of each for more numbers than have their solutions counted: exact, in bounded work.

The values of all parts of up to four numbers are listed (countdown_values.py). What two listed values make is marked
until every target in range is: for seven or eight numbers that is the rule. A target that is left over is sought by
going back from it, with parts of up to five numbers listed where there are eight; it is unreachable where nothing is
found. That search is bounded: beyond ``MOST_STEPS`` the numbers are called undecided, and whoever draws problems takes
others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from testbeds.arithmetic import OPERATORS
from testbeds.countdown_search import Rules, lettered, rule_code
from testbeds.countdown_trees import Node, Outline, joined, outlined
from testbeds.countdown_values import FULL, PART, REST, SPLIT, VALUE, WAY, find, list_values, mark, operator_of

Ints = NDArray[np.int64]

DEPTH = 4  # numbers of a part whose values are listed: at most 733 for four numbers
DEEPER = 5  # where targets are left over and numbers are eight: at most 15,907 values for five numbers
MOST_STEPS = 1 << 21  # of a search for the targets that are left over; a tenth of a second or two
SMALLEST_TABLE, LARGEST_TABLE = 1 << 12, 1 << 22  # slots; the largest holds 2 million values in 64 MB


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listing:
    """The values of the small parts of a multiset of numbers."""

    rules: Rules
    parts: Ints
    spans: Ints
    values: Ints
    table: Ints

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints, Ints]:
        """As countdown_values.py takes it."""
        return self.parts, self.spans, self.values, self.table


def listing(numbers: tuple[int, ...], rules: Rules, depth: int = DEPTH) -> Listing:
    """The values of all parts of up to ``depth`` of the numbers."""
    ties, letters = lettered(numbers)
    parts = _parts(ties)
    slots = SMALLEST_TABLE
    while slots <= LARGEST_TABLE:
        table = np.full(slots, -1, np.int64)
        values = np.empty((slots // 2, 3), np.int64)
        spans = np.zeros((len(parts), 2), np.int64)
        listed = Listing(rules=rules, parts=parts, spans=spans, values=values, table=table)
        if list_values(listed.arrays, np.array(letters), rule_code(rules), depth) != FULL:
            return listed
        slots *= 4
    raise ValueError(
        f"the parts of {numbers} have more than {LARGEST_TABLE // 2} values; take fewer or smaller numbers"
    )


def reached(numbers: tuple[int, ...], rules: Rules, low: int, high: int) -> Ints | None:
    """The reachable targets in [low, high], ascending; None where MOST_STEPS do not decide one.

    Where not every number must be used, a target that is itself one of the numbers is left out.
    """
    return reached_from(listing(numbers, rules), numbers, low, high)


def reached_from(listed: Listing, numbers: tuple[int, ...], low: int, high: int) -> Ints | None:
    """What ``reached`` gives, from the listing of the numbers."""
    found, left = _settle(listed, numbers, (low, high), MOST_STEPS)
    return None if left < 0 else np.flatnonzero(found == 1) + low


def steps_taken(numbers: tuple[int, ...], rules: Rules, low: int, high: int, most: int) -> int:
    """How many steps the search for left-over targets takes; ``most + 1`` where it takes more than ``most``."""
    _, left = _settle(listing(numbers, rules), numbers, (low, high), most)
    return most - left


def _settle(listed: Listing, numbers: tuple[int, ...], target: tuple[int, int], budget: int) -> tuple[Ints, int]:
    """1 for each target that is reached, and what is left of the budget of steps; -1 where it leaves one undecided."""
    rules, (low, high) = listed.rules, target
    found = np.zeros(high - low + 1, np.int64)
    if rules.largest is not None:
        found[max(rules.largest + 1 - low, 0) :] = -1
    if not rules.exact_use:
        found[[number - low for number in numbers if low <= number <= high]] = -1
    if mark(listed.arrays, rule_code(rules), low, found):
        if len(numbers) > DEPTH + 3:
            listed = listing(numbers, rules, DEEPER)
        budget = _search(listed, found, low, budget)
    return found, budget


def solution_from(listed: Listing, target: int, rng: Generator | None = None) -> Outline | None:
    """A solution without negative results; None where there is none.

    The splits of the numbers, and of each part in turn, are tried in an order that is drawn with ``rng`` (in a fixed
    one without it), splits with two small sides first, and the first one that makes the value is taken. So every call
    can give another solution, but not every solution, and not all alike often.
    """
    size = len(listed.parts)
    order = np.arange(size) if rng is None else rng.permutation(size)
    for whole in _wholes(listed):
        node = _tree(listed, order, (whole, target, 1))
        if node is not None:
            return outlined(node)
    return None


def _search(listed: Listing, found: Ints, low: int, budget: int) -> int:
    """Seek each target that is left at 0 in turn; what is left of the budget, -1 where one is left undecided."""
    order = np.arange(len(listed.parts))
    for place in np.flatnonzero(found == 0).tolist():
        for whole in _wholes(listed):
            frames = _frames((whole, low + place, 1))
            depth, budget = find(listed.arrays, rule_code(listed.rules), order, frames, budget)
            if budget < 0:
                return budget
            if depth:
                found[place] = 1
                break
    return budget


def _wholes(listed: Listing) -> list[int]:
    """The parts whose value may be an answer, the largest first."""
    last = len(listed.parts) - 1
    if listed.rules.exact_use:
        return [last]
    return [part for part in range(last, -1, -1) if listed.parts[part, 1] > 1]


def _tree(listed: Listing, order: Ints, sought: tuple[int, int, int]) -> Node | None:
    """A tree of the (part, top, bottom) that is sought."""
    part, top, bottom = sought
    if listed.parts[part, 1] == 1:
        first = listed.values[listed.spans[part, 0]]
        return Node(int(first[0])) if (int(first[0]), 1) == (top, bottom) else None
    frames = _frames(sought)
    depth, _ = find(listed.arrays, rule_code(listed.rules), order, frames, MOST_STEPS)
    if not depth:
        return None
    rows = frames.tolist()
    node = _tree(listed, order, tuple(rows[depth][:3]))
    for row in reversed(rows[:depth]):
        a, b, _ = listed.values[row[VALUE]].tolist()
        other = _tree(listed, order, (int(order[row[SPLIT] % len(order)]), a, b))
        if node is None or other is None:
            raise ArithmeticError(f"a listed value has no solution: {row} of {listed.parts.tolist()}")
        operator = OPERATORS[operator_of(row[WAY])]
        node = (
            joined(operator, node, other) if row[WAY] in (2, 5) or operator in "+*" else joined(operator, other, node)
        )
    return node


def _frames(sought: tuple[int, int, int]) -> Ints:
    frames = np.zeros((10, REST + 1), np.int64)  # one for each of eight numbers is more than enough
    frames[0, PART : PART + 3] = sought
    return frames


@lru_cache(maxsize=256)
def _parts(ties: tuple[int, ...]) -> Ints:
    """All parts of a multiset: code, size, and how often each letter stands; smaller ones first."""
    strides = [prod(times + 1 for times in ties[:letter]) for letter in range(len(ties))]
    rows = [
        (sum(a * b for a, b in zip(part, strides, strict=True)), sum(part), *part)
        for part in product(*(range(times + 1) for times in ties))
        if any(part)
    ]
    return np.array(sorted(rows, key=lambda row: (row[1], row[0])), np.int64)
