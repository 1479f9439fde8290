"""Targets drawn for many rows of numbers at once, and how likely a guess is to hit one: pure functions."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from testbeds.countdown_chains import count_chains
from testbeds.countdown_kernels import LISTED, survey
from testbeds.countdown_many import listing, reached, reached_from, solution_from
from testbeds.countdown_search import plan, positions, reachable, rule_code, worked_at
from testbeds.countdown_trees import spelled, spelled_all

if TYPE_CHECKING:
    from testbeds.countdown import Countdown

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_CHAINED = 4  # numbers whose chains are counted: a walk through 4,000 ends for four, through 300,000 for five


class Drawn(NamedTuple):
    """Numbers and a target that they reach."""

    numbers: tuple[int, ...]
    """As drawn."""
    target: int
    witness: str
    """An expression that makes the target."""
    solutions: int = 0
    """The count of distinct solutions; 0 where they are not counted."""
    places: tuple[int, ...] = ()
    """Their positions, where they are few."""
    chains: int = 0
    """The count of right chains; 0 where they are not counted."""


def is_counted(task: Countdown) -> bool:
    """Whether the distinct solutions of a task's problems are counted."""
    return task.numbers <= task.rules.most_counted


def counts_chains(task: Countdown) -> bool:
    """Whether the right chains of a task's problems are counted."""
    return task.form == "chain" and task.numbers <= MOST_CHAINED


def draw(task: Countdown, rows_RN: Ints, rng: Generator) -> list[Drawn | None]:
    """A target for each row of numbers, drawn as the task says; None for numbers that reach none."""
    draws_R2 = rng.random((len(rows_RN), 2))
    if not is_counted(task):
        return [
            _drawn_of_many(task, tuple(row), share) for row, (share, _) in zip(rows_RN.tolist(), draws_R2, strict=True)
        ]
    drawn: list[Drawn | None] = [None] * len(rows_RN)
    ordered_RN = np.sort(rows_RN, axis=1)
    ties_R = ((ordered_RN[:, 1:] == ordered_RN[:, :-1]) @ (1 << np.arange(rows_RN.shape[1] - 1))).tolist()
    numbers = [tuple(row) for row in rows_RN.tolist()]
    for ties in sorted(set(ties_R)):
        places = [place for place, tied in enumerate(ties_R) if tied == ties]
        for place, one in zip(places, _alike(task, ties, ordered_RN[places], draws_R2[places]), strict=True):
            drawn[place] = one and Drawn(numbers[place], *one)
    return drawn


def draw_one(task: Countdown, numbers: tuple[int, ...], target: int, solutions: int) -> Drawn:
    """What ``draw`` would give for these numbers and this target."""
    rules, ordered = task.rules, tuple(sorted(numbers))
    chains = int(count_chains(np.array([ordered]), np.array([target]), rules)[0]) if counts_chains(task) else 0
    if not is_counted(task):
        outline = solution_from(listing(ordered, rules), target)
        return Drawn(numbers, target, spelled(outline, []) if outline else "", chains=chains)
    places = positions(ordered, rules, target)
    witness, _ = worked_at(ordered, rules, places[0])
    return Drawn(numbers, target, witness, solutions, places if solutions <= LISTED else (), chains)


def floor_of(task: Countdown, numbers: tuple[int, ...]) -> float | None:
    """Success probability of the best guess that sees these numbers alone; None where they reach no target in range.

    An answer hits one target at most. A uniform draw gives each of n targets 1/n; a stratified one gives 1/(s k) to
    each of the k targets of one of s occupied strata, so the best guess is one of the smallest stratum.
    """
    found = reached_targets(task, numbers)
    if not found:
        return None
    if task.targets == "uniform":
        return 1.0 / len(found)
    strata = Counter(count.bit_length() for _, count in reachable(numbers, task.rules, *task.target))
    return 1.0 / (len(strata) * min(strata.values()))


def reached_targets(task: Countdown, numbers: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """(target, its solutions or 0) for each target in range that these numbers reach.

    Raises:
        ValueError: for numbers that a bounded search leaves undecided, which no problem of the task has.
    """
    if is_counted(task):
        return reachable(numbers, task.rules, *task.target)
    found = reached(tuple(sorted(numbers)), task.rules, *task.target)
    if found is None:
        raise ValueError(f"no bounded search decides which targets from {task.target} {numbers} reach under {task}")
    return tuple((target, 0) for target in found.tolist())


_Found = tuple[int, str, int, tuple[int, ...], int]
"""What a ``Drawn`` holds beside the numbers."""


def _alike(task: Countdown, ties: int, ordered_RN: Ints, draws_R2: Floats) -> list[_Found | None]:
    """Draws for rows of ascending numbers with the same ties: one pass of the compiled loop."""
    rules = task.rules
    counts, columns = _letters(ties, task.numbers)
    program = plan(counts, rules)
    letters_RL = ordered_RN if len(counts) == task.numbers else np.ascontiguousarray(ordered_RN[:, columns])
    span = (program.whole, program.size, *task.target)
    found = survey(program.rows, span, letters_RL, rule_code(rules), draws_R2, task.targets == "stratified")
    is_hit = found[:, 0] > 0
    if program.signed:
        hits = zip(ordered_RN[is_hit].tolist(), found[is_hit, 2].tolist(), strict=True)
        witnesses = iter([worked_at(tuple(row), rules, place)[0] for row, place in hits])
    else:
        witnesses = iter(spelled_all(program, letters_RL[is_hit], found[is_hit, 2]))
    chains_R = [0] * len(found)
    if counts_chains(task):
        chains_R = count_chains(ordered_RN, np.maximum(found[:, 0], 1), rules).tolist()
    return [
        (target, next(witnesses), solutions, tuple(places[:solutions]) if solutions <= LISTED else (), chains)
        if target
        else None
        for (target, solutions, *places), chains in zip(found.tolist(), chains_R, strict=True)
    ]


@lru_cache(maxsize=256)
def _letters(ties: int, numbers: int) -> tuple[tuple[int, ...], Ints]:
    """How often each letter stands and a column of it among ascending numbers, as ``lettered`` orders them.

    Bit i of ``ties`` says whether the numbers in columns i and i+1 are equal.
    """
    starts = [column for column in range(numbers) if column == 0 or not ties >> (column - 1) & 1]
    sizes = [end - start for start, end in zip(starts, [*starts[1:], numbers], strict=True)]
    order = sorted(range(len(starts)), key=lambda letter: (-sizes[letter], letter))
    return tuple(sizes[letter] for letter in order), np.array([starts[letter] for letter in order])


def _drawn_of_many(task: Countdown, numbers: tuple[int, ...], share: float) -> Drawn | None:
    """A target at this share of those that many numbers reach; None where they are undecided, too."""
    ordered = tuple(sorted(numbers))
    listed = listing(ordered, task.rules)
    found = reached_from(listed, ordered, *task.target)
    if found is None or not len(found):
        return None
    target = int(found[int(share * len(found))])
    outline = solution_from(listed, target)
    if outline is None:
        raise ArithmeticError(f"{target} was found within reach of {numbers} and has no solution")
    return Drawn(numbers, target, spelled(outline, []))
