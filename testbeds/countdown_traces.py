"""Searches for a target, written out step by step: a *stream of search* in a few symbols (Gandhi et al. 2024).

A trace is ``STEP (";" STEP)* "#" EXPR``, where white space means nothing and a step is one of:

===========  ====================  ==============================================================================
step         example               what it says
===========  ====================  ==============================================================================
node         ``3+5=8:8,7``         an operation on two numbers at hand, its result, and what is at hand after it:
                                   the result first, then the other numbers in their order
return       ``!3,5,7``            the state just written is a dead end; back to this earlier state
dead leaf    ``8+7=15:15!``        breadth-first: a node from which no step is permitted, and that is not the goal
move         ``@8,7``              breadth-first: the next nodes are steps from this state
===========  ====================  ==============================================================================

For 22 from 3, 5, 7, with two backtracks: ``3+5=8:8,7;8+7=15:15;!3,5,7;3*5=15:15,7;15-7=8:8;!15,7;15+7=22:22#3*5+7``.
The search begins at the numbers as the prompt shows them and ends with the node that makes the target. Equal states
(the same multiset of numbers) are entered once: a step into a state that the trace has already shown is left out.

*A backtrack* is one return ``!STATE``: the trace gives up a state from which the target cannot be made, and goes back
to an earlier state on the way to it. What is given up was followed down to where nothing new can be done, so each
backtrack belongs to a leaf of its own, and one backtrack may leave several levels at a time.

* ``search="depth_first", backtracks=None``: the search itself. From each state the steps are tried in the order of the
  heuristic; at a dead end it returns to the nearest state with a step that was not tried, until the goal.
* ``search="depth_first", backtracks=k``: one of the distinct solutions, drawn uniformly, with exactly ``k`` dead ends
  beside it. Each leaves a state of the solution's way by a step into a state that is proved not to reach the target,
  and goes down by the heuristic's first new step to a leaf, from which no step is permitted. The state that is left is
  drawn uniformly for each dead end; the dead steps of one state are those that its heuristic would try first, in that
  order; where they are used up, more leaves below them follow.
* ``search="breadth_first"``: level by level, all of them, up to the goal: the states of a level in the order of the
  heuristic, and from each of them all steps in that order. Three and four numbers are always searched to their end.
  The heuristics ``sum_beam`` and ``multiply_beam`` keep only the ``BEAM`` most promising states of each level, which
  is the breadth-first search of Gandhi et al. (with beams of 1 to 5); it is short, and may lose the target.

Heuristics, of the numbers at hand: ``sum`` (default), their mean distance from the target; ``multiply``, the sum of
their distances from the nearest factor of the target above 1; ``none``, no preference. Ties stand in a fixed order:
pairs of numbers from left to right, operators + - * /.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Protocol, runtime_checkable

from numpy.random import Generator

from testbeds.core import ANSWER_MARK, Problem, Step, Trace, TraceStyle, Unrealisable
from testbeds.countdown_search import Rules
from testbeds.countdown_traces_states import (
    HEURISTICS,
    Branch,
    Heuristic,
    Puzzle,
    State,
    as_branches,
    drawn_solution,
    expression_of,
    is_dead,
    is_goal,
    is_over,
    ordered,
    written,
)

SEARCH_SYMBOLS: Final = (";", "!", "@")
"""What searches write beside numbers, operators, brackets and ``= , : #``; part of the task's lexicon in any style."""

USUAL_HEURISTIC = "sum"
BEAM = 10  # reaches the target of a third to a half of the puzzles of four numbers, in 100 to 200 steps
BEAMS: Final = {"sum_beam": "sum", "multiply_beam": "multiply"}
"""Heuristics of a breadth-first search that keeps ``BEAM`` states of a level, by the heuristic that chooses them."""
MOST_STEPS = 1024  # written steps of a depth-first search; a longer text would fit no small model's context
MOST_BREADTH_STEPS = 2048  # of a breadth-first one: the whole tree of any four numbers has at most 2,003
MOST_SEARCHED = 5  # numbers at a state that dead ends leave: the proof for the four after it takes a tenth of a ms

DeadEnd = list[Branch]
"""The steps from a state of the solution's way down to a leaf."""

_BACKTRACK = re.compile(r"!\s*(?=[0-9(])")
_STATE = re.compile(r"=[^=:;!@#]*:([^=:;!@#]*)")


@runtime_checkable
class _Certificate(Protocol):
    @property
    def numbers(self) -> tuple[int, ...]: ...
    @property
    def target(self) -> int: ...
    @property
    def witness(self) -> str: ...


class _Searchable(Protocol):
    """What is asked of a task: Countdown has it."""

    @property
    def rules(self) -> Rules: ...
    @property
    def form(self) -> str: ...


def search_trace(task: _Searchable, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
    """The search of ``style`` for a Countdown problem, by the grammar at the top of this file.

    Raises:
        ValueError: for a style that is no search, an unknown heuristic, or a task whose answer is a chain.
        Unrealisable: where the problem has fewer dead ends than ``backtracks``, the search would be longer than
            ``MOST_STEPS`` or ``MOST_BREADTH_STEPS``, or a beam loses the target.
    """
    if task.form != "expression":
        raise ValueError(
            f"a search is working before an expression, and with form={task.form!r} the whole completion is the answer;"
            f" ask for form='expression' or search='optimal'"
        )
    certificate = problem.certificate
    if not isinstance(certificate, _Certificate):
        raise TypeError(f"a search reads numbers, target and witness, got {type(certificate).__name__}")
    numbers = _as_shown(problem.prompt, certificate.numbers)
    puzzle = Puzzle(numbers=numbers, target=certificate.target, rules=task.rules, witness=certificate.witness)
    steps, answer = search_steps(puzzle, style, rng)
    return Trace.worked(steps, answer, separator=SEARCH_SYMBOLS[0])


def search_steps(puzzle: Puzzle, style: TraceStyle, rng: Generator) -> tuple[tuple[Step, ...], str]:
    """The steps of a search and the expression that it finds; raises as ``search_trace`` does."""
    heuristic = _heuristic(style)
    if style.search == "breadth_first":
        return _breadth_first(puzzle, heuristic, beam=BEAM if style.heuristic in BEAMS else None)
    if style.backtracks is None:
        return _depth_first(puzzle, heuristic)
    return _with_backtracks(puzzle, heuristic, style.backtracks, rng)


def backtracks_in(trace: Trace | str) -> int:
    """How many times the working of a trace, or of any text, returns from a dead end: ``!`` before a number."""
    return len(_BACKTRACK.findall(_working(trace)))


def states_in(trace: Trace | str) -> tuple[tuple[str, ...], ...]:
    """The state after each node of the working, as the numbers written there in ascending order of their text.

    Equal states are equal tuples, so sets of them compare searches (revisits, overlap with another search).
    """
    found = _STATE.findall("".join(_working(trace).split()))
    return tuple(tuple(sorted(text.split(","))) for text in found)


def _working(trace: Trace | str) -> str:
    text = trace.text if isinstance(trace, Trace) else trace
    working, mark, _ = text.rpartition(ANSWER_MARK)
    return working if mark else text


def _as_shown(prompt: str, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers in the order of a prompt such as ``22:3,7,5>``; ascending where it shows others."""
    shown = tuple(map(int, re.findall("[0-9]+", prompt.partition(":")[2])))
    return shown if sorted(shown) == list(numbers) else numbers


def _heuristic(style: TraceStyle) -> Heuristic:
    if style.search == "optimal":
        raise ValueError("search_trace writes depth_first and breadth_first searches, got search='optimal'")
    name = style.heuristic or USUAL_HEURISTIC
    known = [*HEURISTICS, *(BEAMS if style.search == "breadth_first" else ())]
    if name not in known:
        raise ValueError(
            f"TraceStyle.heuristic of search={style.search!r} must be one of {', '.join(known)}, got {name!r}"
        )
    return HEURISTICS[BEAMS.get(name, name)]


def _node(branch: Branch, before: State, *, is_leaf: bool = False) -> Step:
    result = written(branch.state) + ("!" if is_leaf else "")
    operation = branch.line(before)
    return Step(operation=operation, result=result, text=f"{operation}:{result}")


def _to(mark: str, state: State) -> Step:
    result = written(state)
    return Step(operation=mark, result=result, text=f"{mark}{result}")


# ------------------------------------------------------------------------------------------------- depth-first


def _depth_first(puzzle: Puzzle, heuristic: Heuristic) -> tuple[tuple[Step, ...], str]:
    """The whole search. ``way`` holds the states from the root on, with the steps from each that were not yet tried."""
    seen: set[State] = set()
    steps: list[Step] = []
    path: list[Branch] = []
    way = [(puzzle.root, iter(ordered(puzzle.root, puzzle, heuristic)))]
    has_failed = False
    while way:
        state, untried = way[-1]
        branch = next((branch for branch in untried if branch.key not in seen), None)
        if branch is None:
            way.pop()
            path = path[:-1]
            has_failed = True
            continue
        if has_failed:
            steps.append(_to("!", state))
            has_failed = False
        seen.add(branch.key)
        steps.append(_node(branch, state))
        path.append(branch)
        if is_goal(branch.state, puzzle):
            return tuple(steps), expression_of(path, puzzle.root)
        _check_length(steps, MOST_STEPS, puzzle)
        way.append((branch.state, iter(ordered(branch.state, puzzle, heuristic))))
    raise _unreachable(puzzle)


def _check_length(steps: list[Step], most: int, puzzle: Puzzle) -> None:
    if len(steps) >= most:
        shorter = "backtracks=" if most == MOST_STEPS else f"heuristic={USUAL_HEURISTIC}_beam"
        raise Unrealisable(
            f"the search for {puzzle.target} from {puzzle.numbers} takes more than {most} steps; {shorter} asks for"
            f" a shorter one"
        )


def _with_backtracks(
    puzzle: Puzzle, heuristic: Heuristic, backtracks: int, rng: Generator
) -> tuple[tuple[Step, ...], str]:
    way = _solution(puzzle, rng)
    dead_ends = _dead_ends(puzzle, heuristic, way, backtracks, rng)
    steps: list[Step] = []
    for depth, (state, branch) in enumerate(way):
        steps += _shown(state, dead_ends[depth])
        steps.append(_node(branch, state))
    return tuple(steps), expression_of([branch for _, branch in way], puzzle.root)


def _shown(state: State, dead_ends: list[DeadEnd]) -> Iterator[Step]:
    """The dead ends of a state, those that share their first steps together, each with its return."""
    before: list[State] = [state]
    for number, dead_end in enumerate(_grouped(dead_ends)):
        after = [state, *(branch.state for branch in dead_end)]
        shared = next(depth for depth, there in enumerate(after) if there not in before[depth : depth + 1])
        if number:
            yield _to("!", after[shared - 1])
        for depth in range(shared, len(after)):
            yield _node(dead_end[depth - 1], after[depth - 1])
        before = after
    if dead_ends:
        yield _to("!", state)


def _grouped(dead_ends: list[DeadEnd]) -> list[DeadEnd]:
    """The dead ends in the order of a depth-first search whose steps from one state stand as they first come here."""
    first: dict[tuple[State, ...], int] = {}

    def ranks(dead_end: DeadEnd) -> list[int]:
        keys = tuple(branch.key for branch in dead_end)
        return [first.setdefault(keys[:length], len(first)) for length in range(1, len(keys) + 1)]

    return [dead_end for _, dead_end in sorted([(ranks(dead_end), dead_end) for dead_end in dead_ends])]


def _solution(puzzle: Puzzle, rng: Generator) -> list[tuple[State, Branch]]:
    """The way of a drawn solution: each state and the step from it, up to the first that makes the target."""
    way = []
    state = puzzle.root
    for branch in as_branches(drawn_solution(puzzle, rng), state):
        way.append((state, branch))
        state = branch.state
        if is_goal(state, puzzle):
            break
    return way


def _dead_ends(
    puzzle: Puzzle, heuristic: Heuristic, way: list[tuple[State, Branch]], backtracks: int, rng: Generator
) -> list[list[DeadEnd]]:
    """For each state of the way its dead ends, ``backtracks`` in all."""
    seen: set[State] = set()
    chosen: list[list[DeadEnd]] = [[] for _ in way]
    sources = {
        depth: _each_dead_end(puzzle, heuristic, state, seen)
        for depth, (state, _) in enumerate(way)
        if len(state) <= MOST_SEARCHED
    }
    for found in range(backtracks):
        while sources:
            depth = list(sources)[int(rng.integers(len(sources)))]
            dead_end = next(sources[depth], None)
            if dead_end is not None:
                chosen[depth].append(dead_end)
                break
            del sources[depth]
        else:
            raise Unrealisable(
                f"{backtracks} backtracks are asked of a solution of {puzzle.target} from {puzzle.numbers} that has"
                f" {found} dead ends beside it"
            )
    return chosen


def _each_dead_end(puzzle: Puzzle, heuristic: Heuristic, state: State, seen: set[State]) -> Iterator[DeadEnd]:
    """One leaf below each dead step of a state, most promising first; then the other leaves below them."""
    begun = []
    for branch in ordered(state, puzzle, heuristic):
        if branch.key in seen or is_goal(branch.state, puzzle) or not is_dead(branch.state, puzzle):
            continue
        leaves = _leaves(puzzle, heuristic, branch, seen)
        dead_end = next(leaves, None)
        if dead_end is not None:
            begun.append(leaves)
            yield dead_end
    for leaves in begun:
        yield from leaves


def _leaves(puzzle: Puzzle, heuristic: Heuristic, branch: Branch, seen: set[State]) -> Iterator[DeadEnd]:
    """The ways from a dead step to its leaves, by states not yet in ``seen``; each way is added to it."""
    steps = ordered(branch.state, puzzle, heuristic) if len(branch.state) > 1 else []
    if not steps:
        seen.add(branch.key)
        yield [branch]
    for step in steps:
        if step.key not in seen:
            for below in _leaves(puzzle, heuristic, step, seen):
                seen.add(branch.key)
                yield [branch, *below]


# ----------------------------------------------------------------------------------------------- breadth-first


def _breadth_first(puzzle: Puzzle, heuristic: Heuristic, *, beam: int | None) -> tuple[tuple[Step, ...], str]:
    """The whole search; ``beam``: how many states of a level are kept, None for all."""
    seen: set[State] = set()
    steps: list[Step] = []
    kept: list[tuple[State, tuple[Branch, ...]]] = [(puzzle.root, ())]
    while kept:
        level: list[tuple[State, tuple[Branch, ...]]] = []
        for state, path in kept:
            steps.append(_to("@", state))
            for branch in ordered(state, puzzle, heuristic):
                if branch.key in seen:
                    continue
                seen.add(branch.key)
                if is_goal(branch.state, puzzle):
                    steps.append(_node(branch, state))
                    return tuple(steps), expression_of((*path, branch), puzzle.root)
                is_leaf = is_over(branch.state, puzzle.rules)
                steps.append(_node(branch, state, is_leaf=is_leaf))
                _check_length(steps, MOST_BREADTH_STEPS, puzzle)
                if not is_leaf:
                    level.append((branch.state, (*path, branch)))
        level.sort(key=lambda entry: heuristic(entry[0], puzzle.target))
        kept = level[:beam]
    if beam is None:
        raise _unreachable(puzzle)
    raise Unrealisable(f"the {beam} most promising states of each level lose {puzzle.target} from {puzzle.numbers}")


def _unreachable(puzzle: Puzzle) -> ValueError:
    return ValueError(
        f"{puzzle.numbers} do not make {puzzle.target} under {puzzle.rules}; demonstrate a problem by the task that"
        f" made it"
    )
