"""Evaluation: exact masses against enumeration, floors beside every rate, the same problems for every policy."""

import itertools
import json
from dataclasses import replace

import pytest

from models import Policy
from testbeds import EXPLICIT, IMPLICIT, Splits, Suite
from testbeds.latent_modules import LatentModules
from training import Evaluation, Execution, ProblemSet, evaluation_id
from training.audit import keys_of, overlap
from training.evaluation import measure
from training.execution import silent
from training.run import run_evaluation

DIRECT = LatentModules(world=5, alphabet=4, skills=3, depth=2, working="none")
SUITE = Suite(task=DIRECT, splits=Splits(fractions=(("train", 0.7), ("test", 0.3))), seed=3)


def evaluation(**changes):
    declared = {
        "sets": (ProblemSet(suite=SUITE, count=6),),
        "max_new_tokens": 4,
        "seed": 1,
        "samples": 8,
        "passes": (1, 4),
        "band": "depth",
        "styles": (IMPLICIT,),
    }
    return Evaluation(**(declared | changes))


@pytest.fixture
def measured(recipe, train, stages, tmp_path):
    artifact = train(recipe(stages["pretrain"](30)))

    def run(declared):
        workspace = tmp_path / evaluation_id(declared, "policy")
        workspace.mkdir()
        run_evaluation(declared, policy=artifact, workspace=workspace, execution=Execution(device="cpu"), report=silent)
        return workspace / "artifact", artifact

    return run


def test_the_mass_on_correct_answers_is_that_of_all_accepted_strings(measured):
    where, artifact = measured(evaluation())
    results = json.loads((where / "results.json").read_text())["metrics"]
    policy = Policy.load(artifact)
    masses = []
    for problem in SUITE.distinct("test", 6):
        # Every string of up to 2 symbols that the verifier accepts, found without asking the task for its solutions.
        accepted = [
            text
            for length in (1, 2)
            for text in map(" ".join, itertools.product(DIRECT.symbols, repeat=length))
            if DIRECT.verify(problem, text).correct
        ]
        prompt = policy.tokenizer.encode(problem.prompt)
        completions = [[*policy.tokenizer.encode(text), policy.tokenizer.eos] for text in accepted]
        scores = policy.score([prompt] * len(accepted), completions)
        masses.append(scores.logp_BC.sum(1).exp().sum().item())
    assert results["correct_mass"] == pytest.approx(sum(masses) / 6, rel=1e-5)
    assert results["implicit_demonstration_mass"] == pytest.approx(results["correct_mass"], rel=1e-5)


def test_sampled_accuracy_agrees_with_the_exact_mass(measured):
    where, _ = measured(evaluation(samples=400, passes=(1,)))
    results = json.loads((where / "results.json").read_text())["metrics"]
    # 6 problems x 400 samples: standard error at most sqrt(.25 / 2400) = .0102
    assert abs(results["accuracy"] - results["correct_mass"]) < 0.041
    assert results["pass@1"] == pytest.approx(results["accuracy"])


def test_every_rate_has_its_floor_and_corrected_form(measured):
    where, _ = measured(evaluation())
    results = json.loads((where / "results.json").read_text())
    for metrics in (results["metrics"], *results["bands"].values()):
        for name in ("accuracy", "greedy_accuracy", "pass@4", "correct_mass"):
            floor = metrics[f"{name}_floor"]
            assert metrics[f"{name}_corrected"] == pytest.approx((metrics[name] - floor) / (1 - floor))
        assert metrics["accuracy_floor"] == pytest.approx(1 / 4)  # four symbols, all answers equally likely
        assert metrics["pass@4_floor"] == pytest.approx(1 - 0.75**4)
    assert results["bands"]["depth=2"]["problems"] == 6


def test_where_answers_cannot_be_listed_no_mass_is_claimed(measured):
    free = replace(SUITE, task=replace(DIRECT, working="free"))
    where, _ = measured(evaluation(sets=(ProblemSet(suite=free, count=4),)))
    assert "correct_mass" not in json.loads((where / "results.json").read_text())["metrics"]


def test_an_evaluation_is_the_same_twice_and_another_seed_samples_anew(measured):
    (first, _), (second, _) = measured(evaluation()), measured(evaluation(most_answers=1999))
    (third, _) = measured(evaluation(seed=2))
    texts = [
        [
            [c["text"] for c in json.loads(line)["completions"]]
            for line in (where / "rollouts.jsonl").read_text().splitlines()
        ]
        for where in (first, second, third)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_completion_that_never_ended_is_wrong(measured):
    where, _ = measured(evaluation(max_new_tokens=1))
    rows = [json.loads(line) for line in (where / "rollouts.jsonl").read_text().splitlines()]
    for completion in itertools.chain.from_iterable(row["completions"] for row in rows):
        if completion["truncated"]:
            assert not completion["correct"]
            assert completion["reason"] == "did not end within 1 tokens"
    assert any(completion["truncated"] for row in rows for completion in row["completions"])


def test_all_problems_of_a_split_can_be_asked_for(measured):
    where, _ = measured(evaluation(sets=(ProblemSet(suite=SUITE, count=None),), samples=2, passes=(2,)))
    rows = [json.loads(line) for line in (where / "rollouts.jsonl").read_text().splitlines()]
    assert len(rows) == SUITE.capacity("test")
    assert len({row["key"] for row in rows}) == len(rows)


def test_the_audit_counts_shared_problems_exactly(measured):
    test, policy = measured(evaluation())
    assert overlap(test, policy) == 0
    train_problems = evaluation(sets=(ProblemSet(suite=SUITE, count=9, split="train"),), seen=True)
    seen, _ = measured(train_problems)
    assert keys_of(seen).size == 9
    # the policy was pretrained on free-working problems of the same world, whose keys are the same
    assert overlap(seen, policy) == 9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sets": ()}, "at least one ProblemSet"),
        ({"samples": 0}, "at least 1, got 0"),
        ({"temperature": 0.0}, "temperature must be positive, got 0.0"),
        ({"passes": (9,)}, "9, which must be between 1 and samples=8"),
    ],
)
def test_impossible_evaluations_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        evaluation(**changes)


def test_the_identity_of_an_evaluation_depends_on_policy_and_declaration():
    ids = {
        evaluation_id(evaluation(), "a"),
        evaluation_id(evaluation(), "b"),
        evaluation_id(evaluation(seed=2), "a"),
        evaluation_id(evaluation(styles=(EXPLICIT,)), "a"),
    }
    assert len(ids) == 4
    assert evaluation_id(evaluation(), "a") in ids


def test_a_band_that_is_no_feature_is_refused_before_anything_is_sampled(measured):
    with pytest.raises(ValueError, match=r"band='dept' is not a feature of .*, which has \['depth', "):
        measured(evaluation(band="dept"))


def test_a_budget_that_the_context_cannot_hold_is_refused(measured):
    with pytest.raises(ValueError, match="need a context of 54 tokens, and the policy has 12"):
        measured(evaluation(max_new_tokens=50))


def test_answers_over_the_token_budget_have_no_mass(measured):
    where, _ = measured(evaluation(max_new_tokens=1))  # one symbol and the end take two tokens
    results = json.loads((where / "results.json").read_text())["metrics"]
    assert results["correct_mass"] == results["accuracy"] == 0


def test_more_samples_begin_with_the_fewer(measured):
    texts = []
    for samples in (4, 8):
        where, _ = measured(evaluation(samples=samples, passes=(1,), sets=(ProblemSet(suite=SUITE, count=8),)))
        rows = [json.loads(line) for line in (where / "rollouts.jsonl").read_text().splitlines()]
        texts.append([[completion["text"] for completion in row["completions"][:4]] for row in rows])
    assert texts[0] == texts[1]


def test_the_ledger_of_an_evaluation_counts_greedy_and_random_samples(measured):
    where, artifact = measured(evaluation())
    spent = json.loads((where / "ledger.json").read_text())["evaluation"]
    rows = [json.loads(line) for line in (where / "rollouts.jsonl").read_text().splitlines()]
    policy = Policy.load(artifact)
    sampled = sum(
        len(policy.tokenizer.encode(completion["text"])) + (not completion["truncated"])
        for row in rows
        for completion in [*row["completions"], row["greedy"] | {"truncated": False}]
    )
    assert spent["tokens"] == pytest.approx(sampled, abs=len(rows) + 5)  # reserved tokens leave no text
    assert spent["flops"] > 0


def test_two_composed_styles_are_measured_apart(measured):
    from testbeds import TraceStyle

    free = replace(SUITE, task=replace(DIRECT, working="free", depth=4))
    styles = tuple(TraceStyle(granularity="composed", group=group) for group in (2, 3))
    where, _ = measured(evaluation(sets=(ProblemSet(suite=free, count=4),), styles=styles))
    results = json.loads((where / "results.json").read_text())["metrics"]
    assert {"composed2_demonstration_mass", "composed3_demonstration_mass"} <= set(results)
    with pytest.raises(ValueError, match="holds a style twice"):
        evaluation(styles=(IMPLICIT, IMPLICIT))


def test_problems_measured_in_parts_have_the_noise_of_the_whole(measured):
    _, artifact = measured(evaluation())
    policy, problems, declared = Policy.load(artifact), SUITE.distinct("test", 6), evaluation()
    whole = measure(policy, DIRECT, problems, declared)
    parts = [
        one for start in (0, 3) for one in measure(policy, DIRECT, problems[start : start + 3], declared, start=start)
    ]
    texts = [[[c["text"] for c in one.row["completions"]] for one in measurements] for measurements in (whole, parts)]
    assert texts[0] == texts[1]
