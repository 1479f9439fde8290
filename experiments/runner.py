"""The runner: executes a plan on worker processes that may die at any moment, as may the runner itself.

Each worker process is an executor of its own, so that the death of one names its node exactly and disturbs no other.
The store decides what is finished; nothing else is remembered, so running again is resuming. Two runners on one store
are safe: the lock of a node makes the second one turn to other work, and come back for the result.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from multiprocessing import get_context
from types import FrameType
from typing import TYPE_CHECKING

from experiments import claims
from experiments.display import Display
from experiments.experiment import Experiment, Scale
from experiments.gpus import least_used, visible_gpus
from experiments.graph import Node, Plan, longest_paths, title
from experiments.progress import read_progress
from experiments.store import Store, explained
from experiments.worker import Failure, Outcome, begin, work

if TYPE_CHECKING:
    from training.execution import Execution

MOST_TRIES = 3  # a worker that dies three times at one node does not die of bad luck
BUSY_RETRY_S = 1.0  # between looks at a node that another driver is making
TICK_S = 0.1  # between looks at the progress of running nodes
LEAST_FLOPS = 1e9  # a node costs something even where its estimate is 0


class NodeFailedError(Exception):
    """A node of the plan could not be made; what was finished stays in the store."""

    def __init__(self, message: str, *, declared: bool, details: str = "") -> None:
        super().__init__(message)
        self.declared = declared
        """Whether the message says it all, as for a refused value or a full disk."""
        self.details = details
        """The traceback of the worker."""


class InterruptedRun(KeyboardInterrupt):
    """The run was asked to stop, by SIGTERM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a run did."""

    made: int
    """Nodes that this run made."""
    reused: int
    """Nodes that were in the store already, or that another driver made meanwhile."""
    seconds: float


def run(  # noqa: PLR0913  # one keyword for each choice that the command line offers
    experiment: Experiment,
    scale: Scale,
    work_plan: Plan,
    *,
    store: Store,
    workers: int,
    execution: Execution,
    display: Display,
) -> Summary:
    """Bring all artifacts of an experiment's plan into the store; its claims are fixed before the first of them."""
    store.preflight()
    pending = work_plan.pending(store)
    for node in work_plan.nodes:
        store.tidy(node.id)
    with explained(store.root):
        claims.register(experiment, scale, store.root)
    return execute(work_plan, pending, store=store, workers=workers, execution=execution, display=display)


def execute(
    work_plan: Plan,
    pending: Sequence[Node],
    *,
    store: Store,
    workers: int,
    execution: Execution,
    display: Display,
) -> Summary:
    """Make the ``pending`` nodes of a plan, dearest chain first, on ``workers`` single-thread processes.

    Raises:
        NodeFailedError: after the nodes that were running beside the failed one have finished.
        KeyboardInterrupt: on Ctrl-C or SIGTERM; the workers are gone then, and their workspaces resume.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    started = time.monotonic()
    drive = _Drive(pending, store=store, workers=workers, execution=execution, display=display)
    with _termination_interrupts(), display:
        display.begin(total=len(work_plan.nodes), reused=len(work_plan.nodes) - len(pending))
        try:
            drive.run()
        finally:
            drive.close()
    made = drive.statuses["made"]
    return Summary(made=made, reused=len(work_plan.nodes) - made, seconds=time.monotonic() - started)


class _Lane:
    """One worker process, started with its first node; after its death the lane is useless."""

    def __init__(self, gpu: str | None) -> None:
        self.gpu = gpu
        context = get_context("spawn")  # fork would copy the driver's threads and locks in whatever state they are
        self._lifeline, self._held = context.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(
            max_workers=1, mp_context=context, initializer=begin, initargs=(self._lifeline, gpu)
        )

    def submit(self, node: Node, store: Store, execution: Execution) -> Future[Outcome]:
        """Start ``node``. The worker inherits the blocked Ctrl-C: a terminal sends it to all, the driver stops."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return self._executor.submit(work, node, store, execution)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def close(self) -> None:
        """End the worker at once; whatever it was doing resumes from its workspace."""
        self._held.close()
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._lifeline.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    node: Node
    lane: _Lane


class _Drive:
    """The state of one execution: what waits, what runs, what is done."""

    def __init__(
        self, pending: Sequence[Node], *, store: Store, workers: int, execution: Execution, display: Display
    ) -> None:
        self.statuses: Counter[str] = Counter()
        self._store = store
        self._execution = execution
        self._display = display
        self._workers = workers
        self._gpus = visible_gpus() if execution.device != "cpu" else ()
        self._nodes = {node.id: node for node in pending}
        self._costs = {node.id: max(LEAST_FLOPS, float(node.estimated_flops())) for node in pending}
        self._priority = longest_paths(pending, self._costs)
        self._blockers: Counter[str] = Counter()
        self._children: defaultdict[str, list[str]] = defaultdict(list)
        self._ready: list[tuple[float, str]] = []
        self._resting: dict[str, float] = {}
        self._running: dict[Future[Outcome], _Running] = {}
        self._lanes: list[_Lane] = []
        self._idle: list[_Lane] = []
        self._tries: Counter[str] = Counter()
        self._finished: set[str] = set()
        self._failures: list[tuple[Node, Failure]] = []
        self._started = time.monotonic()
        for node in pending:
            for parent in self._nodes.keys() & node.parents:
                self._blockers[node.id] += 1
                self._children[parent].append(node.id)
            if not self._blockers[node.id]:
                self._push(node)

    def run(self) -> None:
        """Until everything is finished, or nothing that runs can still finish."""
        while len(self._finished) < len(self._nodes):
            self._wake()
            if not self._failures:
                self._launch()
            elif not self._running:
                raise self._failed()
            done, _ = wait(self._running, timeout=TICK_S, return_when=FIRST_COMPLETED)
            for future in done:
                self._settle(future)
            if not self._running:  # everything left belongs to another driver
                time.sleep(TICK_S)
            self._show()

    def close(self) -> None:
        """End all workers."""
        for lane in self._lanes:
            lane.close()

    def _push(self, node: Node) -> None:
        heappush(self._ready, (-self._priority[node.id], node.id))

    def _wake(self) -> None:
        """Nodes that another driver is making become ready again after their rest."""
        now = time.monotonic()
        for node_id in [node_id for node_id, due in self._resting.items() if due <= now]:
            del self._resting[node_id]
            self._push(self._nodes[node_id])

    def _launch(self) -> None:
        while self._ready and len(self._running) < self._workers:
            node = self._nodes[heappop(self._ready)[1]]
            lane = self._idle.pop() if self._idle else self._new_lane()
            future = lane.submit(node, self._store, self._execution)
            self._running[future] = _Running(node=node, lane=lane)
            self._display.started(node)

    def _new_lane(self) -> _Lane:
        lane = _Lane(least_used(self._gpus, [other.gpu for other in self._lanes]))
        self._lanes.append(lane)
        return lane

    def _settle(self, future: Future[Outcome]) -> None:
        running = self._running.pop(future)
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            self._lanes.remove(running.lane)
            running.lane.close()
            self._died(running.node)
            return
        self._idle.append(running.lane)
        if error is not None:
            failure = Failure(message=f"{type(error).__name__}: {error}", traceback="", declared=False)
            self._fail(running.node, failure)
            return
        self._accept(running.node, future.result())

    def _accept(self, node: Node, outcome: Outcome) -> None:
        if outcome.failure is not None:
            self._fail(node, outcome.failure)
            return
        if outcome.status == "busy":
            self._resting[node.id] = time.monotonic() + BUSY_RETRY_S
            self._display.busy(node)
            return
        self.statuses[outcome.status] += 1
        self._finished.add(node.id)
        self._display.finished(node, outcome)
        for child in self._children[node.id]:
            self._blockers[child] -= 1
            if not self._blockers[child]:
                self._push(self._nodes[child])

    def _died(self, node: Node) -> None:
        self._tries[node.id] += 1
        if self._tries[node.id] < MOST_TRIES:
            self._display.retried(node, self._tries[node.id])
            self._push(node)
            return
        message = (
            f"its worker process died {MOST_TRIES} times; the system may have killed it for want of memory:"
            " try fewer --workers"
        )
        self._fail(node, Failure(message=message, traceback="", declared=True))

    def _fail(self, node: Node, failure: Failure) -> None:
        self._failures.append((node, failure))
        self._display.failed(node, failure.message)

    def _failed(self) -> NodeFailedError:
        node, failure = self._failures[0]
        others = "" if len(self._failures) == 1 else f" (and {len(self._failures) - 1} more failed beside it)"
        return NodeFailedError(
            f"{title(node)} failed{others}: {failure.message}", declared=failure.declared, details=failure.traceback
        )

    def _show(self) -> None:
        progress = {
            running.node.id: read_progress(self._store.workspace(running.node.id)) for running in self._running.values()
        }
        done = sum(self._costs[node_id] for node_id in self._finished)
        for node_id, entry in progress.items():
            if entry is not None:
                done += self._costs[node_id] * entry.share
        elapsed_s = time.monotonic() - self._started
        left = sum(self._costs.values()) - done
        self._display.update(progress, left_s=elapsed_s * left / done if done else None)


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """SIGTERM stops the run as Ctrl-C does. Only a main thread can take signals; elsewhere nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise InterruptedRun
