"""What grid worlds share: action sequences as answers, boards under the symmetries of the square, checks of fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from testbeds.arithmetic import Flaw, shown
from testbeds.core import ANSWER_MARK, Problem, Task, TraceStyle, Verdict
from testbeds.streams import stream

STEPS: Final = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
"""Actions: up, down, left, right, as (rows, columns)."""
_ACTIONS = "".join(STEPS)
LONGEST_TEXT = 100_000  # characters after the mark, white space included; longer answers are malformed unread
PILOT_PROBLEMS = 500  # problems whose answers are counted for the best constant answer
COUNTED_ANSWERS = 64  # answers per problem that are counted; more alternatives than that are rarely anyone's best


def read_actions(completion: str, limit: int) -> str | Flaw:
    """The letters of ``ACTIONS`` or ``WORKING # ACTIONS``, or why the text is neither; linear in the text."""
    marks = completion.count(ANSWER_MARK)
    if marks > 1:
        return Flaw(reason=f"the mark {ANSWER_MARK!r} stands {marks} times, at most once is allowed")
    answer = completion.rpartition(ANSWER_MARK)[2]
    if len(answer) > LONGEST_TEXT:
        return Flaw(reason=f"the answer has {len(answer)} characters, at most {LONGEST_TEXT} are read")
    letters = "".join(answer.split())
    if not letters:
        return Flaw(reason="the answer is empty")
    rest = letters.lstrip(_ACTIONS)
    if rest:
        place = len(letters) - len(rest) + 1
        return Flaw(reason=f"{shown(rest[0])} at place {place} of the answer is no action")
    if len(letters) > limit:
        return Flaw(reason=f"the answer has {len(letters)} actions, at most {limit} are allowed")
    return letters


def malformed(reason: str) -> Verdict:
    """The verdict on a text outside the grammar."""
    return Verdict(correct=False, well_formed=False, progress=0.0, reason=reason)


def wrong(reason: str, progress: float) -> Verdict:
    """The verdict on a well-formed answer that is wrong."""
    return Verdict(correct=False, well_formed=True, progress=progress, reason=reason)


def right(reason: str) -> Verdict:
    """The verdict on a right answer."""
    return Verdict(correct=True, well_formed=True, progress=1.0, reason=reason)


@lru_cache(maxsize=64)
def _images(height: int, width: int) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """(height, width, old cell of each new cell) of the eight images of a board; cells count along the rows."""
    cells: NDArray[np.int64] = np.arange(height * width, dtype=np.int64).reshape(height, width)
    turned = [np.rot90(board, turns) for board in (cells, cells.T) for turns in range(4)]
    return tuple((image.shape[0], image.shape[1], tuple(image.ravel().tolist())) for image in turned)


def images(board: str, height: int, width: int) -> list[str]:
    """The eight images of a board under rotation and reflection, each as its rows joined by ``/``."""
    found = []
    for rows, columns, cells in _images(height, width):
        letters = "".join([board[cell] for cell in cells])
        found.append(drawn(letters, rows, columns, "/"))
    return found


def canonical_board(board: str, height: int, width: int) -> str:
    """The first of a board's eight images, in the order of text: equal for boards that are images of each other."""
    return min(images(board, height, width))


def drawn(board: str, height: int, width: int, between: str) -> str:
    """The rows of a board, joined."""
    return between.join([board[row * width : (row + 1) * width] for row in range(height)])


def folded(actions: str, states: Iterable[str], group: int) -> list[tuple[str, str, str]]:
    """(action, state, text) of each action; the state is written after every ``group`` actions and after the last."""
    lines = []
    pending: list[str] = []
    for place, (action, state) in enumerate(zip(actions, states, strict=True), 1):
        pending.append(action)
        is_written = place % group == 0 or place == len(actions)
        lines.append((action, state, " ".join([*pending, state]) if is_written else ""))
        pending = [] if is_written else pending
    return lines


def ordered(
    lines: list[tuple[str, str, str]], style: TraceStyle, rng: np.random.Generator
) -> list[tuple[str, str, str]]:
    """The lines in the order of the style; actions that are written together stay together."""
    groups: list[list[tuple[str, str, str]]] = [[]]
    for line in lines:
        groups[-1].append(line)
        if line[2]:
            groups.append([])
    groups = [group for group in groups if group]
    if style.order == "backward":
        groups.reverse()
    if style.order == "shuffled":
        groups = [groups[place] for place in rng.permutation(len(groups))]
    return [line for group in groups for line in group]


def best_constant(task: Task, answers: Callable[[Problem], Iterable[str]]) -> float:
    """The share of a fixed sample of the task's problems that one and the same answer solves, the best one counted."""
    problems = task.generate(stream("best constant answer"), PILOT_PROBLEMS)
    solved: Counter[str] = Counter()
    for problem in problems:
        for _, answer in zip(range(COUNTED_ANSWERS), answers(problem), strict=False):
            solved[answer] += 1
    candidates = [answer for answer, _ in solved.most_common(COUNTED_ANSWERS // 8)]
    return max(sum(task.verify(problem, answer).correct for problem in problems) for answer in candidates) / len(
        problems
    )


# -------------------------------------------------------------------------------------------------- validation


def check_whole(where: str, value: object, low: int, high: int) -> None:
    """Raises ValueError unless ``value`` is an int (no bool) from low to high."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{where} must be a whole number from {low} to {high}, got {value!r}")


def check_range(where: str, bounds: object, low: int, high: int) -> None:
    """Raises ValueError unless ``bounds`` is a tuple of two ints, low <= first <= second <= high."""
    match bounds:
        case (first, second) if isinstance(bounds, tuple) and type(first) is int and type(second) is int:
            if low <= first <= second <= high:
                return
    raise ValueError(
        f"{where} must be a tuple (lowest, highest) of whole numbers, {low} <= lowest <= highest <= {high},"
        f" got {bounds!r}"
    )


def check_choice(where: str, value: object, choices: tuple[object, ...]) -> None:
    """Raises ValueError unless ``value`` is one of the choices."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise ValueError(f"{where} must be one of {', '.join(map(repr, choices))}, got {value!r}")
