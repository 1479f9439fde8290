"""The verifiers as plain functions, in the signatures of other trainers: TRL's ``GRPOTrainer`` and verl.

Both read the ``ground_truth`` column of a file that ``stagecraft generate`` wrote, and nothing else, so that a trainer
needs this package and the file. A reward is 1.0 for a right answer and 0.0 for any other text; there is no partial
credit, and no text raises.

TRL: ``GRPOTrainer(..., reward_funcs=testbeds.reward.trl_reward, train_dataset=...)``, a data set with the columns
``prompt`` and ``ground_truth``. verl: ``data.prompt_key=chat custom_reward_function.path=.../testbeds/reward.py
custom_reward_function.name=compute_score``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

from testbeds.core import Problem, Task, Verdict
from testbeds.identity import Canonical
from testbeds.revival import revive

OWN = ("testbeds",)  # a file can name no class of another package

Completion = str | Sequence[Mapping[str, object]]
"""A completion as TRL gives it: text, or the turns of a chat, of which the last one's ``content`` is judged."""


def compute_score(
    data_source: str,  # noqa: ARG001  # verl's signature
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, object] | None = None,  # noqa: ARG001  # verl's signature
    **further: object,  # noqa: ARG001  # what verl adds where a reward model runs beside
) -> float:
    """1.0 if ``solution_str`` is a right answer, else 0.0: a reward function of verl.

    Raises:
        ValueError: for a ``ground_truth`` that is none of ours; never because of ``solution_str``.
    """
    return float(verdict_on(solution_str, ground_truth).correct)


def trl_reward(
    prompts: Sequence[object],  # noqa: ARG001  # TRL's signature
    completions: Sequence[Completion],
    ground_truth: Sequence[str],
    **columns: object,  # noqa: ARG001  # TRL's signature
) -> list[float]:
    """The reward of each completion, 1.0 or 0.0, in order: a reward function of TRL's ``GRPOTrainer``.

    Raises:
        ValueError: where there is not one ground truth for each completion, or one is none of ours.
    """
    if len(completions) != len(ground_truth):
        raise ValueError(
            f"{len(completions)} completions came with {len(ground_truth)} ground truths; the data set needs the column"
            f" ground_truth, one entry for each prompt"
        )
    return [
        float(verdict_on(_text(completion), truth).correct)
        for completion, truth in zip(completions, ground_truth, strict=True)
    ]


def verdict_on(completion: str, ground_truth: str) -> Verdict:
    """The task's whole verdict on a completion, with the reason."""
    task, problem = problem_of(ground_truth)
    return task.verify(problem, completion)


@lru_cache(maxsize=4096)  # the problems of a few batches, each asked once per rollout
def problem_of(ground_truth: str) -> tuple[Task, Problem]:
    """The task and the problem that a row's ``ground_truth`` stands for; the problem is without features."""
    try:
        entries = json.loads(ground_truth)
        task, certificate, key, prompt = (entries[name] for name in ("task", "certificate", "key", "prompt"))
    except (json.JSONDecodeError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(
            f"{ground_truth[:80]!r} is no ground truth of stagecraft ({error}); take the column ground_truth of a file"
            f" that `stagecraft generate` wrote"
        ) from error
    return _task(json.dumps(task)), Problem(prompt=prompt, key=key, certificate=revive(certificate, OWN))


@lru_cache(maxsize=64)  # the tasks of a mixture
def _task(form: str) -> Task:
    return cast(Task, revive(cast(Canonical, json.loads(form)), OWN))


def _text(completion: Completion) -> str:
    """What is judged of a completion: of a chat, the content of its last turn."""
    if isinstance(completion, str):
        return completion
    content = completion[-1].get("content") if completion else ""
    return content if isinstance(content, str) else ""
