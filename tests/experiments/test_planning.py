"""A plan has every stage and evaluation once, parents first, and refuses arms that cannot work."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        import e99_tiny

        yield e99_tiny


@pytest.fixture(scope="module")
def planned(tiny):
    from experiments.planning import plan

    return plan(tiny.EXPERIMENT, tiny.EXPERIMENT.scale("full"))


def test_shared_prefixes_and_their_evaluations_stand_once(planned):
    # Per seed: Pretrain (both arms) and SFT (one arm), each evaluated once: 4 nodes. Three seeds.
    assert len(planned.nodes) == 12
    assert len({node.id for node in planned.nodes}) == 12
    shared = planned.nodes[0]
    assert [(user.arm, user.seed) for user in shared.users] == [("base", 0), ("taught", 0)]


def test_parents_stand_before_their_children(planned):
    seen = set()
    for node in planned.nodes:
        assert seen.issuperset(node.parents)
        seen.add(node.id)


def test_planned_ids_are_those_of_the_declared_objects(planned, tiny):
    from training.evaluation import evaluation_id
    from training.recipe import stage_id

    assert all(node.identity() == node.id for node in planned.nodes)
    recipe = tiny.arms(0, None)["taught"]
    last = stage_id(recipe, 1)
    ids = {node.id for node in planned.nodes}
    assert {last, stage_id(recipe, 0), evaluation_id(tiny.evaluations(0, None)["unseen"], last)} <= ids


def test_a_shared_stage_travels_with_the_recipe_that_ends_with_it(planned, tiny):
    assert planned.nodes[0].recipe == tiny.arms(0, None)["base"]


def test_fewer_seeds_and_arms_give_a_part_of_the_plan(planned, tiny):
    from experiments.planning import plan

    part = plan(tiny.EXPERIMENT, replace(tiny.EXPERIMENT.scale("full"), seeds=1), only=["base"])
    assert [node.kind for node in part.nodes] == ["stage", "evaluation"]
    assert {node.id for node in part.nodes} < {node.id for node in planned.nodes}


def test_the_store_says_what_is_left(planned, tmp_path):
    from experiments.store import Store

    store = Store(tmp_path)
    assert planned.pending(store) == planned.nodes
    node = planned.nodes[0]
    with store.open(node.id) as workspace:
        (workspace / "artifact").mkdir()
        (workspace / "artifact" / "model").write_text("x")
        store.seal(node.id, workspace, {"kind": "stage", "description": "", "parents": []})
    assert planned.pending(store) == planned.nodes[1:]


def test_unknown_arms_and_too_many_seeds_are_refused_with_what_exists(tiny):
    from experiments.planning import plan

    with pytest.raises(ValueError, match=r"no arm 'tought'; did you mean 'taught'\? \(known: base, taught\)"):
        plan(tiny.EXPERIMENT, tiny.EXPERIMENT.scale("smoke"), only=["tought"])
    with pytest.raises(ValueError, match="asks for 9 seeds"):
        plan(tiny.EXPERIMENT, replace(tiny.EXPERIMENT.scale("smoke"), seeds=9))


def test_an_arm_that_lacks_symbols_of_an_evaluation_is_refused(tiny):
    from experiments.planning import plan
    from testbeds.latent_modules import LatentModules
    from testbeds.suites import Suite
    from training.evaluation import Evaluation, ProblemSet

    wide = Suite(task=LatentModules(world=0, alphabet=14, depth=2))
    foreign = Evaluation(sets=(ProblemSet(suite=wide, count=8),), max_new_tokens=8, seed=0, samples=4)
    study = replace(tiny.EXPERIMENT, evaluations=lambda _seed, _scale: {"unseen": foreign})
    with pytest.raises(ValueError, match=r"arm 'base' of e99 at seed 0 cannot be evaluated with 'unseen': .* lack"):
        plan(study, study.scale("smoke"))


def test_completions_longer_than_the_context_are_refused(tiny):
    from experiments.planning import plan

    (name, fitting), *_ = tiny.evaluations(0, None).items()
    study = replace(tiny.EXPERIMENT, evaluations=lambda _seed, _scale: {name: replace(fitting, max_new_tokens=32)})
    with pytest.raises(ValueError, match="do not fit into a context of 32"):
        plan(study, study.scale("smoke"))


def test_estimates_are_positive_and_grow_with_the_work(planned):
    from experiments.planning import evaluation_flops

    assert all(node.estimated_flops() > 0 for node in planned.nodes)
    node = planned.nodes[1]
    few = evaluation_flops(node.evaluation, node.recipe.model, node.recipe.symbols)
    (problems,) = node.evaluation.sets
    twice = replace(node.evaluation, sets=(replace(problems, count=2 * problems.count),))
    # The estimate is linear in the number of problems, up to the rounding of one number.
    assert abs(evaluation_flops(twice, node.recipe.model, node.recipe.symbols) - 2 * few) <= 1


class Work:
    """The least that the planning of time needs of a node."""

    def __init__(self, name, *parents):
        self.id, self.parents = name, parents


def test_the_longest_path_counts_what_waits_for_a_node():
    from experiments.graph import longest_paths

    nodes = [Work("a"), Work("b", "a"), Work("c", "a"), Work("d", "b", "c")]
    costs = {"a": 1.0, "b": 2.0, "c": 5.0, "d": 3.0}
    # d 3; c 5 + 3; b 2 + 3; a 1 + max(8, 5)
    assert longest_paths(nodes, costs) == {"d": 3.0, "c": 8.0, "b": 5.0, "a": 9.0}


@pytest.mark.parametrize(("workers", "seconds"), [(1, 11.0), (2, 9.0), (5, 9.0)])
def test_estimated_time_follows_chains_and_workers(workers, seconds):
    from experiments.throughput import makespan_s

    nodes = [Work("a"), Work("b", "a"), Work("c", "a"), Work("d", "b", "c")]
    # One worker: 1 + 2 + 5 + 3. Two: b runs beside c, so a, c, d: 1 + 5 + 3. More workers do not shorten the chain.
    assert makespan_s(nodes, {"a": 1.0, "b": 2.0, "c": 5.0, "d": 3.0}, workers) == seconds


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "under a minute"),
        (59.0, "under a minute"),
        (90.0, "about 1.5 minutes"),
        (1500.0, "about 25 minutes"),
        (3 * 3600.0, "about 3.0 hours"),
    ],
)
def test_an_estimate_is_told_in_words_without_false_digits(seconds, words):
    from experiments.plan_table import in_minutes

    assert in_minutes(seconds) == words


def sealed(store, artifact_id, ledger):
    with store.open(artifact_id) as workspace:
        (workspace / "artifact").mkdir()
        (workspace / "artifact" / "ledger.json").write_text(ledger)
        return store.seal(artifact_id, workspace, {"kind": "stage", "description": "", "parents": []})


def ledger_text(flops, cpu_s):
    from training.ledger import Ledger, Spent

    return json.dumps(Ledger(steps=1, training=Spent(tokens=1, flops=flops, cpu_s=cpu_s)).to_json())


def test_speed_is_read_from_the_ledgers_of_finished_artifacts_alone(tiny, tmp_path):
    from experiments.store import Store
    from experiments.throughput import measured

    store = Store(tmp_path / "store")
    sealed(store, "ab" * 16, ledger_text(flops=3000, cpu_s=10.0))
    sealed(store, "cd" * 16, ledger_text(flops=1000, cpu_s=10.0))
    foreign = store.root / "artifacts" / "ef" / "left over"
    foreign.mkdir(parents=True)
    (foreign / "ledger.json").write_text("{")
    # 4000 FLOPs in 20 s
    assert measured(store, tiny.MODEL, 20).flops_per_s == 200.0


@pytest.mark.parametrize("ledger", ["{", "[]", "{}", '{"steps": 1, "training": {"watts": 1}}'])
def test_a_ledger_that_is_none_is_damage_with_a_remedy(tiny, tmp_path, ledger):
    from experiments.store import DamagedArtifact, Store
    from experiments.throughput import measured

    store = Store(tmp_path / "store")
    made = sealed(store, "ab" * 16, ledger)
    with pytest.raises(DamagedArtifact, match=r"ledger\.json that is no ledger; delete the directory .* and run again"):
        measured(store, tiny.MODEL, 20)
    (made / "ledger.json").write_text(ledger[::-1] + " ")
    with pytest.raises(DamagedArtifact, match=r"bytes in ledger\.json"):
        measured(store, tiny.MODEL, 20)


def test_an_evaluation_of_a_task_without_room_for_steps_has_an_estimate_too(tiny):
    from experiments.planning import evaluation_flops
    from testbeds.latent_modules import LatentModules
    from testbeds.suites import Suite
    from training.evaluation import Evaluation, ProblemSet

    suite = Suite(task=LatentModules(world=0, depth=2, working="none"))
    evaluation = Evaluation(sets=(ProblemSet(suite=suite, count=8),), max_new_tokens=8, seed=0, samples=4)
    assert evaluation_flops(evaluation, tiny.MODEL, suite.task.symbols) > 0


@pytest.mark.parametrize("level", ["countdown/hard", "latent_modules/routed", "latent_modules/direct"])
def test_lengths_are_those_that_the_tokenizer_counts(level):
    from experiments.lengths import fullest_demonstration, lengths_of
    from models import Tokenizer
    from testbeds.catalogue import task_named
    from testbeds.streams import stream

    task = task_named(level)
    tokenizer = Tokenizer.of(task.symbols)
    sample = task.generate(stream("lengths"), 8)
    found = lengths_of(task, 8)
    # A prompt has no begin token; a completion has its end token.
    assert found.prompt == max(len(tokenizer.encode(problem.prompt)) for problem in sample)
    texts = [fullest_demonstration(task, problem).text for problem in sample]
    assert found.trace == 1 + max(len(tokenizer.encode(text)) for text in texts)
    assert found.features == tuple(sorted(sample[0].features))
