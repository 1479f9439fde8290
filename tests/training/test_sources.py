"""Text sources: pure functions of seed and step, nested sets, every demonstration once per epoch."""

from collections import Counter
from dataclasses import replace

import pytest

from testbeds import EXPLICIT, IMPLICIT, Splits, Suite
from testbeds.latent_modules import LatentModules
from training import Demonstrations, FreshText, Styles

SUITE = Suite(task=LatentModules(world=1, depth=3), splits=Splits(), seed=5)


def test_equal_seeds_and_steps_give_equal_text_in_any_order():
    source = FreshText(suite=SUITE)
    late = source.texts(1, 7, 8)
    source.texts(1, 0, 8)
    assert source.texts(1, 7, 8) == late
    assert source.texts(2, 7, 8) != late
    assert source.texts(1, 8, 8) != late


def test_neighbouring_seeds_are_not_shifted_copies():
    prompts = {seed: [text.problem.prompt for text in FreshText(suite=SUITE).texts(seed, 0, 64)] for seed in (1, 2)}
    # 12 * 6^3 = 2592 prompts: two independent sets of 64 share 1.6 on average, a shifted copy 63
    assert len(set(prompts[1]) & set(prompts[2])) < 10


def test_fresh_text_comes_from_its_split_and_verifies():
    for text in FreshText(suite=SUITE).texts(0, 0, 32):
        assert SUITE.splits.of(text.problem) == "train"
        assert SUITE.task.verify(text.problem, text.completion).correct


def test_styles_come_at_their_weights():
    styles = Styles(styles=(EXPLICIT, IMPLICIT), weights=(0.25, 0.75))
    texts = FreshText(suite=SUITE, styles=styles).texts(0, 0, 400)
    explicit = sum(len(text.completion.split()) == 3 for text in texts)
    assert 70 <= explicit <= 130  # binomial(400, .25): mean 100, deviation 8.7; 3.4 deviations


@pytest.mark.parametrize(("weights", "count"), [((0.5, 0.6), 2), ((1.0,), 2), ((-0.5, 1.5), 2), ((), 0)])
def test_weights_that_are_no_distribution_are_refused(weights, count):
    with pytest.raises(ValueError, match="Styles"):
        Styles(styles=(EXPLICIT, IMPLICIT)[:count], weights=weights)


def test_a_smaller_set_of_demonstrations_is_the_beginning_of_a_larger_one():
    small = Demonstrations(suite=SUITE, count=4).all_texts()
    large = Demonstrations(suite=SUITE, count=16).all_texts()
    assert large[:4] == small
    assert len({text.problem.key for text in large}) == 16


def test_every_demonstration_comes_once_per_epoch_whatever_the_batch():
    source = Demonstrations(suite=SUITE, count=6)
    seen = [text.problem.key for step in range(5) for text in source.texts(9, step, 12)]  # 60 texts, 10 epochs
    assert set(Counter(seen).values()) == {10}
    for epoch in range(10):
        assert len(set(seen[6 * epoch : 6 * epoch + 6])) == 6
    ragged = [text.problem.key for step in range(15) for text in source.texts(9, step, 4)]
    assert ragged == seen


def test_epochs_have_different_orders():
    source = Demonstrations(suite=SUITE, count=8)
    orders = {tuple(text.problem.key for text in source.texts(3, epoch, 8)) for epoch in range(6)}
    assert len(orders) == 6


def test_another_suite_seed_gives_other_demonstrations():
    other = Demonstrations(suite=replace(SUITE, seed=6), count=16).all_texts()
    mine = Demonstrations(suite=SUITE, count=16).all_texts()
    assert {text.problem.key for text in other} != {text.problem.key for text in mine}


def test_no_demonstrations_is_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Demonstrations(suite=SUITE, count=0)


def test_what_a_cost_is_estimated_from_is_the_beginning_of_the_demonstrations(monkeypatch):
    assert Demonstrations(suite=SUITE, count=4).sample(0, 256) == Demonstrations(suite=SUITE, count=4).all_texts()
    written = []
    demonstrate = LatentModules.demonstrate
    monkeypatch.setattr(LatentModules, "demonstrate", lambda *args: written.append(1) or demonstrate(*args))
    Demonstrations(suite=SUITE, count=1000).sample(0, 16)
    assert len(written) == 16  # and not a thousand
    assert FreshText(suite=SUITE).sample(3, 8) == FreshText(suite=SUITE).texts(3, 0, 8)
