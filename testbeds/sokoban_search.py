"""Exhaustive search of Sokoban: optimal length, number of shortest solutions, reachable states.

A state is where the player and the boxes are; boxes are alike. Breadth first, one action a step. In memory a state is
its rank, player + cells * (rank of the set of boxes among the sets of its size), and in the queue 6 bits for each
place. Boxes on squares from which no lone box can be pushed to a goal make a state hopeless, exactly; the search for
solutions drops such states, the count of states keeps them.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

WALL, GOAL = 1, 2  # bits of a board's cells
MOST_WAYS = 2**61  # counts of solutions stop here; a sum of four stays below 2**63
ENDLESS = 30_000  # deeper than any search: fewer states than that per level of any supported board

Board = NDArray[np.uint8]
Ints = NDArray[np.int64]
Paper = tuple[Ints, Ints, Ints, Ints]  # boxes now and moved, cells around the player, ranks and kind of an edge


class Found(NamedTuple):
    """What a search found; moves is -1 without a solution."""

    moves: int
    ways: int
    pushes: int
    states: int


class Memory(NamedTuple):
    """Tables by rank of state, the queue, and its two ends; ``depth`` is -1 for states not seen."""

    depth: NDArray[np.int16]
    ways: Ints
    pushes: NDArray[np.int16]
    queue: NDArray[np.int32]
    ends: Ints


def space(cells: int, boxes: int) -> int:
    """Number of ranks."""
    return cells * comb(cells, boxes)


def memory(cells: int, boxes: int) -> Memory:
    """Empty tables."""
    size = space(cells, boxes)
    return Memory(
        depth=np.full(size, -1, np.int16),
        ways=np.zeros(size, np.int64),
        pushes=np.zeros(size, np.int16),
        queue=np.zeros(size, np.int32),
        ends=np.zeros(2, np.int64),
    )


def neighbours(height: int, width: int) -> Ints:
    """The cell above, below, left and right of each cell, -1 beyond the edge; shape (cells, 4)."""
    table = np.full((height * width, 4), -1, np.int64)
    for cell in range(height * width):
        row, column = divmod(cell, width)
        for action, (down, aside) in enumerate(((-1, 0), (1, 0), (0, -1), (0, 1))):
            if 0 <= row + down < height and 0 <= column + aside < width:
                table[cell, action] = (row + down) * width + column + aside
    return table


def rank_of(player: int, boxes: tuple[int, ...], cells: int) -> int:
    """The rank of a state; boxes in ascending order."""
    return player + cells * sum(comb(box, place) for place, box in enumerate(boxes, 1))


@njit(cache=True)
def _rank(player: int, boxes: Ints, cells: int) -> int:
    total = int(boxes[0])
    if boxes.size > 1:
        total += boxes[1] * (boxes[1] - 1) // 2
    if boxes.size > 2:
        total += boxes[2] * (boxes[2] - 1) * (boxes[2] - 2) // 6
    return player + cells * total


@njit(cache=True)
def _hopeless(board: Board, table: Ints) -> Board:
    """GOAL at squares from which a lone box can be pushed to no goal, found by pulling a box away from each goal."""
    cells = board.size
    hopeless = np.full(cells, GOAL, np.uint8)
    pending = np.empty(cells, np.int64)
    size = 0
    for cell in range(cells):
        if board[cell] & GOAL:
            hopeless[cell] = 0
            pending[size] = cell
            size += 1
    while size:
        size -= 1
        cell = pending[size]
        for action in range(4):
            origin = table[cell, action]  # where the box stands before the push, the player one further
            behind = table[origin, action] if origin >= 0 else -1
            if behind >= 0 and not (board[origin] | board[behind]) & WALL and hopeless[origin]:
                hopeless[origin] = 0
                pending[size] = origin
                size += 1
    return hopeless


@njit(cache=True)
def _code(player: int, boxes: Ints) -> int:
    code = player
    for place in range(boxes.size):
        code |= boxes[place] << (6 * place + 6)
    return code


@njit(cache=True)
def _decode(code: int, boxes: Ints) -> int:
    """The player of a queue entry; its boxes go to ``boxes``."""
    for place in range(boxes.size):
        boxes[place] = (code >> (6 * place + 6)) & 63
    return code & 63


@njit(cache=True)
def _count(marks: Board, boxes: Ints) -> int:
    """How many boxes stand on cells with the bit GOAL."""
    total = 0
    for box in boxes:
        total += (marks[box] & GOAL) != 0
    return total


@njit(cache=True)
def _order(boxes: Ints, place: int) -> None:
    if boxes[place - 1] > boxes[place]:
        boxes[place - 1], boxes[place] = boxes[place], boxes[place - 1]


@njit(cache=True)
def _apply(board: Board, around: Ints, boxes: Ints, moved: Ints, action: int) -> int:
    """1 for a push, 0 for a walk, -1 for an illegal action; ``moved`` takes the boxes as they stand afterwards.

    ``around`` holds the cells ahead in each direction, then the cells beyond them.
    """
    ahead, beyond = around[action], around[action + 4]
    if ahead < 0 or board[ahead] & WALL:
        return -1
    pushed = -1
    is_free = beyond >= 0 and not board[beyond] & WALL
    for place in range(boxes.size):
        moved[place] = boxes[place]
        pushed = place if boxes[place] == ahead else pushed
        is_free = is_free and boxes[place] != beyond
    if pushed < 0:
        return 0
    moved[pushed] = beyond
    for place in range(1, boxes.size):  # ascending again: bubbles two ways, one box is out of place
        _order(moved, place)
        _order(moved, boxes.size - place)
    return 1 if is_free else -1


@njit(cache=True)
def _record(tables: Memory, places: Ints, code: int) -> None:
    """Count one edge, from the state of rank places[0] to that of places[1]; places[2] tells a push by 1."""
    depth, ways, pushes, queue, ends = tables
    source, target = places[0], places[1]
    steps = pushes[source] + places[2]
    if depth[target] < 0:
        depth[target], ways[target], pushes[target] = depth[source] + 1, ways[source], steps
        queue[ends[1]] = code
        ends[1] += 1
    elif depth[target] == depth[source] + 1:
        ways[target] = min(ways[target] + ways[source], MOST_WAYS)
        pushes[target] = min(pushes[target], steps)


@njit(cache=True)
def _expand(layout: tuple[Board, Ints, Board], paper: Paper, player: int, tables: Memory) -> None:
    """Record the states one action from the boxes ``paper[0]``, but those with a box on a lost cell."""
    board, table, lost = layout
    boxes, moved, around, places = paper
    for action in range(4):
        around[action] = table[player, action]
        around[action + 4] = table[around[action], action] if around[action] >= 0 else -1
    places[0] = _rank(player, boxes, board.size)
    for action in range(4):
        places[2] = _apply(board, around, boxes, moved, action)
        if places[2] == 0 or (places[2] == 1 and _count(lost, moved) == 0):
            places[1] = _rank(around[action], moved, board.size)
            _record(tables, places, _code(around[action], moved))


@njit(cache=True)
def _begin(start: Ints, boxes: Ints, cells: int, tables: Memory) -> None:
    """Forget the search before and put the start at the head of the queue."""
    depth, ways, pushes, queue, ends = tables
    for entry in range(ends[1]):
        depth[_rank(_decode(queue[entry], boxes), boxes, cells)] = -1
    for place in range(boxes.size):
        boxes[place] = start[place + 1]
    rank = _rank(start[0], boxes, cells)
    depth[rank], ways[rank], pushes[rank], queue[0] = 0, 1, 0, _code(start[0], boxes)
    ends[0], ends[1] = 0, 1


@njit(cache=True)
def _explore(board: Board, table: Ints, start: Ints, deepest: int, tables: Memory) -> tuple[int, int, int, int]:
    """Search from ``start`` (player, boxes ascending), to the first solutions; to the last state if deepest is -1.

    (moves, ways, pushes, states); without a solution moves is -1. Leaves the tables filled for the states in the queue.
    """
    depth, ways, pushes, queue, ends = tables
    size = start.size - 1
    paper = (np.empty(size, np.int64), np.empty(size, np.int64), np.empty(8, np.int64), np.empty(3, np.int64))
    boxes = paper[0]
    _begin(start, boxes, board.size, tables)
    lost = _hopeless(board, table) if deepest >= 0 else np.zeros(board.size, np.uint8)
    best, best_ways, best_pushes = -1, 0, 0
    if _count(lost, boxes):
        return best, best_ways, best_pushes, ends[1]
    while ends[0] < ends[1]:
        player = _decode(queue[ends[0]], boxes)
        rank = _rank(player, boxes, board.size)
        now = depth[rank]
        if _count(board, boxes) == size and (best < 0 or now == best):
            best_pushes = pushes[rank] if best < 0 else min(best_pushes, pushes[rank])
            best_ways = min(best_ways + ways[rank], MOST_WAYS)
            best = now
        if deepest < 0 or (now < deepest and (best < 0 or now < best)):
            _expand((board, table, lost), paper, player, tables)
        ends[0] += 1
    return best, best_ways, best_pushes, ends[1]


class Sifted(NamedTuple):
    """The layouts of a batch that fit, and what it took to find them."""

    kept: list[tuple[int, Found]]
    """(row, what was found), where the states are all reachable ones."""
    searched: int
    """Layouts that were searched."""
    visited: int
    """States that the searches visited."""


def sift(boards: Board, starts: Ints, shape: tuple[int, int], moves: tuple[int, int], most: tuple[int, int]) -> Sifted:
    """The first layouts whose optimal length is in range, until so many fit or so many states are visited: ``most``.

    Layouts with MOST_WAYS shortest solutions or more, which cannot be counted, are passed over.
    """
    tables, table = memory(boards.shape[1], starts.shape[1] - 1), neighbours(*shape)
    kept: list[tuple[int, Found]] = []
    searched = visited = 0
    for row, (board, start) in enumerate(zip(boards, starts, strict=True)):
        if len(kept) >= most[0] or visited >= most[1]:
            break
        best = Found(*_explore(board, table, start, moves[1], tables))
        searched, visited = searched + 1, visited + best.states
        if best.moves < moves[0] or best.ways >= MOST_WAYS:
            continue
        states = _explore(board, table, start, -1, tables)[3]
        visited += states
        kept.append((row, best._replace(states=states)))
    return Sifted(kept, searched, visited)


def explore(board: Board, start: tuple[int, ...], shape: tuple[int, int], deepest: int) -> tuple[Found, Memory]:
    """One search with the tables it leaves; ``deepest=-1`` walks every reachable state, hopeless ones too."""
    tables = memory(board.size, len(start) - 1)
    return Found(*_explore(board, neighbours(*shape), np.array(start, np.int64), deepest, tables)), tables
