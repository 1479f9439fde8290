"""The graph of work: nodes that leave artifacts, and what a plan of them knows.

A node is anything that can be pickled and performed; the runner needs nothing else of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from experiments.store import Store

if TYPE_CHECKING:  # a worker unpickles its node before anything imports torch
    from training.execution import Execution, Reporter

Kind = Literal["stage", "evaluation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who needs a node."""

    arm: str
    seed: int


@runtime_checkable
class Node(Protocol):
    """One piece of work that leaves one artifact. It travels to a worker process, so it can be pickled."""

    @property
    def id(self) -> str:
        """Identity of the work and of all that it depends on; the artifact's name in the store."""
        ...

    @property
    def kind(self) -> Kind:
        """What the artifact is."""
        ...

    @property
    def description(self) -> str:
        """One line for a person."""
        ...

    @property
    def parents(self) -> tuple[str, ...]:
        """Ids of the artifacts that must be there first."""
        ...

    @property
    def users(self) -> tuple[User, ...]:
        """The arms and seeds that the work is done for."""
        ...

    def estimated_flops(self) -> int:
        """Expected cost. It may take a moment: lengths of real problems are looked at."""
        ...

    def identity(self) -> str:
        """The id, computed anew: the worker compares it with the planned one."""
        ...

    def perform(
        self,
        parents: Sequence[Path],
        *,
        workspace: Path,
        execution: Execution,
        report: Reporter,
    ) -> None:
        """Do the work, resuming from what ``workspace`` holds; leave the finished files in ``workspace/artifact``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All the work of an experiment at one scale; every node stands after its parents."""

    experiment: str
    scale: str
    seeds: tuple[int, ...]
    arms: tuple[str, ...]
    nodes: tuple[Node, ...]

    def pending(self, store: Store) -> tuple[Node, ...]:
        """The nodes whose artifacts the store lacks. Those that it has are checked for missing and cut files."""
        missing = []
        for node in self.nodes:
            if store.has(node.id):
                store.check(node.id)
            else:
                missing.append(node)
        return tuple(missing)


def longest_paths(nodes: Sequence[Node], costs: Mapping[str, float]) -> dict[str, float]:
    """For each node its own cost and that of the dearest chain of work that waits for it: what to start first."""
    tails: dict[str, float] = {}
    totals: dict[str, float] = {}
    for node in reversed(nodes):
        totals[node.id] = costs[node.id] + tails.get(node.id, 0.0)
        for parent in node.parents:
            tails[parent] = max(tails.get(parent, 0.0), totals[node.id])
    return totals


def title(node: Node) -> str:
    """A node in words, with the arms and seeds that need it."""
    return f"{node.description} ({audience(node)})"


def audience(node: Node) -> str:
    """The arms and seeds that need a node, in few words."""
    arms = list(dict.fromkeys(user.arm for user in node.users))
    seeds = list(dict.fromkeys(user.seed for user in node.users))
    who = f"arm {arms[0]}" if len(arms) == 1 else f"{len(arms)} arms"
    when = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    return f"{who}, {when}"
