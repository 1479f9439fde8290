"""The words of the laboratory's problems: Problem, Trace, Verdict, and the Task protocol that ties them together.

A testbed is one module that ends with ``TESTBED: Final[type[Task]] = ...``. A Task is an instance of it: a
frozen dataclass whose fields are the difficulty. Nothing in this package imports torch.

Text: white space between symbols never carries meaning. A task's texts can therefore be written for people
("3 * 5 = 15") or tightly ("3*5=15"); tokenizers and verifiers read both alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, get_args, runtime_checkable

from numpy.random import Generator

Granularity = Literal["explicit", "composed", "implicit"]
Order = Literal["forward", "backward", "shuffled"]
Search = Literal["optimal", "depth_first", "breadth_first"]

ANSWER_MARK = "#"
"""Stands between working and answer, in every testbed that has both: ``WORKING # ANSWER``."""


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


class Unrealisable(ValueError):  # noqa: N818  # said of a problem, not of the caller's mistake
    """This problem has no demonstration in the asked style, though others of its task may have one.

    For example no trace with exactly five backtracks, where the problem's search tree has four dead ends. Whoever draws
    problems takes another one and counts this one; a style that a task can never write is a plain ValueError.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a worked solution."""

    operation: str
    """What was applied, in the testbed's notation."""
    result: str
    """What came out."""
    text: str
    """How the step stands in the trace: it ends with ``result``. Empty where the style leaves it unwritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A worked solution: what supervised fine-tuning imitates.

    Its text is the written steps, joined by ``separator``, then ``mark`` and the answer. Where there is no mark, the
    steps are the answer: the last one (or, for a chain of equations, all) says what came out.
    """

    steps: tuple[Step, ...]
    text: str
    """The whole completion, answer included. The task's own verifier accepts it unless noise changed it."""
    answer: str
    """The final answer alone."""
    separator: str = " "
    """What joins the written steps."""
    mark: str | None = None
    """What stands between working and answer; None where the steps themselves give the answer."""

    @classmethod
    def worked(cls, steps: tuple[Step, ...], answer: str, *, separator: str = " ") -> Trace:
        """The trace ``WORKING # ANSWER``, or the answer alone where no step is written."""
        working = separator.join([step.text for step in steps if step.text])
        space = separator if separator.isspace() else ""
        text = f"{working}{space}{ANSWER_MARK}{space}{answer}" if working else answer
        return cls(steps=steps, text=text, answer=answer, separator=separator, mark=ANSWER_MARK)


@runtime_checkable
class TraceNoise(Protocol):
    """Spoils the working of a trace, at a rate; see noise.py. A frozen dataclass."""

    def __call__(self, task: Task, problem: Problem, trace: Trace, style: TraceStyle) -> Trace:
        """The trace with other working and the same answer, or as it was: a pure function of its arguments."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStyle:
    """How a demonstration is written. A testbed refuses, with ValueError, what it cannot write."""

    revision: ClassVar[int] = 2

    granularity: Granularity = "explicit"
    """``explicit``: each step; ``composed``: ``group`` steps at a time; ``implicit``: the answer only."""
    group: int = 1
    """Steps that are folded into one written step; only ``composed`` has more than 1."""
    order: Order = "forward"
    """In which order the steps stand: as they are applied, the last first, or in an order drawn for each problem."""
    search: Search = "optimal"
    """``optimal``: no wrong branch is shown; else the search that finds the solution, dead ends included."""
    backtracks: int | None = None
    """Dead ends that a depth-first search shows, exactly; None: as many as the search meets."""
    heuristic: str = ""
    """By which a search orders its branches, under a name of the testbed; empty: the testbed's usual one."""
    noise: TraceNoise | None = None
    """What spoils the working afterwards; None: nothing."""

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("granularity", self.granularity, get_args(Granularity)),
            ("order", self.order, get_args(Order)),
            ("search", self.search, get_args(Search)),
        ):
            if value not in choices:
                raise ValueError(f"TraceStyle.{name} must be one of {', '.join(choices)}, got {value!r}")
        if self.granularity == "composed" and self.group < 2:
            raise ValueError(f"a composed style folds at least 2 steps into one, got group={self.group}")
        if self.granularity != "composed" and self.group != 1:
            raise ValueError(f"group={self.group} goes with granularity='composed', got {self.granularity!r}")
        self._check_search()

    def _check_search(self) -> None:
        if self.search == "optimal" and self.heuristic:
            raise ValueError(f"heuristic={self.heuristic!r} goes with a search, got search='optimal'")
        if self.search != "optimal" and (self.granularity != "explicit" or self.order != "forward"):
            raise ValueError(
                f"a search is written explicitly and forward, got search={self.search!r} with granularity="
                f"{self.granularity!r} and order={self.order!r}"
            )
        if self.backtracks is not None and (type(self.backtracks) is not int or self.backtracks < 0):
            raise ValueError(f"TraceStyle.backtracks must be None or a count of at least 0, got {self.backtracks!r}")
        if self.backtracks is not None and self.search != "depth_first":
            raise ValueError(f"backtracks={self.backtracks} goes with search='depth_first', got {self.search!r}")

    @property
    def name(self) -> str:
        """The style in a few characters, for tables and file names, such as ``explicit`` or ``composed/2 backward``."""
        parts = [self.granularity if self.group == 1 else f"{self.granularity}/{self.group}"]
        parts += [self.order] if self.order != "forward" else []
        parts += [self.search] if self.search != "optimal" else []
        parts += [f"backtracks={self.backtracks}"] if self.backtracks is not None else []
        parts += [self.heuristic] if self.heuristic else []
        parts += [repr(self.noise)] if self.noise is not None else []
        return " ".join(parts)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of the answers that a problem allows, right or wrong: what a task's method ``choices(problem)`` lists.

    A task that lists them has its policies asked for the exact probability of each; see training/probes.py.
    """

    text: str
    """The answer as the task writes it: a whole completion without working."""
    kinds: tuple[str, ...]
    """What it is, among words of the testbed, such as ``correct`` or ``drawing``. The correct ones are all and only
    those that the verifier accepts."""
    arrow: tuple[str, str] | None = None
    """Where it leads from and to on the task's board, as names of squares; None where there is no board."""


@runtime_checkable
class Task(Protocol):
    """A testbed at fixed difficulty. A frozen dataclass with a ``revision: ClassVar[int]`` fulfils it."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """Closed lexicon of token strings, without white space, in a stable order."""
        ...

    @property
    def instructions(self) -> str:
        """What a reader who does not know the notation must be told: how to read a prompt and which answers count.

        English, a few sentences, for people and language models; the laboratory's own policies never see it.
        """
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
        """A worked solution in the asked style, without its noise (see demonstrations.py, which adds it).

        Raises:
            ValueError: for a style that the testbed cannot write.
            Unrealisable: for a problem that has no such trace.
        """
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
    otherwise: bool | None = None
    """What holds for a problem without the feature, as a mixture may have; None: such a problem is an error."""

    def __call__(self, problem: Problem) -> bool:
        if self.name not in problem.features:
            if self.otherwise is not None:
                return self.otherwise
            raise ValueError(
                f"FeatureAtLeast.name={self.name!r} is not a feature of the problem {problem.prompt!r};"
                f" it has {sorted(problem.features)}; set otherwise= for a mixture that has such problems"
            )
        return problem.features[self.name] >= self.value
