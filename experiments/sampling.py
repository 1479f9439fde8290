"""Asking a finished policy: from an artifact to problems, completions and verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from experiments.store import RECORD, Store, StoreError, first_line, verified
from models import Policy
from testbeds.catalogue import catalogue, levels
from testbeds.core import Problem, Task, Verdict
from testbeds.gallery import drawing
from testbeds.identity import Canonical, canonical, qualified_name
from testbeds.mixture import Mixture, component_of, testbed_name
from testbeds.revival import CLASS, parts_of_class, revive
from testbeds.streams import lanes
from testbeds.suites import Splits, Suite
from testbeds.verifiers import Exact
from training.probes import Probe, probe
from training.rollouts import roll_out

WEIGHTS = "model.safetensors"
RECIPE = "recipe.json"
UNSEEN_SPLITS = ("test", "validation")  # asked in this order; stages train on others
LONGEST_TITLE = 80  # characters of a task in a heading; a lexicon among its fields would bury the rest


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One problem with what the policy said to it."""

    title: str
    """The problem's task: of a mixture, the one that it is of."""
    problem: Problem
    completions: tuple[tuple[str, Verdict], ...]
    drawn: str | None = None
    """The problem as a person would draw it, where its testbed draws."""
    probed: Probe | None = None
    """The exact probability of each answer that the problem allows, where its task lists them."""


def policy_directory(artifact: str, store: Store) -> Path:
    """The verified directory of a policy, from a directory's name or from the first digits of an id."""
    directory = Path(artifact)
    if not directory.is_dir():
        directory = store.path(store.resolve(artifact))
    elif (directory / RECORD).is_file():
        verified(directory)
    if not (directory / WEIGHTS).is_file():
        raise StoreError(f"{directory} holds no policy (no {WEIGHTS}); give a stage, not an evaluation")
    return directory


def questions_for(directory: Path) -> tuple[Suite, str]:
    """Suite and split of unseen problems of the kind that an artifact's last stage learned from."""
    recipe = _recipe(directory)
    if recipe is None:
        raise StoreError(f"{directory / RECIPE} is missing, so the artifact does not say what it learned; give --task")
    suites = list(_learned(recipe))
    if not suites:
        raise StoreError(f"{directory / RECIPE} names no suite of problems; give --task")
    suite = _suite(directory, suites[-1])
    names = suite.splits.names
    return suite, next((name for name in UNSEEN_SPLITS if name in names), names[-1])


def foreign_task(directory: Path, task: Task) -> str | None:
    """Why a policy cannot be expected to do ``task``: no stage of its recipe had such problems.

    None where one had, and where the artifact does not say.
    """
    try:
        recipe = _recipe(directory)
        learned = list(_learned(recipe))
        tasks = [form[".task"] for form in learned if ".task" in form]
        if recipe is None or canonical(task) in parts_of_class(tasks, type(task)):
            return None
        suites = [_suite(directory, form) for form in learned]
    except StoreError:  # a recipe of another version, or none at all: asking needs only the policy
        return None
    own = dict.fromkeys(task_title(part) for suite in suites for part in components(suite.task))
    return f"no stage of this artifact had problems of {task_title(task)}; it had those of {', '.join(own) or 'none'}"


def ask(directory: Path, asked: Asked) -> Iterator[Answered]:
    """Each problem with the policy's completions, the verdicts on them, and what it would answer at once."""
    policy = _policy(directory)
    task = asked.suite.task
    problems = asked.suite.stream(asked.split, "sample", asked.seed).take(0, asked.count)
    greedy = asked.temperature == 0
    group = 1 if greedy else asked.samples
    longest = max(len(ids) for ids in policy.tokenizer.encode_many([problem.prompt for problem in problems]))
    max_new_tokens = policy.decoder.architecture.context - longest
    rollouts = roll_out(
        policy,
        task,
        problems,
        lanes_PG=lanes("sample", asked.seed, rows=len(problems), columns=group),
        verifier=Exact(),
        max_new_tokens=max_new_tokens,
        temperature=1.0 if greedy else asked.temperature,
        greedy=greedy,
    )
    probes = probe(policy, task, problems, max_new_tokens=max_new_tokens)
    for row, problem in enumerate(problems):
        _, component, inner = component_of(task, problem)
        rows = range(row * group, (row + 1) * group)
        yield Answered(
            title=task_title(component),
            problem=problem,
            completions=tuple((rollouts.texts[i], rollouts.verdicts[i]) for i in rows),
            drawn=drawing(component, inner),
            probed=probes[row],
        )


def components(task: Task) -> Iterator[Task]:
    """The tasks that are no mixtures, in order."""
    if not isinstance(task, Mixture):
        yield task
        return
    for part in task.tasks:
        yield from components(part)


def task_title(task: Task) -> str:
    """A task in few words: ``testbed/level`` where it is a named one, else the fields that are not the default."""
    for name in catalogue():
        for level, named in levels(name).items():
            if named == task:
                return f"{name}/{level}"
    chosen = ", ".join(_fields_that_differ(task))
    title = f"{testbed_name(task)}({chosen})"
    return title if len(title) <= LONGEST_TITLE else f"{title[:LONGEST_TITLE]}...)"


def _fields_that_differ(declared: object) -> Iterator[str]:
    if not is_dataclass(declared):
        return
    for each in fields(declared):
        value = getattr(declared, each.name)
        if each.default is MISSING or value != each.default:
            yield f"{each.name}={value!r}"


def _recipe(directory: Path) -> Canonical:
    """The canonical form of a recipe; None where the directory has none."""
    file = directory / RECIPE
    if not file.is_file():
        return None
    try:
        recipe: Canonical = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _unreadable(file, error) from error
    return recipe


def _learned(form: Canonical) -> Iterator[dict[str, Canonical]]:
    """The suites that a recipe learned from, in order. One inside another is what that one keeps out of training."""
    if isinstance(form, list):
        for item in form:
            yield from _learned(item)
    elif isinstance(form, dict):
        if form.get(CLASS) == qualified_name(Suite):
            yield form
            return
        for value in form.values():
            yield from _learned(value)


def _suite(directory: Path, form: Canonical) -> Suite:
    try:
        suite: Any = revive(form)
    except ValueError as error:
        raise _unreadable(directory / RECIPE, error) from error
    parts = ((suite, Suite), (getattr(suite, "task", None), Task), (getattr(suite, "splits", None), Splits))
    if not all(isinstance(part, kind) for part, kind in parts):
        raise _unreadable(directory / RECIPE, ValueError("its suite has no task and splits"))
    asked: Suite = suite
    return asked


def _unreadable(file: Path, error: Exception) -> StoreError:
    return StoreError(f"{file} cannot be read as a recipe ({first_line(error)}); give --task")


def _policy(directory: Path) -> Policy:
    try:
        return Policy.load(directory)
    except Exception as error:
        if (directory / RECORD).is_file():
            raise  # its files are what was written, so the fault is the program's
        # Without a record any file may be anything, and three libraries each raise what they like.
        raise StoreError(
            f"{directory} holds no policy that can be loaded ({type(error).__name__}: {first_line(error)});"
            " give the directory of a stage as the store holds it"
        ) from error
