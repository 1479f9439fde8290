"""z3 as a second opinion: the same questions as search.py's, answered by another program from the same puzzle.

The tests hold every family against it; the families ask it only where their own search would exceed its bound. z3 is
imported when it is first asked, which takes a tenth of a second.
"""

from __future__ import annotations

from testbeds.smt.constraints import Expression
from testbeds.smt.language import Puzzle


def solutions(puzzle: Puzzle, most: int) -> list[tuple[int, ...]]:
    """Up to ``most`` different solutions, as values in the order of the variables. The objective plays no part."""
    import z3

    solver = z3.Solver()
    cells = _tell(puzzle, solver)
    found: list[tuple[int, ...]] = []
    while len(found) < most and solver.check() == z3.sat:
        model = solver.model()
        found.append(tuple(model.evaluate(cell, model_completion=True).as_long() for cell in cells))
        solver.add(z3.Or([cell != value for cell, value in zip(cells, found[-1], strict=True)]))
    return found


def is_unique(puzzle: Puzzle) -> bool:
    """Whether there is exactly one solution."""
    return len(solutions(puzzle, 2)) == 1


def optimum(puzzle: Puzzle) -> int | None:
    """The best value of the objective over all solutions; None where there is no solution."""
    import z3

    if puzzle.objective is None:
        raise ValueError("the puzzle has no objective; ask for its solutions")
    solver = z3.Optimize()
    cells = _tell(puzzle, solver)
    goal = puzzle.objective.value(dict(zip(puzzle.names, cells, strict=True)))
    (solver.maximize if puzzle.objective.maximise else solver.minimize)(goal)
    if solver.check() != z3.sat:
        return None
    return int(solver.model().evaluate(goal, model_completion=True).as_long())


def _tell(puzzle: Puzzle, solver: Expression) -> list[Expression]:
    """The variables as z3 expressions, in order, after the solver has been told all that is true of them."""
    import z3

    cells = [z3.Int(variable.name) for variable in puzzle.variables]
    for cell, variable in zip(cells, puzzle.variables, strict=True):
        solver.add(z3.Or([cell == value for value in variable.domain]))
    named = dict(zip(puzzle.names, cells, strict=True))
    for constraint in puzzle.constraints:
        solver.add(constraint.to_z3(named))
    return cells
