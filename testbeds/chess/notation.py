"""Moves as text: four encodings, each written in one way and read back exactly.

==================  =======================  =====================================================================
notation            a move                   symbols
==================  =======================  =====================================================================
``long_algebraic``  ``N g1 f3``, ``O-O``,    piece, square from, ``x`` for a capture, square to, ``=`` and piece for a
                    ``P e7 x d8 = Q +``      promotion, ``+`` for check or ``#`` for mate, as in arXiv 2607.16097
``uci_squares``     ``g1 f3``, ``e7 e8 q``   the two squares and the piece of a promotion
``uci_moves``       ``g1f3``, ``e7e8q``      one symbol for a whole move: 1968 of them
``san``             ``N f 3``, ``e x d 5``   standard algebraic notation, a symbol for each character
==================  =======================  =====================================================================

White space means nothing, so a text of several moves must say where each ends: fixed patterns do in the first three,
and in ``san`` a ``;`` stands between moves, since ``Nf3e5`` could be one move or two.

What is read: the piece, both squares, capture and promotion must be right. The marks ``+`` and ``#`` may be left out
(PGN's import format allows it) and a mate may be marked ``+``, but a mark that is not true is wrong. In ``san`` a move
may say more of its origin than it must, such as ``Ngf3`` where ``Nf3`` would do, or ``e2e4``. Castling is the king's
move of two squares in UCI, never the king that takes its rook.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import chess

Notation = Literal["long_algebraic", "uci_squares", "uci_moves", "san"]
NOTATIONS: Final[tuple[Notation, ...]] = get_args(Notation)

BETWEEN: Final[dict[Notation, str]] = {"long_algebraic": " ", "uci_squares": " ", "uci_moves": " ", "san": "; "}
"""What stands between two moves of a text."""

_PIECES: Final = "NBRQ"
_SQUARE: Final = "[a-h][1-8]"
_UCI: Final = f"{_SQUARE}{_SQUARE}(?:[nrq]|b(?![1-8]))?"  # a ``b`` before a digit begins the next move
_PATTERNS: Final[dict[Notation, re.Pattern[str]]] = {
    "long_algebraic": re.compile(
        f"(?:O-O-O|O-O|[PNBRQK](?P<start>{_SQUARE})x?(?P<end>{_SQUARE})(?:=(?P<promotion>[NBRQ]))?)[+#]?"
    ),
    "uci_squares": re.compile(_UCI),
    "uci_moves": re.compile(_UCI),
    "san": re.compile(f"(?:O-O-O|O-O|[NBRQK]?[a-h]?[1-8]?x?{_SQUARE}(?:=[NBRQ])?)[+#]?"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What a text of moves says."""

    moves: tuple[chess.Move, ...]
    """The legal moves that could be read, from the first."""
    well_formed: bool
    """Whether the whole text has the form of moves, legal or not."""
    trouble: str
    """Why not all of the text is legal moves, in a sentence; empty where it is."""
    said: int = 0
    """How many moves the text says, legal or not; 0 where it has not their form."""


def symbols(notation: Notation) -> tuple[str, ...]:
    """The lexicon in which ``written`` writes, in a stable order."""
    squares = tuple(chess.SQUARE_NAMES)
    if notation == "long_algebraic":
        return (*"PNBRQK", *squares, "x", "=", "+", "#", "O-O", "O-O-O")
    if notation == "uci_squares":
        return (*squares, "n", "b", "r", "q")
    if notation == "uci_moves":
        return _whole_moves()
    return (*"NBRQK", *"abcdefgh", *"12345678", "x", "=", "+", "#", "O", "-", ";")


def check_notation(where: str, notation: str) -> None:
    """Nothing, if there is such a notation; else ValueError with those that there are."""
    if notation not in NOTATIONS:
        raise ValueError(f"{where} must be one of {', '.join(NOTATIONS)}, got {notation!r}")


def written(board: chess.Board, move: chess.Move, notation: Notation) -> str:
    """A legal move of ``board`` as text, without white space."""
    if notation in ("uci_squares", "uci_moves"):
        return move.uci()
    if notation == "san":
        return board.san(move)
    return _long(board, move) + _mark(board, move)


def written_line(board: chess.Board, moves: Iterable[chess.Move], notation: Notation) -> str:
    """Moves that are played one after the other from ``board``, as text; the board stays as it is."""
    board = board.copy(stack=False)
    texts = []
    for move in moves:
        texts.append(written(board, move, notation))
        board.push(move)
    return BETWEEN[notation].join(texts)


def ways(board: chess.Board, move: chess.Move, notation: Notation) -> tuple[str, ...]:
    """Every text that is read as this legal move, without white space; the first is the one that is written."""
    if notation in ("uci_squares", "uci_moves"):
        return (move.uci(),)
    usual = written(board, move, notation)
    mark = usual[-1] if usual[-1] in "+#" else ""
    marks = {"": ("",), "+": ("+", ""), "#": ("#", "+", "")}[mark]
    bases = [usual.removesuffix(mark)] if notation == "long_algebraic" else _san_bases(board, move)
    return tuple(dict.fromkeys((usual, *(base + each for base in bases for each in marks))))


def read_line(board: chess.Board, text: str, notation: Notation, most: int) -> Line:
    """The moves that ``text`` says, played one after the other from ``board``: total, for any string.

    More than ``most`` moves are not read: the text is refused.
    """
    tight = "".join(text.split())
    if not tight:
        return Line(moves=(), well_formed=False, trouble="there is no move")
    pieces = _pieces(tight, notation, most)
    if pieces is None:
        return Line(moves=(), well_formed=False, trouble=_malformed(tight, notation, most))
    board = board.copy(stack=False)
    moves: list[chess.Move] = []
    for piece in pieces:
        move = read_move(board, piece, notation)
        if move is None:
            trouble = f"{piece} is no legal move{_after(moves)}"
            return Line(moves=tuple(moves), well_formed=True, trouble=trouble, said=len(pieces))
        moves.append(move)
        board.push(move)
    return Line(moves=tuple(moves), well_formed=True, trouble="", said=len(pieces))


def read_move(board: chess.Board, text: str, notation: Notation) -> chess.Move | None:
    """The legal move that a tight text says; None where it says none."""
    found = _PATTERNS[notation].fullmatch(text)
    move = _meant(board, text, found, notation) if found else None
    return move if move is not None and _says(board, text, move, notation) else None


def _says(board: chess.Board, text: str, move: chess.Move, notation: Notation) -> bool:
    """Whether a text is one of ``ways`` to say a legal move; what costs most, the check, is looked for last."""
    if notation in ("uci_squares", "uci_moves"):
        return not board.is_castling(move) or abs(move.to_square - move.from_square) == 2  # not king takes rook
    mark = text[-1] if text[-1] in "+#" else ""
    bases = [_long(board, move)] if notation == "long_algebraic" else _san_bases(board, move)
    return text.removesuffix(mark) in bases and (not mark or _mark(board, move) in ("#", mark))


def has_form(text: str, notation: Notation) -> bool:
    """Whether a tight text has the form of one move, legal or not."""
    return _PATTERNS[notation].fullmatch(text) is not None


def _meant(board: chess.Board, text: str, found: re.Match[str], notation: Notation) -> chess.Move | None:
    """The legal move with the squares that the text names; its marks are not looked at."""
    if notation == "san" or text.startswith("O"):
        try:
            return board.parse_san(text)
        except ValueError:
            return None
    long = notation == "long_algebraic"
    uci = f"{found['start']}{found['end']}{(found['promotion'] or '').lower()}" if long else text
    if uci[:2] == uci[2:4]:
        return None  # from a square to itself
    move = chess.Move.from_uci(uci)
    return move if board.is_legal(move) else None


def _pieces(tight: str, notation: Notation, most: int) -> Sequence[str] | None:
    """The texts of the moves, as far as their form goes; None where the whole is not moves, or more than ``most``."""
    if notation == "san":
        pieces = tight.split(";", most)
        return pieces if len(pieces) <= most and all(has_form(piece, notation) for piece in pieces) else None
    found: list[str] = []
    position = 0
    while position < len(tight):
        match = _PATTERNS[notation].match(tight, position)
        if match is None or len(found) == most:
            return None
        found.append(match[0])
        position = match.end()
    return found


def _malformed(tight: str, notation: Notation, most: int) -> str:
    shown = tight if len(tight) <= 60 else f"{tight[:60]}..."
    amount = "one move" if most == 1 else f"1 to {most} moves"
    return f"{shown!r} is not {amount} in {notation.replace('_', ' ')}"


def _after(moves: Sequence[chess.Move]) -> str:
    return f" after {' '.join(move.uci() for move in moves[-4:])}" if moves else ""


def _long(board: chess.Board, move: chess.Move) -> str:
    """Long algebraic notation without a mark of check."""
    if board.is_castling(move):
        return "O-O" if chess.square_file(move.to_square) > chess.square_file(move.from_square) else "O-O-O"
    piece = board.piece_type_at(move.from_square)
    assert piece is not None, f"{move} starts from an empty square of {board.fen()}"  # noqa: S101  # a legal move
    capture = "x" if board.is_capture(move) else ""
    promotion = f"={chess.piece_symbol(move.promotion).upper()}" if move.promotion else ""
    start, end = chess.SQUARE_NAMES[move.from_square], chess.SQUARE_NAMES[move.to_square]
    return f"{chess.piece_symbol(piece).upper()}{start}{capture}{end}{promotion}"


def _mark(board: chess.Board, move: chess.Move) -> str:
    board.push(move)
    mark = ("+" if any(board.generate_legal_moves()) else "#") if board.is_check() else ""
    board.pop()
    return mark


def _san_bases(board: chess.Board, move: chess.Move) -> list[str]:
    """Standard algebraic notation without marks, with every origin that leaves one legal move."""
    usual = board.san(move).rstrip("+#")
    piece = board.piece_type_at(move.from_square)
    if board.is_castling(move):
        return [usual]
    if piece == chess.KING:
        return [usual, *_king_bases(board, move)]
    if piece == chess.PAWN:
        start = chess.SQUARE_NAMES[move.from_square]
        return [usual, start + usual.removeprefix(start[0] if board.is_capture(move) else "")]
    assert piece is not None, f"{move} starts from an empty square of {board.fen()}"  # noqa: S101  # a legal move
    letter = chess.piece_symbol(piece).upper()
    rivals = [
        other.from_square
        for other in board.generate_legal_moves(to_mask=chess.BB_SQUARES[move.to_square])
        if other != move and board.piece_type_at(other.from_square) == piece
    ]
    capture = "x" if board.is_capture(move) else ""
    end = chess.SQUARE_NAMES[move.to_square]
    start = chess.SQUARE_NAMES[move.from_square]
    origins = ["", start[0], start[1], start]
    possible = [each for each in origins if not any(each in chess.SQUARE_NAMES[rival] for rival in rivals)]
    return [usual, *(f"{letter}{origin}{capture}{end}" for origin in possible)]


def _king_bases(board: chess.Board, move: chess.Move) -> list[str]:
    """A king's move needs no origin and may have one."""
    start, end = chess.SQUARE_NAMES[move.from_square], chess.SQUARE_NAMES[move.to_square]
    capture = "x" if board.is_capture(move) else ""
    return [f"K{origin}{capture}{end}" for origin in (start[0], start[1], start)]


def _whole_moves() -> tuple[str, ...]:
    """Every move that some piece can make on an empty board, then the promotions: 1792 + 176."""
    plain = []
    for start in chess.SQUARES:
        reach = chess.Board(None)
        reach.set_piece_at(start, chess.Piece(chess.QUEEN, chess.WHITE))
        reached = reach.attacks(start) | chess.SquareSet(chess.BB_KNIGHT_ATTACKS[start])
        plain += [chess.SQUARE_NAMES[start] + chess.SQUARE_NAMES[end] for end in sorted(reached)]
    promotions = []
    for start_rank, end_rank in ((6, 7), (1, 0)):
        for file in range(8):
            for other in range(max(file - 1, 0), min(file + 1, 7) + 1):
                start, end = chess.square(file, start_rank), chess.square(other, end_rank)
                promotions += [chess.SQUARE_NAMES[start] + chess.SQUARE_NAMES[end] + piece for piece in "nbrq"]
    return (*plain, *promotions)
