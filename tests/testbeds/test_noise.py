"""Noise hits its rate, spoils what it says and nothing else, and gives the same answer when asked twice."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import EXPLICIT, IMPLICIT, Problem, Suite, Trace, TraceStyle, Unrealisable, demonstration
from testbeds.core import Step
from testbeds.countdown import Countdown
from testbeds.latent_modules import LatentModules
from testbeds.noise import (
    DroppedSteps,
    FalseNegatives,
    FalsePositives,
    FormatOnly,
    LengthBiased,
    ShuffledSteps,
    UnrelatedWorking,
    WrongResult,
)
from testbeds.verifiers import Exact

MARKED = Countdown(numbers=3, operators=("+", "-", "*"), values=(1, 9), target=(1, 60), intermediates="positive")
UNMARKED = LatentModules(world=3, depth=4)
TASKS = {"with a mark": MARKED, "without a mark": UNMARKED}
KINDS = (WrongResult, DroppedSteps, ShuffledSteps, UnrelatedWorking)
MANY = 600


def problems_of(task):
    return Suite(task=task).distinct("train", MANY)


def working(trace: Trace) -> list[str]:
    texts = [step.text for step in trace.steps if step.text]
    return texts if trace.mark else texts[:-1]


def spoiled(task, noise):
    """(clean, noisy) demonstrations of the problems that have room for the noise."""
    pairs = []
    for problem in problems_of(task):
        try:
            noisy = demonstration(task, problem, TraceStyle(noise=noise))
        except Unrealisable:
            continue
        pairs.append((demonstration(task, problem, EXPLICIT), noisy))
    return pairs


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_noise_hits_its_rate_and_keeps_the_answer(name, kind):
    pairs = spoiled(TASKS[name], kind(rate=0.3))
    assert len(pairs) > MANY / 2
    share = sum(clean.text != noisy.text for clean, noisy in pairs) / len(pairs)
    assert abs(share - 0.3) < 4 * sqrt(0.3 * 0.7 / len(pairs))  # 4 standard deviations of a binomial share
    for clean, noisy in pairs:
        assert noisy.answer == clean.answer
        assert noisy.text.endswith(clean.answer)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_rates_of_0_and_1_spoil_nothing_and_everything(name, kind):
    assert all(clean == noisy for clean, noisy in spoiled(TASKS[name], kind(rate=0.0)))
    assert all(clean.text != noisy.text for clean, noisy in spoiled(TASKS[name], kind(rate=1.0)))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_spoiled_at_a_low_rate_is_spoiled_at_a_high_one_in_the_same_way(kind):
    low, high = (spoiled(UNMARKED, kind(rate=rate)) for rate in (0.2, 0.6))
    for (clean, few), (_, many) in zip(low, high, strict=True):
        assert few.text in (clean.text, many.text)


@pytest.mark.parametrize("name", TASKS)
def test_a_wrong_result_replaces_the_result_of_one_step(name):
    for clean, noisy in spoiled(TASKS[name], WrongResult(rate=1.0)):
        differing = [(a, b) for a, b in zip(clean.steps, noisy.steps, strict=True) if a.text and a.text != b.text]
        ((before, after),) = differing
        assert before.operation == after.operation
        assert before.result != after.result
        assert after.text == before.text.removesuffix(before.result) + after.result


@pytest.mark.parametrize("name", TASKS)
def test_dropped_and_shuffled_steps_are_steps_of_the_trace(name):
    for clean, noisy in spoiled(TASKS[name], DroppedSteps(rate=1.0)):
        assert len(working(noisy)) == len(working(clean)) - 1
        left = iter(working(clean))
        assert all(text in left for text in working(noisy)), "the rest is in order"
    for clean, noisy in spoiled(TASKS[name], ShuffledSteps(rate=1.0)):
        assert sorted(working(noisy)) == sorted(working(clean))
        assert working(noisy) != working(clean)


def test_unrelated_working_is_the_working_of_some_other_problem():
    # In Countdown a working names the numbers: an unrelated one is a true chain, of other numbers.
    for clean, noisy in spoiled(MARKED, UnrelatedWorking(rate=1.0)):
        assert working(noisy) != working(clean)
        for line in working(noisy):
            left, _, right = line.partition("=")
            assert eval(left) == int(right)


def test_what_cannot_be_spoiled_is_refused():
    problem = problems_of(UNMARKED)[0]
    with pytest.raises(Unrealisable, match="has 0 steps before its answer"):
        demonstration(UNMARKED, problem, replace(IMPLICIT, noise=DroppedSteps(rate=0.0)))
    chain = replace(MARKED, form="chain")
    with pytest.raises(ValueError, match="answer is its working"):
        demonstration(chain, problems_of(chain)[0], TraceStyle(noise=DroppedSteps(rate=0.5)))
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="rate must be between 0 and 1"):
            WrongResult(rate=rate)
    with pytest.raises(ValueError, match="steps must be"):
        DroppedSteps(rate=0.5, steps=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoProblems:
    """One problem in two spellings of its working, drawn for nine of ten, and another one."""

    revision: ClassVar[int] = 1

    def generate(self, rng, count):
        return [self.problem("other" if draw < 0.1 else "one") for draw in rng.random(count)]

    def problem(self, key):
        return Problem(prompt=key, key=key, certificate=None)

    def demonstrate(self, problem, style, rng):
        working = "w" if problem.key == "other" else "a" + " " * int(rng.integers(1, 4)) + "b"
        return Trace.worked((Step(operation="", result=working, text=working),), "answer")


def test_unrelated_working_is_of_another_problem_whatever_white_space_its_own_has():
    task = TwoProblems()
    found = [demonstration(task, task.problem("one"), TraceStyle(noise=UnrelatedWorking(rate=1.0)))]
    assert [trace.text for trace in found] == ["w # answer"]


def test_a_wrong_result_reads_differently_from_the_right_one():
    task = TwoProblems()
    assert demonstration(task, task.problem("one"), TraceStyle(noise=WrongResult(rate=1.0))).text == "w # answer"


def test_a_problem_without_another_result_is_refused_whether_it_would_be_spoiled_or_not():
    # Or those that would stay clean were shown and those that would be spoiled were not: the rate would not hold.
    class Alone(TwoProblems):
        def generate(self, rng, count):
            return [self.problem("one")] * count

    for rate in (0.0, 1.0):
        with pytest.raises(Unrealisable, match="no result but that of"):
            demonstration(Alone(), Alone().problem("one"), TraceStyle(noise=WrongResult(rate=rate)))


# ------------------------------------------------------------------------------------------------ verifiers


def wrong_answers(count):
    """(problem, well-formed wrong answer), as many as asked."""
    problems = problems_of(UNMARKED)
    pairs = [
        (problem, letter)
        for problem in problems
        for letter in UNMARKED.symbols[: UNMARKED.alphabet]
        if letter != problem.certificate.states[-1]
    ]
    return pairs[:count]


def test_false_positives_pass_at_their_rate_and_right_answers_always():
    noisy, cases = FalsePositives(rate=0.1), wrong_answers(4000)
    passed = sum(noisy(UNMARKED, problem, text).correct for problem, text in cases)
    assert abs(passed / 4000 - 0.1) < 4 * sqrt(0.1 * 0.9 / 4000)
    assert all(noisy(UNMARKED, p, p.certificate.states[-1]).correct for p in problems_of(UNMARKED))
    strict = FalsePositives(rate=1.0, malformed=False)
    assert not strict(UNMARKED, cases[0][0], "?").correct
    assert FalsePositives(rate=1.0)(UNMARKED, cases[0][0], "?").correct


def test_false_negatives_fail_at_their_rate_and_wrong_answers_always():
    noisy, problems = FalseNegatives(rate=0.2), problems_of(UNMARKED)
    failed = sum(not noisy(UNMARKED, p, p.certificate.states[-1]).correct for p in problems)
    assert abs(failed / MANY - 0.2) < 4 * sqrt(0.2 * 0.8 / MANY)
    assert not any(noisy(UNMARKED, problem, text).correct for problem, text in wrong_answers(200))


def test_form_alone_and_length_decide_as_they_say():
    problem, wrong = wrong_answers(1)[0]
    assert FormatOnly()(UNMARKED, problem, wrong).correct
    assert not FormatOnly()(UNMARKED, problem, "?").correct
    long = LengthBiased(rate=1.0, length=5)
    assert not long(UNMARKED, problem, " ".join(wrong * 4)).correct
    assert long(UNMARKED, problem, " ".join(wrong * 5)).correct
    short = LengthBiased(rate=1.0, length=2, favours="short")
    assert short(UNMARKED, problem, wrong).correct
    assert not short(UNMARKED, problem, wrong * 3).correct


@given(text=st.text(max_size=20), rate=st.floats(0, 1))
def test_asking_twice_gives_the_same_verdict_on_any_text(text, rate):
    problem = Suite(task=UNMARKED).stream("train")[0]
    nested = FalseNegatives(rate=rate, of=FalsePositives(rate=rate, of=LengthBiased(rate=rate, length=3)))
    assert nested(UNMARKED, problem, text) == nested(UNMARKED, problem, text)
    for honest in (FalsePositives(rate=0.0), FalseNegatives(rate=0.0)):
        assert honest(UNMARKED, problem, text) == Exact()(UNMARKED, problem, text)
