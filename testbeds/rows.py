"""One problem as a row of a file: what other people's trainers read, and what the reward functions need.

The columns serve several loaders at once. TRL reads ``prompt`` and hands further columns to its reward functions; to
train on chats, replace it: ``data.remove_columns("prompt").rename_column("chat", "prompt")``. verl reads ``chat``
(``data.prompt_key=chat``), ``data_source``, ``reward_model`` and ``extra_info``. The chat is not called ``messages``,
since TRL decides from either of ``prompt`` and ``messages``, whichever it comes upon, whether rows are chats. A loader
knows nothing of our splits: filter a file by its column ``split``, or write a file for each split, as verl needs it.
``ground_truth`` holds all that a verifier needs, in JSON: see reward.py.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TypedDict

from testbeds.core import Problem, Task
from testbeds.demonstrations import Demonstrated
from testbeds.identity import canonical
from testbeds.mixture import testbed_name

DATA_SOURCE = "stagecraft/"


class Message(TypedDict):
    """One turn of a chat."""

    role: str
    content: str


class RewardModel(TypedDict):
    """What verl calls the reward model: here, that a rule decides, and what it needs."""

    style: str
    ground_truth: str


class ExtraInfo(TypedDict):
    """What verl hands to a reward function besides."""

    split: str
    index: int
    key: str


class Row(TypedDict):
    """One problem of an exported suite; both formats hold the same values."""

    index: int
    """Its place among the rows of its split."""
    split: str
    """Split of the problem."""
    key: str
    """Its canonical form: equal keys, same problem."""
    prompt: str
    """The problem in its testbed's notation, which the laboratory's policies read."""
    chat: list[Message]
    """The same as a chat: the task's instructions as the system's turn, the prompt as the user's."""
    answer: str
    """The demonstration's final answer."""
    trace: str
    """The demonstration, answer included, in ``style``."""
    style: str
    """How the demonstration is written, such as ``explicit`` or ``explicit depth_first backtracks=3``."""
    difficulty: str
    """The problem's measured features, a JSON object."""
    floor: float
    """Success probability of the best blind guess."""
    data_source: str
    """``stagecraft/`` and the name of the testbed, by which trainers pick a reward function."""
    ability: str
    """Name of the testbed, for verl's tables."""
    ground_truth: str
    """What a verifier needs, in JSON; hide it from the policy."""
    reward_model: RewardModel
    """The same for verl."""
    extra_info: ExtraInfo
    """For verl: split, index and key."""


def row_of(found: Demonstrated, task: Task, *, index: int, split: str) -> Row:
    """The row of a problem of ``task``, which is no mixture: its rows are those of its components."""
    problem, trace = found.problem, found.trace
    name = testbed_name(task)
    truth = ground_truth(task, problem)
    return Row(
        index=index,
        split=split,
        key=problem.key,
        prompt=problem.prompt,
        chat=[
            Message(role="system", content=task.instructions),
            Message(role="user", content=problem.prompt),
        ],
        answer=trace.answer,
        trace=trace.text,
        style=found.style.name,
        difficulty=compact_json(dict(problem.features)),
        floor=float(task.floor(problem)),
        data_source=DATA_SOURCE + name,
        ability=name,
        ground_truth=truth,
        reward_model=RewardModel(style="rule", ground_truth=truth),
        extra_info=ExtraInfo(split=split, index=index, key=problem.key),
    )


def ground_truth(task: Task, problem: Problem) -> str:
    """What a verifier needs to judge answers to ``problem``: a JSON object of task, key, prompt and certificate."""
    key, prompt = json.dumps(problem.key), json.dumps(problem.prompt)
    certificate = compact_json(canonical(problem.certificate))
    return f'{{"task":{_task_json(task)},"key":{key},"prompt":{prompt},"certificate":{certificate}}}'


def compact_json(content: object) -> str:
    """JSON without spaces, keys sorted."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=64)  # the components of the mixtures that one process exports
def _task_json(task: Task) -> str:
    return compact_json(canonical(task))
