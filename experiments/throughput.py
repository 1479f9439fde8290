"""How many FLOPs this machine does in a second of one core: what turns a plan's cost into minutes.

Work that the store holds is the best measure, since its ledgers have the FLOPs and the CPU seconds of the same kind of
work. Without any, a training step of the plan's own model is timed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path

import torch

from experiments.graph import Node, longest_paths
from experiments.store import RECORD, Store, damaged
from models import Transformer, initialise, token_logits, training_flops
from testbeds.streams import seed_from_key
from training.ledger import Ledger

LEDGER = "ledger.json"
MOST_LEDGERS = 64  # the newest say enough, and a large store stays quick to ask
LEAST_CPU_S = 5.0  # less recorded work than this is mostly start-up
TIMED_S = 0.5  # long enough to average over the scheduler, short enough to wait for
ROWS = 64  # a usual training batch
PROBE_LENGTH = 32  # tokens a row: that of the small worlds' problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Speed of one worker."""

    flops_per_s: float
    source: str
    """Where the number comes from, for the reader of a plan."""


def measured(store: Store, model: Transformer, vocabulary: int) -> Throughput:
    """The speed of one worker, from the store's ledgers or from a short trial."""
    return _recorded(store) or _trial(model, vocabulary)


def makespan_s(nodes: Sequence[Node], seconds: Mapping[str, float], workers: int) -> float:
    """Seconds that ``workers`` need for the nodes when they start the dearest chain first, as the runner does."""
    here = {node.id: node for node in nodes}
    priority = longest_paths(nodes, seconds)
    blockers = {node.id: sum(parent in here for parent in node.parents) for node in nodes}
    children: dict[str, list[str]] = {node.id: [] for node in nodes}
    for node in nodes:
        for parent in here.keys() & node.parents:
            children[parent].append(node.id)
    ready = [(-priority[node_id], node_id) for node_id, count in blockers.items() if not count]
    ready.sort()
    running: list[tuple[float, str]] = []
    now_s = 0.0
    while ready or running:
        while ready and len(running) < workers:
            node_id = heappop(ready)[1]
            heappush(running, (now_s + seconds[node_id], node_id))
        now_s, finished = heappop(running)
        for child in children[finished]:
            blockers[child] -= 1
            if not blockers[child]:
                heappush(ready, (-priority[child], child))
    return now_s


def _recorded(store: Store) -> Throughput | None:
    """From the ledgers of the newest finished artifacts; a directory without a record is none."""
    newest = sorted(store.ids(), key=lambda each: (store.location(each) / RECORD).stat().st_mtime)[-MOST_LEDGERS:]
    flops = cpu_s = 0.0
    count = 0
    for artifact_id in newest:
        content = store.read(artifact_id, LEDGER)
        if content is None:
            continue
        ledger = _ledger(content, store.location(artifact_id))
        for spent in (ledger.training, ledger.sampling, ledger.evaluation):
            flops += spent.flops
            cpu_s += spent.cpu_s
        count += 1
    if cpu_s < LEAST_CPU_S or not flops:
        return None
    return Throughput(flops_per_s=flops / cpu_s, source=f"the ledgers of {count} finished stages and evaluations")


def _ledger(content: bytes, directory: Path) -> Ledger:
    try:
        return Ledger.from_json(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise damaged(directory, f"has a file {LEDGER} that is no ledger") from None


def _trial(model: Transformer, vocabulary: int) -> Throughput:
    """Forward and backward passes of the plan's model on one thread, for half a second."""
    length = min(PROBE_LENGTH, model.context)
    generator = torch.Generator().manual_seed(seed_from_key("throughput"))
    decoder = initialise(model, vocabulary, generator)
    token_BT = torch.randint(vocabulary, (ROWS, length), generator=generator)
    length_B = torch.full((ROWS,), length)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a worker computes
    try:
        torch.autograd.backward(token_logits(decoder, token_BT, length_B).mean())  # the first pass allocates
        passes, started = 0, time.perf_counter()
        while time.perf_counter() - started < TIMED_S:
            torch.autograd.backward(token_logits(decoder, token_BT, length_B).mean())
            passes += 1
        seconds = time.perf_counter() - started
    finally:
        torch.set_num_threads(threads)
    flops = passes * training_flops(model, vocabulary, [length] * ROWS)
    return Throughput(flops_per_s=flops / seconds, source="a timed training step of the model; sampling is slower")
