"""The distinct expressions of a pattern of ties, as a program that one pass over a table evaluates: pure functions.

A *form* is an expression up to the equivalence of countdown_search.py and up to its sign: a letter, a sum of terms with
signs, or a product of factors above and below the line. A term is a letter or a product, a factor is a letter or a sum,
so that no two forms are equivalent. Each form is its longest proper prefix and one more term or factor, in the
ascending order of positions (signs + before -, factors above before below): one row of the program, which stands after
those of its operands. A form and its negative count once: of the two, the one that stands here has the plus sign where
they first differ.

Every form has one row if ``-`` comes with ``+`` and ``/`` with ``*``; other operators are the matter of
countdown_derivations.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Rows = NDArray[np.uint32]

PLUS, MINUS, TIMES, OVER = range(4)  # as in arithmetic.OPERATORS
CLOSED = 99  # an imbalance of signs that no further term can undo
CACHED_PROGRAMS = 64  # numbers up to 5 have 18 patterns of ties; a program of six different numbers takes 8 MB


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: the table is cached
class Program:
    """All forms over a multiset of letters and its parts, smaller parts first."""

    rows: Rows
    """(operator, left, right, position of the result), the letters standing before all results."""
    letters: int
    """How many different letters there are."""
    whole: int
    """First position of the forms that use every letter."""
    size: int
    """Number of positions."""
    signed: bool = False
    """Whether a position stands for one signed expression, with a row for each derivation, instead of a form."""

    @cached_property
    def table(self) -> list[list[int]]:
        """(operator, left, right) of each row, for those who follow a few of them."""
        return cast(list[list[int]], self.rows[:, :3].tolist())

    @cached_property
    def ways(self) -> list[list[list[int]]]:
        """Per position: all its rows, in order."""
        listed: list[list[list[int]]] = [[] for _ in range(self.size)]
        for row, position in zip(self.table, self.rows[:, 3].tolist(), strict=True):
            listed[position].append(row)
        return listed


class _Made(NamedTuple):
    """Forms of one kind over one part, and what decides which terms or factors may follow."""

    position: Ints
    last: Ints
    """Position of the last term or factor."""
    sign: Ints
    """Of the last term: 0 for +, 1 for -. Of the last factor: 0 above the line, 1 below."""
    balance: Ints
    """Of a sum: 0 if each term stands as often with + as with -; CLOSED if the first that does not has another term
    after it; else by how much its plus signs outnumber."""


_Row = tuple[Ints, Ints, Ints]


@lru_cache(maxsize=CACHED_PROGRAMS)
def forms(ties: tuple[int, ...], operators: tuple[str, ...]) -> Program:
    """The program of a multiset in which letter i stands ``ties[i]`` times."""
    codes = sorted(product(*(range(times + 1) for times in ties)), key=lambda code: (sum(code), code))[1:]
    atoms = {code: code.index(1) for code in codes if sum(code) == 1}
    terms: dict[tuple[int, ...], _Made] = {}
    factors: dict[tuple[int, ...], _Made] = {}
    sums: dict[tuple[int, ...], _Made] = {}
    products: dict[tuple[int, ...], _Made] = {}
    rows: list[Rows] = []
    size = whole = len(ties)
    for code in codes:
        whole = size if sum(code) > 1 else whole
        if code in atoms:
            terms[code] = factors[code] = _singles(np.array([atoms[code]]))
            continue
        splits = [(rest, last) for last in codes for rest in [_without(code, last)] if rest is not None]
        found = [_sums(_prefixes(terms, sums, rest), terms[last].position, operators) for rest, last in splits]
        sums[code], size = _place(found, (PLUS, MINUS), size, rows)
        found = [
            _products(_prefixes(factors, products, rest), factors[last].position, operators) for rest, last in splits
        ]
        products[code], size = _place(found, (TIMES, OVER), size, rows)
        terms[code], factors[code] = _singles(products[code].position), _singles(sums[code].position)
    table = np.concatenate(rows) if rows else np.zeros((0, 4), np.uint32)
    return Program(rows=np.ascontiguousarray(table), letters=len(ties), whole=whole, size=size)


def _without(code: tuple[int, ...], part: tuple[int, ...]) -> tuple[int, ...] | None:
    """What a part leaves of a multiset; None unless it is a proper part."""
    rest = tuple(a - b for a, b in zip(code, part, strict=True))
    return rest if min(rest) >= 0 and any(rest) else None


def _singles(position: Ints) -> _Made:
    """Terms or factors as the shortest prefixes."""
    return _Made(position, position, np.zeros_like(position), np.ones_like(position))


def _prefixes(
    singles: dict[tuple[int, ...], _Made], longer: dict[tuple[int, ...], _Made], code: tuple[int, ...]
) -> _Made:
    parts = [made[code] for made in (singles, longer) if code in made]
    return _Made(*(np.concatenate(column) for column in zip(*parts, strict=True)))


_Found = dict[int, tuple[Ints, Ints, Ints]]
"""For each operator: positions of the prefixes, of what is appended, and the balance afterwards."""


def _sums(prefix: _Made, term: Ints, operators: tuple[str, ...]) -> _Found:
    """Sums with one more term, each once."""
    after, same = term[None, :] > prefix.last[:, None], term[None, :] == prefix.last[:, None]
    balance = np.broadcast_to(prefix.balance[:, None], after.shape)
    opens = after & (balance == 0)
    found: _Found = {}
    if "+" in operators:
        allowed = after | (same & (prefix.sign[:, None] == 0))
        found[PLUS] = _pairs(prefix, term, allowed, np.where(opens, 1, np.where(after, CLOSED, _moved(balance, 1))))
    if "-" in operators:
        allowed = (after | same) & (balance > 0)
        found[MINUS] = _pairs(prefix, term, allowed, np.where(after, CLOSED, _moved(balance, -1)))
    return found


def _moved(balance: Ints, by: int) -> Ints:
    return np.where(balance == CLOSED, CLOSED, balance + by)


def _products(prefix: _Made, factor: Ints, operators: tuple[str, ...]) -> _Found:
    """Products with one more factor, each once."""
    above = prefix.sign[:, None] == 0
    in_order = factor[None, :] >= prefix.last[:, None]
    found: _Found = {}
    if "*" in operators:
        found[TIMES] = _pairs(prefix, factor, above & in_order, np.zeros(in_order.shape, np.int64))
    if "/" in operators:
        found[OVER] = _pairs(prefix, factor, above | in_order, np.zeros(in_order.shape, np.int64))
    return found


def _pairs(prefix: _Made, appended: Ints, allowed: NDArray[np.bool_], balance: Ints) -> tuple[Ints, Ints, Ints]:
    i, j = np.nonzero(allowed)
    return prefix.position[i], appended[j], balance[i, j]


def _place(found: list[_Found], operators: tuple[int, int], size: int, rows: list[Rows]) -> tuple[_Made, int]:
    """Give positions to new forms, operator by operator, and add their rows."""
    parts: list[tuple[Ints, Ints, Ints, Ints]] = []
    for sign, operator in enumerate(operators):
        for left, right, balance in (one[operator] for one in found if operator in one):
            parts.append((left, right, np.full_like(left, sign), balance))
    left, right, sign_of, balance = (
        (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else (np.zeros(0, np.int64),) * 4
    )
    position = size + np.arange(len(left))
    operator_of = np.where(sign_of == 0, operators[0], operators[1])
    rows.append(np.stack((operator_of, left, right, position), axis=1).astype(np.uint32))
    return _Made(position, right, sign_of, balance), size + len(left)
