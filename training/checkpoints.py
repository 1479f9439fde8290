"""Checkpoints: the state of a stage in work, replaced atomically, so that a kill at any moment loses only time.

A checkpoint holds weights, optimizer state, the ledger and the problem keys that were used. Data order and sampling
noise need no state, since they are functions of the seed and the step. Rows of metrics.jsonl that were written after
the checkpoint are cut off on resume.
"""

from __future__ import annotations

import json
import os
import pickle
import time
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from training.audit import KeyLog, Mark
from training.learner import Learner
from training.ledger import Ledger

CHECKPOINT = "checkpoint.ckpt"
METRICS = "metrics.jsonl"


class Checkpoints:
    """The checkpoint and the metrics log of one stage in its workspace."""

    def __init__(self, *, workspace: Path, identity: str, every_s: float) -> None:
        """Checkpoints in ``workspace``, of the stage that ``identity`` names, every so many seconds."""
        self.path = workspace / CHECKPOINT
        self.log_path = workspace / METRICS
        self.identity = identity
        self.every_s = every_s
        self.keys = KeyLog()
        self._rows: list[str] = []
        self._saved_at = time.monotonic()

    def resume(self, learner: Learner) -> Ledger:
        """Restore the newest checkpoint into the learner; a new ledger where there is none that can be used.

        What cannot be used is a checkpoint that does not load, is of another stage, or is ahead of its metrics log.
        The stage then starts anew, with a warning: only time is lost, since results are functions of the recipe.
        """
        state = self._usable(learner)
        if state is None:
            self.log_path.write_text("")
            return Ledger()
        learner.policy.decoder.load_state_dict(state["model"])
        learner.optimizer.load_state_dict(state["optimizer"])
        with self.log_path.open("r+b") as log:
            log.truncate(state["metrics_bytes"])
        self.keys = KeyLog(state["keys"].numpy())
        return Ledger.from_json(json.loads(state["ledger"]))

    def _usable(self, learner: Learner) -> dict[str, Any] | None:
        if not self.path.exists():
            return None
        try:
            state: dict[str, Any] = learner.fabric.load(self.path, weights_only=True)
        except (RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as damage:
            flaw: str | None = f"does not load ({damage})"
        else:
            flaw = self._flaw(state)
        if flaw is None:
            return state
        warnings.warn(f"{self.path} {flaw}; the stage starts anew", stacklevel=3)
        return None

    def _flaw(self, state: Mapping[str, Any]) -> str | None:
        if state.get("identity") != self.identity:
            return "is of another stage"
        written = self.log_path.stat().st_size if self.log_path.exists() else 0
        if written < state["metrics_bytes"]:
            return f"is ahead of {METRICS}, which has {written} of {state['metrics_bytes']} bytes"
        return None

    def log(self, row: Mapping[str, int | float], keys: Iterable[Mark]) -> None:
        """Keep one row of metrics and what its step has shown; they reach the disk with the next checkpoint."""
        self._rows.append(json.dumps(row, allow_nan=False))
        self.keys.add(keys)

    def save_if_due(self, learner: Learner, ledger: Ledger) -> None:
        """Save when the last checkpoint is old enough."""
        if time.monotonic() - self._saved_at >= self.every_s:
            self.save(learner, ledger)

    def save(self, learner: Learner, ledger: Ledger) -> None:
        """Write the log, then the checkpoint beside the old one, then rename it into place."""
        with self.log_path.open("ab") as log:
            log.write("".join(row + "\n" for row in self._rows).encode())
            log.flush()
            os.fsync(log.fileno())
            metrics_bytes = log.tell()
        self._rows = []
        state = {
            "identity": self.identity,
            "model": learner.module,
            "optimizer": learner.optimizer,
            "ledger": json.dumps(ledger.to_json()),
            "metrics_bytes": metrics_bytes,
            "keys": torch.from_numpy(self.keys.hashes()),
        }
        partial = self.path.with_suffix(".partial")
        learner.fabric.save(partial, state)
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.replace(self.path)
        self._saved_at = time.monotonic()
