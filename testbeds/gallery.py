"""The gallery: real problems of every testbed at every level, as a page. ``python -m testbeds.gallery FILE`` writes it.

Everything on the page is made by the code at that moment; a test compares the page in docs/ with what the code makes.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from itertools import islice
from pathlib import Path
from typing import Final

from testbeds import reasoning_gym
from testbeds.catalogue import catalogue, levels
from testbeds.chess.lines_style import CandidateStyle
from testbeds.core import EXPLICIT, IMPLICIT, Problem, Task, Trace, TraceStyle
from testbeds.demonstrations import demonstration, each_demonstrated
from testbeds.lexicon import read
from testbeds.suites import Suite, key_note

SAMPLE = 16  # problems that a level's lengths and floor are measured on: the page is made in seconds
LONGEST_LINE = 700  # characters of a text on the page
LOOKED_AT = 60  # problems among which one with a trace in some style is sought
EXAMPLE_FAMILY: Final = Path(__file__).parents[1] / "tests" / "testbeds" / "example_family.py"
STYLES: Final = (
    EXPLICIT,
    TraceStyle(granularity="composed", group=2),
    IMPLICIT,
    TraceStyle(order="backward"),
    TraceStyle(order="shuffled"),
    TraceStyle(search="depth_first", backtracks=1),
    TraceStyle(search="breadth_first"),
    CandidateStyle(candidates=2, depth=3),
)
HEAD: Final = """# Gallery of testbeds

Made by `make gallery` from the code; a test holds it against the code. Lengths are in tokens, the longest of a few
problems; *capacity* is the exact number of different problems, where it is known; *floor* is the success rate of the
best blind guess. `stagecraft show NAME --level LEVEL --style STYLE` shows more; `stagecraft generate` writes files.
"""


def page() -> str:
    """The whole page, in Markdown."""
    names = [name for name in catalogue() if levels(name)]
    index = "\n".join(f"* [{name}](#{name}): {_first_sentence(catalogue()[name])}" for name in names)
    sections = [_section(name) for name in names]
    return "\n\n".join([HEAD + "\n" + index, *sections, *_survey(), *_own_family()]) + "\n"


def _survey() -> Iterator[str]:
    """Every task of the reasoning-gym package: usable, or why not. Nothing where the package is not installed."""
    if reasoning_gym.is_installed():
        yield "## The tasks of reasoning-gym"
        yield "`ReasoningGym(dataset=...)` makes the usable ones; `allow_unsound=True` the unsound ones, too."
        rows = [f"| {row.dataset} | {row.status} | {row.note} |" for row in reasoning_gym.survey()]
        yield "\n".join(["| task | status | why |", "|---|---|---|", *rows])


def _own_family() -> Iterator[str]:
    """The example family, from the file that the tests run. Nothing where the tests are not installed."""
    if EXAMPLE_FAMILY.is_file():
        yield "## A puzzle family of your own"
        yield "One file in `testbeds/smt/`: generated, verified, demonstrated and listed like the others."
        yield f"```python\n{EXAMPLE_FAMILY.read_text(encoding='utf-8').rstrip()}\n```"


def drawing(task: Task, problem: Problem) -> str | None:
    """The problem as a person would draw it, where its testbed has a method ``drawing``."""
    draw = getattr(task, "drawing", None)
    return str(draw(problem)) if callable(draw) else None


def _section(name: str) -> str:
    ladder = levels(name)
    blocks = [
        f"## {name}",
        inspect.cleandoc(catalogue()[name].__doc__ or ""),
        f"*The same problem:* {key_note(next(iter(ladder.values())))}.",
        _levels_table(ladder),
    ]
    for number, (level, task) in enumerate(ladder.items()):
        blocks += _example(f"{name}/{level}", task, whole=number == 0)
    return "\n\n".join(blocks)


def _levels_table(ladder: Mapping[str, Task]) -> str:
    lines = ["| level | task | prompt | trace | capacity | floor |", "|---|---|---:|---:|---:|---:|"]
    for level, task in ladder.items():
        problems = Suite(task=task).stream("train")[:SAMPLE]
        prompt = max(len(read(problem.prompt, task.symbols)) for problem in problems)
        trace = max(len(read(_fullest(task, problem).text, task.symbols)) for problem in problems)
        floor = sum(task.floor(problem) for problem in problems) / len(problems)
        capacity = "" if task.capacity is None else f"{task.capacity:,}"
        lines.append(f"| {level} | `{_declared(task)}` | {prompt} | {trace} | {capacity} | {floor:.2g} |")
    return "\n".join(lines)


def _example(heading: str, task: Task, *, whole: bool) -> Iterator[str]:
    """A problem of a level: of the first one with all its styles and what a reader is told, else with one trace."""
    problem = Suite(task=task).stream("train")[0]
    yield f"### {heading}"
    if whole:
        yield f"> {task.instructions}"
    yield f"Prompt, key and features: `{', '.join(f'{k}={v:g}' for k, v in problem.features.items())}`"
    drawn = drawing(task, problem)
    yield _fenced(*([drawn, ""] if drawn else []), _cut(problem.prompt), "", _cut(problem.key))
    trace = _fullest(task, problem)
    yield "Demonstrations:" if whole else "Demonstration:"
    yield _fenced(*(_styles(task) if whole else [_cut(trace.text)]))
    if whole:
        yield from _verdicts(task, problem, trace)


def _styles(task: Task) -> Iterator[str]:
    """One demonstration in each style that the task writes, of the first problem that has it."""
    for style in STYLES:
        problems = islice(Suite(task=task).stream("train"), LOOKED_AT)
        with suppress(ValueError):  # a style that this testbed does not write
            for found in islice(each_demonstrated(task, problems, _always(style)), 1):
                yield f"{style.name}:\n    {_cut(found.trace.text).replace(chr(10), ' / ')}"


def _always(style: TraceStyle) -> Callable[[Problem], TraceStyle]:
    return lambda _: style


def _verdicts(task: Task, problem: Problem, trace: Trace) -> Iterator[str]:
    """What the verifier says to the right answer, to the answer of another problem, and to none."""
    stranger = next(
        (other for other in Suite(task=task).stream("test")[:LOOKED_AT] if not _solves(task, problem, other)), None
    )
    texts = [trace.text, *([_fullest(task, stranger).answer] if stranger else []), "I do not know"]
    yield "Verdicts:"
    yield _fenced(*(f"{_cut(text, 120)}\n    {_verdict(task, problem, text)}" for text in texts))


def _solves(task: Task, problem: Problem, other: Problem) -> bool:
    return task.verify(problem, _fullest(task, other).answer).correct


def _verdict(task: Task, problem: Problem, text: str) -> str:
    verdict = task.verify(problem, text)
    return f"{'correct' if verdict.correct else 'wrong'}, progress {verdict.progress:.2g}: {verdict.reason}"


def _fullest(task: Task, problem: Problem) -> Trace:
    """The demonstration with every step, or the answer alone where the task has no room for steps."""
    try:
        return demonstration(task, problem, EXPLICIT)
    except ValueError:  # the documented refusal of a style
        return demonstration(task, problem, IMPLICIT)


def _declared(task: Task) -> str:
    """The task with the fields that differ from their defaults."""
    differing = [
        f"{entry.name}={getattr(task, entry.name)!r}"
        for entry in fields(task)  # type: ignore[arg-type]  # every task is a dataclass
        if entry.default is MISSING or getattr(task, entry.name) != entry.default
    ]
    return f"{type(task).__name__}({', '.join(differing)})"


def _first_sentence(cls: type) -> str:
    return " ".join((cls.__doc__ or "").strip().partition("\n\n")[0].split())


def _cut(text: str, limit: int = LONGEST_LINE) -> str:
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def _fenced(*lines: str) -> str:
    return "\n".join(["```text", *lines, "```"])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
