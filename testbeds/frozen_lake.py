"""FrozenLake: cross the ice to the goal without falling into a hole. The answer is the sequence of actions.

Texts (white space between symbols is free, and means nothing):

============  ==========================  ========================================================================
what          example                     grammar
============  ==========================  ========================================================================
prompt        ``SFF/FHF/FFG>``            rows from the top, ``ROW ("/" ROW)* ">"``
a cell        ``F``                       ``S`` start, ``F`` frozen, ``H`` hole, ``G`` goal
answer        ``D D R R``                 ``ACTION+`` of ``U D L R``
.. with work  ``D @10 D @20 # D D R R``   ``WORKING "#" ACTION+``: one mark; only what follows it is read
============  ==========================  ========================================================================

The rules are Gymnasium's: an action moves by one cell, at the edge it leads nowhere; the episode ends in a hole or at
the goal. On slippery ice an action goes where it should with probability 1/3 and to either side, at a right angle, with
1/3 each. An answer has at most ``horizon`` actions and is right if

* dry ice: no action falls into a hole and the last one, not an earlier one, reaches the goal; with ``accept="optimal"``
  no shorter sequence may exist;
* slippery ice: the sequence is a plan, fixed beforehand; what follows the end of an episode has no effect. The
  probability that it reaches the goal is at least ``share`` of the best that any plan of at most ``horizon`` actions
  has. Both are exact (whole numbers over 3**t).

Traces are a world model. Dry: the place after each action, ``@12`` (row and column from 0), or the board with ``@`` on
it; ``x`` and the state that is taken up again follow a fall. Slippery: the weight of each cell that has one, over 3**t
after t actions, ``00=1;01=2``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, nextafter
from typing import ClassVar, Final, Literal

from numpy.random import Generator

from testbeds.arithmetic import Flaw
from testbeds.core import ANSWER_MARK, Problem, Step, Task, Trace, TraceStyle, Verdict
from testbeds.frozen_lake_maps import (
    Ends,
    Lake,
    falls_drawn,
    layouts_counted,
    layouts_drawn,
    one_of_each_form,
    shortest,
    shortest_drawn,
    way_counts,
)
from testbeds.frozen_lake_plans import LONGEST_PLAN, advance, best_plan
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
from testbeds.streams import stream

Accept = Literal["any", "optimal"]
State = Literal["board", "places"]

LARGEST_SIDE = 8
LONGEST_WAY = 64
LONGEST_HORIZON = 1_000
LARGEST_DENOMINATOR = 1_000  # of share
MOST_LAYOUTS = 20_000  # maps that are walked within a few seconds
BATCH = 64  # maps drawn at a time
PILOT_DRAWS = 2_048  # a task is refused if fewer than PILOT_HITS of these maps fit, 0.5 % ...
PILOT_HITS = 10
MOST_DRAWS = 16_384  # ... so that this many all fail with probability below 1e-35 at 0.5 %


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenLakeCertificate:
    """The map and what is known of it."""

    lake: Lake
    moves: int
    """Length of a shortest way over dry ice."""
    plan: str
    """Slippery: a best plan; dry: empty."""
    plan_weight: int
    """Slippery: the probability that this plan reaches the goal is plan_weight / 3**horizon; dry: 1."""
    seeing_weight: int
    """The same for the best policy that sees every slip, over as many actions; dry: 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenLake:
    """A lake with holes; the answer is a sequence of actions that reaches the goal.

    A map is uniform over all with this many holes (and these ends) whose shortest way over dry ice has a length in
    ``moves``. The key is the map up to rotation and reflection, with the rules; the family leaves out the rules.

    The floor is the success of the best constant answer, blind to the map: counted among the shortest ways (slippery:
    the best plans) of 500 fixed problems of the task, on these problems. It is an estimate, high by the luck of the
    best in that sample (of the order of 0.01).
    """

    revision: ClassVar[int] = 1
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = "the map up to rotation and reflection, and the rules on slips and answers"

    height: int = 4
    """Rows, 2 to 8."""
    width: int = 4
    """Columns, 2 to 8."""
    holes: int = 4
    """Cells that are holes."""
    ends: Ends = "corners"
    """``corners``: start at the top left, goal at the bottom right; ``anywhere``: both on any cells."""
    moves: tuple[int, int] = (1, 64)
    """Smallest and largest length of a shortest way over dry ice, both included."""
    slippery: bool = False
    """Whether actions slip."""
    horizon: int = 100
    """Actions that an answer may have: enough for every map of the task."""
    accept: Accept = "any"
    """Dry: whether any way is right, or only a shortest one."""
    share: tuple[int, int] = (1, 1)
    """Slippery: numerator and denominator, in lowest terms, of the part of the best success that is asked for."""
    state: State = "board"
    """How traces write a state: the board, or places. Slippery ice has ``places``, with a weight each."""

    def __post_init__(self) -> None:
        check_whole("FrozenLake.height", self.height, 2, LARGEST_SIDE)
        check_whole("FrozenLake.width", self.width, 2, LARGEST_SIDE)
        check_whole("FrozenLake.holes", self.holes, 0, self.height * self.width - 2)
        check_choice("FrozenLake.ends", self.ends, ("corners", "anywhere"))
        check_range("FrozenLake.moves", self.moves, 1, LONGEST_WAY)
        check_choice("FrozenLake.slippery", self.slippery, (True, False))
        check_choice("FrozenLake.accept", self.accept, ("any", "optimal"))
        check_choice("FrozenLake.state", self.state, ("board", "places"))
        check_whole("FrozenLake.horizon", self.horizon, 1, LONGEST_PLAN if self.slippery else LONGEST_HORIZON)
        _check_rules(self)
        hits = _pilot(self)
        if hits < PILOT_HITS:
            raise ValueError(_too_rare(self, hits, PILOT_DRAWS))

    @property
    def symbols(self) -> tuple[str, ...]:
        highest = 9 if self.slippery else max(self.height, self.width) - 1
        digits = tuple(map(str, range(highest + 1))) if self.state == "places" else ()
        marks = ("=", ";") if self.slippery else ("@", "x")
        return ("F", "S", "G", "H", "/", ">", *STEPS, *digits, *marks, ANSWER_MARK)

    @property
    def instructions(self) -> str:
        return (
            f"The prompt shows a frozen lake of {self.height} rows and {self.width} columns, row by row from the top;"
            f' "/" ends a row and ">" ends the lake. Cells: "S" start, "F" frozen, "H" hole, "G" goal. The actions "U",'
            f' "D", "L", "R" move up, down, left or right by one cell; at the edge an action leads nowhere. '
            f"{self._asked()} Answer with the actions in order, such as: D D R, at most {self.horizon} of them. You may"
            f' work first: then write one "{ANSWER_MARK}" and the actions after it.'
        )

    @property
    def capacity(self) -> int | None:
        return len(self._walk()) if self._is_walkable else None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        problems: list[Problem] = []
        barren = 0
        while len(problems) < count:
            lakes = layouts_drawn((self.height, self.width), self.holes, self.ends, rng, BATCH)
            fit = [lake for lake in lakes if self._fits(lake)][: count - len(problems)]
            problems += [self._problem(lake) for lake in fit]
            barren = 0 if fit else barren + BATCH
            if barren >= MOST_DRAWS:
                raise ValueError(_too_rare(self, 0, barren))
        return problems

    def enumerate(self) -> Iterable[Problem] | None:
        """One map of each key, drawn from its images."""
        return map(self._problem, self._walk()) if self._is_walkable else None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """Dry: a way drawn uniformly from the shortest ones; slippery: a best plan, always the same one.

        ``search="depth_first"`` shows falls before it goes on: actions into a hole, each from a place on the way and
        each at most once; with ``backtracks=None`` the falls and the right action are tried in an order drawn for each
        place.
        """
        self._check_style(style)
        own = _certificate(problem)
        actions = own.plan if self.slippery else shortest_drawn(own.lake, rng)
        if style.search == "depth_first":
            return Trace.worked(tuple(self._search(own.lake, actions, style.backtracks, rng)), " ".join(actions))
        lines = ordered(folded(actions, self._states(own.lake, actions), style.group), style, rng)
        is_hidden = style.granularity == "implicit"
        steps = tuple(Step(operation=a, result=state, text="" if is_hidden else text) for a, state, text in lines)
        return Trace.worked(steps, " ".join(actions))

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the rules at the top of this file.

        ``progress`` is 1 for a right answer, 0 for a malformed one and after a fall. Else: dry, the share of the
        shortest way's length, plus one, by which the last place is closer to the goal; slippery, the probability of
        success divided by the best plan's.
        """
        own = _certificate(problem)
        actions = read_actions(completion, self.horizon)
        if isinstance(actions, Flaw):
            return malformed(actions.reason)
        return self._judge_plan(own, actions) if self.slippery else self._judge_way(own, actions)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """None: working may precede an answer; see ``answers``."""
        return None

    def answers(self, problem: Problem) -> Iterator[str]:
        """As bare answers: every shortest way over dry ice; one best plan over slippery ice."""
        own = _certificate(problem)
        return (" ".join(actions) for actions in ([own.plan] if self.slippery else shortest(own.lake)))

    def floor(self, problem: Problem) -> float:
        return _floor(self)

    @property
    def _is_walkable(self) -> bool:
        return layouts_counted((self.height, self.width), self.holes, self.ends) <= MOST_LAYOUTS

    def _walk(self) -> tuple[Lake, ...]:
        return one_of_each_form((self.height, self.width), self.holes, self.ends, self.moves)

    def _asked(self) -> str:
        if not self.slippery:
            shortest_only = " along a shortest way" if self.accept == "optimal" else ""
            return (
                f"Lead from the start to the goal{shortest_only} without entering a hole; the last action must be the"
                f" one that reaches the goal."
            )
        part = "" if self.share == (1, 1) else f"{self.share[0]}/{self.share[1]} of "
        return (
            f"The ice is slippery: each action goes where it should with probability 1/3, and to either side at a"
            f" right angle with 1/3 each; holes and the goal end the walk. Give a fixed plan whose probability of"
            f" reaching the goal is at least {part}the highest that any plan of at most {self.horizon} actions has."
        )

    def _fits(self, lake: Lake) -> bool:
        return self.moves[0] <= lake.distances().get(lake.start, -1) <= self.moves[1]

    def _problem(self, lake: Lake) -> Problem:
        distances, letters = lake.distances(), lake.letters()
        moves, canonical = distances[lake.start], canonical_board(letters, lake.height, lake.width)
        weight, seeing, plan = best_plan(lake.ice(), self.horizon) if self.slippery else (1, 1, "")
        features: dict[str, int | float] = {
            "moves": moves,
            "holes": self.holes,
            "ways": way_counts(lake, distances)[lake.start],
        }
        if self.slippery:
            features["success"] = weight / 3**self.horizon
            features["success_seeing"] = seeing / 3**self.horizon
        return Problem(
            prompt=drawn(letters, lake.height, lake.width, "/\n") + ">",
            key=f"frozen_lake:{_rules_text(self)};{canonical}",
            family=f"frozen_lake:{canonical}",
            certificate=FrozenLakeCertificate(
                lake=lake, moves=moves, plan=plan, plan_weight=weight, seeing_weight=seeing
            ),
            features=features,
        )

    def _judge_way(self, own: FrozenLakeCertificate, actions: str) -> Verdict:
        lake, cell = own.lake, own.lake.start
        for place, action in enumerate(actions, 1):
            cell = lake.after(cell, action)
            if cell in lake.holes:
                return wrong(f"action {place}, {action}, falls into a hole", 0.0)
            if cell == lake.goal and place < len(actions):
                return wrong(
                    f"action {place} reaches the goal and {len(actions) - place} more follow", self._near(own, 0)
                )
        distance = lake.distances()[cell]
        if distance:
            return wrong(f"the goal is {distance} actions away after the last one", self._near(own, distance))
        if self.accept == "optimal" and len(actions) > own.moves:
            return wrong(f"{len(actions)} actions, {own.moves} are enough", self._near(own, 0))
        return right(f"action {len(actions)} reaches the goal")

    def _near(self, own: FrozenLakeCertificate, distance: int) -> float:
        return max(0, own.moves - distance) / (own.moves + 1)

    def _judge_plan(self, own: FrozenLakeCertificate, actions: str) -> Verdict:
        ice = own.lake.ice()
        belief = [int(cell == ice.start) for cell in range(self.height * self.width)]
        for action in actions:
            belief = advance(ice, belief, action)
        weight = belief[ice.goal] * 3 ** (self.horizon - len(actions))
        said = f"the goal is reached with probability {belief[ice.goal]}/{3 ** len(actions)}"
        best = f"the best plan has {own.plan_weight}/{3**self.horizon}"
        if weight * self.share[1] >= own.plan_weight * self.share[0]:
            return right(f"{said}; {best}")
        return wrong(f"{said}; {best}", min(weight / own.plan_weight, nextafter(1, 0)))

    def _states(self, lake: Lake, actions: str) -> list[str]:
        if not self.slippery:
            cells = [lake.start]
            for action in actions:
                cells.append(lake.after(cells[-1], action))
            return [self._written(lake, cell) for cell in cells[1:]]
        ice = lake.ice()
        states, belief = [], [int(cell == lake.start) for cell in range(self.height * self.width)]
        for action in actions:
            belief = advance(ice, belief, action)
            states.append(";".join([f"{self._place(c)}={weight}" for c, weight in enumerate(belief) if weight]))
        return states

    def _place(self, cell: int) -> str:
        return f"{cell // self.width}{cell % self.width}"

    def _written(self, lake: Lake, cell: int) -> str:
        if self.state == "places":
            return f"@{self._place(cell)}"
        letters = lake.letters()
        return drawn(f"{letters[:cell]}@{letters[cell + 1 :]}", self.height, self.width, "/")

    def _search(self, lake: Lake, actions: str, backtracks: int | None, rng: Generator) -> list[Step]:
        cells = [lake.start]
        for action in actions:
            cells.append(lake.after(cells[-1], action))
        falls = falls_drawn(lake, cells[:-1], backtracks, rng)
        steps = []
        for place, action in enumerate(actions):
            here = self._written(lake, cells[place])
            for fall in falls[place]:
                steps.append(_step(fall, self._written(lake, lake.after(cells[place], fall))))
                steps.append(_step("x", here))
            steps.append(_step(action, self._written(lake, cells[place + 1])))
        return steps

    def _check_style(self, style: TraceStyle) -> None:
        if style.search == "breadth_first" or (self.slippery and style.search != "optimal"):
            raise ValueError(
                f"FrozenLake writes search='optimal', and 'depth_first' on dry ice, got search={style.search!r} with"
                f" slippery={self.slippery}"
            )
        if style.heuristic:
            raise ValueError(
                f"FrozenLake's search has no heuristics, got heuristic={style.heuristic!r}; leave it empty"
            )


def _step(operation: str, result: str) -> Step:
    return Step(operation=operation, result=result, text=f"{operation} {result}")


def _certificate(problem: Problem) -> FrozenLakeCertificate:
    if not isinstance(problem.certificate, FrozenLakeCertificate):
        raise TypeError(
            f"FrozenLake reads problems with a FrozenLakeCertificate, got {type(problem.certificate).__name__}; ask the"
            f" task that made the problem"
        )
    return problem.certificate


def _rules_text(task: FrozenLake) -> str:
    rule = f"slippery;share={task.share[0]}/{task.share[1]}" if task.slippery else task.accept
    return f"{rule};horizon={task.horizon}"


@lru_cache(maxsize=64)
def _floor(task: FrozenLake) -> float:
    return best_constant(task, task.answers)


# -------------------------------------------------------------------------------------------------- validation


def _check_rules(task: FrozenLake) -> None:
    _check_share(task.share)
    if task.slippery and (task.state != "places" or task.accept != "any"):
        raise ValueError(
            f"on slippery ice FrozenLake has state='places' and accept='any' (share says how good a plan must be), got"
            f" state={task.state!r}, accept={task.accept!r}"
        )
    if not task.slippery and task.share != (1, 1):
        raise ValueError(f"FrozenLake.share goes with slippery=True, got share={task.share} without it")
    longest = min(task.moves[1], task.height * task.width - task.holes - 1)  # a way stands on no cell twice
    if task.horizon < longest:
        raise ValueError(
            f"FrozenLake.horizon={task.horizon} lets no answer reach a goal that is {longest} actions away, as moves="
            f"{task.moves} permits; take a horizon of at least {longest}, or lower moves[1] to {task.horizon}"
        )


def _check_share(share: object) -> None:
    match share:
        case (top, bottom) if isinstance(share, tuple) and type(top) is int and type(bottom) is int:
            if 1 <= top <= bottom <= LARGEST_DENOMINATOR and gcd(top, bottom) == 1:
                return
    raise ValueError(
        f"FrozenLake.share must be a tuple (numerator, denominator) of whole numbers in lowest terms, 1 <= numerator <="
        f" denominator <= {LARGEST_DENOMINATOR}, got {share!r}"
    )


def _pilot(task: FrozenLake) -> int:
    """How many of PILOT_DRAWS maps fit, counted up to PILOT_HITS."""
    rng, hits = stream("frozen_lake", "pilot"), 0
    for _ in range(PILOT_DRAWS // BATCH):
        lakes = layouts_drawn((task.height, task.width), task.holes, task.ends, rng, BATCH)
        hits += sum(task.moves[0] <= lake.distances().get(lake.start, -1) <= task.moves[1] for lake in lakes)
        if hits >= PILOT_HITS:
            break
    return hits


def _too_rare(task: FrozenLake, hits: int, draws: int) -> str:
    return (
        f"FrozenLake: in {hits} of {draws} random maps of {task.height}x{task.width} with {task.holes} holes a shortest"
        f" way of {task.moves[0]} to {task.moves[1]} actions leads from start to goal, too few to draw problems from;"
        f" widen moves, or change height, width, holes or ends"
    )


TESTBED: Final[type[Task]] = FrozenLake
LEVELS: Final[dict[str, Task]] = {
    "easy": FrozenLake(height=4, width=4, holes=4, ends="anywhere", moves=(2, 6), horizon=20),
    "medium": FrozenLake(height=5, width=5, holes=8, ends="anywhere", moves=(4, 12), horizon=40),
    "hard": FrozenLake(height=8, width=8, holes=20, moves=(14, 30), horizon=100, accept="optimal", state="places"),
    "slippery": FrozenLake(
        height=4, width=4, holes=3, ends="anywhere", moves=(1, 6), slippery=True, horizon=6, state="places"
    ),
}
