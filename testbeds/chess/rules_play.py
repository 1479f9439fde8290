"""Search by material, and games that a policy plays against itself, compiled.

The search is alpha-beta over all legal moves to a fixed depth, with material alone as the value: pawns 1, knights and
bishops 3, rooks 5, queens 9. Captures and promotions are tried first, then moves by number; of equal moves the first
that was tried counts. Games draw their random numbers from a counter and their seed (SplitMix64, Steele, Lea and Flood
2014), so that a game depends on nothing else.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from testbeds.chess.rules_hashes import exact_hash
from testbeds.chess.rules_kernels import (
    _WORTH,
    CLOCK,
    MOST_MOVES,
    SIZE,
    TURN,
    Moves,
    State,
    copy_state,
    first_moves,
    in_check,
    insufficient,
    material,
    play,
    play_into,
)

MATED: Final = 1000  # a mate after k plies is worth this less k
NONE: Final = -2 * MATED
FIFTY_MOVES: Final = 100  # plies
REPETITIONS: Final = 3

Ints = NDArray[np.int64]


@njit(cache=True)
def _order(state: State, moves: Moves, count: int) -> None:
    """Captures and promotions first, by what they gain, then all moves by number; what is tried first stands last."""
    keys = np.empty(count, np.int64)
    for k in range(count):  # sorted by insertion
        code = np.int64(moves[k])
        gain = np.int64(_WORTH[abs(np.int64(state[code >> 6 & 63]))]) + _WORTH[code >> 12]
        key, place = gain << 16 | (65535 - code), k
        while place > 0 and keys[place - 1] > key:
            keys[place] = keys[place - 1]
            place -= 1
        keys[place] = key
    for k in range(count):
        moves[k] = 65535 - (keys[k] & 65535)


@njit(cache=True)
def _keep_line(lines: Moves, lengths: Ints, ply: int, code: int) -> None:
    """The best line of a ply is this move and the best line of the next."""
    lines[ply, 0] = code
    for k in range(lengths[ply + 1]):
        lines[ply, k + 1] = lines[ply + 1, k]
    lengths[ply] = lengths[ply + 1] + 1


@njit(cache=True)
def root_scores(state: State, depth: int, ties_only: bool, found: Ints, lines: Moves) -> int:  # noqa: C901, FBT001, PLR0912, PLR0915 (one loop, as in rules_mates)
    """Score every move.

    Args:
        state: The position.
        depth: How many plies are looked ahead, at least 1.
        ties_only: Whether it is enough to know exactly which moves are best; others then have upper bounds.
        found: (3, MOST_MOVES), filled in: moves, scores for the side to move, and length of the best line.
        lines: (MOST_MOVES, depth or more), filled in: the best lines.

    Returns:
        The number of moves.
    """
    states, lists = np.zeros((depth + 1, SIZE), np.int8), np.zeros((depth + 1, MOST_MOVES), np.uint16)
    left, lengths = np.zeros(depth + 2, np.int64), np.zeros(depth + 2, np.int64)
    best, low, high = np.zeros(depth + 2, np.int64), np.zeros(depth + 2, np.int64), np.zeros(depth + 2, np.int64)
    paths = np.zeros((depth + 2, depth + 2), np.uint16)
    copy_state(states[0], state)
    low[0], high[0] = NONE, -NONE
    ply, number, entered, done, value = 0, 0, True, False, 0
    while True:
        if entered:
            leaf = ply == depth
            count = first_moves(states[ply], lists[ply], 1 if leaf else MOST_MOVES)
            left[ply], lengths[ply], best[ply] = count, 0, NONE
            done = True
            if count == 0:
                value = ply - MATED if in_check(states[ply]) else 0
            elif ply > 0 and insufficient(states[ply]):
                value = 0
            elif leaf:
                value = material(states[ply]) * np.int64(states[ply, TURN])
            else:
                done = False
                _order(states[ply], lists[ply], count)
        entered = False
        if not done and left[ply] > 0:
            left[ply] -= 1
            play_into(states[ply + 1], states[ply], np.int64(lists[ply, left[ply]]))
            low[ply + 1], high[ply + 1] = -high[ply], -max(low[ply], best[ply])
            ply, entered = ply + 1, True
            continue
        if not done:
            value = best[ply]
        if ply == 0:
            return number
        ply -= 1
        value, done = -value, False
        code = np.int64(lists[ply, left[ply]])
        if ply == 0:
            found[0, number], found[1, number], found[2, number] = code, value, lengths[1] + 1
            _keep_line(paths, lengths, 0, code)
            for k in range(depth):
                lines[number, k] = paths[0, k]
            number += 1
            if ties_only:
                low[0] = max(low[0], value - 1)  # an equal move then still has its exact score
        elif value > best[ply]:
            best[ply] = value
            _keep_line(paths, lengths, ply, code)
            done = value >= high[ply]


@njit(cache=True)
def _random(seed: np.uint64, number: int) -> float:
    """The number-th uniform number in [0, 1) of a seed."""
    word = np.uint64(number + 1) * np.uint64(0x9E3779B97F4A7C15) + seed  # the counter is SplitMix64's own
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@njit(cache=True)
def _repeated(hashes: Ints, ply: int, clock: int) -> bool:
    """Whether the last position occurs for the third time since a move that cannot be undone."""
    times = 1
    for back in range(2, min(clock, ply) + 1, 2):
        times += 1 if hashes[ply - back] == hashes[ply] else 0
    return times >= REPETITIONS


@njit(cache=True)
def _choice(found: Ints, count: int, draw: float, ties: bool) -> int:  # noqa: FBT001
    """One of the moves, or one of those with the highest score."""
    if not ties:
        return found[0, int(draw * count)]
    highest, number = NONE, 0
    for k in range(count):
        if found[1, k] > highest:
            highest, number = found[1, k], 0
        number += 1 if found[1, k] == highest else 0
    wanted = int(draw * number)
    for k in range(count):
        if found[1, k] == highest:
            if wanted == 0:
                return found[0, k]
            wanted -= 1
    return found[0, 0]


@njit(cache=True)
def play_game(seed: np.uint64, state: State, depths: tuple[int, int], epsilon: float, out: Moves) -> int:
    """Play from a state, in place, until the game ends or ``out`` is full; the number of moves.

    ``depths`` are the plies that white and black look ahead; 0 is any legal move.
    """
    hashes = np.zeros(out.shape[0] + 1, np.int64)
    some, found = np.zeros(MOST_MOVES, np.uint16), np.zeros((3, MOST_MOVES), np.int64)
    lines = np.zeros((MOST_MOVES, max(depths[0], depths[1])), np.uint16)
    for ply in range(out.shape[0]):
        hashes[ply] = exact_hash(state)
        if insufficient(state) or state[CLOCK] >= FIFTY_MOVES or _repeated(hashes, ply, np.int64(state[CLOCK])):
            return ply
        depth = depths[0] if state[TURN] > 0 else depths[1]
        considers = depth > 0 and _random(seed, 2 * ply) >= epsilon
        if considers:
            count = root_scores(state, depth, considers, found, lines)  # ties are enough
        else:
            count = first_moves(state, some, MOST_MOVES)
            for k in range(count):
                found[0, k] = some[k]
        if count == 0:
            return ply
        out[ply] = _choice(found, count, _random(seed, 2 * ply + 1), considers)
        play(state, np.int64(out[ply]))
    return out.shape[0]
