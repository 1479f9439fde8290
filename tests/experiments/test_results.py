"""Results are read as they were written, shared stages once, with a sentence for every gap."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from experiments.claims import Measure, level
from experiments.evidence import differences, leak, overlaps, shown
from experiments.judgement import judge
from experiments.results import load
from experiments.store import DamagedArtifact, Store
from experiments.tables import (
    band_table,
    check_values,
    effect_above_floor,
    end_table,
    ledger_rows,
    metric_table,
    policy_groups,
    rollout_table,
)
from training.recipe import stage_id

pytestmark = pytest.mark.usefixtures("quick_holm")


@pytest.fixture
def study(fake):
    return fake.experiment()


@pytest.fixture
def results(fake, study, filled):
    return load(study, fake.SCALE, filled)


def test_every_policy_of_the_design_is_there(results):
    # 3 seeds x (2 + 3 + 3 stages).
    assert len(results.policies) == 24
    assert results.missing == ()
    assert all(policy.finished for policy in results.policies)


def test_a_measure_reads_its_arm_stage_band_and_seed(results):
    read = results.reader()
    # accuracy() of the fake study: SFT-8 is .4 + .02 (13 - 12) after SFT and .9 + .02 (11 - 12) after RL.
    assert read(Measure(arm="SFT-8", evaluation="test", band="depth=2", stage=1), 13) == pytest.approx(0.42)
    assert read(Measure(arm="SFT-8", evaluation="test", band="depth=2"), 11) == pytest.approx(0.88)
    assert read(Measure(arm="SFT-8", evaluation="test", band="depth=10"), 11) == 0.0
    assert read(Measure(arm="SFT-8", evaluation="test"), 11) == pytest.approx(0.88)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"band": "depth=3"}, "no band 'depth=3'.*depth=10"), ({"metric": "accurracy"}, "no metric 'accurracy'")],
)
def test_a_misspelt_band_or_metric_is_an_error_and_not_a_gap(results, change, message):
    measure = replace(Measure(arm="RL", evaluation="test"), **change)
    with pytest.raises(ValueError, match=message):
        results.reader()(measure, 11)


def test_the_tidy_table_has_a_row_per_number(results):
    # 24 policies x (test: 3 bands, memory: 1 band) x 5 metrics.
    assert len(results.scores) == 24 * 4 * 5
    frame = results.frame()
    chosen = frame.query("seed == 12 and arm == 'SFT-8' and stage == 2 and band == 'depth=2' and metric == 'accuracy'")
    assert chosen["value"].tolist() == [0.9]
    out = io.StringIO()
    results.write_csv(out)
    assert out.getvalue().splitlines()[0] == "seed,arm,stage,stage_name,evaluation,band,metric,value"
    assert len(out.getvalue().splitlines()) == len(results.scores) + 1


def test_gaps_are_named_and_nothing_else_is_lost(fake, study, tmp_path):
    store = Store(tmp_path)
    # Seed 13 never ran SFT-8 beyond its base, and seed 12 lacks one evaluation.
    gone = [(13, "SFT-8", 1), (13, "SFT-8", 2)]
    fake.fill(store, study, skip=lambda it: it[:3] in gone or it == (12, "RL", 1, "test"))
    results = load(study, fake.SCALE, store)
    assert list(results.missing) == [
        "seed 13, arm SFT-8: stage 1 (SFT, 5 steps, 8 demonstrations) has not finished",
        "seed 13, arm SFT-8: stage 2 (RL, 5 steps, 32 problems x 8 rollouts) has not finished",
        "seed 12, arm RL: no evaluation test after stage 1 (RL)",
    ]
    read = results.reader()
    assert read(Measure(arm="SFT-8", evaluation="test"), 13) is None
    assert read(Measure(arm="SFT-8", evaluation="test"), 12) == pytest.approx(0.9)


def test_a_damaged_artifact_is_not_read(fake, study, tmp_path):
    store = Store(tmp_path)
    scale = study.scale("smoke")
    fake.fill(store, study, scale)
    identity = stage_id(study.arms(11, scale)["RL"], 1)
    (store.location(identity) / "metrics.jsonl").write_text("{}\n")
    with pytest.raises(DamagedArtifact):
        load(study, scale, Store(tmp_path))


def test_shared_stages_are_one_row(results, study):
    groups = policy_groups(results, study.order)
    assert [(group.label, group.stage_name) for group in groups] == [
        ("all arms", "Pretrain"),
        ("RL", "RL"),
        ("SFT-4 <b>", "SFT"),
        ("SFT-4 <b>", "RL"),
        ("SFT-8", "SFT"),
        ("SFT-8", "RL"),
    ]


def test_parts_of_one_stage_are_told_apart(results):
    base, sft, rl = results.of(seed=11, arm="SFT-8")
    more = replace(rl, stage=3, stage_id="other")
    groups = policy_groups(replace(results, policies=(base, sft, rl, more)), ["SFT-8"])
    assert [group.after for group in groups] == ["Pretrain", "SFT", "RL, part 1 of 2", "RL, part 2 of 2"]


def test_bands_stand_in_the_order_of_their_numbers_with_both_forms_of_each_rate(results, study):
    table = band_table(study, results, "test")
    assert table.columns == ("all", "depth=2", "depth=10")
    (cells,) = (cells for group, cells in table.rows if group.arms == ("SFT-8",) and group.stage_name == "RL")
    # Mean of .88 .90 .92; above the floor (.9 - .1) / .9.
    assert cells[1].raw == pytest.approx(0.9)
    assert cells[1].corrected == pytest.approx(0.8 / 0.9)
    assert cells[1].seeds == 3


def test_all_metrics_have_their_corrected_form_inside_their_cell(results, study):
    table = metric_table(study, results, "test")
    assert table.columns == ("floor", "accuracy", "length_tokens")


def test_a_metric_that_older_artifacts_lack_has_its_column(results, study):
    identities = [dict(policy.evaluation_ids)["test"] for policy in results.of(seed=13, arm="SFT-8")]
    entries = dict(results.artifacts.evaluations)
    for identity in identities:
        entries[identity] = entries[identity] | {"metrics": entries[identity]["metrics"] | {"legal_mass": 0.5}}
    newer = replace(results, artifacts=replace(results.artifacts, evaluations=entries))
    table = metric_table(study, newer, "test")
    assert table.columns == ("floor", "accuracy", "length_tokens", "legal_mass")
    (cells,) = (cells for group, cells in table.rows if group.arms == ("SFT-8",) and group.stage_name == "RL")
    assert (cells[3].raw, cells[3].seeds) == (0.5, 1)


def test_rollouts_are_the_first_of_the_evaluation_whatever_their_verdict(results, study, filled, fake):
    table = rollout_table(study, results, filled)
    first = study.evaluations(11, fake.SCALE)["test"].sets[0].problems()[:4]
    assert [problem.prompt for problem in table.problems] == [f"{problem.prompt} <i>" for problem in first]
    assert [rollout.arm for rollout in table.problems[0].rollouts] == list(study.order)
    assert "at seed 11" in table.rule


def test_the_ledger_counts_shared_stages_in_every_arm_but_once_in_the_total(results, study):
    rows = {row.label: row for row in ledger_rows(study, results)}
    assert rows["RL"].training.tokens == 2000  # 2 stages of 1000
    assert rows["SFT-8"].training.tokens == 3000
    assert rows["SFT-8"].sampling.tokens == 100
    # Per seed 1 base, 2 SFT, 3 RL: 6 stages of 1000, over 3 seeds.
    assert rows["whole experiment, every stage once"].training.tokens == 18_000


def test_an_artifact_that_arms_share_is_one_gap_and_seeds_share_a_sentence(fake, study, tmp_path):
    # 1 base, 2 SFT and 3 RL stages per seed; the evaluations of a stage that is not there are no gaps of their own.
    empty = load(study, fake.SCALE, Store(tmp_path / "empty"))
    assert (empty.gaps, len(empty.missing)) == (3 * 6, 6)
    everyone = "arms RL, SFT-4 <b>, SFT-8"
    assert (
        empty.missing[0]
        == f"seeds 11, 12, 13, {everyone}: stage 0 (Pretrain, 5 steps, fresh problems) has not finished"
    )
    store = Store(tmp_path / "store")
    fake.fill(
        store, study, skip=lambda it: it[2] == 0 and (it[0], it[3]) in ((11, "test"), (13, "test"), (13, "memory"))
    )
    found = load(study, fake.SCALE, store)
    assert found.gaps == 3
    assert found.missing == (
        f"seed 11, {everyone}: no evaluation test after stage 0 (Pretrain)",
        f"seed 13, {everyone}: no evaluations test, memory after stage 0 (Pretrain)",
    )


def test_a_missing_evaluation_is_not_a_cost_of_nothing(fake, study, tmp_path):
    # Every evaluation costs 8 tokens, an arm of 3 stages has 6 of them: 48 per seed. Seed 12 lacks one of SFT-8's.
    store = Store(tmp_path)
    fake.fill(store, study, skip=lambda it: it == (12, "SFT-8", 2, "test"))
    rows = {row.label: row for row in ledger_rows(study, load(study, fake.SCALE, store))}
    assert (rows["SFT-8"].seeds, rows["SFT-8"].evaluated_seeds) == (3, 2)
    assert rows["SFT-8"].evaluation.tokens == 48
    assert rows["SFT-8"].training.tokens == 3000
    assert (rows["RL"].evaluated_seeds, rows["RL"].evaluation.tokens) == (3, 32)
    # 3 seeds x 6 stages x 2 evaluations, less the one.
    assert rows["whole experiment so far, every stage once"].evaluation.tokens == 35 * 8


def test_an_arm_without_any_complete_evaluation_has_none_in_the_ledger(fake, study, tmp_path):
    store = Store(tmp_path)
    fake.fill(store, study, skip=lambda it: it[3] == "memory")
    row = ledger_rows(study, load(study, fake.SCALE, store))[0]
    assert (row.seeds, row.evaluated_seeds, row.evaluation) == (3, 0, None)


def test_the_end_of_every_arm_is_read_raw_and_above_its_floor(study, results):
    table = end_table(study, results)
    rows = dict(table.rows)
    # Means after the last stage .1 .3 .9 at a floor of .1.
    assert [cell.raw for cell in rows.values()] == pytest.approx([0.1, 0.3, 0.9])
    assert [cell.corrected for cell in rows.values()] == pytest.approx([0.0, 0.2 / 0.9, 0.8 / 0.9])
    above = replace(study, primary=replace(study.primary, metric="accuracy_corrected"))
    assert end_table(above, results) == table  # whichever of the two the study reads
    without = replace(study, primary=replace(study.primary, metric="length_tokens"))
    assert not end_table(without, results).has_floor


def test_claims_and_checks_are_read_above_the_floor_where_there_is_one(study, results):
    judgement = judge(study.claims, study.checks, results.seeds, results.reader())
    # .8 in raw rates is .8 / .9 above the floor; a memory of 1 stays 1.
    assert effect_above_floor(judgement.findings[0], results) == pytest.approx(0.8 / 0.9)
    assert check_values(judgement.checks[0], results) == ((11, 1.0, 1.0), (12, 1.0, 1.0), (13, 1.0, 1.0))
    lengths = level(replace(study.primary, metric="length_tokens").of("RL"))
    without = replace(judgement.findings[0], claim=replace(study.claims[0], effect=lengths))
    assert effect_above_floor(without, results) is None


@pytest.mark.parametrize("created", ["yesterday", "2026-01-02T12:00:00", None])
def test_an_artifact_of_unknown_age_is_damaged(fake, study, tmp_path, created):
    store, scale = Store(tmp_path), study.scale("smoke")
    fake.fill(store, study, scale)
    file = store.location(stage_id(study.arms(11, scale)["RL"], 1)) / "record.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"created": created}))
    with pytest.raises(DamagedArtifact, match="created"):
        load(study, scale, Store(tmp_path))


def test_the_commit_of_the_code_stands_with_the_versions(fake, study, tmp_path):
    store, scale = Store(tmp_path), study.scale("smoke")
    fake.fill(store, study, scale)
    identity = stage_id(study.arms(11, scale)["RL"], 1)
    file = store.location(identity) / "record.json"
    code = {"version": "0.1.0", "commit": "c0ffee", "dirty": True}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"code": code}))
    versions = load(study, scale, Store(tmp_path)).artifacts.versions[identity]
    assert versions[-1] == ("code", "c0ffee with changes")


# ---- evidence


def test_arms_differ_only_where_they_were_declared_to(fake, study):
    arms = study.arms(11, fake.SCALE)
    (count,) = differences(arms["SFT-4 <b>"], arms["SFT-8"])
    assert (count.path, count.left, count.right) == ("stages[1] SFT.source.count", "4", "8")
    (inserted,) = differences(arms["RL"], arms["SFT-8"])
    assert (inserted.path, inserted.left) == ("stages SFT", "absent")
    assert inserted.right == "SFT, 5 steps, 8 demonstrations"
    assert differences(arms["RL"], arms["RL"]) == ()


def test_another_seed_of_one_stage_is_found_through_all_levels(fake, study):
    recipe = study.arms(11, fake.SCALE)["SFT-8"]
    last = replace(recipe.stages[2], optimizer=replace(recipe.stages[2].optimizer, rate=0.5), seed=1)
    found = differences(recipe, replace(recipe, stages=(*recipe.stages[:2], last)))
    assert [difference.path for difference in found] == ["stages[2] RL.optimizer.rate", "stages[2] RL.seed"]


def test_long_values_are_cut():
    assert len(shown("x" * 500)) == 80


def test_overlap_is_counted_on_the_recorded_keys(fake, study, results, filled):
    found = overlaps(study, fake.SCALE, results, filled)
    # Keys of the fake study: "test i" was never trained on; "memory" asks 3 of the 20 keys of SFT.
    assert {each.shared for each in found if each.evaluation == "test"} == {0}
    sft = {policy.stage_id for policy in results.policies if policy.stage_name == "SFT"}
    assert {each.shared for each in found if each.evaluation == "memory" and each.stage_id in sft} == {3}
    assert leak(found, results) is None


def test_a_training_problem_in_an_evaluation_is_a_leak(fake, study, tmp_path):
    store = Store(tmp_path)
    scale = study.scale("smoke")
    fake.fill(store, study, scale, leaking=True)
    results = load(study, scale, store)
    sentence = leak(overlaps(study, scale, results, store), results)
    assert sentence.startswith("3 of 3 problems of evaluation test were training problems of stage 1 (SFT")


def test_curves_are_kept_row_by_row(results, fake):
    policy = next(results.of(seed=11, arm="RL"))
    rows = results.artifacts.curves[policy.stage_id]
    assert [row["loss"] for row in rows] == [1 / step for step in range(1, fake.STEPS + 1)]
    assert json.dumps(rows[0])
