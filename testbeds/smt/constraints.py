"""The constraints of the puzzle language: each is evaluated, told to z3, and written down.

A constraint is a frozen value that names its variables and has four members:

``scope``                the names of its variables, each once, in a stable order
``holds(values)``        whether it is true of an assignment: its meaning
``to_z3(expressions)``   the same as a z3 term over the expressions of its variables
``text``                 how it is written, without white space

They are written like sentences, so their fields may be given in order: ``LessThan("a", "b")``. A class of your own with
these members is a constraint too: the search reads its meaning from ``holds``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

Values = Mapping[str, int]
Expression = Any  # a z3 term; z3 has no types, and is imported only where a term is made


@runtime_checkable
class Constraint(Protocol):
    """A condition on the values of some variables."""

    @property
    def scope(self) -> tuple[str, ...]:
        """Names of the variables that it speaks of, each once."""
        ...

    @property
    def text(self) -> str:
        """How it is written."""
        ...

    def holds(self, values: Values) -> bool:
        """Whether it is true where each variable of its scope has the value given."""
        ...

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        """The constraint as a z3 term over the z3 expressions of its variables."""
        ...

    def __hash__(self) -> int: ...


# ------------------------------------------------------------------------------------------------ of one variable


@dataclass(frozen=True, slots=True)
class Is:
    """A variable has a value: ``a=3``. ``word`` is how the value is written, where not as a number."""

    variable: str
    value: int
    word: str = ""

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.variable,)

    @property
    def text(self) -> str:
        return f"{self.variable}={self.word or self.value}"

    def holds(self, values: Values) -> bool:
        return values[self.variable] == self.value

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        return expressions[self.variable] == self.value


@dataclass(frozen=True, slots=True)
class OneOf:
    """A variable has one of some values: ``a=2|3``."""

    variable: str
    values: tuple[int, ...]

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.variable,)

    @property
    def text(self) -> str:
        return f"{self.variable}={'|'.join(map(str, self.values))}"

    def holds(self, values: Values) -> bool:
        return values[self.variable] in self.values

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        import z3

        return z3.Or([expressions[self.variable] == value for value in self.values])


# ----------------------------------------------------------------------------------------------- of two variables


@dataclass(frozen=True, slots=True)
class _Pair:
    """What the constraints on two variables share."""

    left: str
    right: str

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Equal(_Pair):
    """Two variables have one value: ``a=b``."""

    @property
    def text(self) -> str:
        return f"{self.left}={self.right}"

    def holds(self, values: Values) -> bool:
        return values[self.left] == values[self.right]

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        return expressions[self.left] == expressions[self.right]


@dataclass(frozen=True, slots=True)
class NotEqual(_Pair):
    """Two variables differ: ``a!=b``."""

    @property
    def text(self) -> str:
        return f"{self.left}!={self.right}"

    def holds(self, values: Values) -> bool:
        return values[self.left] != values[self.right]

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        return expressions[self.left] != expressions[self.right]


@dataclass(frozen=True, slots=True)
class LessThan(_Pair):
    """The left variable is below the right one: ``a<b``."""

    @property
    def text(self) -> str:
        return f"{self.left}<{self.right}"

    def holds(self, values: Values) -> bool:
        return values[self.left] < values[self.right]

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        return expressions[self.left] < expressions[self.right]


@dataclass(frozen=True, slots=True)
class Precedence(_Pair):
    """The right variable is at least ``by`` above the left one, as a task that starts after another: ``a+2<=b``."""

    by: int = 0

    @property
    def text(self) -> str:
        return f"{self.left}+{self.by}<={self.right}"

    def holds(self, values: Values) -> bool:
        return values[self.left] + self.by <= values[self.right]

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        return expressions[self.left] + self.by <= expressions[self.right]


@dataclass(frozen=True, slots=True)
class Offset(_Pair):
    """The right variable is exactly ``by`` above the left one: ``a+2=b``."""

    by: int = 1

    @property
    def text(self) -> str:
        return f"{self.left}+{self.by}={self.right}"

    def holds(self, values: Values) -> bool:
        return values[self.left] + self.by == values[self.right]

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        return expressions[self.left] + self.by == expressions[self.right]


@dataclass(frozen=True, slots=True)
class Adjacent(_Pair):
    """The variables differ by exactly 1: ``a~b``."""

    @property
    def text(self) -> str:
        return f"{self.left}~{self.right}"

    def holds(self, values: Values) -> bool:
        return abs(values[self.left] - values[self.right]) == 1

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        import z3

        gap = expressions[self.left] - expressions[self.right]
        return z3.Or(gap == 1, gap == -1)


# ---------------------------------------------------------------------------------------------- of many variables


@dataclass(frozen=True, slots=True)
class AllDifferent:
    """No two variables have one value; with ``offsets``, no two sums variable + offset. ``label`` is its text."""

    variables: tuple[str, ...]
    label: str = ""
    offsets: tuple[int, ...] = ()

    @property
    def scope(self) -> tuple[str, ...]:
        return self.variables

    @property
    def text(self) -> str:
        return self.label or f"different({','.join(self.variables)})"

    def holds(self, values: Values) -> bool:
        if not self.offsets:
            return len({values[name] for name in self.variables}) == len(self.variables)
        shifted = {values[name] + by for name, by in zip(self.variables, self.offsets, strict=True)}
        return len(shifted) == len(self.variables)

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        import z3

        offsets = self.offsets or (0,) * len(self.variables)
        return z3.Distinct([expressions[name] + by for name, by in zip(self.variables, offsets, strict=True)])


def value_of_sum(weights: tuple[int, ...], variables: tuple[str, ...], values: Mapping[str, Expression]) -> Expression:
    """A weighted sum, of numbers or of z3 expressions."""
    return sum(weight * values[name] for weight, name in zip(weights, variables, strict=True))


@dataclass(frozen=True, slots=True)
class _Sum:
    """What the constraints on a weighted sum share; no coefficients mean 1 each."""

    variables: tuple[str, ...]
    total: int
    coefficients: tuple[int, ...] = ()
    label: str = ""

    @property
    def scope(self) -> tuple[str, ...]:
        return self.variables

    @property
    def weights(self) -> tuple[int, ...]:
        """A coefficient for each variable."""
        return self.coefficients or (1,) * len(self.variables)

    @property
    def terms(self) -> str:
        """The sum as text: ``a+2b``."""
        named = zip(self.weights, self.variables, strict=True)
        parts = [f"{weight:+d}{name}" if abs(weight) != 1 else f"{'-+'[weight > 0]}{name}" for weight, name in named]
        return "".join(parts).removeprefix("+")

    def value(self, values: Mapping[str, Expression]) -> Expression:
        """The sum, of numbers or of z3 expressions."""
        return value_of_sum(self.weights, self.variables, values)


@dataclass(frozen=True, slots=True)
class SumIs(_Sum):
    """A weighted sum has a value: ``a+b=15``."""

    @property
    def text(self) -> str:
        return self.label or f"{self.terms}={self.total}"

    def holds(self, values: Values) -> bool:
        return bool(self.value(values) == self.total)

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        return self.value(expressions) == self.total


@dataclass(frozen=True, slots=True)
class SumAtMost(_Sum):
    """A weighted sum is at most a bound: ``3a+2b<=15``."""

    @property
    def text(self) -> str:
        return self.label or f"{self.terms}<={self.total}"

    def holds(self, values: Values) -> bool:
        return bool(self.value(values) <= self.total)

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        return self.value(expressions) <= self.total


@dataclass(frozen=True, slots=True)
class SumAtLeast(_Sum):
    """A weighted sum is at least a bound: ``3a+2b>=15``."""

    @property
    def text(self) -> str:
        return self.label or f"{self.terms}>={self.total}"

    def holds(self, values: Values) -> bool:
        return bool(self.value(values) >= self.total)

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        return self.value(expressions) >= self.total


@dataclass(frozen=True, slots=True)
class TableOf:
    """The values of some variables, in order, are one of the rows: ``(a,b):(1,2)|(2,1)``."""

    variables: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    label: str = ""

    @property
    def scope(self) -> tuple[str, ...]:
        return self.variables

    @property
    def text(self) -> str:
        rows = "|".join(f"({','.join(map(str, row))})" for row in self.rows)
        return self.label or f"({','.join(self.variables)}):{rows}"

    def holds(self, values: Values) -> bool:
        return tuple(values[name] for name in self.variables) in self.rows

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        import z3

        cells = [expressions[name] for name in self.variables]
        return z3.Or([z3.And([cell == value for cell, value in zip(cells, row, strict=True)]) for row in self.rows])
