"""Puzzles as rows of a table: a position in 38 bytes, themes as bits, moves as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import chess
import numpy as np
from numpy.typing import NDArray

from testbeds.chess import rules
from testbeds.chess.corpus_tables import Column, Layout, Report, Table, TableWriter, row_hashes
from testbeds.chess.puzzles import Puzzle, read_puzzles

ID_BYTES: Final = 16  # an id of Lichess has 5
THEME_BYTES: Final = 32  # 256 themes; Lichess has some 70
ROWS_OF_BATCH: Final = 8_192
POSITION_BYTES: Final = 38
"""Four bits a square; side to move and castling rights; en passant square (255: none); the two clocks, 16 bits each."""

PUZZLES: Final = Layout(
    kind="puzzles",
    columns=(
        Column(name="position", dtype="|u1", width=POSITION_BYTES),
        Column(name="moves", dtype="<u2", width=0),
        Column(name="rating", dtype="<u2"),
        Column(name="themes", dtype="|u1", width=THEME_BYTES),
        Column(name="id", dtype="|u1", width=ID_BYTES),
        Column(name="asked", dtype="<i8"),
        Column(name="hash", dtype="<i8"),
    ),
    same=("position", "moves"),
    row_hash="hash",
)
_NO_SQUARE = 255
_SQUARES_OF_RIGHTS = (chess.BB_H1, chess.BB_A1, chess.BB_H8, chess.BB_A8)
_MOST = {"id too long": ID_BYTES, "more than 256 different themes": 8 * THEME_BYTES}
_TOO_LONG_ID, _TOO_MANY_THEMES = _MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class PuzzleFilter:
    """What a puzzle must have to be taken; as declared here, every puzzle is."""

    min_rating: int | None = None
    max_rating: int | None = None
    themes: tuple[str, ...] = ()
    """Themes of which a puzzle must have one; empty: any."""
    without: tuple[str, ...] = ()
    """Themes that a puzzle must not have."""

    def __post_init__(self) -> None:
        if self.min_rating is not None and self.max_rating is not None and self.min_rating > self.max_rating:
            raise ValueError(
                f"PuzzleFilter.min_rating ({self.min_rating}) must not be above max_rating ({self.max_rating})"
            )
        if both := set(self.themes) & set(self.without):
            raise ValueError(f"PuzzleFilter asks for {', '.join(sorted(both))} both in themes and in without")

    def refusal(self, puzzle: Puzzle) -> str | None:
        """Why a puzzle is not wanted; None if it is."""
        low = self.min_rating is not None and puzzle.rating < self.min_rating
        if low or (self.max_rating is not None and puzzle.rating > self.max_rating):
            return "filter: rating"
        unwanted = not set(self.without).isdisjoint(puzzle.themes)
        if unwanted or (self.themes and set(self.themes).isdisjoint(puzzle.themes)):
            return "filter: themes"
        return None


EVERY_PUZZLE: Final = PuzzleFilter()


def write_puzzles(
    writer: TableWriter, source: Path, filters: PuzzleFilter, skipped: Counter[str], report: Report | None
) -> list[str]:
    """Writes the puzzles of a file that are wanted; the names of the themes, in the order of their bits."""
    bits: dict[str, int] = {}
    wanted = _wanted(read_puzzles(source, skipped), filters, skipped, bits, report)
    while rows := list(islice(wanted, ROWS_OF_BATCH)):
        _append(writer, rows, bits)
    return list(bits)


def _wanted(
    puzzles: Iterator[Puzzle],
    filters: PuzzleFilter,
    skipped: Counter[str],
    bits: dict[str, int],
    report: Report | None,
) -> Iterator[Puzzle]:
    """The puzzles that pass and fit into a row; their themes have bits."""
    for number, puzzle in enumerate(puzzles, start=1):
        if report is not None and number % 256 == 0:
            report(number)
        reason = filters.refusal(puzzle) or _misfit(puzzle, bits)
        if reason:
            skipped[reason] += 1
            continue
        for theme in puzzle.themes:
            bits.setdefault(theme, len(bits))
        yield puzzle


def _misfit(puzzle: Puzzle, bits: dict[str, int]) -> str | None:
    if len(puzzle.id.encode()) > ID_BYTES or "\0" in puzzle.id:
        return _TOO_LONG_ID
    new = set(puzzle.themes) - bits.keys()
    return _TOO_MANY_THEMES if len(bits) + len(new) > 8 * THEME_BYTES else None


def _append(writer: TableWriter, puzzles: Sequence[Puzzle], bits: dict[str, int]) -> None:
    boards = [chess.Board(puzzle.fen) for puzzle in puzzles]
    positions = [pack(board) for board in boards]
    lines = [[chess.Move.from_uci(move) for move in puzzle.moves] for puzzle in puzzles]
    moves = [np.array([rules.encode(move) for move in line], "<u2") for line in lines]
    themes = np.zeros((len(puzzles), 8 * THEME_BYTES), np.bool_)
    for row, puzzle in enumerate(puzzles):
        themes[row, [bits[theme] for theme in puzzle.themes]] = True
    for board, line in zip(boards, lines, strict=True):
        board.push(line[0])  # the opponent's
    rows = ((position, line.tobytes()) for position, line in zip(positions, moves, strict=True))
    columns: dict[str, NDArray[np.generic]] = {
        "position": np.frombuffer(b"".join(positions), np.uint8),
        "moves": np.concatenate(moves),
        "rating": np.array([min(puzzle.rating, 65_535) for puzzle in puzzles], np.uint16),
        "themes": np.packbits(themes, axis=1, bitorder="little"),
        "id": np.frombuffer(b"".join(puzzle.id.encode().ljust(ID_BYTES, b"\0") for puzzle in puzzles), np.uint8),
        "asked": np.array([rules.position_hash(board) for board in boards], np.int64),
        "hash": row_hashes(rows, len(puzzles)),
    }
    writer.append(columns, {"moves": np.array([len(line) for line in moves], np.int64)})


def puzzle_of(table: Table, place: int) -> Puzzle:
    """The puzzle of a row; its themes in the order of their bits."""
    names: list[str] = table.manifest["meaning"]["themes"]
    set_bits = np.flatnonzero(np.unpackbits(table.columns["themes"][place], bitorder="little")).tolist()
    return Puzzle(
        id=table.columns["id"][place].tobytes().rstrip(b"\0").decode(),
        fen=unpack(table.columns["position"][place].tobytes()).fen(en_passant="fen"),
        moves=tuple(rules.decode(code).uci() for code in table.row("moves", place).tolist()),
        rating=int(table.columns["rating"][place]),
        themes=tuple(names[bit] for bit in set_bits),
    )


def pack(board: chess.Board) -> bytes:
    """A position in 38 bytes."""
    nibbles = np.zeros(64, np.uint8)
    for square, piece in board.piece_map().items():
        nibbles[square] = piece.piece_type + (0 if piece.color else 8)
    rights = sum(1 << bit for bit, square in enumerate(_SQUARES_OF_RIGHTS) if board.castling_rights & square)
    passed = _NO_SQUARE if board.ep_square is None else board.ep_square
    clocks = [min(number, 65_535) for number in (board.halfmove_clock, board.fullmove_number)]
    squares = nibbles[::2] | nibbles[1::2] << 4
    return squares.tobytes() + bytes([board.turn + 2 * rights, passed]) + np.array(clocks, "<u2").tobytes()


def unpack(packed: bytes) -> chess.Board:
    """The position of 38 bytes."""
    board = chess.Board(None)
    for square in range(64):
        nibble = packed[square // 2] >> 4 * (square % 2) & 15
        if nibble:
            board.set_piece_at(square, chess.Piece(nibble & 7, nibble < 8))
    board.turn = bool(packed[32] & 1)
    board.castling_rights = sum(square for bit, square in enumerate(_SQUARES_OF_RIGHTS) if packed[32] >> 1 + bit & 1)
    board.ep_square = None if packed[33] == _NO_SQUARE else packed[33]
    board.halfmove_clock, board.fullmove_number = np.frombuffer(packed[34:], "<u2").tolist()
    return board
