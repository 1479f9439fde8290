"""Graph colouring: give each node a colour so that no edge joins two nodes of one colour.

Texts (white space between symbols is free, and means nothing; answers as in family.py, by names):

=======  ==========================  =========================================================================
what     example                     grammar
=======  ==========================  =========================================================================
prompt   ``3:abcd:a-b,a-c,b-d>``     number of colours, ``:``, the nodes, ``:``, the edges, then ``>``
answer   ``a=1,b=2,c=2,d=1``         the colour of each node, from 1 up, in any order
=======  ==========================  =========================================================================

Every proper colouring is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from math import factorial, prod
from typing import ClassVar, Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from testbeds.core import Problem, Task
from testbeds.smt.constraints import NotEqual
from testbeds.smt.family import Facts, Family, Instance, check_whole, contents
from testbeds.smt.language import Puzzle, Variable
from testbeds.smt.logic import Told
from testbeds.smt.model import Integers
from testbeds.smt.renaming import canonical_writing
from testbeds.smt.search import Effort, Engine

LETTERS = "abcdefghijkl"

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Colouring(Family):
    """A graph that can be coloured.

    Its nodes are dealt to classes of equal size (give or take one), then its edges are drawn uniformly from the pairs
    of nodes of different classes. Facts: the edges, as pairs of nodes counted from 0. The key is the graph under
    renaming of its nodes; puzzles of one key are images of each other, with other answers. The floor is
    an upper bound for guesses that are blind to the edges: nodes are named at random, so all assignments with classes
    of the same sizes are as good, and it is the share of proper ones among those of the best sizes.
    """

    name: ClassVar[str] = "colouring"
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = "the same graph up to the names of its nodes"

    nodes: int = 6
    """3 to 12."""
    edges: int = 8
    """As many as the classes permit, at most."""
    colours: int = 3
    """2 to 5, not more than nodes."""

    def __post_init__(self) -> None:
        check_whole("Colouring.nodes", self.nodes, 3, len(LETTERS))
        check_whole("Colouring.colours", self.colours, 2, min(5, self.nodes))
        sizes = [len(range(colour, self.nodes, self.colours)) for colour in range(self.colours)]
        apart = (self.nodes**2 - sum(size**2 for size in sizes)) // 2
        check_whole(f"Colouring.edges for {self.nodes} nodes and {self.colours} colours", self.edges, 1, apart)

    @property
    def lexicon(self) -> tuple[str, ...]:
        return (*LETTERS[: self.nodes], "-", ">")

    @property
    def rules(self) -> str:
        return (
            f"Give each node of the graph one of the colours 1 to {self.colours} so that no edge joins two nodes of one"
            " colour. The prompt gives the number of colours, the nodes, and the edges, such as a-b."
        )

    def instance(self, rng: Generator) -> Instance:
        classes = (rng.permutation(self.nodes) % self.colours).tolist()
        apart = [edge for edge in combinations(range(self.nodes), 2) if classes[edge[0]] != classes[edge[1]]]
        chosen = rng.choice(len(apart), size=self.edges, replace=False)
        edges = tuple(apart[place] for place in sorted(chosen.tolist()))
        return Instance(facts=edges, solution=tuple(colour + 1 for colour in classes))

    def puzzle(self, facts: Facts) -> Puzzle:
        engine, active = self.engine(facts)
        return engine.told(active)

    def engine(self, facts: Facts) -> tuple[Engine, Integers]:
        engine, places = _graph(self.nodes, self.colours)
        return engine, engine.active(places[edge] for edge in facts)

    def prompt(self, facts: Facts) -> str:
        edges = ",".join(f"{LETTERS[one]}-{LETTERS[other]}" for one, other in facts)
        return f"{self.colours}:{LETTERS[: self.nodes]}:{edges}>"

    def canonical(self, facts: Facts) -> str:
        edges: tuple[Edge, ...] = facts
        near: list[set[int]] = [set() for _ in range(self.nodes)]
        for one, other in edges:
            near[one].add(other)
            near[other].add(one)
        written = canonical_writing(
            [""] * self.nodes,
            lambda node, colours: f"{sorted(colours[other] for other in near[node])}",
            lambda names: ",".join(
                f"{low}-{high}" for low, high in sorted(sorted((names[one], names[other])) for one, other in edges)
            ),
            lambda one, other: near[one] - {other} == near[other] - {one},
        )
        return f"{self.colours}:{self.nodes}:{written}"

    def measured(self, facts: Facts, effort: Effort) -> dict[str, int | float]:
        edges: tuple[Edge, ...] = facts
        counts = colourings(self.nodes, facts, self.colours)
        chromatic = next(colours for colours, count in enumerate(counts, 1) if count)
        return {"solutions": counts[-1], "chromatic_number": chromatic, "edges": len(edges)}

    def floor(self, problem: Problem) -> float:
        facts, _ = contents(problem)
        ways = by_sizes(self.nodes, facts, self.colours)
        return max(count * prod(map(factorial, sizes)) / factorial(self.nodes) for sizes, count in ways.items())


def colourings(nodes: int, edges: tuple[Edge, ...], most: int) -> list[int]:
    """Proper colourings with 1, 2, .. ``most`` colours at hand, exactly."""
    counts = [0] * most
    for sizes, count in by_sizes(nodes, edges, most).items():
        used = sum(size > 0 for size in sizes)
        for colours in range(used, most + 1):
            at_hand = sizes[:colours]  # the sizes descend, so all others are 0
            orders = factorial(colours) // prod(factorial(at_hand.count(size)) for size in set(at_hand))
            counts[colours - 1] += count * orders
    return counts


def by_sizes(nodes: int, edges: tuple[Edge, ...], colours: int) -> dict[tuple[int, ...], int]:
    """Proper colourings whose colour 1, 2, .. has just so many nodes, exactly, for all descending sizes.

    They are the tuples of independent sets of these sizes that cover all nodes (what covers all is disjoint, because
    the sizes add up to ``nodes``). By inclusion and exclusion over the sets S of nodes there are: sum of
    (-1)^(nodes - |S|) times the product over the sizes of the number of independent sets of that size inside S.
    Source: Bjorklund, Husfeldt, Koivisto, "Set partitioning via inclusion-exclusion", 2009.
    """
    size, sign = _subsets(nodes)
    independent = np.ones(2**nodes, dtype=bool)
    sets = np.arange(2**nodes)
    for one, other in edges:
        independent &= (sets >> one & sets >> other & 1) == 0
    inside = np.zeros((nodes + 1, 2**nodes), dtype=np.int64)
    inside[size, sets] = independent
    for node in range(nodes):
        halves = inside.reshape(nodes + 1, -1, 2, 2**node)
        halves[:, :, 1] += halves[:, :, 0]
    return {sizes: int(sign @ inside[list(sizes)].prod(axis=0)) for sizes in _descending(nodes, colours, nodes)}


@cache
def _descending(total: int, places: int, most: int) -> tuple[tuple[int, ...], ...]:
    """The tuples of ``places`` numbers from 0 to ``most`` that descend and add up to ``total``."""
    if places == 0:
        return ((),) if total == 0 else ()
    return tuple(
        (first, *rest)
        for first in range(min(total, most), -1, -1)
        for rest in _descending(total - first, places - 1, first)
    )


@lru_cache(maxsize=16)
def _subsets(nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The size of each set of nodes, and the sign with which it counts."""
    size = np.array([place.bit_count() for place in range(2**nodes)], dtype=np.int64)
    return size, 1 - 2 * ((nodes - size) % 2)


@lru_cache(maxsize=32)
def _graph(nodes: int, colours: int) -> tuple[Engine, dict[Edge, int]]:
    """The engine for all graphs, with any edge as a clue, and the place of each edge."""
    pairs = list(combinations(range(nodes), 2))
    names = [(LETTERS[one], LETTERS[other]) for one, other in pairs]
    puzzle = Puzzle(
        variables=tuple(Variable(name=name, domain=tuple(range(1, colours + 1))) for name in LETTERS[:nodes]),
        clues=tuple(Told(NotEqual(one, other), f"{one}-{other}") for one, other in names),
    )
    return Engine(puzzle), {pair: place for place, pair in enumerate(pairs)}


TESTBED: Final[type[Task]] = Colouring
LEVELS: Final[dict[str, Task]] = {
    "easy": Colouring(nodes=8, edges=12, colours=3),
    "medium": Colouring(nodes=9, edges=18, colours=3),
    "hard": Colouring(nodes=11, edges=32, colours=4),
}
