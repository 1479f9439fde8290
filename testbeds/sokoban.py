"""Sokoban: push every box onto a goal. The answer is the sequence of actions.

Texts (white space between symbols is free, and means nothing):

============  ========================  ==========================================================================
what          example                   grammar
============  ========================  ==========================================================================
prompt        ``W__./_$@_/____>``       rows from the top, ``ROW ("/" ROW)* ">"``; beyond the edge there are walls
a cell        ``_``                     ``_`` floor, ``W`` wall, ``.`` goal, ``$`` box, ``@`` player, ``*`` box on
                                        a goal, ``+`` player on a goal
answer        ``L U R``                 ``ACTION+`` of ``U D L R``
.. with work  ``L _$@_/... # L U R``    ``WORKING "#" ACTION+``: one mark; only what follows it is read
============  ========================  ==========================================================================

An action moves the player by one cell; a box that stands there is pushed one cell further. An action into a wall,
beyond the edge, or against a box that cannot move is illegal. An answer is right if every action is legal, all boxes
are on goals after the last one, and it has at most ``limit`` actions; with ``accept="optimal"`` no shorter sequence may
exist. A way through a solved position counts if the last position is solved, too.

Traces write the position after each action (a world model); ``x`` and the position that is taken up again follow a dead
end. A position is the whole board, or the places of the player and of the boxes, ``@12$13``: row and column from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final, Literal

import numpy as np
from numpy.random import Generator

from testbeds import sokoban_search
from testbeds.arithmetic import Flaw
from testbeds.core import ANSWER_MARK, Problem, Step, Task, Trace, TraceStyle, Verdict
from testbeds.grid_worlds import (
    STEPS,
    best_constant,
    canonical_board,
    check_choice,
    check_range,
    check_whole,
    drawn,
    folded,
    malformed,
    ordered,
    read_actions,
    right,
    wrong,
)
from testbeds.sokoban_positions import Illegal, Position, Room, act, dead_branches, shortest, shortest_drawn
from testbeds.sokoban_search import GOAL, WALL, Found
from testbeds.streams import stream

Accept = Literal["any", "optimal"]
State = Literal["board", "places"]

LARGEST_SIDE = 8
MOST_BOXES = 3
MOST_STATES = 1_000_000  # ranks of the search; 7x7 with three boxes has 902,776
LONGEST_SOLUTION = 60
LONGEST_LIMIT = 1_000
BATCH = 64  # layouts drawn at a time
PILOT_DRAWS = 4_096  # a task is refused if fewer than PILOT_HITS of these layouts fit, 0.2 % ...
PILOT_HITS = 8
PILOT_STATES = 4_000_000  # or if so many states, which take seconds to search, do not show as many that fit
MOST_DRAWS = 65_536  # at 0.2 % so many layouts all fail with probability below 1e-50 ...
MOST_STATES_BARREN = 50 * PILOT_STATES // PILOT_HITS  # ... and so many states, below 1e-20


@dataclass(frozen=True, slots=True, kw_only=True)
class SokobanCertificate:
    """The room, the first position, and what search found."""

    room: Room
    start: Position
    moves: int
    """Length of a shortest solution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sokoban:
    """A room with boxes; the answer is a sequence of actions that brings every box onto a goal.

    A layout is uniform over all with this many walls, boxes and goals: walls on any cells; boxes and the player on
    different free cells; goals on free cells whatever stands there. Layouts whose optimal length is not in ``moves``
    (or that have no solution) are drawn again, so problems are uniform over the layouts that fit. The key is the board
    up to rotation and reflection, with the rule on answers; the family leaves out the rule.

    The floor is the success of the best constant answer, blind to the board: counted among the shortest solutions of
    500 fixed problems of the task, on these problems. It is an estimate, high by the luck of the best in that sample
    (of the order of 0.01).
    """

    revision: ClassVar[int] = 1
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = "the board up to rotation and reflection, and the rule on answers"

    height: int = 4
    """Rows, 2 to 8."""
    width: int = 4
    """Columns, 2 to 8. The edge is a wall of its own and is not drawn."""
    walls: int = 2
    """Cells that are walls."""
    boxes: int = 1
    """Boxes, and as many goals; 1 to 3."""
    moves: tuple[int, int] = (2, 12)
    """Smallest and largest length of a shortest solution, both included."""
    accept: Accept = "any"
    """Whether any solution is right, or only a shortest one."""
    limit: int = 100
    """Actions that an answer may have."""
    state: State = "board"
    """How traces write a position: the whole board, or the places of what moves."""

    def __post_init__(self) -> None:
        check_whole("Sokoban.height", self.height, 2, LARGEST_SIDE)
        check_whole("Sokoban.width", self.width, 2, LARGEST_SIDE)
        check_whole("Sokoban.boxes", self.boxes, 1, MOST_BOXES)
        check_whole("Sokoban.walls", self.walls, 0, max(0, self.height * self.width - self.boxes - 1))
        check_range("Sokoban.moves", self.moves, 1, LONGEST_SOLUTION)
        check_whole("Sokoban.limit", self.limit, self.moves[1], LONGEST_LIMIT)
        check_choice("Sokoban.accept", self.accept, ("any", "optimal"))
        check_choice("Sokoban.state", self.state, ("board", "places"))
        states = sokoban_search.space(self.height * self.width, self.boxes)
        if states > MOST_STATES:
            raise ValueError(
                f"Sokoban {self.height}x{self.width} with {self.boxes} boxes has {states} states, at most {MOST_STATES}"
                f" are searched; take a smaller room or fewer boxes"
            )
        hits, draws = _pilot(self.height, self.width, self.walls, self.boxes, self.moves)
        if hits < PILOT_HITS:
            raise ValueError(_too_rare(self, hits, draws))

    @property
    def symbols(self) -> tuple[str, ...]:
        digits = tuple(map(str, range(max(self.height, self.width)))) if self.state == "places" else ()
        return ("_", "W", ".", "$", "@", "*", "+", "/", ">", *STEPS, *digits, "x", ANSWER_MARK)

    @property
    def instructions(self) -> str:
        shortest_only = "Only a shortest solution is accepted. " if self.accept == "optimal" else ""
        return (
            f"This is a Sokoban puzzle. The prompt shows a room of {self.height} rows and {self.width} columns, row by"
            f' row from the top; "/" ends a row and ">" ends the room. Cells: "_" floor, "W" wall, "." goal, "$" box,'
            f' "@" player, "*" box on a goal, "+" player on a goal. Outside the room everything is wall. The actions'
            f' "U", "D", "L", "R" move the player up, down, left or right by one cell; a box in the way is pushed one'
            f" cell further, if that cell is neither wall nor box. Walking into a wall, or against a box that cannot be"
            f" pushed, is illegal and makes the answer wrong. After the last action every box must be on a goal."
            f" {shortest_only}Answer with the actions in order, such as: L U R, at most {self.limit} of them. You may"
            f' work first: then write one "{ANSWER_MARK}" and the actions after it.'
        )

    @property
    def capacity(self) -> int | None:
        return None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        problems: list[Problem] = []
        barren = visited = 0
        shape = (self.height, self.width)
        while len(problems) < count:
            boards, starts = _layouts(self, rng, BATCH)
            most = (count - len(problems), MOST_STATES_BARREN)
            found = sokoban_search.sift(boards, starts, shape, self.moves, most)
            problems += [self._problem(boards[row], starts[row].tolist(), facts) for row, facts in found.kept]
            barren, visited = (0, 0) if found.kept else (barren + BATCH, visited + found.visited)
            if barren >= MOST_DRAWS or visited >= MOST_STATES_BARREN:
                raise ValueError(_too_rare(self, 0, barren))
        return problems

    def enumerate(self) -> Iterable[Problem] | None:
        return None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """A solution drawn uniformly from the shortest ones, with the position after each action.

        ``search="depth_first"`` enters dead ends before it goes on: walks and a push, at the start or just after a push
        of the solution, to a position from which an exhaustive search finds no solution. They are drawn from all such
        pushes, each at most once. With ``backtracks=None`` the dead pushes and the right one are tried in an order
        drawn for each of these places. Pushes that are neither right nor dead are never tried.
        """
        _check_style(style)
        own = _certificate(problem)
        actions = shortest_drawn(own.room, own.start, own.moves, rng)
        if style.search == "depth_first":
            steps = self._search(own, actions, style.backtracks, rng)
        else:
            states = [self._written(own.room, position) for position in _positions(own.room, own.start, actions)[1:]]
            lines = ordered(folded(actions, states, style.group), style, rng)
            hidden = style.granularity == "implicit"
            steps = [Step(operation=a, result=state, text="" if hidden else text) for a, state, text in lines]
        return Trace.worked(tuple(steps), " ".join(actions))

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the rules at the top of this file.

        ``progress`` is 1 for a right answer, 0 for a malformed one; else boxes on goals, after the last action before
        the first illegal one, divided by boxes + 1.
        """
        own = _certificate(problem)
        actions = read_actions(completion, self.limit)
        if isinstance(actions, Flaw):
            return malformed(actions.reason)
        position = own.start
        for place, action in enumerate(actions, 1):
            after = act(own.room, position, action)
            if isinstance(after, Illegal):
                return wrong(f"action {place}, {action}, {after.reason}", self._progress(own.room, position))
            position = after
        at_rest = own.room.on_goals(position)
        if at_rest < self.boxes:
            reason = f"{at_rest} of {self.boxes} boxes are on goals after the last action"
            return wrong(reason, self._progress(own.room, position))
        if self.accept == "optimal" and len(actions) > own.moves:
            reason = f"solved in {len(actions)} actions, {own.moves} are enough"
            return wrong(reason, self._progress(own.room, position))
        return right(f"every box is on a goal after {len(actions)} actions")

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """None: working may precede an answer; see ``answers``."""
        return None

    def answers(self, problem: Problem) -> Iterator[str]:
        """Every shortest solution, as a bare answer."""
        own = _certificate(problem)
        return (" ".join(actions) for actions in shortest(own.room, own.start, own.moves))

    def floor(self, problem: Problem) -> float:
        return _floor(self)

    def _progress(self, room: Room, position: Position) -> float:
        return room.on_goals(position) / (self.boxes + 1)

    def _written(self, room: Room, position: Position) -> str:
        if self.state == "board":
            return drawn(room.board(position), self.height, self.width, "/")
        places = [f"{cell // self.width}{cell % self.width}" for cell in (position.player, *position.boxes)]
        return "@" + "$".join(places)

    def _search(self, own: SokobanCertificate, actions: str, backtracks: int | None, rng: Generator) -> list[Step]:
        positions = _positions(own.room, own.start, actions)
        branches = dead_branches(own.room, positions, backtracks, rng)
        steps = []
        for place, action in enumerate(actions):
            here = self._written(own.room, positions[place])
            for branch in branches.get(place, ()):
                steps += self._walk(own.room, positions[place], branch)
                steps.append(Step(operation="x", result=here, text=f"x {here}"))
            steps += self._walk(own.room, positions[place], action)
        return steps

    def _walk(self, room: Room, position: Position, actions: str) -> list[Step]:
        states = [self._written(room, after) for after in _positions(room, position, actions)[1:]]
        lines = zip(actions, states, strict=True)
        return [Step(operation=action, result=state, text=f"{action} {state}") for action, state in lines]

    def _problem(self, board: sokoban_search.Board, start: list[int], found: Found) -> Problem:
        room = Room(height=self.height, width=self.width, cells=tuple(board.tolist()))
        position = Position(player=start[0], boxes=tuple(start[1:]))
        letters = room.board(position)
        canonical = canonical_board(letters, self.height, self.width)
        return Problem(
            prompt=drawn(letters, self.height, self.width, "/\n") + ">",
            key=f"sokoban:{self.accept};limit={self.limit};{canonical}",
            family=f"sokoban:{canonical}",
            certificate=SokobanCertificate(room=room, start=position, moves=found.moves),
            features={
                "moves": found.moves,
                "pushes": found.pushes,
                "boxes": self.boxes,
                "states": found.states,
                "solutions": found.ways,
            },
        )


def _certificate(problem: Problem) -> SokobanCertificate:
    if not isinstance(problem.certificate, SokobanCertificate):
        raise TypeError(
            f"Sokoban reads problems with a SokobanCertificate, got {type(problem.certificate).__name__}; ask the task"
            f" that made the problem"
        )
    return problem.certificate


def _positions(room: Room, start: Position, actions: str) -> list[Position]:
    """The position before and after each of some legal actions."""
    positions = [start]
    for action in actions:
        after = act(room, positions[-1], action)
        if isinstance(after, Illegal):
            raise TypeError(f"{action} {after.reason} in {room.board(positions[-1])}: not a solution of this problem")
        positions.append(after)
    return positions


def _layouts(task: Sokoban, rng: Generator, count: int) -> tuple[sokoban_search.Board, sokoban_search.Ints]:
    return _uniform_layouts(task.height * task.width, task.walls, task.boxes, rng, count)


def _uniform_layouts(
    cells: int, walls: int, boxes: int, rng: Generator, count: int
) -> tuple[sokoban_search.Board, sokoban_search.Ints]:
    """Boards with walls and goals, shape (count, cells), and player with boxes in ascending order."""
    order = rng.random((count, cells)).argsort(axis=1)
    walled, free = order[:, :walls], order[:, walls:]
    goals = np.take_along_axis(free, rng.random(free.shape).argsort(axis=1)[:, :boxes], axis=1)
    boards = np.zeros((count, cells), np.uint8)
    np.put_along_axis(boards, walled, WALL, axis=1)
    np.put_along_axis(boards, goals, GOAL, axis=1)
    starts = np.concatenate([free[:, boxes : boxes + 1], np.sort(free[:, :boxes], axis=1)], axis=1)
    return boards, starts.astype(np.int64)


@lru_cache(maxsize=64)
def _floor(task: Sokoban) -> float:
    return best_constant(task, task.answers)


# -------------------------------------------------------------------------------------------------- validation


def _check_style(style: TraceStyle) -> None:
    if style.search == "breadth_first":
        raise ValueError(
            "Sokoban writes search='optimal' and search='depth_first', got 'breadth_first': its frontier is thousands"
            " of positions"
        )
    if style.heuristic:
        raise ValueError(f"Sokoban's search has no heuristics, got heuristic={style.heuristic!r}; leave it empty")


@lru_cache(maxsize=256)
def _pilot(height: int, width: int, walls: int, boxes: int, moves: tuple[int, int]) -> tuple[int, int]:
    """(hits, draws): how many layouts fit, until there are PILOT_HITS, PILOT_DRAWS draws or PILOT_STATES states."""
    rng = stream("sokoban", "pilot")
    hits = draws = visited = 0
    while hits < PILOT_HITS and draws < PILOT_DRAWS and visited < PILOT_STATES:
        boards, starts = _uniform_layouts(height * width, walls, boxes, rng, BATCH)
        most = (PILOT_HITS - hits, PILOT_STATES - visited)
        found = sokoban_search.sift(boards, starts, (height, width), moves, most)
        hits, draws, visited = hits + len(found.kept), draws + found.searched, visited + found.visited
    return hits, draws


def _too_rare(task: Sokoban, hits: int, draws: int) -> str:
    return (
        f"Sokoban: {hits} of {draws} random layouts of {task.height}x{task.width} with {task.walls} walls and"
        f" {task.boxes} boxes are solved in {task.moves[0]} to {task.moves[1]} moves at best, too few to draw problems"
        f" from; widen moves, or change height, width, walls or boxes"
    )


TESTBED: Final[type[Task]] = Sokoban
LEVELS: dict[str, Task]


def __getattr__(name: str) -> dict[str, Task]:
    """``LEVELS``, made when it is first asked for: checking a task runs its search, which importing this must not."""
    if name != "LEVELS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _levels()


@lru_cache(maxsize=1)
def _levels() -> dict[str, Task]:
    return {
        "easy": Sokoban(height=4, width=4, walls=2, boxes=1, moves=(2, 10)),
        "medium": Sokoban(height=5, width=5, walls=4, boxes=1, moves=(5, 20)),
        "hard": Sokoban(height=4, width=5, walls=3, boxes=2, moves=(6, 25)),
        "optimal": Sokoban(height=4, width=5, walls=3, boxes=1, moves=(3, 14), accept="optimal", state="places"),
    }
