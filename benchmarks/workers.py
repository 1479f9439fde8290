"""Independent small trainings on a few cores: threads, processes, or both?

The trainings are the first steps of e01's base model, one world each, through ``train_stage`` as the runner calls it.
Worker processes are spawned like the runner's, and are ready before the clock starts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import torch
from rich.table import Table

from benchmarks.side_by_side import machine, show
from experiments import Scale
from experiments.e01_demonstrations import arms
from training import Budget, Execution, Pretrain, Recipe
from training.execution import silent
from training.run import ARTIFACT, train_stage

STEPS: Final = 60  # of each training; there are as many trainings as cores
ROUNDS: Final = 3
RUNNER: Final = 1  # the place of the runner's way among the modes


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A way to spread trainings over cores."""

    processes: int
    threads: int
    """Of each process."""

    @property
    def name(self) -> str:
        """Such as "2 processes x 1 thread"."""
        return f"{_counted(self.processes, 'process', 'processes')} x {_counted(self.threads, 'thread', 'threads')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What one training cost, and what came out."""

    cpu_s: float
    digest: str
    """Of the weights' file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """All trainings once, in one mode."""

    wall_s: float
    trained: tuple[Trained, ...]

    @property
    def cpu_s(self) -> float:
        """Processor time of all processes and threads."""
        return sum(one.cpu_s for one in self.trained)

    @property
    def digests(self) -> tuple[str, ...]:
        """Of each training's weights."""
        return tuple(one.digest for one in self.trained)


def modes(cores: int) -> tuple[Mode, ...]:
    """What is compared; the second is what the runner does."""
    return (
        Mode(processes=1, threads=cores),
        Mode(processes=cores, threads=1),
        Mode(processes=cores, threads=cores),
    )


def recipe(world: int, steps: int) -> Recipe:
    """The first steps of e01's base in a world of its own."""
    base = arms(world, Scale(name="smoke", seeds=1))["base"]
    (pretrain,) = base.stages
    if not isinstance(pretrain, Pretrain):
        raise TypeError(f"e01's base should be one Pretrain stage, got {pretrain}")
    return replace(base, stages=(replace(pretrain, budget=Budget(steps=steps)),))


def train(world: int, steps: int) -> Trained:
    """One training in this process."""
    began = time.process_time()
    with TemporaryDirectory() as directory:
        workspace = Path(directory)
        train_stage(
            recipe(world, steps),
            0,
            parent=None,
            workspace=workspace,
            execution=Execution(device="cpu"),
            report=silent,
        )
        weights = (workspace / ARTIFACT / "model.safetensors").read_bytes()
    return Trained(cpu_s=time.process_time() - began, digest=blake2b(weights, digest_size=16).hexdigest())


def spawned(mode: Mode, stack: ExitStack) -> list[ProcessPoolExecutor]:
    """The mode's processes, each an executor of its own, which the stack ends."""
    return [
        stack.enter_context(
            ProcessPoolExecutor(
                max_workers=1,
                mp_context=get_context("spawn"),
                initializer=torch.set_num_threads,
                initargs=(mode.threads,),
            )
        )
        for _ in range(mode.processes)
    ]


def run_round(lanes: Sequence[ProcessPoolExecutor], worlds: Sequence[int]) -> Round:
    """Every world's training, dealt to the processes in turn."""
    began = time.perf_counter()
    futures = [lanes[number % len(lanes)].submit(train, world, STEPS) for number, world in enumerate(worlds)]
    trained = tuple(future.result() for future in futures)
    return Round(wall_s=time.perf_counter() - began, trained=trained)


def main() -> None:
    """Print the table."""
    cores = os.cpu_count() or 1
    worlds = range(1, cores + 1)
    compared = modes(cores)
    with ExitStack() as stack:
        lanes = [spawned(mode, stack) for mode in compared]
        for ready in [lane.submit(train, 0, 2) for of_mode in lanes for lane in of_mode]:
            ready.result()
        rounds = [[run_round(of_mode, worlds) for of_mode in lanes] for _ in range(ROUNDS)]
    by_mode = list(zip(*rounds, strict=True))
    table = Table("", "wall s", "/ the runner's (range)", "CPU s", "same weights as the runner")
    for mode, of_mode in zip(compared, by_mode, strict=True):
        table.add_row(mode.name, *cells(of_mode, by_mode[RUNNER]))
    show(table, f"python -m benchmarks.workers: {machine()}, {len(worlds)} trainings of {STEPS} steps")


def cells(rounds: Sequence[Round], runner: Sequence[Round]) -> tuple[str, ...]:
    """Medians over rounds, with the range of the ratio, and whether all weights are bit-equal."""
    ratios = [one.wall_s / other.wall_s for one, other in zip(rounds, runner, strict=True)]
    equal = all(one.digests == other.digests for one, other in zip(rounds, runner, strict=True))
    return (
        f"{median(one.wall_s for one in rounds):.1f}",
        f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
        f"{median(one.cpu_s for one in rounds):.1f}",
        "yes" if equal else "no",
    )


def _counted(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"


if __name__ == "__main__":
    main()
