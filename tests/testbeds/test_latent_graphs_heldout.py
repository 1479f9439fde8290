"""Held-out structure and coverage of latent graphs."""

import itertools
from collections import Counter

import pytest

from testbeds import Splits, Suite, stream
from testbeds.latent_graphs import (
    HoldsPair,
    HoldsRouting,
    HoldsTriple,
    LatentGraphs,
    coverage,
    heldout_pairs,
    heldout_routing_pairs,
    heldout_routings,
    heldout_triples,
)
from testbeds.latent_modules import LatentModules

TASK = LatentGraphs(world=1, skills=4, routings=4, shape="tree", modules=4, depth=3, width=2)


def by_prompt(prompt):
    """Modules, arguments and levels as a reader of the prompt finds them."""
    lines = dict(line.split(" = ") for line in prompt.split(" ; ")[:-1])
    taken = {name: line.split()[1:] for name, line in lines.items() if name[0] == "y"}
    levels = {}
    for name, arguments in taken.items():
        levels[name] = 1 + max([levels[argument] for argument in arguments if argument[0] == "y"], default=0)
    uses = Counter(argument for arguments in taken.values() for argument in arguments)
    return lines, taken, levels, uses


def brute_force(problems):
    """Modules, pairs and triples as a reader of the prompts counts them."""
    modules, pairs, triples = Counter(), Counter(), Counter()
    for problem in problems:
        lines, taken, _, _ = by_prompt(problem.prompt)
        of = {name: lines[name].split()[0] for name in taken}
        modules.update(of.values())
        for name, arguments in taken.items():
            for argument in arguments:
                if argument in of:
                    pairs[of[argument], of[name]] += 1
                    triples.update((of[a], of[argument], of[name]) for a in taken[argument] if a in of)
    return modules, pairs, triples


def test_coverage_is_what_a_reader_of_the_prompts_counts():
    problems = TASK.generate(stream("coverage"), 300)
    modules, pairs, triples = brute_force(problems)
    covered = coverage(problems)
    assert covered.modules == tuple(sorted(modules.items()))
    assert covered.pairs == tuple(sorted(pairs.items()))
    assert covered.triples == tuple(sorted(triples.items()))
    chains = LatentModules(world=0).generate(stream("chains"), 50)
    assert sum(times for _, times in coverage([*chains, *problems]).modules) == 50 * 3 + sum(modules.values())


@pytest.mark.parametrize("which", ["pairs", "triples", "routings", "routing pairs"])
def test_held_out_structure_is_unseen_in_training_and_seen_where_it_is_held_out(which):
    count = 2
    listed, predicate = {
        "pairs": (heldout_pairs, lambda parts: HoldsPair(pairs=parts)),
        "triples": (heldout_triples, lambda parts: HoldsTriple(triples=parts)),
        "routings": (heldout_routings, lambda parts: HoldsRouting(modules=parts)),
        "routing pairs": (heldout_routing_pairs, lambda parts: HoldsRouting(patterns=parts)),
    }[which]
    held = listed(TASK, count)
    assert len(set(held)) == count
    assert held[:1] == listed(TASK, 1)
    splits = Splits(fractions=(("train", 1.0),), held_out=(("unseen", predicate(held)),))
    suite = Suite(task=TASK, splits=splits)
    train, unseen = (brute_force(suite.stream(split)[:size]) for split, size in (("train", 1200), ("unseen", 100)))
    where = {"pairs": 1, "triples": 2, "routings": 0, "routing pairs": 1}[which]
    assert not set(held) & set(train[where])
    assert set(held) <= set(unseen[where])
    if which == "triples":
        assert {pair for triple in held for pair in itertools.pairwise(triple)} <= set(train[1])
    elif which != "routings":
        assert set(train[0]) == set(TASK.names)


def test_more_than_can_be_held_out_is_refused_with_the_number_that_can():
    with pytest.raises(ValueError, match=r"count=10000 triples of .* of which \d+ can be held out"):
        heldout_triples(TASK, 10_000)
    with pytest.raises(ValueError, match="count=0"):
        heldout_pairs(TASK, 0)
    with pytest.raises(ValueError, match="count=4 routings"):
        heldout_routings(TASK, 4)
    assert heldout_triples(TASK, 3, 0) != heldout_triples(TASK, 3, 1)
