"""What a worker process does: one node at a time, on one thread, and never longer than its driver lives.

Importing this module imports no torch, so that ``begin`` can still set the number of its threads.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from experiments.gpus import VISIBLE
from experiments.progress import ProgressFile
from experiments.provenance import code_identity
from experiments.store import BusyArtifactError, Store, StoreError, disk_trouble, first_line

if TYPE_CHECKING:  # a worker learns of these classes, and of torch, with its first node
    from experiments.graph import Node
    from training.execution import Execution

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
PACKAGES = ("testbeds", "models", "training", "experiments")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What a node raised, as text: any exception can cross the process boundary this way."""

    message: str
    """Class and message, in one line."""
    traceback: str
    """Where it happened."""
    declared: bool
    """Whether the message says it all: a value that was refused, or a store that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one attempt at a node."""

    status: Literal["made", "found", "busy", "failed"]
    """``found``: another driver made it meanwhile; ``busy``: another driver is making it now."""
    seconds: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The last values that the node reported."""
    failure: Failure | None = None


def begin(lifeline: Connection, gpu: str | None = None) -> None:
    """Prepare a new worker process: one thread for arithmetic, and an end as soon as ``lifeline`` is cut.

    Where the driver gives it a ``gpu``, that is the only one it sees: workers share the GPUs of a machine evenly.

    Results do not depend on the worker count then, and workers do not fight for cores. The lifeline's other end is
    held by the driver alone, so a driver that is killed takes its workers with it and its locks become free.
    """
    for variable in THREAD_VARIABLES:
        os.environ[variable] = "1"
    if gpu is not None:
        os.environ[VISIBLE] = gpu
    if torch := sys.modules.get("torch"):  # imported by the main script, before the variables were set
        torch.set_num_threads(1)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True, name="lifeline").start()
    code_identity()  # of the code that this process is about to import, not of what an editor saves meanwhile


def work(node: Node, store: Store, execution: Execution) -> Outcome:
    """One attempt at ``node``: the artifact is in the store afterwards, unless the outcome says otherwise."""
    started = time.monotonic()
    try:
        with store.open(node.id, timeout_s=0) as workspace:
            if store.has(node.id):
                store.clear(node.id)
                return Outcome(status="found")
            metrics = _make(node, store, workspace, execution)
    except BusyArtifactError:
        return Outcome(status="busy")
    except Exception as error:  # noqa: BLE001  # whatever a job raises must reach the person who waits for it
        failure = described(explained_by_disk(error, store))
        return Outcome(status="failed", failure=failure, seconds=time.monotonic() - started)
    return Outcome(status="made", seconds=time.monotonic() - started, metrics=metrics)


def explained_by_disk(error: Exception, store: Store) -> Exception:
    """The error itself or, where the store's disk is full or read-only, that as a StoreError.

    Libraries turn a failed write into errors of their own (a RuntimeError, a SafetensorError, an OSError without a
    number), so the disk is asked, and not only the error.
    """
    if isinstance(error, StoreError):
        return error
    if trouble := disk_trouble(error, store.root):
        return trouble
    try:
        store.probe()
    except StoreError as trouble:
        return StoreError(f"{trouble}; it stopped the job with {type(error).__name__}: {first_line(error)}")
    except OSError:  # the disk cannot even be asked: the first error says more
        return error
    return error


def described(error: Exception) -> Failure:
    """An exception as text."""
    return Failure(
        message=f"{type(error).__name__}: {error}",
        traceback="".join(traceback.format_exception(error)),
        declared=is_declared(error),
    )


def is_declared(error: BaseException) -> bool:
    """Whether ``error`` is a refusal with a message for the user, and not a fault of the program.

    That is an error of the store, or a ValueError that one of our own packages raised itself: what a library raises
    on the way is unexpected and keeps its traceback.
    """
    if isinstance(error, StoreError):
        return True
    frame = error.__traceback__
    if not isinstance(error, ValueError) or frame is None:
        return False
    while frame.tb_next is not None:
        frame = frame.tb_next
    return str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0] in PACKAGES


def _make(node: Node, store: Store, workspace: Path, execution: Execution) -> Mapping[str, float]:
    if (identity := node.identity()) != node.id:
        raise RuntimeError(
            f"{node.description} was planned as {node.id}, but is {identity} in the worker:"
            " the identity of a declared object depends on the process; please report this"
        )
    progress = ProgressFile(workspace)
    parents = [store.path(parent) for parent in node.parents]
    node.perform(parents, workspace=workspace, execution=execution, report=progress)
    store.seal(
        node.id,
        workspace,
        {"kind": node.kind, "description": node.description, "parents": list(node.parents)},
    )
    return progress.metrics


def _end_with(lifeline: Connection) -> None:
    """Waits until the other end of ``lifeline`` is closed, then ends the process: workspaces survive any end."""
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    os._exit(1)
