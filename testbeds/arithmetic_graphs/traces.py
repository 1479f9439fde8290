"""The worked solutions of an arithmetic graph: explicit, with operations inlined, or silent, in three orders."""

from __future__ import annotations

from numpy.random import Generator

from testbeds.arithmetic_graphs.graph import SIGNS, Graph, forward_order, shuffled_order
from testbeds.core import Step, Trace, TraceStyle

SEPARATOR = ";"


def worked(graph: Graph, style: TraceStyle, rng: Generator) -> Trace:
    """The trace in a style that was checked. Its steps are the needed nodes; unwritten ones have no text."""
    order = shuffled_order(graph, rng) if style.order == "shuffled" else forward_order(graph)
    written = written_nodes(graph, order, style)
    told = reversed(order) if style.order == "backward" else order
    steps = []
    for node in told:
        value = str(graph.values[node])
        text = ""
        if node in written:
            is_constant = graph.definitions[node][0] == 0
            equals = "" if is_constant else f"={_inlined(graph, node, written)}"
            text = f"{graph.names[node]}{equals}={value}"
        steps.append(Step(operation=graph.operation(node), result=value, text=text))
    return Trace.worked(tuple(steps), str(graph.answer), separator=SEPARATOR)


def written_nodes(graph: Graph, order: tuple[int, ...], style: TraceStyle) -> frozenset[int]:
    """The nodes with an equation of their own; the others are inlined where they are used.

    Constants are always written. An operation is inlined while the equation that takes it in holds at most ``group``
    operations, unless it is used more than once: so no operation is written twice. Where two operands do not both fit,
    the longer one is written.
    """
    if style.granularity == "implicit":
        return frozenset()
    if style.granularity == "explicit":
        return frozenset(order)
    uses = [0] * graph.needed
    for node in order:
        for parent in graph.parents(node):
            uses[parent] += 1
    length = [0] * graph.needed  # operations that inlining the node takes; 0 for a written one
    for node in order:
        if graph.definitions[node][0] == 0:
            continue
        inside = sorted((parent for parent in graph.parents(node) if length[parent]), key=lambda parent: length[parent])
        while 1 + sum(length[parent] for parent in inside) > style.group:
            length[inside.pop()] = 0
        total = 1 + sum(length[parent] for parent in inside)
        is_inlined = total < style.group and uses[node] == 1
        length[node] = total if is_inlined else 0
    return frozenset(node for node in order if not length[node])


def _inlined(graph: Graph, node: int, written: frozenset[int]) -> str:
    """The definition of a node with its unwritten operands spelt out in parentheses."""
    kind, left, right = graph.definitions[node]
    sides = []
    for operand in (left, right):
        is_inlined = operand >= 0 and operand not in written
        sides.append(f"({_inlined(graph, operand, written)})" if is_inlined else graph.operand(operand))
    return SIGNS[kind].join(sides)


def check_style(style: TraceStyle, *, checked: bool) -> None:
    """Raises ValueError for a style that no arithmetic graph can be written in."""
    if style.search != "optimal":
        raise ValueError(
            f"ArithmeticGraphs has nothing to search for: its traces are written with search='optimal', got"
            f" {style.search!r}"
        )
    if checked and style.granularity != "explicit":
        raise ValueError(
            f"working='checked' demands an equation for each node, which only granularity='explicit' writes, got"
            f" {style.granularity!r}"
        )
