"""The values and the distinct solutions of a multiset of numbers, exactly and fast: pure functions.

*Distinct solutions* are expressions up to an equivalence: ``+`` and ``*`` are commutative and associative, ``a-b`` is
``a+(-b)``, ``a/b`` is ``a*(1/b)``, and a sign may move out of a product. Equal numbers are interchangeable. Nothing is
cancelled or distributed: ``x*1``, ``x/1`` and ``x`` differ. Four different numbers have 1,170 such expressions (OEIS
A140606). They are the same for all numbers with the same ties, so they are found once per pattern of ties and then
evaluated for a multiset with a few array operations, in reduced 64-bit fractions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testbeds.arithmetic import PRECEDENCE, apply, write

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

CACHED_MULTISETS = 1 << 14  # about 2 kB each; 4 numbers from 1 to 20 are 8,855 multisets


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


class _Form(NamedTuple):
    """An expression up to equivalence and sign: a letter, a sum of terms or a product of factors, each side sorted."""

    kind: str
    """"" for a letter, + for a sum, * for a product."""
    letter: int
    upper: tuple[_Form, ...] = ()
    """Terms with +, or factors above the line."""
    lower: tuple[_Form, ...] = ()
    """Terms with -, or factors below the line."""


_Signed = tuple[int, _Form]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Forms:
    """All distinct expressions over a pattern of letters and its parts, smaller ones first, and how each arises."""

    derivations: tuple[tuple[str, Ints], ...]
    """Per size and operator: rows (left, right, result) of positions."""
    of_result: tuple[tuple[tuple[str, int, int], ...], ...]
    """Per position: all (operator, left, right) that give it, in a stable order."""
    whole: int
    """First position of the expressions that use every letter; the letters themselves stand first of all."""
    letters: int


def reachable(numbers: tuple[int, ...], rules: Rules, low: int, high: int) -> tuple[tuple[int, int], ...]:
    """(target, number of distinct solutions) for every reachable target in [low, high], ascending.

    Where not every number must be used, a target that is itself one of the numbers is left out: it asks for nothing.
    """
    return _reachable(tuple(sorted(numbers)), rules, low, high)


def expressions(numbers: tuple[int, ...], rules: Rules, target: int) -> Iterator[Tree]:
    """One tree for each distinct solution, in a stable order; every result in it is permitted."""
    ordered = tuple(sorted(numbers))
    for position in positions(ordered, rules, target):
        yield solution(ordered, rules, position)


@lru_cache(maxsize=CACHED_MULTISETS)
def positions(numbers: tuple[int, ...], rules: Rules, target: int) -> tuple[int, ...]:
    """Where the distinct solutions of a target stand among all expressions over these ascending numbers."""
    top, bottom, exists = _values(numbers, rules)
    return tuple(np.flatnonzero(exists & (bottom == 1) & (top == target) & _candidates(numbers, rules)).tolist())


@lru_cache(maxsize=CACHED_MULTISETS)
def solution(numbers: tuple[int, ...], rules: Rules, position: int) -> Tree:
    """The first tree, in a stable order, that realises the expression at ``position`` with permitted results only."""
    distinct = sorted(set(numbers))
    if position < len(distinct):
        return Tree(value=Fraction(distinct[position]))
    top, bottom, exists = _values(numbers, rules)
    for operator, left, right in _forms(_pattern(numbers), rules.operators).of_result[position]:
        if not (exists[left] and exists[right]):
            continue
        operands = (Fraction(int(top[i]), int(bottom[i])) for i in (left, right))
        value = apply(operator, *operands)
        if value is not None and rules.permit(value):
            trees = (solution(numbers, rules, left), solution(numbers, rules, right))
            return Tree(value=value, operator=operator, operands=trees)
    raise ValueError(f"position {position} is no permitted expression over {numbers}; take one from positions()")


@lru_cache(maxsize=CACHED_MULTISETS)
def _reachable(numbers: tuple[int, ...], rules: Rules, low: int, high: int) -> tuple[tuple[int, int], ...]:
    top, bottom, exists = _values(numbers, rules)
    chosen = exists & (bottom == 1) & (top >= low) & (top <= high) & _candidates(numbers, rules)
    targets, counts = np.unique(top[chosen], return_counts=True)
    given = () if rules.exact_use else numbers
    return tuple((t, c) for t, c in zip(targets.tolist(), counts.tolist(), strict=True) if t not in given)


def _candidates(numbers: tuple[int, ...], rules: Rules) -> Bools:
    """Which positions are whole answers."""
    forms = _forms(_pattern(numbers), rules.operators)
    positions = np.arange(len(forms.of_result))
    return positions >= (forms.whole if rules.exact_use else 0)


@lru_cache(maxsize=64)
def _values(numbers: tuple[int, ...], rules: Rules) -> tuple[Ints, Ints, Bools]:
    """Numerator, denominator and existence of every expression; it exists if some derivation is permitted."""
    forms = _forms(_pattern(numbers), rules.operators)
    size = len(forms.of_result)
    top, bottom, exists = np.zeros(size, np.int64), np.ones(size, np.int64), np.zeros(size, np.bool_)
    top[: forms.letters] = sorted(set(numbers))
    exists[: forms.letters] = True
    for operator, rows in forms.derivations:
        left, right, result = rows
        value_top, value_bottom, permitted = combine(
            operator, (top[left], bottom[left]), (top[right], bottom[right]), rules
        )
        permitted &= exists[left] & exists[right]
        result = result[permitted]
        top[result], bottom[result], exists[result] = value_top[permitted], value_bottom[permitted], True
    return top, bottom, exists


def combine(operator: str, left: tuple[Ints, Ints], right: tuple[Ints, Ints], rules: Rules) -> tuple[Ints, Ints, Bools]:
    """Reduced fractions left o right, and which of them exist and are permitted."""
    (a, b), (c, d) = left, right
    match operator:
        case "+":
            top, bottom = a * d + c * b, b * d
        case "-":
            top, bottom = a * d - c * b, b * d
        case "*":
            top, bottom = a * c, b * d
        case _:
            top, bottom = a * d * np.sign(c), b * np.abs(c)
    permitted = bottom > 0
    divisor = np.gcd(top, bottom)
    divisor[divisor == 0] = 1  # 0/0; not permitted
    top, bottom = top // divisor, bottom // divisor
    if rules.positive:
        permitted &= (bottom == 1) & (top > 0)
    if rules.largest is not None:
        permitted &= (np.abs(top) <= rules.largest) & (bottom <= rules.largest)
    return top, bottom, permitted


def _pattern(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The ties of ascending numbers as letters: (3, 3, 8) is (0, 0, 1)."""
    return tuple(sorted(set(numbers)).index(number) for number in numbers)


@lru_cache(maxsize=64)
def _forms(pattern: tuple[int, ...], operators: tuple[str, ...]) -> _Forms:
    found: dict[_Signed, int] = {(1, _Form("", letter)): letter for letter in range(max(pattern) + 1)}
    members: dict[tuple[int, ...], list[_Signed]] = {
        (letter,): [(1, _Form("", letter))] for letter in range(max(pattern) + 1)
    }
    of_result: list[list[tuple[str, int, int]]] = [[] for _ in found]
    derivations: list[tuple[str, Ints]] = []
    whole = 0
    for size in range(2, len(pattern) + 1):
        rows: dict[str, list[tuple[int, int, int]]] = {operator: [] for operator in operators}
        whole = len(found)
        for part in sorted(set(combinations(pattern, size))):
            fresh: dict[_Signed, None] = {}
            for operator, left, right in _pairs(part, members, operators):
                form = _join(operator, left, right)
                fresh[form] = None
                position = found.setdefault(form, len(found))
                if position == len(of_result):
                    of_result.append([])
                of_result[position].append((operator, found[left], found[right]))
                rows[operator].append((found[left], found[right], position))
            members[part] = list(fresh)
        derivations += [(operator, np.array(rows[operator], np.int64).T) for operator in operators]
    return _Forms(
        derivations=tuple(derivations),
        of_result=tuple(tuple(ways) for ways in of_result),
        whole=whole,
        letters=max(pattern) + 1,
    )


def _pairs(
    part: tuple[int, ...], members: dict[tuple[int, ...], list[_Signed]], operators: tuple[str, ...]
) -> Iterator[tuple[str, _Signed, _Signed]]:
    """Every operation that joins two parts of ``part``: larger part first, and both ways round for - and /."""
    splits = {
        (tuple(part[i] for i in range(len(part)) if i not in inside), tuple(part[i] for i in inside))
        for size in range(1, len(part) // 2 + 1)
        for inside in combinations(range(len(part)), size)
    }
    for left_part, right_part in sorted(splits, key=lambda split: (-len(split[0]), split)):
        if len(left_part) == len(right_part) and left_part > right_part:
            continue
        for left, right in product(members[left_part], members[right_part]):
            for operator in operators:
                yield operator, left, right
                if operator in "-/":
                    yield operator, right, left


def _join(operator: str, left: _Signed, right: _Signed) -> _Signed:
    """The canonical form of an operation on two canonical forms."""
    kind = "+" if operator in "+-" else "*"
    upper, lower = _sides(kind, left)
    other_upper, other_lower = _sides(kind, right)
    if operator in "-/":
        other_upper, other_lower = other_lower, other_upper
    upper, lower = tuple(sorted(upper + other_upper)), tuple(sorted(lower + other_lower))
    if kind == "*":
        return left[0] * right[0], _Form(kind, -1, upper, lower)
    return (1, _Form(kind, -1, upper, lower)) if upper >= lower else (-1, _Form(kind, -1, lower, upper))


def _sides(kind: str, signed: _Signed) -> tuple[tuple[_Form, ...], tuple[_Form, ...]]:
    """A form as terms with + and with -, or as factors above and below the line."""
    sign, form = signed
    upper, lower = (form.upper, form.lower) if form.kind == kind else ((form,), ())
    return (lower, upper) if kind == "+" and sign < 0 else (upper, lower)
