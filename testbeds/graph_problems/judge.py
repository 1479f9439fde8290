"""The verdict on any text as an answer to a graph problem: feasible and optimal are judged apart. Total and exact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, pairwise

from testbeds.arithmetic import Flaw, shown
from testbeds.core import ANSWER_MARK
from testbeds.graph_problems.instance import NAMES, Instance, letters

Weights = dict[tuple[int, int], int]

MOST_TEXT = 100_000  # characters that a completion may have


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What an answer in the right form is worth."""

    feasible: bool
    """Whether it is a path, tour or set of the kind that is asked for."""
    optimal: bool
    """Whether it is feasible and none is better."""
    value: int
    """Weight of a path or tour, size of a set; 0 where it is not feasible."""
    quality: float
    """Of a feasible answer the ratio of its value and the optimum that is at most 1, so 1 if optimal; else 0."""
    reason: str
    """One sentence."""


def read_vertices(completion: str, vertices: int) -> tuple[int, ...] | Flaw:
    """The vertices of an answer in their order, or what is wrong with its form."""
    if len(completion) > MOST_TEXT:
        return Flaw(reason=f"the completion has {len(completion)} characters, at most {MOST_TEXT} are read")
    marks = completion.count(ANSWER_MARK)
    if marks > 1:
        return Flaw(reason=f"{marks} answer marks {ANSWER_MARK}, at most one is allowed")
    answer = "".join(completion.rpartition(ANSWER_MARK)[2].split())
    if not answer:
        return Flaw(reason="the answer is empty")
    places: list[int] = []
    for letter in answer:
        place = NAMES.find(letter, 0, vertices)
        if place < 0:
            return Flaw(reason=f"{shown(letter)} is not one of the vertices {NAMES[0]} to {NAMES[vertices - 1]}")
        if place in places:
            return Flaw(reason=f"the vertex {letter} is named twice")
        places.append(place)
    return tuple(places)


def judge(instance: Instance, answer: tuple[int, ...]) -> Judgement:
    """The Judgement of different vertices of the graph, in the order in which they are named."""
    edges = {(a, b): weight for a, b, weight in instance.edges}
    fault = _fault(instance, edges, answer)
    if fault:
        return Judgement(feasible=False, optimal=False, value=0, quality=0.0, reason=f"infeasible: {fault}")
    text = letters(answer)
    if instance.problem in ("shortest_path", "travelling_salesman"):
        around = (answer[0],) if instance.problem == "travelling_salesman" else ()
        value = sum(edges[_edge(a, b)] for a, b in pairwise((*answer, *around)))
        what, quality = f"the {instance.name} {text} of weight {value}", instance.optimum / value
    else:
        value = len(answer)
        what = f"the {instance.name} {text} of size {value}"
        quality = instance.optimum / value if instance.problem == "vertex_cover" else value / instance.optimum
    if value == instance.optimum:
        return Judgement(feasible=True, optimal=True, value=value, quality=1.0, reason=f"{what} is optimal")
    reason = f"{what} is feasible but not optimal: the optimum is {instance.optimum}"
    return Judgement(feasible=True, optimal=False, value=value, quality=quality, reason=reason)


def _fault(instance: Instance, edges: Weights, answer: tuple[int, ...]) -> str:
    """Why an answer is not feasible; empty if it is."""
    if instance.problem == "shortest_path":
        return _path_fault(instance, edges, answer)
    if instance.problem == "travelling_salesman":
        return _tour_fault(instance, answer)
    return _set_fault(instance, edges, answer)


def _edge(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _path_fault(instance: Instance, edges: Weights, answer: tuple[int, ...]) -> str:
    start, end = instance.terminals
    if (answer[0], answer[-1]) != (start, end):
        return f"a path from {NAMES[start]} to {NAMES[end]} does not run from {NAMES[answer[0]]} to {NAMES[answer[-1]]}"
    return _missing(edges, pairwise(answer))


def _tour_fault(instance: Instance, answer: tuple[int, ...]) -> str:
    left_out = [v for v in range(instance.vertices) if v not in answer]
    return f"the tour leaves out the vertex {NAMES[left_out[0]]}" if left_out else ""


def _set_fault(instance: Instance, edges: Weights, answer: tuple[int, ...]) -> str:
    if instance.problem == "clique":
        return _missing(edges, combinations(answer, 2))
    if instance.problem == "vertex_cover":
        return next((f"the edge {letters(pair)} is not covered" for pair in edges if not {*pair} & {*answer}), "")
    inside = (pair for pair in combinations(answer, 2) if _edge(*pair) in edges)
    return next((f"the edge {letters(pair)} is inside the set" for pair in inside), "")


def _missing(edges: Weights, pairs: Iterable[tuple[int, int]]) -> str:
    return next((f"there is no edge {letters(pair)}" for pair in pairs if _edge(*pair) not in edges), "")
