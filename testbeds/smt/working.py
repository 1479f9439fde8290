"""What the puzzles share: reading words, arranging steps, and searches with a given number of dead ends.

The words of an answer are read longest first from left to right; white space ends a word and otherwise means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

from numpy.random import Generator

from testbeds.arithmetic import shown
from testbeds.core import Step, TraceStyle, Unrealisable
from testbeds.smt.answers import Flaw, answer_part

MOST_WORDS = 256  # an answer has at most 71, eight starts of six digits
MOST_DEAD_ENDS = 400  # of a search that shows what it meets; a longer trace is of no use to any model here


# ------------------------------------------------------------------------------------------------------- reading


def read_words(completion: str, words: tuple[str, ...]) -> list[str] | Flaw:
    """The words of a completion's answer, which is all of it or what follows its one mark."""
    answer = answer_part(completion)
    if isinstance(answer, Flaw):
        return answer
    pattern = _pattern(words)
    found: list[str] = []
    for piece in answer.split():
        place = 0
        while place < len(piece):
            match = pattern.match(piece, place)
            if match is None:
                return Flaw(f"{shown(piece[place:])} does not begin with a word of an answer")
            found.append(match.group())
            place = match.end()
            if len(found) > MOST_WORDS:
                return Flaw(f"the answer has more than {MOST_WORDS} words")
    return found or Flaw("there is no answer")


@lru_cache(maxsize=256)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)))


def split_at(words: Sequence[str], mark: str) -> list[list[str]]:
    """The stretches between the marks: one more than there are marks."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == mark:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


# ------------------------------------------------------------------------------------------------------- writing


def check_style(style: TraceStyle, *, of: str, heuristics: tuple[str, ...] = ()) -> None:
    """Raises ValueError for what no puzzle can write."""
    if style.search == "breadth_first":
        raise ValueError(f"{of} writes search='optimal' (deductions) or 'depth_first', got 'breadth_first'")
    if style.heuristic and style.heuristic not in heuristics:
        known = f"knows the heuristics {', '.join(heuristics)}" if heuristics else "knows no heuristics by name"
        raise ValueError(f"{of} {known}, got heuristic={style.heuristic!r}; leave it empty for the usual one")


def folded(group: Sequence[Step]) -> Step:
    """Several steps as one, which says only what came out: ``red in 1 , cat in 2``."""
    result = " , ".join([step.result for step in group])
    return Step(operation=" , ".join([step.operation for step in group]), result=result, text=result)


def arranged(
    steps: Sequence[Step], style: TraceStyle, rng: Generator, fold: Callable[[Sequence[Step]], Step] = folded
) -> tuple[Step, ...]:
    """The steps as a style has them: in its order, folded into groups, or unwritten."""
    if style.granularity == "implicit":
        return tuple(Step(operation=step.operation, result=step.result, text="") for step in steps)
    written = list(steps)
    if style.granularity == "composed":
        groups = [written[first : first + style.group] for first in range(0, len(written), style.group)]
        written = [fold(group) for group in groups]
    if style.order == "backward":
        written.reverse()
    if style.order == "shuffled":
        written = [written[int(place)] for place in rng.permutation(len(written))]
    return tuple(written)


# ------------------------------------------------------------------------------------------------------- searching


class Tree(Protocol):
    """A search tree over paths, tuples of choices; a path of full depth without a failure is a solution."""

    @property
    def depth(self) -> int:
        """Choices of a full path."""
        ...

    def choices(self, path: tuple[int, ...]) -> Sequence[int]:
        """What may be tried next, in the order in which it is."""
        ...

    def failure(self, path: tuple[int, ...]) -> str:
        """Why a path cannot be completed, in words of the testbed; empty where nothing is seen to be wrong."""
        ...

    def shown(self, path: tuple[int, ...]) -> str:
        """The last choice of a path, in words of the testbed."""
        ...

    def __hash__(self) -> int: ...


def dead_ends(steps: Sequence[Step]) -> int:
    """How many dead ends a depth-first trace shows: its steps that fail."""
    return sum(step.result.endswith("fails") for step in steps)


def depth_first(tree: Tree, goal: tuple[int, ...], backtracks: int | None, rng: Generator) -> tuple[Step, ...]:
    """The steps of a search that ends at ``goal``, with exactly as many dead ends as asked.

    Each branch off the way to the goal is either left out, or searched completely and found to be dead. With None, what
    stands before the right choice is searched. A dead end is one step, whose result says what ``fails``.

    Raises:
        Unrealisable: where no choice of branches has that many dead ends, or the search meets more than
            ``MOST_DEAD_ENDS``.
    """
    branches = _dead_branches(tree, goal, backtracks)
    if branches is None:
        raise Unrealisable(f"the search meets another solution, or more than {MOST_DEAD_ENDS} dead ends")
    chosen = adding_up([dead_ends(steps) for _, steps in branches], backtracks, rng)
    walked: list[Step] = []
    for level in range(tree.depth):
        for place in chosen:
            if branches[place][0] == level:
                walked += branches[place][1]
        walked.append(_visited(tree, goal[: level + 1]))
    return tuple(walked)


@lru_cache(maxsize=128)  # one problem is often asked for in several styles
def _dead_branches(
    tree: Tree, goal: tuple[int, ...], backtracks: int | None
) -> tuple[tuple[int, tuple[Step, ...]], ...] | None:
    """(level, steps) of the branches off the way to the goal that are dead; for None, of those before it.

    None where one of those before it is not dead, or has too many dead ends.
    """
    most = MOST_DEAD_ENDS if backtracks is None else backtracks
    branches = []
    for level in range(tree.depth):
        choices = list(tree.choices(goal[:level]))
        if backtracks is None:
            choices = choices[: choices.index(goal[level])]
        for choice in choices:
            steps = _searched(tree, (*goal[:level], choice), most) if choice != goal[level] else None
            if steps is not None:
                branches.append((level, steps))
            elif backtracks is None:
                return None
    return tuple(branches)


def adding_up(costs: list[int], backtracks: int | None, rng: Generator) -> list[int]:
    """Places of costs that sum to ``backtracks``, drawn at random; all of them where it is None."""
    if backtracks is None:
        if sum(costs) > MOST_DEAD_ENDS:
            raise Unrealisable(f"the search meets {sum(costs)} dead ends, more than {MOST_DEAD_ENDS}")
        return list(range(len(costs)))
    order = rng.permutation(len(costs)).tolist()
    reached = [1]  # bit s of reached[i]: some of the first i costs sum to s
    for place in order:
        reached.append((reached[-1] | reached[-1] << costs[place]) & ((2 << backtracks) - 1))
    if not reached[-1] >> backtracks & 1:
        raise Unrealisable(f"no choice of wrong branches has exactly {backtracks} dead ends")
    chosen, left = [], backtracks
    for i in range(len(order), 0, -1):
        cost = costs[order[i - 1]]
        can_skip = reached[i - 1] >> left & 1
        can_take = left >= cost and reached[i - 1] >> (left - cost) & 1
        if can_take and (not can_skip or int(rng.integers(2))):
            chosen.append(order[i - 1])
            left -= cost
    return sorted(chosen)


def _searched(tree: Tree, path: tuple[int, ...], most: int) -> tuple[Step, ...] | None:
    """The steps that show a branch to be dead; None where it is not, or has more than ``most`` dead ends."""
    failure = tree.failure(path)
    if failure:
        return (_visited(tree, path, failure),) if most > 0 else None
    if len(path) == tree.depth:
        return None
    steps = [_visited(tree, path)]
    for choice in tree.choices(path):
        below = _searched(tree, (*path, choice), most)
        if below is None:
            return None
        most -= dead_ends(below)
        steps += below
    return tuple(steps) if len(steps) > 1 else (_visited(tree, path, "fails"),)


def _visited(tree: Tree, path: tuple[int, ...], failure: str = "") -> Step:
    shown_choice = tree.shown(path)
    if not failure:
        return Step(operation="try", result=shown_choice, text=f"try {shown_choice}")
    return Step(operation=f"try {shown_choice}", result=failure, text=f"try {shown_choice} : {failure}")


def first_found(tree: Tree, path: tuple[int, ...] = ()) -> tuple[int, ...] | None:
    """The first solution that the search meets; None where there is none below this path."""
    if len(path) == tree.depth:
        return path
    for choice in tree.choices(path):
        longer = (*path, choice)
        found = None if tree.failure(longer) else first_found(tree, longer)
        if found is not None:
            return found
    return None
