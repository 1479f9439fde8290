"""How long a task's texts are and what its problems can be banded by: what a newcomer needs to declare a study."""

from __future__ import annotations

from dataclasses import dataclass

from testbeds.core import EXPLICIT, IMPLICIT, Problem, Task, Trace
from testbeds.demonstrations import demonstration
from testbeds.lexicon import read
from testbeds.streams import stream

PROBLEMS_MEASURED = 64  # a fraction of a second for the dearest testbed, and the rare long trace is said to be missed


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """What was measured on a sample of a task's problems."""

    problems: int
    """Size of the sample: rarer texts may be longer."""
    prompt: int
    """Most tokens of a prompt. With ``trace`` it is a sensible ``Transformer.context``."""
    trace: int
    """Most tokens of a worked solution with every step, the end token included: a sensible ``max_new_tokens``."""
    features: tuple[str, ...]
    """Names that ``Evaluation.band`` may have, since every problem of the sample has them."""


def lengths_of(task: Task, problems: int = PROBLEMS_MEASURED) -> Lengths:
    """The lengths and features of a task, over its first ``problems`` problems of a fixed stream."""
    sample = task.generate(stream("lengths"), problems)

    def count(text: str) -> int:
        return len(read(text, task.symbols))

    return Lengths(
        problems=len(sample),
        prompt=max(count(problem.prompt) for problem in sample),
        trace=1 + max(count(fullest_demonstration(task, problem).text) for problem in sample),
        features=tuple(sorted(set.intersection(*(set(problem.features) for problem in sample)))),
    )


def fullest_demonstration(task: Task, problem: Problem) -> Trace:
    """The worked solution with every step, or the answer alone where the task has no room for steps."""
    try:
        return demonstration(task, problem, EXPLICIT)
    except ValueError:  # the documented refusal of a style
        return demonstration(task, problem, IMPLICIT)
