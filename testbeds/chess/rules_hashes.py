"""Hashes of positions, compiled: equal for mirror images, and stable for ever, so that they may be stored."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from testbeds.chess.rules_kernels import MOST_MOVES, PASSED, PAWN, RIGHTS, TURN, Moves, State, first_moves, play
from testbeds.streams import seed_from_key


def _images() -> NDArray[np.int8]:
    """Where each square goes under the eight symmetries: none, left and right, and six that pawns do not have."""
    plain = np.arange(64)
    turned = plain % 8 * 8 + plain // 8
    flips = (0, 7, 56, 63)
    return np.array([plain ^ flip for flip in flips] + [turned ^ flip for flip in flips], np.int8)


def _keys(name: str, count: int) -> NDArray[np.int64]:
    """Random 63-bit numbers that never change: hashes may be stored."""
    return np.array([seed_from_key("chess position", name, number) for number in range(count)], np.int64)


_IMAGES = _images()
_PIECE_KEYS = _keys("piece", 13 * 64).reshape(13, 64)
_RIGHTS_KEYS = _keys("castling", 16)
_PASSED_KEYS = _keys("en passant", 64)
_TURN_KEY = seed_from_key("chess position", "black to move")


@njit(cache=True)
def _image_hash(state: State, image: int) -> int:
    """63 bits of one image of a position with white to move; with black to move, the colours are exchanged first."""
    side = np.int64(state[TURN])
    flip = 0 if side > 0 else 56
    rights = np.int64(state[RIGHTS]) & 15
    if side < 0:
        rights = rights >> 2 | (rights & 3) << 2
    found = _RIGHTS_KEYS[rights]
    if state[PASSED] >= 0:
        found ^= _PASSED_KEYS[_IMAGES[image, np.int64(state[PASSED]) ^ flip]]
    for square in range(64):
        piece = np.int64(state[square])
        if piece:
            found ^= _PIECE_KEYS[piece * side + 6, _IMAGES[image, square ^ flip]]
    return found


@njit(cache=True)
def exact_hash(state: State) -> int:
    """63 bits: equal for positions that count as repetitions of each other."""
    return _image_hash(state, 0) ^ (0 if state[TURN] > 0 else _TURN_KEY)


@njit(cache=True)
def canonical_hash(state: State) -> int:
    """63 bits: equal for positions with one canonical form (``positions.key_of``), up to collisions."""
    images = 1 if state[RIGHTS] else 8
    if images > 1:
        for square in range(8, 56):
            if abs(state[square]) == PAWN:
                images = 2
                break
    least = _image_hash(state, 0)
    for image in range(1, images):
        least = min(least, _image_hash(state, image))
    return least


@njit(cache=True)
def game_hashes(state: State, moves: Moves, hashes: NDArray[np.int64]) -> int:
    """Fill in the hash of the position and of the one after each move, in place; the number of legal moves read."""
    out = np.empty(MOST_MOVES, np.uint16)
    hashes[0] = canonical_hash(state)
    for ply in range(moves.shape[0]):
        count = first_moves(state, out, MOST_MOVES)
        legal = False
        for k in range(count):
            legal |= out[k] == moves[ply]
        if not legal:
            return ply
        play(state, np.int64(moves[ply]))
        hashes[ply + 1] = canonical_hash(state)
    return moves.shape[0]
