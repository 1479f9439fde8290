"""Sudoku, 4x4, 6x6 and 9x9: uniform grids, one solution, difficulty by a person's techniques. See task.py."""

from __future__ import annotations

from typing import Final

from testbeds.core import Task
from testbeds.sudoku.task import Sudoku, SudokuCertificate
from testbeds.sudoku.traces import backtracks_in

__all__ = ["LEVELS", "TESTBED", "Sudoku", "SudokuCertificate", "backtracks_in"]

TESTBED: Final[type[Task]] = Sudoku
LEVELS: Final[dict[str, Task]] = {
    "mini": Sudoku(size=4, givens=(5, 10)),
    "six": Sudoku(size=6, givens=(12, 22)),
    "easy": Sudoku(givens=(36, 50), hardest="hidden_single"),
    "medium": Sudoku(givens=(28, 35), hardest="hidden_pair"),
    "hard": Sudoku(givens=(24, 27)),
}
