"""Tests of a mean against a band, over seeds: Student's t decides, sign flips confirm, Holm corrects.

The unit of evidence is the seed: one paired effect per seed, never one per problem or rollout, which would count the
same training run many times. Student's t and Holm come from SciPy and statsmodels.

Two nulls per claim, each tested at ``ALPHA`` one-sided at each end of the band (low, high):

* "the mean is outside" is rejected when the mean is significantly above ``low`` *and* below ``high``: p is the larger
  of the two one-sided p values (two one-sided tests, Schuirmann 1987).
* "the mean is inside" is rejected when the mean is significantly below ``low`` *or* above ``high``: p is the smaller.

So without correction a claim is supported if its 95 % interval lies inside the band, and refuted if it lies outside.

Student's t assumes effects that are roughly normal over seeds. Where they are not, few seeds err more often than the
level says: about twice as often for uniform effects and three seeds. The sign-flip p stands beside it for that reason.

Seeds that agree exactly (a spread of at most ``SAME`` relative to their size: rounding) have no variance to estimate,
but they are no proof: an effect that takes one of two values with equal chance (a run takes off or does not) gives n
equal seeds by luck. The exact sign-flip p then decides: 2^-n on one side of the point and 1 elsewhere, the point
included. So three equal seeds decide nothing, six decide one claim. The interval is the point itself.

No test here guards against rare exceptions: seeds that agree say nothing of the one run in ten that would not. And
with a spread, Student's t decides: of such a two-valued effect it trusts six equal seeds of seven (wrong 1 time in 16)
and seven of eight (9 in 256), where sign flips would not. The report prints both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from statsmodels.stats.multitest import multipletests

from testbeds.streams import stream

ALPHA = 0.025
"""Level of a one-sided test, so that an interval with both ends has 95 %."""
LEVEL = 1.0 - 2.0 * ALPHA
SAME = 1e-12  # far above rounding of a weighted sum of accuracies, far below the effect of one rollout in a million
EXACT_SEEDS = 16  # 2^16 sign patterns take milliseconds; beyond that, a keyed sample of as many
SAMPLED_PATTERNS = 2**EXACT_SEEDS

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BandTest:
    """p values of the two nulls; arrays of the leading shape of the values that were tested."""

    inside: Floats
    """p against "the mean is outside the band": small supports."""
    outside: Floats
    """p against "the mean is inside the band": small refutes."""


def mean_interval(values: ArrayLike) -> tuple[float, float]:
    """Student 95 % confidence interval of the mean of at least two values."""
    values_N = _seed_values(values)
    if bool(_constant(values_N)):
        return float(values_N[0]), float(values_N[0])
    with np.errstate(over="ignore"):  # SciPy divides by the mean to warn of cancellation, and a mean may be 1e-313
        interval = stats.ttest_1samp(values_N, 0.0).confidence_interval(LEVEL)
    return float(interval.low), float(interval.high)


def band_test(values: ArrayLike, low: float | None, high: float | None) -> BandTest:
    """Student t p values of a mean against a band; the last axis of ``values`` is the seed."""
    values_SN = _seed_values(values)
    above = [] if low is None else [_p_greater(values_SN, low)]
    below = [] if high is None else [_p_greater(-values_SN, -high)]
    not_above = [] if low is None else [_p_greater(-values_SN, -low)]
    not_below = [] if high is None else [_p_greater(values_SN, high)]
    return BandTest(
        inside=np.max(np.stack(above + below), axis=0), outside=np.min(np.stack(not_above + not_below), axis=0)
    )


def sign_flip_test(values: ArrayLike, low: float | None, high: float | None) -> BandTest:
    """Sign-flip permutation p values of a mean against a band, for one set of seeds.

    Exact up to ``EXACT_SEEDS`` seeds, from a keyed sample of ``SAMPLED_PATTERNS`` sign patterns beyond. Needs symmetry
    of the effect about its mean instead of a normal law. The smallest p that n seeds can give is ``least_p(n)``, so it
    confirms or casts doubt; with fewer than six seeds it could never decide at ``ALPHA``.
    """
    values_N = _seed_values(values)
    inside = [] if low is None else [_sign_flip_p_greater(values_N, low)]
    inside += [] if high is None else [_sign_flip_p_greater(-values_N, -high)]
    outside = [] if low is None else [_sign_flip_p_greater(-values_N, -low)]
    outside += [] if high is None else [_sign_flip_p_greater(values_N, high)]
    return BandTest(inside=np.asarray(max(inside)), outside=np.asarray(min(outside)))


def least_p(seeds: int) -> float:
    """The smallest p that sign flips of so many seeds can give: 2^-n, and where they are sampled one in the sample."""
    return 0.5**seeds if seeds <= EXACT_SEEDS else 1.0 / (SAMPLED_PATTERNS + 1)


def agree(values: ArrayLike) -> bool:
    """Whether all seeds have the same value up to rounding, so that there is no variance to judge by."""
    return bool(_constant(_seed_values(values)))


def holm(p_values: ArrayLike) -> Floats:
    """Holm-adjusted p values: comparing them with ``ALPHA`` keeps the chance of any false rejection under ``ALPHA``."""
    return np.asarray(multipletests(np.asarray(p_values, dtype=np.float64), alpha=ALPHA, method="holm")[1])


def _p_greater(values_SN: Floats, bound: float) -> Floats:
    """One-sided p against "the mean is at most ``bound``", for each leading index."""
    above = values_SN[..., 0] - bound > SAME * np.maximum(1.0, abs(bound))
    p = np.where(above, 0.5 ** values_SN.shape[-1], 1.0)  # of equal values, only the pattern without a flip is as large
    varied = ~_constant(values_SN)
    if varied.any():
        with np.errstate(over="ignore"):  # as above
            p[varied] = stats.ttest_1samp(values_SN[varied], bound, axis=-1, alternative="greater").pvalue
    return np.asarray(p)


def _sign_flip_p_greater(values_N: Floats, bound: float) -> float:
    """Share of sign patterns whose sum of ``values - bound`` is as large as the observed one."""
    excess_N = values_N - bound
    if values_N.size > EXACT_SEEDS:
        return _sampled_p_greater(excess_N)
    sums = np.zeros(1)
    for excess in excess_N:
        sums = np.concatenate((sums + excess, sums - excess))
    rounding = SAME * max(1.0, float(np.abs(excess_N).sum()))
    return float(np.mean(sums >= sums[0] - rounding))  # the first pattern flips nothing


def _sampled_p_greater(excess_N: Floats) -> float:
    result = stats.permutation_test(
        (excess_N,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=SAMPLED_PATTERNS,
        batch=SAMPLED_PATTERNS // 16,  # keeps the patterns of many seeds within some ten MB
        alternative="greater",
        rng=stream("statistics", "sign flip", excess_N.size),
    )
    return float(result.pvalue)


def _constant(values_SN: Floats) -> NDArray[np.bool_]:
    size = np.maximum(1.0, np.max(np.abs(values_SN), axis=-1))
    return np.asarray(np.ptp(values_SN, axis=-1) <= SAME * size)


def _seed_values(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] < 2:
        raise ValueError(f"a test over seeds needs at least 2 values per effect, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("a test over seeds needs finite values; drop the seeds that lack a measure first")
    return array
