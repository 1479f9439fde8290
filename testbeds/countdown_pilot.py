"""Whether a Countdown task can be drawn at all: random trees over a few draws, and an exact look where they fail.

Where solutions are too many to count, a few draws are searched first: a task whose draws take long is refused.

Random trees need no compiled loop, so that declaring a usual task costs a millisecond.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from testbeds.arithmetic import joined
from testbeds.countdown_draws import draw, is_counted
from testbeds.countdown_many import steps_taken
from testbeds.streams import stream

if TYPE_CHECKING:
    from testbeds.countdown import Countdown

HITS = 10  # draws with a reachable target that a task must show ...
DRAWS = {6: 200, 7: 40, 8: 40}  # ... among so many, by count of numbers; for others among 500, so 2 %
SEARCHED = 4  # draws of a task with many numbers that are searched ...
STEPS_EACH = 1 << 18  # ... in so many steps on average, which are about 50 ms
ROWS, TREES = 60, 20  # of the first look: enough for a task of which every third row hits with a random tree of twenty


def check_solvable(task: Countdown) -> None:
    """Refuses a task of whose draws hardly any has a target, or whose draws take long to search."""
    if not is_counted(task) and not _is_quick(task):
        raise ValueError(
            f"Countdown: it takes more than {STEPS_EACH} steps of search to tell which targets from {task.target[0]} to"
            f" {task.target[1]} {task.numbers} numbers from {task.values[0]} to {task.values[1]} reach with"
            f" {' '.join(task.operators)}, too many to draw problems; narrow or lower target, or take fewer numbers"
        )
    if _seems_solvable(task):
        return
    hits, draws = _pilot(task)
    if hits < HITS:
        raise ValueError(unsolvable(task, hits, draws))


def unsolvable(task: Countdown, hits: int, draws: int) -> str:
    """What is wrong with a task of which so few draws have a target."""
    low, high = task.target
    bounded = "" if is_counted(task) else ", in bounded work"
    return (
        f"Countdown: {hits} of {draws} draws of {task.numbers} numbers from {task.values[0]} to {task.values[1]} reach"
        f" a target from {low} to {high} with {' '.join(task.operators)}{bounded}, too few to draw problems from; move"
        f" or widen target, change values, or allow more numbers, operators or intermediates"
    )


@lru_cache(maxsize=256)
def _is_quick(task: Countdown) -> bool:
    """Whether the targets that many numbers reach are told from the others in few steps, on average."""
    low, high = task.values
    left = SEARCHED * STEPS_EACH
    for row in stream("countdown", "pilot", "steps").integers(low, high + 1, (SEARCHED, task.numbers)).tolist():
        left -= steps_taken(tuple(sorted(row)), task.rules, *task.target, most=left)
        if left < 0:
            return False
    return True


@lru_cache(maxsize=256)
def _seems_solvable(task: Countdown) -> bool:
    """Whether random trees alone reach targets from HITS of ROWS draws."""
    low, high = task.values
    rng = stream("countdown", "pilot", "random trees")
    rows = rng.integers(low, high + 1, (ROWS, task.numbers)).tolist()
    choices = rng.random((ROWS, TREES, task.numbers - 1, 3)).tolist()
    hits = 0
    for row, trees in zip(rows, choices, strict=True):
        hits += any(_hits(task, row, tree) for tree in trees)
        if hits == HITS:
            return True
    return False


def _hits(task: Countdown, row: list[int], tree: list[list[float]]) -> bool:
    """Whether a tree, given by where each step takes its operands and its operator, makes a target of a task."""
    values = [(number, 1) for number in row]
    for first, second, choice in tree:
        left = values.pop(int(first * len(values)))
        right = values.pop(int(second * len(values)))
        result = joined(task.operators[int(choice * len(task.operators))], left, right)
        if result is None or not task.rules.permit_ratio(*result):
            return False
        values.append(result)
        is_answer = len(values) == 1 or (not task.exact_use and result[0] not in row)
        if is_answer and result[1] == 1 and task.target[0] <= result[0] <= task.target[1]:
            return True
    return False


@lru_cache(maxsize=256)
def _pilot(task: Countdown) -> tuple[int, int]:
    """(hits, draws): how many draws of numbers reach a target, until there are HITS or no more draws."""
    low, high = task.values
    hits, most = 0, DRAWS.get(task.numbers, 500)
    rng = stream("countdown", "pilot")
    for draws in range(0, most, HITS):
        rows = rng.integers(low, high + 1, (HITS, task.numbers))
        hits += sum(drawn is not None for drawn in draw(task, rows, rng))
        if hits >= HITS or (not hits and not is_counted(task)):  # there, a miss may cost a tenth of a second
            return hits, draws + HITS
    return hits, most
