"""Verdicts on sampled completions, rewards, and the placebo."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models import Policy, Tokenizer, Transformer, initialise
from testbeds import stream
from testbeds.latent_modules import LatentModules
from testbeds.streams import lanes
from testbeds.verifiers import Exact
from training import Outcome, Shuffled
from training.reinforce import minibatches
from training.rewards import judge, sampling_flaw
from training.rollouts import roll_out

TASK = LatentModules(world=5, alphabet=4, skills=3, depth=2)
(PROBLEM,) = TASK.generate(stream("rewards"), 1)
PAD, BOS, EOS = 0, 1, 2


@pytest.mark.parametrize(
    ("ids", "finished", "flaw"),
    [
        ([5, EOS], True, None),
        ([EOS], True, None),  # empty text: the verifier's business
        ([5, 6], False, "did not end within 2 tokens"),
        ([5, PAD, EOS], True, "contains a reserved token, which no text can contain"),
        ([BOS, 5, EOS], True, "contains a reserved token, which no text can contain"),
    ],
)
def test_what_is_no_text_is_no_answer(ids, finished, flaw):
    assert sampling_flaw(ids, finished=finished, reserved=frozenset({PAD, BOS}), max_new_tokens=2) == flaw


def test_a_flawed_completion_is_wrong_even_if_its_text_is_right():
    answer = PROBLEM.certificate.states[-1]
    assert judge(Exact(), TASK, PROBLEM, answer, flaw=None).correct
    verdict = judge(Exact(), TASK, PROBLEM, answer, flaw="did not end within 1 tokens")
    assert not verdict.correct
    assert not verdict.well_formed
    assert verdict.reason == "did not end within 1 tokens"


def policy(seed=0):
    tokenizer = Tokenizer.of(TASK.symbols)
    architecture = Transformer(layers=1, width=16, heads=2, context=12, initial_std=0.3)
    decoder = initialise(architecture, tokenizer.size, torch.Generator().manual_seed(seed))
    return Policy(decoder=decoder, tokenizer=tokenizer)


def sample(problems, lanes_PG, **changes):
    declared = {"verifier": Exact(), "max_new_tokens": 5, "temperature": 1.0}
    return roll_out(policy(), TASK, problems, lanes_PG=lanes_PG, **(declared | changes))


def test_an_untrained_policy_is_judged_rollout_by_rollout():
    problems = TASK.generate(stream("judged"), 12)
    rollouts = sample(problems, lanes("judged", rows=12, columns=6))
    assert len(rollouts.verdicts) == len(rollouts.texts) == len(rollouts.row_completions) == 72
    assert rollouts.correct_PG.shape == (12, 6)
    for row, (ids, verdict) in enumerate(zip(rollouts.row_completions, rollouts.verdicts, strict=True)):
        whole = ids[-1] == EOS and not {PAD, BOS} & set(ids)
        expected = whole and TASK.verify(problems[row // 6], rollouts.texts[row]).correct
        assert verdict.correct == expected
    assert any({PAD, BOS} & set(ids) for ids in rollouts.row_completions)  # the case exists


def test_two_equal_prompts_stay_two_groups_with_rollouts_of_their_own():
    rollouts = sample([PROBLEM, PROBLEM], lanes("twins", rows=2, columns=16))
    assert rollouts.correct_PG.shape == (2, 16)
    assert rollouts.row_completions[:16] != rollouts.row_completions[16:]


def test_a_larger_group_keeps_the_rollouts_of_the_smaller_one():
    problems = TASK.generate(stream("nested"), 3)
    small, large = (sample(problems, lanes("nested", rows=3, columns=size)) for size in (4, 8))
    for problem in range(3):
        assert large.texts[problem * 8 : problem * 8 + 4] == small.texts[problem * 4 : problem * 4 + 4]


@given(st.integers(0, 2**31), st.integers(0, 1000))
def test_no_two_rollouts_of_a_batch_share_their_noise(seed, step):
    assert len(np.unique(lanes("rollouts", seed, step, rows=32, columns=8))) == 256


def test_outcome_pays_right_answers_and_zero_is_a_reward():
    correct_PG = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    assert Outcome()(correct_PG, 1, 1).tolist() == [[1, 0], [0, 0]]


def test_shuffled_rewards_are_the_same_rewards_in_a_keyed_order():
    correct_PG = torch.arange(64.0).reshape(8, 8)
    first = Shuffled()(correct_PG, 1, 5)
    assert torch.equal(first, Shuffled()(correct_PG, 1, 5))
    assert not torch.equal(first, Shuffled()(correct_PG, 1, 6))
    assert sorted(first.flatten().tolist()) == list(range(64))
    assert (first == correct_PG).sum() < 8  # a permutation of 64 fixes one on average


@pytest.mark.parametrize(("cuts", "epochs"), [(1, 1), (2, 1), (4, 3)])
def test_minibatches_hold_whole_groups_and_every_row_once_per_epoch(stages, cuts, epochs):
    from training import GRPO

    stage = stages["rl"](method=GRPO, minibatches=cuts, epochs=epochs)
    batches = minibatches(stage, 3, torch.device("cpu"))
    assert len(batches) == cuts * epochs
    for epoch in range(epochs):
        rows = torch.cat(batches[epoch * cuts : (epoch + 1) * cuts])
        assert sorted(rows.tolist()) == list(range(stage.prompts * stage.group))
    for rows in batches:
        groups, counts = torch.unique(rows // stage.group, return_counts=True)
        assert (counts == stage.group).all()
        assert len(groups) == stage.prompts // cuts
