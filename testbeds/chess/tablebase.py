"""Exact values of small endgames: who wins, and in how many moves, for every position.

``table("KRK")`` solves the endgame of king and rook against king at first use, by retrograde analysis (see
tablebase_kernels.py), and keeps it: in memory for the process, and on disk in ``cache_directory()``. The distance is to
mate, in plies, with best play of both sides. The fifty-move rule and repetition do not count; none of these wins takes
fifty moves.

======  ========================  ==================  ===================
table   strong side               longest mate        numbers in the table
======  ========================  ==================  ===================
KQK     king and queen            10 moves            2 x 65,536
KRK     king and rook             16 moves            2 x 65,536
KPK     king and pawn             28 moves            2 x 131,072
KBNK    king, bishop and knight   33 moves            2 x 4,194,304
======  ========================  ==================  ===================
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import chess
import numpy as np
from numpy.typing import NDArray

from testbeds.chess import tablebase_kernels as kernels
from testbeds.chess.tablebase_kernels import DRAWN, ILLEGAL, STRONG, WEAK, Rows

Endgame = Literal["KQK", "KRK", "KPK", "KBNK"]
ENDGAMES: Final[tuple[Endgame, ...]] = get_args(Endgame)

CACHE_VARIABLE: Final = "STAGECRAFT_CACHE"
_FORMAT: Final = 1  # of the files; also to be raised when the kernels' numbering changes
_DIGEST_BYTES: Final = 32
_KINDS: Final[dict[Endgame, tuple[int, ...]]] = {
    "KQK": (chess.QUEEN,),
    "KRK": (chess.ROOK,),
    "KPK": (chess.PAWN,),
    "KBNK": (chess.BISHOP, chess.KNIGHT),
}
_DEAD: Final = ((), (chess.KNIGHT,), (chess.BISHOP,))  # what a side may have beside its king without ever mating


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What a position is worth to one side."""

    outcome: int
    """+1 won, 0 drawn, -1 lost, with best play."""
    plies_to_mate: int | None
    """Moves of either side until mate, if the winner hurries and the loser resists; None where it is drawn."""


DRAW: Final = Value(outcome=0, plies_to_mate=None)


class Judged(NamedTuple):
    """A legal move with what comes of it."""

    move: chess.Move
    value: Value
    """Of the position after it, for the side that moved."""
    optimal: bool
    """Whether no move is better: the shortest mate, the draw that is kept, or the longest resistance."""


class Facts(NamedTuple):
    """What is to be known of a position before its moves are listed one by one."""

    value: Value
    """For the side to move."""
    legal: int
    winning: int
    """Legal moves that win."""
    optimal: int
    """Legal moves than which none is better."""
    right: list[chess.Move]
    """Those that are optimal, or all that keep the outcome; in the order of squares and promotions."""


class Counts(NamedTuple):
    """How many positions of an endgame have which outcome for the side to move."""

    won: int
    drawn: int
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """A solved endgame; either colour may be the strong side."""

    name: Endgame
    rows: Rows
    """See tablebase_kernels.py: the entries with the strong side to move, and with the weak side to move."""
    promoted: Rows
    """The weak side's entries of queen and of rook, which a pawn may become; empty without pawns."""

    @property
    def images(self) -> int:
        """How many positions each entry stands for: mirror images left and right, and without pawns up and down."""
        return 2 if chess.PAWN in _KINDS[self.name] else 4

    @property
    def kinds(self) -> NDArray[np.int64]:
        """The strong side's men beside the king."""
        return np.array(_KINDS[self.name], np.int64)

    def value(self, board: chess.Board) -> Value:
        """What a position is worth to the side to move.

        Raises:
            ValueError: for a position with other men, with castling rights, or that no game can have.
        """
        at, turn, _ = self._read(board)
        return _value(self._entry(board, at, turn), mover_is_strong=turn == STRONG)

    def moves(self, board: chess.Board) -> list[Judged]:
        """Every legal move, in the order of squares and promotions.

        Raises:
            ValueError: as ``value`` does.
        """
        best, strong, flip, rows = self._listed(board)
        return [
            Judged(_move(row, flip), _value(row[3], mover_is_strong=strong), row[3] == best)
            for row in sorted(rows, key=lambda row: (row[0] ^ flip, row[1] ^ flip, row[2]))
        ]

    def facts(self, board: chess.Board, *, keeping: bool) -> Facts:
        """The position's value and how many of its moves are how good, in half the time that ``moves`` takes.

        Args:
            board: The position.
            keeping: Whether every move that keeps the outcome is right, or the optimal ones alone.

        Raises:
            ValueError: as ``value`` does.
        """
        best, strong, flip, rows = self._listed(board)
        right = [row for row in rows if row[3] == best or (keeping and (row[3] >= 0) == (best >= 0))]
        return Facts(
            value=self.value(board),
            legal=len(rows),
            winning=sum([row[3] >= 0 for row in rows]) if strong else 0,
            optimal=sum([row[3] == best for row in rows]),
            right=[_move(row, flip) for row in sorted(right, key=lambda row: (row[0] ^ flip, row[1] ^ flip, row[2]))],
        )

    def compared(self, board: chess.Board, move: chess.Move) -> tuple[Value, Value]:
        """What the position is worth after a best move, and after this legal one, for the side that moves.

        Raises:
            ValueError: as ``value`` does, and for a move that is not legal.
        """
        best, strong, flip, rows = self._listed(board)
        said = [move.from_square ^ flip, move.to_square ^ flip, move.promotion or 0]
        after = next((row[3] for row in rows if row[:3] == said), None)
        if after is None:
            raise ValueError(f"{move.uci()} is no legal move on {board.fen()}")
        return _value(best, mover_is_strong=strong), _value(after, mover_is_strong=strong)

    def counts(self, turn: chess.Color) -> Counts:
        """The outcomes over all legal positions in which white is the strong side."""
        row = self.rows[STRONG if turn == chess.WHITE else WEAK]
        decided, drawn = self.images * int((row >= 0).sum()), self.images * int((row == DRAWN).sum())
        won, lost = (decided, 0) if turn == chess.WHITE else (0, decided)
        return Counts(won=won, drawn=drawn, lost=lost)

    def longest_mate(self) -> int:
        """The most moves that the strong side needs from a position in which it is to move and wins."""
        return (int(self.rows[STRONG].max()) + 1) // 2

    def board(self, number: int, turn: int, image: int, strong: chess.Color) -> chess.Board:
        """One of the ``images`` of a numbered position, with ``STRONG`` or ``WEAK`` to move."""
        at = np.zeros(len(_KINDS[self.name]) + 2, np.int64)
        kernels.place(number, at)
        flip = (7 if image & 1 else 0) ^ (56 if image & 2 else 0) ^ (0 if strong == chess.WHITE else 56)
        board = chess.Board(None)
        strong_king, weak_king, *men = (at ^ flip).tolist()
        board.set_piece_at(strong_king, chess.Piece(chess.KING, strong))
        board.set_piece_at(weak_king, chess.Piece(chess.KING, not strong))
        for kind, square in zip(_KINDS[self.name], men, strict=True):
            board.set_piece_at(square, chess.Piece(kind, strong))
        board.turn = strong if turn == STRONG else not strong
        return board

    def _listed(self, board: chess.Board) -> tuple[int, bool, int, list[list[int]]]:
        """The entry after a best move, whether the strong side is to move, the flip of ``_read``, and the legal moves.

        A move is a row (from, to, promotion, entry after it) of the kernels, on squares as they have them.
        """
        at, turn, flip = self._read(board)
        best = max(self._entry(board, at, turn) - 1, DRAWN)  # DRAWN and mate have no such entry after them
        out = np.zeros((kernels.MOST_MOVES, 4), np.int64)
        count = kernels.moves_of(at, self.kinds, turn, self.rows, self.promoted, out)
        return best, turn == STRONG, flip, out[:count].tolist()

    def _read(self, board: chess.Board) -> tuple[NDArray[np.int64], int, int]:
        """The men's squares as the kernels have them, whose move it is, and what turns squares into the board's."""
        strong = chess.WHITE if board.occupied_co[chess.WHITE] & ~board.kings else chess.BLACK
        if _men(board, strong) != _KINDS[self.name] or _men(board, not strong) or _kings(board) != (1, 1):
            raise ValueError(f"{board.fen()} does not have the men of {self.name}")
        if board.clean_castling_rights():
            raise ValueError(f"{board.fen()} has castling rights, which the table {self.name} does not know")
        flip = 0 if strong == chess.WHITE else 56
        squares = [chess.msb(board.kings & board.occupied_co[side]) for side in (strong, not strong)]
        squares += [chess.msb(board.pieces_mask(kind, strong)) for kind in _KINDS[self.name]]
        return np.array(squares, np.int64) ^ flip, STRONG if board.turn == strong else WEAK, flip

    def _entry(self, board: chess.Board, at: NDArray[np.int64], turn: int) -> int:
        entry = int(self.rows[turn, kernels.number(at, kernels.flips_of(self.kinds))])
        if entry == ILLEGAL:
            raise ValueError(
                f"{board.fen()} is no legal position: the kings touch, the side that has moved is in check"
                " or a pawn stands on the first or last rank"
            )
        return entry


def table(name: Endgame) -> Table:
    """The solved endgame: from memory, from disk, or solved now.

    Raises:
        ValueError: for any other endgame.
    """
    if name not in ENDGAMES:
        raise ValueError(f"an endgame must be one of {', '.join(ENDGAMES)}, got {name!r}")
    return _table(name)


def table_of(board: chess.Board) -> Table | None:
    """The table that holds a position by its men; None where there is none."""
    for name, kinds in _KINDS.items():
        if (kinds, ()) in ((_men(board, side), _men(board, not side)) for side in chess.COLORS):
            return table(name)
    return None


def value_of(board: chess.Board) -> Value:
    """What a position is worth to the side to move, if a table holds it or neither side has what could mate.

    Raises:
        ValueError: for any other position.
    """
    found = table_of(board)
    if found is not None:
        return found.value(board)
    if _kings(board) == (1, 1) and any(
        _men(board, side) in _DEAD and not _men(board, not side) for side in chess.COLORS
    ):
        return DRAW
    raise ValueError(f"{board.fen()} is in none of the tables {', '.join(ENDGAMES)}")


def solve(name: Endgame) -> Table:
    """The endgame solved anew, whatever is kept."""
    promoted = np.zeros((2, 0), np.int8)
    if name == "KPK":
        promoted = np.stack([table("KQK").rows[WEAK], table("KRK").rows[WEAK]])
    rows = kernels.solve(np.array(_KINDS[name], np.int64), promoted, _numbers(name))
    return _frozen(name, rows, promoted)


def cache_directory() -> Path:
    """Where tables are kept on disk: ``$STAGECRAFT_CACHE``, or ``stagecraft`` in the user's directory of caches."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    usual = os.environ.get("XDG_CACHE_HOME")
    return (Path(usual) if usual else Path.home() / ".cache") / "stagecraft"


def forget() -> None:
    """Drops the tables that are kept in memory: what is asked for next is read from disk, or solved."""
    _table.cache_clear()


@lru_cache(maxsize=len(ENDGAMES))
def _table(name: Endgame) -> Table:
    kept = _load(name)
    if kept is not None:
        promoted = np.zeros((2, 0), np.int8)
        if name == "KPK":
            promoted = np.stack([table("KQK").rows[WEAK], table("KRK").rows[WEAK]])
        return _frozen(name, kept, promoted)
    solved = solve(name)
    _keep(solved)
    return solved


def _frozen(name: Endgame, rows: Rows, promoted: Rows) -> Table:
    rows.flags.writeable = promoted.flags.writeable = False
    return Table(name=name, rows=rows, promoted=promoted)


def _numbers(name: Endgame) -> int:
    """How many positions a row of the table has: squares of the strong king, times 64 for each other man."""
    kings = 32 if chess.PAWN in _KINDS[name] else 16
    return kings << 6 * (len(_KINDS[name]) + 1)


def _men(board: chess.Board, side: chess.Color) -> tuple[int, ...]:
    """What a side has beside its king, bishops before knights."""
    own = board.occupied_co[side] & ~board.kings
    if not own:
        return ()
    masks = (
        (chess.QUEEN, board.queens),
        (chess.ROOK, board.rooks),
        (chess.BISHOP, board.bishops),
        (chess.KNIGHT, board.knights),
        (chess.PAWN, board.pawns),
    )
    return tuple([kind for kind, mask in masks for _ in range((mask & own).bit_count())])


def _move(row: list[int], flip: int) -> chess.Move:
    return chess.Move(row[0] ^ flip, row[1] ^ flip, row[2] or None)


def _kings(board: chess.Board) -> tuple[int, int]:
    white, black = (chess.popcount(board.kings & board.occupied_co[side]) for side in chess.COLORS)
    return white, black


@lru_cache(maxsize=256)  # there are no more
def _value(entry: int, *, mover_is_strong: bool) -> Value:
    if entry == DRAWN:
        return DRAW
    return Value(outcome=1 if mover_is_strong else -1, plies_to_mate=entry)


# ------------------------------------------------------------------------------------------------------- files


def _file(name: Endgame) -> Path | None:
    """Where a table is kept; None where there is no home directory."""
    try:
        return cache_directory() / f"{name}-{_FORMAT}.table"
    except RuntimeError:
        return None


def _head(name: Endgame, rows: bytes) -> bytes:
    """What stands before the entries in a file: what they are, and their digest."""
    return f"stagecraft {name} {_FORMAT}\n".encode() + blake2b(rows, digest_size=_DIGEST_BYTES).digest()


def _load(name: Endgame) -> Rows | None:
    """The table from disk; None where there is none, or something else than what was written."""
    path = _file(name)
    try:
        content = path.read_bytes() if path is not None else b""
    except OSError:
        return None
    rows = content[len(_head(name, b"")) :]
    if len(rows) != 2 * _numbers(name) or content != _head(name, rows) + rows:
        return None
    return np.frombuffer(bytearray(rows), np.int8).reshape(2, -1)


def _keep(solved: Table) -> None:
    """Writes a table to disk, whole or not at all; nothing where that is not possible: memory has it."""
    path = _file(solved.name)
    if path is None:
        return
    rows = solved.rows.tobytes()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_head(solved.name, rows) + rows)
        Path(temporary).chmod(0o644)  # a cache may be shared; temporary files are private
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
