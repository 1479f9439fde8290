"""Sokoban: exact search against an independent one, uniform layouts, verdicts, world-model traces, dead ends."""

from collections import Counter
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from testbeds import EXPLICIT, IMPLICIT, Problem, TraceStyle, stream
from testbeds.core import Unrealisable
from testbeds.sokoban import LEVELS, Sokoban, SokobanCertificate
from testbeds.sokoban_positions import Position, Room
from testbeds.sokoban_search import GOAL, sift

DELTAS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
TINY = Sokoban(height=2, width=3, walls=0, boxes=1, moves=(1, 6))


# ------------------------------------------------------- an independent reading of the rules, on rows of characters


def read(rows):
    """(walls, goals, player, boxes) as sets of (row, column)."""
    cells = {(r, c): symbol for r, row in enumerate(rows) for c, symbol in enumerate(row)}
    walls = {place for place, symbol in cells.items() if symbol == "W"}
    goals = {place for place, symbol in cells.items() if symbol in ".*+"}
    boxes = frozenset(place for place, symbol in cells.items() if symbol in "$*")
    player = next((place for place, symbol in cells.items() if symbol in "@+"), None)
    return set(cells) - walls, goals, player, boxes


def moved(floor, state, action):
    player, boxes = state
    down, aside = DELTAS[action]
    ahead = (player[0] + down, player[1] + aside)
    if ahead not in floor:
        return None
    if ahead in boxes:
        beyond = (ahead[0] + down, ahead[1] + aside)
        if beyond not in floor or beyond in boxes:
            return None
        return ahead, boxes - {ahead} | {beyond}
    return ahead, boxes


def solve(rows):
    """(moves or None, ways, fewest pushes of a shortest solution, reachable states), level by level over a dict."""
    floor, goals, player, boxes = read(rows)
    level = {(player, boxes): (1, 0)}
    seen, answer, depth = set(level), None, 0
    while level:
        solved = [value for state, value in level.items() if state[1] == goals]
        if solved and answer is None:
            answer = (depth, sum(ways for ways, _ in solved), min(pushes for _, pushes in solved))
        following = {}
        for state, (ways, pushes) in level.items():
            for action in DELTAS:
                after = moved(floor, state, action)
                if after is None or after in seen:
                    continue
                old = following.get(after, (0, 99))
                following[after] = (old[0] + ways, min(old[1], pushes + (after[1] != state[1])))
        seen |= set(following)
        level, depth = following, depth + 1
    return (*(answer or (None, 0, 0)), len(seen))


def is_right(rows, actions):
    floor, goals, player, boxes = read(rows)
    state = (player, boxes)
    for action in actions:
        state = moved(floor, state, action)
        if state is None:
            return False
    return bool(actions) and state[1] == goals


def drawn(rows, state):
    """Rows with the player and the boxes where ``state`` has them."""
    floor, goals, _, _ = read(rows)
    player, boxes = state
    letters = []
    for r, row in enumerate(rows):
        for c, _ in enumerate(row):
            place = (r, c)
            plain = "W" if place not in floor else "." if place in goals else "_"
            held = {"_": "@", ".": "+"} if place == player else {"_": "$", ".": "*"} if place in boxes else {}
            letters.append(held.get(plain, plain))
        letters.append("/")
    return "".join(letters[:-1])


def rows_of(problem):
    return "".join(problem.prompt.rstrip(">").split()).split("/")


def problem_of(*rows, moves=None):
    """A problem from its rows."""
    letters, width = "".join(rows), len(rows[0])
    cells = tuple(1 if symbol == "W" else 2 if symbol in ".*+" else 0 for symbol in letters)
    boxes = tuple(place for place, symbol in enumerate(letters) if symbol in "$*")
    player = next(place for place, symbol in enumerate(letters) if symbol in "@+")
    certificate = SokobanCertificate(
        room=Room(height=len(rows), width=width, cells=cells),
        start=Position(player=player, boxes=boxes),
        moves=moves or solve(rows)[0],
    )
    return Problem(prompt="/".join(rows) + ">", key="", certificate=certificate)


@cache
def layouts(height, width):
    """All layouts with one box and without walls that have a solution, by their rows."""
    cells, found = list(product(range(height), range(width))), {}
    for box, player, goal in product(cells, cells, cells):
        if box == player:
            continue
        rows = [["_"] * width for _ in range(height)]
        rows[goal[0]][goal[1]] = "."
        text = drawn(rows, (player, {box})).split("/")
        if box != goal and solve(text)[0] is not None:
            found[tuple(text)] = solve(text)[0]
    return found


# ---------------------------------------------------------------------------------------------------- exactness


@pytest.mark.parametrize(
    "task",
    [
        *LEVELS.values(),
        Sokoban(height=3, width=3, walls=0, boxes=2, moves=(1, 12)),
        Sokoban(height=3, width=4, walls=1, boxes=3, moves=(1, 20)),
        Sokoban(height=2, width=6, walls=0, boxes=2, moves=(1, 12)),
    ],
    ids=lambda task: f"{task.height}x{task.width}/{task.boxes}",
)
def test_length_solutions_pushes_and_states_are_those_of_an_independent_search(task):
    for problem in task.generate(stream("independent"), 12):
        moves, ways, pushes, states = solve(rows_of(problem))
        assert task.moves[0] <= moves <= task.moves[1]
        assert problem.features == {
            "moves": moves,
            "solutions": ways,
            "pushes": pushes,
            "states": states,
            "boxes": task.boxes,
        }
        assert problem.certificate.moves == moves


def test_a_corridor_is_searched_as_by_hand():
    # @$_. : R R. The box stands at 1, 2 or 3 with the player left of it on 1, 2 or 3 cells: 1 + 2 + 3 states.
    assert solve(["@$_.", "WWWW"]) == (2, 1, 2, 6)
    problem = problem_of("@$_.", "WWWW")
    task = Sokoban(height=2, width=4, walls=0, boxes=1, moves=(1, 4))
    assert list(task.answers(problem)) == ["R R"]
    assert task.verify(problem, "RR").correct


def test_answers_are_all_shortest_solutions():
    task = LEVELS["easy"]
    for problem in task.generate(stream("answers"), 30):
        listed = ["".join(answer.split()) for answer in task.answers(problem)]
        assert len(set(listed)) == len(listed) == problem.features["solutions"]
        assert {len(answer) for answer in listed} == {problem.features["moves"]}
        assert all(is_right(rows_of(problem), answer) for answer in listed)


def test_only_the_shortest_solutions_are_right_where_they_are_asked_for():
    task = Sokoban(height=3, width=3, walls=0, boxes=1, moves=(1, 4), accept="optimal", limit=6)
    for problem in task.generate(stream("optimal"), 6):
        listed = {"".join(answer.split()) for answer in task.answers(problem)}
        every = ["".join(letters) for size in range(1, 6) for letters in product("UDLR", repeat=size)]
        assert {text for text in every if task.verify(problem, text).correct} == listed


def test_problems_are_uniform_over_the_layouts_that_fit():
    # 2x3 without walls: 6 * 5 * 6 = 180 layouts of box, player and goal; those solved in 1 to 6 moves are kept.
    fit = [rows for rows, moves in layouts(2, 3).items() if moves <= 6]
    counts = Counter(tuple(rows_of(problem)) for problem in TINY.generate(stream("uniform"), 40 * len(fit)))
    assert set(counts) == set(fit)
    assert chisquare([counts[rows] for rows in fit]).pvalue > 1e-4


def test_problems_come_one_by_one_and_in_any_number_from_one_stream():
    first = LEVELS["easy"].generate(stream("prefix"), 5)
    assert LEVELS["easy"].generate(stream("prefix"), 5) == first
    assert LEVELS["easy"].generate(stream("prefix"), 0) == []
    state = np.random.get_state()[1].tolist()  # noqa: NPY002  # the global generator is left alone
    LEVELS["easy"].generate(stream("prefix"), 5)
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


# --------------------------------------------------------------------------------------------------------- keys


def turned(rows):
    return ["".join(column) for column in zip(*rows[::-1], strict=True)]


def images(rows):
    found = []
    for flipped in (list(rows), [row[::-1] for row in rows]):
        for _ in range(4):
            found.append(tuple(flipped))
            flipped = turned(flipped)  # noqa: PLW2901  # each a quarter further
    return found


def test_keys_are_equal_exactly_for_images_of_each_other():
    task = Sokoban(height=3, width=3, walls=0, boxes=1, moves=(1, 30))
    problems = task.generate(stream("keys"), 600)
    for_key = {}
    for problem in problems:
        for_key.setdefault(problem.key, set()).add(min(images(rows_of(problem))))
    assert all(len(forms) == 1 for forms in for_key.values())
    assert len({next(iter(forms)) for forms in for_key.values()}) == len(for_key)
    assert len(for_key) < len({problem.prompt for problem in problems})


def test_a_room_and_its_quarter_turn_have_one_key_in_tasks_of_both_shapes():
    wide, tall = (Sokoban(height=h, width=w, walls=0, moves=(1, 6)) for h, w in ((2, 3), (3, 2)))
    keys = [{problem.key for problem in task.generate(stream("shapes"), 400)} for task in (wide, tall)]
    assert keys[0] == keys[1]


def test_the_rule_on_answers_is_in_the_key_and_not_in_the_family():
    asked = [Sokoban(accept=accept, limit=limit) for accept, limit in (("any", 50), ("optimal", 50), ("any", 60))]
    problems = [task.generate(stream("rules"), 1)[0] for task in asked]
    assert len({problem.prompt for problem in problems}) == 1
    assert len({problem.key for problem in problems}) == 3
    assert len({problem.family for problem in problems}) == 1


# ----------------------------------------------------------------------------------------------------- verdicts

PUZZLE = problem_of("____", "@$_.", "____", "____")  # R R
ANY, OPTIMAL = Sokoban(), Sokoban(accept="optimal")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("R", "0 of 1 boxes are on goals"),
        ("L", "action 1, L, walks into a wall"),
        ("R R R", "action 3, R, pushes a box into a wall"),
        ("U U", "action 2, U, walks into a wall"),
    ],
)
def test_a_wrong_answer_is_told_the_first_thing_wrong(text, reason):
    verdict = ANY.verify(PUZZLE, text)
    assert not verdict.correct
    assert verdict.well_formed
    assert reason in verdict.reason


def test_a_box_is_not_pushed_into_another():
    problem = problem_of("@$$.", "___.", "____", "____", moves=1)
    task = Sokoban(boxes=2, walls=2, moves=(4, 16))
    assert "action 1, R, pushes a box into another box" in task.verify(problem, "R").reason


@pytest.mark.parametrize("text", ["R R", "RR", "\tR\n R ", "I push # R R", "L is wrong # RR", "#RR"])
def test_a_right_answer_is_accepted_with_and_without_working(text):
    assert ANY.verify(PUZZLE, text).correct
    assert OPTIMAL.verify(PUZZLE, text).correct


def test_a_detour_is_right_unless_a_shortest_solution_is_asked_for():
    detour = "U D R R"
    assert ANY.verify(PUZZLE, detour).correct
    verdict = OPTIMAL.verify(PUZZLE, detour)
    assert not verdict.correct
    assert "4 actions, 2 are enough" in verdict.reason
    assert verdict.progress == 0.5


def test_only_the_position_after_the_last_action_counts():
    assert ANY.verify(PUZZLE, "R R L").correct  # the box stays on its goal
    through = problem_of("____", "_@$.", "____", "____")
    assert ANY.verify(through, "R").correct
    # On from the solved position and off the goal: up and around the box, then down.
    assert not ANY.verify(through, "R U R D").correct
    assert ANY.verify(through, "R U R L D").correct


def test_progress_is_the_share_of_boxes_on_goals():
    problem = problem_of("@$._", "_$._", "____", "____")
    task = Sokoban(boxes=2, walls=2, moves=(4, 16))
    assert task.verify(problem, "R").progress == pytest.approx(1 / 3)
    assert task.verify(problem, "R U").progress == pytest.approx(1 / 3)  # what stood before the illegal action
    assert task.verify(problem, "D U").progress == 0
    assert task.verify(problem, "R L D R").progress == 1


@pytest.mark.parametrize(
    "text",
    ["", "#", "R R #", "R R # # R R", "r r", "RIGHT", "\uff32\uff32", "R,R", "R R.", "(R R)", "\x00RR", "R" * 101, "1"],
)
def test_what_is_not_in_the_grammar_is_malformed(text):
    verdict = ANY.verify(PUZZLE, text)
    assert (verdict.correct, verdict.well_formed, verdict.progress) == (False, False, 0.0)


@pytest.mark.parametrize("text", ["R" * 1_000_000, "R " * 500_000, "#" * 1_000_000, "\ud800" * 1_000_000])
def test_a_megabyte_of_garbage_is_malformed(text):
    assert not ANY.verify(PUZZLE, text).well_formed
    assert not ANY.verify(PUZZLE, f"# {text}").well_formed


def test_a_right_answer_with_much_white_space_or_working_is_accepted():
    assert ANY.verify(PUZZLE, "R" + " " * 90_000 + "R").correct
    assert ANY.verify(PUZZLE, "x" * 1_000_000 + "# R R").correct


@given(actions=st.text(alphabet="UDLR", max_size=14), place=st.integers(0, 19))
def test_the_verdict_on_any_actions_is_that_of_an_independent_reading_of_the_rules(actions, place):
    problem = easy()[place]
    assert LEVELS["easy"].verify(problem, actions).correct == is_right(rows_of(problem), actions)


@cache
def easy():
    return LEVELS["easy"].generate(stream("easy"), 20)


# ------------------------------------------------------------------------------------------------------- traces


def states_after(problem, actions):
    rows = rows_of(problem)
    floor, _, player, boxes = read(rows)
    states = [(player, boxes)]
    for action in actions:
        states.append(moved(floor, states[-1], action))
    return [drawn(rows, state) for state in states]


def test_an_explicit_trace_states_the_position_after_each_action():
    for problem in easy():
        trace = LEVELS["easy"].demonstrate(problem, EXPLICIT, stream("trace"))
        actions = trace.answer.split()
        assert [step.result for step in trace.steps] == states_after(problem, actions)[1:]
        assert [step.text for step in trace.steps] == [f"{s.operation} {s.result}" for s in trace.steps]
        assert len(actions) == problem.features["moves"]
        assert LEVELS["easy"].demonstrate(problem, IMPLICIT, stream("trace")).text == trace.answer


@pytest.mark.parametrize("group", [2, 3, 100])
def test_a_composed_trace_states_the_position_after_each_group(group):
    for problem in easy():
        style = TraceStyle(granularity="composed", group=group)
        trace = LEVELS["easy"].demonstrate(problem, style, stream("trace"))
        actions = trace.answer.split()
        states = states_after(problem, actions)
        ends = [*range(group, len(actions), group), len(actions)]
        written = [step.text for step in trace.steps if step.text]
        starts = [0, *ends[:-1]]
        assert written == [
            " ".join([*actions[start:end], states[end]]) for start, end in zip(starts, ends, strict=True)
        ]


def test_other_orders_have_the_same_steps():
    problem = max(easy(), key=lambda problem: problem.features["moves"])
    by_order = {}
    for order in ("forward", "backward", "shuffled"):
        trace = LEVELS["easy"].demonstrate(problem, TraceStyle(order=order), stream("order"))
        by_order[order] = [step.text for step in trace.steps]
    assert by_order["backward"] == by_order["forward"][::-1]
    assert sorted(by_order["shuffled"]) == sorted(by_order["forward"])
    assert by_order["shuffled"] != by_order["forward"]


def test_places_say_where_player_and_boxes_are():
    task = Sokoban(state="places")
    trace = task.demonstrate(PUZZLE, EXPLICIT, stream("trace"))
    assert trace.text == "R @11$12 R @12$13 # R R"


def test_a_solution_is_drawn_uniformly_from_the_shortest():
    problem = problem_of("@___", "__$.", "____", "____")
    listed = list(ANY.answers(problem))
    # Down then right, or right then down; the last step right pushes: D R R, R D R.
    assert sorted(listed) == ["D R R", "R D R"]
    rng = stream("uniform solutions")
    counts = Counter(ANY.demonstrate(problem, IMPLICIT, rng).answer for _ in range(400))
    assert chisquare([counts[answer] for answer in listed]).pvalue > 1e-4


@pytest.mark.parametrize(
    ("level", "backtracks"), [("easy", 0), ("easy", 1), ("easy", 2), ("hard", 1), ("hard", 2), ("hard", 4)]
)
def test_exactly_as_many_dead_ends_as_asked_are_shown_and_each_is_dead(level, backtracks):
    task, written = LEVELS[level], 0
    for problem in task.generate(stream("dead ends"), 12):
        style = TraceStyle(search="depth_first", backtracks=backtracks)
        try:
            trace = task.demonstrate(problem, style, stream("search", problem.key))
        except Unrealisable:
            continue
        assert task.verify(problem, trace.text).correct
        assert len(dead_ends(problem, trace)) == backtracks
        written += 1
    assert written >= 3


def test_a_search_without_a_count_shows_what_it_meets():
    counts = []
    for problem in easy():
        trace = LEVELS["easy"].demonstrate(problem, TraceStyle(search="depth_first"), stream("met", problem.key))
        counts.append(len(dead_ends(problem, trace)))
    assert min(counts) == 0
    assert max(counts) > 1


def dead_ends(problem, trace):
    """The dead ends of a trace, after checking that it is one: each legal, unsolvable, different, and taken back."""
    rows = rows_of(problem)
    floor, _, player, boxes = read(rows)
    history, found = [(player, boxes)], []
    for step in trace.steps:
        if step.operation == "x":
            assert solve(drawn(rows, history[-1]).split("/"))[0] is None
            back = max(place for place, state in enumerate(history) if drawn(rows, state) == step.result)
            assert solve(step.result.split("/"))[0] is not None
            found.append((history[back], history[-1]))
            history = history[: back + 1]
            continue
        history.append(moved(floor, history[-1], step.operation))
        assert drawn(rows, history[-1]) == step.result
    assert len(set(found)) == len(found)
    assert len(history) == problem.features["moves"] + 1
    return found


def test_more_dead_ends_than_there_are_is_unrealisable():
    corridor = problem_of("@$_.", "WWWW")
    task = Sokoban(height=2, width=4, walls=0, boxes=1, moves=(1, 4))
    with pytest.raises(Unrealisable, match="0 dead ends along it, 1 were asked for"):
        task.demonstrate(corridor, TraceStyle(search="depth_first", backtracks=1), stream("none"))


@pytest.mark.parametrize("style", [TraceStyle(search="breadth_first"), TraceStyle(search="depth_first", heuristic="h")])
def test_a_style_that_is_never_written_is_a_plain_error(style):
    with pytest.raises(ValueError, match="Sokoban") as refusal:
        ANY.demonstrate(PUZZLE, style, stream("refused"))
    assert not isinstance(refusal.value, Unrealisable)


# ------------------------------------------------------------------------------------------- floor, validation


def test_the_floor_is_the_success_of_the_best_constant_answer():
    # With one move asked for, an answer is one push. By enumeration of all layouts of a 2x3 room:
    task = Sokoban(height=2, width=3, walls=0, boxes=1, moves=(1, 1))
    fit = [rows for rows, moves in layouts(2, 3).items() if moves == 1]
    exact = max(sum(is_right(rows, action) for rows in fit) for action in "UDLR") / len(fit)
    assert exact == 0.5  # left or right; up and down never push in two rows
    assert abs(task.floor(task.generate(stream("floor"), 1)[0]) - exact) < 4 * (0.25 / 500) ** 0.5


@pytest.mark.parametrize(
    "fields",
    [
        {"height": 1},
        {"width": 9},
        {"height": True},
        {"boxes": 0},
        {"boxes": 4},
        {"boxes": 1.0},
        {"walls": -1},
        {"walls": 15},
        {"moves": (0, 5)},
        {"moves": (6, 5)},
        {"moves": [2, 5]},
        {"moves": (2, 61)},
        {"moves": (2, 5, 7)},
        {"limit": 11},
        {"accept": "best"},
        {"state": "picture"},
        {"height": 8, "width": 8, "boxes": 3},
        {"height": 2, "width": 2, "walls": 0},  # every box stands in a corner
        {"height": 2, "width": 3, "walls": 0, "moves": (20, 30)},
    ],
)
def test_what_cannot_be_is_refused_at_construction(fields):
    with pytest.raises(ValueError, match="Sokoban"):
        Sokoban(**fields)


def test_a_task_whose_searches_are_long_is_refused_after_a_bounded_number_of_states(monkeypatch):
    # 7x7 with three boxes has 900,000 states; all 4,096 layouts of the pilot would take minutes.
    monkeypatch.setattr("testbeds.sokoban.PILOT_STATES", 100_000)
    with pytest.raises(ValueError, match=r"0 of [0-9]{1,2} random layouts of 7x7 .* widen moves"):
        Sokoban(height=7, width=7, walls=0, boxes=3, moves=(55, 60))


def test_a_search_counts_the_layouts_and_states_that_it_looked_at():
    # One box between player and goal in a corridor of three: the solution is found in two states, and there is a third,
    # where the player walked back; so each layout takes 2 + 3.
    boards = np.array([[0, 0, GOAL]] * 3, np.uint8)
    starts = np.array([[0, 1]] * 3)
    sifted = sift(boards, starts, (1, 3), (1, 1), (3, 100))
    assert (len(sifted.kept), sifted.searched, sifted.visited) == (3, 3, 15)
    assert sift(boards, starts, (1, 3), (1, 1), (3, 6))[1:] == (2, 10)
    assert sift(boards, starts, (1, 3), (1, 1), (1, 100))[1:] == (1, 5)


def test_a_problem_of_another_testbed_is_refused_by_name():
    with pytest.raises(TypeError, match="SokobanCertificate, got str"):
        ANY.verify(Problem(prompt="", key="", certificate="x"), "R")


def test_pairs_of_boxes_keep_their_ranks_apart():
    from math import comb

    from testbeds.sokoban_search import rank_of, space

    for cells, boxes in ((6, 1), (6, 2), (7, 3)):
        ranks = [rank_of(p, chosen, cells) for p in range(cells) for chosen in combinations(range(cells), boxes)]
        assert sorted(ranks) == list(range(cells * comb(cells, boxes))) == list(range(space(cells, boxes)))
