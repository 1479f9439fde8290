"""Graph problems: exact optima against brute force, feasible and optimal judged apart, keys, traces and floors."""

import re
from collections import Counter
from dataclasses import replace
from itertools import chain, combinations, pairwise, permutations
from math import comb, perm

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import EXPLICIT, IMPLICIT, Problem, TraceStyle, Unrealisable, fingerprint, stream
from testbeds.graph_problems import LEVELS, GraphProblems
from testbeds.graph_problems.instance import NAMES, Instance, weights

SMALL = {
    "shortest_path": GraphProblems(problem="shortest_path", vertices=6, edges=9, weights=(1, 4)),
    "independent_set": GraphProblems(problem="independent_set", vertices=7, edges=9),
    "vertex_cover": GraphProblems(problem="vertex_cover", vertices=7, edges=9),
    "clique": GraphProblems(problem="clique", vertices=7, edges=12),
    "travelling_salesman": GraphProblems(problem="travelling_salesman", vertices=6, weights=(1, 5)),
}
SETS = ("independent_set", "vertex_cover", "clique")
DEPTH_FIRST = TraceStyle(search="depth_first")


def problems(task, count=30, key="problems"):
    return task.generate(stream("test graph problems", key), count)


def told(problem):
    """(vertices, edges with weights, ends) by a reading of the prompt that shares no code with the testbed."""
    head, edges, *ends = problem.prompt.removesuffix(">").split(":")
    vertices = head.split()[2]
    heavy = {}
    for edge in edges.split():
        a, b = sorted(edge[:2])
        heavy[a + b] = int(edge[2:] or 1)
    return vertices, heavy, "".join(ends).replace(" ", "")


def weight_of(walk, heavy):
    """Weight of a walk, or None where an edge is missing."""
    steps = ["".join(sorted(pair)) for pair in pairwise(walk)]
    return sum(heavy[step] for step in steps) if all(step in heavy for step in steps) else None


def brute_force(problem, name):
    """(optimum, all feasible answers with their values), by trying all subsets or orders."""
    vertices, heavy, ends = told(problem)
    values = {}
    if name == "shortest_path":
        inner = [v for v in vertices if v not in ends]
        for between in chain.from_iterable(permutations(inner, size) for size in range(len(inner) + 1)):
            walk = (ends[0], *between, ends[1])
            if (value := weight_of(walk, heavy)) is not None:
                values["".join(walk)] = value
    elif name == "travelling_salesman":
        values = {"".join(tour): weight_of((*tour, tour[0]), heavy) for tour in permutations(vertices)}
    else:
        for chosen in chain.from_iterable(combinations(vertices, size) for size in range(1, len(vertices) + 1)):
            pairs = {"".join(pair) for pair in combinations(chosen, 2)}
            is_feasible = {
                "independent_set": not pairs & heavy.keys(),
                "clique": pairs <= heavy.keys(),
                "vertex_cover": all(set(edge) & set(chosen) for edge in heavy),
            }[name]
            if is_feasible:
                values["".join(chosen)] = len(chosen)
    least = name in ("shortest_path", "travelling_salesman", "vertex_cover")
    return (min if least else max)(values.values()), values


# ------------------------------------------------------------------------------------------------------- optima


@pytest.mark.parametrize("name", SMALL)
def test_optimum_answers_and_verdicts_agree_with_brute_force(name):
    task, any_task = SMALL[name], replace(SMALL[name], accept="feasible")
    for problem in problems(task, 12):
        optimum, values = brute_force(problem, name)
        best = {answer for answer, value in values.items() if value == optimum}
        assert problem.certificate.optimum == problem.features["optimum"] == optimum
        listed = set(task.answers(problem))
        assert listed <= best
        # A tour of 6 vertices is listed once and written in 12 ways: 6 starts, 2 directions.
        assert len(best) == len(listed) * (12 if name == "travelling_salesman" else 1)
        assert problem.features["optimal_answers"] == len(listed)
        for answer, value in values.items():
            verdict, judgement = task.verify(problem, answer), task.judge(problem, answer)
            assert verdict.correct == (answer in best) == judgement.optimal
            assert judgement.feasible
            assert judgement.value == value
            assert any_task.verify(problem, answer).correct
            assert verdict.progress == min(value / optimum, optimum / value)
            assert verdict.correct or (verdict.progress < 1 and "feasible but not optimal" in verdict.reason)


@pytest.mark.parametrize("name", SMALL)
def test_infeasible_answers_are_wrong_under_either_rule(name):
    rng = stream("infeasible", name)
    for problem in problems(SMALL[name], 10):
        _, values = brute_force(problem, name)
        vertices, _, _ = told(problem)
        for _ in range(30):
            order = "".join(rng.permutation(list(vertices))[: rng.integers(1, len(vertices) + 1)])
            feasible = order in values or (name in SETS and "".join(sorted(order)) in values)
            for accept in ("optimal", "feasible"):
                verdict = replace(SMALL[name], accept=accept).verify(problem, order)
                assert verdict.well_formed
                assert feasible or (not verdict.correct and verdict.progress == 0)
                assert feasible == (not verdict.reason.startswith("infeasible"))


@pytest.mark.parametrize("vertices", [12, 16])
def test_sets_of_larger_graphs_agree_with_a_count_over_all_subsets(vertices):
    task = GraphProblems(problem="independent_set", vertices=vertices, edges=2 * vertices)
    subset_S = np.arange(1 << vertices)
    size_S = sum(subset_S >> v & 1 for v in range(vertices))
    for problem in problems(task, 5):
        free_S = np.ones(1 << vertices, dtype=bool)
        for a, b, _ in problem.certificate.edges:
            free_S &= ~((subset_S >> a & subset_S >> b & 1) == 1)
        largest = size_S[free_S].max()
        assert problem.certificate.optimum == largest
        assert problem.certificate.best == (size_S[free_S] == largest).sum()


def test_the_three_set_problems_are_one():
    # G's cliques are the complement's independent sets, and what such a set leaves out covers the edges.
    for seed in range(10):
        graph = problems(GraphProblems(problem="independent_set", vertices=9, edges=16), 1, seed)[0].certificate
        pairs = {(a, b) for a, b, _ in graph.edges}
        opposite = tuple((a, b, 1) for a, b in combinations(range(9), 2) if (a, b) not in pairs)
        free = replace(LEVELS["independent_set"], vertices=9, edges=16)
        independent = set(free.answers(problem_of("independent_set", 9, graph.edges)))
        cover = set(replace(free, problem="vertex_cover").answers(problem_of("vertex_cover", 9, graph.edges)))
        clique = set(replace(free, problem="clique", edges=20).answers(problem_of("clique", 9, opposite)))
        assert independent == clique
        assert cover == {"".join(v for v in NAMES[:9] if v not in answer) for answer in independent}


def problem_of(name, vertices, edges, terminals=(-1, -1), optimum=1):
    instance = Instance(problem=name, vertices=vertices, edges=edges, terminals=terminals, optimum=optimum, best=1)
    return Problem(prompt="", key="k", certificate=instance)


def test_shortest_paths_and_isomorphism_agree_with_networkx():
    networkx = pytest.importorskip("networkx")
    for problem in problems(LEVELS["hard"], 25):
        graph = networkx.Graph()
        graph.add_weighted_edges_from(problem.certificate.edges)
        start, end = problem.certificate.terminals
        paths = list(networkx.all_shortest_paths(graph, start, end, weight="weight"))
        assert networkx.shortest_path_length(graph, start, end, weight="weight") == problem.certificate.optimum
        assert {"".join(NAMES[v] for v in path) for path in paths} == set(LEVELS["hard"].answers(problem))
        assert problem.features["path_edges"] == min(map(len, paths)) - 1


def test_tours_of_nine_vertices_agree_with_a_search_over_all_orders():
    task = GraphProblems(problem="travelling_salesman", vertices=9, weights=(1, 9))
    order_TN = np.array(list(permutations(range(1, 9))))
    for problem in problems(task, 3):
        weight_NN = weights(9, problem.certificate.edges)
        total_T = weight_NN[0, order_TN[:, 0]] + weight_NN[order_TN[:, -1], 0]
        total_T = total_T + weight_NN[order_TN[:, :-1], order_TN[:, 1:]].sum(axis=1)
        assert problem.certificate.optimum == total_T.min()
        assert problem.certificate.best == (total_T == total_T.min()).sum() // 2 == len(task.answers(problem))


def test_equal_weights_make_every_tour_optimal():
    task = GraphProblems(problem="travelling_salesman", vertices=7, weights=(3, 3))
    problem = problems(task, 1)[0]
    assert problem.certificate.best == 360  # 6! / 2
    assert problem.certificate.optimum == 21
    assert task.floor(problem) == 1
    assert task.verify(problem, "gfedcba").correct


# --------------------------------------------------------------------------------------------------- generation


@pytest.mark.parametrize("name", LEVELS)
def test_prompts_tell_the_graph_that_is_judged_with_exactly_so_many_edges(name):
    task = LEVELS[name]
    for problem in problems(task):
        instance = problem.certificate
        vertices, heavy, ends = told(problem)
        assert vertices == NAMES[: task.vertices]
        assert heavy == {NAMES[a] + NAMES[b]: weight for a, b, weight in instance.edges}
        assert len(heavy) == (comb(task.vertices, 2) if task.edges is None else task.edges)
        assert ends == "".join(NAMES[v] for v in instance.terminals if v >= 0)
        low, high = task.weights or (1, 1)
        assert all(low <= weight <= high for weight in heavy.values())
        assert problem.features["density"] == len(heavy) / comb(task.vertices, 2)
        goal = problem.prompt.split()[0]
        assert goal == {"optimal": "best", "feasible": "any"}[task.accept]
        assert goal in task.instructions  # the prompt asks for what the verifier checks


def test_graphs_are_uniform_over_those_with_so_many_edges():
    task = GraphProblems(problem="independent_set", vertices=4, edges=2)
    counts = Counter(problem.certificate.edges for problem in problems(task, 3000))
    assert len(counts) == comb(6, 2)
    # chi-square with 14 degrees of freedom exceeds 36.1 with probability 0.001
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 36.1


def test_path_graphs_are_uniform_over_the_connected_ones():
    task = GraphProblems(problem="shortest_path", vertices=4, edges=3, weights=(1, 1))
    counts = Counter(problem.certificate.edges for problem in problems(task, 3200))
    assert len(counts) == 16  # Cayley: 4^2 trees
    # chi-square with 15 degrees of freedom exceeds 37.7 with probability 0.001
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 37.7


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"problem": "colouring", "vertices": 5}, "got 'colouring'"),
        ({"problem": "clique", "vertices": 2}, "from 3 to 16"),
        ({"problem": "clique", "vertices": 17}, "got 17"),
        ({"problem": "clique", "vertices": True}, "got True"),
        ({"problem": "clique", "vertices": 5, "edges": 0}, "from 1 to 10"),
        ({"problem": "clique", "vertices": 5, "edges": 11}, "got 11"),
        ({"problem": "clique", "vertices": 5, "edges": 5.0}, "got 5.0"),
        ({"problem": "clique", "vertices": 5, "edges": 5, "weights": (1, 2)}, "weights must be None"),
        ({"problem": "travelling_salesman", "vertices": 11, "weights": (1, 9)}, "from 4 to 10"),
        ({"problem": "travelling_salesman", "vertices": 5, "weights": (1, 9), "edges": 10}, "edges must be None"),
        ({"problem": "travelling_salesman", "vertices": 5}, "got None"),
        ({"problem": "shortest_path", "vertices": 5, "edges": 3, "weights": (1, 9)}, "from 4 to 10"),
        ({"problem": "shortest_path", "vertices": 5, "edges": 6, "weights": (0, 9)}, r"got \(0, 9\)"),
        ({"problem": "shortest_path", "vertices": 5, "edges": 6, "weights": [1, 9]}, r"got \[1, 9\]"),
        ({"problem": "shortest_path", "vertices": 5, "edges": 6, "weights": (9, 1)}, r"got \(9, 1\)"),
        ({"problem": "shortest_path", "vertices": 5, "edges": 6, "weights": (True, 9)}, r"got \(True, 9\)"),
        ({"problem": "shortest_path", "vertices": 5, "edges": 6, "weights": (1, 1000)}, "1000"),
        ({"problem": "shortest_path", "vertices": 16, "edges": 15, "weights": (1, 9)}, "too few to draw paths from"),
        ({"problem": "clique", "vertices": 5, "edges": 5, "accept": "some"}, "got 'some'"),
        ({"problem": "clique", "vertices": 5, "edges": 5, "numerals": "roman"}, "got 'roman'"),
        (
            {"problem": "shortest_path", "vertices": 9, "edges": 20, "weights": (1, 900), "numerals": "whole"},
            "symbol for every number up to 8100",
        ),
    ],
)
def test_impossible_tasks_are_refused_with_the_value(fields, message):
    with pytest.raises(ValueError, match=message):
        GraphProblems(**fields)


# ------------------------------------------------------------------------------------------------------- traces


@pytest.mark.parametrize("name", ["easy", "medium", "hard"])
def test_paths_are_worked_out_by_settling_vertices_in_the_order_of_their_distance(name):
    networkx = pytest.importorskip("networkx")
    for problem in problems(LEVELS[name], 15):
        graph = networkx.Graph()
        graph.add_weighted_edges_from((NAMES[a], NAMES[b], weight) for a, b, weight in problem.certificate.edges)
        start, end = (NAMES[v] for v in problem.certificate.terminals)
        distance = networkx.single_source_dijkstra_path_length(graph, start)
        trace = LEVELS[name].demonstrate(problem, EXPLICIT, stream("t"))
        lines = trace.text.split("#")[0].split(",")
        assert lines[0] == f"{start}=0"
        settled = {start}
        for line in lines[1:]:
            before, vertex, value = line[0], line[1], int(line[3:])
            assert before in settled
            assert vertex not in settled
            assert value == distance[vertex] == distance[before] + graph[before][vertex]["weight"]
            settled.add(vertex)
        values = [int(line.split("=")[1]) for line in lines]
        assert values == sorted(values)
        assert lines[-1].split("=")[0][-1] == end
        assert all(vertex in settled for vertex in distance if distance[vertex] < distance[end])


def test_tours_are_worked_out_by_ever_shorter_tours_down_to_the_optimum():
    lengths = Counter()
    for problem in problems(replace(LEVELS["travelling_salesman"], vertices=9), 40):
        _, heavy, _ = told(problem)
        trace = LEVELS["travelling_salesman"].demonstrate(problem, EXPLICIT, stream("t"))
        working, answer = trace.text.split("#")
        totals = []
        for line in working.split(","):
            tour, total = line.split("=")
            assert weight_of(tour + tour[0], heavy) == int(total)
            totals.append(int(total))
        assert all(later < earlier for earlier, later in pairwise(totals))
        assert totals[-1] == problem.certificate.optimum
        assert answer == tour
        lengths[len(totals)] += 1
    assert len(lengths) > 1


def replayed(problem, name, text):
    """Checks a set's search line by line against the prompt alone; the number of dead ends and the answer."""
    vertices, heavy, _ = told(problem)
    wanted = problem.certificate.optimum
    working, answer = text.split("#")
    edges = set(heavy)
    if name == "clique":
        edges = {"".join(pair) for pair in combinations(vertices, 2)} - edges
    stack = []  # decisions in force: (vertex, sign)
    tried = set()
    dead = 0
    for line in working.split(","):
        sign, vertex, so_far, undecided = re.fullmatch(r"([+-])([a-p]):([a-p]*)\|([a-p]*)!?", line).groups()
        while any(vertex == v for v, _ in stack):  # the other branch of an earlier decision: all below it is given up
            stack.pop()
        stack.append((vertex, sign))
        assert tuple(stack) not in tried, "no branch is entered twice"
        tried.add(tuple(stack))
        taken_sign = "-" if name == "vertex_cover" else "+"
        taken = {v for v, s in stack if s == taken_sign}
        out = {v for v, s in stack if s != taken_sign}
        blocked = {v for v in vertices if any("".join(sorted(v + t)) in edges for t in taken)}
        assert not taken & blocked
        left = set(vertices) - taken - out - blocked
        assert set(undecided) == left
        assert set(so_far) == (set(vertices) - taken - left if name == "vertex_cover" else taken)
        hopeless = len(so_far) > wanted if name == "vertex_cover" else len(taken) + len(left) < wanted
        assert line.endswith("!") == hopeless
        dead += hopeless
    assert so_far == answer
    return dead, answer


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("heuristic", ["", "degree", "name"])
@pytest.mark.parametrize("backtracks", [None, 0, 1, 2, 5])
def test_searches_show_exactly_the_dead_ends_asked_for_each_a_true_and_different_one(name, heuristic, backtracks):
    task = LEVELS[name]
    style = replace(DEPTH_FIRST, heuristic=heuristic, backtracks=backtracks)
    written = 0
    for problem in problems(task, 25):
        try:
            trace = task.demonstrate(problem, style, stream("t", problem.key))
        except Unrealisable:
            continue
        dead, answer = replayed(problem, name, trace.text)
        assert dead == sum(step.text.endswith("!") for step in trace.steps)
        assert backtracks is None or dead == backtracks
        assert answer in task.answers(problem)
        if backtracks is None and heuristic != "name":
            assert dead == problem.features["dead_ends"]
        written += 1
    assert written == 25 if backtracks in (None, 0) else written >= 10


def test_more_dead_ends_than_a_tree_has_are_unrealisable():
    # The path a-b-c: every search for {a, c} meets few dead ends, and never a hundred.
    task = GraphProblems(problem="independent_set", vertices=3, edges=2)
    for problem in problems(task, 3):
        with pytest.raises(Unrealisable, match="exactly 100 dead ends"):
            task.demonstrate(problem, replace(DEPTH_FIRST, backtracks=100), stream("t"))


def test_the_tree_of_a_path_of_three_vertices():
    # a-b-c with {a, c} the only solution. b has most neighbours: take b, and nothing is left (1 < 2, dead); or leave
    # b, then take a, then take c. Leaving a (1 < 2), or leaving c after a (1 < 2), are the other dead ends.
    task = GraphProblems(problem="independent_set", vertices=3, edges=2)
    problem = problem_of("independent_set", 3, ((0, 1, 1), (1, 2, 1)), optimum=2)
    write = lambda k: task.demonstrate(problem, replace(DEPTH_FIRST, backtracks=k), stream("t")).text  # noqa: E731
    assert write(None) == "+b:b|!,-b:|ac,+a:a|c,+c:ac|#ac"
    assert write(0) == "-b:|ac,+a:a|c,+c:ac|#ac"
    assert write(3) == "+b:b|!,-b:|ac,-a:|c!,+a:a|c,-c:a|!,+c:ac|#ac"
    with pytest.raises(Unrealisable):
        write(4)


def test_demonstrations_of_sets_are_uniform_over_the_optimal_ones():
    task = GraphProblems(problem="independent_set", vertices=4, edges=4)
    ring = ((0, 1, 1), (0, 3, 1), (1, 2, 1), (2, 3, 1))
    problem = problem_of("independent_set", 4, ring, optimum=2)
    counts = Counter(task.demonstrate(problem, IMPLICIT, stream("uniform", i)).answer for i in range(1000))
    assert set(counts) == {"ac", "bd"}
    assert abs(counts["ac"] - 500) < 80  # five standard deviations


@pytest.mark.parametrize(
    ("name", "style", "message"),
    [
        ("easy", DEPTH_FIRST, "solved without a search tree"),
        ("travelling_salesman", TraceStyle(search="breadth_first"), "solved without a search tree"),
        ("clique", TraceStyle(search="breadth_first"), "written depth_first"),
        ("clique", replace(DEPTH_FIRST, heuristic="luck"), "degree, name, got 'luck'"),
        ("easy", TraceStyle(granularity="composed", group=2), "explicit and implicit"),
        ("easy", TraceStyle(order="backward"), "order='forward', got 'backward'"),
    ],
)
def test_styles_that_make_no_sense_are_refused(name, style, message):
    with pytest.raises(ValueError, match=message) as refusal:
        LEVELS[name].demonstrate(problems(LEVELS[name], 1)[0], style, stream("t"))
    assert not isinstance(refusal.value, Unrealisable)


# ------------------------------------------------------------------------------------------------ answers, floor

# a-b 1, b-c 1, a-c 3, c-d 1: from a to d best is abcd of weight 3; acd weighs 4
SQUARE = ((0, 1, 1), (0, 2, 3), (1, 2, 1), (2, 3, 1))
PATH = problem_of("shortest_path", 4, SQUARE, terminals=(0, 3), optimum=3)
PATH_TASK = GraphProblems(problem="shortest_path", vertices=4, edges=4, weights=(1, 3))


@pytest.mark.parametrize(
    ("completion", "correct", "well_formed", "progress"),
    [
        ("abcd", True, True, 1.0),
        ("a b\nc d", True, True, 1.0),
        ("ab is short # abcd", True, True, 1.0),
        ("#abcd", True, True, 1.0),
        ("acd", False, True, 0.75),
        ("dcba", False, True, 0.0),
        ("abd", False, True, 0.0),
        ("ad", False, True, 0.0),
        ("d", False, True, 0.0),
        ("abcbcd", False, False, 0.0),
        ("abcde", False, False, 0.0),
        ("ABCD", False, False, 0.0),
        ("a,b,c,d", False, False, 0.0),
        ("a-b-c-d", False, False, 0.0),
        ("3", False, False, 0.0),  # the length is not what is asked
        ("0 1 2 3", False, False, 0.0),
        ("abcd#", False, False, 0.0),
        ("abcd#abcd", True, True, 1.0),
        ("#abcd#abcd", False, False, 0.0),
        ("", False, False, 0.0),
        ("\uff41bcd", False, False, 0.0),  # a full-width a
        ("abcd\x00", False, False, 0.0),
        ("\ud800", False, False, 0.0),
    ],
)
def test_answers_by_the_grammar(completion, correct, well_formed, progress):
    verdict = PATH_TASK.verify(PATH, completion)
    assert (verdict.correct, verdict.well_formed, verdict.progress) == (correct, well_formed, progress)
    assert (PATH_TASK.judge(PATH, completion) is None) == (not well_formed)


def test_sets_may_be_named_in_any_order_and_tours_begun_anywhere():
    for name in (*SETS, "travelling_salesman"):
        problem = problems(SMALL[name], 1)[0]
        answer = SMALL[name].answers(problem)[0]
        assert SMALL[name].verify(problem, answer[::-1]).correct
        assert SMALL[name].verify(problem, answer[2:] + answer[:2]).correct
        assert not SMALL[name].verify(problem, answer + answer[0]).well_formed


def test_much_white_space_is_free_and_megabytes_are_refused():
    assert PATH_TASK.verify(PATH, " " * 50_000 + "abcd" + "\n" * 40_000).correct
    assert not PATH_TASK.verify(PATH, "abcd" + " " * 1_000_000).well_formed


def test_the_testbed_says_whose_problem_it_cannot_read():
    with pytest.raises(TypeError, match="ask the task that made the problem"):
        PATH_TASK.verify(Problem(prompt="x", key="k", certificate=SQUARE), "ab")


@pytest.mark.parametrize("accept", ["optimal", "feasible"])
@pytest.mark.parametrize("name", SMALL)
def test_the_floor_is_the_best_guess_over_all_renamings(name, accept):
    task = replace(SMALL[name], accept=accept)
    for problem in problems(task, 4):
        optimum, values = brute_force(problem, name)
        right = [answer for answer, value in values.items() if accept == "feasible" or value == optimum]
        # A fixed guess of s vertices in order is renamed to each such order equally often; sets count in any order.
        guesses = Counter(map(len, right))
        assert task.floor(problem) == pytest.approx(
            max(count / orders(name, task.vertices, size) for size, count in guesses.items())
        )


def orders(name, vertices, size):
    """How many guesses of a size are renamings of one another."""
    if name == "shortest_path":
        return perm(vertices - 2, size - 2)
    return perm(vertices, size) if name == "travelling_salesman" else comb(vertices, size)


@given(choices=st.lists(st.integers(0, 10_000), max_size=30), name=st.sampled_from(sorted(SMALL)))
def test_any_string_of_symbols_is_judged_as_brute_force_says(choices, name):
    task = SMALL[name]
    problem = problems(task, 1)[0]
    symbols = (*NAMES[: task.vertices], "#")
    text = " ".join(symbols[choice % len(symbols)] for choice in choices)
    answer = "".join(text.rpartition("#")[2].split())
    optimum, values = KNOWN.setdefault(name, brute_force(problem, name))
    written = "".join(sorted(answer)) if name in SETS else answer
    is_plain = len(set(answer)) == len(answer) and text.count("#") <= 1
    assert task.verify(problem, text).correct == (is_plain and values.get(written) == optimum)


KNOWN = {}


def test_greedy_gaps_are_measured_against_the_optimum():
    gaps = {name: [p.features["greedy_gap"] for p in problems(task, 60)] for name, task in LEVELS.items()}
    assert all(min(gap) >= 0 for gap in gaps.values())
    assert max(gaps["hard"]) > 0
    assert max(gaps["travelling_salesman"]) > 0


def test_levels_have_fingerprints_of_their_own():
    assert len({fingerprint(task) for task in LEVELS.values()}) == len(LEVELS)
