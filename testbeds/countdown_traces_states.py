"""The states of a search for a target: the numbers at hand, what can be done with them, and how they are written.

A state is a tuple of exact fractions, as (numerator, denominator) in lowest terms. A step takes two of its values; the
result stands first in the next state and the other values follow in their order. States with the same multiset of
values are equal, whatever led to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, isqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from testbeds.arithmetic import PRECEDENCE, Flaw, apply, parse, write
from testbeds.countdown_search import Rules, Tree, positions, solution
from testbeds.countdown_traces_kernel import OPERATIONS, Ints, find, rule_code

Value = tuple[int, int]
State = tuple[Value, ...]
Heuristic = Callable[[State, int], float]

MOST_COUNTED = 5  # numbers up to which the distinct solutions are listed, to draw one of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Puzzle:
    """What a search is for."""

    numbers: tuple[int, ...]
    """In the order in which they are shown."""
    target: int
    rules: Rules
    witness: str
    """A right expression."""

    @property
    def root(self) -> State:
        """The state before the first step."""
        return tuple((number, 1) for number in self.numbers)


class Branch(NamedTuple):
    """One step from a state."""

    left: int
    """The place of its left operand."""
    operator: str
    right: int
    state: State
    """What is at hand after it."""
    key: State
    """The same in ascending order: equal for equal states."""

    def line(self, before: State) -> str:
        """The step as an equation, such as ``3*5=15``, from the state before it."""
        return f"{_written(before[self.left])}{self.operator}{_written(before[self.right])}={_written(self.state[0])}"


def written(state: State) -> str:
    """The values of a state, separated by commas."""
    return ",".join([_written(value) for value in state])


@lru_cache(maxsize=1 << 12)
def _written(value: Value) -> str:
    return write(Fraction(*value))


def branches(state: State, rules: Rules) -> list[Branch]:
    """Every permitted step, places ascending and operators in the order + - * /; of equal states the first one."""
    found: dict[State, Branch] = {}
    operations = _operations_of(rules.operators)
    for i in range(len(state)):
        for j in range(i + 1, len(state)):
            rest = state[:i] + state[i + 1 : j] + state[j + 1 :]
            for operator, is_swapped in operations:
                left, right = (j, i) if is_swapped else (i, j)
                value = _combined(operator, state[left], state[right], rules)
                if value is not None:
                    key = tuple(sorted((value, *rest)))
                    if key not in found:
                        found[key] = Branch(left, operator, right, (value, *rest), key)
    return list(found.values())


@lru_cache(maxsize=16)  # the operator sets that there are
def _operations_of(operators: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    return tuple(operation for operation in OPERATIONS if operation[0] in operators)


def is_over(state: State, rules: Rules) -> bool:
    """Whether no step is permitted from here."""
    if len(state) == 1:
        return True
    always_adds = "+" in rules.operators and rules.largest is None  # the sum of two permitted values is permitted
    return not (always_adds or branches(state, rules))


def _combined(operator: str, left: Value, right: Value, rules: Rules) -> Value | None:
    """The result in lowest terms; None where it does not exist or is not permitted."""
    (a, b), (c, d) = left, right
    match operator:
        case "+":
            top, bottom = a * d + c * b, b * d
        case "-":
            top, bottom = a * d - c * b, b * d
        case "*":
            top, bottom = a * c, b * d
        case _:
            top, bottom = (a * d, b * c) if c > 0 else (-a * d, -b * c)
    if not bottom:
        return None
    divisor = gcd(top, bottom)
    top, bottom = top // divisor, bottom // divisor
    if rules.positive and (bottom != 1 or top <= 0):
        return None
    if rules.largest is not None and (abs(top) > rules.largest or bottom > rules.largest):
        return None
    return top, bottom


def is_goal(state: State, puzzle: Puzzle) -> bool:
    """Whether the step that led here made the target, with every number used where the rules demand that."""
    return state[0] == (puzzle.target, 1) and (len(state) == 1 or not puzzle.rules.exact_use)


def is_dead(state: State, puzzle: Puzzle) -> bool:
    """Whether no steps from here make the target: proved by exhausting all of them."""
    if len(state) == 1:
        return True
    tops, bottoms = np.array(state, np.int64).T.reshape(2, 1, -1).copy()
    return not find(tops, bottoms, puzzle.target, _code(puzzle.rules))[0, 0]


@lru_cache(maxsize=64)
def _code(rules: Rules) -> Ints:
    return rule_code(rules)


# -------------------------------------------------------------------------------------------------- heuristics


def _distance(state: State, target: int) -> float:
    """Mean distance of the numbers from the target."""
    return sum([abs(top / bottom - target) for top, bottom in state]) / len(state)


def _factor_distance(state: State, target: int) -> float:
    """Sum of the distances of the numbers from the nearest factor of the target, above 1."""
    factors = _factors(target)
    return sum([min([abs(top / bottom - factor) for factor in factors]) for top, bottom in state])


HEURISTICS: Final[dict[str, Heuristic]] = {
    "sum": _distance,
    "multiply": _factor_distance,
    "none": lambda _state, _target: 0.0,
}


@lru_cache(maxsize=1 << 10)
def _factors(target: int) -> tuple[int, ...]:
    small = [factor for factor in range(1, isqrt(target) + 1) if target % factor == 0]
    return tuple(sorted({*small, *(target // factor for factor in small)} - {1})) or (1,)


def ordered(state: State, puzzle: Puzzle, heuristic: Heuristic) -> list[Branch]:
    """The steps from a state, most promising first; ties stand as in ``branches``."""
    return sorted(branches(state, puzzle.rules), key=lambda branch: heuristic(branch.state, puzzle.target))


# --------------------------------------------------------------------------------------------------- solutions


def drawn_solution(puzzle: Puzzle, rng: Generator) -> Tree:
    """One of the distinct solutions, uniformly; the witness where the numbers are too many to list all solutions."""
    numbers = tuple(sorted(puzzle.numbers))
    if len(numbers) > MOST_COUNTED:
        return tree_of(puzzle.witness, puzzle.rules)
    places = positions(numbers, puzzle.rules, puzzle.target)
    if not places:
        raise ValueError(f"{puzzle.numbers} do not make {puzzle.target} under {puzzle.rules}; demonstrate its own task")
    return solution(numbers, puzzle.rules, places[int(rng.integers(len(places)))])


def tree_of(expression: str, rules: Rules) -> Tree:
    """The tree of a right expression."""
    postfix = parse(expression, rules.operators)
    if isinstance(postfix, Flaw):
        raise ValueError(f"{expression!r} is no expression: {postfix.reason}")  # noqa: TRY004 (a wrong value)
    stack: list[Tree] = []
    for token in postfix.tokens:
        if token in PRECEDENCE:
            right, left = stack.pop(), stack.pop()
            stack.append(_joined(token, left, right))
        else:
            stack.append(Tree(value=Fraction(int(token))))
    return stack[0]


def _joined(operator: str, left: Tree, right: Tree) -> Tree:
    value = apply(operator, left.value, right.value)
    if value is None:
        raise ValueError(f"{left.text()}{operator}{right.text()} divides by zero; a right expression does not")
    return Tree(value=value, operator=operator, operands=(left, right))


def as_branches(tree: Tree, root: State) -> Iterator[Branch]:
    """The steps of a tree, operands first, from the state ``root`` on."""
    state = root
    for node in _nodes(tree):
        left, right = ((operand.value.numerator, operand.value.denominator) for operand in node.operands)
        i = state.index(left)
        j = next(place for place, value in enumerate(state) if value == right and place != i)
        rest = tuple(value for place, value in enumerate(state) if place not in (i, j))
        state = ((node.value.numerator, node.value.denominator), *rest)
        yield Branch(i, node.operator, j, state, tuple(sorted(state)))


def _nodes(tree: Tree) -> Iterator[Tree]:
    for operand in tree.operands:
        yield from _nodes(operand)
    if tree.operands:
        yield tree


def expression_of(steps: Iterable[Branch], root: State) -> str:
    """The expression that steps from ``root`` build: that of the last result."""
    trees = [Tree(value=Fraction(*value)) for value in root]
    for step in steps:
        made = _joined(step.operator, trees[step.left], trees[step.right])
        trees = [made, *(tree for place, tree in enumerate(trees) if place not in (step.left, step.right))]
    return trees[0].text()
