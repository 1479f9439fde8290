"""Pictures of problems beside their completions: what a policy would answer, drawn by the task that knows how.

A task may have a method ``picture(problem, probabilities)``, which returns one ``<svg>`` element; the report knows
nothing else about it. Shown are the problems of the table of rollouts, for one arm (``Experiment.drawn``), before and
after the end of its training: what RL changed can be seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable
from xml.etree import ElementTree

from experiments.experiment import Experiment, Scale
from experiments.results import Policy, Results, rollouts
from experiments.shift_tables import before_and_after
from experiments.store import Store
from experiments.tables import Picture, RolloutTable
from testbeds.core import Choice, Problem, Task
from testbeds.mixture import Mixture, component_of
from training.probes import choices_of

if TYPE_CHECKING:
    from training.evaluation import Evaluation

MOST_PICTURES: Final = 8
LARGEST: Final = 40_000  # characters of one picture: eight of them are a third of a megabyte
LISTED: Final = 3  # choices that stand in words under a picture


@runtime_checkable
class Pictured(Protocol):
    """A task that can draw a problem with what a policy would answer."""

    def picture(self, problem: Problem, probabilities: Sequence[tuple[Choice, float]]) -> str | None:
        """One ``<svg>`` element that needs nothing from outside; None where there is nothing to draw."""
        ...


def with_pictures(
    experiment: Experiment, scale: Scale, results: Results, store: Store, table: RolloutTable
) -> RolloutTable:
    """The table with the pictures of its problems; as it was where no task of the evaluation draws any."""
    evaluation = experiment.evaluations(table.seed, scale)[experiment.primary.evaluation]
    if not any(_draws(chosen.suite.task) for chosen in evaluation.sets):
        return table
    policies = _shown_policies(experiment, results, table.seed)
    asked = [(policy, _choices(experiment, results, store, policy, table)) for policy in policies]
    wanted = {key for _, rows in asked for key in rows}
    try:
        problems = _problems(evaluation, wanted)
    except (OSError, ValueError) as trouble:  # such as a corpus that is not on this machine
        return replace(table, note=f"Problems are not drawn: {trouble}")
    numbers = iter(range(MOST_PICTURES))
    shown = []
    for problem in table.problems:
        pictures: list[Picture] = []
        if problem.key in problems:
            task, found = problems[problem.key]
            of_problem = [(policy, rows[found.key]) for policy, rows in asked if found.key in rows]
            pictures = list(_pictures(task, found, of_problem, numbers))
        shown.append(replace(problem, pictures=tuple(pictures)))
    return replace(table, problems=tuple(shown))


def own_ids(svg: str, prefix: str) -> str:
    """The picture with ids, and references to them, that are its own on the page."""
    ids = set(re.findall(r'(?<![\w:-])id="([^"]*)"', svg))
    for attribute in ("id", "href", "xlink:href", "aria-labelledby", "aria-describedby"):
        mark = "#" if attribute.endswith("href") else ""
        pattern = rf'(?<![\w:-])({attribute}="{mark})([^"]*)"'
        svg = re.sub(pattern, lambda found: _renamed(found, ids, prefix), svg)
    return re.sub(r"(url\(#)([^)]*)\)", lambda found: f"{found[1]}{prefix}-{found[2]})", svg)


def check_picture(svg: str) -> str:
    """The picture, if it may stand on a page that needs nothing from outside.

    Raises:
        ValueError: for one that is too large, is not one well-formed ``<svg>`` element, or refers to what is outside.
    """
    if len(svg) > LARGEST:
        raise ValueError(f"a picture has at most {LARGEST} characters, got {len(svg)}; draw less")
    try:
        root = ElementTree.fromstring(svg)  # drawn by a testbed, not from outside
    except ElementTree.ParseError as error:
        raise ValueError(f"a picture is one well-formed <svg> element, got {svg[:60]!r}: {error}") from None
    if root.tag.rpartition("}")[2] != "svg":
        raise ValueError(f"a picture is one <svg> element, got <{root.tag.rpartition('}')[2]}>")
    for element in root.iter():
        name = element.tag.rpartition("}")[2]
        links = [value for key, value in element.attrib.items() if key.rpartition("}")[2] in ("href", "src")]
        active = [key for key in element.attrib if key.lower().startswith("on")]
        if name in ("script", "style", "foreignObject", "image") or active or any(v[:1] != "#" for v in links):
            raise ValueError(f"a picture needs nothing from outside and runs nothing, got <{name}> {element.attrib}")
    if re.search(r"url\((?!#)", svg):
        raise ValueError("a picture refers to its own parts alone, got a url() that leads elsewhere")
    return svg


def _renamed(found: re.Match[str], ids: Collection[str], prefix: str) -> str:
    """A reference to, or declaration of, one of the picture's own ids."""
    return f'{found[1]}{prefix}-{found[2]}"' if found[2] in ids else found[0]


def _draws(task: Task) -> bool:
    """Whether the task, or a component of it, draws pictures."""
    return any(map(_draws, task.tasks)) if isinstance(task, Mixture) else isinstance(task, Pictured)


def _shown_policies(experiment: Experiment, results: Results, seed: int) -> list[Policy]:
    """Of the arm that is drawn, the policies before and after the end of its training."""
    arm = experiment.drawn or experiment.claims[0].effect.measures[0].arm
    policies = list(results.of(seed=seed, arm=arm))
    return list(before_and_after(policies) or policies)


def _choices(
    experiment: Experiment, results: Results, store: Store, policy: Policy, table: RolloutTable
) -> dict[str, list[tuple[str, float, bool]]]:
    """By key, the choices of the table's problems with the policy's probabilities, where it was asked for them."""
    primary = experiment.primary
    identity = dict(policy.evaluation_ids)[primary.evaluation]
    if identity not in results.artifacts.evaluations:
        return {}
    rows: list[dict[str, Any]] = rollouts(store, identity, len(table.problems), band=primary.band)
    return {row["key"]: row["choices"] for row in rows if "choices" in row}


def _problems(evaluation: Evaluation, keys: set[str]) -> dict[str, tuple[Task, Problem]]:
    """The problems of these keys, each with the task of its set."""
    found: dict[str, tuple[Task, Problem]] = {}
    for chosen in evaluation.sets:
        task = chosen.suite.task
        if _draws(task) and not keys <= found.keys():
            of_set = {problem.key: (task, problem) for problem in chosen.problems() if problem.key in keys}
            found = of_set | found
    return found


def _pictures(
    task: Task,
    problem: Problem,
    asked: Sequence[tuple[Policy, Sequence[tuple[str, float, bool]]]],
    numbers: Iterator[int],
) -> Iterator[Picture]:
    """One picture for each policy, while there are ``numbers``."""
    _, component, inner = component_of(task, problem)
    if not isinstance(component, Pictured):
        return
    # A mixture may write the same choices with other white space, in the same order.
    as_written = zip(choices_of(task, problem), choices_of(component, inner), strict=True)
    choices = {written.text: choice for written, choice in as_written}
    if any(text not in choices for _, rows in asked for text, _, _ in rows):
        return  # an artifact from before the task wrote its choices as it does today
    for policy, rows in asked:
        svg = component.picture(inner, [(choices[text], probability) for text, probability, _ in rows])
        number = next(numbers, None) if svg is not None else None
        if svg is not None and number is not None:
            caption = f"{policy.arm} after {policy.stage_name}: {_in_words(rows)}"
            yield Picture(caption=caption, svg=own_ids(check_picture(svg), f"picture-{number}"))


def _in_words(rows: Sequence[tuple[str, float, bool]]) -> str:
    """The likeliest choices with their shares."""
    total = sum(probability for _, probability, _ in rows)
    listed = [
        f"{text} {probability / total:.2f} {'✓' if correct else '✗'}"
        for text, probability, correct in rows[:LISTED]
        if total > 0
    ]
    return ", ".join(listed) or "no choice has any probability"
