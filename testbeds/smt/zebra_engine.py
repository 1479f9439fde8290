"""Zebra puzzles as words and as reasoning: clues told, declared, evaluated; deductions step by step; the search tree.

A value is a number ``attribute * houses + word``; a clue is ``(kind, x, y)`` with values x and y, or, for the kinds
``at`` and ``not_at``, a value x and a house y. Houses are counted from 0 here and from 1 in texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from testbeds.core import Step
from testbeds.smt.constraints import Adjacent, AllDifferent, Constraint, Equal, Is, LessThan, NotEqual, Offset
from testbeds.smt.language import Puzzle, Variable
from testbeds.smt.logic import Not, Told
from testbeds.smt.zebra_kernels import AT, BEFORE, LEFT, NEGATED, NEXT, NOT_AT, NOT_SAME, SAME, tables

KINDS = ("same", "not_same", "left", "next", "before", "at", "not_at")
"""The kinds of clue, in the order of their numbers."""

WORDS = {
    "colour": ("red", "green", "blue", "white", "yellow", "black"),
    "pet": ("cat", "dog", "bird", "fish", "horse", "snake"),
    "drink": ("tea", "milk", "juice", "water", "cola", "beer"),
    "job": ("baker", "doctor", "lawyer", "pilot", "miner", "nurse"),
    "sport": ("tennis", "golf", "rugby", "chess", "sumo", "polo"),
    "fruit": ("apple", "pear", "plum", "grape", "lemon", "mango"),
}
"""The values of each attribute. No word begins another, so a text reads alike with and without white space."""

GRAMMAR = ("street", "clue", "is", "with", "not", "directly", "somewhere", "left", "of", "next", "to", "in", "house")
REASONING = ("suppose", "try", "fails")
MARKS = (":", ";", ",", "?", "#")

_TOLD = {
    SAME: "is with",
    NOT_SAME: "is not with",
    LEFT: "is directly left of",
    NEXT: "is next to",
    BEFORE: "is somewhere left of",
    AT: "is in house",
    NOT_AT: "is not in house",
}

Clue = tuple[int, int, int]


def names(houses: int, attributes: int) -> tuple[str, ...]:
    """The word of each value, in the order of their numbers."""
    return tuple(word for words in list(WORDS.values())[:attributes] for word in words[:houses])


@lru_cache(maxsize=4096)
def told(clue: Clue, houses: int, attributes: int) -> str:
    """A clue in words: ``red is directly left of cat``."""
    words = names(houses, attributes)
    kind, x, y = clue
    return f"{words[x]} {_TOLD[kind]} {y + 1 if kind >= AT else words[y]}"


@lru_cache(maxsize=4096)
def declared(clue: Clue, houses: int, attributes: int) -> Constraint:
    """A clue in the puzzle language, over variables whose values are houses from 1."""
    words = names(houses, attributes)
    kind, x, y = clue
    constraints: dict[int, Constraint] = {
        AT: Is(words[x], y + 1),
        NOT_AT: Not(Is(words[x], y + 1)),
    }
    if kind < AT:
        constraints = {
            SAME: Equal(words[x], words[y]),
            NOT_SAME: NotEqual(words[x], words[y]),
            LEFT: Offset(words[x], words[y], 1),
            NEXT: Adjacent(words[x], words[y]),
            BEFORE: LessThan(words[x], words[y]),
        }
    return Told(constraints[kind], told(clue, houses, attributes))


@lru_cache(maxsize=256)
def puzzle(clues: tuple[Clue, ...], houses: int, attributes: int) -> Puzzle:
    """The puzzle in the puzzle language: a variable for each value, each attribute's different, the clues."""
    words = names(houses, attributes)
    return Puzzle(
        variables=tuple(Variable(name=word, domain=tuple(range(1, houses + 1))) for word in words),
        rules=tuple(
            AllDifferent(words[a * houses : (a + 1) * houses], label=f"one {attribute} a house")
            for a, attribute in enumerate(list(WORDS)[:attributes])
        ),
        clues=tuple(declared(clue, houses, attributes) for clue in clues),
    )


@lru_cache(maxsize=8)
def _reach(houses: int) -> tuple[list[list[int]], list[list[int]]]:
    """``tables`` as lists, which Python indexes faster."""
    image, preimage = tables(houses)
    return image.tolist(), preimage.tolist()


# ---------------------------------------------------------------------------------------------------- deductions


@dataclass(frozen=True, slots=True)
class Deducer:
    """Draws conclusions from clues, one at a time, over masks of the houses that each value can have."""

    houses: int
    attributes: int
    clues: tuple[Clue, ...]

    @property
    def start(self) -> list[int]:
        """Every value can have every house."""
        return [2**self.houses - 1] * (self.houses * self.attributes)

    def by_clue(self, number: int, masks: Sequence[int]) -> list[tuple[int, int]]:
        """What one clue leaves: pairs of a value and its new mask, for those that change."""
        kind, x, y = self.clues[number]
        if kind >= AT:
            kept = masks[x] & (1 << y if kind == AT else ~(1 << y))
            return [(x, kept)] if kept != masks[x] else []
        image, preimage = _reach(self.houses)
        kept_y = masks[y] & image[kind][masks[x]]
        kept_x = masks[x] & preimage[kind][kept_y]
        return [(v, kept) for v, kept in ((x, kept_x), (y, kept_y)) if kept != masks[v]]

    def by_house(self, attribute: int, masks: Sequence[int]) -> list[tuple[int, int]]:
        """What "one value a house" leaves in one attribute: decided houses are taken, a house of one value is its."""
        values = range(attribute * self.houses, (attribute + 1) * self.houses)
        changed = []
        for v in values:
            others = [masks[w] for w in values if w != v]
            taken = 0
            union = 0
            for mask in others:
                taken |= mask if mask & (mask - 1) == 0 else 0
                union |= mask
            kept = masks[v] & ~taken
            lonely = kept & ~union
            kept = lonely if lonely and lonely & (lonely - 1) == 0 else kept
            if kept != masks[v]:
                changed.append((v, kept))
        return changed

    def is_refuted(self, value: int, house: int, masks: Sequence[int], *, by_search: bool) -> bool:
        """Whether no arrangement has this value in this house, as far as conclusions (and a search, if asked) show."""
        trial = list(masks)
        trial[value] = 1 << house
        if not self.settle(trial):
            return True
        return by_search and not self._is_possible(trial)

    def settle(self, masks: list[int]) -> bool:
        """Draw all conclusions, in place; False at a contradiction."""
        rules = [*range(len(self.clues)), *range(-self.attributes, 0)]
        changed = True
        while changed:
            changed = False
            for rule in rules:
                news = self.by_clue(rule, masks) if rule >= 0 else self.by_house(rule + self.attributes, masks)
                for v, kept in news:
                    if not kept:
                        return False
                    masks[v] = kept
                    changed = True
        return True

    def _is_possible(self, settled: list[int]) -> bool:
        undecided = [v for v, mask in enumerate(settled) if mask & (mask - 1)]
        if not undecided:
            return True
        value = min(undecided, key=lambda v: settled[v].bit_count())
        for house in range(self.houses):
            trial = list(settled)
            trial[value] = 1 << house
            if settled[value] >> house & 1 and self.settle(trial) and self._is_possible(trial):
                return True
        return False


@lru_cache(maxsize=256)
def deductions(houses: int, attributes: int, clues: tuple[Clue, ...]) -> tuple[Step, ...]:
    """The steps that lead from the clues to the arrangement: each gives a value fewer houses.

    A step names its reason: a clue, an attribute (one value a house), or a supposition that fails, which stands only
    where clues and attributes say nothing more. The supposition is the cheapest to refute: by conclusions alone if any
    is, else by a search.
    """
    deducer = Deducer(houses, attributes, clues)
    masks = deducer.start
    steps: list[Step] = []
    while any(mask & (mask - 1) for mask in masks):
        news = _round(deducer, masks)
        if not news:
            news = [_supposition(deducer, masks)]
            masks[news[0][1]] = news[0][2]
        steps += [_step(houses, attributes, *new) for new in news]
    return tuple(steps)


def _round(deducer: Deducer, masks: list[int]) -> list[tuple[str, int, int]]:
    """Each clue, then each attribute, applied once: (reason, value, new mask) of what changes."""
    news = []
    for number in range(len(deducer.clues)):
        for v, kept in deducer.by_clue(number, masks):
            masks[v] = kept
            news.append((f"clue {number + 1}", v, kept))
    for attribute, name in enumerate(list(WORDS)[: deducer.attributes]):
        for v, kept in deducer.by_house(attribute, masks):
            masks[v] = kept
            news.append((name, v, kept))
    return news


def _supposition(deducer: Deducer, masks: Sequence[int]) -> tuple[str, int, int]:
    undecided = sorted((v for v, mask in enumerate(masks) if mask & (mask - 1)), key=lambda v: masks[v].bit_count())
    for by_search in (False, True):
        for v in undecided:
            for house in range(deducer.houses):
                if masks[v] >> house & 1 and deducer.is_refuted(v, house, masks, by_search=by_search):
                    word = names(deducer.houses, deducer.attributes)[v]
                    return f"suppose {word} in {house + 1} fails", v, masks[v] & ~(1 << house)
    raise ValueError("the clues leave more than one arrangement, so nothing more follows from them")


def _step(houses: int, attributes: int, reason: str, value: int, mask: int) -> Step:
    places = " ".join(str(house + 1) for house in range(houses) if mask >> house & 1)
    result = f"{names(houses, attributes)[value]} in {places}"
    return Step(operation=reason, result=result, text=f"{reason} : {result}")


# -------------------------------------------------------------------------------------------------------- search


@dataclass(frozen=True, slots=True)
class Placements:
    """The search tree that places one value after another; see working.py.

    A placement fails if it breaks a clue, or leaves another value without a house that every clue on it and a placed
    value would permit.
    """

    houses: int
    attributes: int
    clues: tuple[Clue, ...]
    order: tuple[int, ...]
    """In which order the values are placed."""

    @property
    def depth(self) -> int:
        return len(self.order)

    def choices(self, path: tuple[int, ...]) -> Sequence[int]:
        attribute = self.order[len(path)] // self.houses
        taken = {house for v, house in zip(self.order, path, strict=False) if v // self.houses == attribute}
        return [house for house in range(self.houses) if house not in taken]

    def failure(self, path: tuple[int, ...]) -> str:
        placed = dict(zip(self.order, path, strict=False))
        newest = self.order[len(path) - 1]
        taken = [0] * self.attributes
        for v, house in placed.items():
            taken[v // self.houses] |= 1 << house
        left = [
            1 << placed[v] if v in placed else (2**self.houses - 1) & ~taken[v // self.houses]
            for v in range(self.houses * self.attributes)
        ]
        image, preimage = _reach(self.houses)
        for number, (kind, x, y) in enumerate(self.clues):
            if kind >= AT:
                left[x] &= 1 << y if kind == AT else ~(1 << y)
            else:
                if x in placed:
                    left[y] &= image[kind][1 << placed[x]]
                if y in placed:
                    left[x] &= preimage[kind][1 << placed[y]]
            if not left[newest] or (kind < AT and x in placed and y in placed and not (left[x] and left[y])):
                return f"clue {number + 1} fails"
        empty = next((v for v, mask in enumerate(left) if not mask), None)
        return "" if empty is None else f"{names(self.houses, self.attributes)[empty]} fails"

    def shown(self, path: tuple[int, ...]) -> str:
        value = self.order[len(path) - 1]
        return f"{names(self.houses, self.attributes)[value]} in {path[-1] + 1}"


def most_told_first(houses: int, attributes: int, clues: tuple[Clue, ...]) -> tuple[int, ...]:
    """The values in the order in which a search places them: the one that most clues tie to placed values, next."""
    ties: list[list[int]] = [[] for _ in range(houses * attributes)]
    single = [0] * (houses * attributes)
    for kind, x, y in clues:
        if kind >= AT:
            single[x] += 1
        else:
            ties[x].append(y)
            ties[y].append(x)
    order: list[int] = []
    left = list(range(houses * attributes))
    while left:
        known = set(order)
        best = max(left, key=lambda v: (single[v] + sum(w in known for w in ties[v]), len(ties[v]), -v))
        order.append(best)
        left.remove(best)
    return tuple(order)


__all__ = [
    "GRAMMAR",
    "KINDS",
    "MARKS",
    "NEGATED",
    "REASONING",
    "WORDS",
    "Clue",
    "Deducer",
    "Placements",
    "deductions",
    "most_told_first",
    "names",
    "puzzle",
    "told",
]
