"""Judgement: claims and results in, findings out, each with one sentence that carries its numbers.

A claim is judged when every seed of the scale is in: deciding on the first seeds that happen to be finished, and again
on more, would let chance choose the moment. A missing measure, a single seed, a failed check or training problems in an
evaluation make it inconclusive, and the reason says which.

Holm corrects over all claims of the experiment, once for support and once for refutation, so the chance that any claim
is wrongly supported is at most 2.5 %, and the same for refuted (per end of a band with two ends). A claim that cannot
be tested stays in the family with p = 1: leaving arms out never makes the others easier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.claims import Check, CheckFinding, Claim, Finding, Measure, Outcome
from experiments.statistics import ALPHA, band_test, holm, mean_interval, sign_flip_test

MIN_SEEDS = 2  # one seed has no variance to judge by

Read = Callable[[Measure, int], float | None]
"""(measure, seed) -> its value; None where the result is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All findings of an experiment."""

    findings: tuple[Finding, ...]
    """One per claim, in the order of the declaration."""
    checks: tuple[CheckFinding, ...]
    """One per check, in the order of the declaration."""
    void: str | None
    """Why no claim could be judged; None if they could."""


def judge(
    claims: Sequence[Claim], checks: Sequence[Check], seeds: Sequence[int], read: Read, *, leak: str | None = None
) -> Judgement:
    """The findings of an experiment over ``seeds``.

    Args:
        claims: the predictions.
        checks: what must hold in every seed.
        seeds: all seeds that the scale asks for, present or not.
        read: the results.
        leak: a sentence on training problems found in an evaluation, which voids every claim; None if there are none.
    """
    checked = tuple(judge_check(check, seeds, read) for check in checks)
    void = _void(checked, leak)
    measured = [_measured(claim, seeds, read) for claim in claims]
    inside = holm([1.0 if each.raw_p_inside is None else each.raw_p_inside for each in measured])
    outside = holm([1.0 if each.raw_p_outside is None else each.raw_p_outside for each in measured])
    findings = []
    for each, p_inside, p_outside in zip(measured, inside, outside, strict=True):
        tested = each.raw_p_inside is not None
        finding = replace(each, p_inside=float(p_inside), p_outside=float(p_outside)) if tested else each
        outcome, reason = _decide(finding, seeds, void)
        findings.append(replace(finding, outcome=outcome, reason=reason))
    return Judgement(findings=tuple(findings), checks=checked, void=void)


def judge_check(check: Check, seeds: Sequence[int], read: Read) -> CheckFinding:
    """The outcome of one check: it fails with the first seed that fails, and is open while a seed is missing."""
    values = {seed: value for seed in seeds if (value := read(check.measure, seed)) is not None}
    failed = {seed: value for seed, value in values.items() if not check.holds(value)}
    missing = [seed for seed in seeds if seed not in values]
    band = describe_band(check.low, check.high, closed=True)
    holds: bool | None
    if failed:
        listed = ", ".join(f"{value:.3f} in seed {seed}" for seed, value in failed.items())
        holds, reason = False, f"{check.measure} is {listed}, where {band} was required."
    elif missing:
        holds, reason = None, f"{check.measure} is missing in {_seeds(missing)}."
    else:
        lowest, highest = min(values.values()), max(values.values())
        holds, reason = True, f"{check.measure} is {lowest:.3f} to {highest:.3f} over {len(values)} seeds; {band}."
    return CheckFinding(check=check, holds=holds, per_seed=tuple(values.items()), reason=reason)


def describe_band(low: float | None, high: float | None, *, closed: bool = False) -> str:
    """A band in words, such as ``above 0.2`` or ``between -0.03 and 0.03``."""
    if low is not None and high is not None:
        return f"between {low:g} and {high:g}"
    if low is not None:
        return f"at least {low:g}" if closed else f"above {low:g}"
    return f"at most {high:g}" if closed else f"below {high:g}"


def _measured(claim: Claim, seeds: Sequence[int], read: Read) -> Finding:
    """The claim's numbers without a decision."""
    effects = {seed: effect for seed in seeds if (effect := _effect(claim, seed, read)) is not None}
    finding = Finding(
        claim=claim,
        outcome="inconclusive",
        reason="not judged",
        per_seed=tuple(effects.items()),
        missing=tuple(seed for seed in seeds if seed not in effects),
        effect=math.fsum(effects.values()) / len(effects) if effects else None,
    )
    if len(effects) < MIN_SEEDS:
        return finding
    values = np.asarray(list(effects.values()))
    student = band_test(values, claim.low, claim.high)
    flips = sign_flip_test(values, claim.low, claim.high)
    return replace(
        finding,
        interval=mean_interval(values),
        raw_p_inside=float(student.inside) if not finding.missing else None,
        raw_p_outside=float(student.outside) if not finding.missing else None,
        sign_flip_inside=float(flips.inside),
        sign_flip_outside=float(flips.outside),
    )


def _effect(claim: Claim, seed: int, read: Read) -> float | None:
    values = {measure: read(measure, seed) for measure in claim.effect.measures}
    known = {measure: value for measure, value in values.items() if value is not None}
    return claim.effect.value(known.__getitem__) if len(known) == len(values) else None


def _void(checks: Sequence[CheckFinding], leak: str | None) -> str | None:
    if leak is not None:
        return leak
    for finding in checks:
        if finding.holds is False:
            return f"the check {finding.check.name!r} failed: {finding.reason.removesuffix('.')}"
    for finding in checks:
        if finding.holds is None:
            return f"the check {finding.check.name!r} is open: {finding.reason.removesuffix('.')}"
    return None


def _decide(finding: Finding, seeds: Sequence[int], void: str | None) -> tuple[Outcome, str]:
    if void is not None:
        return "inconclusive", f"Void, since {void}."
    if finding.missing:
        return (
            "inconclusive",
            f"Not judged: {finding.n} of {len(seeds)} seeds are in; {_seeds(finding.missing)} missing.",
        )
    if finding.n < MIN_SEEDS or finding.p_inside is None or finding.p_outside is None:
        return "inconclusive", f"Not judged: {finding.n} seed has no variance to judge by; run at least {MIN_SEEDS}."
    band = describe_band(finding.claim.low, finding.claim.high)
    if finding.p_inside <= ALPHA:
        return "supported", f"{_numbers(finding)}; predicted {band} (Holm {format_p(finding.p_inside)})."
    if finding.p_outside <= ALPHA:
        return "refuted", f"{_numbers(finding)}; predicted {band} (Holm {format_p(finding.p_outside)} against it)."
    return "inconclusive", (
        f"{_numbers(finding)}; {n_seeds(finding.n)} cannot tell whether it is {band}"
        f" (Holm {format_p(finding.p_inside)} for it, {format_p(finding.p_outside)} against it)."
    )


def _numbers(finding: Finding) -> str:
    if finding.effect is None or finding.interval is None:
        raise ValueError(f"claim {finding.claim.name!r} was not measured, so it has no numbers to print")
    low, high = finding.interval
    if low == high:
        return f"The effect is {finding.effect:.3f} in each of {n_seeds(finding.n)}"
    return f"The mean effect is {finding.effect:.3f}, 95 % interval {low:.3f} to {high:.3f} over {n_seeds(finding.n)}"


def format_p(p: float) -> str:
    """A p value with two significant digits, such as ``p = 0.0035``; tiny ones as a bound."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def n_seeds(count: int) -> str:
    """A count of seeds in words."""
    return "1 seed" if count == 1 else f"{count} seeds"


def _seeds(seeds: Sequence[int]) -> str:
    return ("seed " if len(seeds) == 1 else "seeds ") + ", ".join(map(str, seeds))
