"""From constraints to the rows of the search's arrays (model.py says how they read)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from testbeds.smt import model as kinds
from testbeds.smt.constraints import AllDifferent, Constraint, Is, SumAtLeast, SumAtMost, SumIs, TableOf
from testbeds.smt.language import WIDEST, Puzzle
from testbeds.smt.logic import And, Iff, Implies, Not, Or, Told
from testbeds.smt.model import Integers, Model

MOST_ROWS = 50_000  # assignments tried for a constraint that is known only by ``holds``
FAR = 2**62  # no sum of a puzzle comes near it


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A puzzle as arrays."""

    model: Model
    high: Integers
    """Apart from the model because an optimising search lowers its goal's."""
    masks: Integers
    """The domains."""
    rows: tuple[int, ...]
    """The row of each constraint, in rules then clues."""
    goal: int
    """The row of the objective, to be minimised; -1 where there is none."""


def compiled(puzzle: Puzzle) -> Compiled:
    """The arrays of a puzzle.

    Raises:
        ValueError: where the values lie too far apart for bit masks, or a constraint of an unknown class has too many
            assignments to be tabulated.
    """
    return _Compiler(puzzle).result()


class _Compiler:
    """Collects rows."""

    def __init__(self, puzzle: Puzzle) -> None:
        self._puzzle = puzzle
        self._place = {variable.name: place for place, variable in enumerate(puzzle.variables)}
        self._domains = [variable.domain for variable in puzzle.variables]
        self._base = min(domain[0] for domain in self._domains)
        self._span = max(domain[-1] for domain in self._domains) - self._base + 1
        if self._span > WIDEST:
            raise ValueError(
                f"the values of a puzzle lie at most {WIDEST} apart, got {self._base} to {self._base + self._span - 1};"
                f" narrow the domains, or ask oracle.solutions"
            )
        self._kinds: list[int] = []
        self._low: list[int] = []
        self._high: list[int] = []
        self._scopes: list[list[int]] = []
        self._weights: list[list[int]] = []
        self._relations: dict[Constraint, int] = {}
        self._tables: list[tuple[Integers, Integers]] = []
        self._cells: list[int] = []
        self._program: list[int] = []

    def result(self) -> Compiled:
        # What is known of one variable comes first: a walk then begins with it.
        constraints = self._puzzle.constraints
        order = sorted(range(len(constraints)), key=lambda place: len(constraints[place].scope) > 1)
        row_of = {place: self._add(constraints[place]) for place in order}
        rows = tuple(row_of[place] for place in range(len(constraints)))
        goal = -1
        objective = self._puzzle.objective
        if objective is not None:
            sign = -1 if objective.maximise else 1
            weights = [sign * weight for weight in objective.coefficients]
            goal = self._row(kinds.LINEAR, -FAR, FAR, self._scope(objective.variables), weights)
        return Compiled(
            model=self._model(),
            high=_integers(self._high),
            masks=_integers([sum(1 << (value - self._base) for value in domain) for domain in self._domains]),
            rows=rows,
            goal=goal,
        )

    def _model(self) -> Model:
        touching: list[list[int]] = [[] for _ in self._domains]
        for row, scope in enumerate(self._scopes):
            for variable in scope:
                touching[variable].append(row)
        empty = np.zeros((0, self._span), dtype=np.int64)
        return Model(
            base=self._base,
            kinds=_integers(self._kinds),
            low=_integers(self._low),
            starts=_starts(self._scopes),
            variables=_flat(self._scopes),
            weights=_flat(self._weights),
            forward=np.stack([forward for forward, _ in self._tables]) if self._tables else empty,
            backward=np.stack([backward for _, backward in self._tables]) if self._tables else empty,
            rows=_integers(self._cells),
            program=_integers(self._program),
            touch_starts=_starts(touching),
            touch=_flat(touching),
        )

    def _row(self, kind: int, low: int, high: int, scope: list[int], weights: list[int] | None = None) -> int:
        self._kinds.append(kind)
        self._low.append(low)
        self._high.append(high)
        self._scopes.append(scope)
        self._weights.append(weights or [0] * len(scope))
        return len(self._kinds) - 1

    def _scope(self, names: tuple[str, ...]) -> list[int]:
        return [self._place[name] for name in names]

    def _add(self, constraint: Constraint) -> int:
        """The row of a constraint, after the rows of its parts."""
        match constraint:
            case Told(of=of):
                return self._add(of)
            case AllDifferent():
                return self._different(constraint)
            case SumIs(total=total):
                return self._linear(constraint, total, total)
            case SumAtMost(total=total):
                return self._linear(constraint, -FAR, total)
            case SumAtLeast(total=total):
                return self._linear(constraint, total, FAR)
        return self._add_by_width(constraint)

    def _add_by_width(self, constraint: Constraint) -> int:
        """The row of a constraint for which only the number of its variables matters."""
        scope = constraint.scope
        if len(scope) == 1:
            return self._unary(constraint)
        if len(scope) == 2:
            return self._relation(constraint)
        if isinstance(constraint, Not | And | Or | Iff | Implies):
            return self._formula(constraint)
        return self._table(constraint)

    def _unary(self, constraint: Constraint) -> int:
        name = constraint.scope[0]
        if isinstance(constraint, Is):
            kept = [constraint.value] if constraint.value in self._domains[self._place[name]] else []
        else:
            kept = [value for value in self._domains[self._place[name]] if constraint.holds({name: value})]
        mask = sum(1 << (value - self._base) for value in kept)
        return self._row(kinds.UNARY, mask, 0, [self._place[name]])

    def _different(self, constraint: AllDifferent) -> int:
        offsets = constraint.offsets or (0,) * len(constraint.variables)
        least = min(offsets)
        shifts = [offset - least for offset in offsets]
        if self._span + max(shifts) > WIDEST:
            raise ValueError(
                f"{constraint.text!r}: values and offsets together lie more than {WIDEST} apart; narrow the domains"
            )
        return self._row(kinds.DIFFERENT, 0, 0, self._scope(constraint.variables), shifts)

    def _linear(self, constraint: SumIs | SumAtMost | SumAtLeast, low: int, high: int) -> int:
        return self._row(kinds.LINEAR, low, high, self._scope(constraint.variables), list(constraint.weights))

    def _relation(self, constraint: Constraint) -> int:
        """A row of two variables: what goes with what is found once for each relation, whatever the names are."""
        nameless = _renamed(constraint, dict(zip(constraint.scope, ("left", "right"), strict=True)))
        if nameless not in self._relations:
            self._relations[nameless] = len(self._tables)
            self._tables.append(_partners(nameless, self._base, self._span))
        return self._row(kinds.RELATION, self._relations[nameless], 0, self._scope(constraint.scope))

    def _table(self, constraint: Constraint) -> int:
        scope = self._scope(constraint.scope)
        domains = [self._domains[place] for place in scope]
        if isinstance(constraint, TableOf):
            rows = [row for row in constraint.rows if all(map(lambda value, domain: value in domain, row, domains))]
        elif prod(map(len, domains)) > MOST_ROWS:
            raise ValueError(
                f"{constraint.text!r} has more than {MOST_ROWS} assignments, too many to tabulate what holds of them;"
                f" write it with the constraints of the language, or with fewer variables"
            )
        else:
            every = product(*domains)
            rows = [row for row in every if constraint.holds(dict(zip(constraint.scope, row, strict=True)))]
        first = len(self._cells)
        self._cells += [value - self._base for row in rows for value in row]
        return self._row(kinds.TABLE, first, len(self._cells), scope)

    def _formula(self, constraint: Constraint) -> int:
        code = self._postfix(constraint)
        first = len(self._program)
        self._program += code
        return self._row(kinds.FORMULA, first, len(self._program), self._scope(constraint.scope))

    def _postfix(self, constraint: Constraint) -> list[int]:  # noqa: PLR0911  # one for each connective
        match constraint:
            case Told(of=of):
                return self._postfix(of)
            case Not(of=of):
                return [*self._postfix(of), kinds.NOT]
            case And(parts=parts):
                return self._chain(parts, kinds.AND)
            case Or(parts=parts):
                return self._chain(parts, kinds.OR)
            case Iff(left=left, right=right):
                return [*self._postfix(left), *self._postfix(right), kinds.IFF]
            case Implies(left=left, right=right):
                return [*self._postfix(left), kinds.NOT, *self._postfix(right), kinds.OR]
        return [self._add(constraint)]

    def _chain(self, parts: tuple[Constraint, ...], operator: int) -> list[int]:
        code = self._postfix(parts[0])
        for part in parts[1:]:
            code += [*self._postfix(part), operator]
        return code


def _renamed(constraint: Constraint, names: Mapping[str, str]) -> Constraint:
    """The constraint over other variables, without its label."""
    if not is_dataclass(constraint):
        return constraint
    changes = {entry.name: _renamed_field(getattr(constraint, entry.name), names) for entry in fields(constraint)}
    if "label" in changes:
        changes["label"] = ""
    return replace(constraint, **changes)


def _renamed_field(value: object, names: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, tuple):
        return tuple(_renamed_field(item, names) for item in value)
    return _renamed(value, names) if is_dataclass(value) else value  # type: ignore[arg-type]  # a constraint


@lru_cache(maxsize=4096)
def _partners(relation: Constraint, base: int, span: int) -> tuple[Integers, Integers]:
    """What goes with each bit of the left, and of the right variable."""
    left, right = relation.scope
    forward, backward = [0] * span, [0] * span
    for one in range(span):
        for other in range(span):
            if relation.holds({left: base + one, right: base + other}):
                forward[one] |= 1 << other
                backward[other] |= 1 << one
    return _integers(forward), _integers(backward)


def _integers(values: list[int]) -> Integers:
    return np.array(values, dtype=np.int64)


def _starts(lists: list[list[int]]) -> Integers:
    return _integers([0, *np.cumsum([len(items) for items in lists], dtype=np.int64).tolist()])


def _flat(lists: list[list[int]]) -> Integers:
    return _integers([item for items in lists for item in items])
