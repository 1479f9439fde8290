"""Worked solutions as text: steps of a person's techniques, or the lines of a search with its dead ends.

=====================  =====================================================  ==========================================
step                   example                                                meaning
=====================  =====================================================  ==========================================
naked single           ``naked_single r1c3=4``                                no other digit is possible in the cell
hidden single          ``hidden_single b2 r1c4=6``                            no other cell of the unit can have the 6
locked candidates      ``locked_candidates 5 b1 r2 : r2c7!5 r2c9!5``          all 5s of box 1 lie in row 2
naked pair             ``naked_pair c4 r1c4 r6c4 3 7 : r2c4!3 r2c4!7``        3 and 7 stand in these two cells
hidden pair            ``hidden_pair c4 r1c4 r6c4 3 7 : r1c4!5 r6c4!1``       these two cells hold 3 and 7
guess                  ``guess r1c3=4``                                       one of several candidates is tried
dead end               ``dead r5c5``                                          no digit is possible in the cell
take back              ``back r1c3=4``                                        that guess, and all since it, is undone
composed               ``r1c3=4 r1c4=6``                                      placements alone, a group of them
=====================  =====================================================  ==========================================

``r2c7!5`` reads: row 2, column 7 is not 5. Without a search, a guess is always right. In a search (search.py),
``naked_single`` stands where the cell that is looked at has one candidate.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Final

from numpy.random import Generator

from testbeds.core import ANSWER_MARK, Step, Trace, TraceStyle
from testbeds.sudoku.geometry import Geometry, Ints, cell_name, unit_name
from testbeds.sudoku.search import BACK, DEAD, FORCED, GUESS, HEURISTICS, search_with, whole_search
from testbeds.sudoku.techniques import HIDDEN_SINGLE, LOCKED, NAKED_SINGLE, SEARCH, TECHNIQUES, work_out_puzzle

GUESS_WORD, DEAD_WORD, BACK_WORD = "guess", "dead", "back"
WORDS: Final = (*TECHNIQUES[: SEARCH - 1], GUESS_WORD, DEAD_WORD, BACK_WORD)
IS, IS_NOT, THEREFORE = "=", "!", ":"

_SEARCH_WORDS = {GUESS: GUESS_WORD, FORCED: TECHNIQUES[NAKED_SINGLE - 1], DEAD: DEAD_WORD, BACK: BACK_WORD}
_DEAD_END = re.compile(rf"{DEAD_WORD}\s*r[1-9]\s*c[1-9]")


def backtracks_in(text: str) -> int:
    """The dead ends that a completion shows before its answer mark; any string has a number, a malformed one too."""
    return len(_DEAD_END.findall(text.partition(ANSWER_MARK)[0]))


def check_style(style: TraceStyle, size: int) -> None:
    """Raises ValueError, saying what is possible, for a style that no Sudoku of this size can be written in."""
    if style.search == "breadth_first":
        raise ValueError("Sudoku writes search='optimal' and search='depth_first', got search='breadth_first'")
    if style.heuristic and style.heuristic not in HEURISTICS:
        raise ValueError(f"Sudoku searches by heuristic {' or '.join(HEURISTICS)}, got {style.heuristic!r}")
    if size == 4 and style.backtracks and style.heuristic != "first":
        raise ValueError(  # every 4x4 puzzle can be solved by naked singles: a test walks through all of them
            f"the heuristic 'fewest' never guesses in a 4x4 puzzle, so backtracks={style.backtracks} needs"
            f" heuristic='first'"
        )
    if style.granularity == "implicit" and style.order != "forward":
        raise ValueError(f"an implicit trace writes no steps whose order could be {style.order!r}; use order='forward'")


def write_trace(geo: Geometry, puzzle: tuple[Ints, Ints], answer: str, style: TraceStyle, rng: Generator) -> Trace:
    """The trace of a puzzle (its givens and solution, in reading order) in a style that ``check_style`` passed."""
    if style.search == "depth_first":
        steps = _search_steps(geo, puzzle, style, rng)
    else:
        steps = _technique_steps(geo, puzzle, is_written=style.granularity != "implicit")
    if style.granularity == "composed":
        steps = _composed(steps, style.group)
    if style.order == "backward":
        steps = steps[::-1]
    elif style.order == "shuffled":
        steps = [steps[i] for i in rng.permutation(len(steps)).tolist()]
    return Trace.worked(tuple(steps), answer, separator="\n")


def _step(operation: str, result: str) -> Step:
    return Step(operation=operation, result=result, text=f"{operation} {result}" if operation else result)


def _search_steps(geo: Geometry, puzzle: tuple[Ints, Ints], style: TraceStyle, rng: Generator) -> list[Step]:
    heuristic = style.heuristic or HEURISTICS[0]
    if style.backtracks is None:
        events = whole_search(geo, puzzle[0], heuristic)
    else:
        events = search_with(geo, puzzle, heuristic, style.backtracks, rng)
    return [_event(geo.size, *event) for event in events]


@cache  # a few thousand different ones, each met many times
def _event(size: int, kind: int, cell: int, digit: int) -> Step:
    return _step(_SEARCH_WORDS[kind], cell_name(size, cell) + (f"{IS}{digit}" if digit else ""))


def _technique_steps(geo: Geometry, puzzle: tuple[Ints, Ints], *, is_written: bool) -> list[Step]:
    log = work_out_puzzle(geo, puzzle[0], puzzle[1])
    size = geo.size
    steps = []
    begin = 0
    for technique, unit, other_unit, cell, other_cell, digits, end in log.steps[: log.sizes[0]].tolist():
        if begin == end:  # nothing was removed: a placement
            steps.append(_placement(size, technique, unit, cell, digits, is_written))
        else:
            seen = (size, technique, (unit, other_unit), (cell, other_cell), digits)
            removed = log.removed[begin:end].tolist()  # a step's removals are noted before the step
            steps.append(_elimination(seen, removed, is_written=is_written))
        begin = end
    return steps


@cache  # a few thousand different ones, each met many times
def _placement(size: int, technique: int, unit: int, cell: int, mask: int, is_written: bool) -> Step:  # noqa: FBT001
    word = GUESS_WORD if technique == SEARCH else TECHNIQUES[technique - 1]
    operation = f"{word} {unit_name(size, unit)}" if technique == HIDDEN_SINGLE else word
    step = _step(operation, f"{cell_name(size, cell)}{IS}{mask.bit_length()}")
    return step if is_written else replace(step, text="")


_Seen = tuple[int, int, tuple[int, int], tuple[int, int], int]


def _elimination(seen: _Seen, removed: list[list[int]], *, is_written: bool) -> Step:
    size, technique, units, cells, mask = seen
    digits = " ".join(map(str, _digits(mask)))
    if technique == LOCKED:
        pattern = f"{digits} {unit_name(size, units[0])} {unit_name(size, units[1])}"
    else:
        pattern = f"{unit_name(size, units[0])} {cell_name(size, cells[0])} {cell_name(size, cells[1])} {digits}"
    result = " ".join(f"{cell_name(size, cell)}{IS_NOT}{digit}" for cell, lost in removed for digit in _digits(lost))
    step = _step(f"{TECHNIQUES[technique - 1]} {pattern} {THEREFORE}", result)
    return step if is_written else replace(step, text="")


def _digits(mask: int) -> list[int]:
    return [digit for digit in range(1, mask.bit_length() + 1) if mask >> (digit - 1) & 1]


def _composed(steps: list[Step], group: int) -> list[Step]:
    """Placements alone, ``group`` of them to a step."""
    placed = [step.result for step in steps if IS in step.result]
    folded = [placed[start : start + group] for start in range(0, len(placed), group)]
    return [_step(" ".join(some[:-1]), some[-1]) for some in folded]
