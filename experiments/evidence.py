"""Evidence that a comparison is what it says: how arms differ, field by field, and whether training met the evaluation.

The first is computed from the declared recipes, the second from the problem keys that every artifact recorded while it
was made: never from what a study says of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from difflib import SequenceMatcher
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from experiments.experiment import Experiment, Scale
from experiments.results import Results
from experiments.store import Store, StoreError
from training.audit import KEYS, keys_of, overlap

LONGEST_VALUE = 80  # characters of a value in a table; beyond that a reader looks into recipe.json
ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where two declared objects differ."""

    path: str
    """Field by field from the top, such as ``stages[1] SFT.source.count``."""
    left: str
    """Value in the first object, for a reader."""
    right: str
    """Value in the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDifference:
    """How two arms differ."""

    left: str
    """Name of the first arm."""
    right: str
    """Name of the second arm."""
    differences: tuple[Difference, ...]
    """At the first seed."""
    same_in_every_seed: bool
    """Whether the same fields differ at every other seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """The problems of one training stage and of one evaluation, compared by canonical key."""

    seed: int
    stage_id: str
    evaluation: str
    seen: bool
    """Whether the evaluation asks training problems on purpose."""
    training: int
    """Distinct problems that the stage trains on."""
    evaluated: int
    """Distinct problems that the evaluation asks."""
    shared: int
    """Problems in both."""


def differences(left: object, right: object, path: str = "") -> tuple[Difference, ...]:
    """The fields in which two declared objects differ; what is equal is not listed.

    Tuples of dataclasses, such as stages, are aligned by class, so that an inserted stage does not make all later ones
    look different.
    """
    return tuple(_walk(left, right, path))


def arm_differences(experiment: Experiment, scale: Scale) -> tuple[PairDifference, ...]:
    """How every pair of arms differs."""
    arms_by_seed = [experiment.arms(seed, scale) for seed in experiment.seeds_of(scale)]
    pairs = []
    for left, right in combinations(experiment.order, 2):
        by_seed = [differences(arms[left], arms[right]) for arms in arms_by_seed]
        paths = [[difference.path for difference in found] for found in by_seed]
        pairs.append(
            PairDifference(
                left=left,
                right=right,
                differences=by_seed[0],
                same_in_every_seed=all(found == paths[0] for found in paths),
            )
        )
    return tuple(pairs)


def overlaps(experiment: Experiment, scale: Scale, results: Results, store: Store) -> tuple[Overlap, ...]:
    """Shared problems of every finished training stage with every evaluation of its seed, from the keys they left."""
    found = []
    for seed in results.seeds:
        stages = dict.fromkeys(policy.stage_id for policy in results.of(seed=seed) if policy.finished)
        for name, evaluation in experiment.evaluations(seed, scale).items():
            evaluated = _first_evaluation(results, seed, name)
            if evaluated is None:
                continue
            asked = _keys(store, evaluated)
            for identity in stages:
                trained = _keys(store, identity)
                found.append(
                    Overlap(
                        seed=seed,
                        stage_id=identity,
                        evaluation=name,
                        seen=evaluation.seen,
                        training=trained.size,
                        evaluated=asked.size,
                        shared=overlap(store.path(identity), store.path(evaluated)),
                    )
                )
    return tuple(found)


def leak(found: Sequence[Overlap], results: Results) -> str | None:
    """A sentence on training problems that stand in an evaluation, which must have none; None if there are none."""
    for each in found:
        if each.shared and not each.seen:
            stage = next(policy for policy in results.policies if policy.stage_id == each.stage_id)
            return (
                f"{each.shared} of {each.evaluated} problems of evaluation {each.evaluation} were training problems of"
                f" stage {stage.stage} ({stage.description}) of arm {stage.arm} at seed {each.seed}"
            )
    return None


def _first_evaluation(results: Results, seed: int, name: str) -> str | None:
    """Any finished evaluation of this name: all policies of a seed are asked the same problems."""
    for policy in results.of(seed=seed):
        identity = dict(policy.evaluation_ids)[name]
        if identity in results.artifacts.evaluations:
            return identity
    return None


def _keys(store: Store, artifact_id: str) -> NDArray[np.int64]:
    directory = store.path(artifact_id)
    if not (directory / KEYS).is_file():
        raise StoreError(f"{directory} has no {KEYS}, so nothing can be said of its problems; delete it and run again")
    return keys_of(directory)


def _walk(left: object, right: object, path: str) -> Iterator[Difference]:
    if type(left) is type(right) and left == right:
        return
    if type(left) is type(right) and is_dataclass(left) and not isinstance(left, type):
        for entry in fields(left):
            inner = f"{path}.{entry.name}" if path else entry.name
            yield from _walk(getattr(left, entry.name), getattr(right, entry.name), inner)
    elif isinstance(left, tuple) and isinstance(right, tuple) and _of_dataclasses(left + right):
        yield from _walk_aligned(left, right, path)
    else:
        yield Difference(path=path, left=shown(left), right=shown(right))


def _walk_aligned(left: Sequence[object], right: Sequence[object], path: str) -> Iterator[Difference]:
    matcher = SequenceMatcher(a=[_label(item) for item in left], b=[_label(item) for item in right], autojunk=False)
    for operation, a_start, a_end, b_start, b_end in matcher.get_opcodes():
        if operation == "equal":
            for a, b in zip(range(a_start, a_end), range(b_start, b_end), strict=True):
                place = f"[{a}]" if a == b else f"[{a} and {b}]"
                yield from _walk(left[a], right[b], f"{path}{place} {_label(left[a])}")
            continue
        for item in left[a_start:a_end]:
            yield Difference(path=f"{path} {_label(item)}", left=shown(item), right=ABSENT)
        for item in right[b_start:b_end]:
            yield Difference(path=f"{path} {_label(item)}", left=ABSENT, right=shown(item))


def _of_dataclasses(items: Sequence[object]) -> bool:
    return bool(items) and all(is_dataclass(item) and not isinstance(item, type) for item in items)


def _label(item: object) -> str:
    return type(item).__name__


def shown(value: object) -> str:
    """A declared value in at most a line: its own description where it has one."""
    describe = getattr(value, "describe", None)
    text = describe() if callable(describe) else repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
