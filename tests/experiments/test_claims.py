"""Declarations refuse what cannot be judged, claims are fixed before the first run, and judgement follows its rules."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from experiments import Check, Claim, Effect, Measure, Reading, Scale, difference, interaction, level
from experiments.claims import register, registration
from experiments.effects import Correlation, slope
from experiments.judgement import judge
from experiments.registry import Run
from experiments.shifts import CATEGORIES, Shift, in_band, shares, shift, shifts
from experiments.store import StoreError
from testbeds.identity import canonical, fingerprint
from training.budget import Budget
from training.recipe import stage_id

pytestmark = pytest.mark.usefixtures("quick_holm")

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 3, 12, tzinfo=UTC)
SEEDS = (1, 2, 3)


def of(arm, stage=-1):
    return Measure(arm=arm, evaluation="test", stage=stage)


def claimed(low=None, high=None, effect=None, name="claim"):
    return Claim(name=name, statement="So it is.", effect=effect or level(of("a")), low=low, high=high)


def reading(**values):
    """A read function from values per arm, one per seed; None is missing."""
    return lambda measure, seed: values[measure.arm][SEEDS.index(seed)]


# ---- effects and declarations


def test_an_interaction_is_the_difference_of_two_differences():
    # (0.9 - 0.4) - (0.3 - 0.1) = 0.3
    values = {"a": 0.9, "b": 0.4, "c": 0.3, "d": 0.1}
    effect = interaction(of("a"), of("b"), of("c"), of("d"))
    assert effect.value(lambda measure: values[measure.arm]) == pytest.approx(0.3)
    assert str(difference(of("a"), of("b", stage=0))) == "accuracy of a (test) - accuracy of b (test, stage 0)"


def test_a_whole_weight_and_its_float_are_the_same_effect():
    assert fingerprint(Effect(terms=((1, of("a")),))) == fingerprint(Effect(terms=((1.0, of("a")),)))


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [(None, None, "no end"), (0.2, 0.2, "low < high"), (0.3, 0.2, "low < high"), (float("nan"), None, "finite")],
)
def test_a_band_that_nothing_can_contradict_is_refused(low, high, message):
    with pytest.raises(ValueError, match=message):
        claimed(low, high)
    with pytest.raises(ValueError, match=message):
        Check(name="check", statement="So it is.", measure=of("a"), low=low, high=high)


@pytest.mark.parametrize("terms", [(), ((0.0, of("a")),), ((float("inf"), of("a")),)])
def test_an_effect_without_weight_is_refused(terms):
    with pytest.raises(ValueError, match=r"Effect\.terms|weight"):
        Effect(terms=terms)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": (1, 1)}, "1 more than once"),
        ({"seeds": (1, 2)}, r"asks for 3 seeds.*declares 2"),
        ({"claims": ()}, r"Experiment\.claims"),
        ({"claims": (claimed(low=0.0), claimed(low=0.5))}, "'claim' more than once"),
        ({"scales": (Scale(name="demo", seeds=1), Scale(name="demo", seeds=2))}, "'demo' more than once"),
        ({"question": " "}, r"Experiment\.question"),
        ({"name": "../e01"}, "becomes a folder"),
    ],
)
def test_an_experiment_that_cannot_be_planned_is_refused(fake, change, message):
    with pytest.raises(ValueError, match=message):
        fake.experiment(**change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"descriptions": (("RL", "alone"),)}, "describes the arms"),
        ({"primary": Reading(evaluation="nowhere")}, r"Experiment\.primary.*'nowhere'.*\['memory', 'test'\]"),
        ({"claims": (claimed(low=0.0),)}, r"claim 'claim'.*arm 'a'"),
        ({"claims": (claimed(low=0.0, effect=level(of("RL", stage=2))),)}, r"stage 2, but the arm has 2"),
        ({"checks": (Check(name="c", statement="s", measure=of("a"), low=0.0),)}, r"check 'c'.*arm 'a'"),
    ],
)
def test_validation_names_the_place_and_what_exists(fake, change, message):
    with pytest.raises(ValueError, match=message):
        fake.experiment(**change).validate(fake.SCALE)


def test_a_sound_experiment_is_valid_at_every_scale(fake):
    study = fake.experiment()
    for scale in study.scales:
        study.validate(scale)
    assert study.seeds_of(study.scale("demo")) == (11, 12, 13)
    assert study.scale().name == "smoke"
    with pytest.raises(ValueError, match="did you mean 'demo'"):
        study.scale("dem")


# ---- slopes and correlations


def test_a_slope_is_the_least_squares_slope():
    # x 0 1 2 about their mean 1, y 1 2 4: (-1 x 1 + 1 x 4) / (1 + 1) = 1.5; the middle has no weight.
    effect = slope([(0, of("a")), (1, of("b")), (2, of("c"))])
    assert effect.value(lambda measure: {"a": 1.0, "b": 2.0, "c": 4.0}[measure.arm]) == pytest.approx(1.5)
    assert str(effect) == "- 0.5 x accuracy of a (test) + 0.5 x accuracy of c (test)"
    # x 1 2 6 about their mean 3 with spread 4 + 1 + 9: (-2 a - b + 3 c) / 14.
    uneven = slope([(1, of("a")), (2, of("b")), (6, of("c"))])
    assert dict((measure.arm, weight) for weight, measure in uneven.terms) == pytest.approx(
        {"a": -2 / 14, "b": -1 / 14, "c": 3 / 14}
    )


def test_a_slope_of_slopes_is_a_slope():
    # Gains per tenfold of RL: .2 after little pretraining, .5 after a hundred times as much: .15 per tenfold.
    few = slope([(1, of("few", stage=0)), (2, of("few", stage=1))])
    many = slope([(1, of("many", stage=0)), (2, of("many", stage=1))])
    effect = slope([(6, few), (8, many)])
    values = {("few", 0): 0.1, ("few", 1): 0.3, ("many", 0): 0.2, ("many", 1): 0.7}
    assert effect.value(lambda measure: values[measure.arm, measure.stage]) == pytest.approx(0.15)
    assert isinstance(effect, Effect)


def test_a_measure_that_several_points_share_stands_once_in_a_slope():
    # Gains over one base: (-1 (a - base) + 1 (b - base)) / 2, in which the base cancels.
    effect = slope([(0, difference(of("a"), of("base"))), (2, difference(of("b"), of("base")))])
    assert effect == Effect(terms=((-0.5, of("a")), (0.5, of("b"))))


def test_a_slope_has_the_same_fingerprint_whatever_the_last_bit_of_its_x():
    points = [(6.0, of("a")), (7.1, of("b")), (8.3, of("c"))]
    shifted = [(x * (1 + 2**-52), measure) for x, measure in points]
    assert fingerprint(slope(points)) == fingerprint(slope(shifted))


@pytest.mark.parametrize("xs", [(1, 1), (2,), (1, float("nan"))])
def test_a_slope_needs_two_different_numbers(xs):
    with pytest.raises(ValueError, match="at least two different finite x"):
        slope([(x, of("a", stage=i)) for i, x in enumerate(xs)])


def test_a_slope_of_one_measure_is_refused():
    with pytest.raises(ValueError, match="cancel out"):
        slope([(-1, of("a")), (0, of("b")), (1, of("a"))])


def correlation(*arms):
    """Accuracy after stage 0 against that at the end, over arms."""
    return Correlation(pairs=tuple((of(arm, stage=0), of(arm)) for arm in arms))


@pytest.mark.parametrize(
    ("xs", "ys", "expected"),
    [
        # 1 - 6 (0 + 1 + 1 + 0) / (4 x 15).
        ((1.0, 2.0, 30.0, 31.0), (0.1, 0.3, 0.2, 0.4), 0.8),
        ((1.0, 2.0, 3.0, 4.0), (8.0, 4.0, 2.0, 1.0), -1.0),
        # Ranks 1.5 1.5 3 and 1 2 3: covariance 1.5, variances 1.5 and 2.
        ((1.0, 1.0, 2.0), (1.0, 2.0, 3.0), 1.5 / 3**0.5),
        # 0.1 + 0.2 and 0.3 are a tie, whatever floats say.
        ((0.1 + 0.2, 0.3, 2.0), (1.0, 2.0, 3.0), 1.5 / 3**0.5),
    ],
)
def test_a_correlation_is_that_of_ranks_within_a_seed(xs, ys, expected):
    arms = [f"arm {i}" for i in range(len(xs))]
    values = {(arm, 0): x for arm, x in zip(arms, xs, strict=True)}
    values |= {(arm, -1): y for arm, y in zip(arms, ys, strict=True)}
    effect = correlation(*arms)
    assert effect.value(lambda measure: values[measure.arm, measure.stage]) == pytest.approx(expected)


def test_a_correlation_may_be_of_gains():
    gain = tuple((of(arm, stage=0), difference(of(arm), of(arm, stage=0))) for arm in "abc")
    effect = Correlation(pairs=gain)
    assert effect.measures == (of("a", stage=0), of("a"), of("b", stage=0), of("b"), of("c", stage=0), of("c"))
    # Gains .5 .3 .1 over starts .1 .2 .3.
    values = {("a", 0): 0.1, ("a", -1): 0.6, ("b", 0): 0.2, ("b", -1): 0.5, ("c", 0): 0.3, ("c", -1): 0.4}
    assert effect.value(lambda measure: values[measure.arm, measure.stage]) == pytest.approx(-1.0)
    assert str(effect).startswith(
        "rank correlation of (x, y) over (accuracy of a (test, stage 0), accuracy of a (test)"
    )


def test_correlations_are_judged_over_seeds():
    # Per seed: y in the order of x, but for two neighbours in the second seed (.8); x is the same in all seeds.
    starts = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}
    ends = {
        1: {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0},
        2: {"a": 1.0, "b": 3.0, "c": 2.0, "d": 4.0},
        3: {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0},
    }
    claim = claimed(0.2, effect=correlation(*"abcd"))
    read = lambda measure, seed: starts[measure.arm] if measure.stage == 0 else ends[seed][measure.arm]  # noqa: E731
    (finding,) = judge([claim], [], SEEDS, read).findings
    assert [value for _, value in finding.per_seed] == pytest.approx([1.0, 0.8, 1.0])
    assert finding.outcome == "supported"


def test_a_correlation_with_a_constant_is_not_judged_and_says_why():
    starts = {1: (0.1, 0.2, 0.3), 2: (0.5, 0.5, 0.5), 3: (0.1, 0.2, 0.3)}
    claim = claimed(0.2, effect=correlation(*"abc"))
    read = lambda measure, seed: starts[seed]["abc".index(measure.arm)] if measure.stage == 0 else ord(measure.arm)  # noqa: E731
    (finding,) = judge([claim], [], SEEDS, read).findings
    assert finding.outcome == "inconclusive"
    assert finding.reason == ("Not judged: the effect has no value in seed 2: all 3 x of the correlation are 0.5.")
    assert finding.missing == ()
    assert [seed for seed, _ in finding.per_seed] == [1, 3]
    assert finding.p_inside is None


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_measure_that_is_no_number_leaves_its_claim_open_and_the_others_judged(broken):
    # As of a policy whose training diverged in the second seed.
    read = reading(a=[0.1, broken, 0.3], b=[0.5, 0.51, 0.52])
    bad, correlated, good = judge(
        [
            claimed(0.2),
            claimed(0.2, effect=Correlation(pairs=tuple((of(a), of(b)) for a, b in ("ab", "ba", "aa"))), name="rank"),
            claimed(0.2, effect=level(of("b")), name="good"),
        ],
        [],
        SEEDS,
        read,
    ).findings
    assert bad.outcome == correlated.outcome == "inconclusive"
    assert bad.reason == f"Not judged: the effect has no value in seed 2: accuracy of a (test) is {broken}."
    assert correlated.undefined[0][0] == 2
    assert good.outcome == "supported"


def test_a_claim_without_a_value_stays_in_the_family_of_holm():
    read = reading(a=[0.5, 0.5, 0.5], b=[0.5, 0.51, 0.52])
    alone = judge([claimed(0.2, effect=level(of("b")))], [], SEEDS, read).findings[0]
    constant = claimed(0.2, effect=Correlation(pairs=tuple((of(a), of("b", s)) for s, a in enumerate("aaa"))), name="c")
    _, beside = judge([constant, claimed(0.2, effect=level(of("b")))], [], SEEDS, read).findings
    assert beside.raw_p_inside == alone.raw_p_inside == alone.p_inside
    assert beside.p_inside == pytest.approx(2 * alone.p_inside)


def test_a_correlation_with_too_few_pairs_or_one_twice_is_refused():
    with pytest.raises(ValueError, match="at least 3 .* got 2"):
        correlation("a", "b")
    with pytest.raises(ValueError, match="a pair twice"):
        correlation("a", "b", "b")


def test_claims_keep_the_identity_that_they_were_registered_with():
    # What a registration holds of a claim: its classes, revisions and fields.
    entries = canonical(claimed(0.2))
    assert (entries["class"], entries["revision"]) == ("experiments.claims.Claim", 1)
    effect = entries[".effect"]
    assert (effect["class"], effect["revision"], set(effect)) == (
        "experiments.claims.Effect",
        1,
        {"class", "revision", ".terms"},
    )
    ((_, measure),) = effect[".terms"]
    assert set(measure) == {"class", "revision", ".arm", ".evaluation", ".metric", ".band", ".stage"}


# ---- shifts


def asked(correct, *wrong):
    """One correct choice and wrong ones with their probabilities, the likeliest first."""
    choices = [("right", correct, True), *((f"wrong {i}", each, False) for i, each in enumerate(wrong))]
    return sorted(choices, key=lambda choice: -choice[1])


@pytest.mark.parametrize(
    ("before", "after", "category"),
    [
        ((0.5, 0.4), (0.6, 0.3), "amplified"),
        ((0.05, 0.04), (0.4, 0.2), "amplified"),  # shares .56 and .67: what all choices have together does not count
        ((0.5, 0.4), (0.5, 0.4), "faded"),
        ((0.5, 0.4), (0.2, 0.19), "faded"),  # .56 and .51
        ((0.5, 0.4), (0.4, 0.5), "regressed"),
        ((0.4, 0.5), (0.6, 0.3), "corrected"),
        ((0.05, 0.95), (0.6, 0.3), "corrected"),  # a share of just .05 is visible
        ((0.049, 0.951), (0.6, 0.3), "discovered"),
        ((0.3, 0.6), (0.2, 0.7), "wrong_amplified"),
        ((0.3, 0.6), (0.3, 0.6), "unmoved"),
        ((0.3, 0.6), (0.4, 0.5), "unmoved"),
        ((0.3, 0.6, 0.0), (0.1, 0.2, 0.7), "unmoved"),  # another wrong one
        ((0.0, 0.0), (0.6, 0.3), None),
    ],
)
def test_a_problem_shifts_by_its_likeliest_choice(before, after, category):
    assert shift(asked(*before), asked(*after)) == category


def test_correct_choices_count_together():
    # The likeliest correct one fell from .4 to .35, all correct ones rose from .4 to .6.
    before = [("a", 0.4, True), ("w", 0.3, False), ("b", 0.0, True), ("v", 0.3, False)]
    after = [("a", 0.35, True), ("b", 0.25, True), ("w", 0.2, False), ("v", 0.2, False)]
    assert shift(before, after) == "amplified"
    for right in (False, True):  # nothing is correct, or everything
        assert shift([("w", 0.6, right), ("v", 0.1, right)], [("w", 0.7, right), ("v", 0.1, right)]) is None
    # One of the policies gives no choice any probability, or diverged.
    for nothing in (0.0, math.nan):
        assert shift(asked(nothing, nothing), asked(0.6, 0.4)) is None
        assert shift(asked(0.6, 0.4), asked(nothing, nothing)) is None
    with pytest.raises(ValueError, match=r"the same choices, got \['right', 'wrong 0'\] and \['w'\]"):
        shift(asked(0.5, 0.5), [("w", 1.0, False)])


def test_shifts_are_read_problem_by_problem_and_shared_by_band(tmp_path):
    rows = {
        "before": [
            ("p", {"depth": 2}, "x", asked(0.5, 0.4)),
            ("q", {"depth": 3}, "y", asked(0.4, 0.5)),
            ("r", {"depth": 2}, "y", None),
        ],
        "after": [
            ("p", {"depth": 2}, "x", asked(0.6, 0.4)),
            ("q", {"depth": 3}, "y", asked(0.6, 0.4)),
            ("r", {"depth": 2}, "y", None),
        ],
    }
    for name, lines in rows.items():
        (tmp_path / name).mkdir()
        with (tmp_path / name / "rollouts.jsonl").open("w") as file:
            for key, features, component, choices in lines:
                row = {"key": key, "features": features, "component": component}
                file.write(json.dumps(row | ({} if choices is None else {"choices": choices})) + "\n")
    found = shifts(tmp_path / "before", tmp_path / "after")
    assert [each.category for each in found] == ["amplified", "corrected"]
    assert shares(found)[1] == dict.fromkeys(CATEGORIES, 0) | {"amplified": 0.5, "corrected": 0.5}
    assert shares(found, "depth=2")[1]["amplified"] == shares(found, "task=y")[1]["corrected"] == 1
    assert shares(found, "depth=9") == (0, {})


def test_a_band_is_a_feature_or_a_component():
    assert in_band({"depth": 5}, "", "all")
    assert in_band({"depth": 5.0}, "", "depth=5")
    assert not in_band({"depth": 5}, "", "depth=6")
    assert in_band({}, "easy", "task=easy")
    assert not in_band({"task": 1}, "easy", "task=1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "accuracy"}, "must be one of amplified, faded"),
        ({"metric": "faded", "stage": -2}, "since and stage are both -2"),
    ],
)
def test_a_shift_that_is_none_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Shift(**({"arm": "a", "evaluation": "test"} | change))


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ({"since": 3, "stage": 2}, "after stage 3, but the arm has 3"),
        ({"since": -1, "stage": 1}, "from stage -1 to stage 1 of 3; Shift.since must come before"),
        ({"since": 2, "stage": -1}, "from stage 2 to stage -1 of 3; Shift.since must come before"),
    ],
)
def test_a_shift_between_stages_that_are_not_in_order_is_refused(fake, stages, message):
    moved = Shift(arm="SFT-8", evaluation="test", metric="amplified", **stages)
    study = fake.experiment(claims=(claimed(0.1, effect=level(moved)),))
    with pytest.raises(ValueError, match=message):
        study.validate(fake.SCALE)


# ---- registration


def test_claims_are_written_before_the_first_run_and_stay(fake, tmp_path):
    study = fake.experiment()
    first = register(study, fake.SCALE, tmp_path, now=NOON)
    again = register(study, study.scale("full"), tmp_path, now=LATER)
    written = json.loads((tmp_path / "experiments" / "e99" / "claims.json").read_text())
    assert written["fingerprint"] == first.fingerprint == again.fingerprint
    assert written["registered"] == "2026-01-02T12:00:00+00:00" == again.registered
    assert again.changes == again.edited == ()
    assert again.runs == (
        Run(time="2026-01-02T12:00:00+00:00", scale="demo", seeds=(11, 12, 13)),
        Run(time="2026-01-03T12:00:00+00:00", scale="full", seeds=(11, 12, 13, 14)),
    )


def test_arms_and_evaluations_are_registered_with_each_scale(fake, tmp_path):
    study = fake.experiment()
    assert register(study, fake.SCALE, tmp_path, now=NOON).designed == "2026-01-02T12:00:00+00:00"
    assert registration(study, study.scale("full"), tmp_path).designed is None  # claims alone say nothing of its arms
    assert register(study, study.scale("full"), tmp_path, now=LATER).designed == "2026-01-03T12:00:00+00:00"
    designs = tmp_path / "experiments" / "e99" / "designs"
    assert sorted(file.relative_to(designs).as_posix() for file in designs.rglob("*.json")) == [
        *(f"demo/{seed}.json" for seed in (11, 12, 13)),
        *(f"full/{seed}.json" for seed in (11, 12, 13, 14)),
    ]
    written = json.loads((designs / "demo" / "12.json").read_text())["design"]
    stages = dict(written[".arms"])["SFT-8"]
    recipe = study.arms(12, fake.SCALE)["SFT-8"]
    assert [stage[".id"] for stage in stages] == [stage_id(recipe, index) for index in range(3)]


def changed_arms(fake, seed, scale):
    """SFT-8 with a longer RL stage from seed 12 on; RL without its RL stage; the rest as it was."""
    arms = fake.arms(seed, scale)
    longer = replace(arms["SFT-8"].stages[2], budget=Budget(steps=99))
    if seed >= 12:
        arms["SFT-8"] = replace(arms["SFT-8"], stages=(*arms["SFT-8"].stages[:2], longer))
    return arms | {"RL": arms["RL"].upto(0)}


def changed_evaluations(fake, seed, scale):
    return {name: replace(each, samples=2, passes=(2,)) for name, each in fake.evaluations(seed, scale).items()}


def test_recipes_and_evaluations_that_change_after_the_first_run_are_named(fake, tmp_path):
    register(fake.experiment(), fake.SCALE, tmp_path, now=NOON)
    before = {file: file.read_bytes() for file in (tmp_path / "experiments").rglob("*.json")}
    other = fake.experiment(arms=partial(changed_arms, fake), evaluations=partial(changed_evaluations, fake))
    changed = register(other, fake.SCALE, tmp_path, now=LATER)
    assert [str(change) for change in changed.changes] == [
        "arm 'RL' lost its stages from 1 (RL) on",
        "evaluation 'test' changed",
        "evaluation 'memory' changed",
        "arm 'SFT-8' changed from stage 2 (RL) on at seeds 12, 13",
    ]
    assert {file: file.read_bytes() for file in before} == before
    assert len(list((tmp_path / "experiments" / "e99" / "designs" / "demo").glob("12-*.json"))) == 1


def test_claims_that_were_edited_in_place_are_found_by_their_fingerprint(fake, tmp_path):
    study = fake.experiment()
    register(study, fake.SCALE, tmp_path, now=NOON)
    folder = tmp_path / "experiments" / "e99"
    for file in (folder / "claims.json", folder / "designs" / "demo" / "11.json"):
        file.write_text(file.read_text().replace("SFT-8", "SFT-9"))
    assert registration(study, fake.SCALE, tmp_path).edited == ("claims.json", "designs/demo/11.json")


def test_a_run_after_a_line_that_was_cut_stands_on_its_own_line(fake, tmp_path):
    study = fake.experiment()
    register(study, fake.SCALE, tmp_path, now=NOON)
    log = tmp_path / "experiments" / "e99" / "runs.jsonl"
    log.write_bytes(log.read_bytes()[:-20])  # as a full disk leaves it
    again = register(study, fake.SCALE, tmp_path, now=LATER)
    assert [run.time for run in again.runs] == ["2026-01-03T12:00:00+00:00"]
    assert again.unreadable_runs == 1


@pytest.mark.parametrize("line", ["[1]", "{}", '{"time": "t", "scale": "demo", "seeds": 3}', "\x00"])
def test_a_line_that_is_no_run_is_counted(fake, tmp_path, line):
    study = fake.experiment()
    register(study, fake.SCALE, tmp_path, now=NOON)
    with (tmp_path / "experiments" / "e99" / "runs.jsonl").open("a") as log:
        log.write(line + "\n")
    read = registration(study, fake.SCALE, tmp_path)
    assert (len(read.runs), read.unreadable_runs) == (1, 1)


def test_changed_claims_stand_beside_the_first_and_are_named(fake, tmp_path):
    study = fake.experiment()
    register(study, fake.SCALE, tmp_path, now=NOON)
    before = (tmp_path / "experiments" / "e99" / "claims.json").read_bytes()
    moved = fake.experiment(claims=(fake.claim(low=0.1), fake.claim(name="new")), checks=())
    changed = register(moved, fake.SCALE, tmp_path, now=LATER)
    assert [str(change) for change in changed.changes] == [
        "claim 'new' was added",
        "claim 'demonstrations unlock RL' changed in low, statement",
        "check 'memorised' was removed",
    ]
    assert (tmp_path / "experiments" / "e99" / "claims.json").read_bytes() == before
    assert len(list((tmp_path / "experiments" / "e99").glob("claims-*.json"))) == 1
    assert registration(study, fake.SCALE, tmp_path).changes == ()


def test_reading_a_registration_writes_nothing(fake, tmp_path):
    assert registration(fake.experiment(), fake.SCALE, tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "has no entry 'fingerprint'"),
        ("[]", "has no entry 'fingerprint'"),
        ('{"fingerprint": "f", "registered": "2026-01-02T12:00:00+00:00"}', "has no entry 'claims'"),
        ('{"fingerprint": "f", "registered": "noon", "claims": {}}', "'noon', which is no time"),
        ('{"fingerprint": "f", "registered": "2026-01-02T12:00:00", "claims": {}}', "names no time zone"),
    ],
)
def test_a_damaged_registration_is_named_with_its_remedy(fake, tmp_path, text, message):
    register(fake.experiment(), fake.SCALE, tmp_path, now=NOON)
    (tmp_path / "experiments" / "e99" / "claims.json").write_text(text)
    with pytest.raises(StoreError, match=rf"claims\.json.*{message}.*restore it"):
        registration(fake.experiment(), fake.SCALE, tmp_path)


@pytest.mark.parametrize("content", ["{}", '{".arms": [], ".seed": 11}', '{".arms": 3, ".evaluations": []}'])
def test_a_design_without_its_parts_is_named_too(fake, tmp_path, content):
    register(fake.experiment(), fake.SCALE, tmp_path, now=NOON)
    file = tmp_path / "experiments" / "e99" / "designs" / "demo" / "11.json"
    entry = json.loads(file.read_text()) | {"design": json.loads(content)}
    file.write_text(json.dumps(entry))
    with pytest.raises(StoreError, match=r"11\.json holds no design.*restore it"):
        registration(fake.experiment(), fake.SCALE, tmp_path)


# ---- judgement


@pytest.mark.parametrize(
    ("values", "low", "high", "outcome"),
    [
        ((0.60, 0.62, 0.64), 0.2, None, "supported"),
        ((0.60, 0.62, 0.64), None, 0.2, "refuted"),
        ((0.60, 0.62, 0.64), 0.62, None, "inconclusive"),
        ((-0.01, 0.0, 0.01), -0.05, 0.05, "supported"),
        ((-0.04, 0.0, 0.04), -0.05, 0.05, "inconclusive"),
        ((0.10, 0.11, 0.12), -0.05, 0.05, "refuted"),
        ((0.30, 0.30, 0.30), 0.2, None, "inconclusive"),
        ((0.20, 0.20, 0.20), 0.2, None, "inconclusive"),
    ],
)
def test_the_outcome_follows_the_interval(values, low, high, outcome):
    # One claim needs no correction. 95 % intervals: 0.62 +- 0.05, 0 +- 0.025, 0 +- 0.099, 0.11 +- 0.025.
    (finding,) = judge([claimed(low, high)], [], SEEDS, reading(a=values)).findings
    assert finding.outcome == outcome
    assert finding.n == 3
    assert f"{finding.effect:.3f}" in finding.reason


def test_the_effect_is_paired_within_a_seed():
    # Levels differ by 0.5 between seeds, the difference by 0.02: unpaired, nothing could be said.
    read = reading(a=(0.30, 0.55, 0.82), b=(0.10, 0.36, 0.60))
    (finding,) = judge([claimed(0.1, effect=difference(of("a"), of("b")))], [], SEEDS, read).findings
    assert finding.outcome == "supported"
    assert [value for _, value in finding.per_seed] == pytest.approx([0.20, 0.19, 0.22])


def test_holm_counts_all_claims_of_the_experiment():
    # p of (1, 2, 3) against 0 is .037; of (3, 3.5, 4) it is t = 3.5 sqrt(3) / .5 = 12.1, p = .0034.
    weak, strong = claimed(0.0, name="weak"), claimed(0.0, effect=level(of("b")), name="strong")
    read = reading(a=(1.0, 2.0, 3.0), b=(3.0, 3.5, 4.0))
    findings = judge([weak, strong], [], SEEDS, read).findings
    assert [finding.outcome for finding in findings] == ["inconclusive", "supported"]
    assert findings[1].p_inside == pytest.approx(2 * findings[1].raw_p_inside)
    assert findings[0].p_inside == pytest.approx(findings[0].raw_p_inside)


def test_a_claim_without_results_makes_the_others_no_easier():
    # p = .037 / 2 = .018 for t of (2, 3, 4): 3 sqrt(3) = 5.2 -> .0176 alone; doubled by the untested claim it is .035.
    untested, tested = claimed(0.0, effect=level(of("b")), name="untested"), claimed(0.0)
    read = reading(a=(2.0, 3.0, 4.0), b=(None, None, None))
    assert judge([tested], [], SEEDS, read).findings[0].outcome == "supported"
    both = judge([tested, untested], [], SEEDS, read).findings
    assert [finding.outcome for finding in both] == ["inconclusive", "inconclusive"]
    assert both[0].p_inside == pytest.approx(2 * both[0].raw_p_inside)


def test_a_missing_seed_leaves_a_claim_open_but_shows_what_is_there():
    (finding,) = judge([claimed(0.2)], [], SEEDS, reading(a=(0.6, None, 0.64))).findings
    assert finding.outcome == "inconclusive"
    assert finding.reason == "Not judged: 2 of 3 seeds are in; seed 2 missing."
    assert finding.effect == pytest.approx(0.62)
    assert finding.interval is not None
    assert finding.p_inside is None


@pytest.mark.parametrize(("count", "reason"), [(1, "1 seed has no variance"), (2, "2 seeds have too little variance")])
def test_one_seed_or_two_are_never_enough(count, reason):
    (finding,) = judge([claimed(0.2)], [], SEEDS[:count], reading(a=(0.9, 0.9))).findings
    assert finding.outcome == "inconclusive"
    assert (finding.p_inside, finding.sign_flip_inside) == (None, None)
    assert finding.reason == f"Not judged: {reason} to judge by; run at least 3."
    assert (finding.interval is None) == (count == 1)


@pytest.mark.parametrize(
    ("count", "claims", "outcome"),
    [(3, 1, "inconclusive"), (5, 1, "inconclusive"), (6, 1, "supported"), (6, 2, "inconclusive"), (7, 2, "supported")],
)
def test_seeds_that_agree_exactly_are_judged_by_sign_flips(count, claims, outcome):
    # The p of n equal seeds is 2^-n: 1/32 = .031 for five, 1/64 = .016 for six, of which Holm over two makes .031.
    several = [claimed(0.2, name=f"claim {i}") for i in range(claims)]
    finding = judge(several, [], tuple(range(count)), lambda _measure, _seed: 0.9).findings[0]
    assert finding.outcome == outcome
    assert finding.raw_p_inside == finding.sign_flip_inside == 0.5**count
    assert f"All seeds agree exactly: judged by sign flips, which {count} seeds can only push to p = " in finding.reason


def test_a_claim_that_only_the_correction_holds_back_says_so():
    # t of (2, 3, 4) against 0 is 5.196, p = .0176 alone, and .035 as one of two.
    two = [claimed(0.0), claimed(10.0, effect=level(of("b")), name="other")]
    read = reading(a=(2.0, 3.0, 4.0), b=(9.0, 10.0, 11.0))
    held_back, open_anyway = judge(two, [], SEEDS, read).findings
    assert held_back.interval[0] > 0.0
    assert held_back.outcome == "inconclusive"
    assert (
        "The interval lies inside the band, and alone p = 0.018 would decide; but Holm's correction for 2 claims makes"
        " it p = 0.035, above 0.025." in held_back.reason
    )
    assert "Holm's correction" not in open_anyway.reason
    against = judge([claimed(None, 0.0), two[1]], [], SEEDS, read).findings[0]
    assert "lies outside the band, and alone p = 0.018" in against.reason


@pytest.mark.parametrize(
    ("trained", "holds", "void"),
    [
        ((1.0, 0.95, 0.9), True, None),
        ((1.0, 0.89, 1.0), False, "the check 'trained' failed: accuracy of b (test) is 0.890 in seed 2"),
        ((1.0, None, 1.0), None, "the check 'trained' is open: accuracy of b (test) is missing in seed 2"),
        ((0.1, None, 1.0), False, "0.100 in seed 1"),
    ],
)
def test_a_check_voids_every_claim_unless_it_holds_in_every_seed(trained, holds, void):
    check = Check(name="trained", statement="It trained.", measure=of("b"), low=0.9)
    judgement = judge([claimed(0.2)], [check], SEEDS, reading(a=(0.6, 0.62, 0.64), b=trained))
    assert judgement.checks[0].holds is holds
    (finding,) = judgement.findings
    if void is None:
        assert (finding.outcome, judgement.void) == ("supported", None)
    else:
        assert finding.outcome == "inconclusive"
        assert void in judgement.void
        what = "failed" if holds is False else "is open"
        assert finding.reason == f"Void: the check 'trained' {what}."  # the numbers stand once, above all claims
        assert finding.effect == pytest.approx(0.62)


def test_a_leak_voids_every_claim():
    judgement = judge([claimed(0.2)], [], SEEDS, reading(a=(0.6, 0.62, 0.64)), leak="3 problems were seen")
    assert judgement.void == "3 problems were seen"
    assert judgement.findings[0].reason == "Void: training problems stand in an evaluation."


def test_findings_carry_the_claim_that_was_judged():
    claim = claimed(0.2)
    (finding,) = judge([claim], [], SEEDS, reading(a=(0.6, 0.62, 0.64))).findings
    assert finding.claim is claim
    assert replace(finding, outcome="refuted").claim is claim
