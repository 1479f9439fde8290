"""Maps of the frozen lake: letters, ways over dry ice, random layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations
from math import comb
from typing import Literal

import numpy as np
from numpy.random import Generator

from testbeds.core import Unrealisable
from testbeds.frozen_lake_plans import ACTIONS, Ice
from testbeds.grid_worlds import STEPS, canonical_board
from testbeds.streams import stream

Ends = Literal["corners", "anywhere"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """One map; cells count along the rows from 0."""

    height: int
    width: int
    holes: tuple[int, ...]
    """In ascending order."""
    start: int
    goal: int

    def letters(self) -> str:
        """One symbol a cell, row after row: S start, G goal, H hole, F frozen."""
        special = {**dict.fromkeys(self.holes, "H"), self.start: "S", self.goal: "G"}
        return "".join([special.get(cell, "F") for cell in range(self.height * self.width)])

    def after(self, cell: int, action: str) -> int:
        """The cell that an action leads to without a slip; at the edge it leads nowhere."""
        row, column = divmod(cell, self.width)
        down, aside = STEPS[action]
        row, column = row + down, column + aside
        return row * self.width + column if 0 <= row < self.height and 0 <= column < self.width else cell

    def distances(self) -> dict[int, int]:
        """Fewest actions to the goal, for each cell from which it can be reached without a hole and without a slip."""
        holes, found = set(self.holes), {self.goal: 0}
        pending = [self.goal]
        for cell in pending:  # grows while it is read
            for action in STEPS:
                other = self.after(cell, action)  # ways without slips can be walked back
                if other not in found and other not in holes:
                    found[other] = found[cell] + 1
                    pending.append(other)
        return found

    def ice(self) -> Ice:
        """The map as numbers, for slippery ice."""
        cells = self.height * self.width
        final = {*self.holes, self.goal}
        ahead = [[cell if cell in final else self.after(cell, action) for action in ACTIONS] for cell in range(cells)]
        return Ice(ahead=np.array(ahead, np.int64), start=self.start, goal=self.goal)


def way_counts(lake: Lake, distances: dict[int, int]) -> dict[int, int]:
    """Number of shortest action sequences to the goal from each cell that lies on a shortest way."""
    counts = {lake.goal: 1}
    for cell in sorted(distances, key=lambda cell: distances[cell])[1:]:
        counts[cell] = sum(counts[other] for _, other in closer(lake, distances, cell))
    return counts


def closer(lake: Lake, distances: dict[int, int], cell: int) -> list[tuple[str, int]]:
    """(action, cell) of each action that comes closer to the goal."""
    reached = [(action, lake.after(cell, action)) for action in STEPS]
    return [(action, other) for action, other in reached if distances.get(other) == distances[cell] - 1]


def shortest_drawn(lake: Lake, rng: Generator) -> str:
    """One of the shortest action sequences, each as likely."""
    distances = lake.distances()
    counts = way_counts(lake, distances)
    cell, actions = lake.start, ""
    while cell != lake.goal:
        place = int(rng.integers(counts[cell]))
        for action, other in closer(lake, distances, cell):
            place -= counts[other]
            if place < 0:
                cell, actions = other, actions + action
                break
    return actions


def shortest(lake: Lake) -> Iterator[str]:
    """Every shortest action sequence once."""
    distances = lake.distances()
    pending = [(lake.start, "")]
    while pending:
        cell, actions = pending.pop()
        if cell == lake.goal:
            yield actions
        else:
            pending += [(other, actions + action) for action, other in closer(lake, distances, cell)]


def layouts_drawn(shape: tuple[int, int], holes: int, ends: Ends, rng: Generator, count: int) -> list[Lake]:
    """Maps drawn uniformly from all with these numbers, whether the goal can be reached or not."""
    height, width = shape
    cells = height * width
    if ends == "corners":
        inner = rng.random((count, cells - 2)).argsort(axis=1)[:, :holes] + 1
        rows = [(0, cells - 1, *row) for row in inner.tolist()]
    else:
        rows = [tuple(row) for row in rng.random((count, cells)).argsort(axis=1)[:, : holes + 2].tolist()]
    return [_lake(shape, row) for row in rows]


def layouts_walked(shape: tuple[int, int], holes: int, ends: Ends) -> Iterator[Lake]:
    """All these maps, in a stable order."""
    cells = range(shape[0] * shape[1])
    pairs = [(0, cells[-1])] if ends == "corners" else permutations(cells, 2)
    for pair in pairs:
        for wet in combinations([cell for cell in cells if cell not in pair], holes):
            yield _lake(shape, (*pair, *wet))


@lru_cache(maxsize=16)
def one_of_each_form(shape: tuple[int, int], holes: int, ends: Ends, moves: tuple[int, int]) -> tuple[Lake, ...]:
    """One map of each canonical form, in the order of the forms' first maps; which of its images is drawn.

    ``moves`` are the smallest and largest length of a shortest way.
    """
    images: dict[str, list[Lake]] = {}
    for lake in layouts_walked(shape, holes, ends):
        if moves[0] <= lake.distances().get(lake.start, -1) <= moves[1]:
            images.setdefault(canonical_board(lake.letters(), *shape), []).append(lake)
    return tuple(
        lakes[int(stream("frozen lake image", canonical).integers(len(lakes)))] for canonical, lakes in images.items()
    )


def layouts_counted(shape: tuple[int, int], holes: int, ends: Ends) -> int:
    """How many maps there are."""
    cells = shape[0] * shape[1]
    return (1 if ends == "corners" else cells * (cells - 1)) * comb(cells - 2, holes)


def _lake(shape: tuple[int, int], row: tuple[int, ...]) -> Lake:
    return Lake(height=shape[0], width=shape[1], start=row[0], goal=row[1], holes=tuple(sorted(row[2:])))


def falls_drawn(lake: Lake, cells: list[int], backtracks: int | None, rng: Generator) -> list[list[str]]:
    """The falls to show at each place of a way: exactly ``backtracks``, or those that a drawn order meets.

    Raises:
        Unrealisable: where there are fewer than asked.
    """
    wet = [[action for action in STEPS if lake.after(cell, action) in lake.holes] for cell in cells]
    if backtracks is None:
        orders = [rng.permutation(len(actions) + 1).tolist() for actions in wet]  # the last stands for the right action
        return [
            [actions[fall] for fall in order[: order.index(len(actions))]]
            for actions, order in zip(wet, orders, strict=True)
        ]
    falls = [(place, action) for place, actions in enumerate(wet) for action in actions]
    if len(falls) < backtracks:
        raise Unrealisable(f"the way has {len(falls)} holes beside it, {backtracks} falls were asked for")
    chosen: list[list[str]] = [[] for _ in cells]
    for fall in rng.permutation(len(falls))[:backtracks].tolist():
        chosen[falls[fall][0]].append(falls[fall][1])
    return chosen
