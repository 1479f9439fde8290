"""Puzzles in the form in which Lichess publishes them, read from its CSV file, plain or compressed by zstd.

The columns that are read are ``PuzzleId``, ``FEN``, ``Moves``, ``Rating`` and ``Themes``, wherever they stand; the last
one may be missing. The FEN is the position before the opponent's first move, ``Moves`` begins with that move; the
solver answers from the second on.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import chess

from testbeds.chess.pgn_files import TextFile

__all__ = ["MATE_THEME", "Puzzle", "read_puzzles"]

MATE_THEME: Final = re.compile("mateIn([1-5])")
"""The theme that says in how many moves the solver mates; 5 means 5 or more."""

WRONG_FIELDS: Final = "wrong number of fields"
BAD_RATING: Final = "bad rating"
BAD_POSITION: Final = "bad position"
BAD_MOVE: Final = "bad move"
ILLEGAL_MOVE: Final = "illegal move"
NO_SOLVER_MOVE: Final = "no solver move"
ENDS_WITH_OPPONENT: Final = "ends with the opponent's move"
NOT_THAT_MATE: Final = "mate theme without that mate"
NOT_TEXT: Final = "not UTF-8 text"

_MOST_LINE_BYTES: Final = 1 << 16  # a line of Lichess has a few hundred: a longer one is no puzzle
_LONGEST_MATE_THEME: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Puzzle:
    """A puzzle as Lichess publishes it: the first move is the opponent's, the solver answers."""

    id: str
    """Its name in the file."""
    fen: str
    """The position before the opponent's first move."""
    moves: tuple[str, ...]
    """The line in UCI notation: the opponent's move, then the solver's and the opponent's in turn."""
    rating: int
    """Difficulty as Lichess estimates it, in its own Glicko-2 points."""
    themes: tuple[str, ...]
    """Words such as ``mateIn2`` or ``fork``."""


class _Skip(Exception):  # noqa: N818  # not an error: it never leaves this file
    """A line that is no puzzle, with the reason that is counted."""


def read_puzzles(path: Path | str | BinaryIO, skipped: Counter[str]) -> Iterator[Puzzle]:
    """The puzzles of a file, in order, without ever holding the whole file in memory.

    Args:
        path: A CSV file with a header line, plain or compressed by zstd.
        skipped: Is counted up for each line that is passed over, by the reason; a file that breaks off is one more
            reason, counted once.

    Raises:
        ValueError: for a file that is not one of puzzles.
        FileNotFoundError: where there is none.
    """
    file = TextFile(path)
    lines = _lines(file)
    places = _places(file.name, next(lines, b""))
    for line in lines:
        if not line.strip():
            continue
        try:
            puzzle = _puzzle(line, places)
        except _Skip as reason:
            skipped[str(reason)] += 1
        else:
            yield puzzle
    if file.trouble:
        skipped[file.trouble] += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """In which columns the fields stand."""

    id: int
    fen: int
    moves: int
    rating: int
    themes: int | None
    columns: int


def _lines(file: TextFile) -> Iterator[bytes]:
    """The lines of a file; of one that is too long for a puzzle, only so much that it is seen to be too long."""
    rest = b""
    for block in file.blocks():
        *whole, last = block.split(b"\n")
        if whole:
            yield rest + whole[0]
            yield from whole[1:]
            rest = b""
        rest = (rest + last)[: _MOST_LINE_BYTES + 1]
    if rest and not file.trouble:  # what stands before a break is half a line
        yield rest


def _places(name: str, header: bytes) -> _Places:
    """Where the columns stand that the first line names."""
    names = [each.strip() for each in header.decode("utf-8", "replace")[:_MOST_LINE_BYTES].split(",")]
    needed = ("PuzzleId", "FEN", "Moves", "Rating")
    missing = [each for each in needed if each not in names]
    if missing:
        begins = header[:60].decode("utf-8", "replace")
        raise ValueError(
            f"{name} is no puzzle file: its first line names no column {', '.join(missing)}; that of Lichess is"
            f" PuzzleId,FEN,Moves,Rating,...,Themes,...; this one begins with {begins!r}"
        )
    at = [names.index(each) for each in needed]
    themes = names.index("Themes") if "Themes" in names else None
    return _Places(id=at[0], fen=at[1], moves=at[2], rating=at[3], themes=themes, columns=len(names))


def _puzzle(line: bytes, places: _Places) -> Puzzle:
    """The puzzle that a line says."""
    row = _fields(line)
    if len(row) != places.columns:
        raise _Skip(WRONG_FIELDS)
    rating = row[places.rating].strip()
    if not (rating.isascii() and rating.isdecimal() and len(rating) <= 5):
        raise _Skip(BAD_RATING)
    fen = row[places.fen].strip()
    moves, mates = _line(fen, row[places.moves].split())
    themes = () if places.themes is None else tuple(row[places.themes].split())
    if any(not _fits(theme, len(moves) // 2, mates=mates) for theme in themes):
        raise _Skip(NOT_THAT_MATE)
    return Puzzle(id=row[places.id].strip(), fen=fen, moves=moves, rating=int(rating), themes=themes)


def _fields(line: bytes) -> list[str]:
    if len(line) > _MOST_LINE_BYTES:
        raise _Skip(WRONG_FIELDS)
    try:
        return next(csv.reader([line.decode("utf-8")], strict=True))
    except UnicodeDecodeError as error:
        raise _Skip(NOT_TEXT) from error
    except csv.Error as error:
        raise _Skip(WRONG_FIELDS) from error


def _line(fen: str, texts: list[str]) -> tuple[tuple[str, ...], bool]:
    """The moves of a line as they are usually written, and whether the last one mates."""
    if len(texts) < 2:
        raise _Skip(NO_SOLVER_MOVE)
    if len(texts) % 2:
        raise _Skip(ENDS_WITH_OPPONENT)
    board = _board(fen)
    moves = []
    for text in texts:
        try:
            move = board.parse_uci(text)  # castling may be written as the king taking the rook
        except chess.IllegalMoveError as error:
            raise _Skip(ILLEGAL_MOVE) from error
        except ValueError as error:
            raise _Skip(BAD_MOVE) from error
        if not move:  # a null move
            raise _Skip(ILLEGAL_MOVE)
        moves.append(move.uci())
        board.push(move)
    return tuple(moves), board.is_checkmate()


def _board(fen: str) -> chess.Board:
    try:
        board = chess.Board(fen)
    except ValueError as error:
        raise _Skip(BAD_POSITION) from error
    if not board.is_valid():
        raise _Skip(BAD_POSITION)
    return board


def _fits(theme: str, moves: int, *, mates: bool) -> bool:
    """Whether a theme that says in how many moves the solver mates is true; other themes say nothing of that."""
    found = MATE_THEME.fullmatch(theme)
    if not found:
        return mates or theme != "mate"
    said = int(found[1])
    return mates and (moves == said or (said == _LONGEST_MATE_THEME and moves > said))
