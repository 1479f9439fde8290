"""Problems that give each other away never stand on two sides, whatever suites they come from."""

import pytest

from testbeds import EXPLICIT, Splits, Suite, demonstration, stream
from testbeds.countdown import Countdown
from testbeds.latent_modules import LatentModules

SPLITS = Splits(fractions=(("train", 0.8), ("test", 0.2)))
PLAIN = Countdown(values=(1, 9), target=(1, 60))


def puzzle(problem):
    return problem.certificate.numbers, problem.certificate.target


@pytest.mark.parametrize(
    "relative",
    [
        Countdown(values=(1, 9), target=(1, 60), operators=("+", "-", "*")),
        Countdown(values=(1, 9), target=(1, 60), intermediates="positive"),
        Countdown(values=(1, 9), target=(1, 60), largest=200),
        Countdown(values=(1, 9), target=(1, 60), form="chain"),
        Countdown(values=(1, 9), target=(1, 60), exact_use=False),
    ],
)
def test_a_puzzle_under_other_rules_is_dealt_to_the_same_split(relative):
    trained = {puzzle(problem) for problem in Suite(task=relative, splits=SPLITS, seed=1).distinct("train", 600)}
    tested = {puzzle(problem) for problem in Suite(task=PLAIN, splits=SPLITS, seed=2).distinct("test", 300)}
    assert not trained & tested


def test_worlds_that_share_modules_share_the_deal():
    some, more = LatentModules(world=0, depth=2), LatentModules(world=0, depth=2, noninvertible=1, skills=7)
    trained = {problem.prompt for problem in Suite(task=some, splits=SPLITS).distinct("train", 300)}
    tested = {problem.prompt for problem in Suite(task=more, splits=SPLITS).distinct("test", 100)}
    assert not trained & tested


def test_a_whole_split_has_its_numbers_in_no_particular_order():
    task = Countdown(numbers=4, values=(1, 6), target=(1, 40), operators=("+", "-", "*"), intermediates="positive")
    suite = Suite(task=task, splits=Splits(fractions=(("train", 0.5), ("test", 0.5))))
    everything = suite.distinct("test", suite.capacity("test"))

    def ascending(problems):
        numbers = [[int(n) for n in problem.prompt.split(":")[1].rstrip(">").split(",")] for problem in problems]
        return sum(row == sorted(row) for row in numbers) / len(numbers)

    # Of the orders of four numbers from six values about a tenth ascends; the walked tail must be like the drawn head.
    assert ascending(everything[-len(everything) // 10 :]) < 0.3


def test_one_problem_has_one_demonstration_per_style():
    (problem,) = PLAIN.generate(stream("one demonstration"), 1)
    texts = {demonstration(PLAIN, problem, EXPLICIT).text for _ in range(5)}
    assert len(texts) == 1
    assert PLAIN.verify(problem, texts.pop()).correct
