"""Small models must learn: text by heart, and what a reward says."""

import json

import pytest

from models import Transformer
from testbeds import IMPLICIT, Mixture, Splits, Suite
from testbeds.latent_modules import LatentModules
from training import (
    GRPO,
    KL,
    REINFORCE,
    RL,
    RLOO,
    SFT,
    AdamW,
    Budget,
    Demonstrations,
    Evaluation,
    Execution,
    FreshText,
    PolicyGradient,
    Pretrain,
    ProblemSet,
    Shuffled,
    Styles,
    dr_grpo,
    lexicon,
)
from training.advantages import LeaveOneOut
from training.aggregation import TokenMean
from training.execution import silent
from training.policy_losses import ClippedRatio
from training.run import run_evaluation

pytestmark = pytest.mark.learn

TASK = LatentModules(world=11, alphabet=6, skills=3, depth=2)
SUITE = Suite(task=TASK, splits=Splits(fractions=(("train", 0.8), ("test", 0.2))), seed=1)


def accuracy(policy, tmp_path, **changes):
    declared = Evaluation(
        sets=(ProblemSet(suite=SUITE, **changes),), max_new_tokens=4, seed=1, samples=4, passes=(1,), seen=True
    )
    workspace = tmp_path / f"evaluation-{len(list(tmp_path.iterdir()))}"
    workspace.mkdir()
    run_evaluation(declared, policy=policy, workspace=workspace, execution=Execution(device="cpu"), report=silent)
    return json.loads((workspace / "artifact" / "results.json").read_text())["metrics"]


def test_a_tiny_model_learns_32_demonstrations_by_heart(recipe, train, tmp_path):
    stage = SFT(
        source=Demonstrations(suite=SUITE, count=32),
        budget=Budget(steps=150),
        optimizer=AdamW(rate=1e-2),
        seed=1,
        batch=32,
    )
    before = accuracy(train(recipe(_replaced(stage, 1), symbols=lexicon((TASK,)))), tmp_path, count=32, split="train")
    after = accuracy(train(recipe(stage, symbols=lexicon((TASK,)))), tmp_path, count=32, split="train")
    assert before["greedy_accuracy"] < 0.5
    assert after["greedy_accuracy"] == 1.0
    assert after["accuracy"] > 0.95


def _replaced(stage, steps):
    from dataclasses import replace

    return replace(stage, budget=Budget(steps=steps))


# The base has seen four worlds in which the same questions have different answers: it answers each with a guess. RL is
# paid in one of them, and has to find out which answers are right there.
WORLDS = tuple(LatentModules(world=world, alphabet=6, skills=2, depth=1) for world in (11, 12, 13, 14))
LOOKUP = Suite(task=WORLDS[0], splits=Splits(fractions=(("train", 1.0),)))
ELSEWHERE = Suite(task=Mixture(tasks=WORLDS, weights=(0.25,) * 4), splits=LOOKUP.splits)
BASE = Pretrain(
    source=FreshText(suite=ELSEWHERE, styles=Styles(styles=(IMPLICIT,), weights=(1.0,))),
    budget=Budget(steps=60),
    optimizer=AdamW(rate=1e-2),
    seed=1,
    batch=32,
)
# Larger initial weights than a deep model's: a single narrow layer leaves its saddle at once.
MODEL = Transformer(layers=1, width=32, heads=2, context=12, initial_std=0.15)


def lookup(method, **changes):
    declared = {
        "suite": LOOKUP,
        "method": method,
        "budget": Budget(steps=80),
        "optimizer": AdamW(rate=3e-3),
        "seed": 1,
        "max_new_tokens": 3,
        "prompts": 8,
        "group": 8,
    }
    return RL(**(declared | changes))


def ends(artifact):
    """Mean accuracy over the first and over the last five steps."""
    rows = [json.loads(row) for row in (artifact / "metrics.jsonl").read_text().splitlines()]
    return [sum(row["accuracy"] for row in part) / 5 for part in (rows[:5], rows[-5:])]


@pytest.mark.parametrize(
    "method",
    [
        REINFORCE,
        RLOO,
        GRPO,
        dr_grpo(max_tokens=3),
        PolicyGradient(advantage=LeaveOneOut(), loss=ClippedRatio(), aggregation=TokenMean(), kl=KL(coefficient=0.02)),
        PolicyGradient(advantage=LeaveOneOut(), loss=ClippedRatio(), aggregation=TokenMean(), entropy_bonus=0.001),
    ],
    ids=["reinforce", "rloo", "grpo", "dr-grpo", "rloo-kl-in-reward", "rloo-entropy"],
)
def test_rl_lifts_the_reward_from_chance(recipe, train, method):
    first, last = ends(train(recipe(BASE, lookup(method), model=MODEL, symbols=LOOKUP.task.symbols)))
    assert first < 0.5  # chance is 1/6, the best of the four worlds' answers are right more often
    assert last > 0.9


def test_shuffled_rewards_teach_nothing(recipe, train):
    first, last = ends(train(recipe(BASE, lookup(RLOO, reward=Shuffled()), model=MODEL, symbols=LOOKUP.task.symbols)))
    assert first < 0.5
    assert last < 0.6
