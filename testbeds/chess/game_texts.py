"""Moves and headers as text, written from the compiled rules: what notation.py and positions.py write, faster.

They feed pretraining, so they must not be what training waits for. python-chess stays the reference: a test compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import chess
import numpy as np
from numpy.typing import NDArray

from testbeds.chess import rules
from testbeds.chess.notation import Notation
from testbeds.chess.positions import Header

_LETTERS: Final = " PNBRQK"
_PAWN: Final = 1
_KING: Final = 6
_BY_UCI: Final = ("uci_squares", "uci_moves")
_SQUARE_LETTERS: Final = np.frombuffer(b"kqrbnp.PNBRQK", np.uint8)
_ORDER: Final = (6, 5, 4, 3, 2, 1)  # of the pieces in a header: the king first
_RIGHTS: Final = "KQkq"


def move_texts(state: rules.State, moves: Iterable[int], notation: Notation) -> list[str]:
    """The texts of encoded moves that are played one after the other from ``state``, which stays as it is."""
    if notation in _BY_UCI:
        return [_uci(move) for move in moves]
    state = state.copy()
    legal = np.empty(256, np.uint16)
    texts = []
    for move in moves:
        text = _long(state, move) if notation == "long_algebraic" else _san(state, move, legal)
        rules.play(state, move)
        texts.append(text + _mark(state, legal))
    return texts


def legal_texts(state: rules.State, notation: Notation, *, marked: bool = True) -> list[tuple[int, str]]:
    """Every legal move with its text; without the marks of check and mate, which may be left out, if not ``marked``."""
    legal = np.empty(256, np.uint16)
    moves = legal[: rules.legal_moves(state, legal)].tolist()
    texts = [move_texts(state, (move,), notation)[0] for move in moves]
    return [(move, text if marked else text.rstrip("+#")) for move, text in zip(moves, texts, strict=True)]


def header_of(state: rules.State, header: Header) -> str:
    """A position as text."""
    side = "white" if state[64] > 0 else "black"
    rights = int(state[65])
    castling = [letter if rights >> place & 1 else "-" for place, letter in enumerate(_RIGHTS)]
    passed = "-" if state[66] < 0 else chess.SQUARE_NAMES[state[66]]
    if header == "squares":
        letters = _SQUARE_LETTERS[state[:64] + 6].tobytes().decode("ascii")
        rows = [letters[start : start + 8] for start in range(56, -1, -8)]
        return f"{' '.join(rows)} {side} {''.join(castling)} {passed}"
    parts = []
    for name, sign in (("white", 1), ("black", -1)):
        parts.append(name)
        for piece in _ORDER:
            squares = np.flatnonzero(state[:64] == sign * piece).tolist()
            parts += [f"{_LETTERS[piece]} {chess.SQUARE_NAMES[square]}" for square in squares]
    return " ".join([*parts, ":", side, *(mark for mark in (*castling, passed) if mark != "-")])


def state_after(state: rules.State, moves: Iterable[int]) -> rules.State:
    """The state after some moves."""
    state = state.copy()
    for move in moves:
        rules.play(state, move)
    return state


@lru_cache(maxsize=1 << 13)  # 1,968 moves, some of them promotions
def _uci(move: int) -> str:
    return rules.decode(move).uci()


def _castling(piece: int, start: int, end: int) -> str:
    """Castling is written as the king's move by two files."""
    if piece != _KING or abs(end - start) != 2:
        return ""
    return "O-O" if end > start else "O-O-O"


def _takes(state: rules.State, piece: int, start: int, end: int) -> bool:
    """A pawn that leaves its file takes, en passant too."""
    return bool(state[end]) or (piece == _PAWN and (end - start) % 8 != 0)


def _promotion(move: int) -> str:
    return f"={_LETTERS[move >> 12]}" if move >> 12 else ""


def _long(state: rules.State, move: int) -> str:
    start, end = move & 63, move >> 6 & 63
    piece = abs(int(state[start]))
    takes = "x" if _takes(state, piece, start, end) else ""
    plain = f"{_LETTERS[piece]}{chess.SQUARE_NAMES[start]}{takes}{chess.SQUARE_NAMES[end]}{_promotion(move)}"
    return _castling(piece, start, end) or plain


def _san(state: rules.State, move: int, legal: NDArray[np.uint16]) -> str:
    start, end = move & 63, move >> 6 & 63
    piece = abs(int(state[start]))
    takes = "x" if _takes(state, piece, start, end) else ""
    name = chess.SQUARE_NAMES[end]
    if piece == _PAWN:
        return f"{chess.SQUARE_NAMES[start][0] if takes else ''}{takes}{name}{_promotion(move)}"
    if piece == _KING:
        return _castling(piece, start, end) or f"K{takes}{name}"
    return f"{_LETTERS[piece]}{_origin(state, start, end, legal)}{takes}{name}"


def _origin(state: rules.State, start: int, end: int, legal: NDArray[np.uint16]) -> str:
    """What tells a piece from the others of its kind that could go there: its file, else its rank, else both."""
    moves = legal[: rules.legal_moves(state, legal)]
    starts = moves[moves >> 6 & 63 == end] & 63
    rivals = [other for other in starts.tolist() if other != start and state[other] == state[start]]
    if not rivals:
        return ""
    name = chess.SQUARE_NAMES[start]
    same_file = any(other % 8 == start % 8 for other in rivals)
    same_rank = any(other // 8 == start // 8 for other in rivals)
    if not same_file:
        return name[0]
    return name if same_rank or any(other % 8 != start % 8 for other in rivals) else name[1]


def _mark(state: rules.State, legal: NDArray[np.uint16]) -> str:
    if not rules.in_check(state):
        return ""
    return "+" if rules.legal_moves(state, legal) else "#"
