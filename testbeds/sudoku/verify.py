"""The verdict on any text as the solution of a Sudoku: total, exact, linear, by the rules and never by comparison."""

from __future__ import annotations

import re

from testbeds.core import ANSWER_MARK, Verdict
from testbeds.sudoku.geometry import geometry, unit_words

LONGEST_ANSWER = 20_000  # characters after the mark, white space included; a 9x9 grid has 89 symbols
SHOWN = 24  # characters of an answer that a reason quotes
ROW_END = "/"
EMPTY = "."

_COUNTS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}


def verify_grid(size: int, givens: str, solution: str, completion: str) -> Verdict:
    """The verdict on ``GRID`` or ``WORKING # GRID``.

    ``givens`` and ``solution`` are in reading order, "." for empty. ``progress`` is the share of the cells to fill that
    have the solution's digit; each given that was changed counts as one more cell to fill.
    """
    marks = completion.count(ANSWER_MARK)
    if marks > 1:
        return _malformed(f"{marks} answer marks {ANSWER_MARK}, at most one is allowed")
    answer = completion.rpartition(ANSWER_MARK)[2]
    if len(answer) > LONGEST_ANSWER:
        return _malformed(f"the answer has {len(answer)} characters, at most {LONGEST_ANSWER} are read")
    tight = "".join(answer.split())
    grid = tight.replace(ROW_END, "")
    if tight not in (grid, ROW_END.join(_rows(size, grid))) or not re.fullmatch(rf"[1-{size}]{{{size * size}}}", grid):
        return _malformed(_slip(size, tight))
    reason = _violation(size, givens, grid)
    if not reason:
        return Verdict(correct=True, well_formed=True, progress=1.0, reason="every row, column and box is complete")
    cells = list(zip(givens, grid, solution, strict=True))
    to_fill = sum(given != digit or given == EMPTY for given, digit, _ in cells)
    right = sum(given == EMPTY and digit == wanted for given, digit, wanted in cells)
    return Verdict(correct=False, well_formed=True, progress=right / to_fill, reason=reason)


def _rows(size: int, grid: str) -> list[str]:
    return [grid[start : start + size] for start in range(0, len(grid), size)]


def _slip(size: int, tight: str) -> str:
    """Why a text without white space is not a grid."""
    if not tight:
        return "the answer is empty"
    strange = re.search(rf"[^1-{size}{ROW_END}]", tight)
    if strange:
        return f"{strange[0]!r} in {_shown(tight)} is neither a digit from 1 to {size} nor {ROW_END!r}"
    rows = tight.split(ROW_END)
    if len(rows) == 1:
        return f"the grid has {len(tight)} cells, not {size * size}"
    if len(rows) != size:
        return f"the grid has {len(rows)} rows, not {size}"
    short = next(i for i, row in enumerate(rows) if len(row) != size)
    return f"row {short + 1} has {len(rows[short])} cells, not {size}"


def _violation(size: int, givens: str, grid: str) -> str:
    """The first given that was changed, else the first unit (rows, columns, boxes) that is not complete; or nothing."""
    for cell, (given, digit) in enumerate(zip(givens, grid, strict=True)):
        if given not in (EMPTY, digit):
            return f"cell r{cell // size + 1}c{cell % size + 1} is {digit} but {given} is given"
    for unit, cells in enumerate(geometry(size).units.tolist()):
        digits = [grid[cell] for cell in cells]
        if len(set(digits)) < size:
            return f"{unit_words(size, unit)} {_repeats(size, digits)}"
    return ""


def _repeats(size: int, digits: list[str]) -> str:
    repeated = next(digit for digit in sorted(digits) if digits.count(digit) > 1)
    missing = [digit for digit in map(str, range(1, size + 1)) if digit not in digits]
    return f"has {_COUNTS[digits.count(repeated)]} {repeated}s and misses {' and '.join(missing)}"


def _shown(text: str) -> str:
    return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}..."


def _malformed(reason: str) -> Verdict:
    return Verdict(correct=False, well_formed=False, progress=0.0, reason=f"malformed: {reason}")
