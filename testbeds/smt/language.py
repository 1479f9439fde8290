"""A small language in which a puzzle is a value: variables, rules, clues, and perhaps an objective.

    puzzle = Puzzle(
        variables=tuple(Variable(name=name, domain=(1, 2, 3)) for name in "abc"),
        rules=(AllDifferent(("a", "b", "c")),),
        clues=(LessThan("a", "b"), Is("c", 2)),
    )

What can be asked of a puzzle (each exact; search.py unless said otherwise):

``violation(puzzle, values)``              the first constraint that an assignment breaks, in words; None where none is
``solutions(puzzle, most)``                up to ``most`` solutions, as tuples of values in the order of the variables
``count(puzzle, most)``                    how many solutions there are, counted up to ``most``
``is_unique(puzzle)``                      whether there is exactly one
``optimum(puzzle)``                        the best objective and a solution that reaches it; None where unsolvable
``random_solution(puzzle, rng)``           some solution, drawn by a search with random branches (not uniformly)
``minimal_clues(puzzle, candidates, rng)`` clues out of some true ones that leave one solution, none of them superfluous
``effort(puzzle)``                         branches that the search tries, and whether propagation alone solves it
``Walker(engine, active)``                 what follows from the constraints, step by step, and searches (deduction.py)
``oracle.solutions(puzzle, most)``         the same from z3 (oracle.py), which shares nothing with the search but holds

**Variables** have a name and a finite domain of whole numbers, ascending, at most 62 apart over the whole puzzle (a
domain is a bit mask in the search; the oracle has no such bound). ``words`` gives the values another name in texts.

**Constraints** (constraints.py, logic.py) may be given in order like the words of a sentence:

==============================================  ====================================================================
``Is(x, 3)``, ``OneOf(x, (2, 3))``              of one variable
``Equal(x, y)``, ``NotEqual(x, y)``             of two variables
``LessThan(x, y)``, ``Adjacent(x, y)``          x < y; |x - y| = 1
``Precedence(x, y, by)``, ``Offset(x, y, by)``  x + by <= y; x + by = y
``AllDifferent(xs, label, offsets)``            the values, plus their offsets, differ pairwise
``SumIs(xs, total, coefficients)``              and ``SumAtMost``, ``SumAtLeast``; no coefficients mean 1 each
``TableOf(xs, rows)``                           the values are one of the rows
``Not(c)``, ``And((c, ..))``, ``Or((c, ..))``   of constraints, nested as deep as wanted
``Iff(c, c)``, ``Implies(c, c)``                of constraints, too
``Told(c, "words")``                            the constraint c, written otherwise
==============================================  ====================================================================

Any frozen value with ``scope``, ``text``, ``holds`` and ``to_z3`` is a constraint too. Rules are what is true of every
puzzle of a family, clues are what this one tells; for the meaning it makes no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from testbeds.smt.constraints import Constraint, Expression, Values, value_of_sum

WIDEST = 62
"""Values from the lowest to the highest of a puzzle, at most: they are the bits of a signed 64-bit mask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """An unknown whole number."""

    name: str
    """How texts call it: not empty, without white space."""
    domain: tuple[int, ...]
    """Its possible values, ascending."""
    words: tuple[str, ...] = ()
    """How each value of the domain is written; empty: as a number."""

    def __post_init__(self) -> None:
        if not self.name or any(character.isspace() for character in self.name):
            raise ValueError(f"Variable.name must be a word without white space, got {self.name!r}")
        are_whole = all(type(value) is int for value in self.domain)
        if not are_whole or not self.domain or tuple(sorted(set(self.domain))) != self.domain:
            raise ValueError(f"Variable.domain must be a tuple of ascending whole numbers, got {self.domain!r}")
        if self.words and (len(self.words) != len(self.domain) or len(set(self.words)) != len(self.words)):
            raise ValueError(
                f"Variable.words must name each of {self.domain!r} by a word of its own, got {self.words!r}"
            )

    def word(self, value: int) -> str:
        """How a value of the domain is written."""
        return self.words[self.domain.index(value)] if self.words else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A weighted sum of variables that is to be as large, or as small, as can be."""

    variables: tuple[str, ...]
    coefficients: tuple[int, ...]
    """One for each variable."""
    maximise: bool
    """Whether large is good."""

    def __post_init__(self) -> None:
        if len(self.variables) != len(self.coefficients) or not self.variables:
            raise ValueError(
                f"an objective has one coefficient for each of its variables, got {len(self.coefficients)} for"
                f" {len(self.variables)}"
            )

    def value(self, values: Mapping[str, Expression]) -> Expression:
        """The sum, of numbers or of z3 expressions."""
        return value_of_sum(self.coefficients, self.variables, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Puzzle:
    """Variables, and what is true of them."""

    variables: tuple[Variable, ...]
    rules: tuple[Constraint, ...] = ()
    """What holds in every puzzle of the family."""
    clues: tuple[Constraint, ...] = ()
    """What this puzzle tells."""
    objective: Objective | None = None
    """What the best of the solutions have as large or as small as can be; None where all count alike."""

    def __post_init__(self) -> None:
        names = [variable.name for variable in self.variables]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"a puzzle needs variables with different names, got {names}")
        known = set(names)
        for constraint in self.constraints:
            if not known.issuperset(constraint.scope):
                unknown = [name for name in constraint.scope if name not in known]
                raise ValueError(f"{constraint.text!r} speaks of {unknown}, which the puzzle does not have: {names}")
        if self.objective is not None and not known.issuperset(self.objective.variables):
            raise ValueError(f"the objective speaks of {self.objective.variables}; the puzzle has {names}")

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The rules, then the clues."""
        return self.rules + self.clues

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables, in order."""
        return tuple(variable.name for variable in self.variables)

    def assignment(self, solution: tuple[int, ...]) -> dict[str, int]:
        """A solution by name."""
        return dict(zip(self.names, solution, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """What is wrong with an assignment."""

    reason: str
    """One sentence, such as ``row1 is violated``."""
    held: float
    """Share of the constraints that are met, below 1; 0 where a variable has no permitted value."""
    constraint: Constraint | None = field(default=None)
    """The first constraint that is not met; None where a variable has no permitted value."""


def violation(puzzle: Puzzle, values: Values) -> Violation | None:
    """The first thing wrong with an assignment: a variable without a permitted value, or a constraint that is broken.

    The objective is not judged here: a feasible assignment has no violation.
    """
    for variable in puzzle.variables:
        value = values.get(variable.name)
        if value is None:
            return Violation(reason=f"{variable.name} has no value", held=0.0)
        if value not in variable.domain:
            return Violation(reason=f"{variable.name} has a value outside its domain", held=0.0)
    broken = [constraint for constraint in puzzle.constraints if not constraint.holds(values)]
    if not broken:
        return None
    return Violation(
        reason=f"{broken[0].text} is violated",
        held=1 - len(broken) / len(puzzle.constraints),
        constraint=broken[0],
    )
