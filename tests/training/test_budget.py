"""Budgets stop at their limit, in their unit, and nowhere else."""

import json

import pytest

from training import Budget
from training.ledger import Ledger, Spent


@pytest.mark.parametrize("limits", [{}, {"steps": 1, "tokens": 1}, {"steps": 1, "flops": 2}])
def test_a_budget_has_exactly_one_limit(limits):
    with pytest.raises(ValueError, match="exactly one limit"):
        Budget(**limits)


@pytest.mark.parametrize("unit", ["steps", "tokens", "flops"])
def test_a_limit_below_one_is_refused(unit):
    with pytest.raises(ValueError, match=f"Budget.{unit} must be a whole number of at least 1, got 0"):
        Budget(**{unit: 0})


def test_flops_count_sampling_and_training_but_not_evaluation():
    ledger = Ledger(training=Spent(flops=5), sampling=Spent(flops=2), evaluation=Spent(flops=100))
    assert Budget(flops=14).spent(ledger) == 7
    assert Budget(flops=14).fraction(ledger) == 0.5
    assert not Budget(flops=8).exhausted(ledger)
    assert Budget(flops=7).exhausted(ledger)


@pytest.mark.parametrize("kind", ["pretrain", "sft", "rl"])
@pytest.mark.parametrize("unit", ["tokens", "flops"])
def test_a_stage_stops_with_the_step_that_reaches_its_limit(recipe, train, stages, kind, unit):
    column = {"tokens": "training_tokens", "flops": "flops"}[unit]
    free = [json.loads(row) for row in (train(recipe(stages[kind](5))) / "metrics.jsonl").read_text().splitlines()]
    limit = free[2][column]  # what three steps cost: same data whatever the budget's unit
    stage = stages[kind](budget=Budget(**{unit: limit}))
    rows = [json.loads(row) for row in (train(recipe(stage)) / "metrics.jsonl").read_text().splitlines()]
    assert [row[column] for row in rows] == [row[column] for row in free[:3]]


def test_the_ledger_counts_every_kind_of_work_apart(recipe, train, stages):
    artifact = train(recipe(stages["pretrain"](2), stages["rl"](3)))
    ledger = Ledger.from_json(json.loads((artifact / "ledger.json").read_text()))
    rows = [json.loads(row) for row in (artifact / "metrics.jsonl").read_text().splitlines()]
    assert ledger.steps == 3
    assert ledger.training.tokens == rows[-1]["training_tokens"] > ledger.sampling.tokens
    assert ledger.sampling.tokens == rows[-1]["sampling_tokens"] > 0
    assert ledger.training.flops + ledger.sampling.flops == rows[-1]["flops"]
    assert ledger.evaluation == Spent()
