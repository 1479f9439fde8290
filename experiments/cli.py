"""The command line. Each command's help ends with an example that works.

Exit codes: 0 done; 2 something was asked that cannot be, with one message that says what can; 130 interrupted. A fault
of the program keeps its traceback.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from experiments.naming import unknown
from experiments.runner import NodeFailedError
from experiments.store import Store, StoreError
from experiments.worker import is_declared

if TYPE_CHECKING:  # torch takes seconds to import: only the commands that compute do so, in their own functions
    from experiments.experiment import Experiment, Scale
    from testbeds.core import Task, TraceStyle
    from testbeds.suites import Suite

app = typer.Typer(
    name="stagecraft",
    help="A laboratory for how pretraining, supervised fine-tuning and reinforcement learning act on each other.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

EXAMPLE = "Example:  stagecraft "
COMPOSED_GROUP = 2  # steps that the command line's composed style folds into one
MOST_LISTED = 200  # nodes that a plan prints; the totals count all


class Style(StrEnum):
    """How demonstrations are written."""

    EXPLICIT = "explicit"
    IMPLICIT = "implicit"
    COMPOSED = "composed"


class Format(StrEnum):
    """Of an exported suite."""

    JSONL = "jsonl"
    PARQUET = "parquet"


class Device(StrEnum):
    """Where stages run."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


TaskName = Annotated[str, typer.Argument(metavar="TASK", help="Name of a testbed; `stagecraft list` shows them.")]
LevelName = Annotated[str | None, typer.Option("--level", help="Named difficulty. (default: the testbed's first)")]
StyleName = Annotated[Style, typer.Option("--style", help="How demonstrations are written.")]
StudyName = Annotated[str, typer.Argument(metavar="EXP", help="Name of an experiment, such as e01.")]
ScaleName = Annotated[str | None, typer.Option("--scale", help="Size of the study. (default: its first scale)")]
SeedCount = Annotated[int | None, typer.Option("--seeds", min=1, help="Number of seeds. (default: the scale's)")]
StoreRoot = Annotated[Path, typer.Option("--store", help="Directory of all artifacts.")]
OnlyArms = Annotated[list[str] | None, typer.Option("--only", metavar="ARM", help="Leave out other arms; repeatable.")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Worker processes. (default: usable cores)")]
DEFAULT_STORE = Path("store")


def main() -> None:
    """Run the command line, and turn an expected error into one message and exit code 2."""
    try:
        app()
    except (ValueError, StoreError) as error:
        if not is_declared(error):
            raise
        _tell(f"error: {error}")
        sys.exit(2)
    except NodeFailedError as error:
        _tell(f"{error.details}\nerror: {error}" if not error.declared else f"error: {error}")
        sys.exit(2 if error.declared else 1)
    except OSError as error:  # a file that cannot be read or written: the message names it
        _tell(f"error: {error}")
        sys.exit(2)


def usable_cores() -> int:
    """Number of cores that this process may use, which in a container is fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@app.command("list", epilog=f"{EXAMPLE}list")
def list_names() -> None:
    """List the testbeds with their levels, and the experiments."""
    from experiments.discovery import studies
    from experiments.gallery import console
    from testbeds.catalogue import catalogue, levels

    out = console()
    testbeds = Table("testbed", "levels", "problems", title="Testbeds", title_justify="left")
    for name, cls in catalogue().items():
        testbeds.add_row(name, ", ".join(levels(name)), _first_line(cls.__doc__))
    out.print(testbeds)
    experiments = Table("experiment", "module", "question", title="Experiments", title_justify="left")
    for study in studies():
        experiments.add_row(study.name, study.module, study.headline)
    out.print(experiments)


@app.command(epilog=f"{EXAMPLE}show countdown --level easy --count 2")
def show(
    task: TaskName,
    *,
    level: LevelName = None,
    count: Annotated[int, typer.Option(min=1, help="Number of problems.")] = 3,
    style: StyleName = Style.EXPLICIT,
    seed: Annotated[int, typer.Option(help="Another seed, other problems.")] = 0,
) -> None:
    """Show problems of a testbed with worked solutions, verdicts and measured difficulty."""
    from experiments.gallery import console, problem_panel
    from testbeds.streams import stream

    name, chosen = _task(task, level)
    out = console()
    for number, problem in enumerate(chosen.generate(stream("show", seed), count), start=1):
        trace = chosen.demonstrate(problem, _trace_style(style), stream("show trace", seed, problem.key))
        out.print(problem_panel(f"{name}, problem {number} of {count}", chosen, problem, trace))


@app.command(epilog=f"{EXAMPLE}generate countdown --level easy --split train=100 --split test=20 --out countdown.jsonl")
def generate(  # noqa: PLR0913  # one parameter for each option
    task: TaskName,
    *,
    level: LevelName = None,
    split: Annotated[
        list[str] | None, typer.Option(metavar="NAME=COUNT", help="Distinct problems of a split; repeatable.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write. (default: TASK-LEVEL.jsonl)")] = None,
    format: Annotated[Format | None, typer.Option(help="Of the file. (default: by its ending)")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other problems of the same splits.")] = 0,
    style: StyleName = Style.EXPLICIT,
) -> None:
    """Write distinct problems of disjoint splits, with demonstrations, to a JSONL or Parquet file."""
    from experiments.gallery import console
    from testbeds.export import write_suite
    from testbeds.suites import Suite

    name, chosen = _task(task, level)
    ending = format.value if format else "jsonl"
    path = out or Path(f"{name.replace('/', '-')}.{ending}")
    counts = _counts(split or ["train=1000", "validation=100", "test=100"])
    write_suite(Suite(task=chosen, seed=seed), counts, path, _trace_style(style), format.value if format else None)
    summary = ", ".join(f"{count} {split_name}" for split_name, count in counts.items())
    console().print(f"{path}: {summary} problems of {name}; its manifest is beside it", soft_wrap=True)


@app.command(epilog=f"{EXAMPLE}plan e01 --scale smoke")
def plan(
    exp: StudyName,
    *,
    scale: ScaleName = None,
    seeds: SeedCount = None,
    only: OnlyArms = None,
    workers: Workers = None,
    store: StoreRoot = DEFAULT_STORE,
) -> None:
    """Show what a run would do: stages and evaluations, what is reused, FLOPs and estimated minutes."""
    experiment, chosen = _experiment(exp, scale, seeds)
    from experiments.plan_table import print_plan
    from experiments.planning import plan as make_plan

    work_plan = make_plan(experiment, chosen, only=only or ())
    print_plan(work_plan, Store(store), workers=workers or usable_cores(), most=MOST_LISTED)


@app.command(epilog=f"{EXAMPLE}run e01 --scale smoke --workers 2")
def run(  # noqa: PLR0913  # one parameter for each option
    exp: StudyName,
    *,
    scale: ScaleName = None,
    seeds: SeedCount = None,
    workers: Workers = None,
    only: OnlyArms = None,
    device: Annotated[Device, typer.Option(help="Where stages run; precision is part of the recipe.")] = Device.AUTO,
    store: StoreRoot = DEFAULT_STORE,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write the report at the end.")] = True,
) -> None:
    """Run an experiment: whatever the store lacks, then the report. Ctrl-C is safe; the same command resumes."""
    experiment, chosen = _experiment(exp, scale, seeds)
    check_device(device)
    from experiments.display import Bars, Lines, duration
    from experiments.gallery import console
    from experiments.planning import plan as make_plan
    from experiments.runner import run as run_plan
    from training.execution import Execution

    place = Store(store)
    out = console()
    out.print(f"{experiment.name}, {chosen.name}: {experiment.question}", style="bold")
    work_plan = make_plan(experiment, chosen, only=only or ())
    with _resumable():
        summary = run_plan(
            experiment,
            chosen,
            work_plan,
            store=place,
            workers=workers or usable_cores(),
            execution=Execution(device=device.value),
            display=Bars(out) if out.is_terminal else Lines(out),
        )
    out.print(f"{summary.made} made, {summary.reused} reused, in {duration(summary.seconds)}")
    if report:
        _write_report(experiment, chosen, place, None)


@app.command(epilog=f"{EXAMPLE}report e01 --scale smoke --out report.html")
def report(
    exp: StudyName,
    *,
    scale: ScaleName = None,
    seeds: SeedCount = None,
    store: StoreRoot = DEFAULT_STORE,
    out: Annotated[Path | None, typer.Option(help="File to write. (default: in the store)")] = None,
) -> None:
    """Write the report of an experiment from what the store holds, complete or not."""
    experiment, chosen = _experiment(exp, scale, seeds)
    _write_report(experiment, chosen, Store(store), out)


@app.command(epilog=f"{EXAMPLE}sample 3f9a --task latent_modules --level easy --count 4")
def sample(  # noqa: PLR0913  # one parameter for each option
    artifact: Annotated[str, typer.Argument(metavar="ARTIFACT", help="Id, its first digits, or a directory.")],
    *,
    task: Annotated[str | None, typer.Option(help="Testbed to ask. (default: the artifact's own problems)")] = None,
    level: LevelName = None,
    count: Annotated[int, typer.Option(min=1, help="Number of problems.")] = 3,
    samples: Annotated[int, typer.Option(min=1, help="Completions of each problem.")] = 4,
    temperature: Annotated[float, typer.Option(min=0, help="Of sampling; 0 is greedy.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Another seed, other problems and other samples.")] = 0,
    store: StoreRoot = DEFAULT_STORE,
) -> None:
    """Ask a trained policy problems, and show its completions with the verifier's verdicts."""
    from experiments.gallery import completion_panel, console
    from experiments.sampling import Asked, ask, policy_directory, questions_for

    if level and not task:
        raise ValueError(f"--level {level} goes with --task; without it the artifact's own problems are asked")
    directory = policy_directory(artifact, Store(store))
    name, suite, split = _asked(task, level) if task else questions_for(directory)
    asked = Asked(suite=suite, split=split, count=count, samples=samples, temperature=temperature, seed=seed)
    out = console()
    for number, (problem, completions) in enumerate(ask(directory, asked), start=1):
        out.print(completion_panel(f"{name} ({split}), problem {number} of {count}", problem, completions))


def check_device(device: Device) -> None:
    """Refuse ``cuda`` on a machine without it, before anything is started."""
    if device is Device.CUDA:
        import torch

        if not torch.cuda.is_available():
            raise ValueError("--device cuda: this machine has no CUDA device that torch can use; use auto or cpu")


def _tell(message: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(message, markup=False)


@contextmanager
def _resumable() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the command with the line that resumes it."""
    try:
        yield
    except KeyboardInterrupt:
        command = shlex.join(["stagecraft", *sys.argv[1:]])
        _tell(
            f"interrupted: finished work is in the store, unfinished work has its checkpoints; to go on:\n  {command}"
        )
        raise typer.Exit(130) from None


def _task(name: str, level: str | None) -> tuple[str, Task]:
    """The task of a testbed at a level, with its full name."""
    from testbeds.catalogue import catalogue, levels

    if name not in (known := catalogue()):
        raise unknown("testbed", name, known)
    ladder = levels(name)
    if not ladder:
        raise ValueError(f"the testbed {name!r} names no levels; make its task in Python instead")
    chosen = level or next(iter(ladder))
    if chosen not in ladder:
        raise unknown(f"level of {name}", chosen, ladder)
    return f"{name}/{chosen}", ladder[chosen]


def _asked(task: str, level: str | None) -> tuple[str, Suite, str]:
    from testbeds.suites import Suite

    name, chosen = _task(task, level)
    return name, Suite(task=chosen), "test"


def _trace_style(style: Style) -> TraceStyle:
    from testbeds.core import TraceStyle

    return TraceStyle(granularity=style.value, group=COMPOSED_GROUP if style is Style.COMPOSED else 1)


def _counts(entries: Sequence[str]) -> dict[str, int]:
    """``["train=100"]`` as a mapping."""
    counts: dict[str, int] = {}
    for entry in entries:
        name, _, number = entry.partition("=")
        if not name or not number.isdecimal() or int(number) < 1:
            raise ValueError(f"--split {entry!r} must be a split and a count of at least 1, such as train=1000")
        counts[name] = int(number)
    return counts


def _experiment(name: str, scale: str | None, seeds: int | None) -> tuple[Experiment, Scale]:
    """An experiment and its scale of this name, with another number of seeds where one is given.

    Commands call it before they import what computes, so that a misspelt name is answered at once.
    """
    from experiments.discovery import experiment_named

    experiment = experiment_named(name)
    known = [entry.name for entry in experiment.scales]
    if scale is not None and scale not in known:
        raise unknown(f"scale of {experiment.name}", scale, known)
    chosen = experiment.scale(scale)
    return experiment, chosen if seeds is None else replace(chosen, seeds=seeds)


def _write_report(experiment: Experiment, scale: Scale, store: Store, destination: Path | None) -> None:
    from experiments.gallery import console
    from experiments.report import build_report

    path = build_report(experiment, scale, store, destination)
    out = console()
    findings = path.with_name("findings.json")
    if destination is None and findings.is_file():
        for finding in json.loads(findings.read_bytes())["findings"]:
            out.print(f"{finding['outcome']}: {finding['claim']['statement']}", markup=False, soft_wrap=True)
    out.print(f"report: {path}", markup=False, soft_wrap=True)


def _first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0].replace("``", "")
