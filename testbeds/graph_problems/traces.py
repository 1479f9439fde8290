"""Worked solutions of graph problems: every written line is true of the graph.

===================  ==========================  =================================================================
problem              example                     lines
===================  ==========================  =================================================================
shortest_path        ``a=0,ac=2,cb=3``           Dijkstra's algorithm: each vertex as it is settled, after the vertex
                                                 before it on a shortest path, with its distance from the start
independent_set      ``+a:a|cd,-c:a|d``          decisions, taken (+) or left (-): the set so far, then what is
                                                 undecided and may still be taken; ``!`` ends a dead end, where even
                                                 all of it is too little
clique               the same
vertex_cover         ``-a:bc|de,+d:bcd|e``       the same decisions, written for the cover: the cover so far, then
                                                 what is undecided; ``!`` where the cover is larger than the optimum
travelling_salesman  ``abcd=20,abdc=17``         tours with their weights: the nearest neighbour's from a, then the
                                                 best 2-opt move as often as one helps, then an optimal tour
===================  ==========================  =================================================================
"""

from __future__ import annotations

from numpy.random import Generator

from testbeds.core import Step, Trace, TraceStyle, Unrealisable
from testbeds.graph_problems.greedy import nearest_neighbour, shortened
from testbeds.graph_problems.instance import (
    NAMES,
    SETS,
    Instance,
    ProblemName,
    best_tours,
    conflicts,
    dijkstra,
    largest_independent,
    length,
    letters,
    members,
    neighbourhood,
    weights,
)
from testbeds.graph_problems.search_tree import HEURISTICS, Tree, Visit

SEPARATOR = ","
DEAD = "!"


def check_style(problem: ProblemName, style: TraceStyle) -> None:
    """Raises ValueError for a style in which no problem of this kind can be written."""
    if style.granularity == "composed":
        raise ValueError(
            "GraphProblems writes explicit and implicit traces, got granularity='composed': a decision of a search or a"
            " settled vertex says nothing in groups"
        )
    if style.order != "forward" and style.granularity == "explicit":
        raise ValueError(f"GraphProblems writes a working as it is found, order='forward', got {style.order!r}")
    if style.search == "optimal":
        return
    if problem not in SETS:
        raise ValueError(
            f"{problem} is solved without a search tree, so only search='optimal' is written, got {style.search!r};"
            f" {', '.join(SETS)} have one"
        )
    if style.search != "depth_first":
        raise ValueError(f"a search for a set is written depth_first, got search={style.search!r}")
    if style.heuristic not in ("", *HEURISTICS):
        raise ValueError(f"TraceStyle.heuristic must be one of {', '.join(HEURISTICS)}, got {style.heuristic!r}")


def worked(instance: Instance, style: TraceStyle, rng: Generator) -> Trace:
    """The trace in a style that was checked."""
    if instance.problem == "shortest_path":
        steps, answer = _path(instance)
    elif instance.problem == "travelling_salesman":
        steps, answer = _tour(instance)
    else:
        steps, answer = _set(instance, style, rng)
    if style.granularity == "implicit":
        steps = tuple(Step(operation=step.operation, result=step.result, text="") for step in steps)
    return Trace.worked(steps, answer, separator=SEPARATOR)


def _path(instance: Instance) -> tuple[tuple[Step, ...], str]:
    start, end = instance.terminals
    before: dict[int, int] = {}
    steps: list[Step] = []
    for one in dijkstra(neighbourhood(instance.vertices, instance.edges), start):
        before[one.vertex] = one.before
        way = letters((one.vertex,) if one.vertex == start else (one.before, one.vertex))
        steps.append(Step(operation=way, result=str(one.distance), text=f"{way}={one.distance}"))
        if one.vertex == end:
            break
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return tuple(steps), letters(tuple(reversed(path)))


def _tour(instance: Instance) -> tuple[tuple[Step, ...], str]:
    weight_NN = weights(instance.vertices, instance.edges)
    tours: list[tuple[int, ...]] = []
    tour: tuple[int, ...] | None = nearest_neighbour(weight_NN, 0)
    while tour is not None:
        tours.append(tour)
        tour = shortened(weight_NN, tour)
    if length(weight_NN, tours[-1]) > instance.optimum:
        tours.append(next(best_tours(weight_NN)))
    steps = []
    for tour in tours:
        total = str(length(weight_NN, tour))
        steps.append(Step(operation=letters(tour), result=total, text=f"{letters(tour)}={total}"))
    return tuple(steps), letters(tours[-1])


def _set(instance: Instance, style: TraceStyle, rng: Generator) -> tuple[tuple[Step, ...], str]:
    masks = conflicts(instance.problem, instance.vertices, instance.edges)
    solutions = largest_independent(masks)
    heuristic = style.heuristic or HEURISTICS[0]
    tree = Tree(masks=masks, wanted=solutions[0].bit_count(), heuristic=heuristic)
    if style.search == "depth_first" and style.backtracks is None:
        run: tuple[Visit, ...] | None = tree.first_run()
    else:
        run = tree.run_with(solutions, style.backtracks or 0, rng)
    if run is None:
        raise Unrealisable(
            f"no depth-first search for the best {instance.name} of this graph meets exactly {style.backtracks} dead"
            f" ends (heuristic {heuristic}); ask another number of it, or another graph"
        )
    everything = (1 << instance.vertices) - 1
    is_cover = instance.problem == "vertex_cover"
    steps = []
    for visit in run:
        so_far = everything & ~visit.chosen & ~visit.left if is_cover else visit.chosen
        sign = {"+": "-", "-": "+"}[visit.sign] if is_cover else visit.sign
        state = f"{letters(members(so_far))}|{letters(members(visit.left))}{DEAD if visit.is_dead else ''}"
        operation = sign + NAMES[visit.vertex]
        steps.append(Step(operation=operation, result=state, text=f"{operation}:{state}"))
    found = run[-1].chosen
    return tuple(steps), letters(members(everything & ~found if is_cover else found))
