"""First moves of chess puzzles judged per second of processor time, beside python-chess in the same run.

Each answer belongs to another problem. The peer does what a simple verifier does: set up the board, read the answer as
a move, play it, and ask whether that is mate. It knows nothing of mates in two or of winning material, so only the mate
in 1 is a fair contest; the other rows have no peer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Final

import chess
from rich.table import Table

from benchmarks.side_by_side import Contender, contest, machine, rate, show
from testbeds import Problem, stream
from testbeds.chess import notation
from testbeds.chess.chess_puzzle import ChessPuzzle
from testbeds.chess.mates import MateIn
from testbeds.chess.puzzle_sources import ShippedPuzzles

ASKED: Final = 5_000  # verdicts per second and core
PROBLEMS: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of problem."""

    name: str
    task: ChessPuzzle
    has_peer: bool = False


def _rows() -> tuple[Row, ...]:
    random_mates = MateIn(pieces=("KRRK", "KQRK"))
    return (
        *(
            Row(name=f"mate in 1, {name}", task=ChessPuzzle(source=random_mates, notation=name), has_peer=True)
            for name in notation.NOTATIONS
        ),
        *(
            Row(
                name=f"puzzles of Lichess, {name}",
                task=ChessPuzzle(source=ShippedPuzzles(), without=("mateIn4",), notation=name),
            )
            for name in notation.NOTATIONS
        ),
    )


def _right(task: ChessPuzzle, problem: Problem) -> str:
    return next(each.text for each in task.choices(problem) if each.kinds)


def _wrong(task: ChessPuzzle, problem: Problem) -> str:
    return next((each.text for each in task.choices(problem) if not each.kinds), _right(task, problem))


def _illegal(task: ChessPuzzle, problem: Problem) -> str:
    """A move of the form of the notation from an empty square, or of a piece that is not there."""
    legal = {each.text for each in task.choices(problem)}
    forms = {
        "long_algebraic": [f"N{start}{end}" for start in ("a8", "h8", "b3") for end in ("c7", "f7", "d4")],
        "san": ["Na1", "Nh8", "Bb8", "Nc6"],
    }
    fallback = [f"{start}{end}" for start in ("a8", "h8", "b3") for end in ("c7", "f7", "d4")]
    return next(text for text in forms.get(task.notation, fallback) if text not in legal)


def _ours(task: ChessPuzzle, problems: list[Problem], answers: list[str]) -> Contender:
    def judge() -> float:
        for problem, answer in zip(problems, answers, strict=True):
            task.verify(problem, answer)
        return len(problems)

    return judge


def _theirs(task: ChessPuzzle, problems: list[Problem], answers: list[str]) -> Contender:
    """The same answers; python-chess reads UCI or SAN, so long algebraic ones are rewritten beforehand."""
    fens = [task.board(problem).fen() for problem in problems]
    texts = [_peer_text(task, problem, answer) for problem, answer in zip(problems, answers, strict=True)]

    def judge() -> float:
        for fen, text in zip(fens, texts, strict=True):
            board = chess.Board(fen)
            try:
                board.push(board.parse_san(text) if task.notation == "san" else board.parse_uci(text))
            except ValueError:
                continue
            board.is_checkmate()
        return len(fens)

    return judge


def _peer_text(task: ChessPuzzle, problem: Problem, answer: str) -> str:
    if task.notation != "long_algebraic":
        return answer
    move = notation.read_move(task.board(problem), answer, task.notation)
    return move.uci() if move else "a8c7"


ANSWERS: Final[dict[str, Callable[[ChessPuzzle, Problem], str]]] = {
    "right": _right,
    "legal and wrong": _wrong,
    "illegal": _illegal,
}


def main() -> None:
    """Print the table of README.md."""
    table = Table(title=f"verdicts on first moves, python-chess {chess.__version__}, {machine()}", title_justify="left")
    for heading in (
        "problems and notation",
        "answers",
        "ours / CPU s",
        "python-chess / CPU s",
        "ratio (range)",
        "asked",
    ):
        table.add_column(heading, justify="left" if heading in ("problems and notation", "answers") else "right")
    for row in _rows():
        problems = row.task.generate(stream("benchmark", "chess verification"), PROBLEMS)
        problems = list({problem.key: problem for problem in problems}.values())
        for kind, answer in ANSWERS.items():
            answers = [answer(row.task, problem) for problem in problems]
            ours = _ours(row.task, problems, answers)
            if row.has_peer:
                result = contest(ours, _theirs(row.task, problems, answers))
                mine, peer = (median(timed.rate for timed in side) for side in (result.ours, result.peer))
                table.add_row(row.name, kind, f"{mine:,.0f}", f"{peer:,.0f}", result.ratio(), f"{ASKED:,}")
            else:
                table.add_row(row.name, kind, f"{rate(ours):,.0f}", "", "", f"{ASKED:,}")
    show(table)
    passed_over = dict(ChessPuzzle(source=ShippedPuzzles()).undecided())
    show(f"puzzles of Lichess that ship and are passed over: {passed_over or 'none'}")


if __name__ == "__main__":
    main()
