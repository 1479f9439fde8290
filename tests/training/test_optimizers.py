"""Schedules against closed forms, AdamW against its equation."""

import json
import math

import pytest
import torch

from training.optimizers import AdamW, Constant, Cosine, WarmupStableDecay


@pytest.mark.parametrize(
    ("schedule", "fraction", "expected"),
    [
        (Constant(), 0.001, 1.0),
        (Constant(warmup=0.1), 0.05, 0.5),
        (Constant(warmup=0.1), 0.5, 1.0),
        (Cosine(warmup=0.2, final=0.1), 0.1, 0.5),
        (Cosine(warmup=0.2, final=0.1), 0.2, 1.0),
        (Cosine(warmup=0.2, final=0.1), 0.6, 0.55),  # halfway past the warm-up: (1 + 0.1) / 2
        (Cosine(warmup=0.2, final=0.1), 1.0, 0.1),
        (Cosine(warmup=0.0, final=0.0), 1 / 3, 0.75),  # (1 + cos 60 degrees) / 2
        (WarmupStableDecay(warmup=0.1, decay=0.4, final=0.2), 0.05, 0.5),
        (WarmupStableDecay(warmup=0.1, decay=0.4, final=0.2), 0.6, 1.0),
        (WarmupStableDecay(warmup=0.1, decay=0.4, final=0.2), 0.8, 0.6),  # halfway down: (1 + 0.2) / 2
        (WarmupStableDecay(warmup=0.1, decay=0.4, final=0.2), 1.0, 0.2),
    ],
)
def test_schedules_have_their_closed_form(schedule, fraction, expected):
    assert schedule(fraction) == pytest.approx(expected)


@pytest.mark.parametrize("field", ["warmup", "final"])
def test_shares_outside_the_unit_interval_are_refused(field):
    with pytest.raises(ValueError, match=rf"Cosine.{field} is a share of the budget in \[0, 1\], got 1.5"):
        Cosine(**{field: 1.5})


def test_a_warm_up_and_decay_longer_than_the_budget_are_refused():
    with pytest.raises(ValueError, match="their sum must be at most 1"):
        WarmupStableDecay(warmup=0.6, decay=0.6)


@pytest.mark.parametrize(("field", "value"), [("rate", 0.0), ("weight_decay", -1.0), ("clip_norm", 0.0)])
def test_bad_optimizers_are_refused(field, value):
    with pytest.raises(ValueError, match=f"AdamW.{field} must be .*got {value}"):
        AdamW(**({"rate": 1e-3} | {field: value}))


def test_five_steps_follow_the_equation_and_spare_the_gains_from_decay():
    matrix, gain = torch.nn.Parameter(torch.ones(2, 1)), torch.nn.Parameter(torch.ones(2))
    module = torch.nn.Module()
    module.matrix, module.gain = matrix, gain
    declared = AdamW(rate=0.1, betas=(0.9, 0.95), epsilon=1e-8, weight_decay=0.5)
    optimizer = declared.build(module)
    expected = {"matrix": 1.0, "gain": 1.0}
    first = second = 0.0
    for step in range(1, 6):
        gradient = 0.3 * step
        for parameter in (matrix, gain):
            parameter.grad = torch.full_like(parameter, gradient)
        optimizer.step()
        first = 0.9 * first + 0.1 * gradient
        second = 0.95 * second + 0.05 * gradient**2
        move = 0.1 * (first / (1 - 0.9**step)) / (math.sqrt(second / (1 - 0.95**step)) + 1e-8)
        expected = {"matrix": expected["matrix"] * (1 - 0.1 * 0.5) - move, "gain": expected["gain"] - move}
    assert matrix[0, 0].item() == pytest.approx(expected["matrix"], rel=1e-5)
    assert gain[0].item() == pytest.approx(expected["gain"], rel=1e-5)


@pytest.mark.parametrize("microbatch", [None, 4])
def test_the_rates_of_a_run_are_the_closed_form_whatever_the_micro_batches(recipe, train, stages, microbatch):
    schedule = Cosine(warmup=0.4, final=0.0)
    stage = stages["pretrain"](5, optimizer=AdamW(rate=0.01, schedule=schedule), microbatch=microbatch)
    rows = (train(recipe(stage)) / "metrics.jsonl").read_text().splitlines()
    rates = [json.loads(row)["rate"] for row in rows]
    # fractions .2 .4 .6 .8 1; cosine over the last .6: (1 + cos(pi x)) / 2 at x = 1/3, 2/3, 1
    assert rates == pytest.approx([0.005, 0.01, 0.0075, 0.0025, 0.0])
