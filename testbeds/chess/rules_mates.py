"""Forced mates, compiled: who can mate in how many moves, exactly, within a budget of positions.

A search of attacker and defender. At an attacker's turn one good move is enough; at a defender's, all replies must
fail, and the reply that last saved a position of the same ply is tried first. An attacker's turn has two passes: the
first asks which moves mate at once, and looks at moves that may give check alone; the second looks further, at moves
that give check before the others. The attacker's last move has the first pass only.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from testbeds.chess.rules_kernels import (
    KING,
    MOST_MOVES,
    PAWN,
    SIZE,
    TURN,
    Moves,
    State,
    copy_state,
    first_moves,
    in_check,
    king_square,
    play_into,
)

NO, YES, UNKNOWN = 0, 1, -1  # whether the attacker wins
LEFT, ALL, SAVED, PASS, CHECKS, CHECKED = 0, 1, 2, 3, 4, 5  # rows of the numbers kept for each ply

Ints = NDArray[np.int64]
Stack = tuple[NDArray[np.int8], Moves, Ints]
"""By ply: states, lists of moves, and numbers.

The numbers are: moves left, moves in all, the last reply that saved, the attacker's pass, how many moves that give
check stand at the list's end, and whether the side to move is in check.
"""


def _nearness() -> NDArray[np.int8]:
    """How two squares lie to each other: 1 on a rank or file, 2 on a diagonal, 3 a knight's jump apart, else 0."""
    table = np.zeros((64, 64), np.int8)
    for a in range(64):
        for b in range(64):
            files, ranks = abs(a % 8 - b % 8), abs(a // 8 - b // 8)
            if a != b and 0 in (files, ranks):
                table[a, b] = 1
            elif files == ranks:
                table[a, b] = 2
            elif files * ranks == 2:
                table[a, b] = 3
    return table


_NEARNESS: Final = _nearness()
_REACHES: Final = np.array([0, 4, 8, 4, 2, 6, 0], np.int8)  # bits 1, 2, 3 of nearness in which a piece gives check


@njit(cache=True)
def _may_check(state: State, king: int, code: int) -> bool:
    """Whether a move could give check to a king: never False for one that does."""
    origin, goal = code & 63, code >> 6 & 63
    kind = abs(np.int64(state[origin]))
    near = np.int64(_NEARNESS[goal, king])
    if _NEARNESS[origin, king] in (1, 2) or code >> 12 or _REACHES[kind] >> near & 1:
        return True
    if kind == PAWN:
        return (goal - origin) & 7 != 0 and state[goal] == 0  # en passant opens a line elsewhere
    return kind == KING and abs(goal - origin) == 2


@njit(cache=True)
def _begin(stack: Stack, ply: int, count: int) -> None:
    """Set the numbers of a ply for ``count`` moves; the reply that saved another position is taken first."""
    _, lists, numbers = stack
    moves = lists[ply]
    numbers[LEFT, ply], numbers[ALL, ply] = count, count
    numbers[PASS, ply], numbers[CHECKS, ply] = 0, 0
    for k in range(count):
        if moves[k] == numbers[SAVED, ply]:
            moves[k], moves[count - 1] = moves[count - 1], moves[k]


@njit(cache=True)
def _next(stack: Stack, ply: int, last: int, attacks: bool) -> int:  # noqa: FBT001
    """The next move to be tried at a ply, -1 for none. Moves are taken from the list's end."""
    states, lists, numbers = stack
    state, moves = states[ply], lists[ply]
    if attacks and numbers[PASS, ply] == 0:
        king = king_square(state, -np.int64(state[TURN]))
        while numbers[LEFT, ply] > 0:
            numbers[LEFT, ply] -= 1
            code = np.int64(moves[numbers[LEFT, ply]])
            if _may_check(state, king, code):
                return code
        if ply >= last:
            return -1
        numbers[PASS, ply], numbers[LEFT, ply] = 1, numbers[ALL, ply]
    if numbers[LEFT, ply] == 0:
        return -1
    numbers[LEFT, ply] -= 1
    return np.int64(moves[numbers[LEFT, ply]])


@njit(cache=True)
def _note_check(stack: Stack, ply: int) -> None:
    """After the first pass tried a move: if it gave check, it goes to the list's end, for the second pass."""
    _, lists, numbers = stack
    if numbers[PASS, ply] == 0 and numbers[CHECKED, ply + 1]:
        moves, place = lists[ply], numbers[LEFT, ply]
        end = numbers[ALL, ply] - 1 - numbers[CHECKS, ply]
        moves[place], moves[end] = moves[end], moves[place]
        numbers[CHECKS, ply] += 1


@njit(cache=True)
def _collect(out: Moves, found: int, code: int) -> int:
    """Append a move that is not there yet."""
    for k in range(found):
        if out[k] == code:
            return found
    out[found] = code
    return found + 1


@njit(cache=True)
def solve(state: State, task: tuple[int, int, bool], most_nodes: int, out: Moves) -> int:  # noqa: C901, PLR0912, PLR0915 (one loop: numba would compile the rules anew for each part)
    """The first moves after which the attacker mates by force.

    Args:
        state: The position.
        task: How many moves the attacker has; 0 if the attacker is to move, 1 if the defender is, whose losing replies
            are then wanted; whether all first moves are, or one that does is enough.
        most_nodes: How many positions' moves may be listed.
        out: The moves are written here.

    Returns:
        How many there are, or -1 where the budget did not do.
    """
    attempts, side, every = task
    last = 2 * attempts - 2 + side  # the ply of the attacker's last move
    states, lists = np.zeros((last + 3, SIZE), np.int8), np.zeros((last + 3, MOST_MOVES), np.uint16)
    numbers = np.zeros((6, last + 3), np.int64)
    stack = (states, lists, numbers)
    copy_state(states[0], state)
    ply, found, entered, value = 0, 0, True, UNKNOWN
    while True:
        attacks = ply & 1 == side
        if entered:
            test = not attacks and ((ply > 0 and numbers[PASS, ply - 1] == 0) or ply > last)  # is it mate?
            value = NO if test else UNKNOWN
            numbers[CHECKED, ply] = in_check(states[ply])
            if numbers[CHECKED, ply] or not test:
                most_nodes -= 1
                if most_nodes < 0:
                    return -1
                count = first_moves(states[ply], lists[ply], 1 if test else MOST_MOVES)
                _begin(stack, ply, count)
                if count == 0 and not attacks:
                    value = YES if numbers[CHECKED, ply] else NO
        entered = False
        if value == UNKNOWN:
            code = _next(stack, ply, last, attacks)
            if code >= 0:
                play_into(states[ply + 1], states[ply], code)
                ply, entered = ply + 1, True
                continue
            value = NO if attacks else YES
        if ply == 0:
            return found
        ply -= 1
        code = np.int64(lists[ply, numbers[LEFT, ply]])
        if not attacks:
            _note_check(stack, ply)
        if ply == 0:
            if value == YES:
                found = _collect(out, found, code)
                if not every:
                    return found
            value = UNKNOWN
        elif attacks and value == NO:
            numbers[SAVED, ply] = code
        elif attacks or value == NO:
            value = UNKNOWN
