"""How much of a working is right: which needed nodes it defines and evaluates as the graph does. Total and exact.

A working is read as equations that are separated by ``;``, white space apart::

    EQUATION := NAME "=" EXPR "=" NUMBER | NAME "=" NUMBER
    EXPR     := ATOM (SIGN ATOM)*   with * before + and -, from left to right
    ATOM     := NAME | NUMBER | "(" EXPR ")"

The first form is right for an operation if its EXPR is the definition of NAME, with the operands of + and * in either
order and any operand inlined (its own definition in its place), and NUMBER is the value; the second is right for a
constant. An equation of the first form that is not right, or with a number that is not the node's value, is wrong;
anything else between two ``;`` says nothing about any node. A needed node is right if at least one equation for it is
right and none is wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from testbeds.arithmetic import Numerals
from testbeds.arithmetic_graphs.graph import Graph

LONGEST_WORKING = 4_000  # characters without white space; an explicit working of 40 nodes has less than 1,500
LONGEST_EQUATION = 600  # tokens; 30 operations inlined in one equation have less than 200
NUMBER_LENGTH = 4  # digits; values have at most two

_DIGITS = re.compile(r"\s*([A-Za-z]+|[0-9](?:\s*[0-9])*|\S)")  # "1 2" is the number 12: two symbols
_WHOLE = re.compile(r"\s*([A-Za-z]+|[0-9]+|\S)")
_NUMBER = re.compile(r"0|[1-9][0-9]*")
_BINDS = {"+": 1, "-": 1, "*": 2}
_KIND = {"+": 1, "-": 2, "*": 3}
COMMUTING = (1, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The count of a working, over the nodes that the asked one needs, itself included."""

    nodes: int
    """How many nodes there are."""
    right: int
    """Nodes with an equation of their own, right parents, right operation and right value, and no wrong equation."""
    inlined: int
    """Operations that have no equation of their own and stand, spelt out, in a right one."""
    wrong: int
    """Nodes for which some equation is wrong."""

    @property
    def share(self) -> float:
        """Share of right nodes, in [0, 1]: 1 for an explicit working."""
        return self.right / self.nodes

    @property
    def covered(self) -> float:
        """Share of nodes that are right or inlined, in [0, 1]: 1 for a composed working, too."""
        return (self.right + self.inlined) / self.nodes


class _Tree(NamedTuple):
    """A part of an expression: what it may be (nodes, and ``-1 - n`` for a number), and its parts."""

    means: frozenset[int]
    kind: int = 0
    parts: tuple[_Tree, ...] = ()


class _Unreadable(Exception):  # noqa: N818  # ends the reading of one equation; never leaves this module
    pass


def read_process(graph: Graph, working: str, numerals: Numerals) -> Process:
    """The Process of any text. Longer than ``LONGEST_WORKING``, it is not read and nothing in it is right."""
    reader = _Reader(graph)
    right: set[int] = set()
    wrong: set[int] = set()
    inlined: set[int] = set()
    pattern = _DIGITS if numerals == "digits" else _WHOLE
    for segment in working.split(";") if len(working) <= LONGEST_WORKING else ():
        tokens = [_tight(token) for token in pattern.findall(segment)]
        node = reader.places.get(tokens[0]) if tokens else None
        if node is None or node >= graph.needed or len(tokens) > LONGEST_EQUATION:
            continue
        try:
            found = reader.equation(node, tokens)
        except _Unreadable:
            continue
        if found is None:
            wrong.add(node)
        else:
            right.add(node)
            inlined |= found
    right -= wrong
    return Process(nodes=graph.needed, right=len(right), inlined=len(inlined - right - wrong), wrong=len(wrong))


class _Reader:
    """Reads equations against one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.places = {name: place for place, name in enumerate(graph.names)}
        self.defined: dict[tuple[int, int, int], set[int]] = {}
        """Needed operations by kind and operands, in either order where they commute."""
        for node in range(graph.needed):
            kind, left, right = graph.definitions[node]
            self.defined.setdefault((kind, left, right), set()).add(node)
            if kind in COMMUTING:
                self.defined.setdefault((kind, right, left), set()).add(node)

    def equation(self, node: int, tokens: list[str]) -> set[int] | None:
        """The nodes that a right equation inlines, or None for a wrong one; raises _Unreadable for no equation."""
        if len(tokens) < 3 or tokens[1] != "=" or not _NUMBER.fullmatch(tokens[-1]):
            raise _Unreadable
        is_value = _number(tokens[-1]) == self.graph.values[node]
        if len(tokens) == 3:
            if not is_value:
                return None
            if self.graph.definitions[node][0]:
                raise _Unreadable  # a right value without parents: true, and no working
            return set()
        if tokens[-2] != "=":
            raise _Unreadable
        tree = self._tree(tokens[2:-2])
        if not is_value or not self._defines(tree, node):
            return None
        inlined: set[int] = set()
        self._collect(tree, node, inlined)
        return inlined

    def _tree(self, tokens: list[str]) -> _Tree:
        """The parsed expression (Dijkstra's shunting yard: nesting costs no stack)."""
        output: list[_Tree] = []
        waiting: list[str] = []
        wants_operand = True
        for token in tokens:
            if token == "(" and wants_operand:
                waiting.append(token)
            elif token == ")" and not wants_operand:
                self._release(waiting, output, binds=0)
                if not waiting:
                    raise _Unreadable
                waiting.pop()
            elif token in _BINDS and not wants_operand:
                self._release(waiting, output, binds=_BINDS[token])
                waiting.append(token)
                wants_operand = True
            elif wants_operand:
                output.append(_Tree(frozenset((self._atom(token),))))
                wants_operand = False
            else:
                raise _Unreadable
        if wants_operand or waiting.count("("):
            raise _Unreadable
        self._release(waiting, output, binds=0)
        return output[0]

    def _release(self, waiting: list[str], output: list[_Tree], binds: int) -> None:
        while waiting and waiting[-1] != "(" and _BINDS[waiting[-1]] >= binds:
            right, left = output.pop(), output.pop()
            kind = _KIND[waiting.pop()]
            means = frozenset(
                node for one in left.means for other in right.means for node in self.defined.get((kind, one, other), ())
            )
            output.append(_Tree(means, kind, (left, right)))

    def _atom(self, token: str) -> int:
        number = _number(token)
        if number is not None:
            return -1 - number
        if token not in self.places:
            raise _Unreadable
        return self.places[token]

    def _turned(self, kind: int, left: _Tree, right: _Tree, node: int) -> tuple[_Tree, _Tree] | None:
        """The two trees as the left and the right operand of the node's definition, or None if they are not."""
        _, first, second = self.graph.definitions[node]
        if first in left.means and second in right.means:
            return left, right
        if kind in COMMUTING and first in right.means and second in left.means:
            return right, left
        return None

    def _defines(self, tree: _Tree, node: int) -> bool:
        """Whether the tree is the node's definition, and not just its name."""
        kind, left, _ = self.graph.definitions[node]
        if kind == 0:
            return not tree.parts and left in tree.means
        return bool(tree.parts) and node in tree.means

    def _collect(self, tree: _Tree, node: int, inlined: set[int]) -> None:
        """Adds the nodes whose definitions stand inside the definition of ``node``."""
        waiting = [(tree, node)]
        while waiting:
            tree, node = waiting.pop()
            turned = self._turned(tree.kind, *tree.parts, node) if len(tree.parts) == 2 else None
            if turned is None:
                continue
            for part, operand in zip(turned, self.graph.definitions[node][1:], strict=True):
                if part.parts:
                    inlined.add(operand)
                    waiting.append((part, operand))


def _tight(token: str) -> str:
    return token if token.isalnum() else "".join(token.split())


def _number(token: str) -> int | None:
    """The value of a short ASCII numeral without leading zeros."""
    return int(token) if len(token) <= NUMBER_LENGTH and _NUMBER.fullmatch(token) else None
