"""The keys and families of graph problems: equal exactly for renamings of one problem, also where graphs look alike."""

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from testbeds import stream
from testbeds.graph_problems import LEVELS, GraphProblems
from testbeds.graph_problems.canonical import canonical_text
from testbeds.graph_problems.instance import weights


def problems(task, count=30, key="problems"):
    return task.generate(stream("test graph problems", key), count)


def renamed(weight_NN, ends, rng):
    order = rng.permutation(len(weight_NN)).tolist()
    return weight_NN[np.ix_(order, order)], tuple(order.index(v) for v in ends)


@pytest.mark.parametrize("name", LEVELS)
def test_renamings_have_one_key(name):
    rng = stream("renamings", name)
    for problem in problems(LEVELS[name], 15):
        instance = problem.certificate
        ends = tuple(v for v in instance.terminals if v >= 0)
        weight_NN = weights(instance.vertices, instance.edges)
        text = canonical_text(weight_NN, ends)
        assert problem.key == f"graph_problems:{instance.problem}:{LEVELS[name].accept}:{text}"
        for _ in range(4):
            moved_NN, moved_ends = renamed(weight_NN, ends, rng)
            assert canonical_text(moved_NN, moved_ends) == text
            assert canonical_text(moved_NN, moved_ends[::-1]) == text  # a path may be walked back


def matrix(vertices, pairs):
    return weights(vertices, tuple((min(pair), max(pair), 1) for pair in pairs))


@pytest.mark.parametrize(("vertices", "classes"), [(3, 4), (4, 11), (5, 34)])
def test_forms_count_the_graphs_up_to_isomorphism(vertices, classes):
    pairs = list(combinations(range(vertices), 2))  # OEIS A000088: 1, 2, 4, 11, 34, 156
    graphs = ([pair for i, pair in enumerate(pairs) if bits >> i & 1] for bits in range(1 << len(pairs)))
    assert len({canonical_text(matrix(vertices, graph), ()) for graph in graphs}) == classes


def cycle(*vertices):
    return list(pairwise((*vertices, vertices[0])))


GRID = [(x, y) for x in range(4) for y in range(4)]
ROOK = [(a, b) for a, b in combinations(range(16), 2) if (GRID[a][0] == GRID[b][0]) != (GRID[a][1] == GRID[b][1])]
SHRIKHANDE = [
    (a, b)
    for a, b in combinations(range(16), 2)
    if ((GRID[a][0] - GRID[b][0]) % 4, (GRID[a][1] - GRID[b][1]) % 4)
    in ((0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3))
]
PRISM = [*cycle(0, 1, 2), *cycle(3, 4, 5), (0, 3), (1, 4), (2, 5)]
UTILITY = [(a, b) for a in range(3) for b in range(3, 6)]
CUBE = [(a, b) for a, b in combinations(range(8), 2) if (a ^ b).bit_count() == 1]
WAGNER = [*cycle(*range(8)), *((v, v + 4) for v in range(4))]


@pytest.mark.parametrize(
    ("vertices", "one", "other"),
    [
        (6, cycle(0, 1, 2, 3, 4, 5), [*cycle(0, 1, 2), *cycle(3, 4, 5)]),
        (6, PRISM, UTILITY),  # both 3-regular
        (8, CUBE, WAGNER),  # both 3-regular, the cube bipartite
        (12, cycle(*range(12)), [*cycle(*range(5)), *cycle(*range(5, 12))]),
        (16, ROOK, SHRIKHANDE),  # both strongly regular with parameters (16, 6, 2, 2)
    ],
)
def test_regular_graphs_of_one_degree_sequence_have_different_keys_and_their_renamings_the_same(vertices, one, other):
    assert len(one) == len(other)
    forms = []
    for pairs in (one, other):
        weight_NN = matrix(vertices, pairs)
        rng = stream("regular", vertices)
        found = {canonical_text(renamed(weight_NN, (), rng)[0], ()) for _ in range(8)}
        assert len(found) == 1
        forms += found
    assert forms[0] != forms[1]


def test_very_symmetric_graphs_have_one_form_each():
    rng = stream("symmetric")
    for pairs in (
        [],
        list(combinations(range(16), 2)),
        cycle(*range(16)),
        [*cycle(*range(4)), *cycle(*range(4, 8)), *cycle(*range(8, 12)), *cycle(*range(12, 16))],
        [(v, v + 1) for v in range(0, 16, 2)],
        [(0, v) for v in range(1, 16)],
        [(a, b) for a in range(8) for b in range(8, 16)],
    ):
        weight_NN = matrix(16, pairs)
        assert len({canonical_text(renamed(weight_NN, (), rng)[0], ()) for _ in range(5)}) == 1


def test_keys_are_equal_exactly_for_isomorphic_problems():
    networkx = pytest.importorskip("networkx")
    task = GraphProblems(problem="shortest_path", vertices=4, edges=4, weights=(1, 2))
    drawn = []
    for problem in problems(task, 60):
        graph = networkx.Graph()
        graph.add_weighted_edges_from(problem.certificate.edges)
        networkx.set_node_attributes(graph, {v: v in problem.certificate.terminals for v in graph}, "end")
        drawn.append((problem.key, graph))
    equal = 0
    for (key, graph), (other_key, other) in combinations(drawn, 2):
        same = networkx.is_isomorphic(
            graph,
            other,
            node_match=lambda a, b: a["end"] == b["end"],
            edge_match=lambda a, b: a["weight"] == b["weight"],
        )
        assert (key == other_key) == same
        equal += same
    assert equal > 20


def test_one_graph_is_one_family_whatever_is_asked_of_it():
    rng = "family"
    tasks = [GraphProblems(problem=name, vertices=8, edges=14) for name in ("independent_set", "vertex_cover")]
    for one, other in zip(*(problems(task, 10, rng) for task in tasks), strict=True):
        assert one.family == other.family
        assert one.key != other.key
    path = GraphProblems(problem="shortest_path", vertices=7, edges=12, weights=(1, 9))
    for one, other in zip(problems(path, 10), problems(replace(path, accept="feasible"), 10), strict=True):
        assert one.family == other.family
        assert one.key != other.key
    for clique in problems(GraphProblems(problem="clique", vertices=7, edges=12), 10):
        pairs = {(a, b) for a, b, _ in clique.certificate.edges}
        opposite = matrix(7, [pair for pair in combinations(range(7), 2) if pair not in pairs])
        assert clique.family == f"graph_problems:sets:{canonical_text(opposite, ())}"
