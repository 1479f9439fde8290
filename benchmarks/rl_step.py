"""Where the time of an RL step goes, on one thread, at e01's settings and for a larger model with a larger batch.

The step is the stage's own; timers are put around functions that it calls. The policy has first imitated a few
demonstrations, so that its completions are as long as e01's. Every group gets mixed rewards, so that every row is
trained on: the dearest step that the settings allow.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import ClassVar, Final, ParamSpec, TypeVar
from unittest.mock import patch

import torch
from jaxtyping import Float
from lightning.fabric import Fabric
from rich.table import Table
from torch import Tensor

from benchmarks.side_by_side import machine, show
from experiments import Scale
from experiments.e01_demonstrations import arms, problems
from models import SIZES, Decoder, Decoding, Policy, Tokenizer, sampling
from testbeds.suites import ProblemStream
from training import RL, SFT, AdamW, Budget, Demonstrations, Execution, Recipe, reinforce, rollouts
from training.execution import silent
from training.learner import Learner
from training.ledger import Ledger
from training.run import ARTIFACT, make_fabric, train_stage

IMITATION_STEPS: Final = 100  # enough to answer in the demonstrations' form
EXECUTION: Final = Execution(device="cpu")
WARM_UP: Final = 2  # steps, not counted
STEPS: Final = 15

Trail = tuple[str, ...]
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfRight:
    """Every second rollout of a group is paid, whatever it is: no group is without a gradient."""

    revision: ClassVar[int] = 1

    def __call__(self, correct_PG: Float[Tensor, "P G"], seed: int, step: int) -> Float[Tensor, "P G"]:
        return (torch.arange(correct_PG.shape[1]) % 2).float().expand_as(correct_PG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A model and an RL stage."""

    name: str
    recipe: Recipe
    """A stage of imitation, then the RL stage to be measured."""


def settings() -> tuple[Setting, ...]:
    """e01's model and stage; and ten times the parameters with twice the rollouts."""
    small = arms(1, Scale(name="demo", seeds=1))["rl"]
    stage = small.stages[-1]
    if not isinstance(stage, RL):
        raise TypeError(f"the last stage of e01's arm rl should be RL, got {stage}")
    stage = replace(stage, reward=HalfRight())
    imitation = SFT(
        source=Demonstrations(suite=problems(1, depth=5), count=64),
        budget=Budget(steps=IMITATION_STEPS),
        optimizer=AdamW(rate=3e-3),
        seed=1,
    )
    large = replace(SIZES["1M"], context=small.model.context)
    return (
        Setting(name="0.1M, 256 rollouts (e01)", recipe=replace(small, stages=(imitation, stage))),
        Setting(
            name="1M, 512 rollouts", recipe=replace(small, model=large, stages=(imitation, replace(stage, prompts=64)))
        ),
    )


class Stopwatch:
    """Processor time inside chosen functions, by the path of chosen functions that led there."""

    def __init__(self) -> None:
        self.spent: defaultdict[Trail, float] = defaultdict(float)
        self._path: Trail = ()

    @contextmanager
    def reading(self, *places: tuple[object, str, str]) -> Iterator[None]:
        """While it lasts, each (owner, attribute) is timed under the name beside it."""
        with ExitStack() as stack:
            for owner, attribute, name in places:
                stack.enter_context(patch.object(owner, attribute, self.timed(getattr(owner, attribute), name)))
            yield

    def timed(self, function: Callable[P, R], name: str) -> Callable[P, R]:
        """The function, timed."""

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            outer, self._path = self._path, (*self._path, name)
            began = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.spent[self._path] += time.process_time() - began
                self._path = outer

        return call


PLACES: Final = (
    (ProblemStream, "take", "problems"),
    (reinforce, "roll_out", "rollouts"),
    (Policy, "sample", "sampling"),
    (Decoder, "features", "transformer"),
    (Decoding, "logp", "distribution"),
    (sampling, "uniforms", "draw"),
    (sampling, "draw", "draw"),
    (Tokenizer, "encode_many", "text"),
    (Tokenizer, "decode", "text"),
    (rollouts, "judge", "verification"),
    (reinforce, "pack", "packing"),
    (reinforce, "sampling_flops", "ledger"),
    (reinforce, "training_flops", "ledger"),
    (Learner, "update", "update"),
    (reinforce, "completion_logp", "forward"),
    (Fabric, "backward", "backward"),
    (torch.optim.AdamW, "step", "AdamW"),
)
STEP: Final = "step"


def measure(setting: Setting) -> tuple[list[Mapping[Trail, float]], float]:
    """Seconds per path of each step, and the mean length of the completions in tokens."""
    recipe = setting.recipe
    with TemporaryDirectory() as directory:
        workspace = Path(directory)
        train_stage(recipe, 0, parent=None, workspace=workspace, execution=EXECUTION, report=silent)
        parent = workspace / ARTIFACT
        stage = recipe.stages[1]
        learner = Learner(
            fabric=make_fabric(EXECUTION, recipe.precision),
            policy=Policy.load(parent),
            declared=stage.optimizer,
            parent=parent,
        )
        take_step = stage.start(learner)
        steps: list[Mapping[Trail, float]] = []
        lengths: list[float] = []
        ledger = Ledger()
        for number in range(WARM_UP + STEPS):
            watch = Stopwatch()
            with watch.reading(*PLACES):
                result = watch.timed(take_step, STEP)(number, ledger)
            ledger = ledger.plus(steps=1, training=result.training, sampling=result.sampling)
            steps.append(watch.spent)
            lengths.append(result.metrics["length_tokens"])
    return steps[WARM_UP:], fmean(lengths[WARM_UP:])


def mean_of_middle(steps: Sequence[Mapping[Trail, float]]) -> dict[Trail, float]:
    """Mean seconds of each path over the middle half of the steps by total time: robust, and parts still add up."""
    cut = len(steps) // 4
    middle = sorted(steps, key=lambda step: step[STEP,])[cut : len(steps) - cut]
    paths = set().union(*middle)
    return {path: fmean(step.get(path, 0.0) for step in middle) for path in paths}


def rows(seconds: Mapping[Trail, float], path: Trail = (STEP,)) -> Iterator[tuple[str, float]]:
    """A path's name, indented by depth, with its seconds; then its parts, the dearest first, and what is left over."""
    yield "  " * (len(path) - 1) + path[-1], seconds[path]
    parts = sorted((part for part in seconds if part[:-1] == path), key=lambda part: -seconds[part])
    for part in parts:
        yield from rows(seconds, part)
    if parts:
        yield "  " * len(path) + "the rest", seconds[path] - sum(seconds[part] for part in parts)


def main() -> None:
    """Print a table per setting."""
    torch.set_num_threads(1)
    for setting in settings():
        steps, length = measure(setting)
        seconds = mean_of_middle(steps)
        table = Table(setting.name, "CPU ms", "share")
        for name, spent in rows(seconds):
            table.add_row(name, f"{1000 * spent:.1f}", f"{spent / seconds[STEP,]:.1%}")
        show(table, f"Completions of {length:.1f} tokens on average.", "")
    show(f"python -m benchmarks.rl_step: {machine()}, one thread, {STEPS} steps")


if __name__ == "__main__":
    main()
