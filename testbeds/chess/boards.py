"""Boards as pictures: SVG with an arrow for each move that a policy likes, drawn by python-chess.

A picture stands alone: no style sheet, no font and nothing else from outside. Its title and description say in words
what it shows, for readers who hear the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Final, Protocol, runtime_checkable

import chess
import chess.svg

from testbeds.core import Choice, Problem

MOST_ARROWS: Final = 5
LEAST_SHARE: Final = 0.02  # an arrow for less would be a smudge
FAINTEST: Final = 0.35  # opacity of an arrow with almost no share: still seen
RIGHT, WRONG = "#0072b2", "#d55e00"  # blue and vermilion of Okabe and Ito: told apart without red and green
SQUARES: Final = {"square light": "#f2f2f0", "square dark": "#c6ccd4"}  # grey, so that faint arrows keep their colour

Arrow = tuple[str, str, float, bool]
"""(square from, square to, share of the probability in [0, 1], whether the move is correct)."""


@runtime_checkable
class OnBoard(Protocol):
    """A task whose problems are positions."""

    def board(self, problem: Problem) -> chess.Board:
        """The position to solve."""
        ...


def chess_picture(task: OnBoard, problem: Problem, probabilities: Sequence[tuple[Choice, float]]) -> str | None:
    """The position with arrows for the likeliest moves, at most ``MOST_ARROWS``: what a task's ``picture`` returns.

    Args:
        task: whose ``board`` is drawn.
        problem: the position.
        probabilities: every choice with its probability, in any order and of any sum; arrows show shares of the sum.

    Returns:
        None where no choice has a probability or an arrow.
    """
    total = sum(probability for _, probability in probabilities)
    if total <= 0:
        return None
    likeliest = sorted(probabilities, key=lambda pair: -pair[1])[:MOST_ARROWS]
    arrows = [
        (*choice.arrow, probability / total, "correct" in choice.kinds)
        for place, (choice, probability) in enumerate(likeliest)
        if choice.arrow is not None and (place == 0 or probability >= LEAST_SHARE * total)
    ]
    return board_svg(task.board(problem), arrows) if arrows else None


def board_svg(board: chess.Board, arrows: Sequence[Arrow], last_move: chess.Move | None = None) -> str:
    """The board as one ``<svg>`` element, seen from the side to move; arrows: blue where right, orange where wrong.

    The likelier a move, the less transparent its arrow. Arrows between the same squares, as of promotions to different
    pieces, are one arrow with the sum of their shares, right if one of them is.

    Raises:
        ValueError: for a square that does not exist or a share outside of [0, 1].
    """
    joined = _joined(arrows)
    drawn = chess.svg.board(
        board,
        orientation=board.turn,
        lastmove=last_move,
        check=board.king(board.turn) if board.is_check() else None,
        colors=SQUARES,
        # The likeliest last: it lies on top.
        arrows=[_arrow(arrow) for arrow in reversed(joined)],
    )
    side = "White" if board.turn == chess.WHITE else "Black"
    title = f"Chess board, {side} to move"
    opening = (
        '<svg role="img" aria-labelledby="title" aria-describedby="description" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg" viewBox="{_view(drawn)}">'
        f'<title id="title">{title}</title><desc id="description">{escape(_described(board, joined))}</desc>'
    )
    inside = re.sub(r"^<svg [^>]*>(<desc>.*?</desc>)?", "", drawn, flags=re.DOTALL)
    return opening + re.sub(r'="(#[0-9a-f]{6})([0-9a-f]{2})"', _with_opacity, inside)


def _joined(arrows: Sequence[Arrow]) -> list[Arrow]:
    """One arrow for each pair of squares, the likeliest first."""
    found: dict[tuple[str, str], tuple[float, bool]] = {}
    for start, end, share, correct in arrows:
        for square in (start, end):
            if square not in chess.SQUARE_NAMES:
                raise ValueError(f"an arrow leads between squares such as e2 and e4, got {square!r}")
        if not 0 <= share <= 1:
            raise ValueError(f"the share of the arrow {start}{end} must be in [0, 1], got {share}")
        before, was_correct = found.get((start, end), (0.0, False))
        found[start, end] = (min(before + share, 1.0), was_correct or correct)
    joined = [(*squares, share, correct) for squares, (share, correct) in found.items()]
    return sorted(joined, key=lambda arrow: -arrow[2])


def _arrow(arrow: Arrow) -> chess.svg.Arrow:
    start, end, share, correct = arrow
    opacity = round(255 * (FAINTEST + (1 - FAINTEST) * share))
    colour = f"{RIGHT if correct else WRONG}{opacity:02x}"
    return chess.svg.Arrow(chess.parse_square(start), chess.parse_square(end), color=colour)


def _with_opacity(colour: re.Match[str]) -> str:
    """A colour of eight digits as one of six and an opacity, which every reader of SVG knows."""
    return f'="{colour[1]}" opacity="{int(colour[2], 16) / 255:.2f}"'


def _view(svg: str) -> str:
    found = re.search(r'viewBox="([^"]*)"', svg)
    if found is None:
        raise ValueError(f"python-chess drew no board with a viewBox: {svg[:80]}")
    return found[1]


def _described(board: chess.Board, arrows: Sequence[Arrow]) -> str:
    moves = [
        f"{start} to {end} {share:.2f} ({'right' if correct else 'wrong'})" for start, end, share, correct in arrows
    ]
    likely = f" Share of each of the likeliest moves: {', '.join(moves)}." if moves else ""
    return f"Position {board.fen()}.{likely}"


def board_text(board: chess.Board) -> str:
    """The position as a board of letters with the names of ranks and files."""
    ranks = [f"{8 - row} {text}" for row, text in enumerate(str(board).split("\n"))]
    return "\n".join([*ranks, "  a b c d e f g h", f"{'white' if board.turn else 'black'} to move"])
