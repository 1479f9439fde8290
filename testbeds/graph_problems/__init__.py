"""Graph problems with exact optima: shortest path, independent set, vertex cover, clique, travelling salesman.

Texts (white space between symbols is free, and means nothing):

===================  ======================================  =====================================================
problem              prompt                                  answer
===================  ======================================  =====================================================
shortest_path        ``best path abcd : ab3 bd1 ac2 : a d >``  the vertices from the first named to the second
independent_set      ``best independent abcd : ab bd ac >``  the vertices of the set, in any order
vertex_cover         ``best cover abcd : ab bd ac >``        the same
clique               ``best clique abcd : ab bd ac >``       the same
travelling_salesman  ``best tour abcd : ab3 bd1 ac2 ... >``  all vertices in the order of the tour, from any one on,
                                                             in either direction, the first not repeated
===================  ======================================  =====================================================

A prompt names what is asked, the vertices, the edges (with their weights, if any) in random order and, for a path, its
two ends. It begins with ``any`` instead of ``best`` where every feasible answer counts. An ANSWER is one or more
vertices, none twice, each one letter; a completion is ``ANSWER`` or ``WORKING # ANSWER``: one mark, and only what
follows it is read; WORKING is free text. Every optimal answer is accepted, and the verdict tells answers that are
feasible and not optimal from infeasible ones.

The graphs are Erdos and Renyi's G(n, m): uniform over the graphs with exactly m edges, for a path over the connected
ones. A travelling salesman's graph is complete. Weights and a path's two ends are uniform and independent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from math import comb, factorial, perm
from typing import ClassVar, Final, Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from testbeds.arithmetic import Flaw, Numerals, shown
from testbeds.core import ANSWER_MARK, Problem, Task, Trace, TraceStyle, Verdict
from testbeds.graph_problems import kernels
from testbeds.graph_problems.canonical import canonical_text
from testbeds.graph_problems.connected import PILOT_HITS, is_connected, pilot
from testbeds.graph_problems.greedy import fewest_edges, greedy_independent, nearest_neighbour
from testbeds.graph_problems.instance import (
    NAMES,
    SETS,
    Edge,
    Instance,
    ProblemName,
    best_paths,
    best_sets,
    best_tours,
    conflicts,
    dijkstra,
    largest_independent,
    length,
    letters,
    neighbourhood,
    shortest_by_edges,
    tour_tables,
    weights,
)
from testbeds.graph_problems.judge import Judgement, judge, read_vertices
from testbeds.graph_problems.search_tree import Tree
from testbeds.graph_problems.traces import DEAD, SEPARATOR, check_style, worked

Accept = Literal["optimal", "feasible"]

WORDS: Final = {
    "shortest_path": "path",
    "independent_set": "independent",
    "vertex_cover": "cover",
    "clique": "clique",
    "travelling_salesman": "tour",
}
GOALS: Final = {"optimal": "best", "feasible": "any"}
MOST_VERTICES: Final = dict.fromkeys(WORDS, len(NAMES)) | {
    "travelling_salesman": 10
}  # 10: 2^9 sets of visited vertices
LARGEST_WEIGHT = 999
LARGEST_LEXICON = 4096  # whole-number symbols
MOST_DRAWS = 4_000  # at 2 % connected ones, so many draws all fail with probability below 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphProblems:
    """An optimisation problem on a small random graph. Difficulty: ``vertices``, ``edges``.

    The floor is the success probability of the best guess that knows the graph up to a renaming of its vertices (a
    path's two ends apart) and is blind to which vertex has which name: exact, as all renamings are equally likely.
    The key is the graph up to renaming, with what is asked; the two ends of a path may be exchanged. The family leaves
    out what is asked: set problems on one graph, and a clique with an independent set of the complement, stay together,
    as do paths between all ends of one graph.
    """

    revision: ClassVar[int] = 1
    key_note: ClassVar[str] = (
        "graph problems: what is asked and the graph with its weights, exactly up to renaming of vertices and exchange"
        " of a path's ends; split by the graph alone, a clique's by its complement"
    )
    answers_are_shared: ClassVar[bool] = False
    """Problems of one key are renamings of one another: so are their answers."""

    problem: ProblemName
    """What is asked."""
    vertices: int
    """Called a, b, c and so on: at most 16, for a travelling salesman 10."""
    edges: int | None = None
    """How many, exactly; None for the complete graph, which a travelling salesman needs."""
    weights: tuple[int, int] | None = None
    """Lowest and highest weight, both included, of the edges of a path or tour; None for a set problem."""
    accept: Accept = "optimal"
    """Which answers are correct, as the prompt says: optimal ones, or all feasible ones."""
    numerals: Numerals = "digits"
    """A symbol for each digit of a weight, or for each whole number."""

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_size(self)
        _check_weights(self)
        _check_connected(self)

    @property
    def magnitude(self) -> int:
        """The largest number that a prompt or a clean trace can contain."""
        return self.vertices * self.weights[1] if self.weights else 0

    @property
    def symbols(self) -> tuple[str, ...]:
        numbers = range(10 if self.numerals == "digits" else self.magnitude + 1)
        signs = (":", ">", "=", "|", "+", "-", SEPARATOR, DEAD, ANSWER_MARK)
        return (*NAMES, *map(str, numbers), *signs, *GOALS.values(), *WORDS.values())

    @property
    def instructions(self) -> str:
        last = NAMES[self.vertices - 1]
        graph = f"The prompt lists the vertices of an undirected graph, a to {last}, and after a colon its edges: " + (
            "ab3 is an edge between a and b of weight 3." if self.weights else "ab is an edge between a and b."
        )
        asked, best, form = {
            "shortest_path": (
                "a path between the two vertices named last, from the first to the second",
                "of the least total weight",
                "its vertices in order, both ends included, none twice",
            ),
            "independent_set": (
                "a set of vertices no two of which share an edge",
                "of the largest size",
                "its vertices",
            ),
            "vertex_cover": (
                "a set of vertices such that each edge has at least one end in it",
                "of the smallest size",
                "its vertices",
            ),
            "clique": ("a set of vertices every two of which share an edge", "of the largest size", "its vertices"),
            "travelling_salesman": (
                "a round tour that visits every vertex once and returns to its first",
                "of the least total weight",
                "all vertices in order, the first not repeated at the end",
            ),
        }[self.problem]
        counts = f"'best': find one {best}." if self.accept == "optimal" else "'any': every one counts."
        return (
            f"{graph} Find {asked}. {counts} Answer with {form}: the letters alone, such as acd. Working may stand"
            " before one # mark; only what follows it is read."
        )

    @property
    def capacity(self) -> int | None:
        return None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        pairs = list(combinations(range(self.vertices), 2))
        wanted = len(pairs) if self.edges is None else self.edges
        chosen_PE = rng.permuted(np.tile(np.arange(len(pairs)), (count, 1)), axis=1)[:, :wanted]
        if self.problem == "shortest_path":
            for row_E in chosen_PE:
                self._reconnect(row_E, pairs, rng)
        low, high = self.weights or (1, 1)
        weight_PE = rng.integers(low, high + 1, size=(count, wanted))
        turned_PE = rng.integers(2, size=(count, wanted))
        ends_PT = rng.permuted(np.tile(np.arange(self.vertices), (count, 1)), axis=1)[:, :2]
        return [
            self._problem([(*pairs[place], weight) for place, weight in zip(row, heavy, strict=True)], turned, ends)
            for row, heavy, turned, ends in zip(
                chosen_PE.tolist(), weight_PE.tolist(), turned_PE.tolist(), ends_PT.tolist(), strict=True
            )
        ]

    def enumerate(self) -> Iterable[Problem] | None:
        return None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """An optimal answer with its working, as traces.py says.

        For a set it is uniform over the optimal ones, written as the decisions that lead to it, or with
        ``search='depth_first'`` as a search with its dead ends: ``backtracks`` of them, exactly, or as many as the
        search meets that takes before it leaves. Paths and tours are the first that their algorithm finds.
        """
        check_style(self.problem, style)
        return worked(_instance(problem), style, rng)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the grammar at the top of this file.

        ``progress`` is the quality of a feasible answer: its value over the optimum or the optimum over its value,
        whichever is at most 1; so 1 for optimal answers alone. It is 0 for others. The reason says what is the case.
        """
        instance = _instance(problem)
        answer = read_vertices(completion, instance.vertices)
        if isinstance(answer, Flaw):
            return Verdict(correct=False, well_formed=False, progress=0.0, reason=f"malformed: {answer.reason}")
        judgement = judge(instance, answer)
        is_correct = judgement.optimal if self.accept == "optimal" else judgement.feasible
        return Verdict(correct=is_correct, well_formed=True, progress=judgement.quality, reason=judgement.reason)

    def judge(self, problem: Problem, completion: str) -> Judgement | None:
        """Whether an answer is feasible and whether it is optimal, apart; None for a malformed one."""
        instance = _instance(problem)
        answer = read_vertices(completion, instance.vertices)
        return None if isinstance(answer, Flaw) else judge(instance, answer)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """None: any working may stand before the answer (see ``answers``)."""
        return None

    def answers(self, problem: Problem) -> tuple[str, ...]:
        """All optimal answers: sets in ascending order, tours from a on in one direction."""
        instance = _instance(problem)
        if self.problem == "shortest_path":
            found = best_paths(instance)
        elif self.problem == "travelling_salesman":
            found = best_tours(weights(instance.vertices, instance.edges))
        else:
            found = iter(best_sets(instance))
        return tuple(sorted(letters(places) for places in found))

    def floor(self, problem: Problem) -> float:
        """Success probability of the best guess that is blind to the names of vertices; exact, see the class."""
        instance = _instance(problem)
        size = instance.vertices
        if self.problem == "shortest_path":
            numbers = self._path_numbers(instance)
            return max(ways / perm(size - 2, edges - 1) for edges, ways in numbers.items())
        if self.accept == "feasible":
            return 1.0  # one vertex is independent and a clique, all are a cover, and any order is a tour
        if self.problem == "travelling_salesman":
            return instance.best / (factorial(size - 1) // 2)
        return instance.best / comb(size, instance.optimum)

    def _path_numbers(self, instance: Instance) -> dict[int, int]:
        """How many paths count, by their number of edges."""
        start, end = instance.terminals
        if self.accept == "optimal":
            neighbours = neighbourhood(instance.vertices, instance.edges)
            return shortest_by_edges(neighbours, dijkstra(neighbours, start), end)
        adjacent_N = np.array(conflicts("independent_set", instance.vertices, instance.edges), dtype=np.int64)
        number_E = np.zeros(instance.vertices, dtype=np.int64)
        kernels.simple_paths(adjacent_N, start, end, number_E)
        return {edges: ways for edges, ways in enumerate(number_E.tolist()) if ways}

    def _reconnect(self, row_E: NDArray[np.int64], pairs: list[tuple[int, int]], rng: Generator) -> None:
        """Draws the edges anew, in place, until the graph is connected."""
        for _ in range(MOST_DRAWS):
            if is_connected(self.vertices, [pairs[place] for place in row_E.tolist()]):
                return
            row_E[:] = rng.permutation(len(pairs))[: len(row_E)]
        raise ValueError(_too_sparse(self, hits=0, draws=MOST_DRAWS))

    def _problem(self, edges: list[Edge], turned: list[int], ends: list[int]) -> Problem:
        ordered = tuple(sorted(edges))
        start, end = ends if self.problem == "shortest_path" else (-1, -1)
        told = []
        for (a, b, weight), is_turned in zip(edges, turned, strict=True):
            names = NAMES[b] + NAMES[a] if is_turned else NAMES[a] + NAMES[b]
            told.append(f"{names}{weight}" if self.weights else names)
        question = f" : {NAMES[start]} {NAMES[end]}" if start >= 0 else ""
        optimum, best, measured = self._measured(ordered, start, end)
        weight_NN = weights(self.vertices, ordered)
        graph = canonical_text(weight_NN, ())
        asked = canonical_text(weight_NN, (start, end)) if start >= 0 else graph
        family = graph
        if self.problem == "clique":
            family = canonical_text(1 - weight_NN - np.eye(self.vertices, dtype=np.int64), ())
        kind = "sets" if self.problem in SETS else "weighted"
        asks = f"{GOALS[self.accept]} {WORDS[self.problem]}"
        return Problem(
            prompt=f"{asks} {NAMES[: self.vertices]} : {' '.join(told)}{question} >",
            key=f"graph_problems:{self.problem}:{self.accept}:{asked}",
            family=f"graph_problems:{kind}:{family}",
            certificate=Instance(
                problem=self.problem,
                vertices=self.vertices,
                edges=ordered,
                terminals=(start, end),
                optimum=optimum,
                best=best,
            ),
            features={
                "vertices": self.vertices,
                "edges": len(edges),
                "density": len(edges) / comb(self.vertices, 2),
                "optimum": optimum,
                "optimal_answers": best,
                **measured,
            },
        )

    def _measured(self, edges: tuple[Edge, ...], start: int, end: int) -> tuple[int, int, dict[str, int]]:
        """The optimum, the number of optimal answers, and the features that only this problem has."""
        if self.problem == "shortest_path":
            neighbours = neighbourhood(self.vertices, edges)
            settled = dijkstra(neighbours, start)
            optimum = next(one.distance for one in settled if one.vertex == end)
            numbers = shortest_by_edges(neighbours, settled, end)
            gap = fewest_edges(neighbours, start, end) - optimum
            return optimum, sum(numbers.values()), {"greedy_gap": gap, "path_edges": min(numbers)}
        if self.problem == "travelling_salesman":
            weight_NN = weights(self.vertices, edges)
            least_MN, ways_MN = tour_tables(weight_NN)
            optimum = int(least_MN[0, 0])
            greedy = min(length(weight_NN, nearest_neighbour(weight_NN, v)) for v in range(self.vertices))
            return optimum, int(ways_MN[0, 0]) // 2, {"greedy_gap": greedy - optimum}
        masks = conflicts(self.problem, self.vertices, edges)
        solutions = largest_independent(masks)
        largest = solutions[0].bit_count()
        dead_ends = sum(visit.is_dead for visit in Tree(masks=masks, wanted=largest).first_run())
        optimum = self.vertices - largest if self.problem == "vertex_cover" else largest
        gap = largest - greedy_independent(masks)
        return optimum, len(solutions), {"greedy_gap": gap, "dead_ends": dead_ends}


def _instance(problem: Problem) -> Instance:
    if not isinstance(problem.certificate, Instance):
        raise TypeError(
            f"GraphProblems reads problems with an Instance, got {type(problem.certificate).__name__} for the prompt"
            f" {shown(problem.prompt)}; ask the task that made the problem"
        )
    return problem.certificate


# -------------------------------------------------------------------------------------------------- validation


def _check_choices(task: GraphProblems) -> None:
    for name, value, choices in (
        ("problem", task.problem, get_args(ProblemName)),
        ("accept", task.accept, get_args(Accept)),
        ("numerals", task.numerals, get_args(Numerals)),
    ):
        if value not in choices:
            raise ValueError(f"GraphProblems.{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def _check_size(task: GraphProblems) -> None:
    most = MOST_VERTICES[task.problem]
    least = 4 if task.problem == "travelling_salesman" else 3  # three vertices have one tour
    if type(task.vertices) is not int or not least <= task.vertices <= most:
        raise ValueError(
            f"GraphProblems.vertices must be a whole number from {least} to {most} for {task.problem}, got"
            f" {task.vertices!r}"
        )
    pairs = comb(task.vertices, 2)
    if task.problem == "travelling_salesman" and task.edges is not None:
        raise ValueError(f"a travelling salesman's graph is complete: edges must be None, got {task.edges!r}")
    fewest = task.vertices - 1 if task.problem == "shortest_path" else 1
    if task.edges is not None and (type(task.edges) is not int or not fewest <= task.edges <= pairs):
        raise ValueError(
            f"GraphProblems.edges must be None or a whole number from {fewest} to {pairs} for {task.problem} on"
            f" {task.vertices} vertices, got {task.edges!r}"
        )


def _check_weights(task: GraphProblems) -> None:
    if task.problem in SETS:
        if task.weights is not None:
            raise ValueError(f"the edges of {task.problem} have no weights: weights must be None, got {task.weights!r}")
        return
    bounds: object = task.weights
    match bounds:
        case (int(low), int(high)) if isinstance(bounds, tuple) and bool not in map(type, bounds):
            is_range = 1 <= low <= high <= LARGEST_WEIGHT
        case _:
            is_range = False
    if not is_range:
        raise ValueError(
            f"GraphProblems.weights must be a tuple (low, high) of whole numbers, 1 <= low <= high <= {LARGEST_WEIGHT},"
            f" for {task.problem}, got {task.weights!r}"
        )
    if task.numerals == "whole" and task.magnitude > LARGEST_LEXICON:
        raise ValueError(
            f"GraphProblems.numerals='whole' needs a symbol for every number up to {task.magnitude}, at most"
            f" {LARGEST_LEXICON} are allowed; set numerals='digits' or lower weights[1] or vertices"
        )


def _check_connected(task: GraphProblems) -> None:
    if task.problem == "shortest_path" and task.edges is not None:
        hits, draws = pilot(task.vertices, task.edges)
        if hits < PILOT_HITS:
            raise ValueError(_too_sparse(task, hits, draws))


def _too_sparse(task: GraphProblems, hits: int, draws: int) -> str:
    return (
        f"GraphProblems: {hits} of {draws} random graphs with {task.vertices} vertices and {task.edges} edges are"
        f" connected, too few to draw paths from; take more edges, about {2 * task.vertices}, or fewer vertices"
    )


TESTBED: Final[type[Task]] = GraphProblems
LEVELS: Final[dict[str, Task]] = {
    "easy": GraphProblems(problem="shortest_path", vertices=6, edges=9, weights=(1, 9)),
    "medium": GraphProblems(problem="shortest_path", vertices=9, edges=16, weights=(1, 9)),
    "hard": GraphProblems(problem="shortest_path", vertices=14, edges=30, weights=(1, 20)),
    "independent_set": GraphProblems(problem="independent_set", vertices=10, edges=20),
    "vertex_cover": GraphProblems(problem="vertex_cover", vertices=10, edges=20),
    "clique": GraphProblems(problem="clique", vertices=10, edges=26),
    "travelling_salesman": GraphProblems(problem="travelling_salesman", vertices=7, weights=(1, 20)),
    "any_path": GraphProblems(problem="shortest_path", vertices=8, edges=11, weights=(1, 9), accept="feasible"),
}
