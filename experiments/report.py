"""The report: one self-contained HTML page from an experiment's declaration and what its store holds.

Every sentence on outcomes is composed from the findings; a study writes its question before the run, never its answer.
Equal input gives an equal page: it carries the times of the runs, not of the report.
"""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from experiments.boards import with_pictures
from experiments.claims import Finding, Registration, registration
from experiments.curves import curve_key, learning_curves
from experiments.drawing import Drawn
from experiments.evidence import Overlap, PairDifference, arm_differences, leak, overlaps
from experiments.experiment import Experiment, Scale
from experiments.figures import main_figure, save_main_figure
from experiments.files import write_whole
from experiments.glossary import meanings
from experiments.judgement import Judgement, describe_band, format_p, judge, n_seeds
from experiments.results import Results, load
from experiments.sentences import Age, Alarm, age, alarms, answer, claims_caption, commands, registration_note
from experiments.shift_tables import ShiftTable, last_stage, shift_tables
from experiments.shifts import CATEGORIES, VISIBLE
from experiments.statistics import EXACT_SEEDS
from experiments.store import Store, explained
from experiments.tables import (
    EndTable,
    LedgerRow,
    Picture,
    PolicyGroup,
    RolloutTable,
    ScoreTable,
    band_table,
    check_values,
    effect_above_floor,
    end_table,
    ledger_rows,
    metric_table,
    policy_groups,
    rollout_table,
)

SI_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapRow:
    """The problems of one training stage against every evaluation, over all seeds."""

    group: PolicyGroup
    training: tuple[int, int]
    """Fewest and most distinct training problems of a seed."""
    shared: tuple[tuple[str, int], ...]
    """(evaluation, problems that are in both, summed over seeds)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything that stands on the page."""

    experiment: Experiment
    scale: Scale
    root: Path
    """Root of the store, as it was given."""
    results: Results
    judgement: Judgement
    registration: Registration | None
    age: Age
    ends: EndTable | None
    above_floor: Mapping[str, float | None]
    """Mean effect of each claim in rates above the guessing floor, by the claim's name."""
    check_values: Mapping[str, tuple[tuple[int, float, float | None], ...]]
    """(seed, value, value above the floor) of each check, by the check's name."""
    groups: tuple[PolicyGroup, ...]
    evaluations: tuple[tuple[str, str, bool], ...]
    """(name, one line on it, whether it asks training problems on purpose)."""
    main: Drawn | None
    curves: tuple[Drawn, ...]
    bands: tuple[ScoreTable, ...]
    metrics: tuple[ScoreTable, ...]
    shifts: tuple[ShiftTable, ...]
    rollouts: RolloutTable | None
    ledger: tuple[LedgerRow, ...]
    pairs: tuple[PairDifference, ...]
    overlaps: tuple[OverlapRow, ...]
    asked: tuple[tuple[str, int], ...]
    """(evaluation, distinct problems that it asks per seed)."""

    @property
    def answer(self) -> str:
        """The answer to the question in two sentences, composed from the findings."""
        return answer(self.judgement, self.registration, self.age)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """What a reader must know of the registration before the numbers."""
        return alarms(self.registration, self.age)

    @property
    def changed(self) -> frozenset[str]:
        """Names of the claims that are not what was registered before the first run."""
        changes = self.registration.changes if self.registration else ()
        return frozenset(change.name for change in changes if change.kind == "claim")

    @property
    def seen(self) -> frozenset[str]:
        """Names of the evaluations that ask training problems on purpose."""
        return frozenset(name for name, _, seen in self.evaluations if seen)

    @property
    def versions(self) -> tuple[tuple[str, int], ...]:
        """(library versions, artifacts that were made under them), most frequent first."""
        lines = Counter(
            ", ".join(f"{package} {number}" for package, number in versions)
            for versions in self.results.artifacts.versions.values()
        )
        return tuple(lines.most_common())

    @property
    def meanings(self) -> tuple[tuple[str, str], ...]:
        """(metric, what it means) of every metric in the tables."""
        return meanings(dict.fromkeys(name for table in self.metrics for name in table.columns))

    @property
    def caption(self) -> str:
        """How the claims are judged."""
        return claims_caption(len(self.judgement.findings), len(self.results.seeds))

    @property
    def commands(self) -> tuple[str, ...]:
        """What to type to run the experiment again and to read it."""
        return commands(self.experiment, self.scale, self.root)

    @property
    def citation(self) -> str:
        """How to cite the experiment: what identifies its claims and its software."""
        claims = f"claims {self.registration.fingerprint}" if self.registration else "claims not registered"
        seeds = ", ".join(map(str, self.results.seeds))
        return (
            f"stagecraft {version('stagecraft')}, experiment {self.experiment.name}: {self.experiment.title}."
            f" Scale {self.scale.name}, seeds {seeds}, {claims}."
        )


def build_report(experiment: Experiment, scale: Scale, store: Store, destination: Path | None = None) -> Path:
    """Writes the report and returns its path: one HTML file without external resources.

    Without a ``destination`` it is ``experiments/<name>/<scale>/report.html`` in the store, with ``findings.json``,
    ``findings.md``, ``scores.csv`` and ``figure.svg`` beside it. With one, only the page is written. A scale with
    another number of seeds than it is declared with has a folder of its own.

    An incomplete store gives a complete page that says what is missing. Every file is written whole or not at all.

    Raises:
        StoreError: if a file cannot be written.
        DamagedArtifact: if an artifact does not agree with its record.
    """
    page = collect(experiment, scale, store)
    html = render_html(page)
    if destination is not None:
        write_whole(destination, html)
        return destination
    declared = scale in experiment.scales
    folder = store.experiment(experiment.name) / (scale.name if declared else f"{scale.name}-{scale.seeds}-seeds")
    with explained(store.root):
        write_whole(folder / "findings.json", findings_json(page))
        write_whole(folder / "findings.md", render_markdown(page))
        write_whole(folder / "scores.csv", _csv(page.results))
        if page.main is not None:
            save_main_figure(experiment, page.results, folder / "figure.svg")
        write_whole(folder / "report.html", html)
    return folder / "report.html"


def collect(experiment: Experiment, scale: Scale, store: Store) -> Page:
    """Everything that a report says, from the declaration and the store."""
    results = load(experiment, scale, store)
    groups = policy_groups(results, experiment.order)
    found = overlaps(experiment, scale, results, store)
    judgement = judge(experiment.claims, experiment.checks, results.seeds, results.reader(), leak=leak(found, results))
    registered = registration(experiment, scale, store.root)
    evaluations = experiment.evaluations(results.seeds[0], scale)
    bands = (band_table(experiment, results, name) for name in evaluations)
    metrics = (metric_table(experiment, results, name) for name in evaluations)
    shown = rollout_table(experiment, results, store)
    return Page(
        experiment=experiment,
        scale=scale,
        root=store.root,
        results=results,
        judgement=judgement,
        registration=registered,
        age=age(registered, results),
        ends=end_table(experiment, results),
        above_floor={each.claim.name: effect_above_floor(each, results) for each in judgement.findings},
        check_values={each.check.name: check_values(each, results) for each in judgement.checks},
        groups=groups,
        evaluations=tuple((name, each.describe(), each.seen) for name, each in evaluations.items()),
        main=main_figure(experiment, results),
        curves=learning_curves(experiment, results),
        bands=tuple(table for table in bands if table is not None),
        metrics=tuple(table for table in metrics if table is not None),
        shifts=shift_tables(experiment, results),
        rollouts=with_pictures(experiment, scale, results, store, shown) if shown else None,
        ledger=ledger_rows(experiment, results),
        pairs=arm_differences(experiment, scale),
        overlaps=_overlap_rows(groups, found),
        asked=tuple({each.evaluation: each.evaluated for each in found}.items()),
    )


def render_html(page: Page) -> str:
    """The page as HTML."""
    return _environment().get_template("report.html.j2").render(page=page)


def render_markdown(page: Page) -> str:
    """The findings as a short Markdown document."""
    return _environment().get_template("findings.md.j2").render(page=page)


def findings_json(page: Page) -> str:
    """The findings as JSON, for machines."""
    content = {
        "experiment": page.experiment.name,
        "scale": page.scale.name,
        "seeds": page.results.seeds,
        "question": page.experiment.question,
        "answer": page.answer,
        "void": page.judgement.void,
        "registration": asdict(page.registration) if page.registration else None,
        "artifacts": asdict(page.age),
        "ends": asdict(page.ends) if page.ends else None,
        "findings": [
            asdict(finding) | {"effect_above_floor": page.above_floor[finding.claim.name]}
            for finding in page.judgement.findings
        ],
        "checks": [
            asdict(finding)
            | {"above_floor": [(seed, above) for seed, _, above in page.check_values[finding.check.name]]}
            for finding in page.judgement.checks
        ],
        "shifts": {"categories": CATEGORIES, "tables": [asdict(table) for table in page.shifts]},
        "gaps": page.results.gaps,
        "missing": page.results.missing,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("experiments"),
        autoescape=select_autoescape(enabled_extensions=("html.j2",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "band": lambda claim: describe_band(claim.low, claim.high),
        "fixed": _fixed,
        "above": _above,
        "cell": _cell,
        "heat": _heat,
        "metric": _metric,
        "quantity": _quantity,
        "seeds": n_seeds,
        "si": si,
        "svg": _inline,
        "decisive_p": _decisive_p,
    }
    environment.globals |= {"curve_key": curve_key, "registration_note": registration_note}
    environment.globals |= {"categories": CATEGORIES, "visible": VISIBLE, "last_stage": last_stage}
    return environment


def si(quantity: float, unit: str = "") -> str:
    """A count with three significant digits and an SI prefix, such as ``1.76 M``."""
    if quantity < 1000:
        return f"{quantity:.3g} {unit}".rstrip()
    power = min(int(math.log10(quantity) // 3), len(SI_PREFIXES) - 1)
    if float(f"{quantity / 1000**power:.3g}") >= 1000 and power < len(SI_PREFIXES) - 1:
        power += 1  # 999,999 is 1 M, not 1e+03 k
    return f"{quantity / 1000**power:.3g} {SI_PREFIXES[power]}{unit}"


def _fixed(number: float, digits: int = 3) -> str:
    """A number with fixed digits after the point, and never a negative zero."""
    return f"{round(number, digits) + 0.0:.{digits}f}"


def _quantity(number: float) -> str:
    """A number of any size with four significant digits: a loss, a count, or a probability of a billionth."""
    return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def _above(corrected: float | None, digits: int = 3) -> str:
    """A number above the guessing floor in brackets; nothing where there is no floor."""
    return "" if corrected is None else f" ({_fixed(corrected, digits)})"


def _cell(text: str) -> str:
    """Text inside a Markdown table: it must neither end the cell nor the line, nor vanish as a tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")


def _inline(drawn: Drawn | Picture) -> Markup:
    """The figure's own SVG, which matplotlib, or what drew the picture, has escaped."""
    return Markup(drawn.svg)


def _heat(corrected: float | None) -> str:
    """Shade of a cell in percent of full colour: 0 at the guessing floor and below, 100 for perfection."""
    return f"{100 * min(max(corrected or 0.0, 0.0), 1.0):.0f}"


def _metric(name: str) -> str:
    return name.replace("_", " ")


def _decisive_p(finding: Finding) -> list[tuple[str, str]]:
    """(label, p) of the tests that the outcome rests on, with the sign-flip p of the same test."""
    kind = "sign flips" if finding.n <= EXACT_SEEDS else "sign flips (sampled)"
    tests = [
        ("for", finding.p_inside, finding.sign_flip_inside, "refuted"),
        ("against", finding.p_outside, finding.sign_flip_outside, "supported"),
    ]
    return [
        (f"{label}: Holm {format_p(holm)}", f"{kind} {format_p(flips)}")
        for label, holm, flips, hidden in tests
        if holm is not None and flips is not None and finding.outcome != hidden
    ]


def _overlap_rows(groups: Sequence[PolicyGroup], found: Sequence[Overlap]) -> tuple[OverlapRow, ...]:
    rows = []
    for group in groups:
        identities = {policy.stage_id for policy in group.policies}
        of_group = [each for each in found if each.stage_id in identities]
        if not of_group:
            continue
        shared: dict[str, int] = {}
        for each in of_group:
            shared[each.evaluation] = shared.get(each.evaluation, 0) + each.shared
        trained = [each.training for each in of_group]
        rows.append(OverlapRow(group=group, training=(min(trained), max(trained)), shared=tuple(shared.items())))
    return tuple(rows)


def _csv(results: Results) -> str:
    out = io.StringIO()
    results.write_csv(out)
    return out.getvalue()
