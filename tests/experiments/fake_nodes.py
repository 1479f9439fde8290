"""Nodes without a model, for tests of the runner: workers import this module, so it stands in a file of its own."""

from __future__ import annotations

import errno
import os
import signal
import time
from dataclasses import dataclass

import numpy as np

from experiments.graph import Kind, Plan, User
from testbeds.identity import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What ``training.execution.Progress`` is, without the seconds that importing torch takes."""

    done: int
    total: int
    metrics: dict[str, float]


LARGE = 16 << 20  # bytes; more than the file system that a test makes


def _safetensors(file):
    from safetensors.numpy import save_file

    save_file({"weight": np.zeros(LARGE, dtype=np.uint8)}, file)


def _torch(file):
    import torch

    torch.save({"weight": torch.zeros(LARGE, dtype=torch.uint8)}, file)


def _numpy(file):
    np.save(file, np.zeros(LARGE, dtype=np.uint8))


OVERFILLING = {"overfills by safetensors": _safetensors, "overfills by torch": _torch, "overfills by numpy": _numpy}
"""Moods in which a node writes more than a small disk holds, each with another library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeNode:
    """Hashes its parents' contents ``steps`` times, with a checkpoint after each step."""

    name: str
    parents: tuple[str, ...] = ()
    steps: int = 3
    step_s: float = 0.0
    mood: str = "works"
    users: tuple[User, ...] = (User(arm="only", seed=0),)
    kind: Kind = "stage"

    @property
    def id(self):
        return digest(self.name.encode())

    @property
    def description(self):
        return f"Fake {self.name}"

    def identity(self):
        return digest(b"another process") if self.mood == "forgets its name" else self.id

    def estimated_flops(self):
        return self.steps * 10**9

    def perform(self, parents, *, workspace, execution, report):
        (workspace / "pid").write_text(str(os.getpid()))
        self._misbehave(workspace)
        state = "".join([self.name, *(parent.joinpath("result.txt").read_text() for parent in parents)])
        checkpoint = workspace / "checkpoint.txt"
        done = 0
        if checkpoint.exists():
            count, state = checkpoint.read_text().split(maxsplit=1)
            done = int(count)
        for step in range(done, self.steps):
            state = digest(state.encode())
            new = workspace / "checkpoint.new"
            new.write_text(f"{step + 1} {state}")
            new.replace(checkpoint)
            with (workspace.parents[1] / "performed.log").open("a") as log:
                log.write(f"{self.name} {step}\n")
            report(Progress(done=step + 1, total=self.steps, metrics={"loss": 1.0 / (step + 1)}))
            time.sleep(self.step_s)
        (workspace / "artifact").mkdir(exist_ok=True)
        (workspace / "artifact" / "result.txt").write_text(state)

        if self.mood == "counts threads":
            import torch

            threads = f"{torch.get_num_threads()} {os.environ['OMP_NUM_THREADS']}"
            (workspace / "artifact" / "threads.txt").write_text(threads)

    def _misbehave(self, workspace):
        if self.mood == "raises":
            raise ZeroDivisionError("a fault of the program")
        if self.mood == "fills the disk":
            raise OSError(errno.ENOSPC, "No space left on device")
        if self.mood == "is failed by a library":
            raise RuntimeError("[enforce fail at inline_container.cc:664] . unexpected pos 64 vs 0\nframe #0: ...")
        if self.mood in OVERFILLING:
            OVERFILLING[self.mood](workspace / "large")
        if self.mood == "dies always" or (self.mood == "dies once" and not (workspace / "died").exists()):
            (workspace / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)


def result(node, *parents):
    """What the node's result is, without running it. ``parents`` are results."""
    state = "".join([node.name, *parents])
    for _ in range(node.steps):
        state = digest(state.encode())
    return state


def plan_of(*nodes):
    return Plan(experiment="fake", scale="smoke", seeds=(0,), arms=("only",), nodes=nodes)
