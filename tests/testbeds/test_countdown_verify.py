"""The verifier of Countdown: its integer arithmetic against fractions, and its bounds on garbage."""

from dataclasses import replace
from fractions import Fraction
from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbeds.arithmetic import (
    LONGEST_ANSWER,
    LONGEST_TEXT,
    Flaw,
    evaluate,
    joined,
    parse,
    ratio,
    tighten,
)
from testbeds.core import Problem
from testbeds.countdown import Countdown, CountdownCertificate
from testbeds.countdown_search import Rules
from testbeds.countdown_verify import Question, _quick_value, _verify_slowly, verify_expression
from testbeds.streams import stream

HONEST = settings(derandomize=True, max_examples=300, deadline=None)
FREE = Rules(operators=("+", "-", "*", "/"), positive=False, largest=None, exact_use=True)
RULES = (FREE, replace(FREE, positive=True), replace(FREE, largest=30), replace(FREE, positive=True, largest=30))
trees = st.recursive(
    st.integers(0, 12).map(str),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda parts: f"({''.join(parts)})"),
    max_leaves=8,
)


def problem(numbers, target):
    return Problem(
        prompt=f"{target}:{','.join(map(str, numbers))}>",
        key="by hand",
        certificate=CountdownCertificate(numbers=tuple(sorted(numbers)), target=target, witness=""),
    )


@HONEST
@given(trees, st.sampled_from(RULES))
def test_integer_pairs_give_the_value_and_the_flaw_that_fractions_give(text, rules):
    expression = parse(text)
    slow = evaluate(expression, rules.permit)
    fast = ratio(expression, rules.permit_ratio)
    if isinstance(slow, Flaw):
        assert fast == slow
    else:
        assert Fraction(*fast) == slow
        assert fast[1] > 0
    if rules.permits_all:
        assert ratio(expression, None) == fast


SHAPES = (
    "{0}{4}{1}{5}{2}{6}{3}",
    "({0}{4}{1}){5}({2}{6}{3})",
    "{0}{4}({1}{5}({2}{6}{3}))",
    "({0}{4}{1}{5}{2}){6}{3}",
    "{0}{4}{1}{5}{2}",
    "{0}{4}({1}{5}{2})",
    "({0}{4}{1}){5}{2}",
    "{0}{4}{1}",
    "9#{0}{4}{1}{5}(({2}{6}{3}))",
)
NUMBERS = (2, 3, 4, 4)


def is_judged_alike(question, text):
    """Whether the quick verdict, with reason and progress, is that of parser and fractions."""
    answer = tighten(text.rpartition("#")[2], question.numerals)
    if text.count("#") > 1 or isinstance(answer, Flaw):
        return not verify_expression(question, text).well_formed
    return verify_expression(question, text) == _verify_slowly(question, answer)


@HONEST
@given(
    st.text() | st.text("0123456789+-*/()=,#> ", max_size=40) | st.text("234+-*/()", max_size=12),
    st.sampled_from(RULES),
    st.booleans(),
    st.sampled_from(["digits", "whole"]),
)
def test_the_quick_verdict_on_any_text_is_that_of_the_parser(text, rules, exact_use, numerals):
    assert is_judged_alike(Question(NUMBERS, 24, replace(rules, exact_use=exact_use), numerals), text)


@pytest.mark.parametrize("rules", RULES, ids=["free", "positive", "bounded", "both"])
@pytest.mark.parametrize("exact_use", [True, False])
def test_the_quick_verdict_on_expressions_is_that_of_the_parser(rules, exact_use):
    rng = stream("quick verdicts", RULES.index(rules), int(exact_use))
    right = 0
    for _ in range(1500):
        chosen = rng.permutation(["2", "3", "4", "4"]) if rng.random() < 0.8 else rng.choice(["2", "3", "04", "0"], 4)
        text = SHAPES[rng.integers(len(SHAPES))].format(*chosen, *rng.choice(list("+-*/"), 3))
        text = text if rng.random() < 0.7 else " ".join(text)
        read = parse(text.rpartition("#")[2].replace(" ", ""))
        value = None if isinstance(read, Flaw) else evaluate(read, lambda _: True)
        is_natural = isinstance(value, Fraction) and value.denominator == 1 and value > 0
        target = int(value) if is_natural and rng.random() < 0.5 else 24
        question = Question(NUMBERS, target, replace(rules, exact_use=exact_use), ("digits", "whole")[rng.integers(2)])
        assert is_judged_alike(question, text)
        right += verify_expression(question, text).correct
    assert right > 25


@HONEST
@given(st.integers(-40, 40), st.integers(1, 40), st.sampled_from(RULES), st.integers(1, 9))
def test_a_result_is_permitted_in_lowest_terms_or_not(top, bottom, rules, factor):
    allowed = rules.permit(Fraction(top, bottom))
    assert rules.permit_ratio(top, bottom) == allowed
    assert rules.permit_ratio(top * factor, bottom * factor) == allowed
    divisor = gcd(top, bottom)
    assert rules.permit_ratio(top // divisor, bottom // divisor) == allowed


def test_a_right_answer_is_seen_at_once_and_its_shape_remembered():
    question = Question((3, 3, 8, 8), 24, FREE, "digits")
    assert _quick_value(question, "8/(3-8/3)") == (24, 1) == _quick_value(question, "(8/(3-8/3))")
    assert _quick_value(question, "8/(3-8/3)+") is None
    assert _quick_value(question, "8/(3-3)+8") is None


def test_a_pair_has_a_positive_denominator_and_no_quotient_by_zero():
    assert joined("/", (1, 2), (-3, 4)) == (-4, 6)
    assert joined("/", (1, 2), (0, 4)) is None


GARBAGE = {
    "words": "m1 ",
    "open parentheses": "(",
    "closed parentheses": ")",
    "digits": "7",
    "spaces": " ",
    "line ends": "\n",
    "half characters": "\ud800",
    "marks": "#",
    "terms": "1+",
    "lines": "1+1=2,",
    "equals signs": "=",
    "NULs": "\x00",
    "wide digits": "\uff13",
    "wide spaces": "\u3000",
}


@pytest.mark.parametrize("form", ["expression", "chain"])
@pytest.mark.parametrize("numerals", ["digits", "whole"])
@pytest.mark.parametrize("piece", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("size", [LONGEST_ANSWER, LONGEST_TEXT, 1_000_000])
def test_garbage_of_any_size_is_malformed_or_wrong(form, numerals, piece, size):
    task = Countdown(form=form, numerals=numerals)
    text = piece * (size // len(piece))
    for completion in (text, f"3*4#{text}", f"{text}#{text}"):
        verdict = task.verify(problem((3, 4), 12), completion)
        assert not verdict.correct
        assert verdict.progress < 1
        assert len(verdict.reason) < 250


def test_a_right_answer_may_have_much_white_space_and_any_working():
    verify = Countdown().verify
    posed = problem((3, 4), 12)
    spaces = " " * (LONGEST_TEXT - 3)
    assert verify(posed, f"3{spaces}*4").correct
    assert not verify(posed, f"3{spaces} *4").well_formed
    assert "characters" in verify(posed, f"3{spaces} *4").reason
    assert verify(posed, "9" * 1_000_000 + "#3*4").correct
    assert verify(posed, "\ud800\x00#3*4").correct


@HONEST
@given(st.text("0123456789+-*/()=,#:>;!@ \n", max_size=60))
def test_a_text_that_is_accepted_makes_the_target_from_the_numbers(text):
    verdict = Countdown(exact_use=False).verify(problem((2, 3, 4), 24), text)
    if verdict.correct:
        answer = "".join(text.rpartition("#")[2].split())
        assert evaluate(parse(answer), lambda _: True) == 24
