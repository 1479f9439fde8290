"""The pack of cards behind GeneralPoints: ranks, what they count under each rule, and all solvable hands of a task."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import Final, Literal

import numpy as np
from numpy.random import Generator

from testbeds.arithmetic import OPERATORS
from testbeds.countdown_search import Rules
from testbeds.countdown_traces_kernel import Ints
from testbeds.game24_hands import are_solvable

FaceRule = Literal["ten", "ascending", "descending"]

RANKS: Final = ("A", *map(str, range(2, 11)), "J", "Q", "K")
SUITS: Final = ("s", "h", "d", "c")
FACES: Final = ("J", "Q", "K")
FACE_VALUES: Final[dict[FaceRule, tuple[int, int, int]]] = {
    "ten": (10, 10, 10),
    "ascending": (11, 12, 13),
    "descending": (13, 12, 11),
}
RULES: Final = Rules(operators=OPERATORS, positive=False, largest=None, exact_use=True)

_FIRST_FACE = RANKS.index("J")


def rank_values(rule: FaceRule) -> Ints:
    """What each rank counts, in the order of RANKS."""
    return np.array([*range(1, _FIRST_FACE + 1), *FACE_VALUES[rule]], np.int64)


def rank_of(card: str) -> str:
    """The rank of a card such as ``10h``: all but its suit."""
    return card[:-1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hands:
    """Hands up to suits and order."""

    ranks: Ints
    """One ascending row of places in RANKS for each."""
    cumulative: Ints
    """Running sum of the number of sets of cards with these ranks."""
    likeliest_numbers: float
    """Probability of the likeliest multiset of numbers, under the rule of the task."""


def solvable_hands(cards: int, target: int, rule: FaceRule, *, needs_face: bool) -> Hands:
    """All hands that make the target under a rule."""
    ranks = np.array(list(combinations_with_replacement(range(len(RANKS)), cards)), np.int64)
    ties = (ranks[:, :, None] == np.arange(len(RANKS))).sum(axis=1)
    is_dealt = ties.max(axis=1) <= len(SUITS)
    if needs_face:
        is_dealt &= ranks[:, -1] >= _FIRST_FACE
    ranks, ties = ranks[is_dealt], ties[is_dealt]
    numbers, number_of_hand = np.unique(np.sort(rank_values(rule)[ranks], axis=1), axis=0, return_inverse=True)
    number_of_hand = number_of_hand.reshape(-1)
    is_solvable = are_solvable(numbers, target, RULES)[number_of_hand]
    sets = np.array([comb(len(SUITS), tie) for tie in range(len(SUITS) + 1)])[ties].prod(axis=1)
    sets, number_of_hand = sets[is_solvable], number_of_hand[is_solvable]
    likeliest = np.bincount(number_of_hand, weights=sets).max() if len(sets) else 0.0
    return Hands(
        ranks=ranks[is_solvable],
        cumulative=sets.cumsum(),
        likeliest_numbers=float(likeliest / max(int(sets.sum()), 1)),
    )


def deal(hands: Hands, rng: Generator, count: int) -> list[tuple[str, ...]]:
    """``count`` hands, uniform over sets of cards and over their orders."""
    chosen = np.searchsorted(hands.cumulative, rng.integers(hands.cumulative[-1], size=count), side="right")
    return [with_suits(row, rng) for row in rng.permuted(hands.ranks[chosen], axis=1).tolist()]


def with_suits(ranks: list[int], rng: Generator) -> tuple[str, ...]:
    """Cards of these ranks in this order, all different, their suits drawn uniformly."""
    if len(set(ranks)) == len(ranks):
        suits = rng.integers(len(SUITS), size=len(ranks)).tolist()
    else:
        left = {rank: rng.permutation(len(SUITS)).tolist() for rank in sorted(set(ranks))}
        suits = [left[rank].pop() for rank in ranks]
    return tuple(RANKS[rank] + SUITS[suit] for rank, suit in zip(ranks, suits, strict=True))
