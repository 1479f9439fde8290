"""How a puzzle is solved on paper: what follows from which constraint, what is guessed, and where a guess fails.

A walk is a list of moves. The ``forward`` walk propagates as strongly as it can and guesses, rightly, only where that
is not enough. A ``depth_first`` walk shows the search instead, wrong guesses included: each of its dead ends is a
guess whose consequences contradict a constraint, a leaf of the puzzle's own search tree, and no two are the same
leaf. How the tree branches is the heuristic:

=============  ===========================================  =========================================================
heuristic      next variable                                what is deduced after a guess
=============  ===========================================  =========================================================
``plain``      the first unknown one                        nothing: a constraint fails once its variables are known
``given``      the first unknown one                        a constraint acts once all its variables but one are known
``smallest``   with the fewest values left, the first such  the same
``propagated`` as ``smallest``                              all that the constraints' propagation gives
=============  ===========================================  =========================================================

Along the way to the solution, each branch that holds no solution has a fixed number of dead ends. A walk with exactly
k of them tries, before the right value, a set of such branches whose dead ends add up to k; where no set does, there
is no walk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.random import Generator

from testbeds.core import Unrealisable
from testbeds.smt import kernels
from testbeds.smt.model import CHECK, JUDGE, PROPAGATE, Integers
from testbeds.smt.search import Engine
from testbeds.smt.working import MOST_DEAD_ENDS, adding_up

HEURISTICS: Final = ("plain", "given", "smallest", "propagated")
_LEVELS: Final = {"plain": JUDGE, "propagated": PROPAGATE}

BOUND = -2

Kind = Literal["deduced", "guessed", "dead"]


@dataclass(frozen=True, slots=True)
class Move:
    """One line of the walk."""

    kind: Kind
    constraint: int
    """Place of the constraint, in rules then clues, that says so; -1 for a guess, BOUND for the objective."""
    variable: int
    """Place of the variable; -1 for a dead end that no variable shows."""
    values: tuple[int, ...]
    """The values that are left."""
    lost: tuple[int, ...]
    """The values that went."""


class Walker:
    """Solves a puzzle on paper; ``active`` says which rows of the engine count.

    With ``best``, only solutions whose objective is that good count: the search knows what it looks for.
    """

    def __init__(
        self, engine: Engine, active: Integers, heuristic: str = "propagated", *, best: int | None = None
    ) -> None:
        self._engine = engine
        self._active, self._high = engine.as_good_as(active, best)
        self._in_order = heuristic in ("plain", "given")
        self._level = _LEVELS.get(heuristic, CHECK)
        self._log = np.empty((int(sum(map(int.bit_count, engine.masks.tolist()))) + 1, 4), dtype=np.int64)

    def forward(self, solution: tuple[int, ...]) -> list[Move]:
        """Deductions, with a right guess where they end, up to the solution."""
        masks = self._engine.masks.copy()
        _, moves = self._consequences(masks, -1)
        while (variable := self._next(masks)) >= 0:
            _, more = self._guess(masks, variable, solution[variable])
            moves += more
        return moves

    def first_found(self) -> tuple[list[Move], tuple[int, ...]]:
        """The depth-first search that tries values in ascending order, and the solution at which it ends."""
        masks = self._engine.masks.copy()
        _, moves = self._consequences(masks, -1)
        found = self._descend(masks, moves, [0])
        if found is None:
            raise Unrealisable("the puzzle has no solution, so no search ends at one")
        return moves, tuple((found + self._engine.model.base).tolist())

    def with_dead_ends(self, solution: tuple[int, ...], count: int, rng: Generator) -> list[Move]:
        """The depth-first search that meets exactly ``count`` dead ends on its way to the solution.

        Raises:
            Unrealisable: where no order of the branches does.
        """
        wrong = self._wrong_branches(solution, count)
        chosen = [wrong[place] for place in adding_up([ends for _, _, ends in wrong], count, rng)]
        masks = self._engine.masks.copy()
        _, moves = self._consequences(masks, -1)
        while (variable := self._next(masks)) >= 0:
            for place, value, _ in chosen:
                if place == variable:
                    trial = masks.copy()
                    fine, more = self._guess(trial, variable, value)
                    moves += more
                    if fine:
                        self._descend(trial, moves, [0])
            _, more = self._guess(masks, variable, solution[variable])
            moves += more
        return moves

    def _wrong_branches(self, solution: tuple[int, ...], most: int) -> list[tuple[int, int, int]]:
        """(variable, value, dead ends) of each wrong branch on the way to the solution, if at most ``most``."""
        masks = self._engine.masks.copy()
        self._consequences(masks, -1)
        branches = []
        while (variable := self._next(masks)) >= 0:
            for value in self._values(int(masks[variable])):
                if value != solution[variable]:
                    trial = masks.copy()
                    fine, _ = self._guess(trial, variable, value)
                    ends = self._dead_ends(trial, most) if fine else 1
                    if ends is not None and ends <= most:
                        branches.append((variable, value, ends))
            self._guess(masks, variable, solution[variable])
        return branches

    def _dead_ends(self, masks: Integers, most: int) -> int | None:
        """How many dead ends the tree below has, counted up to one more than ``most``; None where it has a solution."""
        met = [0, most]
        return None if self._descend(masks, [], met) is not None else met[0]

    def _descend(self, masks: Integers, moves: list[Move], met: list[int]) -> Integers | None:
        """Appends the search below to ``moves``; its solution as bits, or None after all branches failed.

        ``met[0]`` counts dead ends; where there is a ``met[1]``, the search stops, with None, once there are more.
        """
        variable = self._next(masks)
        if variable < 0:
            return np.array([kernels.lowest(int(mask)) for mask in masks], dtype=np.int64)
        limit = met[1] if len(met) > 1 else MOST_DEAD_ENDS
        for value in self._values(int(masks[variable])):
            trial = masks.copy()
            fine, more = self._guess(trial, variable, value)
            moves += more
            found = self._descend(trial, moves, met) if fine else None
            if found is not None:
                return found
            met[0] += not fine
            if met[0] > limit:
                if len(met) == 1:
                    raise Unrealisable(f"the search meets more than {MOST_DEAD_ENDS} dead ends, too many to write")
                return None
        return None

    def _guess(self, masks: Integers, variable: int, value: int) -> tuple[bool, list[Move]]:
        """Settles a variable in ``masks``; whether no constraint fails, and the moves."""
        before = int(masks[variable])
        masks[variable] = 1 << (value - self._engine.model.base)
        lost = self._values(before & ~int(masks[variable]))
        fine, moves = self._consequences(masks, variable)
        return fine, [Move("guessed", -1, variable, (value,), lost), *moves]

    def _consequences(self, masks: Integers, trigger: int) -> tuple[bool, list[Move]]:
        engine = self._engine
        fine, lines = kernels.propagate(
            engine.model, self._active, self._high, masks, trigger, -1, self._level, self._log
        )
        return fine, list(self._moves(lines, fine=fine))

    def _moves(self, lines: int, *, fine: bool) -> Iterator[Move]:
        for place, (row, variable, before, after) in enumerate(self._log[:lines].tolist()):
            is_dead = not fine and place == lines - 1
            source = self._engine.source.get(row, BOUND)
            if is_dead:
                yield Move("dead", source, variable, (), self._values(before))
            else:
                yield Move("deduced", source, variable, self._values(after), self._values(before & ~after))

    def _next(self, masks: Integers) -> int:
        """The variable to guess next; -1 where all are known."""
        sizes = [int(mask).bit_count() for mask in masks]
        unknown = [place for place, size in enumerate(sizes) if size > 1]
        if not unknown:
            return -1
        return unknown[0] if self._in_order else min(unknown, key=sizes.__getitem__)

    def _values(self, mask: int) -> tuple[int, ...]:
        base = self._engine.model.base
        return tuple(base + bit for bit in range(mask.bit_length()) if mask >> bit & 1)
