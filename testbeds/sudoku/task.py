"""Sudoku: fill a grid so that every row, column and box holds each digit once.

Texts (white space between symbols is free, and means nothing):

==================  ==================================  ===========================================================
what                example (4x4)                       grammar
==================  ==================================  ===========================================================
prompt              ``1. .4 / .. 1. / .1 .. / 4. .. >``  ``ROW ("/" ROW)* ">"``, a ROW is digits, "." for empty
grid                ``12 34 / 34 12 / 21 43 / 43 21``   all rows of digits, with "/" between all rows or between none
.. with working     ``naked_single r1c2=2 # 12 34...``  ``WORKING "#" GRID``: one mark; only what follows it is read
==================  ==================================  ===========================================================

WORKING is free text; traces.py says how the testbed's own reads. A grid is right if it keeps the givens and every row,
column and box holds each digit once. Every puzzle has exactly one solution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Final, Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from testbeds.core import ANSWER_MARK, Problem, Trace, TraceStyle, Verdict
from testbeds.streams import stream
from testbeds.sudoku.canonical import canonical_forms
from testbeds.sudoku.dice import dice
from testbeds.sudoku.geometry import BOXES, Ints, geometry
from testbeds.sudoku.grids import GRIDS, draw_grids
from testbeds.sudoku.puzzles import dig, measure
from testbeds.sudoku.small import every_puzzle
from testbeds.sudoku.solver import count_solutions
from testbeds.sudoku.techniques import SEARCH, TECHNIQUES
from testbeds.sudoku.traces import IS, IS_NOT, THEREFORE, WORDS, check_style, write_trace
from testbeds.sudoku.verify import EMPTY, ROW_END, verify_grid

Technique = Literal["naked_single", "hidden_single", "locked_candidates", "naked_pair", "hidden_pair"]

PROMPT_END = ">"
MOST_GRIDS = 100  # grids of one batch that may fail MOST_ORDERS orders before the task is called infeasible
FEWEST: Final = {4: (4,) * 6, 6: (9,) * 6, 9: (23, 22, 22, 22, 22, 22)}
"""Fewest givens that are offered, by size and hardest technique (the last: any). With fewer, fewer than one order of
emptying the cells in a hundred succeeds; the fewest that exist are 4, 8 and 17. Measured over 1,500 orders each."""

_VALUES = bytes.maketrans(b".123456789", bytes(range(10)))
_FEATURES = ("naked_singles", "hidden_singles", "locked_candidates", "naked_pairs", "hidden_pairs", "guesses")


@dataclass(frozen=True, slots=True, kw_only=True)
class SudokuCertificate:
    """A puzzle and its one solution."""

    size: int
    givens: str
    """In reading order, "." for empty."""
    solution: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sudoku:
    """A puzzle with exactly one solution; the answer is the full grid.

    The solution is drawn uniformly from all complete grids (grids.py), the number of givens uniformly from ``givens``.
    Then cells are emptied in random order, each if the puzzle stays sound, down to that number (puzzles.py). How hard a
    puzzle is to people is measured by the techniques that it needs (techniques.py).

    The key is the puzzle's canonical form (canonical.py): images under relabelling, permutations of bands, stacks, rows
    and columns, and transposition (not for 6x6) are one problem, though their answers differ. The family of a 9x9
    puzzle is its solution's canonical form, so that puzzles with essentially the same solution never stand on two sides
    of a split. There are only 2 such classes of 4x4 grids and 49 of 6x6 grids, too few to cut by: the smaller puzzles
    are told apart by the places of their givens, and their family is the key.
    """

    revision: ClassVar[int] = 1
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = (
        "puzzle with its givens up to relabelling of digits, order of bands, stacks, rows and columns, and"
        " transposition (not for 6x6); 9x9 splits are cut by the solution up to these symmetries, 4x4 and 6x6 ones by"
        " the puzzle, since their solutions have 2 and 49 classes only"
    )

    size: int = 9
    """4, 6 (boxes of 2 rows and 3 columns) or 9."""
    givens: tuple[int, int] = (31, 51)
    """Fewest and most filled cells, both included."""
    hardest: Technique | None = None
    """The hardest technique that a person may need, in the order of techniques.py; None: any, guessing included."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def symbols(self) -> tuple[str, ...]:
        numbers = [str(number) for number in range(1, self.size + 1)]
        places = [f"{letter}{number}" for letter in "rcb" for number in numbers]
        return (*numbers, EMPTY, ROW_END, PROMPT_END, ANSWER_MARK, IS, IS_NOT, THEREFORE, *places, *WORDS)

    @property
    def instructions(self) -> str:
        height, width = BOXES[self.size]
        return (
            f"Solve a {self.size}x{self.size} Sudoku. The prompt lists its rows from top to bottom, separated by"
            f' "{ROW_END}" and ended by "{PROMPT_END}"; "{EMPTY}" is an empty cell. Fill the empty cells with digits'
            f" from 1 to {self.size} so that every row, every column and every box ({height} rows by {width} columns)"
            f" holds each digit exactly once; the solution is unique. Answer with the complete grid, given cells"
            f' included: all {self.size} rows in order, separated by "{ROW_END}". Working may stand before the answer,'
            f' followed by one "{ANSWER_MARK}"; what stands before "{ANSWER_MARK}" is not judged. White space does not'
            f" matter."
        )

    @property
    def capacity(self) -> int | None:
        return int(_chosen(self).sum()) if self.size == 4 else None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        state = dice(rng)
        low, high = self.givens
        wishes = np.stack([rng.integers(low, high + 1, size=count), np.full(count, _level(self))], axis=1)
        solutions = draw_grids(self.size, state, count)
        cells = solutions.copy()
        done = failed = 0
        while done < count:
            done += dig(geometry(self.size), state, cells[done:], wishes[done:])
            if done < count:  # this grid's sets of givens are rarely so small: another grid, the same wish
                failed += 1
                if failed == MOST_GRIDS:
                    raise ValueError(f"{MOST_GRIDS} grids have no puzzle such as {self} asks for; raise its givens")
                solutions[done] = cells[done] = draw_grids(self.size, state, 1)[0]
        return _problems(self.size, cells, solutions)

    def enumerate(self) -> Iterable[Problem] | None:
        return self._walk() if self.size == 4 else None

    def pose(self, givens: str) -> Problem:
        """The problem of a known puzzle: rows of digits, with "." or "0" for empty; white space and "/" mean nothing.

        Raises:
            ValueError: unless it is a puzzle of this size with exactly one solution.
        """
        tight = "".join(givens.split()).replace(ROW_END, "").replace("0", EMPTY)
        allowed = {EMPTY, *map(str, range(1, self.size + 1))}
        if len(tight) != self.size**2 or not set(tight) <= allowed or EMPTY not in tight:
            raise ValueError(
                f"a puzzle of size {self.size} is {self.size**2} digits from 1 to {self.size}, with '.' for at least"
                f" one empty cell, got {givens!r}"
            )
        cells = _numbers(tight)
        found, solution = count_solutions(geometry(self.size), cells)
        if found.solutions != 1:
            how_many = {0: "no solution", 2: "several solutions"}.get(found.solutions, "too large a search")
            raise ValueError(f"a puzzle must have exactly one solution, {givens!r} has {how_many}")
        return _problems(self.size, cells[None], solution[None])[0]

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """The solution by a person's techniques, or by a search with its dead ends: see traces.py and search.py.

        ``composed`` folds placements, ``group`` at a time, and leaves out what the techniques removed. A depth-first
        search shows all the dead ends that its heuristic meets ("fewest", which is the usual one, or "first"), or
        exactly ``backtracks`` of the same tree.
        """
        check_style(style, self.size)
        certificate = _certificate(problem, self.size)
        puzzle = _numbers(certificate.givens), _numbers(certificate.solution)
        return write_trace(geometry(self.size), puzzle, _rows_text(self.size, certificate.solution), style, rng)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the grammar at the top of this file; the reason names the first given or unit that is wrong.

        ``progress``: the share of the cells to fill that are right (a given that was changed is one more to fill).
        """
        certificate = _certificate(problem, self.size)
        return verify_grid(self.size, certificate.givens, certificate.solution, completion)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """None: any working may stand before an answer. ``answers`` lists what may follow it."""
        return None

    def answers(self, problem: Problem) -> tuple[str, ...]:
        """The one right grid."""
        return (_rows_text(self.size, _certificate(problem, self.size).solution),)

    def floor(self, problem: Problem) -> float:
        """Success probability of the best guess that does not see the givens: one grid, whatever the prompt.

        Every grid is the solution equally often, so it is 1 / (number of grids). A guess that reads the prompt can do
        better.
        """
        return 1.0 / GRIDS[self.size]

    def drawing(self, problem: Problem) -> str:
        """The puzzle as lines for people: digits, dots for empty cells, and lines between the boxes."""
        height, width = BOXES[self.size]
        givens = _certificate(problem, self.size).givens
        rule = "+".join(["-" * (2 * width + 1)] * (self.size // width))
        lines = []
        for row in range(self.size):
            cells = givens[row * self.size : (row + 1) * self.size]
            boxes = [" ".join(cells[start : start + width]) for start in range(0, self.size, width)]
            lines += [rule] if row and row % height == 0 else []
            lines.append(f" {' | '.join(boxes)}")
        return "\n".join(lines)

    def _walk(self) -> Iterator[Problem]:
        puzzles = every_puzzle()
        cells, solutions = (np.ascontiguousarray(rows[_chosen(self)]) for rows in (puzzles.cells, puzzles.solutions))
        for i in range(len(cells)):
            _present(cells[i], solutions[i])
        yield from _problems(self.size, cells, solutions)


# ------------------------------------------------------------------------------------------------ problems


def _problems(size: int, cells: Ints, solutions: Ints) -> list[Problem]:
    """The problems of puzzles and their solutions, which are rows of two arrays."""
    geo = geometry(size)
    statistics = measure(geo, cells, solutions)
    canonical_cells, canonical_solutions = canonical_forms(geo, cells, solutions)
    givens = (cells > 0).sum(1)
    prompts = _prompts(size, cells)
    puzzle_texts, solution_texts = _texts(cells), _texts(solutions)
    keys, families = _texts(canonical_cells), _texts(canonical_solutions)
    return [
        Problem(
            prompt=prompts[i],
            key=f"sudoku:{size}:{keys[i]}",
            family=f"sudoku:{size}:solution:{families[i]}" if size == 9 else "",
            certificate=SudokuCertificate(size=size, givens=puzzle_texts[i], solution=solution_texts[i]),
            features=_features(size, filled, row),
        )
        for i, (filled, row) in enumerate(zip(givens.tolist(), statistics.tolist(), strict=True))
    ]


def _features(size: int, givens: int, row: list[int]) -> dict[str, int | float]:
    features: dict[str, int | float] = {"givens": givens, "empty": size * size - givens, "technique": row[1]}
    features.update(zip(_FEATURES, row[2:], strict=True))
    features["nodes"] = row[0]
    return features


def _texts(cells: Ints) -> list[str]:
    """Each row of digits as text, "." for 0."""
    symbols = np.where(cells > 0, cells + ord("0"), ord(EMPTY)).astype(np.uint8).tobytes().decode()
    length = cells.shape[1]
    return [symbols[start : start + length] for start in range(0, len(symbols), length)]


def _prompts(size: int, cells: Ints) -> list[str]:
    template = np.frombuffer(f"{_rows_text(size, 'x' * size**2)} {PROMPT_END}".encode(), dtype=np.uint8)
    sheet = np.tile(template, (len(cells), 1))
    sheet[:, template == ord("x")] = np.where(cells > 0, cells + ord("0"), ord(EMPTY))
    text, length = sheet.tobytes().decode(), len(template)
    return [text[start : start + length] for start in range(0, len(text), length)]


def _rows_text(size: int, grid: str) -> str:
    """A grid as it is written: boxes apart, "/" between rows."""
    return _layout(size) % (*grid,)


@cache
def _layout(size: int) -> str:
    width = BOXES[size][1]
    row = " ".join(["%s" * width] * (size // width))
    return f" {ROW_END} ".join([row] * size)


def _numbers(text: str) -> Ints:
    return np.frombuffer(text.encode().translate(_VALUES), dtype=np.uint8).astype(np.int64)


def _certificate(problem: Problem, size: int) -> SudokuCertificate:
    certificate = problem.certificate
    if not isinstance(certificate, SudokuCertificate) or certificate.size != size:
        raise TypeError(
            f"Sudoku(size={size}) reads problems with a SudokuCertificate of its size, got {certificate!r}; ask the"
            f" task that made the problem"
        )
    return certificate


# ---------------------------------------------------------------------------------------------- 4x4 puzzles


def _chosen(task: Sudoku) -> NDArray[np.bool_]:
    """Which of all 4x4 puzzles belong to a task."""
    puzzles = every_puzzle()
    filled = (puzzles.cells > 0).sum(1)
    low, high = task.givens
    chosen: NDArray[np.bool_] = (filled >= low) & (filled <= high) & (puzzles.statistics[:, 1] <= _level(task))
    return chosen


def _present(cells: Ints, solution: Ints) -> None:
    """Puts a canonical 4x4 puzzle and its solution into a random image of theirs, the same one every time, in place."""
    rng = stream("sudoku", "presentation", *cells.tolist())
    label = np.array([0, *rng.permutation(4) + 1])
    rows, columns = (
        [2 * group + line for group in rng.permutation(2) for line in rng.permutation(2)] for _ in range(2)
    )
    turned = rng.integers(2) == 1
    for grid in (cells, solution):
        image = label[grid.reshape(4, 4)][rows][:, columns]
        grid[:] = (image.T if turned else image).reshape(-1)


# ----------------------------------------------------------------------------------------------- validation


def _level(task: Sudoku) -> int:
    """The level of the hardest technique that is allowed."""
    return int(SEARCH) if task.hardest is None else TECHNIQUES.index(task.hardest) + 1


def _check(task: Sudoku) -> None:
    if type(task.size) is not int or task.size not in BOXES:
        raise ValueError(f"Sudoku.size must be one of {', '.join(map(str, BOXES))}, got {task.size!r}")
    if task.hardest is not None and task.hardest not in get_args(Technique):
        raise ValueError(
            f"Sudoku.hardest must be None or one of {', '.join(get_args(Technique))}, got {task.hardest!r}"
        )
    bounds: object = task.givens
    match bounds:
        case (int(low), int(high)) if isinstance(bounds, tuple) and bool not in map(type, bounds) and low <= high:
            pass
        case _:
            raise ValueError(f"Sudoku.givens must be a tuple (low, high) of whole numbers, low <= high, got {bounds!r}")
    fewest, most = FEWEST[task.size][_level(task) - 1], task.size**2 - 1
    if low < fewest or high > most:
        hardest = "" if task.hardest is None else f" that need nothing harder than {task.hardest}"
        raise ValueError(
            f"Sudoku.givens must lie from {fewest} to {most} for puzzles of size {task.size}{hardest}, got {bounds!r};"
            f" fewer givens leave more than one solution, or are too rare to be found in bounded time"
        )
