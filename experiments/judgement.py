"""Judgement: claims and results in, findings out, each with one sentence that carries its numbers.

A claim is judged when every seed of the scale is in: deciding on the first seeds that happen to be finished, and again
on more, would let chance choose the moment. A missing measure, fewer than ``MIN_SEEDS`` seeds, a failed check or
training problems in an evaluation make it inconclusive, and the reason says which.

Holm corrects over all claims of the experiment, once for support and once for refutation, so the chance that any claim
is wrongly supported is at most 2.5 %, and the same for refuted (per end of a band with two ends). A claim that cannot
be tested stays in the family with p = 1: leaving arms out never makes the others easier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.claims import Check, CheckFinding, Claim, Finding, Measure, Outcome, Undefined
from experiments.statistics import ALPHA, agree, band_test, holm, least_p, mean_interval, sign_flip_test

MIN_SEEDS = 3  # one seed has no variance, and that of two is one difference: they agree or not by luck
SEEDS_FOR_INTERVAL = 2  # an interval over two seeds is wide, but it is one

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
    """Why no claim could be judged, in a sentence with its numbers; None if they could."""


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
    void = _leaked(leak) or _unchecked(checked)
    measured = [_measured(claim, seeds, read) for claim in claims]
    inside = holm([1.0 if each.raw_p_inside is None else each.raw_p_inside for each in measured])
    outside = holm([1.0 if each.raw_p_outside is None else each.raw_p_outside for each in measured])
    findings = []
    for each, p_inside, p_outside in zip(measured, inside, outside, strict=True):
        tested = each.raw_p_inside is not None
        finding = replace(each, p_inside=float(p_inside), p_outside=float(p_outside)) if tested else each
        outcome, reason = _decide(finding, seeds, void, family=len(measured))
        findings.append(replace(finding, outcome=outcome, reason=reason))
    return Judgement(findings=tuple(findings), checks=checked, void=void.sentence if void else None)


def judge_check(check: Check, seeds: Sequence[int], read: Read) -> CheckFinding:
    """The outcome of one check: it fails with the first seed that fails, and is open while a seed is missing."""
    values = {seed: value for seed in seeds if (value := _read(read, check.measure, seed)) is not None}
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
        size = f"{lowest:.3f}" if lowest == highest else f"{lowest:.3f} to {highest:.3f}"
        holds, reason = True, f"{check.measure} is {size} over {n_seeds(len(values))}; {band} was required."
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
    effects, undefined = _effects(claim, seeds, read)
    finding = Finding(
        claim=claim,
        outcome="inconclusive",
        reason="not judged",
        per_seed=tuple(effects.items()),
        missing=tuple(seed for seed in seeds if seed not in effects and seed not in undefined),
        undefined=tuple(undefined.items()),
        effect=math.fsum(effects.values()) / len(effects) if effects else None,
    )
    if len(effects) < SEEDS_FOR_INTERVAL:
        return finding
    values = np.asarray(list(effects.values()))
    finding = replace(finding, interval=mean_interval(values))
    if finding.missing or finding.undefined or finding.n < MIN_SEEDS:
        return finding
    student = band_test(values, claim.low, claim.high)
    flips = sign_flip_test(values, claim.low, claim.high)
    return replace(
        finding,
        raw_p_inside=float(student.inside),
        raw_p_outside=float(student.outside),
        sign_flip_inside=float(flips.inside),
        sign_flip_outside=float(flips.outside),
    )


def _effects(claim: Claim, seeds: Sequence[int], read: Read) -> tuple[dict[int, float], dict[int, str]]:
    """The effect of each seed that has one, and of each seed that has none though nothing is missing, why."""
    effects: dict[int, float] = {}
    undefined: dict[int, str] = {}
    for seed in seeds:
        try:
            effect = _effect(claim, seed, read)
        except Undefined as reason:
            undefined[seed] = str(reason)
            continue
        if effect is not None:
            effects[seed] = effect
    return effects, undefined


def _effect(claim: Claim, seed: int, read: Read) -> float | None:
    values = {measure: read(measure, seed) for measure in claim.effect.measures}
    known = {measure: value for measure, value in values.items() if value is not None}
    if len(known) < len(values):
        return None
    for measure, value in known.items():
        if not math.isfinite(value):  # as of a policy whose training diverged; the other claims can still be judged
            raise Undefined(f"{measure} is {value}")
    return claim.effect.value(known.__getitem__)


def _read(read: Read, measure: Measure, seed: int) -> float | None:
    """The value of a check's measure; None also where there is none for what was measured: the check is open then."""
    try:
        return read(measure, seed)
    except Undefined:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Void:
    """Why no claim is judged."""

    short: str
    """In a few words, for the row of a claim."""
    sentence: str
    """With all numbers, for the head of the report."""


def _leaked(leak: str | None) -> _Void | None:
    return None if leak is None else _Void(short="training problems stand in an evaluation", sentence=leak)


def _unchecked(checks: Sequence[CheckFinding]) -> _Void | None:
    """The first check that failed, else the first that is open."""
    for holds, what in ((False, "failed"), (None, "is open")):
        for finding in checks:
            if finding.holds is holds:
                short = f"the check {finding.check.name!r} {what}"
                return _Void(short=short, sentence=f"{short}: {finding.reason.removesuffix('.')}")
    return None


def _decide(finding: Finding, seeds: Sequence[int], void: _Void | None, *, family: int) -> tuple[Outcome, str]:
    """The outcome of a claim that is one of ``family``, and why."""
    if void is not None:
        return "inconclusive", f"Void: {void.short}."
    if finding.missing:
        return (
            "inconclusive",
            f"Not judged: {finding.n} of {len(seeds)} seeds are in; {_seeds(finding.missing)} missing.",
        )
    if finding.undefined:
        seed, why = finding.undefined[0]
        others = "" if len(finding.undefined) == 1 else f" (and in {len(finding.undefined) - 1} more)"
        return "inconclusive", f"Not judged: the effect has no value in seed {seed}{others}: {why}."
    if finding.p_inside is None or finding.p_outside is None:
        few = "1 seed has no variance" if finding.n == 1 else f"{n_seeds(finding.n)} have too little variance"
        return "inconclusive", f"Not judged: {few} to judge by; run at least {MIN_SEEDS}."
    outcome, reason = _decide_by_p(finding, finding.p_inside, finding.p_outside, family)
    return outcome, reason + _on_agreement(finding)


def _decide_by_p(finding: Finding, inside: float, outside: float, family: int) -> tuple[Outcome, str]:
    band = describe_band(finding.claim.low, finding.claim.high)
    if inside <= ALPHA:
        return "supported", f"{_numbers(finding)}; predicted {band} (Holm {format_p(inside)})."
    if outside <= ALPHA:
        return "refuted", f"{_numbers(finding)}; predicted {band} (Holm {format_p(outside)} against it)."
    held_back = _held_back(finding, inside, outside, family)
    if held_back is not None:
        return "inconclusive", f"{_numbers(finding)}; predicted {band}. {held_back}"
    return "inconclusive", (
        f"{_numbers(finding)}; {n_seeds(finding.n)} cannot tell whether it is {band}"
        f" (Holm {format_p(inside)} for it, {format_p(outside)} against it)."
    )


def _held_back(finding: Finding, inside: float, outside: float, family: int) -> str | None:
    """Why a claim that would be decided alone is not; None if it would not be."""
    sides = (("inside", finding.raw_p_inside, inside), ("outside", finding.raw_p_outside, outside))
    for where, raw, adjusted in sides:
        if raw is not None and raw <= ALPHA:
            lies = "That" if finding.interval is None or _is_point(finding.interval) else "The interval"
            return (
                f"{lies} lies {where} the band, and alone {format_p(raw)} would decide; but Holm's correction for"
                f" {family} claims makes it {format_p(adjusted)}, above {ALPHA}."
            )
    return None


def _on_agreement(finding: Finding) -> str:
    """What to add where there is no variance; empty where there is one."""
    if not agree([value for _, value in finding.per_seed]):
        return ""
    return (
        f" All seeds agree exactly: judged by sign flips, which {n_seeds(finding.n)} can only push to"
        f" {format_p(least_p(finding.n))}."
    )


def _numbers(finding: Finding) -> str:
    if finding.effect is None or finding.interval is None:
        raise ValueError(f"claim {finding.claim.name!r} was not measured, so it has no numbers to print")
    low, high = finding.interval
    if _is_point(finding.interval):
        return f"The effect is {finding.effect:.3f} in each of {n_seeds(finding.n)}"
    return f"The mean effect is {finding.effect:.3f}, 95 % interval {low:.3f} to {high:.3f} over {n_seeds(finding.n)}"


def _is_point(interval: tuple[float, float]) -> bool:
    return interval[0] == interval[1]


def format_p(p: float) -> str:
    """A p value with two significant digits, such as ``p = 0.0035``; tiny ones as a bound."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def n_seeds(count: int) -> str:
    """A count of seeds in words."""
    return "1 seed" if count == 1 else f"{count} seeds"


def _seeds(seeds: Sequence[int]) -> str:
    return ("seed " if len(seeds) == 1 else "seeds ") + ", ".join(map(str, seeds))
