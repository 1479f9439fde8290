"""What is right in a puzzle: exact, by search where it asks for mate, else as the puzzle lists it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import chess
from numpy.random import Generator

from testbeds.chess import rules
from testbeds.chess.mates import NO_BUDGET, Mate, mates_in
from testbeds.chess.puzzles import Puzzle

__all__ = ["Asked", "Judged", "asked_by", "judged", "line_floor", "mate_length", "of_mate", "right_line"]

MOST_NODES: Final = 2_000_000
"""Positions that the search for all mating first moves of a puzzle may look at; beyond, the puzzle is passed over."""
LONGEST_MATE: Final = 4
"""Moves of the longest mate that is asked: what is left of it after a move is always searched through, however long."""
CACHED: Final = 1 << 14  # puzzles whose search is kept: all of the shipped sample

OVER_BUDGET: Final = "the search for its mates takes too long"
TOO_LONG: Final = f"a mate in more than {LONGEST_MATE} moves"
NOT_FORCED: Final = "its listed first move does not force the mate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A position and what is asked of it."""

    fen: str
    """The position to solve."""
    line: tuple[int, ...]
    """The listed line from the solver's first move on, encoded; empty for a position without one."""
    mate: int
    """In at most how many moves the solver must mate; 0: the listed line is asked."""
    winning: tuple[int, ...]
    """All right first moves, encoded and ascending."""
    rating: int = 0
    """Difficulty as Lichess estimates it; 0 where there is no estimate."""

    @property
    def solver_moves(self) -> int:
        """How many moves the solver has."""
        return self.mate or (len(self.line) + 1) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What is said of a line."""

    right: int
    """Moves of the solver that are right, before the first that is not."""
    trouble: str
    """Why the line is wrong; empty where it is right."""


def of_mate(mate: Mate) -> Asked:
    """What a drawn mate asks."""
    return Asked(fen=mate.fen, line=(), mate=mate.moves, winning=mate.winning)


@lru_cache(maxsize=CACHED)
def asked_by(puzzle: Puzzle) -> Asked | str:
    """What a puzzle asks, or why that is not known exactly."""
    board = chess.Board(puzzle.fen)
    board.push_uci(puzzle.moves[0])
    fen = board.fen(en_passant="legal")
    line = tuple(rules.encode(chess.Move.from_uci(text)) for text in puzzle.moves[1:])
    mate = mate_length(puzzle)
    if mate > LONGEST_MATE:
        return TOO_LONG
    winning = _winning(fen, mate) if mate else tuple(sorted({line[0], *mates_in(rules.state_of(board), 1)}))
    if winning is None:
        return OVER_BUDGET
    if line[0] not in winning:
        return NOT_FORCED
    return Asked(fen=fen, line=line, mate=mate, winning=winning, rating=puzzle.rating)


@lru_cache(maxsize=CACHED)
def mate_length(puzzle: Puzzle) -> int:
    """In how many moves the listed line mates; 0 where it does not."""
    board = chess.Board(puzzle.fen)
    for text in puzzle.moves:
        board.push(chess.Move.from_uci(text))
    return len(puzzle.moves) // 2 if board.is_checkmate() else 0


@lru_cache(maxsize=CACHED)
def _winning(fen: str, mate: int) -> tuple[int, ...] | None:
    """All first moves that force mate in at most so many moves; None where the search takes too long."""
    found = rules.mating_moves(chess.Board(fen), mate, MOST_NODES)
    return None if found is None else tuple(sorted(found))


def judged(own: Asked, moves: Sequence[chess.Move], trouble: str) -> Judged:
    """What is said of legal moves, played from the position, after which ``trouble`` keeps the rest from being read."""
    board = chess.Board(own.fen)
    for place, move in enumerate(moves):
        by_solver = place % 2 == 0
        if not _is_right(own, board, place, move):
            fault = _fault(own, place)
            return Judged(right=(place + 1) // 2, trouble=f"move {place + 1}, {move.uci()}, {fault}")
        board.push(move)
        if by_solver and board.is_checkmate():
            return Judged(right=place // 2 + 1, trouble=trouble)  # no legal move follows
    if not own.mate and len(moves) == len(own.line):
        return Judged(right=own.solver_moves, trouble=trouble)
    return Judged(right=(len(moves) + 1) // 2, trouble=trouble or f"the line ends after {len(moves)} moves, unfinished")


def _fault(own: Asked, place: int) -> str:
    """What is wrong with a move that is not right, as far as it is known: a slower mate may well be left."""
    if own.mate:
        return f"does not force mate in {own.mate - place // 2}"
    return "is not the listed reply" if place % 2 else "is not the move that the puzzle lists, nor mate at once"


def _is_right(own: Asked, board: chess.Board, place: int, move: chess.Move) -> bool:
    """Whether one move of a line, right until here, is right."""
    code = rules.encode(move)
    if own.mate:
        if place % 2:
            return True
        return code in own.winning if place == 0 else code in right_moves(board, own.mate - place // 2)
    if place < len(own.line) and own.line[place] == code:
        return True
    return place % 2 == 0 and code in mates_in(rules.state_of(board), 1)


def right_line(own: Asked, rng: Generator | None) -> tuple[chess.Move, ...]:
    """A right line: as listed where no mate is asked, else one with the best defence.

    Args:
        own: What is asked.
        rng: Draws among the right moves of the solver; None: the first of them.
    """
    if not own.mate:
        return tuple(map(rules.decode, own.line))
    board = chess.Board(own.fen)
    moves: list[chess.Move] = []
    for left in range(own.mate, 0, -1):
        right = own.winning if left == own.mate else right_moves(board, left)
        moves.append(rules.decode(right[0 if rng is None else int(rng.integers(len(right)))]))
        board.push(moves[-1])
        if board.is_checkmate():
            break
        moves.append(_defence(board, left - 1))
        board.push(moves[-1])
    return tuple(moves)


def right_moves(board: chess.Board, left: int) -> tuple[int, ...]:
    """All moves that force mate in at most ``left`` moves, ascending: searched through, however long it takes."""
    return tuple(sorted(rules.mating_moves(board, left, NO_BUDGET) or ()))


def _defence(board: chess.Board, left: int) -> chess.Move:
    """A reply after which mate in at most ``left`` moves takes longest."""
    reply = rules.best_defence(board, left, NO_BUDGET)
    if reply is None:
        raise ValueError(f"{board.fen()} has no reply, so there is no line that goes on")
    return rules.decode(reply)


def line_floor(own: Asked) -> float:
    """The chance that a line of moves that are drawn from the legal ones is right.

    Where mate is asked, any reply of the opponent will do: the guess meets the best defence to the first of its right
    moves. Elsewhere it must guess the replies, too, and is right as well if it mates before the line ends.
    """
    return _mate_floor(own) if own.mate else _listed_floor(own)


def _mate_floor(own: Asked) -> float:
    board = chess.Board(own.fen)
    chance = 1.0
    for place, move in enumerate(right_line(own, None)):
        if place % 2 == 0:
            right = own.winning if place == 0 else right_moves(board, own.mate - place // 2)
            chance *= len(right) / board.legal_moves.count()
        board.push(move)
    return chance


def _listed_floor(own: Asked) -> float:
    board = chess.Board(own.fen)
    chance, reached = 0.0, 1.0  # right by mates so far; that the line has been guessed up to here
    for place, code in enumerate(own.line):
        legal = board.legal_moves.count()
        if place % 2 == 0:
            others = [mate for mate in mates_in(rules.state_of(board), 1) if mate != code]
            chance += reached * len(others) / legal
        reached /= legal
        board.push(rules.decode(code))
    return chance + reached
