import json
import pickle
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import FeatureAtLeast, Mixture, Splits, Suite
from testbeds.catalogue import levels
from testbeds.latent_modules import HoldsPair, LatentModules, coverage, heldout_pairs
from testbeds.streams import unit_interval
from testbeds.suites import BLOCK

TASK = LatentModules(world=1, depth=3)  # 12 * 6**3 = 2592 problems
SMALL = LatentModules(world=1, alphabet=4, skills=2, depth=2)  # 4 * 2**2 = 16 problems
ALL = Splits(fractions=(("all", 1.0),))
DEPTHS = Mixture(tasks=tuple(LatentModules(world=1, depth=depth) for depth in (1, 2, 3)), weights=(1, 1, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Never:
    def __call__(self, problem):
        return False


def test_a_split_is_the_interval_that_the_key_falls_into():
    splits = Splits(fractions=(("a", 0.25), ("b", 0.75)), salt=9)
    for problem in SMALL.enumerate():
        assert splits.of(problem) == ("a" if unit_interval("split", 9, problem.key) < 0.25 else "b")


def test_split_shares_are_kept_to_sampling_error():
    sizes = {split: Suite(task=TASK).capacity(split) for split in Splits().names}
    assert sum(sizes.values()) == 2592
    # 2592 keys, share 0.8: mean 2073.6, standard deviation sqrt(2592 * 0.8 * 0.2) = 20.4; five of them are 102.
    assert abs(sizes["train"] - 2073.6) < 102


def test_a_split_depends_on_key_and_salt_and_not_on_the_suites_seed():
    split_of = {p.key: Splits().of(p) for p in TASK.enumerate()}
    for seed in range(3):
        suite = Suite(task=TASK, seed=seed)
        assert all(split_of[p.key] == "test" for p in suite.distinct("test", 64))
    resalted = {p.key: Splits(salt=1).of(p) for p in TASK.enumerate()}
    assert resalted != split_of


def test_a_problem_falls_into_the_same_split_in_a_mixture_and_alone():
    alone = {p.key for p in Suite(task=TASK).distinct("test", 100)}
    mixed = {p.key for p in Suite(task=DEPTHS, seed=5).stream("train").take(0, 1000)}
    assert not alone & mixed


@given(start=st.integers(0, 3 * BLOCK), count=st.integers(0, 2 * BLOCK))
def test_a_slice_of_a_stream_is_its_problems_one_by_one(start, count):
    stream = Suite(task=TASK).stream("train")
    assert (
        stream[start : start + count] == stream.take(start, count) == [stream[i] for i in range(start, start + count)]
    )


def test_iterating_gives_the_problems_from_the_first_on():
    stream = Suite(task=TASK).stream("train")
    assert [problem for problem, _ in zip(stream, range(2 * BLOCK), strict=False)] == stream[: 2 * BLOCK]


def test_a_distant_problem_costs_one_block():
    drawn = []

    @dataclass(frozen=True, kw_only=True)
    class Counting(LatentModules):
        def generate(self, rng, count):
            drawn.append(count)
            return LatentModules.generate(self, rng, count)

    Suite(task=Counting(world=1), splits=ALL).stream("all")[10**12]
    assert sum(drawn) == BLOCK


@pytest.mark.parametrize("index", [-1, slice(-2, 3), slice(0, -1), slice(0, None), slice(0, 9, 2)])
def test_an_endless_stream_refuses_indices_from_its_end(index):
    with pytest.raises((ValueError, IndexError), match=r"endless|no end"):
        Suite(task=TASK).stream("train")[index]


def test_a_slice_with_its_stop_before_its_start_is_empty():
    assert Suite(task=TASK).stream("train")[5:3] == []


def test_streams_of_different_keys_seeds_and_salts_are_unrelated():
    suite = Suite(task=LatentModules(world=1, depth=6))
    first = [p.key for p in suite.stream("train", "sft", 0)[:200]]
    others = [
        suite.stream("train", "sft", 1),
        suite.stream("train", "rl", 0),
        suite.stream("train"),
        replace(suite, seed=1).stream("train", "sft", 0),
    ]
    for other in others:
        # 559,872 keys: 200 x 200 pairs agree 0.07 times on average.
        assert len(set(first) & {p.key for p in other[:200]}) < 5


def test_tasks_that_differ_in_the_form_of_the_answer_alone_see_the_same_problems():
    free, direct = (LatentModules(world=1, depth=3, working=working) for working in ("free", "none"))
    assert Suite(task=free).stream("train", "rl")[:100] == Suite(task=direct).stream("train", "rl")[:100]
    assert Suite(task=free).distinct("test", 50) == Suite(task=direct).distinct("test", 50)


def test_a_suite_and_its_streams_survive_pickling():
    suite = Suite(task=DEPTHS, splits=Splits(held_out=(("deep", FeatureAtLeast(name="depth", value=3)),)), seed=4)
    stream = suite.stream("train", "sft")
    assert pickle.loads(pickle.dumps(suite)) == suite
    assert pickle.loads(pickle.dumps(stream))[70] == stream[70]


def test_a_predicates_problems_are_in_its_split_alone():
    pairs = heldout_pairs(TASK, 4)
    held = HoldsPair(pairs=pairs)
    suite = Suite(task=TASK, splits=Splits(held_out=(("unseen-pairs", held),)))
    assert all(held(problem) for problem in suite.distinct("unseen-pairs", 50))
    for split in ("train", "validation", "test"):
        seen = coverage(suite.distinct(split, 100))
        assert not set(pairs) & {pair for pair, _ in seen.pairs}


def test_the_first_predicate_that_holds_decides():
    deep = FeatureAtLeast(name="depth", value=2)
    splits = Splits(held_out=(("first", deep), ("second", deep)))
    suite = Suite(task=SMALL, splits=splits)
    assert suite.capacity("first") == 16
    assert suite.capacity("second") == 0


def test_distinct_problems_are_distinct_and_a_prefix_of_more():
    suite = Suite(task=TASK, seed=3)
    many = suite.distinct("train", 2000)
    assert len({p.key for p in many}) == 2000
    for count in (0, 1, 16, 64, 1999):
        assert suite.distinct("train", count) == many[:count]


def test_the_whole_of_a_space_can_be_asked_for_and_no_more():
    suite = Suite(task=TASK)
    size = suite.capacity("test")
    everything = suite.distinct("test", size)
    assert {p.key for p in everything} == {p.key for p in TASK.enumerate() if Splits().of(p) == "test"}
    with pytest.raises(ValueError, match=rf"{size + 1} distinct problems asked of split 'test', which holds {size};"):
        suite.distinct("test", size + 1)


def test_a_request_beyond_the_whole_task_is_refused_before_anything_is_drawn():
    task = LatentModules(world=1, depth=6)  # 12 * 6**6 = 559,872
    with pytest.raises(ValueError, match="600000 distinct problems asked of split 'train', which holds at most 559872"):
        Suite(task=task).each_distinct("train", 600_000)


def test_a_space_that_cannot_be_walked_is_called_exhausted_when_nothing_new_comes():
    @dataclass(frozen=True, kw_only=True)
    class Unwalkable(LatentModules):
        @property
        def capacity(self):
            return None

        def enumerate(self):
            return None

    suite = Suite(task=Unwalkable(world=1, alphabet=4, skills=2, depth=2), splits=ALL)
    assert len(suite.distinct("all", 16)) == 16
    assert suite.capacity("all") is None
    with pytest.raises(ValueError, match=r"17 distinct .* showed 16 before nothing new came"):
        suite.distinct("all", 17)


def test_distinct_problems_of_neighbouring_seeds_come_in_unrelated_orders():
    one, other = (Suite(task=TASK, splits=ALL, seed=seed).distinct("all", 2592) for seed in (0, 1))
    assert {p.key for p in one} == {p.key for p in other}
    # Two independent orders of n things agree in one place on average.
    assert sum(a.key == b.key for a, b in zip(one, other, strict=True)) < 8


def test_an_empty_split_is_refused_with_its_name_share_and_size():
    tiny = Splits(fractions=(("most", 1 - 1e-8), ("none", 1e-8)))
    with pytest.raises(ValueError, match=r"split 'none' .* gave 0 problems .* share is 1e-08, and it holds 0 "):
        Suite(task=SMALL, splits=tiny).stream("none")[0]
    with pytest.raises(ValueError, match="1 distinct problems asked of split 'none', which holds 0;"):
        Suite(task=SMALL, splits=tiny).distinct("none", 1)
    never = Splits(held_out=(("never", Never()),))
    with pytest.raises(ValueError, match=r"split 'never' .* whose predicate hardly ever holds"):
        Suite(task=TASK, splits=never).stream("never")[0]


@pytest.mark.parametrize(
    ("fractions", "message"),
    [
        ((), "empty"),
        ((("a", 0.5), ("a", 0.5)), "'a' more than once"),
        ((("a", 1.0), ("b", 0.0)), "gives 'b' the share 0.0"),
        ((("a", 1.5), ("b", -0.5)), "gives 'b' the share -0.5"),
        ((("a", 0.5), ("b", float("nan"))), "gives 'b' the share nan"),
        ((("a", 0.5), ("b", 0.4)), "sum to 0.9"),
        (((" ", 1.0),), "empty name"),
    ],
)
def test_impossible_splits_are_refused(fractions, message):
    with pytest.raises(ValueError, match=message):
        Splits(fractions=fractions)


def test_a_held_out_split_needs_a_name_of_its_own():
    with pytest.raises(ValueError, match="'train' more than once"):
        Splits(held_out=(("train", Never()),))


def test_an_unknown_split_is_refused_with_the_names_that_exist():
    suite = Suite(task=TASK)
    for ask in (suite.stream, lambda split: suite.distinct(split, 1), suite.capacity):
        with pytest.raises(ValueError, match="no split 'tset'; these are the splits: train, validation, test"):
            ask("tset")


def test_ten_equal_shares_sum_to_one():
    assert len(Splits(fractions=tuple((f"part{i}", 0.1) for i in range(10))).names) == 10


def test_a_digest_tells_contents_apart():
    suite = Suite(task=TASK)
    assert suite.digest("train", 50) == suite.digest("train", 50)
    others = [suite.digest("train", 51), suite.digest("test", 50), replace(suite, seed=1).digest("train", 50)]
    assert len({suite.digest("train", 50), *others}) == 4


def test_the_manifest_says_what_is_there_and_that_nothing_is_shared():
    suite = Suite(task=TASK, seed=2)
    manifest = suite.manifest({"train": 100, "test": 50, "validation": 0})
    assert json.loads(json.dumps(manifest)) == manifest
    assert manifest["counts"] == {"train": 100, "test": 50, "validation": 0}
    assert manifest["shared_keys"] == {
        "train": {"test": 0, "validation": 0},
        "test": {"train": 0, "validation": 0},
        "validation": {"train": 0, "test": 0},
    }
    assert manifest["digests"]["test"] == suite.digest("test", 50)
    assert manifest["capacities"]["test"] == suite.capacity("test")
    assert manifest["task_capacity"] == 2592
    assert manifest["mean_floor"] == {"train": pytest.approx(1 / 12), "test": pytest.approx(1 / 12), "validation": None}
    assert "no symmetry" in manifest["keys"]


def test_a_manifest_does_not_walk_a_large_space(monkeypatch):
    # Countdown with four numbers can be listed, all 338,497 problems: that would take longer than a small export.
    large = levels("countdown")["hard"]
    monkeypatch.setattr(type(large), "enumerate", lambda _: pytest.fail("the space was walked"))
    manifest = Suite(task=large).manifest({"train": 10})
    assert manifest["capacities"] == {"train": None}
    assert manifest["task_capacity"] == 338_497
