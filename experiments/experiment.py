"""An experiment as a declaration: the question, the arms, the seeds and the claims, and nothing that runs.

A study is one file that ends with ``EXPERIMENT: Final = Experiment(...)``. Planning, running, judging and reporting
read everything they need from it, so a study contains no training code and the report no knowledge of a study.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from experiments.claims import Check, Claim, Measure
from experiments.naming import unknown
from experiments.shifts import Shift

if TYPE_CHECKING:  # a declaration needs no torch: `stagecraft list` stays fast
    from training.evaluation import Evaluation
    from training.recipe import Recipe

FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """One size of a study: the quick look and the one for the README are the same file at two scales."""

    revision: ClassVar[int] = 1
    name: str
    """Such as ``smoke``, ``demo`` or ``full``."""
    seeds: int
    """How many of the experiment's seeds run, from the first."""

    def __post_init__(self) -> None:
        _check_file_name("Scale.name", self.name)
        if self.seeds < 1:
            raise ValueError(f"Scale.seeds of {self.name!r} must be at least 1, got {self.seeds}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is read off a policy: one number of one evaluation, in one band of difficulty."""

    revision: ClassVar[int] = 1
    evaluation: str
    """Name of the evaluation, as the experiment's ``evaluations`` names it."""
    metric: str = "accuracy"
    """Name of the metric, such as ``accuracy``, ``greedy_accuracy`` or ``accuracy_corrected``."""
    band: str = "all"
    """Band of difficulty, such as ``depth=5``; ``all`` is the whole evaluation."""

    def of(self, arm: str, *, stage: int = -1) -> Measure:
        """This reading of one arm after one of its stages (an index; -1 is the last)."""
        return Measure(arm=arm, evaluation=self.evaluation, metric=self.metric, band=self.band, stage=stage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A study: named arms x seeds, with predictions that are fixed before the first run.

    Every stage end of every arm is evaluated with every evaluation. ``arms`` and ``evaluations`` are pure functions of
    (seed, scale); equal prefixes of recipes are the same stage and run once.
    """

    name: str
    """Name on the command line and in the store, such as ``e01``."""
    title: str
    """Heading of the report."""
    question: str
    """The question, one sentence that ends in a question mark."""
    introduction: str
    """What a newcomer must know to read the report: world, model, arms. Paragraphs are separated by an empty line."""
    factor: str
    """What differs between arms, in one sentence."""
    held_equal: tuple[str, ...]
    """What does not differ, one sentence each. The report prints the measured differences beside it."""
    arms: Callable[[int, Scale], Mapping[str, Recipe]]
    """The recipes by arm name; the same names for every seed."""
    evaluations: Callable[[int, Scale], Mapping[str, Evaluation]]
    """The evaluations by name; the same names for every seed."""
    primary: Reading
    """The number that the study is about: the main figure shows it after every stage."""
    descriptions: tuple[tuple[str, str], ...]
    """(arm, what it is) for every arm, in the order of tables and figures."""
    seeds: tuple[int, ...]
    """All seeds; a scale uses the first ``Scale.seeds`` of them."""
    scales: tuple[Scale, ...]
    """The sizes at which the study can run; the first is the default."""
    claims: tuple[Claim, ...]
    """The predictions; the first is the main one and opens the report."""
    checks: tuple[Check, ...] = ()
    """What must hold in every seed for any claim to be judged."""
    threats: tuple[str, ...] = ()
    """What could make the findings wrong or narrow, one sentence each."""
    references: tuple[str, ...] = ()
    """Published work that the study follows, one reference each."""
    drawn: str | None = None
    """Arm whose answers are drawn beside the rollouts, where the task draws pictures; None: the first arm that the main
    claim speaks of."""

    def __post_init__(self) -> None:
        _check_file_name("Experiment.name", self.name)
        for field in ("title", "question", "introduction", "factor"):
            if not getattr(self, field).strip():
                raise ValueError(f"Experiment.{field} of {self.name!r} is empty; the report prints it")
        for field in ("seeds", "scales", "claims", "descriptions"):
            if not getattr(self, field):
                raise ValueError(f"Experiment.{field} of {self.name!r} is empty; give at least one")
        self._check_distinct("seeds", self.seeds)
        self._check_distinct("scales", (scale.name for scale in self.scales))
        self._check_distinct("claims", (claim.name for claim in self.claims))
        self._check_distinct("checks", (check.name for check in self.checks))
        self._check_distinct("descriptions", (arm for arm, _ in self.descriptions))
        if self.drawn not in (None, *self.order):
            raise ValueError(f"Experiment.drawn of {self.name!r} is {self.drawn!r}, which is no arm of {self.order}")
        for scale in self.scales:
            self.seeds_of(scale)

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the arms in the order of tables and figures."""
        return tuple(arm for arm, _ in self.descriptions)

    def scale(self, name: str | None = None) -> Scale:
        """The scale of this name; the first one without a name."""
        if name is None:
            return self.scales[0]
        for scale in self.scales:
            if scale.name == name:
                return scale
        raise unknown(f"scale of {self.name}", name, (scale.name for scale in self.scales))

    def seeds_of(self, scale: Scale) -> tuple[int, ...]:
        """The seeds that this scale runs."""
        if scale.seeds > len(self.seeds):
            raise ValueError(
                f"scale {scale.name!r} asks for {scale.seeds} seeds, but experiment {self.name} declares"
                f" {len(self.seeds)}: {self.seeds}; add seeds or ask for at most {len(self.seeds)}"
            )
        return self.seeds[: scale.seeds]

    def validate(self, scale: Scale) -> None:
        """Nothing, if every arm, evaluation and stage that the study speaks of exists for every seed of this scale.

        Raises:
            ValueError: with the place, the name that does not exist and the names that do.
        """
        for seed in self.seeds_of(scale):
            arms, evaluations = self.arms(seed, scale), self.evaluations(seed, scale)
            where = f"at seed {seed} of scale {scale.name!r}"
            if set(arms) != set(self.order):
                raise ValueError(
                    f"experiment {self.name} describes the arms {sorted(self.order)}, but {where} it declares"
                    f" {sorted(arms)}; Experiment.descriptions names every arm once"
                )
            spoken_of = [("Experiment.primary", self.primary.evaluation)]
            spoken_of += [(place, measure.evaluation) for place, measure in self._measures()]
            for place, name in spoken_of:
                _check_known(f"{place} ({where})", "evaluation", name, evaluations)
            for place, measure in self._measures():
                _check_known(f"{place} ({where})", "arm", measure.arm, arms)
                _check_stage(f"{place} ({where})", measure, len(arms[measure.arm].stages))

    def _measures(self) -> Iterator[tuple[str, Measure]]:
        for claim in self.claims:
            for measure in claim.effect.measures:
                yield f"claim {claim.name!r}", measure
        for check in self.checks:
            yield f"check {check.name!r}", check.measure

    def _check_distinct(self, field: str, names: Iterable[str | int]) -> None:
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise ValueError(f"Experiment.{field} of {self.name!r} has {repeated[0]!r} more than once")


def _check_file_name(field: str, name: str) -> None:
    if not FILE_NAME.fullmatch(name):
        raise ValueError(f"{field} becomes a folder: lower-case letters, digits, '_' and '-' only, got {name!r}")


def _check_known(place: str, kind: str, name: str, known: Mapping[str, object]) -> None:
    if name not in known:
        raise ValueError(f"{place} speaks of the {kind} {name!r}, which does not exist; there are {sorted(known)}")


def _check_stage(place: str, measure: Measure, stages: int) -> None:
    read = (measure.since, measure.stage) if isinstance(measure, Shift) else (measure.stage,)
    for stage in read:
        if not -stages <= stage < stages:
            raise ValueError(
                f"{place} reads arm {measure.arm!r} after stage {stage}, but the arm has {stages} stage(s);"
                f" use an index from {-stages} to {stages - 1}"
            )
    if isinstance(measure, Shift) and measure.since % stages >= measure.stage % stages:
        raise ValueError(
            f"{place} reads what changed in arm {measure.arm!r} from stage {measure.since} to stage {measure.stage} of"
            f" {stages}; Shift.since must come before Shift.stage"
        )
