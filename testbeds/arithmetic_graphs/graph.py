"""The certificate of an arithmetic graph, its canonical text, and the orders in which its nodes can be told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from testbeds.arithmetic_graphs import kernels
from testbeds.arithmetic_graphs.kernels import Ints
from testbeds.graph_problems.canonical import order_of_cells, refine_each

MOST_NODES = 40
LARGEST_MODULUS = 97  # two digits: a larger one tests arithmetic, not graphs
SIGNS = ("", "+", "-", "*")  # by kind; a constant has none

AT_ONCE = 1024  # graphs whose tables of edges are in memory together, 13 MB with 40 nodes each

# Operands are looked up in a table of nodes, followed by the numbers from the last to 0: -1 - n is the place of n.
_PLACES = tuple(map(str, range(MOST_NODES)))
_NUMBERS = tuple(f"n{number}" for number in reversed(range(LARGEST_MODULUS)))

Definition = tuple[int, int, int]
"""Kind, left and right operand, as kernels.py says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The nodes of a problem; each stands after what it depends on."""

    modulus: int
    """Values are counted modulo this prime."""
    names: tuple[str, ...]
    """As the prompt calls the nodes."""
    definitions: tuple[Definition, ...]
    """Each (kind, left, right): kind 0 is the constant ``-1 - left``, 1, 2 and 3 are + - and \\*; an operand is the
    place of an earlier node, or ``-1 - n`` for the number n."""
    values: tuple[int, ...]
    """What the nodes come to."""
    needed: int
    """How many of the first nodes the asked one needs, itself included: it is the last of them."""

    @property
    def answer(self) -> int:
        """The value of the asked node."""
        return self.values[self.needed - 1]

    def operand(self, reference: int) -> str:
        """An operand as equations write it."""
        return self.names[reference] if reference >= 0 else str(-1 - reference)

    def operation(self, node: int) -> str:
        """The right-hand side of a node's definition, such as ``a+2``."""
        kind, left, right = self.definitions[node]
        return f"{self.operand(left)}{SIGNS[kind]}{self.operand(right)}" if kind else self.operand(left)

    def parents(self, node: int) -> tuple[int, ...]:
        """The nodes that a definition names, left first."""
        kind, left, right = self.definitions[node]
        return tuple([operand for operand in ((left, right) if kind else ()) if operand >= 0])


def forward_order(graph: Graph) -> tuple[int, ...]:
    """The needed nodes, operands first: as a walk from the asked node that turns left first comes back from them.

    The order follows from the question alone, not from the order of the sentences.
    """
    order: list[int] = []
    seen: set[int] = set()
    waiting = [(graph.needed - 1, False)]
    while waiting:
        node, returns = waiting.pop()
        if returns:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            waiting.append((node, True))
            waiting += [(parent, False) for parent in reversed(graph.parents(node))]
    return tuple(order)


def shuffled_order(graph: Graph, rng: Generator) -> tuple[int, ...]:
    """The needed nodes, each after its operands: the next one is drawn uniformly from all that may come next."""
    left = set(range(graph.needed))
    order: list[int] = []
    while left:
        ready = [node for node in sorted(left) if left.isdisjoint(graph.parents(node))]
        node = ready[int(rng.integers(len(ready)))]
        left.remove(node)
        order.append(node)
    return tuple(order)


def canonical_text(definitions: Iterable[Definition], asked: int) -> str:
    """The text that all renamings of a graph share and no other graph has; see ``kernels.label`` for what is merged."""
    listed = tuple(definitions)
    row_KPN = np.zeros((4, 1, len(listed)), dtype=np.int64)
    row_KPN[:3, 0] = np.array(listed, dtype=np.int64).T
    cell_PN = stable_cells(row_KPN, np.array([asked + 1]), len(listed) - asked - 1)
    return text_of_cells(listed, asked, cell_PN[0].tolist())


def stable_cells(row_KPN: Ints, needed_P: Ints, distractors: int) -> Ints:
    """The stable cells (see canonical.py) of each graph, the first ``needed_P + distractors`` nodes of its row."""
    count, nodes = row_KPN.shape[1:]
    cell_PN = np.zeros((count, nodes), dtype=np.int64)
    for first in range(0, count, AT_ONCE):
        some = slice(first, first + AT_ONCE)
        _label_and_refine(row_KPN[:, some], needed_P[some], distractors, cell_PN[some])
    return cell_PN


def _label_and_refine(row_KPN: Ints, needed_P: Ints, distractors: int, cell_PN: Ints) -> Ints:
    """Writes the stable cells of a few graphs; their tables of edges."""
    count, nodes = cell_PN.shape
    edge_PNN = np.zeros((count, nodes, nodes), dtype=np.int64)
    kernels.label((np.ascontiguousarray(row_KPN), needed_P), distractors, cell_PN, edge_PNN)
    refine_each(cell_PN, edge_PNN, needed_P + distractors)
    return edge_PNN


def text_of_cells(definitions: tuple[Definition, ...], asked: int, cells: list[int]) -> str:
    """``canonical_text``, from stable cells."""
    size = len(definitions)
    place = cells if max(cells) == size - 1 else _place(definitions, asked)
    operands = [*map(_PLACES.__getitem__, place), *_NUMBERS]
    texts = [""] * size
    for where, (kind, left, right) in zip(place, definitions, strict=True):
        one = operands[left]
        if kind:
            other = operands[right]
            in_order = kind == 2 or one < other
            one = one + SIGNS[kind] + other if in_order else other + SIGNS[kind] + one
        texts[where] = one
    return f"{','.join(texts)}?{place[asked]}"


def _place(definitions: tuple[Definition, ...], asked: int) -> list[int]:
    """The canonical place of each node, where refinement alone does not give it."""
    size = len(definitions)
    row_KPN = np.array(definitions, dtype=np.int64).T.reshape(3, 1, size)
    cell_PN = np.zeros((1, size), dtype=np.int64)
    edge_NN = _label_and_refine(row_KPN, np.array([asked + 1]), size - asked - 1, cell_PN)[0]
    place = [0] * size
    for where, v in enumerate(order_of_cells(cell_PN[0], edge_NN)):
        place[v] = where
    return place
