"""The tests over seeds: worked numbers, the rates at which they err, and their exact edge cases."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test

from experiments.statistics import ALPHA, agree, band_test, holm, least_p, mean_interval, sign_flip_test
from testbeds.streams import stream

pytestmark = pytest.mark.usefixtures("quick_holm")

EXPERIMENTS = 2000
CLAIMS = 4
# Three standard deviations of a rate of ALPHA over 2000 experiments: 3 sqrt(.025 x .975 / 2000) = .0105.
SLACK = 3 * (ALPHA * (1 - ALPHA) / EXPERIMENTS) ** 0.5


def family_rate(p_SC):
    """Share of experiments in which Holm rejects at least one of their claims."""
    return float(np.mean([holm(p_C).min() <= ALPHA for p_C in p_SC]))


def simulated(kind, seeds):
    """Standardised noise of 2000 experiments with 4 claims each."""
    rng = stream("test", "nulls", kind, seeds)
    shape = (EXPERIMENTS, CLAIMS, seeds)
    return rng.normal(size=shape) if kind == "normal" else rng.uniform(-(3**0.5), 3**0.5, size=shape)


def test_the_interval_is_that_of_the_exploratory_interaction():
    # an exploratory study of four seeds: contrasts .62 .74 .70 .34 have mean .60 and 95 % interval .31 to .89.
    low, high = mean_interval([0.62, 0.74, 0.70, 0.34])
    assert (round(low, 2), round(high, 2)) == (0.31, 0.89)


def test_a_mean_next_to_zero_is_a_mean_like_any_other():
    low, high = mean_interval([1.0, -1.0, 2.2250738585e-313])
    assert low == pytest.approx(
        -2.484, abs=1e-3
    )  # 1 / sqrt(3) times the 97.5 % quantile of 2 degrees of freedom, 4.303
    assert high == pytest.approx(2.484, abs=1e-3)
    assert band_test([1.0, -1.0, 2.2250738585e-313], 0.0, None).inside == pytest.approx(0.5)


def test_a_one_sided_p_is_that_of_students_t():
    # Mean 2, standard deviation 1, n = 3: t = 2 sqrt(3) = 3.4641 with 2 degrees of freedom, whose upper tail is
    # (1 - t / sqrt(t^2 + 2)) / 2 = (1 - 3.4641 / sqrt(14)) / 2 = 0.03709.
    test = band_test([1.0, 2.0, 3.0], 0.0, None)
    assert test.inside == pytest.approx(0.03709, abs=1e-5)
    assert test.outside == pytest.approx(1 - 0.03709, abs=1e-5)


def test_a_band_with_two_ends_takes_the_worse_side_for_and_the_better_side_against():
    values = [1.0, 2.0, 3.0]
    low, high = band_test(values, 0.0, None), band_test(values, None, 2.5)
    both = band_test(values, 0.0, 2.5)
    assert both.inside == max(low.inside, high.inside)
    assert both.outside == min(low.outside, high.outside)


@settings(derandomize=True, max_examples=60)
@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=8),
    st.floats(-0.9, 0.9),
    st.floats(0.01, 1),
)
def test_one_claim_is_decided_as_its_interval_lies(values, low, width):
    high = low + width
    left, right = mean_interval(values)
    test = band_test(values, low, high)
    margins = np.abs([left - low, left - high, right - low, right - high])
    if margins.min() < 1e-9 or agree(values):  # on the edge, rounding decides; equal seeds have a rule of their own
        return
    assert (test.inside <= ALPHA) == (low < left and right < high)
    assert (test.outside <= ALPHA) == (right < low or left > high)


@pytest.mark.parametrize("seeds", [3, 8])
def test_nulls_at_the_end_of_the_band_are_supported_at_most_at_the_level(seeds):
    # Every mean is exactly 0.2, and the claims say "above 0.2": each support is an error, and this is the worst case.
    rate = family_rate(band_test(0.2 + 0.1 * simulated("normal", seeds), 0.2, None).inside)
    assert 0.005 < rate < ALPHA + SLACK


def test_uniform_noise_over_three_seeds_errs_about_twice_as_often_as_the_module_says():
    rate = family_rate(band_test(0.2 + 0.1 * simulated("uniform", 3), 0.2, None).inside)
    assert ALPHA + SLACK < rate < 2 * ALPHA + SLACK


@pytest.mark.parametrize("seeds", [2, 3, 4, 5, 6])
def test_an_effect_with_two_values_is_supported_by_luck_at_most_at_the_level(seeds):
    # Half of all runs reach 1, half stay at 0, so "above 0.5" is false. All seeds reach 1 with chance 2^-n, and then
    # have no variance; that alone must not decide. Every pattern of seeds has the same chance, so the rate is exact.
    taken_off = np.array(list(product((0.0, 1.0), repeat=seeds)))
    assert np.mean(band_test(taken_off, 0.5, None).inside <= ALPHA) <= ALPHA
    assert sign_flip_test([1.0] * seeds, 0.5, None).inside == band_test([1.0] * seeds, 0.5, None).inside == 0.5**seeds


@pytest.mark.parametrize("seeds", [7, 8])
def test_all_but_one_equal_seed_err_as_often_as_the_module_says(seeds):
    # Of 2^n patterns, the one of equal seeds and the n with one exception are supported: Student's t trusts the rest.
    taken_off = np.array(list(product((0.0, 1.0), repeat=seeds)))
    assert np.mean(band_test(taken_off, 0.5, None).inside <= ALPHA) == (1 + seeds) / 2**seeds


@pytest.mark.parametrize(("seeds", "parts"), [(3, 2), (3, 4), (3, 8), (4, 2), (4, 4), (4, 8), (5, 2), (5, 4), (5, 8)])
def test_rates_of_a_few_problems_with_their_ties_are_supported_at_most_at_the_level(seeds, parts):
    # Each seed solves k of ``parts`` problems, k binomial around a half, so "above 0.5" is false. Exact by enumeration.
    weights = np.array([comb(parts, k) for k in range(parts + 1)]) / 2**parts
    solved = np.array(list(product(range(parts + 1), repeat=seeds)))
    chance = weights[solved].prod(axis=1)
    rate = chance[band_test(solved / parts, 0.5, None).inside <= ALPHA].sum()
    assert rate <= ALPHA


def test_true_claims_at_the_end_of_the_band_are_refuted_at_most_at_the_level():
    rate = family_rate(band_test(0.2 + 0.1 * simulated("normal", 5), 0.2, None).outside)
    assert 0.005 < rate < ALPHA + SLACK


def test_false_equivalence_is_supported_at_most_at_the_level():
    # Means on the upper end of "between -0.03 and 0.03", noise small against the band.
    rate = family_rate(band_test(0.03 + 0.01 * simulated("normal", 5), -0.03, 0.03).inside)
    assert 0.005 < rate < ALPHA + SLACK


def test_holm_is_what_keeps_the_rate_over_several_claims():
    # Without it, one of 4 claims would be wrong in 1 - .975^4 = 9.6 % of experiments.
    p_SC = band_test(simulated("normal", 5), 0.0, None).inside
    assert float(np.mean(p_SC.min(axis=1) <= ALPHA)) == pytest.approx(0.096, abs=0.02)


def test_a_planted_effect_is_found_in_nearly_every_experiment():
    # The exploratory effect .60 with deviation .18, claimed to be above .2, at the 8 seeds of the full scale: t is
    # about .4 / (.18 / sqrt 8) = 6.3 where Holm's strictest step asks for 3.4 with 7 degrees of freedom.
    p_SC = band_test(0.6 + 0.18 * simulated("normal", 8), 0.2, None).inside
    found = np.mean([holm(p_C).max() <= ALPHA for p_C in p_SC])
    assert found > 0.9


def test_holm_multiplies_by_the_number_of_claims_that_are_left():
    # Sorted .01 .03 .04: 3 x .01 = .03, 2 x .03 = .06, 1 x .04 raised to .06.
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_equal_seeds_have_a_point_for_an_interval():
    assert mean_interval([0.3, 0.3, 0.3]) == (0.3, 0.3)
    assert mean_interval([0.1 + 0.2, 0.3]) == pytest.approx((0.3, 0.3))  # 0.1 + 0.2 is not 0.3 in binary


@pytest.mark.parametrize(
    ("value", "inside", "outside"),
    [(0.3, 1 / 8, 1.0), (0.1, 1.0, 1 / 8), (0.2, 1.0, 1.0), (0.1 + 0.1, 1.0, 1.0), (0.0, 1.0, 1 / 8)],
)
def test_equal_seeds_have_the_p_of_sign_flips_and_none_on_the_end(value, inside, outside):
    test = band_test([value] * 3, 0.2, None)
    assert (test.inside, test.outside) == (inside, outside)


def test_sign_flips_are_enumerated():
    # Of the 8 signed sums of 3, 1, 2, two are at least 3 - 1 + 2 = 4: itself and 3 + 1 + 2. So p = 2/8.
    assert sign_flip_test([3.0, -1.0, 2.0], 0.0, None).inside == 0.25
    # All four above the end: only the observed pattern is as large, p = 1/16; against it every pattern counts.
    all_above = sign_flip_test([0.3, 0.4, 0.5, 0.6], 0.2, None)
    assert (all_above.inside, all_above.outside) == (1 / 16, 1.0)


def test_sixteen_seeds_are_enumerated_and_more_are_sampled():
    # All above the end: one pattern in 2^16 is as large. A sample of 2^16 patterns and the observed one give at least
    # 1 / (2^16 + 1), where the exact p would be 2^-40.
    assert sign_flip_test([1.0 + i / 100 for i in range(16)], 0.0, None).inside == 2.0**-16 == least_p(16)
    assert sign_flip_test([1.0 + i / 100 for i in range(40)], 0.0, None).inside == 1 / (2**16 + 1) == least_p(40)


def test_enumerated_flips_are_those_of_scipy():
    values = stream("test", "flips", 9).normal(size=9)
    scipy = permutation_test((values,), np.mean, permutation_type="samples", vectorized=True, alternative="greater")
    assert sign_flip_test(values, 0.0, None).inside == scipy.pvalue


def test_many_seeds_are_flipped_by_a_keyed_sample():
    values = 0.1 + stream("test", "flips").normal(size=20)
    first, second = sign_flip_test(values, 0.0, 5.0), sign_flip_test(values, 0.0, 5.0)
    assert first.inside == second.inside
    assert 0.0 < first.inside < 1.0


@pytest.mark.parametrize(("values", "message"), [([0.1], "at least 2 values"), ([0.1, float("nan")], "finite")])
def test_what_cannot_be_tested_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        band_test(values, 0.0, None)
    with pytest.raises(ValueError, match=message):
        mean_interval(values)
