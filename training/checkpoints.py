"""Checkpoints: the state of a stage in work, replaced atomically, so that a kill at any moment loses only time.

A checkpoint holds weights, optimizer state, the ledger and the problem keys that were used. Data order and sampling
noise need no state, since they are functions of the seed and the step. Rows of metrics.jsonl that were written after
the checkpoint are cut off on resume.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from training.audit import KeyLog
from training.learner import Learner
from training.ledger import Ledger

CHECKPOINT = "checkpoint.ckpt"
METRICS = "metrics.jsonl"


class Checkpoints:
    """The checkpoint and the metrics log of one stage in its workspace."""

    def __init__(self, *, workspace: Path, every_s: float) -> None:
        self.path = workspace / CHECKPOINT
        self.log_path = workspace / METRICS
        self.every_s = every_s
        self.keys = KeyLog()
        self._rows: list[str] = []
        self._saved_at = time.monotonic()

    def resume(self, learner: Learner) -> Ledger:
        """Restore the newest checkpoint into the learner; a new ledger where there is none."""
        if not self.path.exists():
            self.log_path.write_text("")
            return Ledger()
        state: dict[str, Any] = {"model": learner.module, "optimizer": learner.optimizer}
        rest = learner.fabric.load(self.path, state, weights_only=True)
        with self.log_path.open("r+b") as log:
            log.truncate(rest["metrics_bytes"])
        self.keys = KeyLog(rest["keys"].numpy())
        return Ledger.from_json(json.loads(rest["ledger"]))

    def log(self, row: Mapping[str, int | float], keys: Iterable[str]) -> None:
        """Keep one row of metrics and the problems of its step; they reach the disk with the next checkpoint."""
        self._rows.append(json.dumps(row))
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
