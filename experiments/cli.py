"""The command line. Each command's help ends with an example that works.

Exit codes: 0 done; 2 something was asked that cannot be, with one message that says what can; 130 interrupted. A fault
of the program keeps its traceback.
"""

from __future__ import annotations

import json
import re
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

from experiments.corpus_commands import corpus_app
from experiments.gpus import usable_cores, usual_workers
from experiments.naming import unknown
from experiments.runner import NodeFailedError
from experiments.store import Store, StoreError
from experiments.styles import HELP as STYLE_HELP
from experiments.styles import style_for
from experiments.worker import is_declared

if TYPE_CHECKING:  # torch takes seconds to import: only the commands that compute do so, in their own functions
    from experiments.experiment import Experiment, Scale
    from testbeds.core import Task
    from testbeds.suites import Suite

app = typer.Typer(
    name="stagecraft",
    help="A laboratory for how pretraining, supervised fine-tuning and reinforcement learning act on each other.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(corpus_app)

EXAMPLE = "Example:  stagecraft "
USUAL_COUNTS = ("train=1000", "validation=100", "test=100")
COUNT = re.compile(r"[1-9][0-9]{0,11}")  # ASCII digits; more problems than that fit nowhere
MANY_ROWS = 20_000  # below, workers would take longer to start than they save
SHOWN_DIGITS = 8  # of an id: enough to be the only one of a store
MOST_LISTED = 200  # nodes that a plan prints; the totals count all


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
StyleName = Annotated[str | None, typer.Option("--style", help=STYLE_HELP)]
StudyName = Annotated[str, typer.Argument(metavar="EXP", help="Name of an experiment, such as e01.")]
ScaleName = Annotated[str | None, typer.Option("--scale", help="Size of the study. (default: its first scale)")]
SeedCount = Annotated[int | None, typer.Option("--seeds", min=1, help="Number of seeds. (default: the scale's)")]
StoreRoot = Annotated[Path, typer.Option("--store", help="Directory of all artifacts.")]
OnlyArms = Annotated[list[str] | None, typer.Option("--only", metavar="ARM", help="Leave out other arms; repeatable.")]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Worker processes. (default: usable cores or GPUs)")
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that exists.")]
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


@app.command("list", epilog=f"{EXAMPLE}list")
def list_names() -> None:
    """List the testbeds with their levels, and the experiments."""
    from experiments.discovery import shared_names, studies
    from experiments.gallery import console
    from testbeds.catalogue import catalogue, levels
    from testbeds.suites import Splits

    out = console()
    testbeds = Table("testbed", "levels", "problems", title="Testbeds", title_justify="left")
    for name, cls in catalogue().items():
        testbeds.add_row(name, ", ".join(levels(name)), _first_line(cls.__doc__))
    out.print(testbeds)
    out.print("`stagecraft show TESTBED` measures the levels: longest prompt and trace, features for Evaluation.band.")
    splits = ", ".join(f"{split} {share:.0%}" for split, share in Splits().fractions)
    out.print(f"Splits of a suite, unless it declares others: {splits}\n")
    experiments = Table("experiment", "module", "question", title="Experiments", title_justify="left")
    shared = shared_names()
    for study in studies():
        note = " (two files)" if study.name in shared else ""
        experiments.add_row(study.name + note, study.module, study.headline)
    out.print(experiments)


@app.command(epilog=f"{EXAMPLE}show countdown --level easy --count 2")
def show(
    task: TaskName,
    *,
    level: LevelName = None,
    count: Annotated[int, typer.Option(min=1, help="Number of problems.")] = 3,
    style: StyleName = None,
    seed: Annotated[int, typer.Option(help="Another seed, other problems.")] = 0,
) -> None:
    """Show the levels of a testbed, and problems with worked solutions, verdicts and measured difficulty."""
    from itertools import islice

    from experiments.gallery import console, levels_table, problem_panel
    from testbeds.catalogue import levels
    from testbeds.demonstrations import each_demonstrated
    from testbeds.suites import Suite

    name, chosen = _task(task, level)
    wanted = style_for(chosen, style)
    out = console()
    out.print(levels_table(name.partition("/")[0], levels(name.partition("/")[0])))
    out.print(f"What a reader of {name} is told: {chosen.instructions}\n", soft_wrap=True)
    problems = Suite(task=chosen, seed=seed).stream("train")
    found = islice(each_demonstrated(chosen, problems, lambda _: wanted), count)
    for number, one in enumerate(found, start=1):
        passed_over = f" ({one.rejected} passed over: no such trace)" if one.rejected else ""
        heading = f"{name}, problem {number} of {count}{passed_over}"
        out.print(problem_panel(heading, chosen, one.problem, one.trace))


@app.command(epilog=f"{EXAMPLE}generate countdown --level easy --split train=100 --split test=20 --out countdown.jsonl")
def generate(  # noqa: PLR0913  # one parameter for each option
    task: TaskName,
    *,
    level: LevelName = None,
    split: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COUNT", help=f"Distinct problems of a split; repeatable. (default: {' '.join(USUAL_COUNTS)})"
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write. (default: TASK-LEVEL.jsonl)")] = None,
    format: Annotated[Format | None, typer.Option(help="Of the file. (default: by its ending)")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other problems of the same splits.")] = 0,
    style: StyleName = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help=f"Worker processes. (default: 1, from {MANY_ROWS} problems on usable cores)"),
    ] = None,
    force: Force = False,
) -> None:
    """Write distinct problems of disjoint splits, with demonstrations, to a JSONL or Parquet file.

    Ctrl-C is safe: the same command goes on where it was. The bytes do not depend on the number of workers.
    """
    from experiments.display import rows_bar
    from experiments.gallery import console
    from testbeds.export import write_suite
    from testbeds.suites import Suite

    name, chosen = _task(task, level)
    ending = format.value if format else "jsonl"
    path = out or Path(f"{name.replace('/', '-')}.{ending}")
    counts = _counts(split or USUAL_COUNTS)
    for file in (path, path.with_name(f"{path.name}.manifest.json")):
        check_destination(file, force=force)
    screen = console()
    with _resumable("finished parts are kept"), rows_bar(screen, sum(counts.values())) as report:
        manifest = write_suite(
            Suite(task=chosen, seed=seed),
            counts,
            path,
            style_for(chosen, style),
            format.value if format else None,
            workers=workers or (usable_cores() if sum(counts.values()) >= MANY_ROWS else 1),
            report=report,
        )
    summary = ", ".join(f"{count} {split_name}" for split_name, count in counts.items())
    screen.print(f"{path}: {summary} problems of {name}; its manifest is beside it", soft_wrap=True)
    rejected = manifest["rejected"]
    if isinstance(rejected, dict) and any(rejected.values()):
        passed_over = ", ".join(f"{count} {split_name}" for split_name, count in rejected.items())
        screen.print(f"passed over, as they have no trace in this style: {passed_over}", soft_wrap=True)


@app.command(epilog=f"{EXAMPLE}plan e01 --scale smoke")
def plan(  # noqa: PLR0913  # one parameter for each option
    exp: StudyName,
    *,
    scale: ScaleName = None,
    seeds: SeedCount = None,
    only: OnlyArms = None,
    workers: Workers = None,
    store: StoreRoot = DEFAULT_STORE,
    flops_per_s: Annotated[
        float | None,
        typer.Option(
            min=1.0,
            help="Speed of one worker of the machine that is meant, such as 3e13. (default: as measured here)",
        ),
    ] = None,
) -> None:
    """Show what a run would do: stages and evaluations, what is reused, FLOPs and estimated minutes."""
    experiment, chosen = _experiment(exp, scale, seeds)
    from experiments.plan_table import print_plan
    from experiments.planning import plan as make_plan

    place = Store(store)
    place.refuse_foreign()
    work_plan = make_plan(experiment, chosen, only=only or ())
    print_plan(work_plan, place, workers=workers or usable_cores(), most=MOST_LISTED, flops_per_s=flops_per_s)


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
    place.refuse_foreign()
    out = console()
    out.print(f"{experiment.name}, {chosen.name}: {experiment.question}", style="bold")
    work_plan = make_plan(experiment, chosen, only=only or ())
    with _resumable():
        summary = run_plan(
            experiment,
            chosen,
            work_plan,
            store=place,
            workers=workers or usual_workers(device.value),
            execution=Execution(device=device.value),
            display=Bars(out) if out.is_terminal else Lines(out),
        )
    out.print(f"{summary.made} made, {summary.reused} reused, in {duration(summary.seconds)}")
    last = next(node.id for node in reversed(work_plan.nodes) if node.kind == "stage")
    elsewhere = "" if store == DEFAULT_STORE else f" --store {shlex.quote(str(store))}"
    out.print(f"ask a policy: stagecraft sample {last[:SHOWN_DIGITS]} --count 3{elsewhere}", soft_wrap=True)
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
    force: Force = False,
) -> None:
    """Write the report of an experiment from what the store holds, complete or not."""
    experiment, chosen = _experiment(exp, scale, seeds)
    place = Store(store)
    place.require()
    if out is not None:
        check_destination(out, force=force)
    _write_report(experiment, chosen, place, out)


@app.command(epilog=f"{EXAMPLE}sample ARTIFACT_ID --count 3")
def sample(  # noqa: PLR0913  # one parameter for each option
    artifact: Annotated[
        str,
        typer.Argument(
            metavar="ARTIFACT",
            help="First digits of a stage's id, as `stagecraft plan EXP` and the end of a run show it, or a directory.",
        ),
    ],
    *,
    task: Annotated[str | None, typer.Option(help="Testbed to ask. (default: the artifact's own problems)")] = None,
    level: LevelName = None,
    count: Annotated[int, typer.Option(min=1, help="Number of problems.")] = 3,
    samples: Annotated[int, typer.Option(min=1, help="Completions of each problem.")] = 4,
    temperature: Annotated[float, typer.Option(min=0, help="Of sampling; 0 is greedy.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Another seed, other problems and other samples.")] = 0,
    store: StoreRoot = DEFAULT_STORE,
) -> None:
    """Ask a trained policy problems that it has not seen, and show its completions with the verifier's verdicts.

    Where the task lists the answers that a problem allows, such as legal moves, the likeliest stand below with their
    exact probabilities.
    """
    from experiments.gallery import completion_panel, console
    from experiments.sampling import Asked, ask, foreign_task, policy_directory, questions_for

    if level and not task:
        raise ValueError(f"--level {level} goes with --task; without it the artifact's own problems are asked")
    other = _asked(task, level) if task else None
    directory = policy_directory(artifact, Store(store))
    suite, split = other or questions_for(directory)
    if other and (strange := foreign_task(directory, suite.task)):
        _tell(f"warning: {strange}; without --task they are asked")
    asked = Asked(suite=suite, split=split, count=count, samples=samples, temperature=temperature, seed=seed)
    out = console()
    for number, answered in enumerate(ask(directory, asked), start=1):
        heading = f"{answered.title} ({split}), problem {number} of {count}"
        out.print(completion_panel(heading, answered))


def check_destination(file: Path, *, force: bool) -> None:
    """Refuse a place that holds something, before any work is done: a file gives way to ``--force`` alone."""
    if file.is_dir() or (file.exists() and not file.is_file()):
        raise ValueError(f"{file} is not a file that can be replaced; give --out the name of a file")
    if file.exists() and not force:
        raise ValueError(f"{file} exists; give --force to replace it, or --out with another name")


def check_device(device: Device) -> None:
    """Refuse ``cuda`` on a machine without it, before anything is started."""
    if device is Device.CUDA:
        import torch

        if not torch.cuda.is_available():
            raise ValueError("--device cuda: this machine has no CUDA device that torch can use; use auto or cpu")


def _tell(message: str) -> None:
    Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True).print(message)


@contextmanager
def _resumable(kept: str = "finished work is in the store, unfinished work has its checkpoints") -> Iterator[None]:
    """Ctrl-C and SIGTERM end the command with the line that resumes it."""
    try:
        yield
    except KeyboardInterrupt:
        command = shlex.join(["stagecraft", *sys.argv[1:]])
        _tell(f"interrupted: {kept}; to go on:\n  {command}")
        raise typer.Exit(130) from None


def _task(name: str, level: str | None) -> tuple[str, Task]:
    """The task of a testbed at a level, with its full name."""
    from testbeds.catalogue import catalogue, levels

    name = name.replace("-", "_")  # as people write names of several words
    if name not in (known := catalogue()):
        raise unknown("testbed", name, known)
    ladder = levels(name)
    if not ladder:
        raise ValueError(f"the testbed {name!r} names no levels; make its task in Python instead")
    chosen = level or next(iter(ladder))
    if chosen not in ladder:
        raise unknown(f"level of {name}", chosen, ladder)
    return f"{name}/{chosen}", ladder[chosen]


def _asked(task: str, level: str | None) -> tuple[Suite, str]:
    from testbeds.suites import Suite

    _, chosen = _task(task, level)
    return Suite(task=chosen), "test"


def _counts(entries: Sequence[str]) -> dict[str, int]:
    """``["train=100"]`` as a mapping."""
    counts: dict[str, int] = {}
    for entry in entries:
        name, _, number = entry.partition("=")
        if not name or not COUNT.fullmatch(number):
            raise ValueError(f"--split {entry!r} must be a split and a count of at least 1, such as train=1000")
        if name in counts:
            raise ValueError(f"--split has {name!r} more than once ({counts[name]} and {number}); give one count")
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
            out.print(f"{finding['outcome']}: {finding['claim']['statement']}", soft_wrap=True)
    out.print(f"report: {path}", soft_wrap=True)


def _first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0].replace("``", "")
