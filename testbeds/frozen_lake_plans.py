"""The slippery lake in exact numbers: what a plan achieves, the best plan, and the best that seeing each slip allows.

On slippery ice an action goes where it should with probability 1/3, and to either side, at a right angle, with 1/3
each. So after t actions every probability is a whole number over 3**t, and all of this module is whole numbers. A plan
is a sequence of actions that is fixed beforehand (open loop).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

ACTIONS = "LDRU"  # in a circle: the neighbours of an action are its slips
LONGEST_PLAN = 14  # actions; the search for the best plan grows with them: 5 ms on average there, 55 ms at most seen

Ints = NDArray[np.int64]


class Ice(NamedTuple):
    """A map as numbers. Holes and goal lead to themselves."""

    ahead: Ints
    """The cell after each action of ACTIONS without a slip, shape (cells, 4)."""
    start: int
    goal: int


def advance(ice: Ice, belief: list[int], action: str) -> list[int]:
    """Weights of all cells after one more action; their sum grows by a factor of 3."""
    middle = ACTIONS.index(action)
    rows = ice.ahead.tolist()
    after = [0] * len(belief)
    for cell, weight in enumerate(belief):
        if weight:
            for slip in (-1, 0, 1):
                after[rows[cell][(middle + slip) % 4]] += weight
    return after


@njit(cache=True)
def _values(ahead: Ints, goal: int, horizon: int) -> Ints:
    """Best weight of the goal with r actions left, over 3**r, where each action sees the cell that it starts from."""
    cells = ahead.shape[0]
    values = np.zeros((horizon + 1, cells), np.int64)
    values[0, goal] = 1
    for left in range(1, horizon + 1):
        for cell in range(cells):
            for action in range(4):
                total = 0
                for slip in range(3):
                    total += values[left - 1, ahead[cell, (action + slip + 3) % 4]]
                values[left, cell] = max(values[left, cell], total)
    return values


@njit(cache=True)
def _push(ahead: Ints, beliefs: Ints, depth: int, action: int) -> None:
    """beliefs[depth + 1] after ``action`` (the middle one of three slips) from beliefs[depth]."""
    for cell in range(ahead.shape[0]):
        beliefs[depth + 1, cell] = 0
    for cell in range(ahead.shape[0]):
        if beliefs[depth, cell]:
            for slip in range(3):
                beliefs[depth + 1, ahead[cell, (action + slip + 3) % 4]] += beliefs[depth, cell]


@njit(cache=True)
def _bound(beliefs: Ints, values: Ints, depth: int) -> int:
    """What no plan that begins like this one can exceed, in units of 3**-horizon."""
    total = 0
    for cell in range(beliefs.shape[1]):
        total += beliefs[depth, cell] * values[values.shape[0] - 1 - depth, cell]
    return total


@njit(cache=True)
def _rank_children(ahead: Ints, beliefs: Ints, values: Ints, depth: int, bounds: Ints) -> None:
    """bounds[depth] becomes the four children's bounds, and behind them the children, the most promising first."""
    for action in range(4):
        _push(ahead, beliefs, depth, action)
        bound = _bound(beliefs, values, depth + 1)
        place = action
        while place > 0 and bounds[depth, place - 1] < bound:
            bounds[depth, place], bounds[depth, place + 4] = bounds[depth, place - 1], bounds[depth, place + 3]
            place -= 1
        bounds[depth, place], bounds[depth, place + 4] = bound, action


@njit(cache=True)
def _best_plan(ahead: Ints, start: int, goal: int, horizon: int) -> tuple[int, int, Ints]:
    """(weight of the best plan, weight of the best that sees, the plan): branch and bound, the better bound first."""
    values = _values(ahead, goal, horizon)
    beliefs = np.zeros((horizon + 1, ahead.shape[0]), np.int64)
    bounds = np.zeros((horizon + 1, 8), np.int64)
    tried = np.zeros(horizon + 1, np.int64)
    best, plan = -1, np.zeros(horizon, np.int64)
    beliefs[0, start] = 1
    _rank_children(ahead, beliefs, values, 0, bounds)
    depth = 0
    while depth >= 0:
        if tried[depth] == 4 or bounds[depth, tried[depth]] <= best:
            depth -= 1
            continue
        bound, action = bounds[depth, tried[depth]], bounds[depth, tried[depth] + 4]
        tried[depth] += 1
        if depth + 1 == horizon:
            best = bound
            for place in range(horizon):
                plan[place] = bounds[place, tried[place] + 3]
            continue
        _push(ahead, beliefs, depth, action)
        depth += 1
        tried[depth] = 0
        _rank_children(ahead, beliefs, values, depth, bounds)
    return best, values[horizon, start], plan


def best_plan(ice: Ice, horizon: int) -> tuple[int, int, str]:
    """(weight of the best plan, weight of the best that sees every slip, the plan); weights are over 3**horizon.

    The second one is the optimum of the Markov decision process over ``horizon`` actions, by dynamic programming.
    """
    best, seeing, plan = _best_plan(ice.ahead, ice.start, ice.goal, horizon)
    return int(best), int(seeing), "".join([ACTIONS[action] for action in plan])
