"""The rules of chess, compiled: legal moves, playing them, checks and ends of games.

A state is 68 small numbers: 64 squares from a1 to h8 (0 empty, 1..6 pawn, knight, bishop, rook, queen, king, negative
for black), the side to move (1 white, -1 black), castling rights (bits 1, 2 for white's king's and queen's side, 4, 8
for black's), the square of an en passant capture that is legal, else -1, and plies since the last capture or pawn move
(127 for all above). Each side has one king. A move is one number: from | to << 6 | promotion << 12.

Moves are legal when they are generated: pieces that give check and pieces that are pinned are found first, by looking
out from the king. Numba's cache does not see changes of a kernel in another module: whoever changes this one deletes
the compiled files of those that call it. Nothing here calls itself: numba's cache does not bear recursion.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

State = NDArray[np.int8]
Moves = NDArray[np.uint16]

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = 1, 2, 3, 4, 5, 6
TURN, RIGHTS, PASSED, CLOCK, SIZE = 64, 65, 66, 67, 68
MOST_MOVES: Final = 256  # more than any position of a game has (218)
GOES_ON, MATE, STALEMATE, INSUFFICIENT = 0, 1, 2, 3

_STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1))  # rooks' directions, then bishops'
_JUMPS = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))


def _walk(square: int, step: tuple[int, int], most: int) -> list[int]:
    """The squares from ``square`` in a direction, up to ``most``."""
    file, rank = square % 8 + step[0], square // 8 + step[1]
    found: list[int] = []
    while len(found) < most and 0 <= file < 8 and 0 <= rank < 8:
        found.append(file + 8 * rank)
        file, rank = file + step[0], rank + step[1]
    return found


def _padded(lists: list[list[int]], width: int) -> list[list[int]]:
    return [each + [-1] * (width - len(each)) for each in lists]


def _leaps(steps: tuple[tuple[int, int], ...]) -> NDArray[np.int8]:
    rows = [[place for step in steps for place in _walk(square, step, 1)] for square in range(64)]
    return np.array(_padded(rows, 9), np.int8)


_RAYS = np.array([_padded([_walk(square, step, 7) for step in _STEPS], 8) for square in range(64)], np.int8)
_LEAPS = _leaps(_JUMPS)
_AROUND = _leaps(_STEPS)
_KEEPS = np.full(64, 15, np.int8)  # the rights that are left after a move from or to a square
_KEEPS[[4, 7, 0, 60, 63, 56]] = (12, 14, 13, 3, 11, 7)
_WORTH = np.array([0, 1, 3, 3, 5, 9, 0], np.int8)


@njit(cache=True)
def king_square(state: State, side: int) -> int:
    """Where the king of a side stands."""
    for square in range(64):
        if state[square] == KING * side:
            return square
    return 0


@njit(cache=True)
def _pawn_attacks(state: State, square: int, by: int) -> bool:
    """Whether a pawn of side ``by`` attacks the square."""
    origin = square - 8 * by
    if not 0 <= origin < 64:
        return False
    file = square & 7
    return (file > 0 and state[origin - 1] == by) or (file < 7 and state[origin + 1] == by)


@njit(cache=True)
def attacked(state: State, square: int, by: int, hole: int) -> bool:
    """Whether side ``by`` attacks a square; ``hole`` is a square seen as empty, or -1."""
    for direction in range(8):
        straight = ROOK if direction < 4 else BISHOP
        step = 0
        place = _RAYS[square, direction, 0]
        while place >= 0 and (state[place] == 0 or place == hole):
            step += 1
            place = _RAYS[square, direction, step]
        if place >= 0:
            piece = state[place] * by
            if piece in (QUEEN, straight) or (piece == KING and step == 0):
                return True
    step = 0
    while _LEAPS[square, step] >= 0:
        if state[_LEAPS[square, step]] == KNIGHT * by:
            return True
        step += 1
    return _pawn_attacks(state, square, by)


@njit(cache=True)
def in_check(state: State) -> bool:
    """Whether the side to move is in check."""
    side = np.int64(state[TURN])
    return attacked(state, king_square(state, side), -side, -1)


@njit(cache=True)
def _ray(state: State, king: int, side: int, direction: int) -> tuple[int, int]:
    """(squares of a check along this ray up to the piece that gives it, own piece that is pinned), as bits."""
    squares, shield = np.int64(0), np.int64(0)
    straight = ROOK if direction < 4 else BISHOP
    step = 0
    while _RAYS[king, direction, step] >= 0:
        place = _RAYS[king, direction, step]
        step += 1
        bit = np.int64(1) << place
        squares |= bit
        piece = state[place] * side
        if piece > 0 and shield == 0:
            shield = bit
        elif piece in (-QUEEN, -straight):
            return (np.int64(0), shield) if shield else (squares, np.int64(0))
        elif piece != 0:
            break
    return np.int64(0), np.int64(0)


@njit(cache=True)
def _near_checks(state: State, king: int, side: int) -> int:
    """The enemy's knights and pawns that give check, as bits."""
    found = np.int64(0)
    step = 0
    while _LEAPS[king, step] >= 0:
        place = _LEAPS[king, step]
        step += 1
        if state[place] == -KNIGHT * side:
            found |= np.int64(1) << place
    origin = king + 8 * side
    if 0 <= origin < 64:
        if king & 7 and state[origin - 1] == -side:
            found |= np.int64(1) << (origin - 1)
        if king & 7 != 7 and state[origin + 1] == -side:
            found |= np.int64(1) << (origin + 1)
    return found


@njit(cache=True)
def _bonds(state: State, king: int, side: int) -> tuple[int, int]:
    """(squares to which a piece must go to end the check, all without one, none in a double one; pinned pieces)."""
    goals, pinned, checks = np.int64(-1), np.int64(0), 0
    near = _near_checks(state, king, side)
    if near:
        goals, checks = near, (1 if near & (near - 1) == 0 else 2)
    for direction in range(8):
        check, shield = _ray(state, king, side, direction)
        pinned |= shield
        if check:
            goals, checks = check, checks + 1
    return (goals if checks < 2 else np.int64(0)), pinned


@njit(cache=True)
def _aligned(a: int, b: int, c: int) -> bool:
    """Whether three squares lie on a line."""
    return ((a & 7) - (b & 7)) * ((a >> 3) - (c >> 3)) == ((a >> 3) - (b >> 3)) * ((a & 7) - (c & 7))


@njit(cache=True)
def _add(out: Moves, count: int, origin: int, goal: int, bonds: tuple[int, int, int]) -> int:
    """Append a move if check and pin allow it; ``bonds`` is (king, squares that end the check, whether pinned)."""
    king, goals, pin = bonds
    if not goals >> goal & 1 or (pin and not _aligned(king, origin, goal)) or count >= out.shape[0]:
        return count
    out[count] = origin | goal << 6
    return count + 1


@njit(cache=True)
def _add_pawn(out: Moves, count: int, origin: int, goal: int, bonds: tuple[int, int, int]) -> int:
    """As ``_add``, four times for a promotion."""
    after = _add(out, count, origin, goal, bonds)
    if after > count and (goal < 8 or goal >= 56) and after + 3 <= out.shape[0]:
        code = np.int64(out[count])
        for promotion in range(KNIGHT, KING):
            out[count + promotion - KNIGHT] = code | promotion << 12
        after += 3
    return after


@njit(cache=True)
def _passing_is_safe(state: State, origin: int, side: int, king: int) -> bool:
    """Whether an en passant capture leaves the own king safe: it is made and taken back."""
    goal = np.int64(state[PASSED])
    victim = goal - 8 * side
    state[origin], state[victim], state[goal] = 0, 0, side
    safe = not attacked(state, king, -side, -1)
    state[origin], state[victim], state[goal] = side, -side, 0
    return safe


@njit(cache=True)
def _pawn_moves(state: State, out: Moves, count: int, origin: int, bonds: tuple[int, int, int]) -> int:
    side = np.int64(state[TURN])
    goal = origin + 8 * side
    if not 0 <= goal < 64:
        return count
    if state[goal] == 0:
        count = _add_pawn(out, count, origin, goal, bonds)
        if origin >> 3 == (1 if side > 0 else 6) and state[goal + 8 * side] == 0:
            count = _add(out, count, origin, goal + 8 * side, bonds)
    for aside in (-1, 1):
        if not 0 <= (goal & 7) + aside < 8:
            continue
        place = goal + aside
        if state[place] * side < 0:
            count = _add_pawn(out, count, origin, place, bonds)
        elif place == state[PASSED] and count < out.shape[0] and _passing_is_safe(state, origin, side, bonds[0]):
            out[count] = origin | place << 6
            count += 1
    return count


@njit(cache=True)
def _piece_moves(state: State, out: Moves, count: int, origin: int, bonds: tuple[int, int, int]) -> int:
    """Moves of a knight, bishop, rook or queen."""
    side = np.int64(state[TURN])
    kind = state[origin] * side
    if kind == KNIGHT:
        step = 0
        while _LEAPS[origin, step] >= 0:
            place = np.int64(_LEAPS[origin, step])
            step += 1
            if state[place] * side <= 0:
                count = _add(out, count, origin, place, bonds)
        return count
    for direction in range(4 if kind == BISHOP else 0, 4 if kind == ROOK else 8):
        step = 0
        place = np.int64(_RAYS[origin, direction, 0])
        while place >= 0 and state[place] * side <= 0:
            count = _add(out, count, origin, place, bonds)
            step += 1
            place = np.int64(_RAYS[origin, direction, step]) if state[place] == 0 else -1
    return count


@njit(cache=True)
def _king_moves(state: State, out: Moves, count: int, king: int) -> int:
    side = np.int64(state[TURN])
    step = 0
    while _AROUND[king, step] >= 0:
        place = np.int64(_AROUND[king, step])
        step += 1
        if state[place] * side <= 0 and count < out.shape[0] and not attacked(state, place, -side, king):
            out[count] = king | place << 6
            count += 1
    return count


@njit(cache=True)
def _castling(state: State, out: Moves, count: int, king: int) -> int:
    """Castling of a king that is not in check."""
    side = np.int64(state[TURN])
    home = 4 if side > 0 else 60
    rights = np.int64(state[RIGHTS]) >> (0 if side > 0 else 2)
    if king != home or not rights & 3:
        return count
    if rights & 1 and state[home + 3] == ROOK * side and state[home + 1] == 0 and state[home + 2] == 0:
        count = _castle(state, out, count, home, 1)
    far = state[home - 1] == 0 and state[home - 2] == 0 and state[home - 3] == 0
    if rights & 2 and far and state[home - 4] == ROOK * side:
        count = _castle(state, out, count, home, -1)
    return count


@njit(cache=True)
def _castle(state: State, out: Moves, count: int, home: int, aside: int) -> int:
    """Append one castling move if no square on the king's way is attacked."""
    by = -np.int64(state[TURN])
    if count < out.shape[0] and not (
        attacked(state, home + aside, by, home) or attacked(state, home + 2 * aside, by, home)
    ):
        out[count] = home | (home + 2 * aside) << 6
        return count + 1
    return count


@njit(cache=True)
def first_moves(state: State, out: Moves, most: int) -> int:
    """As ``legal_moves``, but may stop when there are ``most``."""
    side = np.int64(state[TURN])
    king = king_square(state, side)
    goals, pinned = _bonds(state, king, side)
    count = _king_moves(state, out, 0, king)
    if goals == 0:
        return count
    for origin in range(64):
        kind = state[origin] * side
        if kind <= 0 or kind == KING:
            continue
        if count >= most:
            return count
        bonds = (king, goals, pinned >> origin & 1)
        if kind == PAWN:
            count = _pawn_moves(state, out, count, origin, bonds)
        else:
            count = _piece_moves(state, out, count, origin, bonds)
    return _castling(state, out, count, king) if goals == -1 else count


@njit(cache=True)
def legal_moves(state: State, out: Moves) -> int:
    """Write the legal moves into ``out``, of length MOST_MOVES, in a fixed order; their number."""
    return first_moves(state, out, MOST_MOVES)


@njit(cache=True)
def _passed_square(state: State, goal: int, side: int) -> int:
    """The square behind a pawn of ``side`` that went two squares to ``goal``, if the other side, to move, may take it.

    The state still says -1; it is filled in while the capture is tried.
    """
    for aside in (-1, 1):
        if 0 <= (goal & 7) + aside < 8 and state[goal + aside] == -side:
            state[PASSED] = goal - 8 * side
            safe = _passing_is_safe(state, goal + aside, -side, king_square(state, -side))
            state[PASSED] = -1
            if safe:
                return goal - 8 * side
    return -1


@njit(cache=True)
def _play_pawn(state: State, origin: int, goal: int, promotion: int) -> None:
    """The special things of a pawn's move, after the pawn stands on its goal."""
    side = np.int64(state[TURN])
    if goal == state[PASSED] and (goal - origin) & 7 != 0:
        state[goal - 8 * side] = 0
    if KNIGHT <= promotion <= QUEEN:
        state[goal] = side * promotion


@njit(cache=True)
def play(state: State, move: int) -> None:
    """Play a legal move, in place. Any number is safe to give; only legal moves give legal positions."""
    code = np.int64(move)
    origin, goal = code & 63, code >> 6 & 63
    side = np.int64(state[TURN])
    kind = np.int64(state[origin]) * side
    quiet = kind != PAWN and state[goal] == 0
    state[CLOCK] = min(state[CLOCK] + 1, 127) if quiet else 0
    state[goal] = state[origin]
    state[origin] = 0
    state[RIGHTS] &= _KEEPS[origin] & _KEEPS[goal]
    if kind == PAWN:
        _play_pawn(state, origin, goal, code >> 12 & 15)
    elif kind == KING and abs(goal - origin) == 2:
        corner = goal + 1 if goal > origin else goal - 2
        if 0 <= corner < 64:
            state[(origin + goal) >> 1] = state[corner]
            state[corner] = 0
    state[PASSED] = -1
    if kind == PAWN and abs(goal - origin) == 16:
        state[PASSED] = _passed_square(state, goal, side)
    state[TURN] = -side


@njit(cache=True)
def copy_state(to: State, state: State) -> None:
    """``to`` becomes equal to a state."""
    for place in range(SIZE):
        to[place] = state[place]


@njit(cache=True)
def play_into(after: State, state: State, move: int) -> None:
    """``after`` becomes the state after a move."""
    copy_state(after, state)
    play(after, move)


@njit(cache=True)
def material(state: State) -> int:
    """White's material minus black's, in pawns (1, 3, 3, 5, 9)."""
    total = 0
    for square in range(64):
        piece = np.int64(state[square])
        total += _WORTH[piece] if piece >= 0 else -_WORTH[-piece]
    return total


@njit(cache=True)
def insufficient(state: State) -> bool:
    """Whether neither side can ever mate: kings with one knight, or with bishops on squares of one colour."""
    knights, light, dark = 0, 0, 0
    for square in range(64):
        kind = abs(np.int64(state[square]))
        if kind == KNIGHT:
            knights += 1
        elif kind == BISHOP:
            if (square ^ square >> 3) & 1:
                light += 1
            else:
                dark += 1
        elif kind not in (0, KING):
            return False
    return knights + (light > 0) + (dark > 0) <= 1


@njit(cache=True)
def status(state: State) -> int:
    """GOES_ON, MATE, STALEMATE or INSUFFICIENT (material)."""
    some = np.empty(MOST_MOVES, np.uint16)
    if first_moves(state, some, 1) == 0:
        return MATE if in_check(state) else STALEMATE
    return INSUFFICIENT if insufficient(state) else GOES_ON


@njit(cache=True)
def perft(state: State, depth: int) -> int:
    """The number of lines of ``depth`` legal moves."""
    if depth <= 0:
        return 1
    stack, lists = np.zeros((depth, SIZE), np.int8), np.zeros((depth, MOST_MOVES), np.uint16)
    left = np.zeros(depth, np.int64)  # moves of each ply that are still to be played
    copy_state(stack[0], state)
    total, ply, entered = 0, 0, True
    while ply >= 0:
        if entered:
            left[ply] = first_moves(stack[ply], lists[ply], MOST_MOVES)
        entered = ply < depth - 1 and left[ply] > 0
        if entered:
            left[ply] -= 1
            play_into(stack[ply + 1], stack[ply], np.int64(lists[ply, left[ply]]))
            ply += 1
        else:
            total += left[ply]
            ply -= 1
    return total
