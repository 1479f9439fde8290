"""Asking a finished policy: from an artifact to problems, completions and verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.revival import parts_of_class, revive
from experiments.store import Store, StoreError
from models import Policy
from testbeds.core import Problem, Verdict
from testbeds.identity import qualified_name
from testbeds.streams import lanes
from testbeds.suites import Suite
from training.rewards import Exact
from training.rollouts import roll_out

WEIGHTS = "model.safetensors"
RECIPE = "recipe.json"
UNSEEN_SPLITS = ("test", "validation")  # asked in this order; stages train on others


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which problems are asked, and how."""

    suite: Suite
    split: str
    count: int
    """Number of problems."""
    samples: int
    """Completions of each; greedy decoding gives one."""
    temperature: float
    """0 is greedy decoding."""
    seed: int
    """Chooses the problems and keys the sampling noise."""


def policy_directory(artifact: str, store: Store) -> Path:
    """The directory of a policy, from a directory's name or from the first digits of an id."""
    directory = Path(artifact)
    if not directory.is_dir():
        directory = store.path(store.resolve(artifact))
    if not (directory / WEIGHTS).is_file():
        raise StoreError(f"{directory} holds no policy (no {WEIGHTS}); give a stage, not an evaluation")
    return directory


def questions_for(directory: Path) -> tuple[str, Suite, str]:
    """Name, suite and split of unseen problems of the kind that an artifact's last stage learned from."""
    file = directory / RECIPE
    if not file.is_file():
        raise StoreError(f"{file} is missing, so the artifact does not say what it learned; give --task")
    recipe = json.loads(file.read_text(encoding="utf-8"))
    suites = list(parts_of_class(recipe, Suite))
    if not suites:
        raise ValueError(f"{file} names no suite of problems; give --task")
    suite = revive(suites[-1])
    names = suite.splits.names
    split = next((name for name in UNSEEN_SPLITS if name in names), names[-1])
    return qualified_name(type(suite.task)).removeprefix("testbeds."), suite, split


def ask(directory: Path, asked: Asked) -> Iterator[tuple[Problem, list[tuple[str, Verdict]]]]:
    """Each problem with the policy's completions and the verdicts on them."""
    policy = Policy.load(directory)
    problems = asked.suite.stream(asked.split, "sample", asked.seed).take(0, asked.count)
    greedy = asked.temperature == 0
    group = 1 if greedy else asked.samples
    longest = max(len(ids) for ids in policy.tokenizer.encode_many([problem.prompt for problem in problems]))
    rollouts = roll_out(
        policy,
        asked.suite.task,
        problems,
        lanes_PG=lanes("sample", asked.seed, rows=len(problems), columns=group),
        verifier=Exact(),
        max_new_tokens=policy.decoder.architecture.context - longest,
        temperature=1.0 if greedy else asked.temperature,
        greedy=greedy,
    )
    for row, problem in enumerate(problems):
        rows = range(row * group, (row + 1) * group)
        yield problem, [(rollouts.texts[i], rollouts.verdicts[i]) for i in rows]
