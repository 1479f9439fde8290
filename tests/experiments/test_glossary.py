"""Every metric of an evaluation has a meaning on the page, and every number is readable whatever its size."""

from __future__ import annotations

import re

import pytest

from experiments.glossary import MEANINGS, meanings
from experiments.report import _quantity
from testbeds import EXPLICIT, Problem, Splits, Suite
from testbeds.latent_modules import LatentModules
from training import Evaluation, ProblemSet
from training.evaluation import Measured, summarise
from training.ledger import Spent

NUMBERED = re.compile(r"_(corrected|floor)$")


@pytest.fixture(scope="module")
def metrics():
    """Names of all metrics of a summary, of a problem with everything that is measured on one."""
    suite = Suite(task=LatentModules(world=1, depth=2), splits=Splits(fractions=(("test", 1.0),)), seed=1)
    evaluation = Evaluation(
        sets=(ProblemSet(suite=suite, count=1),),
        max_new_tokens=4,
        seed=1,
        styles=(EXPLICIT,),
    )
    one = {
        "component": "",
        "floor": 0.1,
        "correct": (True, False, False, False),
        "greedy_correct": True,
        "row": {},
        "spent": Spent(),
        "rates": {"correct_mass": 0.1, "correct_share": 0.2, "correct_top": 1.0},
        "totals": {"explicit_nats_per_token": (3.0, 2)},
    }
    names = ("well_formed", "progress", "entropy_sampling_nats", "truncated", "length_tokens", "entropy_nats")
    names += ("legal_mass", "correct_choice_mass", "winning_mass", "correct_rank", "explicit_demonstration_mass")
    problem = Problem(prompt="a", key="a", certificate=None)
    measured = [
        Measured(problem=problem, means=dict.fromkeys(names, 0.5), **one),
        Measured(problem=problem, means=dict.fromkeys(names[:-1], 0.5), **one),
    ]
    return [name for name in summarise(measured, evaluation)["metrics"] if not NUMBERED.search(name)]


def test_every_metric_is_explained(metrics):
    assert [metric for metric, _ in meanings(metrics)] == metrics
    found = dict(meanings(metrics))
    assert found["pass@4"] == "Chance that at least one of 4 samples is right."
    assert found["winning_mass"].endswith("of the kind winning.")
    assert found["explicit_nats_per_token"].startswith("Loss: ")
    assert found["explicit_demonstration_mass_problems"].startswith(
        "Number of problems that explicit demonstration mass"
    )
    for name in ("legal_mass", "correct_share", "correct_top", "correct_rank"):
        assert "at once, without working" in found[name]


def test_an_unknown_metric_is_left_out():
    assert meanings(["beauty"]) == ()


def test_meanings_are_sentences():
    assert all(meaning.endswith(".") for _, meaning in MEANINGS)


@pytest.mark.parametrize(
    ("number", "text"),
    [(16.0, "16"), (1200, "1200"), (25.4375, "25.44"), (4.0929e-6, "4.093e-06"), (0.0, "0"), (4.07288, "4.073")],
)
def test_numbers_of_any_size_keep_four_digits(number, text):
    assert _quantity(number) == text
