"""The values and the distinct solutions of a multiset of numbers, exactly and fast: pure functions.

*Distinct solutions* are expressions up to an equivalence: ``+`` and ``*`` are commutative and associative, ``a-b`` is
``a+(-b)``, ``a/b`` is ``a*(1/b)``, and a sign may move out of a product. Equal numbers are interchangeable. Nothing is
cancelled or distributed: ``x*1``, ``x/1`` and ``x`` differ. Four different numbers have 1,170 such expressions, six
have 793,002 (OEIS A140606). They are the same for all numbers with the same ties, so they are found once per pattern of
ties, as a program (countdown_forms.py), and evaluated for many multisets in one compiled loop (countdown_kernels.py).

For seven and eight numbers, which have too many, see countdown_many.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

from testbeds.arithmetic import OPERATORS, PRECEDENCE, write
from testbeds.countdown_derivations import derivations
from testbeds.countdown_forms import CACHED_PROGRAMS, Program, forms
from testbeds.countdown_kernels import scan
from testbeds.countdown_trees import Node, Outline, assembled, joined, outline_of, outlined, worked, written_out

Ints = NDArray[np.int64]

CACHED_MULTISETS = 1 << 10  # of the few that are asked about again, by floors and searches
MOST_COUNTED = 6  # numbers; seven have 27.9 million distinct expressions
MOST_DERIVED = 5  # where each derivation needs a row of its own
MOST_TARGETS = 1 << 20  # width of a range of targets: each has a place in a table


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a solution may do: the part of a Countdown task that decides which targets are reachable."""

    operators: tuple[str, ...]
    positive: bool
    """Whether every result must be a positive whole number."""
    largest: int | None
    """Bound on the numerator and denominator of every result, in lowest terms."""
    exact_use: bool
    """Whether every number must be used; else each at most once."""

    def permit(self, result: Fraction) -> bool:
        """Whether a result may occur."""
        if self.positive and (result.denominator != 1 or result <= 0):
            return False
        return self.largest is None or (abs(result.numerator) <= self.largest and result.denominator <= self.largest)

    def permit_ratio(self, top: int, bottom: int) -> bool:
        """Whether the result top/bottom may occur, in lowest terms or not; bottom > 0."""
        if self.positive and (top <= 0 or top % bottom):
            return False
        divisor = gcd(top, bottom)
        return self.largest is None or (abs(top) <= self.largest * divisor and bottom <= self.largest * divisor)

    @property
    def permits_all(self) -> bool:
        """Whether every result may occur."""
        return not self.positive and self.largest is None

    @property
    def keeps_forms(self) -> bool:
        """Whether every order of a sum or product that could be written may be: then forms tell solutions apart."""
        operators = self.operators
        return (
            self.largest is None
            and ("+" in operators or "-" not in operators)
            and ("*" in operators or "/" not in operators)
        )

    @property
    def most_counted(self) -> int:
        """How many numbers may have their distinct solutions listed and counted."""
        return MOST_COUNTED if self.keeps_forms else MOST_DERIVED

    def magnitude(self, numbers: int, highest: int) -> int:
        """An upper bound on numerators and denominators of all results of ``numbers`` numbers up to ``highest``.

        With division, ``(a/b) + (c/d) = (ad + bc)/bd`` at most doubles a product, so 2^(n-1) h^n; without, a sum is at
        most the product of what is at least 2, so h^n.
        """
        if self.largest is not None:
            return self.largest
        if "/" in self.operators and not self.positive:
            return int(2 ** (numbers - 1) * highest**numbers)
        return int(max(highest, 2) ** numbers) if "*" in self.operators else numbers * highest


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """An expression as a binary tree of operations over numbers."""

    value: Fraction
    operator: str = ""
    operands: tuple[Tree, ...] = ()

    def text(self) -> str:
        """The expression with the parentheses that its tree needs and no others."""
        if not self.operands:
            return write(self.value)
        left, right = self.operands
        binds = PRECEDENCE[self.operator]
        return f"{left._inside(binds)}{self.operator}{right._inside(binds + 1)}"

    def lines(self) -> Iterator[tuple[str, str]]:
        """(operation, result) of each step, operands before the operation that uses them."""
        for operand in self.operands:
            yield from operand.lines()
        if self.operands:
            left, right = self.operands
            yield f"{write(left.value)}{self.operator}{write(right.value)}", write(self.value)

    def _inside(self, binds: int) -> str:
        weaker = bool(self.operands) and PRECEDENCE[self.operator] < binds
        return f"({self.text()})" if weaker else self.text()


@lru_cache(maxsize=256)
def rule_code(rules: Rules) -> Ints:
    """The rules as compiled loops read them, see ``countdown_kernels.evaluate``."""
    operators = sum(1 << OPERATORS.index(operator) for operator in rules.operators)
    return np.array([not rules.keeps_forms, rules.positive, rules.largest or 0, rules.exact_use, operators], np.int64)


@lru_cache(maxsize=CACHED_PROGRAMS)
def plan(ties: tuple[int, ...], rules: Rules) -> Program:
    """The program that evaluates all expressions over letters with these ties."""
    return (forms if rules.keeps_forms else derivations)(ties, rules.operators)


def lettered(numbers: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How often each letter stands, most often first, and its value, ascending among equally frequent ones."""
    if len(set(numbers)) == len(numbers):
        return (1,) * len(numbers), tuple(sorted(numbers))
    counted = sorted((-numbers.count(value), value) for value in set(numbers))
    return tuple(-times for times, _ in counted), tuple(value for _, value in counted)


def reachable(numbers: tuple[int, ...], rules: Rules, low: int, high: int) -> tuple[tuple[int, int], ...]:
    """(target, number of distinct solutions) for every reachable target in [low, high], ascending.

    Where not every number must be used, a target that is itself one of the numbers is left out: it asks for nothing.
    """
    return _reachable(tuple(sorted(numbers)), rules, low, high)


def expressions(numbers: tuple[int, ...], rules: Rules, target: int) -> Iterator[Tree]:
    """One tree for each distinct solution, in a stable order; every result in it is permitted."""
    for position in positions(numbers, rules, target):
        yield solution(numbers, rules, position)


def positions(numbers: tuple[int, ...], rules: Rules, target: int) -> tuple[int, ...]:
    """Where the distinct solutions of a target stand among all expressions over these numbers."""
    return tuple(_scanned(numbers, rules, target, target)[0].tolist())


def solution(numbers: tuple[int, ...], rules: Rules, position: int) -> Tree:
    """A tree, always the same one, that realises the expression at ``position`` with permitted results only."""
    return _as_tree(assembled(outline_at(numbers, rules, position)))


def outline_at(numbers: tuple[int, ...], rules: Rules, position: int) -> Outline:
    """What ``solution`` gives, as a list of nodes."""
    ties, values = lettered(numbers)
    program = plan(ties, rules)
    if not program.signed:
        return outline_of(program, values, position)
    node = _derived(program, values, rules, position, {})
    if node is None:
        raise ValueError(f"position {position} is no permitted expression over {numbers}; take one from positions()")
    return outlined(node)


def worked_at(numbers: tuple[int, ...], rules: Rules, position: int) -> tuple[str, list[str]]:
    """The expression at ``position``, as text, and its steps such as ``3*5=15``."""
    ties, values = lettered(numbers)
    program = plan(ties, rules)
    if not program.signed:
        return worked(program, values, position)
    return written_out(outline_at(numbers, rules, position))


def _as_tree(node: Node) -> Tree:
    if node.left is None or node.right is None:
        return Tree(value=Fraction(node.top))
    operands = (_as_tree(node.left), _as_tree(node.right))
    return Tree(value=Fraction(node.top, node.bottom), operator=node.operator, operands=operands)


def _derived(
    program: Program, values: tuple[int, ...], rules: Rules, position: int, known: dict[int, Node | None]
) -> Node | None:
    """The first derivation of a signed expression that has permitted results alone; None where there is none."""
    if position < program.letters:
        return Node(values[position])
    if position not in known:
        known[position] = None
        for operator, left, right in program.ways[position]:
            first = _derived(program, values, rules, left, known)
            second = first and _derived(program, values, rules, right, known)
            if not first or not second or (operator == OPERATORS.index("/") and second.top == 0):
                continue
            node = joined(OPERATORS[operator], first, second)
            if rules.permit(Fraction(node.top, node.bottom)):
                known[position] = node
                break
    return known[position]


@lru_cache(maxsize=CACHED_MULTISETS)
def _reachable(numbers: tuple[int, ...], rules: Rules, low: int, high: int) -> tuple[tuple[int, int], ...]:
    targets, counts = np.unique(_scanned(numbers, rules, low, high)[1], return_counts=True)
    return tuple(zip(targets.tolist(), counts.tolist(), strict=True))


def _scanned(numbers: tuple[int, ...], rules: Rules, low: int, high: int) -> tuple[Ints, Ints]:
    """The positions of all solutions of the targets in range, and their targets."""
    if len(numbers) > rules.most_counted:
        raise ValueError(
            f"the solutions of {len(numbers)} numbers are not listed under {rules}, only those of up to"
            f" {rules.most_counted}; ask countdown_many.py for the targets and one solution"
        )
    ties, values = lettered(numbers)
    program = plan(ties, rules)
    span = (program.whole, program.size, low, high)
    count, position, target = scan(program.rows, span, np.array(values, np.int64), rule_code(rules))
    return position[:count], target[:count]
