"""Probes: exact probabilities of choices and demonstrations, against products, samples and the other exact mass."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch

from models import Policy, Tokenizer, Transformer, initialise
from testbeds import EXPLICIT, IMPLICIT, Choice, Mixture, Problem, Splits, Suite, Trace, Unrealisable, Verdict, stream
from testbeds.latent_modules import LatentModules
from testbeds.streams import lanes
from training import Evaluation, Execution, ProblemSet
from training.evaluation import check_fits, measure, summarise
from training.execution import silent
from training.probes import Probe, choices_of, likelihoods, probe, shared_prompt_logp
from training.run import run_evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """Which dish? ``x`` is right and may be written twice; ``y`` and ``z z`` are wrong. There are two guests."""

    revision: ClassVar[int] = 1
    lists: bool = True

    symbols: ClassVar[tuple[str, ...]] = ("a", "b", "x", "y", "z")
    instructions: ClassVar[str] = "x."
    capacity: ClassVar[int] = 2

    def generate(self, rng, count):
        return [list(self.enumerate())[i] for i in rng.integers(2, size=count)]

    def enumerate(self):
        return [
            Problem(prompt=p, key=p[-1], certificate=None, features={"guests": len(p.split())}) for p in ("a", "a b")
        ]

    def demonstrate(self, problem, style, _rng):
        if style == IMPLICIT and problem.key == "b":
            raise Unrealisable("b likes long answers")
        return Trace.worked((), "x" if style == IMPLICIT else "x x")

    def verify(self, _problem, completion):
        right = "".join(completion.split()) in ("x", "xx")
        return Verdict(correct=right, well_formed=True, progress=float(right), reason="so it is")

    def solutions(self, _problem):
        return ["x", "x x"]

    def floor(self, _problem):
        return 1 / 3

    def choices(self, _problem):
        if not self.lists:
            return ()
        kinds = {"x": ("correct", "meat"), "y": ("meat",), "z z": ()}
        return tuple(Choice(text=text, kinds=of) for text, of in kinds.items())


MENU = Menu()
PROBLEMS = tuple(MENU.enumerate())


@pytest.fixture(scope="module")
def policy():
    """Random weights, wide enough that probabilities differ a lot."""
    tokenizer = Tokenizer.of(MENU.symbols)
    model = Transformer(layers=2, width=16, heads=2, context=12, initial_std=0.7)
    return Policy(decoder=initialise(model, tokenizer.size, torch.Generator().manual_seed(3)), tokenizer=tokenizer)


def by_hand(policy, prompt, text):
    """Product over tokens, each from a forward pass of its own over what stands before it."""
    tokens = policy.tokenizer.encode(prompt)
    product = 1.0
    for token in [*policy.tokenizer.encode(text), policy.tokenizer.eos]:
        with torch.no_grad():
            logits = policy.decoder(torch.tensor([tokens]))[0, -1].double()
        product *= logits.softmax(-1)[token].item()
        tokens.append(token)
    return product


def evaluation(**changes):
    suite = Suite(task=MENU, splits=Splits(fractions=(("test", 1.0),)), seed=1)
    declared = {
        "sets": (ProblemSet(suite=suite, count=2, split="test"),),
        "max_new_tokens": 4,
        "seed": 1,
        "samples": 2,
        "passes": (1,),
        "band": "guests",
    }
    return Evaluation(**(declared | changes))


def test_a_choice_has_the_product_of_its_tokens_probabilities(policy):
    for problem, found in zip(PROBLEMS, probe(policy, MENU, PROBLEMS, max_new_tokens=4), strict=True):
        expected = {choice.text: by_hand(policy, problem.prompt, choice.text) for choice in MENU.choices(problem)}
        assert [math.exp(logp) for logp in found.logp] == pytest.approx(list(expected.values()), rel=1e-5)
        assert found.means["legal_mass"] == pytest.approx(sum(expected.values()), rel=1e-5)
        assert found.means["meat_mass"] == pytest.approx(expected["x"] + expected["y"], rel=1e-5)
        assert found.means["correct_choice_mass"] == pytest.approx(expected["x"], rel=1e-5)
        assert found.rates["correct_share"] == pytest.approx(expected["x"] / sum(expected.values()), rel=1e-5)


def test_a_choice_is_sampled_as_often_as_its_probability_says(policy):
    (found,) = probe(policy, MENU, PROBLEMS[1:], max_new_tokens=4)
    count = 4000
    sampled = policy.sample(
        [policy.tokenizer.encode("a b")] * count,
        lanes=lanes("test", rows=1, columns=count).ravel(),
        max_new_tokens=4,
    )
    drawn = Counter(map(tuple, sampled.rows()))
    for choice, logp in zip(found.choices, found.logp, strict=True):
        p = math.exp(logp)
        # Five standard errors of a frequency over 4000 draws.
        tokens = (*policy.tokenizer.encode(choice.text), policy.tokenizer.eos)
        assert abs(drawn[tokens] / count - p) < 5 * math.sqrt(p * (1 - p) / count) + 1e-4
    assert found.means["legal_mass"] > 0.01


def test_prompts_of_any_lengths_share_their_pass_without_a_change(policy):
    ids = {symbol: policy.tokenizer.encode(symbol)[0] for symbol in MENU.symbols}
    prompts = ["a", "a b", "a b a b a b a b", "b"]
    completions = ["x", "z z", "x y x", "y"]
    rows = [
        ([ids[s] for s in prompt.split()], [*(ids[s] for s in text.split()), policy.tokenizer.eos])
        for prompt in prompts
        for text in completions
    ]
    scored = policy.score([prompt for prompt, _ in rows], [completion for _, completion in rows])
    assert shared_prompt_logp(policy, rows) == pytest.approx(scored.logp_BC.double().sum(1).tolist(), abs=1e-5)
    with pytest.raises(ValueError, match="needs 13 tokens with its prompt; the policy has a context of 12"):
        shared_prompt_logp(policy, [([3] * 9, [4] * 4)])


def test_a_choice_over_the_token_budget_counts_nothing(policy):
    (found,) = probe(policy, MENU, PROBLEMS[:1], max_new_tokens=2)  # "z z" and its end are three tokens
    assert found.logp[2] == -math.inf
    assert found.means["legal_mass"] == pytest.approx(found.means["meat_mass"])
    assert found.rows[-1] == ("z z", 0.0, False)
    (nothing,) = probe(policy, MENU, PROBLEMS[:1], max_new_tokens=1)
    assert (nothing.rates, nothing.means["legal_mass"]) == ({}, 0.0)
    assert "correct_rank" not in nothing.means


def probed(*logp, correct=(0,)):
    choices = tuple(Choice(text=str(i), kinds=("correct",) if i in correct else ()) for i in range(len(logp)))
    return Probe(choices=choices, logp=logp)


def test_rank_and_top_look_at_the_likeliest_correct_choice():
    # Probabilities .1 .4 .2 .05: of the correct ones (.1, .2) the likeliest is second.
    found = probed(*map(math.log, (0.1, 0.4, 0.2, 0.05)), correct=(0, 2))
    assert found.means["correct_rank"] == 2
    assert found.rates["correct_top"] == 0
    assert found.rates["correct_share"] == pytest.approx(0.3 / 0.75)
    assert found.floor == 0.5
    assert [row[0] for row in found.rows] == ["1", "2", "0", "3"]


def test_equally_likely_choices_share_the_top():
    # One of four that are alike: a policy that knows nothing is at the floor, not at 1.
    found = probed(*[math.log(0.1)] * 4)
    assert found.rates["correct_top"] == pytest.approx(found.floor) == 0.25
    assert found.means["correct_rank"] == 1


def test_shares_outlive_probabilities_that_no_float_holds():
    found = probed(-2000.0, -2001.0)
    assert found.means["legal_mass"] == 0
    assert found.rates["correct_share"] == pytest.approx(1 / (1 + math.exp(-1)))


def test_without_a_correct_choice_there_is_nothing_to_rank():
    found = probed(-1.0, -2.0, correct=())
    assert set(found.means) == {"legal_mass"}
    assert found.rates == {}


def test_two_choices_with_one_text_are_refused(policy):
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Twice(Menu):
        def choices(self, _problem):
            return (Choice(text="z z", kinds=()), Choice(text="zz", kinds=()))

    with pytest.raises(ValueError, match="not all different token sequences: z z, zz"):
        probe(policy, Twice(), PROBLEMS, max_new_tokens=4)


def test_an_evaluation_reports_probes_by_band_and_in_its_rows(policy):
    measured = measure(policy, MENU, PROBLEMS, evaluation())
    summary = summarise(measured, evaluation())
    found = probe(policy, MENU, PROBLEMS, max_new_tokens=4)
    assert summary["metrics"]["legal_mass"] == pytest.approx(sum(each.means["legal_mass"] for each in found) / 2)
    assert summary["bands"]["guests=2"]["correct_share"] == pytest.approx(found[1].rates["correct_share"], rel=1e-5)
    metrics = summary["metrics"]
    assert metrics["correct_share_floor"] == pytest.approx(1 / 3)
    assert metrics["correct_share_corrected"] == pytest.approx((metrics["correct_share"] - 1 / 3) / (2 / 3))
    # Every way to write a correct answer is more than the one way that is a choice.
    assert metrics["correct_mass"] > metrics["correct_choice_mass"] > 0
    texts, probabilities, correct = zip(*measured[0].row["choices"], strict=True)
    assert sorted(texts) == ["x", "y", "z z"]
    assert list(probabilities) == sorted(probabilities, reverse=True)
    assert correct[texts.index("x")]


def test_a_task_without_choices_has_none(policy):
    (one, _) = measure(policy, Menu(lists=False), PROBLEMS, evaluation())
    assert "choices" not in one.row
    assert "legal_mass" not in one.means


def test_a_mixture_probes_the_components_that_list_choices(policy):
    mixture = Mixture(tasks=(MENU, Menu(lists=False)), weights=(1.0, 1.0), names=("menu", "silent"))
    problems = mixture.generate(stream("test", "mixture"), 12)
    assert {len(choices_of(mixture, problem)) for problem in problems} == {0, 3}
    summary = summarise(measured := measure(policy, mixture, problems, evaluation()), evaluation())
    listed = sum("choices" in one.row for one in measured)
    assert summary["metrics"]["legal_mass_problems"] == listed
    assert "correct_share" in summary["bands"]["task=menu"]
    assert {one.row["component"] for one in measured} == {"menu", "silent"}


def test_texts_of_a_mixture_are_kept_apart_in_its_choices():
    # "12" of one lexicon would swallow "1" "2" of the other, so the mixture spaces what it writes.
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Digits(Menu):
        symbols: ClassVar[tuple[str, ...]] = ("1", "2")

        def choices(self, _problem):
            return (Choice(text="12", kinds=("correct",)),)

        def enumerate(self):
            return [Problem(prompt="1", key="one", certificate=None)]

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Dozens(Digits):
        symbols: ClassVar[tuple[str, ...]] = ("12",)

        def enumerate(self):
            return [Problem(prompt="12", key="dozen", certificate=None)]

    mixture = Mixture(tasks=(Digits(), Dozens()), weights=(1.0, 1.0), names=("digits", "dozens"))
    one, dozen = mixture.enumerate()
    assert choices_of(mixture, one)[0].text == "1 2"
    assert choices_of(mixture, dozen)[0].text == "12"


# ---- demonstrations


def test_the_loss_is_over_the_tokens_of_all_problems(policy):
    declared = evaluation(styles=(EXPLICIT, IMPLICIT))
    measured = measure(policy, MENU, PROBLEMS, declared)
    metrics = summarise(measured, declared)["metrics"]
    # "x x" and its end are three tokens for each of two problems.
    nats = -sum(math.log(by_hand(policy, problem.prompt, "x x")) for problem in PROBLEMS)
    assert metrics["explicit_nats_per_token"] == pytest.approx(nats / 6, rel=1e-5)
    assert metrics["explicit_demonstration_mass"] == pytest.approx(
        sum(by_hand(policy, problem.prompt, "x x") for problem in PROBLEMS) / 2, rel=1e-5
    )
    # Only the problem "a" has an implicit demonstration: "x" and its end.
    assert metrics["implicit_nats_per_token_problems"] == 1
    assert metrics["implicit_nats_per_token"] == pytest.approx(-math.log(by_hand(policy, "a", "x")) / 2, rel=1e-5)


def test_the_token_budget_cuts_the_mass_and_not_the_loss(policy):
    (long, none) = likelihoods(policy, PROBLEMS, ["x x x", None], max_new_tokens=3)
    assert none is None
    assert (long.mass, long.tokens) == (0.0, 4)
    assert long.nats == pytest.approx(-math.log(by_hand(policy, "a", "x x x")), rel=1e-5)


def test_a_long_text_weighs_more_than_a_short_one(policy):
    declared = evaluation(styles=(EXPLICIT,))
    measured = [
        replace(one, totals={"explicit_nats_per_token": total})
        for one, total in zip(measure(policy, MENU, PROBLEMS, declared), ((10.0, 2), (2.0, 4)), strict=True)
    ]
    # 12 nats over 6 tokens, and not the mean of 5 and 0.5.
    assert summarise(measured, declared)["metrics"]["explicit_nats_per_token"] == pytest.approx(2.0)


def test_a_demonstration_that_the_context_cannot_hold_is_refused_before_anything_is_sampled(policy):
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Wordy(Menu):
        def demonstrate(self, _problem, _style, _rng):
            return Trace.worked((), "x " * 12)

    declared = evaluation(styles=(EXPLICIT,))
    message = "the demonstration of 'a' in the style 'explicit' needs a context of 14 tokens, and the policy has 12"
    with pytest.raises(ValueError, match=message):
        check_fits(declared, policy, [(Wordy(), PROBLEMS)])
    check_fits(replace(declared, styles=()), policy, [(Wordy(), PROBLEMS)])


def test_a_whole_evaluation_writes_choices_and_loss_to_its_files(recipe, train, stages, tmp_path):
    free = LatentModules(world=5, alphabet=4, skills=3, depth=2)
    suite = Suite(task=free, splits=Splits(fractions=(("train", 0.7), ("test", 0.3))), seed=3)
    declared = evaluation(sets=(ProblemSet(suite=suite, count=3),), band=None, styles=(EXPLICIT,), max_new_tokens=5)
    run_evaluation(
        declared,
        policy=train(recipe(stages["pretrain"](2))),
        workspace=tmp_path,
        execution=Execution(device="cpu"),
        report=silent,
    )
    metrics = json.loads((tmp_path / "artifact" / "results.json").read_text())["metrics"]
    # An untrained policy is near the uniform one over its vocabulary of some ten tokens.
    assert 1.0 < metrics["explicit_nats_per_token"] < 4.0
