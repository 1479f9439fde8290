"""Estimators against brute force over all subsets."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.metrics import above_floor, floor_at_k, mixed_share, mixed_share_at, pass_at_k


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_one(outcomes, data):
    k = data.draw(st.integers(1, len(outcomes)))
    subsets = list(combinations(outcomes, k))
    assert pass_at_k(len(outcomes), sum(outcomes), k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


@pytest.mark.parametrize(
    ("samples", "correct", "k", "expected"), [(4, 1, 2, 0.5), (4, 0, 2, 0), (4, 3, 2, 1), (8, 2, 4, 0.785714)]
)
def test_worked_numbers_of_pass_at_k(samples, correct, k, expected):
    assert pass_at_k(samples, correct, k) == pytest.approx(expected, abs=1e-6)


def test_one_correct_of_four_always_passes_at_four():
    assert pass_at_k(4, 1, 4) == 1  # bootstrapping with replacement would say 0.684


def test_large_counts_neither_overflow_nor_round():
    assert pass_at_k(10_000, 1, 5_000) == pytest.approx(0.5)


@pytest.mark.parametrize(("samples", "correct", "k"), [(4, 1, 5), (4, 1, 0), (4, 5, 1), (4, -1, 1)])
def test_impossible_counts_are_refused(samples, correct, k):
    with pytest.raises(ValueError, match="draw more samples|between 0 and samples"):
        pass_at_k(samples, correct, k)


def test_the_floor_maps_to_zero_and_perfection_to_one():
    assert above_floor(1 / 12, 1 / 12) == 0
    assert above_floor(1.0, 1 / 12) == 1
    assert above_floor(0.0, 0.5) == -1
    with pytest.raises(ValueError, match="nothing can be measured"):
        above_floor(1.0, 1.0)


def test_the_floor_of_pass_at_k_is_k_independent_guesses():
    assert floor_at_k(0.5, 2) == 0.75
    assert floor_at_k(1 / 12, 1) == pytest.approx(1 / 12)


def test_mixed_groups_of_pure_guessing():
    assert mixed_share_at(0.5, 2) == 0.5
    assert mixed_share_at(0.0, 8) == 0
    assert mixed_share_at(1.0, 8) == 0
    assert mixed_share([[True, False], [True, True], [False, False], [False, True]]) == 0.5
