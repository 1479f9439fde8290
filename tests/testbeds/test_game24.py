"""The 24 game: which hands are solvable, how they are drawn, what counts as an answer."""

import re
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, permutations
from math import factorial, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from testbeds import EXPLICIT, IMPLICIT, Problem, Splits, Suite, TraceStyle, Unrealisable, stream
from testbeds.countdown import Countdown
from testbeds.countdown_search import Rules
from testbeds.countdown_traces import backtracks_in
from testbeds.game24 import Game24, Game24Certificate
from testbeds.game24_hands import facts

TASK = Game24()


def hand(*numbers, target=24):
    return Problem(
        prompt=f"{target}:{','.join(map(str, numbers))}>",
        key="by hand",
        certificate=Game24Certificate(numbers=tuple(sorted(numbers)), dealt=numbers, target=target, witness="0"),
    )


@cache
def makes(target, state, whole=False, positive=False):
    """Whether the target can be made, by trying everything with exact fractions."""
    if len(state) == 1:
        return state[0] == target
    for i, j in permutations(range(len(state)), 2):
        a, b = state[i], state[j]
        rest = [value for place, value in enumerate(state) if place not in (i, j)]
        for value in (a + b, a - b, a * b, a / b if b else None):
            if value is None or (value.denominator != 1 and (whole or positive)) or (positive and value <= 0):
                continue
            if makes(target, tuple(sorted([value, *rest])), whole, positive):
                return True
    return False


def fractions(numbers):
    return tuple(map(Fraction, sorted(numbers)))


# ------------------------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize(("highest", "hands", "solvable"), [(13, 1820, 1362), (10, 715, 566)])
def test_the_known_counts_of_solvable_hands(highest, hands, solvable):
    # C(13+3, 4) = 1820 and C(10+3, 4) = 715 multisets; 1362 and 566 of them are known to make 24.
    assert len(list(combinations_with_replacement(range(highest), 4))) == hands
    assert Game24(values=(1, highest)).capacity == solvable


def test_the_table_agrees_with_trying_everything():
    hands = {problem.certificate.numbers for problem in TASK.enumerate()}
    for place, numbers in enumerate(combinations_with_replacement(range(1, 14), 4)):
        if place % 40 == 0:
            assert (numbers in hands) == makes(24, fractions(numbers)), numbers
    for numbers in combinations_with_replacement(range(1, 8), 3):
        assert (numbers in {p.certificate.numbers for p in small().enumerate()}) == makes(24, fractions(numbers))


@cache
def small():
    return Game24(numbers=3, values=(1, 7))


def test_the_sixteen_hands_that_need_a_fraction():
    needs = {p.certificate.numbers for p in TASK.enumerate() if p.features["needs_fractions"]}
    assert {(3, 3, 8, 8), (1, 5, 5, 5), (1, 3, 4, 6), (3, 3, 7, 7), (4, 4, 7, 7), (1, 4, 5, 6)} <= needs
    assert all(not makes(24, fractions(numbers), whole=True) for numbers in needs)
    assert len(needs) == 16
    assert (1, 1, 1, 1) not in {p.certificate.numbers for p in TASK.enumerate()}


def test_features_agree_with_trying_everything():
    problems = list(TASK.enumerate())
    for problem in problems[::60]:
        numbers = fractions(problem.certificate.numbers)
        assert problem.features["needs_fractions"] == (not makes(24, numbers, whole=True))
        assert problem.features["positive_suffice"] == makes(24, numbers, positive=True)
        assert problem.features["solutions"] == len(list(TASK.answers(problem))) >= 1


def test_solutions_are_counted_as_derived_by_hand():
    rules = TASK.rules
    # 3 3 8 8: 8/(3-8/3) alone. 6 6 6 6: 6+6+6+6 and 6*6-6-6. 1 1 1 24 would be many.
    assert facts((3, 3, 8, 8), 24, rules).solutions == 1
    assert facts((6, 6, 6, 6), 24, rules).solutions == 2
    with pytest.raises(ValueError, match="solvable"):
        facts((1, 1, 1, 1), 24, rules)


def test_a_task_has_as_many_solutions_as_the_same_puzzle_of_countdown():
    countdown = Countdown(numbers=4, values=(1, 10), target=(24, 24))
    for problem in countdown.generate(stream("same"), 20):
        assert facts(problem.certificate.numbers, 24, TASK.rules).solutions == problem.features["solutions"]


def test_every_witness_is_right():
    for task in (TASK, Game24(numbers=3, values=(1, 20)), Game24(numbers=5, values=(1, 4)), Game24(target=36)):
        for problem in list(task.enumerate())[::7]:
            assert task.verify(problem, problem.certificate.witness).correct


def test_six_numbers_are_solved_too():
    task = Game24(numbers=6, values=(1, 4))
    assert task.capacity <= 84  # C(4+5, 6)
    problem = task.generate(stream("six"), 1)[0]
    for style in (EXPLICIT, IMPLICIT, TraceStyle(search="depth_first", backtracks=3)):
        assert task.verify(problem, task.demonstrate(problem, style, stream("six")).text).correct
    assert "solutions" not in problem.features


# --------------------------------------------------------------------------------------------------------- draws


def test_hands_are_drawn_as_numbers_with_replacement_given_that_they_are_solvable():
    task = small()
    hands = [p.certificate.numbers for p in task.enumerate()]
    orders = [factorial(3) / prod(map(factorial, Counter(numbers).values())) for numbers in hands]
    drawn = Counter(p.certificate.dealt for p in task.generate(stream("uniform"), 20_000))
    assert all(tuple(sorted(dealt)) in set(hands) for dealt in drawn)
    # Every order of every solvable hand is equally likely.
    assert len(drawn) == sum(orders)
    assert chisquare(list(drawn.values())).pvalue > 0.001


def test_the_floor_is_the_probability_of_the_likeliest_hand():
    task = small()
    orders = [factorial(3) / prod(map(factorial, Counter(p.certificate.numbers).values())) for p in task.enumerate()]
    assert task.floor(hand(1, 4, 6)) == pytest.approx(max(orders) / sum(orders))


def test_keys_forget_the_order_and_name_the_rules():
    by_key = {}
    for problem in TASK.generate(stream("keys"), 3000):
        by_key.setdefault(problem.key, set()).add(problem.certificate.numbers)
    assert all(len(numbers) == 1 for numbers in by_key.values())
    positive = {p.key for p in Game24(intermediates="positive").generate(stream("keys"), 200)}
    assert not positive & set(by_key)


def test_a_hand_that_countdown_trains_on_is_never_tested_here():
    splits = Splits(fractions=(("train", 0.5), ("test", 0.5)))
    countdown = Countdown(numbers=4, values=(1, 10), target=(20, 28))
    trained = Suite(task=countdown, splits=splits).stream("train")[:1500]
    seen = {p.certificate.numbers for p in trained if p.certificate.target == 24}
    tested = {p.certificate.numbers for p in Suite(task=Game24(values=(1, 10)), splits=splits).distinct("test", 250)}
    assert seen
    assert not seen & tested


# ------------------------------------------------------------------------------------------------------ verdicts

RIGHT = [((3, 3, 8, 8), "8/(3-8/3)"), ((1, 5, 5, 5), "5*(5-1/5)"), ((4, 6, 1, 1), "6*4*1*1")]
WRONG = [
    ("A15 target never checked", (3, 3, 8, 8), "3+3+8+8"),
    ("B6 the constant answer", (3, 3, 8, 8), "6*4*1*1"),
    ("B6 the constant answer", (5, 5, 5, 1), "6*4*1*1"),
    ("a number dropped", (3, 3, 8, 8), "3*8"),
    ("a number used twice", (4, 6, 1, 2), "4*6*1*1"),
    ("digits joined", (2, 4, 1, 1), "24*1*1"),
    ("digits joined", (1, 2, 2, 2), "12*2"),
    ("power", (2, 3, 4, 4), "2**3*4-4-4"),
    ("unary minus", (3, 3, 8, 8), "-8/(8/3-3)"),
    ("two answers", (3, 3, 8, 8), "8/(3-8/3)#8/(3-8/3)#8/(3-8/3)"),
    ("only the working is right", (3, 3, 8, 8), "8/(3-8/3)#3+3+8+8"),
    ("with its value", (3, 3, 8, 8), "8/(3-8/3)=24"),
    ("full-width digits", (3, 3, 8, 8), "８/(3-8/3)"),  # noqa: RUF001
    ("division by zero", (3, 3, 8, 8), "8*8/(3-3)"),
]


@pytest.mark.parametrize(("numbers", "answer"), RIGHT)
def test_right_answers_with_fractions_are_right(numbers, answer):
    # B32: a public grader computed 23.99999999999999 for the first of them, and paid nothing.
    for text in (answer, f"anything at all#{answer}", " ".join(answer), f"({answer})"):
        verdict = TASK.verify(hand(*numbers), text)
        assert verdict.correct
        assert verdict.progress == 1


@pytest.mark.parametrize(("fault", "numbers", "answer"), WRONG)
def test_wrong_answers_are_wrong(fault, numbers, answer):
    verdict = TASK.verify(hand(*numbers), answer)
    assert not verdict.correct, fault
    assert verdict.progress < 1


def test_positive_tasks_refuse_fractions_on_the_way():
    positive = Game24(intermediates="positive")
    assert not positive.verify(hand(3, 3, 8, 8), "8/(3-8/3)").correct
    assert positive.verify(hand(1, 2, 3, 4), "1*2*3*4").correct


@given(st.text(alphabet="0123456789+-*/()#= ", max_size=40))
def test_a_verdict_agrees_with_exact_evaluation(text):
    verdict = TASK.verify(hand(1, 2, 3, 4), text)
    answer = text.rpartition("#")[2]
    used = sorted(re.findall(r"\d+", answer))
    assert not verdict.correct or (
        used == ["1", "2", "3", "4"] and eval(re.sub(r"(\d+)", r"Fraction(\1)", answer)) == 24
    )


# ------------------------------------------------------------------------------------------------ demonstrations


def test_demonstrations_draw_each_distinct_solution_alike():
    problem = hand(6, 6, 6, 6)
    drawn = Counter(TASK.demonstrate(problem, IMPLICIT, stream("even", i)).text for i in range(400))
    # Two solutions: 200 expected of each, standard deviation 10.
    assert set(drawn) == set(TASK.answers(problem))
    assert all(150 < times < 250 for times in drawn.values())


def test_explicit_steps_are_the_lines_of_the_solution_in_each_order():
    (problem,) = [p for p in TASK.enumerate() if p.certificate.numbers == (3, 3, 8, 8)]
    forward = TASK.demonstrate(problem, EXPLICIT, stream("order"))
    assert forward.text == "8/3=(8/3),3-(8/3)=(1/3),8/(1/3)=24#8/(3-8/3)"
    backward = TASK.demonstrate(problem, TraceStyle(order="backward"), stream("order"))
    assert backward.text == "8/(1/3)=24,3-(8/3)=(1/3),8/3=(8/3)#8/(3-8/3)"
    shuffled = {TASK.demonstrate(problem, TraceStyle(order="shuffled"), stream("order", i)).text for i in range(60)}
    assert len(shuffled) == 6  # 3! orders, 60 draws: all seen but for a probability below 1e-3
    with pytest.raises(ValueError, match="composed"):
        TASK.demonstrate(problem, TraceStyle(granularity="composed", group=2), stream("order"))


def test_backtracks_asked_are_backtracks_shown():
    for problem in TASK.generate(stream("back"), 20):
        for k in (0, 1, 3, 8):
            trace = TASK.demonstrate(problem, TraceStyle(search="depth_first", backtracks=k), stream("back", k))
            assert backtracks_in(trace) == k
            assert TASK.verify(problem, trace.text).correct


def test_a_hand_without_that_many_dead_ends_says_so():
    task = Game24(numbers=3, values=(1, 9), operators=("+",))
    problem = task.generate(stream("few"), 1)[0]
    with pytest.raises(Unrealisable):
        task.demonstrate(problem, TraceStyle(search="depth_first", backtracks=50), stream("few"))


# -------------------------------------------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"values": (1, 2)}, "no hand of 4 numbers from 1 to 2 makes 24"),  # B8
        ({"operators": ("+",), "values": (1, 5)}, "no hand"),  # B8: 5+5+5+5 = 20
        ({"target": 10**30}, "no hand"),
        ({"target": 0}, "target"),
        ({"target": True}, "target"),
        ({"numbers": 2}, "3 to 6"),
        ({"numbers": 7}, "3 to 6"),
        ({"numbers": 4.0}, "3 to 6"),
        ({"values": [1, 13]}, "tuple"),
        ({"values": (0, 13)}, "1 <= low"),
        ({"values": (5, 4)}, "low <= high"),
        ({"values": (True, 13)}, "whole numbers"),
        ({"values": (1, 99)}, "at most 20000"),
        ({"values": (2**31, 2**31 + 1)}, "64 bits"),
        ({"operators": ("*", "+")}, "in this order"),
        ({"operators": ()}, "one or more"),
        ({"operators": "+-"}, "tuple"),
        ({"operators": (["+"],)}, "tuple"),
        ({"intermediates": "whole"}, "'any' or 'positive'"),
    ],
)
def test_what_cannot_be_is_refused_at_once(changes, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Game24(**changes)


def test_the_only_solvable_hand_is_found_however_rare():
    # With + alone and numbers up to 6, of all hands of four only 6 6 6 6 makes 24.
    task = Game24(operators=("+",), values=(1, 6))
    assert task.capacity == 1
    assert {p.certificate.dealt for p in task.generate(stream("rare"), 5)} == {(6, 6, 6, 6)}
    assert task.floor(hand(6, 6, 6, 6)) == 1


def test_another_testbeds_problem_is_refused_with_a_reason():
    other = Countdown().generate(stream("other"), 1)[0]
    with pytest.raises(TypeError, match="Game24Certificate"):
        TASK.verify(other, "1")


def test_rules_are_those_of_countdown():
    assert TASK.rules == Rules(operators=("+", "-", "*", "/"), positive=False, largest=None, exact_use=True)
    assert TASK.rules == Countdown().rules


def test_a_target_that_hardly_any_large_hand_makes_is_refused_in_bounded_time(monkeypatch):
    # The tree of one hand of six numbers has millions of states; nearly all of thousands of hands would exhaust theirs.
    monkeypatch.setattr("testbeds.game24_hands.MOST_STATES", 5_000_000)
    with pytest.raises(ValueError, match="hands of 6 numbers do not make .* take a target that more hands make"):
        Game24(numbers=6, values=(1, 9), target=10_007)
