"""Positions in which the side to move mates in exactly n moves, drawn at random, with every first move that does it.

A position is drawn by rejection: squares for the given pieces, independently and uniformly, and the side to move, each
colour alike. What is no legal position is drawn again: two pieces on one square, a pawn on the first or last rank,
kings that touch, the side that is not to move in check. So is what is no mate in exactly n moves, or has another number
of winning first moves than asked. The positions that are kept are therefore uniform over all that fit. Nobody may
castle or capture en passant in them; whether a game could ever reach them is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import chess
import numpy as np
from numba import njit
from numpy.random import Generator
from numpy.typing import NDArray

from testbeds.chess import rules
from testbeds.chess.games import GameSource, check_game_source
from testbeds.chess.rules_kernels import KING, MOST_MOVES, PASSED, PAWN, SIZE, TURN, in_check
from testbeds.chess.rules_mates import solve
from testbeds.streams import stream

__all__ = ["GameMates", "Mate", "MateIn", "mates_in"]

LONGEST_MATE: Final = 3  # moves: random positions of a mate in 4 take minutes to find
MOST_PIECES: Final = 8  # of both sides together: with more, hardly a random placement is legal
BATCH: Final = (0, 1024, 256, 32)  # placements drawn at a time, for mates in 1, 2 and 3 moves: some milliseconds
PILOT_HITS: Final = 4  # a set of pieces is refused if it shows fewer mates ...
PILOT_DRAWS: Final = (0, 65_536, 16_384, 1_024)  # ... in so many placements: a second or two, where there are none
MOST_BARREN: Final = 64  # pilots' worth of placements without a mate, of which a set that passed has e^-256
KNOWN: Final = frozenset({"KQK", "KRK", "KRRK", "KQRK", "KQKP", "KQBNK"})
"""Sets that have mates in 1 and in 2: they need no pilot, so that declaring a task compiles nothing."""
NO_BUDGET: Final = 1 << 60  # positions of a search: mates in so few moves are searched through
MOST_GAMES: Final = 4_096  # games in a row without a mate after which a source is refused

_SET: Final = re.compile("K[QRBNP]*K[QRBNP]*")
_KINDS: Final = {"P": 1, "N": 2, "B": 3, "R": 4, "Q": 5, "K": 6}
_LETTERS: Final = {kind: letter for letter, kind in _KINDS.items()} | {
    -kind: letter.lower() for letter, kind in _KINDS.items()
}

Squares = NDArray[np.int64]
Moves = NDArray[np.uint16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mate:
    """A position in which the side to move mates in exactly ``moves`` moves."""

    fen: str
    """The position."""
    moves: int
    """In how many moves of the side to move."""
    winning: tuple[int, ...]
    """All first moves that force it, encoded and ascending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MateIn:
    """Mates in random positions of few pieces: any number of them, from nothing but ``rng``.

    Of several sets of pieces each problem's is drawn first, each alike; then its position is uniform over all mates in
    exactly ``moves`` moves with these pieces.
    """

    revision: ClassVar[int] = 1

    moves: int = 1
    """In how many moves the side to move mates, and in no fewer: 1, 2 or 3. A mate in 3 is slow to find."""
    pieces: tuple[str, ...] = ("KQK", "KRRK", "KQRK", "KQKP")
    """Sets of pieces: those of the side to move and then those of the other, each with its king first; 3 to 8 in
    all."""
    winning: int | None = None
    """How many first moves may force the mate: so many exactly, such as 1; None: any number."""

    def __post_init__(self) -> None:
        _check_moves("MateIn.moves", self.moves)
        if self.winning is not None and (type(self.winning) is not int or self.winning < 1):
            raise ValueError(f"MateIn.winning must be None or a whole number of at least 1, got {self.winning!r}")
        _check_sets(self.pieces)
        for pieces in self.pieces:
            _check_pieces(pieces)
            if self.moves <= 2 and self.winning is None and pieces in KNOWN:
                continue
            hits = _pilot(pieces, self.moves, self.winning)
            if hits < PILOT_HITS:
                raise ValueError(_too_rare(self, pieces, hits, PILOT_DRAWS[self.moves]))

    def draw(self, rng: Generator, count: int) -> list[Mate]:
        """``count`` mates drawn independently: a pure function of the source and of ``rng``."""
        chosen = rng.integers(len(self.pieces), size=count)
        found: dict[int, Iterator[Mate]] = {}
        for place in sorted(set(chosen.tolist())):
            found[place] = iter(self._mates(self.pieces[place], int((chosen == place).sum()), rng))
        return [next(found[place]) for place in chosen.tolist()]

    def describe(self) -> str:
        """A few words that say which mates these are."""
        return f"mates in {self.moves} in random positions of {', '.join(self.pieces)}"

    def _mates(self, pieces: str, count: int, rng: Generator) -> list[Mate]:
        found: list[Mate] = []
        barren = 0
        while len(found) < count:
            size = BATCH[self.moves]
            mates = _sifted(pieces, self.moves, self.winning, rng, (size, count - len(found)))
            found += mates
            barren = 0 if mates else barren + size
            if barren >= MOST_BARREN * PILOT_DRAWS[self.moves]:
                raise ValueError(_too_rare(self, pieces, 0, barren))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class GameMates:
    """Mates in positions of games, played or missed: with all the pieces that games have.

    A game is drawn from its source, then one of its positions that are a mate in exactly ``moves`` moves, each alike;
    games without one are passed over. So a position is as likely as games come by it.
    """

    revision: ClassVar[int] = 1

    games: GameSource
    """Where games come from, such as ``SelfPlay()``."""
    moves: int = 1
    """In how many moves the side to move mates, and in no fewer: 1, 2 or 3."""
    winning: int | None = None
    """How many first moves may force the mate: so many exactly, such as 1; None: any number."""

    def __post_init__(self) -> None:
        _check_moves("GameMates.moves", self.moves)
        if self.winning is not None and (type(self.winning) is not int or self.winning < 1):
            raise ValueError(f"GameMates.winning must be None or a whole number of at least 1, got {self.winning!r}")
        check_game_source("GameMates.games", self.games, such_as="SelfPlay()")

    def draw(self, rng: Generator, count: int) -> list[Mate]:
        """``count`` mates drawn independently: a pure function of the source and of ``rng``."""
        found: list[Mate] = []
        barren = 0
        while len(found) < count:
            for game in self.games.draw(rng, count - len(found)):
                mates = _mates_of(game.start, game.moves, self.moves, self.winning)
                barren = 0 if mates else barren + 1
                if mates:
                    found.append(mates[int(rng.integers(len(mates)))])
            if barren >= MOST_GAMES:
                raise ValueError(
                    f"{barren} games in a row ({self.games.describe()}) have no mate in exactly {self.moves}"
                    f"{_asked(self.winning)}; take another source of games"
                )
        return found

    def describe(self) -> str:
        """A few words that say which mates these are."""
        return f"mates in {self.moves} in positions of {self.games.describe()}"


@lru_cache(maxsize=1 << 12)  # the games of a small source, which come again and again
def _mates_of(start: str | None, moves: tuple[int, ...], length: int, winning: int | None) -> tuple[Mate, ...]:
    """The mates in exactly ``length`` moves of a game, in order, that so many first moves force."""
    state = rules.state_of(chess.Board(start) if start else chess.Board())
    found = []
    for move in (*moves, None):
        forced = mates_in(state, length)
        if forced and winning in (None, len(forced)):
            found.append(Mate(fen=_fen(state), moves=length, winning=forced))
        if move is not None:
            rules.play(state, move)
    return tuple(found)


def mates_in(state: rules.State, moves: int) -> tuple[int, ...]:
    """All first moves that force mate in exactly ``moves`` moves, encoded and ascending; none where it is quicker."""
    winning = np.empty(MOST_MOVES, np.uint16)
    count = _exact_mates(state, moves, winning)
    return tuple(sorted(winning[:count].tolist()))


def _sifted(pieces: str, moves: int, winning: int | None, rng: Generator, sizes: tuple[int, int]) -> list[Mate]:
    """The first mates, at most ``sizes[1]``, among ``sizes[0]`` random placements."""
    draws, most = sizes
    squares = rng.integers(64, size=(draws, len(pieces)))
    sides = 1 - 2 * rng.integers(2, size=draws)
    solvers = pieces.index("K", 1)
    kinds = np.array([_KINDS[letter] * (1 if place < solvers else -1) for place, letter in enumerate(pieces)])
    states = np.zeros((most, SIZE), np.int8)
    found = np.zeros((most, MOST_MOVES), np.uint16)
    kept = _sift(squares, sides, kinds, (moves, winning or 0), states, found)
    return [
        Mate(fen=_bare_fen(states[row]), moves=moves, winning=tuple(sorted(found[row][found[row] > 0].tolist())))
        for row in range(kept)
    ]


@lru_cache(maxsize=1024)
def _pilot(pieces: str, moves: int, winning: int | None) -> int:
    """How many mates the first placements hold; counting stops where they are enough."""
    rng = stream("mates", "pilot", pieces, moves, winning or 0)
    hits = drawn = 0
    while hits < PILOT_HITS and drawn < PILOT_DRAWS[moves]:
        hits += len(_sifted(pieces, moves, winning, rng, (BATCH[moves], PILOT_HITS)))
        drawn += BATCH[moves]
    return hits


def _fen(state: rules.State) -> str:
    return rules.board_of_state(state).fen()


def _bare_fen(state: rules.State) -> str:
    """The same for a position in which nobody may castle or capture en passant, in a tenth of the time."""
    squares = state[:64].tolist()
    ranks = []
    for start in range(56, -1, -8):
        rank, empty = "", 0
        for piece in squares[start : start + 8]:
            if piece:
                rank += f"{empty or ''}{_LETTERS[piece]}"
                empty = 0
            else:
                empty += 1
        ranks.append(f"{rank}{empty or ''}")
    return f"{'/'.join(ranks)} {'w' if state[TURN] > 0 else 'b'} - - 0 1"


# ---------------------------------------------------------------------------------------------------------- kernels


@njit(cache=True)
def _placed(state: rules.State, squares: Squares, side: int, kinds: Squares) -> bool:
    """Set up pieces of both sides, positive kinds those of ``side``, to move; whether the position is legal."""
    state[:] = 0
    state[TURN], state[PASSED] = side, -1
    kings = np.zeros(2, np.int64)
    for k in range(squares.shape[0]):
        square = squares[k]
        if state[square] != 0 or (abs(kinds[k]) == PAWN and not 8 <= square < 56):
            return False
        state[square] = kinds[k] * side
        if abs(kinds[k]) == KING:
            kings[0 if kinds[k] > 0 else 1] = square
    files = abs((kings[0] & 7) - (kings[1] & 7))
    ranks = abs((kings[0] >> 3) - (kings[1] >> 3))
    if max(files, ranks) < 2:
        return False
    state[TURN] = -side
    taken = in_check(state)
    state[TURN] = side
    return not taken


@njit(cache=True)
def _exact_mates(state: rules.State, moves: int, winning: Moves) -> int:
    """Fill in all first moves that force mate in exactly so many moves; their number, 0 where a mate is quicker."""
    if moves > 1 and solve(state, (moves - 1, 0, False), NO_BUDGET, winning) > 0:
        return 0
    return int(solve(state, (moves, 0, True), NO_BUDGET, winning))


@njit(cache=True)
def _sift(
    squares: Squares, sides: Squares, kinds: Squares, asked: tuple[int, int], states: NDArray[np.int8], winning: Moves
) -> int:
    """Keep the placements that are mates in ``asked[0]`` moves, with ``asked[1]`` first moves unless that is 0.

    The states that are kept and their first moves are written in place; after the moves stands 0, which is none.
    """
    moves, allowed = asked
    state = np.zeros(SIZE, np.int8)
    kept = 0
    for draw in range(squares.shape[0]):
        if kept == states.shape[0]:
            break
        if not _placed(state, squares[draw], sides[draw], kinds):
            continue
        count = _exact_mates(state, moves, winning[kept])
        if count and allowed in (0, count):
            states[kept] = state
            winning[kept, count:] = 0
            kept += 1
    return kept


# ------------------------------------------------------------------------------------------------------- validation


def _check_moves(where: str, moves: object) -> None:
    if type(moves) is not int or not 1 <= moves <= LONGEST_MATE:
        raise ValueError(f"{where} must be a whole number from 1 to {LONGEST_MATE}, got {moves!r}")


def _check_sets(pieces: object) -> None:
    if not isinstance(pieces, tuple) or not pieces:
        raise ValueError(f"MateIn.pieces must be a tuple of sets such as ('KQK', 'KRRK'), got {pieces!r}")


def _check_pieces(pieces: object) -> None:
    if not isinstance(pieces, str) or not _SET.fullmatch(pieces) or not 3 <= len(pieces) <= MOST_PIECES:
        raise ValueError(
            f"MateIn.pieces must be sets of the pieces of the side to move and of the other, each with its king first"
            f" and 3 to {MOST_PIECES} in all, such as 'KQK' or 'KRRKP'; got {pieces!r}"
        )


def _asked(winning: int | None) -> str:
    return "" if winning is None else f" with {winning} winning first moves"


def _too_rare(source: MateIn, pieces: str, hits: int, draws: int) -> str:
    return (
        f"{hits} of {draws} random placements of {pieces} are mates in exactly {source.moves}{_asked(source.winning)},"
        f" too few to draw from; take other pieces"
    )
