"""Sentences of a report that are composed from findings, registration and results: the same for page and Markdown."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from experiments.claims import Registration
from experiments.experiment import Experiment, Scale
from experiments.judgement import MIN_SEEDS, Judgement, format_p, n_seeds
from experiments.registry import Run
from experiments.results import Results
from experiments.statistics import ALPHA, EXACT_SEEDS, SAMPLED_PATTERNS, least_p

DEFAULT_STORE: Final = Path("store")
"""The store of a command without ``--store``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """What a reader must know before the numbers."""

    title: str
    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """The artifacts of a report against the registration of its claims."""

    older: int
    """Artifacts that were finished before the claims were registered."""
    older_than_design: int
    """Artifacts that were finished before the scale's arms and evaluations were; another scale may have made them."""
    total: int

    def __str__(self) -> str:
        existed = "artifact existed" if self.total == 1 else "artifacts existed"
        return f"{self.older} of {self.total} {existed} before the claims were registered"


def age(registered: Registration | None, results: Results) -> Age:
    """How many of the artifacts that a report uses are older than the claims."""
    created = results.artifacts.created.values()

    def older(than: str | None) -> int:
        return 0 if than is None else sum(moment < datetime.fromisoformat(than) for moment in created)

    return Age(
        older=older(registered.registered if registered else None),
        older_than_design=older(registered.designed if registered else None),
        total=len(created),
    )


def answer(judgement: Judgement, registered: Registration | None, artifacts: Age) -> str:
    """The answer to an experiment's question in two sentences, composed from its findings."""
    findings = judgement.findings
    if judgement.void is not None:
        return f"No claim could be judged: {judgement.void}."
    counts = Counter(finding.outcome for finding in findings)
    first = findings[0]
    tally = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("supported", "refuted", "inconclusive"))
    claims = "1 claim" if len(findings) == 1 else f"{len(findings)} claims"
    when = _when(registered, artifacts)
    return f"The main claim is {first.outcome}: {first.claim.statement} {first.reason} Of {claims}{when}: {tally}."


def _when(registered: Registration | None, artifacts: Age) -> str:
    """When the claims were written, as far as the store bears it out."""
    if registered is None:
        return " (not registered)"
    if artifacts.older:
        return f" ({artifacts})"
    if registered.edited:
        return " (their registration was edited)"
    if any(change.kind in ("claim", "check") for change in registered.changes):
        return " (changed after the first run)"
    return " fixed before the first run in this store"


def alarms(registered: Registration | None, artifacts: Age) -> tuple[Alarm, ...]:
    """What the registration does not bear out."""
    if registered is None:
        text = "The store has no record that they were fixed before the first run."
        return (Alarm(title="Claims were not registered.", text=text),)
    found = []
    if artifacts.older:
        text = f"They were registered at {registered.registered}; who wrote them may have seen these results."
        found.append(Alarm(title=f"{artifacts}.", text=text))
    if registered.edited:
        text = (
            "Their content has not the fingerprint that was written with it, in the store's folder of the experiment:"
        )
        found.append(Alarm(title="The registration was edited.", text=text, details=registered.edited))
    of_claims = tuple(str(change) for change in registered.changes if change.kind in ("claim", "check"))
    if of_claims:
        text = f"The registration of {registered.registered} is kept; since then:"
        found.append(Alarm(title="Claims changed after the first run.", text=text, details=of_claims))
    of_design = tuple(str(change) for change in registered.changes if change.kind in ("arm", "evaluation"))
    if of_design:
        text = "The first registration of this scale is kept; since then:"
        found.append(Alarm(title="Arms or evaluations changed after the first run.", text=text, details=of_design))
    if registered.designed is None:
        text = "The store has no record of what they were at the first run of this scale: a change would not show."
        found.append(Alarm(title="Arms and evaluations were not registered.", text=text))
    return tuple(found)


def registration_note(registered: Registration, artifacts: Age) -> str:
    """What was registered when, and which runs followed."""
    sentences = [f"Claims registered {registered.registered}, fingerprint {registered.fingerprint}"]
    sentences[0] += "." if registered.edited else ", which is that of the registered claims."
    if registered.designed is not None:
        sentences.append(f"Arms and evaluations of this scale registered {registered.designed}.")
        if artifacts.older_than_design:
            older = f"{artifacts.older_than_design} of {artifacts.total}"
            sentences.append(f"{older} artifacts are older than that: made by another scale, or by a run before it.")
    if registered.runs:
        sentences.append(f"Runs started since then, at all scales: {'; '.join(_runs(registered.runs))}.")
    if registered.unreadable_runs:
        lines = "1 line" if registered.unreadable_runs == 1 else f"{registered.unreadable_runs} lines"
        sentences.append(f"{lines} of the log of runs cannot be read: there were more runs than these.")
    if (count := looks(registered)) > 1:
        sentences.append(
            f"Claims can be judged at {count} of these combinations of scale and seeds. Each is a look of its own, and"
            " the levels above hold for one look."
        )
    return " ".join(sentences)


def looks(registered: Registration | None) -> int:
    """Combinations of scale and seeds that were run in this store and are large enough to be judged."""
    runs = registered.runs if registered else ()
    return len({(run.scale, run.seeds) for run in runs if len(run.seeds) >= MIN_SEEDS})


def _runs(runs: Sequence[Run]) -> list[str]:
    """One phrase for each scale and set of seeds, however often it was started."""
    times: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for run in runs:
        times.setdefault((run.scale, run.seeds), []).append(run.time)
    return [
        f"{scale} with {n_seeds(len(seeds))} ({_span(seeds)}) "
        + (f"at {started[0]}" if len(started) == 1 else f"{len(started)} times from {min(started)} to {max(started)}")
        for (scale, seeds), started in times.items()
    ]


def _span(seeds: Sequence[int]) -> str:
    """Seeds in few characters: consecutive ones by their ends."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def claims_caption(claims: int, seeds: int) -> str:
    """How claims are judged at this number of seeds."""
    family = "1 claim" if claims == 1 else f"{claims} claims"
    caption = (
        "Predictions and outcomes. An effect is paired within a seed; its mean over seeds is tested against the"
        f" predicted band with Student's t at {ALPHA} per side, Holm-adjusted over {family}. This assumes effects that"
        " are roughly normal over seeds; where all seeds agree exactly, sign flips decide. In brackets: the same"
        " effect in rates above the guessing floor."
    )
    if seeds < MIN_SEEDS:
        return f"{caption} With {n_seeds(seeds)} nothing is tested; at least {MIN_SEEDS} are needed."
    kind = (
        "the exact permutation p of the same test"
        if seeds <= EXACT_SEEDS
        else f"a permutation p of the same test from {SAMPLED_PATTERNS} sampled sign patterns"
    )
    least = least_p(seeds)
    lean = "" if least <= ALPHA else ", so with so few seeds the verdicts lean on the assumption"
    return (
        f"{caption} Sign flips, {kind}, assume only symmetry: robustness, not the decision."
        f" {n_seeds(seeds)} cannot give less than {format_p(least)}{lean}."
    )


def commands(experiment: Experiment, scale: Scale, root: Path) -> tuple[str, ...]:
    """What to type to plan the experiment, to run it again and to read it."""
    options = [experiment.name, "--scale", scale.name]
    if scale not in experiment.scales:
        options += ["--seeds", str(scale.seeds)]
    if root != DEFAULT_STORE:
        options += ["--store", str(root)]
    return tuple(shlex.join(["stagecraft", command, *options]) for command in ("plan", "run", "report"))
