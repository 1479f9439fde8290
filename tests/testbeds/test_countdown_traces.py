"""Searches are what they say: every line is checked by a reader of its own, which shares no code with the writer."""

import re
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import TraceStyle, Unrealisable, stream
from testbeds.core import Problem
from testbeds.countdown import Countdown, CountdownCertificate
from testbeds.countdown_search import Rules
from testbeds.countdown_traces import (
    BEAM,
    BEAMS,
    MOST_BREADTH_STEPS,
    MOST_STEPS,
    SEARCH_SYMBOLS,
    backtracks_in,
    search_steps,
    search_trace,
    states_in,
)
from testbeds.countdown_traces_kernel import find, rule_code
from testbeds.countdown_traces_states import Puzzle

POSITIVE = Countdown(numbers=3, values=(1, 12), target=(1, 60), operators=("+", "-", "*"), intermediates="positive")
THREE = Countdown(numbers=3, values=(1, 20), target=(1, 100))
FOUR = Countdown(numbers=4, values=(1, 20), target=(10, 100))
BOUNDED = Countdown(numbers=3, values=(1, 12), target=(1, 60), largest=60)
SOME = Countdown(numbers=3, values=(1, 12), target=(1, 60), exact_use=False)
TASKS = {"positive": POSITIVE, "three": THREE, "four": FOUR, "bounded": BOUNDED, "some": SOME}


def style(search="depth_first", backtracks=None, heuristic=""):
    return TraceStyle(search=search, backtracks=backtracks, heuristic=heuristic)


@cache
def problems_of(name, count=8):
    return TASKS[name].generate(stream("search traces", name), count)


def by_hand(numbers, target, witness="1"):
    """A problem with these numbers in this order."""
    return Problem(
        prompt=f"{target}:{','.join(map(str, numbers))}>",
        key="by hand",
        certificate=CountdownCertificate(numbers=tuple(sorted(numbers)), target=target, witness=witness),
    )


# ------------------------------------------------------------------------------------------------- an own reader


def permitted(rules, value):
    if rules.positive and (value.denominator != 1 or value <= 0):
        return False
    return rules.largest is None or max(abs(value.numerator), value.denominator) <= rules.largest


@cache
def moves(rules, state):
    """The multisets that one permitted operation leaves."""
    found = set()
    for i, j in permutations(range(len(state)), 2):
        a, b = state[i], state[j]
        results = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else None}
        rest = [value for place, value in enumerate(state) if place not in (i, j)]
        for operator in rules.operators:
            result = results[operator]
            if result is not None and permitted(rules, result):
                found.add((result, tuple(sorted([result, *rest]))))
    return frozenset(found)


@cache
def can_finish(rules, target, state):
    """Whether the target can still be made, by trying everything."""
    return any(
        (result == target and (len(after) == 1 or not rules.exact_use)) or can_finish(rules, target, after)
        for result, after in moves(rules, state)
    )


def value_of(text):
    assert re.fullmatch(r"[0-9]+|\(-?[0-9]+(/[0-9]+)?\)", text), text
    return Fraction(text.strip("()"))


def state_of(text):
    return [value_of(part) for part in text.split(",")]


def result_of(line):
    left, operator, right, result = re.fullmatch(r"(\([^)]*\)|\d+)([-+*/])(\([^)]*\)|\d+)=(.*)", line).groups()
    a, b = value_of(left), value_of(right)
    value = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}[operator]()
    assert operator in "+-*/"
    assert value == value_of(result), line
    return a, b, value, operator


class Reader:
    """Follows a trace line by line, and fails at the first one that is not so."""

    def __init__(self, task, problem):
        self.rules, self.target = task.rules, problem.certificate.target
        self.root = [Fraction(n) for n in re.findall(r"\d+", problem.prompt.partition(":")[2])]
        self.seen = set()
        self.here = self.root
        self.last = None
        self.goal = False

    def key(self, state):
        return tuple(sorted(state))

    def fresh(self, state):
        return {after for _, after in moves(self.rules, self.key(state))} - self.seen

    def node(self, text):
        line, _, after = text.partition(":")
        a, b, value, operator = result_of(line)
        assert operator in self.rules.operators
        assert permitted(self.rules, value)
        state = state_of(after)
        left_over = list(self.here)
        left_over.remove(a)  # ValueError unless both operands are at hand
        left_over.remove(b)
        assert state == [value, *left_over], "the result first, then the others in their order"
        assert self.key(state) not in self.seen, "no state is entered twice"
        self.seen.add(self.key(state))
        assert not self.goal, "the search ends with its goal"
        self.goal = value == self.target and (len(state) == 1 or not self.rules.exact_use)
        return state

    def finish(self, answer):
        assert self.goal
        numbers = Counter(map(int, re.findall(r"\d+", answer)))
        assert numbers <= Counter(map(int, self.root))
        assert not self.rules.exact_use or sum(numbers.values()) == len(self.root)
        assert eval(re.sub(r"(\d+)", r"Fraction(\1)", answer)) == self.target


def read_depth_first(task, problem, text, whole=False):
    """The number of returns of a depth-first trace whose every line is right; ``whole``: nothing is left untried."""
    reader = Reader(task, problem)
    working, _, answer = text.partition("#")
    way, returns = [reader.root], 0
    for step in working.split(";"):
        if not step.startswith("!"):
            reader.here = way[-1]
            way.append(reader.node(step))
            continue
        returns += 1
        back = state_of(step[1:])
        given_up = [state for state in way if len(state) < len(back)]
        assert given_up
        assert back in way, "the state was on the way"
        assert not reader.fresh(way[-1]), "what is given up was followed to its end"
        assert not any(can_finish(reader.rules, reader.target, reader.key(state)) for state in given_up)
        if whole:
            assert not any(reader.fresh(state) for state in given_up)
            assert reader.fresh(back)
        while way[-1] != back:
            way.pop()
    reader.finish(answer)
    return returns


# ------------------------------------------------------------------------------------------------- exactly k


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("heuristic", ["", "multiply", "none"])
def test_exactly_as_many_dead_ends_are_shown_as_asked(name, heuristic):
    task = TASKS[name]
    for problem in problems_of(name):
        for k in (0, 1, 2, 5, 9):
            asked = style(backtracks=k, heuristic=heuristic)
            try:
                trace = search_trace(task, problem, asked, stream("k", problem.key, k))
            except Unrealisable:
                assert (name, k) == ("positive", 9), "few numbers and operators have few dead ends"
                continue
            assert read_depth_first(task, problem, trace.text) == k
            assert backtracks_in(trace) == backtracks_in(trace.text) == k
            assert task.verify(problem, trace.text).correct


def test_dead_ends_leave_every_state_of_the_way():
    problem = problems_of("four")[0]
    left = Counter()
    for draw in range(200):
        trace = search_trace(FOUR, problem, style(backtracks=1), stream("where", draw))
        left.update(step.result.count(",") + 1 for step in trace.steps if step.operation == "!")
    # 200 draws from three states with a third each: 66.7 expected, standard deviation 6.7.
    assert set(left) == {2, 3, 4}
    assert all(40 < times < 94 for times in left.values())


def test_dead_ends_and_their_order_as_derived_by_hand():
    # 2, 3 leave 5 (2+3), 1 (3-2) or the target 6 (2*3); 2-3 is negative. 5 is nearer to 6 than 1 is.
    task, problem = POSITIVE, by_hand((2, 3), 6)
    written = search_trace(task, problem, style(backtracks=2), stream("hand")).text
    assert written == "2+3=5:5;!2,3;3-2=1:1;!2,3;2*3=6:6#2*3"
    with pytest.raises(Unrealisable, match="3 backtracks .* 2 dead ends"):
        search_trace(task, problem, style(backtracks=3), stream("hand"))


def test_the_whole_search_as_derived_by_hand():
    # By the distance from 6 the goal comes first; in the fixed order + and - come before *.
    task, problem = POSITIVE, by_hand((2, 3), 6)
    assert search_trace(task, problem, style(), stream("hand")).text == "2*3=6:6#2*3"
    in_order = search_trace(task, problem, style(heuristic="none"), stream("hand")).text
    assert in_order == "2+3=5:5;!2,3;3-2=1:1;!2,3;2*3=6:6#2*3"
    # 12 is made as 3*4 from 7, 4, 1+2 = 3 ...; nearest factor of 12 (2 3 4 6 12): 7 is 1 away, 3 and 4 are 0.
    first = search_trace(task, by_hand((1, 2, 4), 12), style(heuristic="multiply"), stream("hand")).text
    assert first == "1+2=3:3,4;3*4=12:12#(1+2)*4"


def test_equal_numbers_are_used_one_at_a_time():
    # B30: of 3, 3, 8 a public writer removed both 3s after 3+8=11.
    problem = by_hand((3, 3, 8), 33, witness="(3+8)*3")
    for draw in range(30):
        for k in (0, 2, 4):
            trace = search_trace(THREE, problem, style(backtracks=k), stream("twins", draw))
            assert read_depth_first(THREE, problem, trace.text) == k
    read_depth_first(THREE, problem, search_trace(THREE, problem, style(), stream("twins")).text, whole=True)


@pytest.mark.parametrize(
    "line",
    [
        "4*4=16:16,2,5",  # B29: 4 stands there once
        "4*2=8:8",  # B29: 5 was dropped
        "4*2=9:9,5",
        "4*2=8:8,5;!8,5",  # back to where one is
    ],
)
def test_the_reader_of_these_tests_rejects_what_is_not_so(line):
    with pytest.raises((AssertionError, ValueError)):
        read_depth_first(THREE, by_hand((4, 2, 5), 16), f"{line};4*4=16:16#4*4")


# ------------------------------------------------------------------------------------------- whole searches


@pytest.mark.parametrize("name", ["positive", "three", "bounded", "some"])
@pytest.mark.parametrize("heuristic", ["", "multiply", "none"])
def test_the_whole_search_tries_everything_on_its_way(name, heuristic):
    task = TASKS[name]
    for problem in problems_of(name):
        trace = search_trace(task, problem, style(heuristic=heuristic), stream("unused"))
        assert read_depth_first(task, problem, trace.text, whole=True) == backtracks_in(trace)
        assert task.verify(problem, trace.text).correct


def test_the_nearest_state_is_tried_first():
    for problem in problems_of("three"):
        trace = search_trace(THREE, problem, style(heuristic="sum"), stream("unused"))
        target, root = problem.certificate.target, len(problem.certificate.numbers)
        tried = [state_of(step.result) for step in trace.steps if step.operation != "!"]
        distances = [sum(abs(n - target) for n in state) for state in tried if len(state) == root - 1]
        assert distances == sorted(distances)


def test_a_search_that_is_too_long_is_refused_as_such():
    refusals = []
    for problem in problems_of("four", 12):
        try:
            trace = search_trace(FOUR, problem, style(), stream("unused"))
        except Unrealisable as refusal:
            refusals.append(str(refusal))
        else:
            assert len(trace.steps) <= MOST_STEPS
            read_depth_first(FOUR, problem, trace.text)
    assert 0 < len(refusals) < 9
    assert all(f"{MOST_STEPS} steps; backtracks= asks" in refusal for refusal in refusals)


def test_a_breadth_first_search_that_is_too_long_names_the_beam():
    five = Countdown(numbers=5, values=(1, 20), target=(50, 100))
    problem = five.generate(stream("five"), 1)[0]
    with pytest.raises(Unrealisable, match=f"more than {MOST_BREADTH_STEPS} steps; heuristic=sum_beam asks"):
        search_trace(five, problem, style("breadth_first"), stream("unused"))


@pytest.mark.parametrize("name", ["three", "positive", "bounded", "some", "four"])
@pytest.mark.parametrize("heuristic", ["", "multiply", "none"])
def test_breadth_first_writes_whole_levels_and_finds_every_target_of_up_to_four_numbers(name, heuristic):
    task = TASKS[name]
    for problem in problems_of(name):
        trace = search_trace(task, problem, style("breadth_first", heuristic=heuristic), stream("unused"))
        read_breadth_first(task, problem, trace.text, beam=None)
        assert backtracks_in(trace) == 0
        assert task.verify(problem, trace.text).correct


def test_a_breadth_first_trace_as_derived_by_hand():
    # 1, 2, 4 to 12, positive. First level, pairs left to right: 1+2 2-1 1*2; 1+4 4-1 (1*4 = 4 leaves 4,2, the state
    # that 1*2 left); 2+4 4-2 2*4. On the second, 3,4 gives 7, 1 and the goal.
    text = search_trace(POSITIVE, by_hand((1, 2, 4), 12), style("breadth_first", heuristic="none"), stream("hand")).text
    assert text == (
        "@1,2,4;1+2=3:3,4;2-1=1:1,4;1*2=2:2,4;1+4=5:5,2;4-1=3:3,2;2+4=6:6,1;4-2=2:2,1;2*4=8:8,1"
        ";@3,4;3+4=7:7!;4-3=1:1!;3*4=12:12#(1+2)*4"
    )


def test_the_whole_tree_of_four_numbers_is_within_the_bound():
    # Numbers without coincidences have the largest tree; 1,978 to 2,003 steps were counted on forty sets of numbers.
    numbers = (7386, 8090, 1034, 8297)
    everything = Puzzle(numbers=numbers, target=10**12 + 7, rules=FOUR.rules, witness="")
    with pytest.raises(ValueError, match="do not make 1000000000007") as refusal:
        search_steps(everything, style("breadth_first", heuristic="none"), stream("unused"))
    assert not isinstance(refusal.value, Unrealisable), "within MOST_BREADTH_STEPS the whole tree was written"


def test_a_beam_keeps_the_most_promising_states_and_may_lose_the_target():
    lost = []
    for heuristic in BEAMS:
        for problem in problems_of("four"):
            try:
                trace = search_trace(FOUR, problem, style("breadth_first", heuristic=heuristic), stream("unused"))
            except Unrealisable as refusal:
                lost.append(str(refusal))
                continue
            read_breadth_first(FOUR, problem, trace.text, beam=BEAM)
    assert 0 < len(lost) < 2 * len(problems_of("four"))
    assert all(f"the {BEAM} most promising" in refusal for refusal in lost)


def test_a_beam_goes_with_breadth_first_search_alone():
    with pytest.raises(ValueError, match="'depth_first' must be one of sum, multiply, none, got 'sum_beam'"):
        search_trace(THREE, problems_of("three")[0], style(heuristic="sum_beam"), stream("refused"))


def read_breadth_first(task, problem, text, beam):
    reader = Reader(task, problem)
    working, _, answer = text.partition("#")
    level, below = [reader.root], []
    opened = 0
    steps = working.split(";")
    for place, step in enumerate(steps):
        if step.startswith("@"):
            assert place == 0 or not reader.fresh(reader.here), "all steps from a state are shown before the next"
            state = state_of(step[1:])
            if state not in level:
                assert beam is not None or opened == len(level), "without a beam all states of a level are opened"
                level, below, opened = below, [], 0
            assert state in level
            opened += 1
            assert beam is None or opened <= beam
            reader.here = state
            continue
        state = reader.node(step.rstrip("!"))
        below.append(state)
        is_over = not moves(reader.rules, reader.key(state)) and not reader.goal
        assert step.endswith("!") == is_over
    reader.finish(answer)


# ----------------------------------------------------------------------------------------- refusals and readers


def test_what_can_never_be_written_is_refused_with_what_can():
    problem = problems_of("three")[0]
    chain = Countdown(numbers=3, form="chain")
    with pytest.raises(ValueError, match="form='expression'"):
        search_trace(chain, problem, style(), stream("refused"))
    with pytest.raises(ValueError, match="sum, multiply, none"):
        search_trace(THREE, problem, style(heuristic="nearest"), stream("refused"))
    with pytest.raises(ValueError, match="search='optimal'"):
        search_trace(THREE, problem, TraceStyle(), stream("refused"))


def test_search_traces_are_made_of_the_tasks_symbols_and_the_search_symbols():
    for name, task in TASKS.items():
        known = {*task.symbols, *SEARCH_SYMBOLS}
        assert len(known) == len(set(task.symbols) | set(SEARCH_SYMBOLS))
        for problem in problems_of(name):
            text = search_trace(task, problem, style(backtracks=3), stream("symbols")).text
            assert set(text) <= known


def test_every_step_ends_with_its_result_and_the_text_is_the_steps():
    for problem in problems_of("three"):
        trace = search_trace(THREE, problem, style(backtracks=3), stream("layout"))
        assert all(step.text.endswith(step.result) for step in trace.steps)
        assert trace.text == ";".join(step.text for step in trace.steps) + "#" + trace.answer


def test_states_are_read_as_multisets():
    text = "3+5=8:8,7;8+7=15:15;!3,5,7;3*5=15:15,7;15+7=22:22#3*5+7"
    assert backtracks_in(text) == 1
    assert states_in(text) == (("7", "8"), ("15",), ("15", "7"), ("22",))
    assert states_in("1-3=(-2):(-2), 7") == (("(-2)", "7"),)


@given(st.text(alphabet="0123!@;:=#,( )-\x00é\ud800", max_size=60) | st.text(max_size=60))
def test_any_text_has_a_number_of_backtracks(text):
    assert 0 <= backtracks_in(text) <= text.count("!")
    assert len(states_in(text)) <= text.count("=")


def test_what_stands_after_the_answer_mark_is_no_backtrack():
    assert backtracks_in("!1,2;3+4=7:7#!3") == 1
    assert backtracks_in("!;!1;! 2;!(-1);!x") == 3
    assert backtracks_in("=" * 1_000_000) == 0
    assert states_in("=" * 300_000 + ":1") == (("1",),)


@given(
    numbers=st.lists(st.tuples(st.integers(-30, 30), st.integers(1, 6)), min_size=2, max_size=3),
    target=st.integers(1, 40),
    operators=st.sampled_from([("+", "-", "*", "/"), ("+", "*"), ("-", "/"), ("+", "-", "*")]),
    largest=st.sampled_from([None, 40, 100]),
    exact_use=st.booleans(),
)
def test_the_compiled_proof_agrees_with_trying_everything(numbers, target, operators, largest, exact_use):
    rules = Rules(operators=operators, positive=False, largest=largest, exact_use=exact_use)
    values = [Fraction(*number) for number in numbers]
    tops = np.array([[value.numerator for value in values]])
    bottoms = np.array([[value.denominator for value in values]])
    found, *path = find(tops, bottoms, target, rule_code(rules))[0].tolist()
    assert found == can_finish(rules, target, tuple(sorted(values)))
    assert (path[0] >= 0) == found


@given(
    numbers=st.lists(st.integers(1, 13), min_size=2, max_size=4),
    target=st.integers(1, 40),
)
def test_positive_and_whole_rules_agree_with_trying_everything(numbers, target):
    operators = ("+", "-", "*", "/")
    positive = Rules(operators=operators, positive=True, largest=None, exact_use=True)
    tops = np.array([numbers])
    found = find(tops, np.ones_like(tops), target, rule_code(positive))[0, 0]
    assert found == can_finish(positive, target, tuple(sorted(map(Fraction, numbers))))
    anything = Rules(operators=operators, positive=False, largest=None, exact_use=True)
    whole = find(tops, np.ones_like(tops), target, rule_code(anything, whole=True))[0, 0]
    assert whole == whole_can_finish(target, tuple(sorted(map(Fraction, numbers))))


@cache
def whole_can_finish(target, state):
    rules = Rules(operators=("+", "-", "*", "/"), positive=False, largest=None, exact_use=True)
    after = {rest for result, rest in moves(rules, state) if result.denominator == 1}
    return any(rest == (target,) or whole_can_finish(target, rest) for rest in after)
