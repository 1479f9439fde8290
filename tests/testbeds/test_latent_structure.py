"""Held-out triples and routings of chains of latent modules, and what is counted."""

import itertools

import pytest

from testbeds import Problem, Splits, Suite
from testbeds.latent_modules import (
    Chain,
    HoldsPair,
    HoldsRouting,
    HoldsTriple,
    LatentModules,
    coverage,
    heldout_pairs,
    heldout_routing_pairs,
    heldout_routings,
    heldout_triples,
)


def problem(*, states: str, program: str = "", **fields) -> tuple[LatentModules, Problem]:
    """A problem with these states, input first, whatever its modules are."""
    written = tuple(states.split())
    names = tuple(program.split()) or ("m1",) * (len(written) - 1)
    task = LatentModules(world=0, width=len(written[0]), depth=len(names), **fields)
    return task, Problem(prompt="", key="", certificate=Chain(program=names, states=written))


def test_a_triple_is_held_by_programs_in_which_it_follows_in_order():
    holds = HoldsTriple(triples=(("m1", "m3", "m1"), ("m2", "m2", "m2")))
    programs = {"m1 m3 m1": True, "m4 m1 m3 m1": True, "m1 m3 m2 m1": False, "m3 m1 m3": False, "m2 m2": False}
    for program, held in programs.items():
        states = " ".join("a" * (len(program.split()) + 1))
        assert holds(problem(states=states, program=program)[1]) == held
    assert not holds(Problem(prompt="", key="", certificate=None))


def test_held_out_triples_leave_every_pair_in_training_at_every_depth():
    task = LatentModules(world=0, skills=4, depth=3)
    most = 4 * (16 - 6)  # with each module in the middle, 16 pairs of neighbours less an edge cover of up to 2 * 4 - 2
    for count, salt in itertools.product((1, 10, most), (0, 1)):
        held = heldout_triples(task, count, salt)
        assert len(set(held)) == count
        assert held[:1] == heldout_triples(task, 1, salt)
        for depth in (3, 4, 5):
            seen = set()
            for program in itertools.product(task.names, repeat=depth):
                if not set(zip(program, program[1:], program[2:], strict=False)) & set(held):
                    seen |= set(itertools.pairwise(program))
            assert seen == set(itertools.product(task.names, task.names))
    assert heldout_triples(task, 5, 0) != heldout_triples(task, 5, 1)
    with pytest.raises(ValueError, match=f"between 1 and {most} triples of 4 modules can be held out, got count=41"):
        heldout_triples(task, 41)
    with pytest.raises(ValueError, match="programs of depth 2 have no triples"):
        heldout_triples(LatentModules(world=0, depth=2), 1)


def test_training_holds_no_held_out_triple_and_the_held_out_split_holds_each():
    task = LatentModules(world=0, skills=4, depth=4)
    held = heldout_triples(task, 12)
    splits = Splits(fractions=(("train", 1.0),), held_out=(("unseen", HoldsTriple(triples=held)),))
    suite = Suite(task=task, splits=splits)
    train, unseen = (coverage(suite.stream(split)[:1500]) for split in ("train", "unseen"))
    assert not {triple for triple, _ in train.triples} & set(held)
    assert set(held) <= {triple for triple, _ in unseen.triples}
    assert {pair for pair, _ in train.pairs} == set(itertools.product(task.names, task.names))


def test_held_out_routings_and_patterns_are_unseen_in_training():
    task = LatentModules(world=2, alphabet=4, skills=3, routings=4, width=2, depth=3)
    routes = {module.name for module in task.modules if module.kind == "routing"}
    held = heldout_routings(task, 3)
    assert set(held) < routes
    assert heldout_routings(task, 1) == held[:1]
    patterns = heldout_routing_pairs(task, 24)  # all there are: 2 * 3 * 4
    assert len(set(patterns)) == 24
    assert all((first in routes) != (second in routes) for first, second in patterns)
    for predicate, unseen in [(HoldsRouting(modules=held), set(held)), (HoldsRouting(patterns=patterns[:20]), None)]:
        suite = Suite(task=task, splits=Splits(fractions=(("train", 1.0),), held_out=(("unseen", predicate),)))
        covered = coverage(suite.stream("train")[:600])
        if unseen is None:
            assert not {pair for pair, _ in covered.pairs} & set(patterns[:20])
            assert {name for name, _ in covered.modules} == set(task.names)
        else:
            assert not {name for name, _ in covered.modules} & unseen
            shown = {name for name, _ in coverage(suite.stream("unseen")[:300]).modules}
            assert unseen <= shown
    for listed, count, message in [
        (heldout_routings, 4, "between 1 and 3 of the 4 routing modules"),
        (heldout_routing_pairs, 25, "between 1 and 24 pairs of a routing and a skill"),
    ]:
        with pytest.raises(ValueError, match=message):
            listed(task, count)


@pytest.mark.parametrize("listed", [heldout_pairs, heldout_triples, heldout_routings, heldout_routing_pairs])
@pytest.mark.parametrize("count", [True, 1.0, "1", None])
def test_a_count_that_is_no_whole_number_is_refused(listed, count):
    task = LatentModules(world=2, alphabet=4, skills=3, routings=4, width=2, depth=3)
    with pytest.raises(ValueError, match=f"can be held out, got count={count!r}"):
        listed(task, count)


def test_a_world_too_small_to_hold_anything_out_says_so():
    lonely = LatentModules(world=0, skills=1, depth=3)
    for listed in (heldout_pairs, heldout_triples, heldout_routings, heldout_routing_pairs):
        with pytest.raises(ValueError, match="take more modules"):
            listed(lonely, 1)


@pytest.mark.parametrize(
    ("predicate", "fields", "message"),
    [
        (HoldsPair, {"pairs": ()}, "needs one or more pairs"),
        (HoldsPair, {"pairs": (("m1",),)}, "needs one or more pairs"),
        (HoldsTriple, {"triples": (("m1", "m2"),)}, "needs one or more triples"),
        (HoldsTriple, {"triples": [("m1", "m2", "m3")]}, "needs one or more triples"),
        (HoldsRouting, {}, "one or more modules or patterns"),
        (HoldsRouting, {"modules": "m1"}, "must be a tuple of module names"),
        (HoldsRouting, {"patterns": ("m1", "m2")}, "needs one or more pairs"),
    ],
)
def test_predicates_that_could_never_hold_are_refused(predicate, fields, message):
    with pytest.raises(ValueError, match=message):
        predicate(**fields)


def test_coverage_counts_triples_too():
    instances = [problem(states="a a a a a", program="m1 m2 m1 m2")[1], problem(states="a a", program="m3")[1]]
    assert coverage(instances).triples == ((("m1", "m2", "m1"), 1), (("m2", "m1", "m2"), 1))
