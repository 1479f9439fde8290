"""Constraints that are made of constraints: other words for one, and the connectives of logic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testbeds.smt.constraints import Constraint, Expression, Values


@dataclass(frozen=True, slots=True)
class Told:
    """A constraint in other words: the meaning of ``of``, written as ``text``."""

    of: Constraint
    text: str

    @property
    def scope(self) -> tuple[str, ...]:
        return self.of.scope

    def holds(self, values: Values) -> bool:
        return self.of.holds(values)

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        return self.of.to_z3(expressions)


@dataclass(frozen=True, slots=True)
class Not:
    """A constraint is false: ``!(a=1)``."""

    of: Constraint

    @property
    def scope(self) -> tuple[str, ...]:
        return self.of.scope

    @property
    def text(self) -> str:
        return f"!({self.of.text})"

    def holds(self, values: Values) -> bool:
        return not self.of.holds(values)

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        import z3

        return z3.Not(self.of.to_z3(expressions))


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold: ``(a=1&b=2)``."""

    parts: tuple[Constraint, ...]

    @property
    def scope(self) -> tuple[str, ...]:
        return joined(self.parts)

    @property
    def text(self) -> str:
        return f"({'&'.join(part.text for part in self.parts)})"

    def holds(self, values: Values) -> bool:
        return all(part.holds(values) for part in self.parts)

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        import z3

        return z3.And([part.to_z3(expressions) for part in self.parts])


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds: ``(a=1|b=2)``."""

    parts: tuple[Constraint, ...]

    @property
    def scope(self) -> tuple[str, ...]:
        return joined(self.parts)

    @property
    def text(self) -> str:
        return f"({'|'.join(part.text for part in self.parts)})"

    def holds(self, values: Values) -> bool:
        return any(part.holds(values) for part in self.parts)

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        import z3

        return z3.Or([part.to_z3(expressions) for part in self.parts])


@dataclass(frozen=True, slots=True)
class Iff:
    """Both hold or neither does: ``(a=1<->b=2)``."""

    left: Constraint
    right: Constraint

    @property
    def scope(self) -> tuple[str, ...]:
        return joined((self.left, self.right))

    @property
    def text(self) -> str:
        return f"({self.left.text}<->{self.right.text})"

    def holds(self, values: Values) -> bool:
        return self.left.holds(values) == self.right.holds(values)

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        return self.left.to_z3(expressions) == self.right.to_z3(expressions)


@dataclass(frozen=True, slots=True)
class Implies:
    """Where the left holds, the right does: ``(a=1->b=2)``."""

    left: Constraint
    right: Constraint

    @property
    def scope(self) -> tuple[str, ...]:
        return joined((self.left, self.right))

    @property
    def text(self) -> str:
        return f"({self.left.text}->{self.right.text})"

    def holds(self, values: Values) -> bool:
        return not self.left.holds(values) or self.right.holds(values)

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        import z3

        return z3.Implies(self.left.to_z3(expressions), self.right.to_z3(expressions))


def joined(parts: tuple[Constraint, ...]) -> tuple[str, ...]:
    """The names in the scopes of some constraints, each once, in the order in which they are met."""
    return tuple(dict.fromkeys(name for part in parts for name in part.scope))
