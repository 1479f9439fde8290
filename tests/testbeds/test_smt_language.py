"""The puzzle language: known counts, z3 as a second opinion, minimal clue sets, optima."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbeds.smt import (
    Adjacent,
    AllDifferent,
    And,
    Engine,
    Equal,
    Iff,
    Implies,
    Is,
    LessThan,
    Not,
    NotEqual,
    Objective,
    Offset,
    OneOf,
    Or,
    Precedence,
    Puzzle,
    SumAtLeast,
    SumAtMost,
    SumIs,
    TableOf,
    Told,
    Variable,
    count,
    effort,
    is_unique,
    minimal_clues,
    optimum,
    oracle,
    random_solution,
    solutions,
    violation,
)
from testbeds.streams import stream

NAMES = ("a", "b", "c", "d")
VARIABLES = tuple(Variable(name=name, domain=(0, 1, 2, 3)) for name in NAMES)

names = st.sampled_from(NAMES)
pairs = st.tuples(names, names).filter(lambda pair: pair[0] != pair[1])
groups = st.permutations(NAMES).flatmap(lambda order: st.sampled_from([tuple(order[:size]) for size in (2, 3, 4)]))
small = st.integers(-2, 5)


def sums(kind):
    return groups.flatmap(
        lambda group: st.builds(
            kind, st.just(group), small, st.tuples(*[st.integers(-2, 3).filter(bool) for _ in group])
        )
    )


atoms = st.one_of(
    st.builds(Is, names, small),
    st.builds(OneOf, names, st.sets(st.integers(0, 4), min_size=1).map(lambda kept: tuple(sorted(kept)))),
    *[pairs.map(lambda pair, kind=kind: kind(*pair)) for kind in (Equal, NotEqual, LessThan, Adjacent)],
    *[st.tuples(pairs, small).map(lambda drawn, kind=kind: kind(*drawn[0], drawn[1])) for kind in (Precedence, Offset)],
    groups.map(AllDifferent),
    groups.flatmap(
        lambda group: st.builds(AllDifferent, st.just(group), st.just(""), st.tuples(*[small for _ in group]))
    ),
    *[sums(kind) for kind in (SumIs, SumAtMost, SumAtLeast)],
    groups.flatmap(
        lambda group: st.lists(st.tuples(*[st.integers(0, 4) for _ in group]), min_size=1, max_size=9).map(
            lambda rows, group=group: TableOf(group, tuple(rows))
        )
    ),
)
constraints = st.recursive(
    atoms,
    lambda inner: st.one_of(
        inner.map(Not),
        st.builds(Told, inner, st.just("told")),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Or(tuple(parts))),
        st.builds(Iff, inner, inner),
        st.builds(Implies, inner, inner),
    ),
    max_leaves=5,
)


def brute_force(puzzle):
    every = product(*(variable.domain for variable in puzzle.variables))
    return [values for values in every if violation(puzzle, puzzle.assignment(values)) is None]


def latin(size, first_row=False):
    cells = [[f"r{row}c{column}" for column in range(size)] for row in range(size)]
    return Puzzle(
        variables=tuple(Variable(name=name, domain=tuple(range(1, size + 1))) for row in cells for name in row),
        rules=tuple(AllDifferent(tuple(line)) for line in [*cells, *zip(*cells, strict=True)]),
        clues=tuple(Is(name, value) for value, name in enumerate(cells[0], 1)) if first_row else (),
    )


def queens(size):
    rows = tuple(f"q{row}" for row in range(size))
    return Puzzle(
        variables=tuple(Variable(name=name, domain=tuple(range(size))) for name in rows),
        rules=tuple(AllDifferent(rows, "", tuple(slope * row for row in range(size))) for slope in (0, 1, -1)),
    )


def magic():
    cells = "abcdefghi"
    lines = ("abc", "def", "ghi", "adg", "beh", "cfi", "aei", "ceg")
    return Puzzle(
        variables=tuple(Variable(name=name, domain=tuple(range(1, 10))) for name in cells),
        rules=(AllDifferent(tuple(cells)), *(SumIs(tuple(line), 15) for line in lines)),
    )


@settings(derandomize=True, max_examples=80, deadline=None)
@given(rules=st.lists(constraints, max_size=4))
def test_the_search_finds_exactly_the_assignments_that_meet_every_constraint(rules):
    puzzle = Puzzle(variables=VARIABLES, rules=tuple(rules))
    found = solutions(puzzle, 300)
    assert len(set(found)) == len(found)
    assert sorted(found) == brute_force(puzzle)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(rules=st.lists(constraints, min_size=1, max_size=3))
def test_z3_reads_every_constraint_as_its_meaning_says(rules):
    puzzle = Puzzle(
        variables=tuple(Variable(name=name, domain=(0, 1, 2)) for name in NAMES), rules=(*rules, LessThan("a", "b"))
    )
    assert sorted(oracle.solutions(puzzle, 100)) == brute_force(puzzle)


@pytest.mark.parametrize(("size", "squares"), [(1, 1), (2, 2), (3, 12), (4, 576)])  # OEIS A002860
def test_latin_squares_are_counted(size, squares):
    assert count(latin(size), 1000) == squares


def test_latin_squares_of_order_5_are_counted():
    # 161,280 squares; each of the 5! first rows begins equally many: 161,280 / 120 = 1,344.
    assert count(latin(5, first_row=True), 2000) * 120 == 161_280


@pytest.mark.parametrize(("size", "boards"), [(4, 2), (5, 10), (6, 4), (7, 40), (8, 92)])  # OEIS A000170
def test_ways_to_put_queens_are_counted(size, boards):
    assert count(queens(size), 200) == boards


def test_the_magic_square_of_order_3_is_one_up_to_8_symmetries():
    found = solutions(magic(), 100)
    assert len(found) == 8
    assert sorted(found) == sorted(oracle.solutions(magic(), 100))


def test_counting_stops_at_the_number_asked_for():
    assert count(latin(4), 10) == 10


def test_uniqueness_is_decided_by_z3_where_the_search_gives_up():
    unique = Puzzle(
        variables=latin(4).variables,
        rules=latin(4).rules,
        clues=tuple(Is(name, value) for name, value in zip(latin(4).names, solutions(latin(4), 1)[0], strict=True)),
    )
    assert is_unique(unique, most_nodes=0)
    assert not is_unique(latin(4), most_nodes=0)
    assert count(latin(3), 100, most_nodes=1) == 12


@pytest.mark.parametrize("seed", range(8))
def test_every_clue_of_a_minimal_set_is_needed(seed):
    rng = stream("minimal", seed)
    puzzle = latin(4)
    solution = random_solution(puzzle, rng)
    told = [Is(name, value) for name, value in zip(puzzle.names, solution, strict=True)]
    chosen = minimal_clues(puzzle, told, rng)
    whole = Puzzle(variables=puzzle.variables, rules=puzzle.rules, clues=chosen)
    assert oracle.solutions(whole, 2) == [solution]
    for clue in chosen:
        fewer = Puzzle(
            variables=puzzle.variables, rules=puzzle.rules, clues=tuple(other for other in chosen if other != clue)
        )
        assert len(oracle.solutions(fewer, 2)) == 2


def test_minimal_clues_refuse_candidates_that_leave_several_solutions():
    with pytest.raises(ValueError, match="do not leave exactly one"):
        minimal_clues(latin(3), [Is("r0c0", 1)], stream("minimal", "few"))


@settings(derandomize=True, max_examples=30, deadline=None)
@given(
    weights=st.lists(st.integers(1, 9), min_size=4, max_size=4),
    worth=st.lists(st.integers(-5, 9), min_size=4, max_size=4),
    limit=st.integers(0, 40),
    maximise=st.booleans(),
)
def test_the_optimum_is_that_of_brute_force_and_of_z3(weights, worth, limit, maximise):
    puzzle = Puzzle(
        variables=VARIABLES,
        rules=(SumAtMost(NAMES, limit, tuple(weights)), NotEqual("a", "b")),
        objective=Objective(variables=NAMES, coefficients=tuple(worth), maximise=maximise),
    )
    values = [puzzle.objective.value(puzzle.assignment(found)) for found in brute_force(puzzle)]
    best = optimum(puzzle)
    if not values:
        assert best is None
        assert oracle.optimum(puzzle) is None
        return
    assert best.value == (max if maximise else min)(values) == oracle.optimum(puzzle)
    assert violation(puzzle, puzzle.assignment(best.solution)) is None


def test_a_violation_names_the_first_broken_constraint():
    puzzle = Puzzle(variables=VARIABLES, rules=(LessThan("a", "b"), Is("c", 2)), clues=(Equal("c", "d"),))
    flaw = violation(puzzle, {"a": 0, "b": 1, "c": 1, "d": 2})
    assert flaw.reason == "c=2 is violated"
    assert flaw.held == pytest.approx(1 / 3)  # of three constraints, one holds
    assert violation(puzzle, {"a": 0, "b": 1, "c": 2}).reason == "d has no value"
    assert violation(puzzle, {"a": 9, "b": 1, "c": 2, "d": 2}).reason == "a has a value outside its domain"


def test_propagation_alone_solves_what_follows():
    puzzle = Puzzle(variables=VARIABLES, rules=(LessThan("a", "b"), LessThan("b", "c"), LessThan("c", "d")))
    assert effort(puzzle).nodes == 0
    assert effort(queens(8)).nodes > 0


def test_random_solutions_reach_every_solution():
    rng = stream("random", 1)
    assert {random_solution(latin(3), rng) for _ in range(300)} == set(solutions(latin(3), 20))


def test_clues_can_be_switched_off():
    engine = Engine(Puzzle(variables=VARIABLES[:2], clues=(Is("a", 1), Is("b", 2))))
    assert [engine.effort(engine.active(kept), most=50).solutions for kept in ((), (0,), (1,), (0, 1))] == [16, 4, 4, 1]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Variable(name="", domain=(1,)), "a word"),
        (lambda: Variable(name="a b", domain=(1,)), "a word"),
        (lambda: Variable(name="a", domain=()), "ascending"),
        (lambda: Variable(name="a", domain=(2, 1)), "ascending"),
        (lambda: Variable(name="a", domain=(1, True)), "ascending"),
        (lambda: Variable(name="a", domain=(1, 2), words=("x", "x")), "words"),
        (lambda: Puzzle(variables=()), "variables"),
        (lambda: Puzzle(variables=VARIABLES + VARIABLES), "different names"),
        (lambda: Puzzle(variables=VARIABLES, rules=(Is("e", 1),)), "does not have"),
        (lambda: Objective(variables=("a",), coefficients=(), maximise=True), "coefficient"),
        (lambda: optimum(Puzzle(variables=VARIABLES)), "objective"),
        (lambda: solutions(Puzzle(variables=(Variable(name="a", domain=(0, 99)),)), 1), "apart"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(make, said):
    with pytest.raises(ValueError, match=said):
        make()
