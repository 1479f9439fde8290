"""A plan as a table: what would run, what is reused, and what it costs."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from experiments.gallery import console
from experiments.graph import Node, Plan, audience
from experiments.planning import EvaluationNode, StageNode
from experiments.store import Store
from experiments.throughput import Throughput, makespan_s, measured
from models import Tokenizer

START_S = 7.0  # until a worker has imported torch and Lightning: 6.5 s on a slow core


def print_plan(plan: Plan, store: Store, *, workers: int, most: int, flops_per_s: float | None = None) -> None:
    """Print at most ``most`` nodes of a plan, and the totals of all.

    ``flops_per_s`` is what one worker does on the machine that is meant; None measures this one.
    """
    out = console()
    pending = plan.pending(store)
    flops = {node.id: node.estimated_flops() for node in plan.nodes}
    _print_nodes(out, plan.nodes[:most], {node.id for node in pending}, flops)
    if len(plan.nodes) > most:
        out.print(f"... and {len(plan.nodes) - most} more")
    reused = len(plan.nodes) - len(pending)
    arms, seeds = ", ".join(plan.arms), ", ".join(str(seed) for seed in plan.seeds)
    out.print(f"{plan.experiment} at scale {plan.scale}: arms {arms}; seeds {seeds}", soft_wrap=True)
    out.print(f"{len(plan.nodes)} stages and evaluations: {reused} reused, {len(pending)} to run")
    if not pending:
        return
    speed = _speed(plan, store) if flops_per_s is None else Throughput(flops_per_s=flops_per_s, source="--flops-per-s")
    seconds = {node.id: flops[node.id] / speed.flops_per_s for node in pending}
    needed_s = START_S + makespan_s(pending, seconds, workers)
    total = sum(flops[node.id] for node in pending)
    out.print(
        f"{total:.2e} FLOPs to do: {in_minutes(needed_s)} on {workers} {'worker' if workers == 1 else 'workers'},"
        f" their start included ({speed.flops_per_s:.1e} FLOPs/s each, from {speed.source})",
        soft_wrap=True,
    )


def in_minutes(seconds: float) -> str:
    """An estimate in words, with no more digits than an estimate has."""
    minutes = seconds / 60
    if minutes < 1:
        return "under a minute"
    if minutes < 10:
        return f"about {minutes:.1f} minutes"
    return f"about {minutes:.0f} minutes" if minutes < 120 else f"about {minutes / 60:.1f} hours"


def _print_nodes(out: Console, nodes: tuple[Node, ...], pending: set[str], flops: dict[str, int]) -> None:
    table = Table("id", "what", "for", "status", box=None, padding=(0, 2, 0, 0))
    table.add_column("FLOPs", justify="right")
    for node in nodes:
        waits = node.id in pending
        status = "to run" if waits else "reused"
        indent = "  " if node.kind == "evaluation" else ""
        style = None if waits else "dim"
        cells = (node.id[:8], indent + node.description, audience(node), status, f"{flops[node.id]:.1e}")
        table.add_row(*cells, style=style)
    out.print(table)


def _speed(plan: Plan, store: Store) -> Throughput:
    """Of the plan's first policy: a study's models are of one size, or the smallest comes first."""
    recipe = next(node.recipe for node in plan.nodes if isinstance(node, StageNode | EvaluationNode))
    return measured(store, recipe.model, Tokenizer.of(recipe.symbols).size)
