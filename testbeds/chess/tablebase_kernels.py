"""Retrograde analysis of endgames in which a lone king faces a king with one or two men.

A position is an array ``at`` of squares 0 (a1) to 63 (h8): the strong king, the weak king, and the strong side's men in
the order of ``kinds``. The strong side's pawns move to higher ranks. Positions that are mirror images share a number:
``number`` brings the strong king to the files a to d, and without pawns also to the ranks 1 to 4. No position is its
own image under these flips, so each number stands for exactly two or four positions.

A table is an array of two rows, the strong side to move and the weak side to move. An entry counts the plies to mate:
odd numbers in the first row, even ones in the second, since only the strong side can win; or it is ``DRAWN`` or
``ILLEGAL``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

Rows = NDArray[np.int8]
Squares = NDArray[np.int64]

DRAWN: Final = -1
ILLEGAL: Final = -2
STRONG: Final = 0
WEAK: Final = 1
PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = 1, 2, 3, 4, 5, 6  # as python-chess numbers them
WITH_PAWNS: Final = 7  # by which squares may be flipped: left and right, ...
WITHOUT_PAWNS: Final = 63  # ... or up and down, too
MOST_MOVES: Final = 64  # a queen has at most 27 moves and a king 8; bishop and knight have 13 and 8


def _steps(kind: int) -> tuple[tuple[tuple[int, int], ...], int]:
    """The directions (files, ranks) in which a kind attacks, and how many squares far."""
    straight = ((1, 0), (-1, 0), (0, 1), (0, -1))
    oblique = ((1, 1), (1, -1), (-1, 1), (-1, -1))
    if kind == PAWN:
        return ((-1, 1), (1, 1)), 1
    if kind == KNIGHT:
        return tuple((x, y) for x in (-2, -1, 1, 2) for y in (-2, -1, 1, 2) if abs(x) != abs(y)), 1
    directions = {BISHOP: oblique, ROOK: straight}.get(kind, straight + oblique)
    return directions, 1 if kind == KING else 7


def _geometry() -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Attacks on an empty board by kind, as a matrix and as lists with their lengths; and the squares in between."""
    reach = np.zeros((7, 64, 64), np.bool_)
    between = np.zeros((64, 64), np.uint64)
    for kind in range(PAWN, KING + 1):
        directions, far = _steps(kind)
        for start in range(64):
            for x, y in directions:
                file, rank, passed = start % 8 + x, start // 8 + y, 0
                for _ in range(far):
                    if not (0 <= file < 8 and 0 <= rank < 8):
                        break
                    end = rank * 8 + file
                    reach[kind, start, end] = True
                    between[start, end] = passed
                    passed |= 1 << end
                    file, rank = file + x, rank + y
    lengths = reach.sum(axis=2, dtype=np.int64)
    targets = np.zeros((7, 64, 27), np.int64)
    for kind in range(PAWN, KING + 1):
        for start in range(64):
            targets[kind, start, : lengths[kind, start]] = np.flatnonzero(reach[kind, start])
    return reach, targets, lengths, between.view(np.int64)


REACH, TARGETS, LENGTHS, BETWEEN = _geometry()


@njit(cache=True)
def flips_of(kinds: Squares) -> int:
    """By which flips positions with these men are the same."""
    return WITH_PAWNS if kinds[0] == PAWN else WITHOUT_PAWNS


@njit(cache=True)
def number(at: Squares, flips: int) -> int:
    """The number of a position, the same for its mirror images."""
    flip = ((7 if at[0] & 7 > 3 else 0) | (56 if at[0] >= 32 else 0)) & flips
    king = at[0] ^ flip
    found: int = (king >> 3) * 4 + (king & 7)
    for man in range(1, at.size):
        found = found * 64 + (at[man] ^ flip)
    return found


@njit(cache=True)
def moved(found: int, at: Squares, flips: int, man: int, end: int) -> int:
    """The number of position ``found``, which is ``at``, once a man other than the strong king stands on ``end``."""
    flip = ((7 if at[0] & 7 > 3 else 0) | (56 if at[0] >= 32 else 0)) & flips
    after: int = found + ((end ^ flip) - (at[man] ^ flip) << 6 * (at.size - 1 - man))
    return after


@njit(cache=True)
def place(found: int, at: Squares) -> None:
    """Writes into ``at`` the position with this number whose strong king stands on the files a to d."""
    for man in range(at.size - 1, 0, -1):
        at[man] = found & 63
        found >>= 6
    at[0] = (found >> 2) * 8 + (found & 3)


@njit(cache=True)
def occupied(at: Squares) -> np.int64:
    """One bit for each square with a man on it."""
    squares: np.int64 = np.int64(0)
    for man in range(at.size):
        squares |= np.int64(1) << at[man]
    return squares


@njit(cache=True)
def _blockers(at: Squares, without: int) -> np.int64:
    """One bit for each square on which a man of the strong side stands, but for the man number ``without``."""
    squares: np.int64 = np.int64(1) << at[0]
    for man in range(2, at.size):
        if man != without:
            squares |= np.int64(1) << at[man]
    return squares


@njit(cache=True)
def attacked(at: Squares, kinds: Squares, target: int, without: int) -> bool:
    """Whether the strong side attacks a square, with the weak king and the man number ``without`` off the board."""
    if REACH[KING, at[0], target]:
        return True
    for man in range(2, at.size):
        if man != without and REACH[kinds[man - 2], at[man], target]:
            path = BETWEEN[at[man], target]
            if path == 0 or not path & _blockers(at, without):
                return True
    return False


@njit(cache=True)
def is_legal(at: Squares, kinds: Squares, turn: int) -> bool:
    """Whether men stand on different squares, flips where they can, and the side that has moved is not in check."""
    for man in range(at.size):
        for other in range(man):
            if at[man] == at[other]:
                return False
        if man >= 2 and kinds[man - 2] == PAWN and not 8 <= at[man] < 56:
            return False
    if turn == WEAK:
        return not REACH[KING, at[0], at[1]]
    return not attacked(at, kinds, at[1], -1)


@njit(cache=True)
def _man_at(at: Squares, square: int) -> int:
    """Which of the strong side's men stands on a square; -1 for none."""
    for man in range(2, at.size):
        if at[man] == square:
            return man
    return -1


@njit(cache=True)
def weak_moves(at: Squares, kinds: Squares, flips: int, strong_to_move: Rows, out: Squares) -> int:
    """The weak side's legal moves as rows (from, to, promotion, value after); the value is the strong side's."""
    count = 0
    start = at[1]
    for choice in range(LENGTHS[KING, start]):
        end = TARGETS[KING, start, choice]
        taken = _man_at(at, end)
        if attacked(at, kinds, end, taken):
            continue
        after = DRAWN  # whatever is taken, what is left cannot mate, or can no longer win
        if taken < 0:
            at[1] = end
            after = strong_to_move[number(at, flips)]
            at[1] = start
        out[count, 0], out[count, 1], out[count, 2], out[count, 3] = start, end, 0, after
        count += 1
    return count


@njit(cache=True)
def _put(out: Squares, count: int, start: int, end: int, promotion: int, after: int) -> int:
    """One more row; returns how many there are now."""
    out[count, 0], out[count, 1], out[count, 2], out[count, 3] = start, end, promotion, after
    return count + 1


@njit(cache=True)
def _pawn_moves(at: Squares, man: int, weak_to_move: Rows, promoted: Rows, out: Squares, count: int) -> int:
    """Adds a pawn's moves: it has nothing to take, since the king is not taken."""
    start = at[man]
    full = occupied(at)
    for step in range(1, 3 if start < 16 else 2):
        end = start + 8 * step
        if full >> end & 1:
            break
        at[man] = end
        if end >= 56:
            found = number(at, WITHOUT_PAWNS)
            count = _put(out, count, start, end, QUEEN, promoted[0, found])
            count = _put(out, count, start, end, ROOK, promoted[1, found])
            count = _put(out, count, start, end, BISHOP, DRAWN)
            count = _put(out, count, start, end, KNIGHT, DRAWN)
        else:
            count = _put(out, count, start, end, 0, weak_to_move[number(at, WITH_PAWNS)])
        at[man] = start
    return count


@njit(cache=True)
def strong_moves(at: Squares, kinds: Squares, flips: int, weak_to_move: Rows, promoted: Rows, out: Squares) -> int:
    """The strong side's legal moves as rows (from, to, promotion, value after): it is never in check."""
    count = 0
    full = occupied(at)
    for mover in range(at.size):
        if mover == 1:
            continue
        kind = KING if mover == 0 else kinds[mover - 2]
        if kind == PAWN:
            count = _pawn_moves(at, mover, weak_to_move, promoted, out, count)
            continue
        start = at[mover]
        for choice in range(LENGTHS[kind, start]):
            end = TARGETS[kind, start, choice]
            if full >> end & 1 or BETWEEN[start, end] & full or (mover == 0 and REACH[KING, end, at[1]]):
                continue
            at[mover] = end
            count = _put(out, count, start, end, 0, weak_to_move[number(at, flips)])
            at[mover] = start
    return count


@njit(cache=True)
def _begin(table: Rows, kinds: Squares, flips: int, promoted: Rows, seeds: Rows) -> None:
    """Marks illegal positions and mates, and says in ``seeds`` how soon a promotion mates."""
    at = np.zeros(kinds.size + 2, np.int64)
    out = np.zeros((MOST_MOVES, 4), np.int64)
    for found in range(table.shape[1]):
        place(found, at)
        for turn in range(2):
            table[turn, found] = DRAWN if is_legal(at, kinds, turn) else ILLEGAL
        if table[WEAK, found] == DRAWN and attacked(at, kinds, at[1], -1):
            table[WEAK, found] = 0 if weak_moves(at, kinds, flips, table[STRONG], out) == 0 else DRAWN
        if flips == WITH_PAWNS and table[STRONG, found] == DRAWN and at[2] >= 48:
            for row in range(strong_moves(at, kinds, flips, table[WEAK], promoted, out)):
                plies = out[row, 3] + 1
                if out[row, 2] != 0 and plies > 0 and (seeds[found] < 0 or plies < seeds[found]):
                    seeds[found] = plies


@njit(cache=True)
def _win(table: Rows, found: int, plies: int) -> int:
    """Notes that the strong side to move wins, unless the position is illegal or known; returns whether it is new."""
    if table[STRONG, found] != DRAWN:
        return 0
    table[STRONG, found] = plies
    return 1


@njit(cache=True)
def _unmove_pawn(table: Rows, at: Squares, man: int, plies: int) -> int:
    end = at[man]
    full = occupied(at)
    found = number(at, WITH_PAWNS)
    new = 0
    for step in range(1, 3 if end >> 3 == 3 else 2):
        start = end - 8 * step
        if start < 8 or full >> start & 1:
            break
        new += _win(table, moved(found, at, WITH_PAWNS, man, start), plies)
    return new


@njit(cache=True)
def _unmove_strong(table: Rows, at: Squares, kinds: Squares, flips: int, plies: int) -> int:
    """Notes the positions from which the strong side reaches a lost one: its men move as they came."""
    new = 0
    full = occupied(at)
    found = number(at, flips)
    for mover in range(at.size):
        if mover == 1:
            continue
        kind = KING if mover == 0 else kinds[mover - 2]
        if kind == PAWN:
            new += _unmove_pawn(table, at, mover, plies)
            continue
        end = at[mover]
        for choice in range(LENGTHS[kind, end]):
            start = TARGETS[kind, end, choice]
            if full >> start & 1 or BETWEEN[end, start] & full:
                continue
            if mover > 0:
                new += _win(table, moved(found, at, flips, mover, start), plies)
            else:
                at[0] = start
                new += _win(table, number(at, flips), plies)
                at[0] = end
    return new


@njit(cache=True)
def _is_lost(table: Rows, at: Squares, kinds: Squares, flips: int) -> bool:
    """Whether every legal move of the weak side, which has one, leads to a position that is won by now."""
    start = at[1]
    found = number(at, flips)
    for choice in range(LENGTHS[KING, start]):
        end = TARGETS[KING, start, choice]
        taken = _man_at(at, end)
        if taken >= 0:
            if not attacked(at, kinds, end, taken):
                return False
        elif table[STRONG, moved(found, at, flips, 1, end)] == DRAWN:  # ILLEGAL where the king would be in check
            return False
    return True


@njit(cache=True)
def _unmove_weak(table: Rows, at: Squares, kinds: Squares, flips: int, plies: int) -> int:
    """Notes the positions from which the weak side reaches a won one and has nothing better."""
    new = 0
    full = occupied(at)
    end = at[1]
    found = number(at, flips)
    for choice in range(LENGTHS[KING, end]):
        start = TARGETS[KING, end, choice]
        before = moved(found, at, flips, 1, start)
        if full >> start & 1 or table[WEAK, before] != DRAWN:
            continue
        at[1] = start
        if _is_lost(table, at, kinds, flips):
            table[WEAK, before] = plies
            new += 1
        at[1] = end
    return new


@njit(cache=True)
def solve(kinds: Squares, promoted: Rows, numbers: int) -> Rows:
    """The table of an endgame with ``numbers`` numbers.

    ``promoted`` holds, for a pawn, the weak side's rows of the tables of queen and rook. Ply by ply: whoever can move
    into a position that is lost in n plies wins in n + 1; who can only move into positions that are won, the last of
    them in n, loses in n + 1.
    """
    flips = flips_of(kinds)
    table = np.zeros((2, numbers), np.int8)
    seeds = np.full(numbers if flips == WITH_PAWNS else 0, -1, np.int8)
    _begin(table, kinds, flips, promoted, seeds)
    last = 0 if seeds.size == 0 else int(seeds.max())
    at = np.zeros(kinds.size + 2, np.int64)
    plies = 0
    new = 1
    while new > 0 or plies <= last:
        new = 0
        for found in range(numbers):  # lost in ``plies``, so won one ply earlier
            if table[WEAK, found] == plies:
                place(found, at)
                new += _unmove_strong(table, at, kinds, flips, plies + 1)
        for found in range(seeds.size):
            if seeds[found] == plies + 1 and table[STRONG, found] == DRAWN:
                table[STRONG, found] = plies + 1
                new += 1
        for found in range(numbers):
            if table[STRONG, found] == plies + 1:
                place(found, at)
                _unmove_weak(table, at, kinds, flips, plies + 2)
        plies += 2
    return table


@njit(cache=True)
def moves_of(at: Squares, kinds: Squares, turn: int, table: Rows, promoted: Rows, out: Squares) -> int:
    """The legal moves as rows (from, to, promotion, value after) of ``out``; returns how many."""
    flips = flips_of(kinds)
    if turn == STRONG:
        return strong_moves(at, kinds, flips, table[WEAK], promoted, out)
    return weak_moves(at, kinds, flips, table[STRONG], out)


@njit(cache=True)
def survey(numbers: Squares, kinds: Squares, turn: int, table: Rows, promoted: Rows) -> NDArray[np.uint8]:
    """For each position: its legal moves, those that keep its outcome, and those that are optimal, shape (n, 3)."""
    at = np.zeros(kinds.size + 2, np.int64)
    out = np.zeros((MOST_MOVES, 4), np.int64)
    counts = np.zeros((numbers.size, 3), np.uint8)
    for row in range(numbers.size):
        place(numbers[row], at)
        value = table[turn, numbers[row]]
        moves = moves_of(at, kinds, turn, table, promoted, out)
        counts[row, 0] = moves
        for move in range(moves):
            after = out[move, 3]
            counts[row, 1] += (after >= 0) == (value >= 0)
            counts[row, 2] += after == (value - 1 if value > 0 else DRAWN)
    return counts


@njit(cache=True)
def is_first(numbers: Squares, size: int) -> NDArray[np.bool_]:
    """Whether each position comes before its image in the diagonal a1-h8, or is its own; for positions of ``size`` men.

    Without pawns that image is the only other position in the table that is the same up to symmetry.
    """
    at = np.zeros(size, np.int64)
    first = np.zeros(numbers.size, np.bool_)
    for row in range(numbers.size):
        place(numbers[row], at)
        for man in range(size):
            at[man] = (at[man] & 7) << 3 | at[man] >> 3
        first[row] = numbers[row] <= number(at, WITHOUT_PAWNS)
    return first
