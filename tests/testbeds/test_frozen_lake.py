"""FrozenLake: ways and plans against independent computation, verdicts, world-model traces, keys, enumeration."""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from testbeds import EXPLICIT, IMPLICIT, Problem, TraceStyle, stream
from testbeds.core import Unrealisable
from testbeds.frozen_lake import LEVELS, FrozenLake, FrozenLakeCertificate
from testbeds.frozen_lake_maps import Lake
from testbeds.frozen_lake_plans import best_plan

DELTAS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
SLIPS = {"L": "ULD", "D": "LDR", "R": "DRU", "U": "RUL"}  # Gymnasium: the action before, itself, the action after
SMALL = FrozenLake(height=3, width=3, holes=2, horizon=9)
ICE = FrozenLake(height=3, width=3, holes=2, slippery=True, horizon=4, state="places", moves=(1, 4))


# ------------------------------------------------------- an independent reading of the rules, on rows of characters


def rows_of(problem):
    return "".join(problem.prompt.rstrip(">").split()).split("/")


def place_of(rows, symbol):
    return next((r, c) for r, row in enumerate(rows) for c, letter in enumerate(row) if letter == symbol)


def moved(rows, place, action):
    """Where an action leads without a slip."""
    down, aside = DELTAS[action]
    other = (place[0] + down, place[1] + aside)
    inside = 0 <= other[0] < len(rows) and 0 <= other[1] < len(rows[0])
    return other if inside else place


def is_way(rows, actions):
    place = place_of(rows, "S")
    for action in actions:
        if rows[place[0]][place[1]] in "GH":
            return False
        place = moved(rows, place, action)
    return rows[place[0]][place[1]] == "G"


def beliefs(rows, actions):
    """The distribution over places after each action on slippery ice, in fractions."""
    belief = {place_of(rows, "S"): Fraction(1)}
    found = [belief]
    for action in actions:
        after = Counter()
        for place, share in belief.items():
            if rows[place[0]][place[1]] in "GH":
                after[place] += share
                continue
            for slipped in SLIPS[action]:
                after[moved(rows, place, slipped)] += share / 3
        belief = dict(after)
        found.append(belief)
    return found


def success(rows, actions):
    return beliefs(rows, actions)[-1].get(place_of(rows, "G"), Fraction(0))


def best_seeing(rows, horizon):
    """The optimum of the decision process by dynamic programming over fractions."""
    places = list(product(range(len(rows)), range(len(rows[0]))))
    values = {place: Fraction(rows[place[0]][place[1]] == "G") for place in places}
    for _ in range(horizon):
        values = {
            place: values[place]
            if rows[place[0]][place[1]] in "GH"
            else max(sum(values[moved(rows, place, slip)] for slip in SLIPS[a]) / 3 for a in DELTAS)
            for place in places
        }
    return values[place_of(rows, "S")]


def shortest_ways(rows, most):
    for size in range(1, most + 1):
        found = {"".join(actions) for actions in product("UDLR", repeat=size) if is_way(rows, actions)}
        if found:
            return found
    return set()


def problem_of(*rows, horizon=0):
    """A problem from its rows; for slippery ice with its horizon."""
    letters, width = "".join(rows), len(rows[0])
    lake = Lake(
        height=len(rows),
        width=width,
        holes=tuple(place for place, letter in enumerate(letters) if letter == "H"),
        start=letters.index("S"),
        goal=letters.index("G"),
    )
    weight, seeing, plan = best_plan(lake.ice(), horizon) if horizon else (1, 1, "")
    certificate = FrozenLakeCertificate(
        lake=lake, moves=lake.distances()[lake.start], plan=plan, plan_weight=weight, seeing_weight=seeing
    )
    return Problem(prompt="/".join(rows) + ">", key="", certificate=certificate)


# ---------------------------------------------------------------------------------------------------- exactness


@pytest.mark.parametrize("ends", ["corners", "anywhere"])
def test_ways_and_their_number_are_those_of_brute_force(ends):
    task = FrozenLake(height=3, width=3, holes=2, ends=ends, moves=(1, 6))
    for problem in task.generate(stream("brute force"), 10):
        ways = shortest_ways(rows_of(problem), 6)
        assert {"".join(answer.split()) for answer in task.answers(problem)} == ways
        assert problem.features == {"moves": len(next(iter(ways))), "holes": 2, "ways": len(ways)}
        assert rows_of(problem)[0].startswith("S") or ends == "anywhere"


def test_the_best_plan_and_the_best_policy_are_those_of_brute_force_in_fractions():
    for problem in ICE.generate(stream("plans"), 4):
        rows = rows_of(problem)
        best = max(success(rows, actions) for actions in product("UDLR", repeat=4))
        own = problem.certificate
        assert Fraction(own.plan_weight, 3**4) == best == success(rows, own.plan)
        assert Fraction(own.seeing_weight, 3**4) == best_seeing(rows, 4) >= best
        assert problem.features["success"] == float(best)
        assert problem.features["success_seeing"] == float(best_seeing(rows, 4))


def test_one_step_on_slippery_ice_as_by_hand():
    # From S, R goes right (goal), up (the edge: stays) or down, with 1/3 each. U stays, slips left (stays) or right.
    problem = problem_of("SG", "FF", horizon=1)
    task = FrozenLake(
        height=2, width=2, holes=0, ends="anywhere", slippery=True, horizon=1, state="places", moves=(1, 1)
    )
    assert problem.certificate.plan_weight == 1
    assert "probability 1/3; the best plan has 1/3" in task.verify(problem, "R").reason
    assert [task.verify(problem, action).correct for action in "UDLR"] == [True, True, False, True]
    assert task.demonstrate(problem, EXPLICIT, stream("x")).steps[0].result in ("00=1;01=1;10=1", "00=2;01=1")


def test_maps_are_uniform_over_those_that_fit():
    # 3x3 with two holes between the corners: C(7, 2) = 21 maps, of which those stay that have a way.
    fit = {problem_rows for problem_rows in all_maps() if shortest_ways(problem_rows, 6)}
    counts = Counter(tuple(rows_of(problem)) for problem in SMALL.generate(stream("uniform"), 50 * len(fit)))
    assert set(counts) == fit
    assert chisquare([counts[rows] for rows in sorted(fit)]).pvalue > 1e-4


@cache
def all_maps():
    found = []
    for holes in product("FH", repeat=7):
        if holes.count("H") == 2:
            letters = "S" + "".join(holes) + "G"
            found.append((letters[:3], letters[3:6], letters[6:]))
    assert len(found) == comb(7, 2)
    return found


def test_the_walk_has_one_map_of_each_class_and_capacity_counts_them():
    classes = {min(images(rows)) for rows in all_maps() if shortest_ways(rows, 6)}
    walked = list(SMALL.enumerate())
    assert {min(images(rows_of(problem))) for problem in walked} == classes
    assert len(walked) == SMALL.capacity == len(classes)
    assert FrozenLake(height=8, width=8, holes=20).capacity is None
    assert FrozenLake(height=8, width=8, holes=20).enumerate() is None


# --------------------------------------------------------------------------------------------------------- keys


def images(rows):
    found = []
    for turned in (list(rows), [row[::-1] for row in rows]):
        for _ in range(4):
            found.append(tuple(turned))
            turned = ["".join(column) for column in zip(*turned[::-1], strict=True)]  # noqa: PLW2901
    return found


def test_keys_are_equal_exactly_for_images_of_each_other():
    task = FrozenLake(height=3, width=4, holes=2, ends="anywhere")
    by_key = {}
    for problem in task.generate(stream("keys"), 600):
        by_key.setdefault(problem.key, set()).add(min(images(rows_of(problem))))
    assert all(len(forms) == 1 for forms in by_key.values())
    assert len({next(iter(forms)) for forms in by_key.values()}) == len(by_key) < 600


def test_the_best_success_does_not_change_with_the_image():
    for problem in ICE.generate(stream("images"), 4):
        weights = {problem_of(*rows, horizon=4).certificate.plan_weight for rows in images(rows_of(problem))}
        assert weights == {problem.certificate.plan_weight}


def test_rules_are_in_the_key_and_not_in_the_family():
    asked = [
        SMALL,
        FrozenLake(height=3, width=3, holes=2, horizon=8),
        FrozenLake(height=3, width=3, holes=2, horizon=9, accept="optimal"),
        FrozenLake(height=3, width=3, holes=2, horizon=9, slippery=True, state="places"),
        FrozenLake(height=3, width=3, holes=2, horizon=9, slippery=True, state="places", share=(1, 2)),
    ]
    problems = [task.generate(stream("rules"), 1)[0] for task in asked]
    assert len({problem.prompt for problem in problems}) == len({problem.family for problem in problems}) == 1
    assert len({problem.key for problem in problems}) == len(asked)


# ----------------------------------------------------------------------------------------------------- verdicts

LAKE = problem_of("SFF", "FHF", "FFG")
ANY = SMALL
OPTIMAL = FrozenLake(height=3, width=3, holes=2, horizon=9, accept="optimal")


@pytest.mark.parametrize(
    ("text", "reason", "progress"),
    [
        ("R D", "action 2, D, falls into a hole", 0),
        ("R R D", "the goal is 1 actions away", 3 / 5),
        ("U U L", "the goal is 4 actions away", 0),
        ("R R D D D", "action 4 reaches the goal and 1 more follow", 4 / 5),
    ],
)
def test_a_wrong_answer_is_told_the_first_thing_wrong(text, reason, progress):
    verdict = ANY.verify(LAKE, text)
    assert (verdict.correct, verdict.well_formed) == (False, True)
    assert reason in verdict.reason
    assert verdict.progress == pytest.approx(progress)


@pytest.mark.parametrize("text", ["RRDD", "D D R R", "first left # D D R R", "U R R D D", " D\nD R\tR "])
def test_any_way_is_right(text):
    assert ANY.verify(LAKE, text).correct


def test_only_a_shortest_way_is_right_where_it_is_asked_for():
    assert OPTIMAL.verify(LAKE, "D D R R").correct
    verdict = OPTIMAL.verify(LAKE, "U D D R R")
    assert "5 actions, 4 are enough" in verdict.reason
    assert not verdict.correct
    assert verdict.progress < 1


@pytest.mark.parametrize("text", ["", "#", "D # D # R", "right", "\uff32", "D,D,R,R", "R" * 10, "SFF/FHF/FFG>", "\x00"])
def test_what_is_not_in_the_grammar_is_malformed(text):
    verdict = ANY.verify(LAKE, text)
    assert (verdict.correct, verdict.well_formed, verdict.progress) == (False, False, 0.0)


@pytest.mark.parametrize("text", ["R" * 1_000_000, "R " * 500_000, "#" * 1_000_000, "\ud800" * 1_000_000])
def test_a_megabyte_of_garbage_is_malformed(text):
    assert not ANY.verify(LAKE, text).well_formed


@given(actions=st.text(alphabet="UDLR", max_size=9), place=st.integers(0, 9))
def test_the_verdict_on_dry_ice_is_that_of_an_independent_reading_of_the_rules(actions, place):
    problem = dry()[place]
    assert SMALL.verify(problem, actions).correct == is_way(rows_of(problem), actions)


@given(actions=st.text(alphabet="UDLR", min_size=1, max_size=4), place=st.integers(0, 5), share=st.integers(1, 10))
def test_the_verdict_on_slippery_ice_compares_exact_probabilities(actions, place, share):
    rows = rows_of(wet()[place])
    task = FrozenLake(
        height=3, width=3, holes=2, slippery=True, horizon=4, state="places", moves=(1, 4), share=(share, 11)
    )
    best = Fraction(wet()[place].certificate.plan_weight, 3**4)
    verdict = task.verify(wet()[place], actions)
    assert verdict.correct == (success(rows, actions) >= best * Fraction(share, 11))
    if not verdict.correct:
        assert verdict.progress == pytest.approx(float(success(rows, actions) / best))
        assert verdict.progress < 1


@cache
def dry():
    return SMALL.generate(stream("dry"), 10)


@cache
def wet():
    return ICE.generate(stream("wet"), 6)


def test_progress_stays_below_one_however_close_a_plan_comes():
    problem = problem_of("SG", "FF", horizon=1)
    almost = FrozenLakeCertificate(
        lake=problem.certificate.lake, moves=1, plan="R", plan_weight=3**38 + 1, seeing_weight=1
    )
    task = FrozenLake(height=2, width=2, holes=0, ends="anywhere", slippery=True, horizon=14, state="places")
    weight = 3**14  # no plan of that weight exists: stands for one that misses the best by less than a float can tell
    assert weight < almost.plan_weight
    assert task.verify(Problem(prompt="", key="", certificate=almost), "R" * 14).progress < 1


# ------------------------------------------------------------------------------------------------------- traces


@pytest.mark.parametrize("state", ["board", "places"])
def test_a_trace_on_dry_ice_states_the_place_after_each_action(state):
    task = FrozenLake(height=3, width=3, holes=2, horizon=9, state=state)
    for problem in dry():
        rows = rows_of(problem)
        trace = task.demonstrate(problem, EXPLICIT, stream("trace"))
        place, expected = place_of(rows, "S"), []
        for action in trace.answer.split():
            place = moved(rows, place, action)
            expected.append(f"{action} {shown(rows, place, state)}")
        assert [step.text for step in trace.steps] == expected
        assert trace.text == " ".join([*expected, "#", trace.answer])
        assert task.demonstrate(problem, IMPLICIT, stream("trace")).text == trace.answer


def shown(rows, place, state):
    if state == "places":
        return f"@{place[0]}{place[1]}"
    return "/".join(
        "".join("@" if (r, c) == place else letter for c, letter in enumerate(row)) for r, row in enumerate(rows)
    )


@pytest.mark.parametrize("style", [EXPLICIT, TraceStyle(granularity="composed", group=2), TraceStyle(order="backward")])
def test_a_trace_on_slippery_ice_states_all_probabilities(style):
    for problem in wet():
        rows = rows_of(problem)
        trace = ICE.demonstrate(problem, style, stream("trace"))
        steps = trace.steps[::-1] if style.order == "backward" else trace.steps
        for t, (step, belief) in enumerate(zip(steps, beliefs(rows, trace.answer.split())[1:], strict=True), 1):
            entries = [entry.split("=") for entry in step.result.split(";")]
            assert {(int(p[0]), int(p[1])): Fraction(int(n), 3**t) for p, n in entries} == belief
        assert ICE.verify(problem, trace.text).correct


def test_a_way_is_drawn_uniformly_from_the_shortest():
    rng = stream("ways")
    counts = Counter(ANY.demonstrate(LAKE, IMPLICIT, rng).answer for _ in range(400))
    assert set(counts) == {"R R D D", "D D R R"}
    assert chisquare(list(counts.values())).pvalue > 1e-4


@pytest.mark.parametrize("backtracks", [0, 1, 2, 4])
def test_exactly_as_many_falls_as_asked_are_shown_each_once(backtracks):
    task, written = LEVELS["medium"], 0
    for problem in task.generate(stream("falls"), 20):
        try:
            trace = task.demonstrate(problem, TraceStyle(search="depth_first", backtracks=backtracks), stream("f"))
        except Unrealisable:
            continue
        assert task.verify(problem, trace.text).correct
        assert len(falls(problem, trace)) == backtracks
        written += 1
    assert written >= 3


def test_a_search_without_a_count_shows_what_it_meets():
    task = LEVELS["medium"]
    problems = task.generate(stream("met"), 20)
    counts = [
        len(falls(problem, task.demonstrate(problem, TraceStyle(search="depth_first"), stream("m", problem.key))))
        for problem in problems
    ]
    assert min(counts) < max(counts)


def falls(problem, trace):
    """The falls of a trace, after checking that each is one, differs, and is taken back."""
    rows = rows_of(problem)
    place, before, found = place_of(rows, "S"), None, []
    for step in trace.steps:
        if step.operation == "x":
            assert rows[place[0]][place[1]] == "H"
            found.append((before, place))
            place = before
        else:
            before, place = place, moved(rows, place, step.operation)
        assert step.result == shown(rows, place, "board")
    assert rows[place[0]][place[1]] == "G"
    assert len(set(found)) == len(found)
    return found


def test_more_falls_than_there_are_is_unrealisable():
    with pytest.raises(Unrealisable, match="holes beside it, 9 falls were asked for"):
        ANY.demonstrate(LAKE, TraceStyle(search="depth_first", backtracks=9), stream("none"))


@pytest.mark.parametrize(
    ("task", "style"),
    [
        (SMALL, TraceStyle(search="breadth_first")),
        (SMALL, TraceStyle(search="depth_first", heuristic="h")),
        (ICE, TraceStyle(search="depth_first")),
    ],
)
def test_a_style_that_is_never_written_is_a_plain_error(task, style):
    with pytest.raises(ValueError, match="FrozenLake") as refusal:
        task.demonstrate(task.generate(stream("style"), 1)[0], style, stream("refused"))
    assert not isinstance(refusal.value, Unrealisable)


# ------------------------------------------------------------------------------------------- floor, validation


def test_the_floor_is_the_success_of_the_best_constant_answer():
    fit = [rows for rows in all_maps() if shortest_ways(rows, 6)]
    ways = {"".join(actions) for actions in product("DR", repeat=4)}
    exact = max(sum(is_way(rows, way) for rows in fit) for way in ways) / len(fit)
    assert abs(SMALL.floor(LAKE) - exact) < 4 * (0.25 / 500) ** 0.5


@pytest.mark.parametrize(
    "fields",
    [
        {"height": 1},
        {"width": 9},
        {"holes": -1},
        {"holes": 15},
        {"holes": 2.0},
        {"ends": "middle"},
        {"moves": (0, 4)},
        {"moves": (5, 4)},
        {"moves": [1, 4]},
        {"moves": (20, 30)},  # a 4x4 lake with 4 holes has no such way
        {"horizon": 0},
        {"horizon": 5, "moves": (6, 9)},
        {"horizon": 8, "moves": (1, 9)},  # some way of 9 actions would have no answer
        {"horizon": 4, "moves": (1, 5), "slippery": True, "state": "places"},  # nor any plan that reaches the goal
        {"slippery": True, "horizon": 11, "state": "places", "share": (2, 4)},  # a second name, and key, of (1, 2)
        {"slippery": True, "horizon": 11, "state": "places", "share": (True, 2)},
        {"slippery": True, "horizon": 11, "state": "places", "share": [1, 2]},
        {"slippery": 1},
        {"slippery": True, "horizon": 15, "state": "places"},
        {"slippery": True, "horizon": 11},
        {"slippery": True, "horizon": 11, "state": "places", "accept": "optimal"},
        {"slippery": True, "horizon": 11, "state": "places", "share": (2, 1)},
        {"share": (1, 2)},
        {"share": 0.5},
        {"accept": "best"},
        {"state": "picture"},
        {"holes": 14},  # start and goal alone, no way
    ],
)
def test_what_cannot_be_is_refused_at_construction(fields):
    with pytest.raises(ValueError, match="FrozenLake"):
        FrozenLake(**fields)


def test_the_horizon_is_long_enough_for_every_map_and_no_longer_than_a_way_can_be():
    # A 3x3 lake with 2 holes leaves 7 cells: a way has at most 6 actions, whatever moves permits.
    with pytest.raises(ValueError, match="horizon=5 lets no answer reach a goal that is 6 actions away"):
        FrozenLake(height=3, width=3, holes=2, horizon=5)
    task = FrozenLake(height=3, width=3, holes=2, horizon=6)
    for problem in task.enumerate():
        assert task.verify(problem, task.demonstrate(problem, IMPLICIT, stream("horizon")).text).correct


def test_a_share_is_named_as_a_fraction():
    with pytest.raises(ValueError, match=r"FrozenLake.share must be a tuple \(numerator, denominator\).*\(5, 4\)"):
        FrozenLake(slippery=True, state="places", horizon=11, share=(5, 4))


def test_a_problem_of_another_testbed_is_refused_by_name():
    with pytest.raises(TypeError, match="FrozenLakeCertificate, got str"):
        SMALL.verify(Problem(prompt="", key="", certificate="x"), "R")
