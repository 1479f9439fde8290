"""The verifiers in other trainers' signatures."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import EXPLICIT, Mixture, Suite, demonstration
from testbeds.catalogue import levels
from testbeds.demonstrations import Demonstrated
from testbeds.latent_modules import LatentModules
from testbeds.mixture import component_of
from testbeds.reward import compute_score, problem_of, trl_reward, verdict_on
from testbeds.rows import ground_truth, row_of

TASK = Mixture(tasks=(levels("countdown")["easy"], LatentModules(world=2, depth=2)), weights=(1, 1))
PROBLEMS = Suite(task=TASK).distinct("train", 12)


def row(index):
    _, task, problem = component_of(TASK, PROBLEMS[index])
    found = Demonstrated(problem=problem, style=EXPLICIT, trace=demonstration(task, problem, EXPLICIT))
    return row_of(found, task, index=index, split="train")


ROWS = [row(index) for index in range(len(PROBLEMS))]


def test_a_ground_truth_brings_back_the_task_and_the_problem():
    for problem, row in zip(PROBLEMS, ROWS, strict=True):
        _, component, inner = component_of(TASK, problem)
        task, revived = problem_of(row["ground_truth"])
        assert task == component
        assert (revived.key, revived.prompt, revived.certificate) == (inner.key, inner.prompt, inner.certificate)


@given(text=st.text(), place=st.integers(0, len(ROWS) - 1))
def test_a_score_is_the_verdict_of_the_task_on_any_text(text, place):
    problem, row = PROBLEMS[place], ROWS[place]
    assert verdict_on(text, row["ground_truth"]) == TASK.verify(problem, text)
    assert compute_score(row["data_source"], text, row["ground_truth"], row["extra_info"]) == float(
        TASK.verify(problem, text).correct
    )


def test_trl_gets_one_float_for_each_completion_in_order():
    # The answer of each row to itself is right; to the row after it, as the task says.
    truths = [row["ground_truth"] for row in ROWS]
    own = [row["trace"] for row in ROWS]
    prompts = [row["prompt"] for row in ROWS]
    assert trl_reward(prompts=prompts, completions=own, ground_truth=truths, trainer_state=None) == [1.0] * len(ROWS)
    shifted = own[1:] + own[:1]
    expected = [float(TASK.verify(problem, text).correct) for problem, text in zip(PROBLEMS, shifted, strict=True)]
    assert trl_reward(prompts, shifted, truths) == expected
    assert 0.0 in expected


def test_a_chat_is_judged_by_its_last_turn():
    row = ROWS[0]
    chat = [{"role": "user", "content": "?"}, {"role": "assistant", "content": row["trace"]}]
    assert trl_reward([row["chat"]], [chat], [row["ground_truth"]]) == [1.0]
    assert trl_reward([row["chat"]], [chat[:1]], [row["ground_truth"]]) == [0.0]
    for nothing in ([], [{"role": "assistant"}], [{"role": "assistant", "content": None}]):
        assert trl_reward([row["chat"]], [nothing], [row["ground_truth"]]) == [0.0]


def test_an_unreadable_answer_gets_one_score_and_shifts_no_other():
    # NeMo-RL once added two scores for an answer that it could not read (faults.md A19).
    truths = [row["ground_truth"] for row in ROWS[:5]]
    texts = [row["trace"] for row in ROWS[:5]]
    texts[2] = "I don't know."
    assert trl_reward([""] * 5, texts, truths) == [1.0, 1.0, 0.0, 1.0, 1.0]


def test_a_missing_column_and_foreign_ground_truths_are_errors_that_say_so():
    with pytest.raises(ValueError, match="2 completions came with 1 ground truths"):
        trl_reward(["", ""], ["a", "b"], [ROWS[0]["ground_truth"]])
    for foreign in ("42", "", "{}", "[" * 100_000, json.dumps({"task": 1})):
        with pytest.raises(ValueError, match="is no ground truth of stagecraft"):
            compute_score("x", "y", foreign)


def test_a_ground_truth_can_name_no_class_of_another_package():
    task, problem = TASK.component(PROBLEMS[0])
    truth = json.loads(ground_truth(task, problem))
    truth["task"] = {"class": "subprocess.Popen", "revision": 1, ".args": "true"}
    with pytest.raises(ValueError, match="no declared class"):
        compute_score("x", "y", json.dumps(truth))
