"""The words of the laboratory's problems: Problem, Trace, Verdict, and the Task protocol that ties them together.

A testbed is one module that ends with ``TESTBED: Final[type[Task]] = ...``. A Task is an instance of it: a
frozen dataclass whose fields are the difficulty. Nothing in this package imports torch.

Text: white space between symbols never carries meaning. A task's texts can therefore be written for people
("3 * 5 = 15") or tightly ("3*5=15"); tokenizers and verifiers read both alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, runtime_checkable

from numpy.random import Generator

Granularity = Literal["explicit", "composed", "implicit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One instance of a task."""

    prompt: str
    """What the policy reads."""
    key: str
    """Canonical form under the testbed's documented symmetries. Equal problems have equal keys, in every suite."""
    certificate: object
    """What the verifier needs and the policy must not see: a frozen dataclass of the testbed."""
    features: Mapping[str, int | float] = field(default_factory=dict)
    """Measured difficulty, such as depth or number of solutions."""
    family: str = ""
    """Coarser canonical form, by which the problem is dealt to splits: problems of one family give each other away (the
    same puzzle under another rule set), so they never stand on two sides. Empty: the key."""

    @property
    def cut(self) -> str:
        """The string by which the problem is dealt to splits."""
        return self.family or self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a worked solution."""

    operation: str
    """What was applied, in the testbed's notation."""
    result: str
    """What came out."""
    text: str
    """How the step stands in the trace; empty where the style leaves it unwritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A worked solution: what supervised fine-tuning imitates."""

    steps: tuple[Step, ...]
    text: str
    """The whole completion, answer included. The task's own verifier accepts it unless a noise wrapper changed it."""
    answer: str
    """The final answer alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStyle:
    """How a demonstration is written."""

    revision: ClassVar[int] = 1

    granularity: Granularity = "explicit"
    """``explicit``: each step; ``composed``: ``group`` steps at a time; ``implicit``: the answer only."""
    group: int = 1
    """Steps that are folded into one written step; only ``composed`` has more than 1."""

    def __post_init__(self) -> None:
        if self.granularity not in ("explicit", "composed", "implicit"):
            raise ValueError(f"TraceStyle.granularity must be explicit, composed or implicit, got {self.granularity!r}")
        if self.granularity == "composed" and self.group < 2:
            raise ValueError(f"a composed style folds at least 2 steps into one, got group={self.group}")
        if self.granularity != "composed" and self.group != 1:
            raise ValueError(f"group={self.group} goes with granularity='composed', got {self.granularity!r}")


EXPLICIT = TraceStyle()
IMPLICIT = TraceStyle(granularity="implicit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a verifier says of one completion."""

    correct: bool
    well_formed: bool
    """Whether the completion follows the documented grammar, right or wrong."""
    progress: float
    """Partial progress in [0, 1]; separate from ``correct`` and never a reward by default."""
    reason: str
    """One sentence for a reader of the report."""


@runtime_checkable
class Task(Protocol):
    """A testbed at fixed difficulty. A frozen dataclass with a ``revision: ClassVar[int]`` fulfils it."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """Closed lexicon of token strings, without white space, in a stable order."""
        ...

    @property
    def capacity(self) -> int | None:
        """Number of distinct keys of the whole task, exact; None where it is not known."""
        ...

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        """``count`` problems drawn independently, with replacement."""
        ...

    def enumerate(self) -> Iterable[Problem] | None:
        """Every problem once per key, in a stable order; None where the space is too large to walk."""
        ...

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """A worked solution in the asked style. Raises ValueError for a style that the testbed cannot write."""
        ...

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict on any string whatever: total, exact, never slow, never an exception."""
        ...

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """Every completion that ``verify`` accepts, up to white space; None where they are not finitely many."""
        ...

    def floor(self, problem: Problem) -> float:
        """Success probability of the best blind guess; the testbed's docstring says blind to what."""
        ...

    def __hash__(self) -> int:
        """Tasks are values: equal ones hash alike."""
        ...


@runtime_checkable
class Predicate(Protocol):
    """A condition on a problem, as a frozen dataclass, that names an out-of-distribution split."""

    def __call__(self, problem: Problem) -> bool:
        """Whether the problem belongs to the held-out part."""
        ...

    def __hash__(self) -> int:
        """Predicates are values: equal ones hash alike."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureAtLeast:
    """Holds for problems whose feature ``name`` is at least ``value``: held-out depths and sizes."""

    revision: ClassVar[int] = 1

    name: str
    """A feature that every problem of the task has."""
    value: float
    """The lowest value that is held out."""

    def __call__(self, problem: Problem) -> bool:
        if self.name not in problem.features:
            raise ValueError(
                f"FeatureAtLeast.name={self.name!r} is not a feature of the problem {problem.prompt!r};"
                f" it has {sorted(problem.features)}"
            )
        return problem.features[self.name] >= self.value
