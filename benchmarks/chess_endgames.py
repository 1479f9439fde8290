"""Seconds to solve each endgame, and its memory, against a plain retrograde analysis with python-chess in the same run.

Each number of ours comes from a process of its own: with nothing compiled and nothing on disk (first use on a machine),
with compiled kernels (a new table), and with the table on disk. Seconds are processor time; memory is the peak of the
process less its peak before the table was asked for, so that it holds the compiler's where something is compiled; it
is read from Linux' /proc.

The peer does the same work on KQK: every legal position with the strong king on a1 to d4 (the others are mirror
images), legal moves by python-chess, then ply by ply from the mates backward. Its table must be ours, entry by entry.

Last, the testbed's rates: problems with keys and accepted texts, demonstrations, and verdicts on right and wrong moves.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from typing import Final

import chess
import numpy as np
from rich.table import Table

from benchmarks.side_by_side import Contender, machine, rate, show
from testbeds import EXPLICIT, stream
from testbeds.chess import tablebase
from testbeds.chess.chess_endgame import LEVELS, ChessEndgame
from testbeds.chess.tablebase import ENDGAMES
from testbeds.chess.tablebase_kernels import STRONG, WEAK

Position = tuple[bool, int, int, int]
"""Whether white is to move, white king, black king, white queen."""

QUARTER: Final = [square for square in chess.SQUARES if chess.square_file(square) < 4 and chess.square_rank(square) < 4]
_NOWHERE: Final = (False, 0, 0, 0)
BATCH: Final = 100  # problems of the testbed at a time

ASK: Final = """
import re, sys, time
from pathlib import Path
from testbeds.chess import tablebase
# Not getrusage, whose peak begins with that of the process that started this one.
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
before, began = peak(), time.process_time()
tablebase.table(sys.argv[1])
print(time.process_time() - began, peak() - before)
"""


def asked(name: str, compiled: str, tables: str) -> tuple[float, float]:
    """(seconds, MiB) that a new process takes for a table, with these directories of compiled code and of tables."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": compiled, tablebase.CACHE_VARIABLE: tables}
    done = subprocess.run(
        [sys.executable, "-c", ASK, name], env=environment, capture_output=True, text=True, check=True
    )
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory


def _times() -> Table:
    table = Table(title=f"a table of an endgame, {machine()}", title_justify="left")
    for heading in ("endgame", "first use s", "MiB", "solved s", "MiB", "from disk s", "MiB", "on disk MiB"):
        table.add_column(heading, justify="left" if heading == "endgame" else "right")
    for name in ENDGAMES:
        with tempfile.TemporaryDirectory() as compiled, tempfile.TemporaryDirectory() as tables:
            first = asked(name, compiled, tables)
            with tempfile.TemporaryDirectory() as empty:
                new = asked(name, compiled, empty)
            kept = asked(name, compiled, tables)
        size = tablebase.table(name).rows.nbytes / 2**20
        figures = [f"{seconds:.2f} {memory:.0f}".split() for seconds, memory in (first, new, kept)]
        table.add_row(name, *[figure for pair in figures for figure in pair], f"{size:.2f}")
    return table


def _position(board: chess.Board) -> Position | None:
    """A position in the image whose white king stands on a1 to d4; None without a queen."""
    if not board.queens:
        return None
    king, lone, queen = map(
        chess.msb, (board.kings & board.occupied_co[True], board.kings & board.occupied_co[False], board.queens)
    )
    flip = (7 if chess.square_file(king) > 3 else 0) ^ (56 if chess.square_rank(king) > 3 else 0)
    return board.turn, king ^ flip, lone ^ flip, queen ^ flip


def _boards() -> Iterator[tuple[Position, chess.Board]]:
    for turn, king, lone, queen in product(chess.COLORS, QUARTER, chess.SQUARES, chess.SQUARES):
        if len({king, lone, queen}) == 3:
            board = chess.Board(None)
            for square, symbol in ((king, "K"), (lone, "k"), (queen, "Q")):
                board.set_piece_at(square, chess.Piece.from_symbol(symbol))
            board.turn = turn
            if board.is_valid():
                yield (turn, king, lone, queen), board


def plain_retrograde() -> dict[Position, int]:
    """Plies to mate of every decided position of KQK, as one writes it with python-chess alone."""
    before: dict[Position, list[Position]] = defaultdict(list)
    left: dict[Position, int] = {}
    plies: dict[Position, int] = {}
    for position, board in _boards():
        moves = list(board.legal_moves)
        left[position] = len(moves)
        if not moves and board.is_check():
            plies[position] = 0
        for move in moves:
            board.push(move)
            after = _position(board)
            board.pop()
            if after is not None:
                before[after].append(position)
    newly = list(plies)
    while newly:
        newly = list(_one_ply_earlier(newly, before, left, plies))
    return plies


def _one_ply_earlier(
    newly: list[Position], before: dict[Position, list[Position]], left: dict[Position, int], plies: dict[Position, int]
) -> Iterator[Position]:
    """Notes and gives what is decided by the positions that were decided last: all of them at the same distance."""
    for position in newly:
        for earlier in before[position]:
            left[earlier] -= 1
            if earlier not in plies and (earlier[0] or left[earlier] == 0):  # white needs one good move, black has none
                plies[earlier] = plies[position] + 1
                yield earlier


def _peer() -> Table:
    began = time.process_time()
    theirs = plain_retrograde()
    their_s = time.process_time() - began
    tablebase.solve("KQK")  # compiled
    began = time.process_time()
    ours = tablebase.solve("KQK")
    our_s = time.process_time() - began
    found = {
        (turn, n): int(ours.rows[turn, n]) for turn in (STRONG, WEAK) for n in np.flatnonzero(ours.rows[turn] >= 0)
    }
    boards = {key: _position(ours.board(int(key[1]), key[0], 0, chess.WHITE)) for key in found}
    agree = len(theirs) == len(found) and all(
        theirs.get(boards[key] or _NOWHERE) == plies for key, plies in found.items()
    )
    table = Table(title="KQK, all positions", title_justify="left")
    for heading in ("decided positions", "ours s", f"python-chess {chess.__version__} s", "ratio", "the same table"):
        table.add_column(heading, justify="right")
    table.add_row(f"{len(found):,}", f"{our_s:.3f}", f"{their_s:.1f}", f"{their_s / our_s:.0f}", str(agree))
    return table


def _rates(task: ChessEndgame, name: str) -> tuple[Contender, Contender, Contender, Contender]:
    """Problems, demonstrations, verdicts on right moves and on wrong ones; the last three on distinct problems."""
    rng = stream("benchmark", "chess endgames", name)
    problems = list({problem.key: problem for problem in task.generate(rng, 10 * BATCH)}.values())
    right = [task.demonstrate(problem, EXPLICIT, rng).text for problem in problems]
    wrong = [next(each.text for each in task.choices(p) if "correct" not in each.kinds) for p in problems]

    def make() -> float:
        return len(task.generate(rng, BATCH))

    def show_how() -> float:
        return len([task.demonstrate(problem, EXPLICIT, rng) for problem in problems[:BATCH]])

    def accept() -> float:
        return sum(task.verify(problem, text).correct for problem, text in zip(problems, right, strict=True))

    def refuse() -> float:
        return sum(1 - task.verify(problem, text).correct for problem, text in zip(problems, wrong, strict=True))

    return make, show_how, accept, refuse


def _testbed() -> Table:
    table = Table(title="chess_endgame, per CPU second and core", title_justify="left")
    for heading in ("level", "problems", "demonstrations", "verdicts, right", "verdicts, wrong"):
        table.add_column(heading, justify="left" if heading == "level" else "right")
    for name, task in LEVELS.items():
        if isinstance(task, ChessEndgame):
            table.add_row(name, *[f"{rate(contender):,.0f}" for contender in _rates(task, name)])
    return table


def main() -> None:
    """Print the three tables."""
    show(_times(), _peer(), _testbed())


if __name__ == "__main__":
    main()
