"""Positions as the text of a prompt, and their canonical form.

Two headers say all that the rules need to know of a position but the two clocks (fifty moves, repetition):

* ``squares``: 64 symbols for the squares from a8 to h1 (``.`` is empty), the side to move, four for castling rights
  and one for an en passant capture that can be made. Always 70 symbols: FEN at fixed width.
* ``pieces``: ``white K e1 Q d1 black K e8 : white``, then the castling rights and the en passant square that there are.
  Two symbols a piece: short for endgames.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, get_args

import chess

Header = Literal["squares", "pieces"]
HEADERS: Final[tuple[Header, ...]] = get_args(Header)
START: Final = ">"
"""Ends a prompt: what follows is moves."""

_ORDER: Final = (chess.KING, chess.QUEEN, chess.ROOK, chess.BISHOP, chess.KNIGHT, chess.PAWN)
_SIDES: Final = {"white": chess.WHITE, "black": chess.BLACK}
_RIGHTS: Final = {"K": chess.BB_H1, "Q": chess.BB_A1, "k": chess.BB_H8, "q": chess.BB_A8}
_EMPTY: Final = re.compile(r"\.+")


_EN_PASSANT: Final = tuple(f"{file}{rank}" for rank in "36" for file in "abcdefgh")


def header_symbols(header: Header) -> tuple[str, ...]:
    """The lexicon of a header with the mark that ends a prompt, in a stable order."""
    if header == "squares":
        return (*"PNBRQKpnbrqk", ".", "white", "black", "-", *_EN_PASSANT, START)
    return (*"PNBRQK", *chess.SQUARE_NAMES, "white", "black", ":", "k", "q", START)


def check_header(where: str, header: str) -> None:
    """Nothing, if there is such a header; else ValueError with those that there are."""
    if header not in HEADERS:
        raise ValueError(f"{where} must be one of {', '.join(HEADERS)}, got {header!r}")


def header_text(board: chess.Board, header: Header) -> str:
    """The position as text."""
    side = "white" if board.turn == chess.WHITE else "black"
    rights = board.clean_castling_rights() if board.castling_rights else 0
    castling = [letter if square & rights else "-" for letter, square in _RIGHTS.items()]
    passed = chess.SQUARE_NAMES[board.ep_square] if board.ep_square and board.has_legal_en_passant() else "-"
    if header == "squares":
        whole = _cells(board, as_white=False)
        rows = [whole[start : start + 8] for start in range(0, 64, 8)]
        return f"{' '.join(rows)} {side} {''.join(castling)} {passed}"
    parts = []
    for name, colour in _SIDES.items():
        parts.append(name)
        for kind in _ORDER:
            men = board.pieces_mask(kind, colour)
            if men:
                letter = chess.PIECE_SYMBOLS[kind].upper()  # type: ignore[union-attr]  # only no. 0 is none
                parts += [f"{letter} {chess.SQUARE_NAMES[square]}" for square in chess.scan_forward(men)]
    marks = [letter for letter in castling if letter != "-"] + ([passed] if passed != "-" else [])
    return " ".join([*parts, ":", side, *marks])


def board_of(text: str, header: Header) -> chess.Board:
    """The position that ``header_text`` wrote; clocks are at their start.

    Raises:
        ValueError: for any other text.
    """
    tight = "".join(text.split())
    board = _of_squares(tight) if header == "squares" else _of_pieces(tight)
    if board is None or "".join(header_text(board, header).split()) != tight:
        raise ValueError(
            f"{text!r} is no position in the form {header!r}, such as {header_text(chess.Board(), header)!r}"
        )
    return board


def key_of(board: chess.Board) -> str:
    """The position's canonical form: equal for positions that are mirror images of each other.

    Images under which the rules do not change: both colours exchanged (the board flipped from top to bottom), left and
    right exchanged where no side may castle, and without pawns all eight symmetries of the board. Of all images the
    form has white to move, and is the first in the order of text. Clocks do not count; an en passant square counts
    where the capture is legal.
    """
    rights = board.clean_castling_rights() if board.castling_rights else 0
    passed = board.ep_square if board.ep_square is not None and board.has_legal_en_passant() else None
    if board.turn == chess.BLACK:
        rights = chess.flip_vertical(rights)
    castling = "".join([letter for letter, square in _RIGHTS.items() if square & rights]) or "-"
    whole = _cells(board, as_white=True)
    rows = [whole[start : start + 8] for start in range(0, 64, 8)]
    if rights:
        return f"{_joined(rows)} {castling} {_passed(passed, board.turn)}"
    turned = [row[::-1] for row in rows]
    if board.pawns:
        usual, other = (f"{_joined(each)} - " for each in (rows, turned))
        return min(usual + _passed(passed, board.turn), other + _passed(passed, board.turn, left_right=True))
    columns = [whole[start::8] for start in range(8)]
    sides = (rows, turned, columns, [column[::-1] for column in columns])
    return f"{min([_joined(each) for side in sides for each in (side, side[::-1])])} - -"


def placement(board: chess.Board) -> str:
    """The pieces as FEN has them: ``board.board_fen()`` without promoted pieces, in a quarter of the time."""
    whole = _cells(board, as_white=False)
    return _joined([whole[start : start + 8] for start in range(0, 64, 8)])


def images(board: chess.Board) -> Iterator[chess.Board]:
    """The images of a position with white to move under the symmetries of ``key_of``, some of them more than once."""
    first = (board if board.turn == chess.WHITE else board.mirror()).copy(stack=False)
    yield first
    if first.clean_castling_rights():
        return
    yield first.transform(chess.flip_horizontal)
    if first.pawns:
        return
    for flip in (chess.flip_vertical, chess.flip_diagonal, chess.flip_anti_diagonal):
        yield first.transform(flip)
    for turned in (chess.flip_vertical, chess.flip_diagonal, chess.flip_anti_diagonal):
        yield first.transform(chess.flip_horizontal).transform(turned)


def _cells(board: chess.Board, *, as_white: bool) -> str:
    """The squares from a8 to h1; with ``as_white``, of the position or the mirrored one that has white to move."""
    cells = ["."] * 64
    if as_white and board.turn == chess.BLACK:
        for square, piece in board.piece_map().items():
            cells[square] = piece.symbol().swapcase()
    else:
        for square, piece in board.piece_map().items():
            cells[square ^ 56] = piece.symbol()
    return "".join(cells)


def _joined(rows: list[str]) -> str:
    return "/".join([_row(row) for row in rows])


@lru_cache(maxsize=1 << 16)  # the rows that positions have in common
def _row(cells: str) -> str:
    return _EMPTY.sub(lambda run: str(len(run[0])), cells)


def _passed(square: int | None, turn: chess.Color, *, left_right: bool = False) -> str:
    """The square of an en passant capture as the side that may make it sees it, if it were white."""
    if square is None:
        return "-"
    return chess.SQUARE_NAMES[square ^ (0 if turn == chess.WHITE else 56) ^ (7 if left_right else 0)]


def _of_squares(tight: str) -> chess.Board | None:
    squares, rest = tight[:64], tight[64:]
    side = next((name for name in _SIDES if rest.startswith(name)), None)
    if side is None or len(squares) < 64 or set(squares) - set("PNBRQKpnbrqk."):
        return None
    rest = rest[len(side) :]
    board = chess.Board(None)
    for place, symbol in enumerate(squares):
        if symbol != ".":
            board.set_piece_at(chess.square_mirror(place), chess.Piece.from_symbol(symbol))
    return _with_state(board, side, rest[:4].replace("-", ""), rest[4:].replace("-", ""))


def _of_pieces(tight: str) -> chess.Board | None:
    placed, _, state = tight.partition(":")
    white, found, black = placed.partition("black")
    side = next((name for name in _SIDES if state.startswith(name)), None)
    if not found or side is None or not white.startswith("white"):
        return None
    board = chess.Board(None)
    for colour, text in ((chess.WHITE, white.removeprefix("white")), (chess.BLACK, black)):
        for start in range(0, len(text), 3):
            letter, square = text[start : start + 1], text[start + 1 : start + 3]
            if letter not in "PNBRQK" or square not in chess.SQUARE_NAMES:
                return None
            kind = chess.PIECE_SYMBOLS.index(letter.lower())
            board.set_piece_at(chess.parse_square(square), chess.Piece(kind, colour))
    state = state.removeprefix(side)
    rights = "".join(letter for letter in state if letter in _RIGHTS)
    return _with_state(board, side, rights, state.strip("KQkq"))


def _with_state(board: chess.Board, side: str, rights: str, passed: str) -> chess.Board | None:
    """The board with its state; None where a right or a square is no name of one."""
    if set(rights) - set(_RIGHTS) or (passed and passed not in _EN_PASSANT):
        return None
    board.turn = _SIDES[side]
    board.castling_rights = sum(_RIGHTS[letter] for letter in set(rights))
    board.ep_square = chess.parse_square(passed) if passed else None
    return board
