"""The rules of chess at speed: states instead of boards, for millions of positions.

A state is an array of 68 int8: 64 squares from a1 to h8 (0 empty, 1..6 pawn, knight, bishop, rook, queen, king,
negative for black), the side to move (1 white, -1 black), castling rights (bits 1, 2, 4, 8 for K, Q, k, q), the square
of an en passant capture that is legal or -1, and plies since the last capture or pawn move (127 for all above). A move
is one number, ``from | to << 6 | promotion << 12``, with python-chess' squares and pieces.

These are compiled, and may be called from compiled code: ``legal_moves``, ``play``, ``in_check``, ``status``,
``material``, ``perft``, ``canonical_hash``. The rest takes python-chess' boards, or both. A state must come from
``state_of`` and legal moves; nothing is read or written out of bounds for others, but what they say means nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import chess
import numpy as np
from numpy.typing import NDArray

from testbeds.chess.rules_hashes import canonical_hash, game_hashes
from testbeds.chess.rules_kernels import (
    CLOCK,
    GOES_ON,
    INSUFFICIENT,
    MATE,
    MOST_MOVES,
    PASSED,
    RIGHTS,
    SIZE,
    STALEMATE,
    TURN,
    Moves,
    State,
    in_check,
    legal_moves,
    material,
    perft,
    play,
    status,
)
from testbeds.chess.rules_mates import solve
from testbeds.chess.rules_play import MATED, play_game, root_scores
from testbeds.chess.rules_san import read_moves

__all__ = [
    "GOES_ON",
    "INSUFFICIENT",
    "MATE",
    "MATED",
    "MOST_MOVES",
    "MOST_NODES",
    "POLICIES",
    "STALEMATE",
    "Moves",
    "State",
    "best_defence",
    "board_of_state",
    "canonical_hash",
    "decode",
    "encode",
    "forced_mate",
    "hashes_of_game",
    "in_check",
    "legal_moves",
    "material",
    "mating_moves",
    "perft",
    "play",
    "position_hash",
    "read_san_moves",
    "search",
    "self_play",
    "state_of",
    "status",
]

MOST_NODES: Final = 10_000_000
"""Positions that a search for mate may open unless told otherwise: some ten seconds."""

POLICIES: Final = ("random", "greedy", "one_ply", "two_ply")
"""Policies of ``self_play`` by number, which is also how many plies they look ahead.

``greedy`` sees its own move alone, ``one_ply`` a ply more, the reply, and ``two_ply`` the own move after that.
"""

_RIGHTS: Final = ((1, chess.BB_H1), (2, chess.BB_A1), (4, chess.BB_H8), (8, chess.BB_A8))
_MOST_DEPTH: Final = 32
_MOST_MATE: Final = 32


def encode(move: chess.Move) -> int:
    """The move as a number: from | to << 6 | promotion << 12."""
    return move.from_square | move.to_square << 6 | (move.promotion or 0) << 12


def decode(code: int) -> chess.Move:
    """The move of such a number."""
    code = int(code)
    return chess.Move(code & 63, code >> 6 & 63, code >> 12 or None)


def state_of(board: chess.Board) -> State:
    """The state of a board.

    Raises:
        ValueError: unless each side has one king, and castling is that of the usual start.
    """
    if any(len(board.pieces(chess.KING, side)) != 1 for side in chess.COLORS):
        raise ValueError(f"{board.fen()!r} must have one king on each side")
    rights = board.clean_castling_rights()
    if rights & ~chess.BB_CORNERS or (board.chess960 and rights):
        raise ValueError(f"{board.fen()!r} has castling rights of Chess960; only those of usual chess can be kept")
    state = np.zeros(SIZE, np.int8)
    for square, piece in board.piece_map().items():
        state[square] = piece.piece_type if piece.color else -piece.piece_type
    state[TURN] = 1 if board.turn else -1
    state[RIGHTS] = sum(bit for bit, corner in _RIGHTS if rights & corner)
    state[PASSED] = board.ep_square if board.ep_square is not None and board.has_legal_en_passant() else -1
    state[CLOCK] = min(max(board.halfmove_clock, 0), 127)
    return state


def board_of_state(state: State) -> chess.Board:
    """The board of a state; its move number is 1."""
    board = chess.Board(None)
    for square in np.flatnonzero(state[:64]).tolist():
        board.set_piece_at(square, chess.Piece(abs(int(state[square])), bool(state[square] > 0)))
    board.turn = bool(state[TURN] > 0)
    board.castling_rights = sum(corner for bit, corner in _RIGHTS if int(state[RIGHTS]) & bit)
    board.ep_square = int(state[PASSED]) if state[PASSED] >= 0 else None
    board.halfmove_clock = int(state[CLOCK])
    return board


def position_hash(board: chess.Board) -> int:
    """63 bits, equal where ``positions.key_of`` is equal, up to collisions."""
    return int(canonical_hash(state_of(board)))


def hashes_of_game(start: str | None, moves: Iterable[int]) -> NDArray[np.int64]:
    """The hashes of a game's positions, as ``position_hash``: the first, and the one after each of the moves.

    Args:
        start: The first position in Forsyth-Edwards notation; None is the usual one.
        moves: Encoded moves; n of them give n + 1 hashes.

    Raises:
        ValueError: for a move that is not legal.
    """
    state = state_of(chess.Board() if start is None else chess.Board(start))
    codes = np.array(tuple(moves), np.uint16)
    hashes = np.zeros(len(codes) + 1, np.int64)
    read = game_hashes(state, codes, hashes)
    if read < len(codes):
        code = int(codes[read])
        raise ValueError(f"move {read} is {decode(code).uci()} ({code}), not legal on {board_of_state(state).fen()!r}")
    return hashes


def mating_moves(position: State | chess.Board, n: int, most_nodes: int = MOST_NODES) -> list[int] | None:
    """All first moves that force mate in at most ``n`` moves of the side to move, sorted: exact.

    Fifty moves and repetition do not count. None where more than ``most_nodes`` positions had to be opened.
    """
    return _solved(position, (n, 0, True), most_nodes)


def forced_mate(position: State | chess.Board, n: int, most_nodes: int = MOST_NODES) -> bool | None:
    """Whether the side to move can force mate in at most ``n`` moves; None where the budget did not do."""
    if n == 0:
        return False
    for moves in range(1, n + 1):  # a short mate is found soon, and the rest is but little longer for it
        found = _solved(position, (moves, 0, False), most_nodes)
        if found is None or found:
            return None if found is None else True
    return False


def best_defence(position: State | chess.Board, n: int, most_nodes: int = MOST_NODES) -> int | None:
    """The reply that delays mate longest, within ``n`` moves of the other side; of several, the one of lowest number.

    A reply after which there is no mate in ``n`` moves is best. None where there is no reply, or where a search needed
    more than ``most_nodes`` positions.
    """
    state = _state(position)
    out = np.zeros(MOST_MOVES, np.uint16)
    left = set(out[: legal_moves(state, out)].tolist())
    for moves in range(1, n + 1):
        lost = _solved(state, (moves, 1, True), most_nodes)
        if lost is None:
            return None
        if left <= set(lost):
            break
        left -= set(lost)
    return min(left, default=None)


def search(position: State | chess.Board, depth: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """Every legal move with its score and best line, by alpha-beta on material ``depth`` plies deep; the best first.

    The score is in pawns for the side to move. A mate for it after k plies scores ``MATED`` - k, a mate against it
    k - ``MATED``: far from any material. Moves of equal score stand by their number. Nothing is random.
    """
    if not 1 <= depth <= _MOST_DEPTH:
        raise ValueError(f"depth must be 1 to {_MOST_DEPTH} plies, got {depth}")
    found, lines = np.zeros((3, MOST_MOVES), np.int64), np.zeros((MOST_MOVES, depth), np.uint16)
    count = root_scores(_state(position), depth, False, found, lines)  # noqa: FBT003 (compiled: no keywords)
    rows = zip(found[:, :count].T.tolist(), lines[:count].tolist(), strict=True)
    return sorted(((code, score, tuple(line[:length])) for (code, score, length), line in rows), key=_best_first)


def self_play(
    seed: int, start: State, policy: int | tuple[int, int], epsilon: float, most_plies: int
) -> tuple[int, ...]:
    """The moves of a game that a policy plays against itself.

    It ends with mate, stalemate, insufficient material, the third repetition, fifty moves, or after ``most_plies``.

    Args:
        seed: 0 to 2**64 - 1; the game depends on it, and on nothing else but the other arguments.
        start: The first position.
        policy: A number of POLICIES, or one each for white and black. Of equally good moves each is as likely.
        epsilon: The probability with which any legal move is played instead.
        most_plies: When to stop.
    """
    depths = (policy, policy) if isinstance(policy, int) else policy
    if any(not 0 <= depth < len(POLICIES) for depth in depths):
        raise ValueError(f"policy must be 0 to {len(POLICIES) - 1} ({', '.join(POLICIES)}), got {policy!r}")
    if not 0 <= epsilon <= 1:
        raise ValueError(f"epsilon must be a probability, got {epsilon}")
    if not 0 <= seed < 2**64 or most_plies < 0:
        raise ValueError(f"seed must be 0 to 2**64 - 1 and most_plies not negative, got {seed} and {most_plies}")
    out = np.zeros(most_plies, np.uint16)
    count = play_game(np.uint64(seed), start.copy(), depths, float(epsilon), out)
    return tuple(out[:count].tolist())


def read_san_moves(start: State, movetext: bytes) -> tuple[Moves, int]:
    """The moves of a text in standard algebraic notation, with white space between them; total, for any bytes.

    Move numbers are passed over. What is read else is what ``chess.Board.parse_san`` reads, with any marks + # ! ?
    after it; null moves, comments, variations and results are not.

    Returns:
        The moves up to the first token that is no legal move, encoded, shape (plies,), and where in ``movetext`` that
        token begins, or -1 where there is none.
    """
    text = np.frombuffer(movetext + b" ", np.uint8).copy()  # never empty, and writable: one compiled version
    out = np.zeros(len(text) // 3 + 1, np.uint16)  # a move has two characters, and a space
    number, wrong = read_moves(start.copy(), text, out)
    return out[:number].copy(), int(wrong)


def _best_first(row: tuple[int, int, tuple[int, ...]]) -> tuple[int, int]:
    return (-row[1], row[0])


def _state(position: State | chess.Board) -> State:
    return state_of(position) if isinstance(position, chess.Board) else position


def _solved(position: State | chess.Board, task: tuple[int, int, bool], most_nodes: int) -> list[int] | None:
    if not 1 <= task[0] <= _MOST_MATE:
        raise ValueError(f"a mate is searched for in 1 to {_MOST_MATE} moves, got {task[0]}")
    out = np.zeros(MOST_MOVES, np.uint16)
    found = solve(_state(position), task, most_nodes, out)
    return None if found < 0 else sorted(out[:found].tolist())
