"""Signed expressions with all their derivations, for rules under which the order of operations matters: pure functions.

A bound on results permits some orders of a sum or product and not others, and without ``+`` or ``*`` not every order
can be written. There each expression exists if some derivation of it has permitted results alone, and the table has a
row for each derivation. It is built by plain recursion, which takes seconds for five different numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from testbeds.countdown_forms import CACHED_PROGRAMS, Program


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


@lru_cache(maxsize=CACHED_PROGRAMS)
def derivations(ties: tuple[int, ...], operators: tuple[str, ...]) -> Program:
    """All expressions over a multiset in which letter i stands ``ties[i]`` times, and how each arises."""
    pattern = tuple(letter for letter, times in enumerate(ties) for _ in range(times))
    found: dict[_Signed, int] = {(1, _Form("", letter)): letter for letter in range(len(ties))}
    members: dict[tuple[int, ...], list[_Signed]] = {(letter,): [(1, _Form("", letter))] for letter in range(len(ties))}
    rows: list[tuple[int, int, int, int]] = []
    whole = 0
    for size in range(2, len(pattern) + 1):
        whole = len(found)
        for part in sorted(set(combinations(pattern, size))):
            fresh: dict[_Signed, None] = {}
            for operator, left, right in _pairs(part, members, operators):
                form = _join(operator, left, right)
                fresh[form] = None
                position = found.setdefault(form, len(found))
                rows.append(("+-*/".index(operator), found[left], found[right], position))
            members[part] = list(fresh)
    table = np.array(rows, np.uint32).reshape(-1, 4)
    return Program(rows=table, letters=len(ties), whole=whole, size=len(found), signed=True)


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
