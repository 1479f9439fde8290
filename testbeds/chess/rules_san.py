"""Reading the moves of games in standard algebraic notation, compiled.

What is read is what python-chess reads: marks for check and mate may be missing or wrong, a move may say more of its
origin than it must, castling may have zeros, a promotion may lack its ``=``. Nothing is read beyond the end of the
text.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from testbeds.chess.rules_kernels import KING, MOST_MOVES, PAWN, TURN, Moves, State, first_moves, play

Bytes = NDArray[np.uint8]
Meaning = tuple[int, int, int, int, int]
"""What a token says: piece, file and rank of its origin (-1 for what it does not say), goal, promotion.

Piece 7 is any piece: a token such as e1g1 names both squares. A goal of -1 is no move.
"""

_ANY: Final = 7
_NOTHING: Final[Meaning] = (0, -1, -1, -1, 0)
_KIND: Final = np.zeros(256, np.int8)  # of a letter that names a piece
_PROMOTION: Final = np.zeros(256, np.int8)
for _number, _letter in enumerate("NBRQK", 2):
    _KIND[ord(_letter)] = _number
    _PROMOTION[[ord(_letter), ord(_letter.lower())]] = _number
_MARKS: Final = np.zeros(256, np.bool_)
_MARKS[[ord(mark) for mark in "+#!?"]] = True
_SPACE, _DOT, _DASH, _EQUALS, _TAKES = 32, 46, 45, 61, 120
_ZERO, _ONE, _EIGHT, _NINE, _A, _H, _CASTLES = 48, 49, 56, 57, 97, 104, 79


@njit(cache=True)
def _token_end(text: Bytes, place: int) -> int:
    """The next white space, or the text's end."""
    while place < text.shape[0] and text[place] > _SPACE:
        place += 1
    return place


@njit(cache=True)
def _after_number(text: Bytes, begin: int, end: int) -> int:
    """Where a token's move begins: behind a move number and its dots, if there is one."""
    place = begin
    while place < end and _ZERO <= text[place] <= _NINE:
        place += 1
    if place == end or text[place] != _DOT:
        return begin
    while place < end and text[place] == _DOT:
        place += 1
    return place


@njit(cache=True)
def _castling_steps(text: Bytes, begin: int, end: int) -> int:
    """2 for castling on the king's side, 3 on the queen's, 0 for what is neither."""
    length = end - begin
    if length not in (3, 5) or text[begin] not in (_CASTLES, _ZERO):
        return 0
    for place in range(begin, end):
        if text[place] != (_DASH if (place - begin) & 1 else text[begin]):
            return 0
    return (length + 1) // 2


@njit(cache=True)
def _origin(text: Bytes, begin: int, end: int) -> tuple[int, int, int]:
    """(piece, file, rank) of the part of a token before its goal; piece -1 where it is something else."""
    kind, file, rank = PAWN, -1, -1
    if end > begin and text[end - 1] in (_DASH, _TAKES):
        end -= 1
    if end > begin and _ONE <= text[end - 1] <= _EIGHT:
        rank = np.int64(text[end - 1]) - _ONE
        end -= 1
    if end > begin and _A <= text[end - 1] <= _H:
        file = np.int64(text[end - 1]) - _A
        end -= 1
    if end > begin and _KIND[text[end - 1]]:
        kind = np.int64(_KIND[text[end - 1]])
        end -= 1
    elif file >= 0 and rank >= 0:
        kind = _ANY
    return (kind if end == begin else -1), file, rank


@njit(cache=True)
def meaning(text: Bytes, begin: int, end: int, white: bool) -> Meaning:  # noqa: FBT001
    """What the token ``text[begin:end]`` says, for the side to move."""
    while end > begin and _MARKS[text[end - 1]]:
        end -= 1
    steps = _castling_steps(text, begin, end)
    if steps:
        home = 0 if white else 56
        return _ANY, 4, home >> 3, home + (6 if steps == 2 else 2), -KING
    promotion = 0
    if end > begin and _PROMOTION[text[end - 1]]:
        promotion = np.int64(_PROMOTION[text[end - 1]])
        end -= 1
        if end > begin and text[end - 1] == _EQUALS:
            end -= 1
    if end - begin < 2 or not (_A <= text[end - 2] <= _H and _ONE <= text[end - 1] <= _EIGHT):
        return _NOTHING
    goal = np.int64(text[end - 2]) - _A + 8 * (np.int64(text[end - 1]) - _ONE)
    kind, file, rank = _origin(text, begin, end - 2)
    if kind < 0:
        return _NOTHING
    if kind == PAWN and file < 0:
        file = goal & 7
    return kind, file, rank, goal, promotion


@njit(cache=True)
def _is_meant(state: State, code: int, said: Meaning) -> bool:
    """Whether a legal move is what a token says."""
    kind, file, rank, goal, promotion = said
    origin, end = code & 63, code >> 6 & 63
    mover = abs(np.int64(state[origin]))
    castles = mover == KING and abs(end - origin) == 2
    if promotion == -KING or (castles and kind != _ANY):  # Kg1 is the king's usual move
        return castles and promotion == -KING and end == goal
    if castles and goal & 7 in (0, 7):
        end += 1 if end > origin else -2  # the king takes its rook
    if end != goal or code >> 12 != promotion:
        return False
    return (kind in (mover, _ANY)) and file in (origin & 7, -1) and rank in (origin >> 3, -1)


@njit(cache=True)
def _only_move(state: State, legal: Moves, count: int, said: Meaning) -> int:
    """The only legal move that is what a token says, -1 where there is none or several."""
    move = -1
    for k in range(count):
        if _is_meant(state, np.int64(legal[k]), said):
            if move >= 0:
                return -1
            move = np.int64(legal[k])
    return move


@njit(cache=True)
def read_moves(state: State, text: Bytes, out: Moves) -> tuple[int, int]:
    """Play the moves of a text, in place, and write them into ``out``.

    Returns:
        The number of moves, and where the first token begins that is no legal move, or -1.
    """
    legal = np.zeros(MOST_MOVES, np.uint16)
    number, place = 0, 0
    while True:
        begin = place
        while begin < text.shape[0] and text[begin] <= _SPACE:
            begin += 1
        place = _token_end(text, begin)
        start = _after_number(text, begin, place)
        if begin == text.shape[0]:
            return number, -1
        if start == place:
            continue  # a number alone
        said = meaning(text, start, place, state[TURN] > 0)
        move = _only_move(state, legal, first_moves(state, legal, MOST_MOVES), said)
        if move < 0 or number == out.shape[0]:
            return number, begin
        out[number] = move
        number += 1
        play(state, move)
