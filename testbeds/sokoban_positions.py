"""Positions of Sokoban: what an action does, the shortest solutions, and pushes that nothing can mend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from testbeds import sokoban_search
from testbeds.core import Unrealisable
from testbeds.grid_worlds import STEPS
from testbeds.sokoban_search import ENDLESS, GOAL, WALL, Memory, rank_of

_DRAWN = {(0, ""): "_", (GOAL, ""): ".", (0, "box"): "$", (GOAL, "box"): "*", (0, "player"): "@", (GOAL, "player"): "+"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where what moves is; cells count along the rows from 0."""

    player: int
    boxes: tuple[int, ...]
    """In ascending order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What never moves."""

    height: int
    width: int
    cells: tuple[int, ...]
    """For each cell 0, WALL or GOAL."""

    def ahead(self, cell: int, action: str) -> int | None:
        """The cell one action further, or None where a wall or the edge is."""
        row, column = divmod(cell, self.width)
        down, aside = STEPS[action]
        row, column = row + down, column + aside
        if not (0 <= row < self.height and 0 <= column < self.width):
            return None
        other = row * self.width + column
        return None if self.cells[other] == WALL else other

    def on_goals(self, position: Position) -> int:
        """How many boxes are on goals."""
        return sum(self.cells[box] == GOAL for box in position.boxes)

    def board(self, position: Position) -> str:
        """One symbol a cell, row after row."""
        held = {position.player: "player", **dict.fromkeys(position.boxes, "box")}
        letters = ["W" if cell == WALL else _DRAWN[cell, held.get(place, "")] for place, cell in enumerate(self.cells)]
        return "".join(letters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Illegal:
    """Why an action cannot be done."""

    reason: str


def act(room: Room, position: Position, action: str) -> Position | Illegal:
    """The position after an action, or why there is none."""
    ahead = room.ahead(position.player, action)
    if ahead is None:
        return Illegal(reason="walks into a wall")
    if ahead not in position.boxes:
        return Position(player=ahead, boxes=position.boxes)
    beyond = room.ahead(ahead, action)
    if beyond is None:
        return Illegal(reason="pushes a box into a wall")
    if beyond in position.boxes:
        return Illegal(reason="pushes a box into another box")
    return Position(player=ahead, boxes=_pushed(position.boxes, ahead, beyond))


def _pushed(boxes: tuple[int, ...], origin: int, target: int) -> tuple[int, ...]:
    return tuple(sorted([target if box == origin else box for box in boxes]))


# ------------------------------------------------------------------------------------------- shortest solutions


class _Walk(NamedTuple):
    """One action and the position before it."""

    before: Position
    action: str
    ways: int


_BACK = {"U": "D", "D": "U", "L": "R", "R": "L"}


def _search(room: Room, start: Position, deepest: int) -> Memory:
    board, shape = np.array(room.cells, np.uint8), (room.height, room.width)
    return sokoban_search.explore(board, (start.player, *start.boxes), shape, deepest)[1]


def _sources(room: Room, position: Position, depth: int, tables: Memory) -> list[_Walk]:
    """The actions that lead from depth - 1 to this position, in the order U D L R."""
    walks = []
    for action, back in _BACK.items():
        player = room.ahead(position.player, back)
        if player is None:
            continue
        pushed = room.ahead(position.player, action)
        candidates = [position.boxes]
        if pushed is not None and pushed in position.boxes:
            candidates.append(_pushed(position.boxes, pushed, position.player))
        for boxes in candidates:
            if player in boxes:
                continue
            rank = rank_of(player, boxes, len(room.cells))
            if tables.depth[rank] == depth - 1:
                walks.append(_Walk(Position(player=player, boxes=boxes), action, int(tables.ways[rank])))
    return walks


def _ends(room: Room, moves: int, tables: Memory) -> list[_Walk]:
    """The solved positions at the depth of the shortest solutions, in the order of the search."""
    ends = []
    count = sum(cell == GOAL for cell in room.cells)
    for code in tables.queue[: tables.ends[1]].tolist():
        position = Position(player=code & 63, boxes=tuple((code >> (6 * place + 6)) & 63 for place in range(count)))
        rank = rank_of(position.player, position.boxes, len(room.cells))
        if tables.depth[rank] == moves and room.on_goals(position) == count:
            ends.append(_Walk(position, "", int(tables.ways[rank])))
    return ends


def _pick(walks: list[_Walk], rng: Generator) -> _Walk:
    place = int(rng.integers(sum(walk.ways for walk in walks)))
    for walk in walks:
        place -= walk.ways
        if place < 0:
            return walk
    return walks[-1]


def shortest_drawn(room: Room, start: Position, moves: int, rng: Generator) -> str:
    """One of the shortest solutions, each as likely."""
    tables = _search(room, start, moves)
    walk = _pick(_ends(room, moves, tables), rng)
    actions = ""
    for depth in range(moves, 0, -1):
        walk = _pick(_sources(room, walk.before, depth, tables), rng)
        actions = walk.action + actions
    return actions


def shortest(room: Room, start: Position, moves: int) -> Iterator[str]:
    """Every shortest solution once."""
    tables = _search(room, start, moves)
    pending = [(walk.before, "") for walk in _ends(room, moves, tables)]
    while pending:
        position, actions = pending.pop()
        if len(actions) == moves:
            yield actions
            continue
        walks = _sources(room, position, moves - len(actions), tables)
        pending += [(walk.before, walk.action + actions) for walk in walks]


# -------------------------------------------------------------------------------------------------- dead ends


def pushes(room: Room, position: Position) -> dict[str, Position]:
    """The position after each push that can be walked to, by a shortest walk with that push."""
    pending, seen = [(position, "")], {position.player}
    found: dict[str, Position] = {}
    for here, walk in pending:  # grows while it is read, so nearest cells come first
        for action in STEPS:
            after = act(room, here, action)
            if isinstance(after, Illegal):
                continue
            if after.boxes != position.boxes:
                found[walk + action] = after
            elif after.player not in seen:
                seen.add(after.player)
                pending.append((after, walk + action))
    return found


def is_dead(room: Room, position: Position) -> bool:
    """Whether no sequence of actions solves this position: by a search of everything that can follow."""
    board, shape = np.array(room.cells, np.uint8), (room.height, room.width)
    return sokoban_search.explore(board, (position.player, *position.boxes), shape, ENDLESS)[0].moves < 0


def dead_branches(
    room: Room, positions: list[Position], backtracks: int | None, rng: Generator
) -> dict[int, list[str]]:
    """Dead pushes to try along a solution, by place: exactly ``backtracks``, or what a search in drawn order meets.

    Raises:
        Unrealisable: where there are fewer than asked.
    """
    places = [0, *(place for place in range(1, len(positions) - 1) if _is_after_push(positions, place))]
    dead = {
        place: [walk for walk, after in pushes(room, positions[place]).items() if is_dead(room, after)]
        for place in places
    }
    if backtracks is None:
        met: dict[int, list[str]] = {}
        for place, walks in dead.items():
            order = rng.permutation(len(walks) + 1).tolist()  # the last stands for the right push
            met[place] = [walks[branch] for branch in order[: order.index(len(walks))]]
        return met
    branches = [(place, walk) for place, walks in dead.items() for walk in walks]
    if len(branches) < backtracks:
        raise Unrealisable(f"the solution has {len(branches)} dead ends along it, {backtracks} were asked for")
    chosen: dict[int, list[str]] = {}
    for branch in rng.permutation(len(branches))[:backtracks].tolist():
        chosen.setdefault(branches[branch][0], []).append(branches[branch][1])
    return chosen


def _is_after_push(positions: list[Position], place: int) -> bool:
    return positions[place].boxes != positions[place - 1].boxes
