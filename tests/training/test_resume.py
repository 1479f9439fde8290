"""A run that is killed at any moment and started again ends with the same bits."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from training import Execution
from training.execution import silent
from training.run import train_stage

CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import torch
torch.set_num_threads(1)
from conftest import MODEL, SYMBOLS, fine_tune, pretrain, reinforce
from training import GRPO_AS_VERL, Execution, Recipe
from training.run import train_stage

kind, root = sys.argv[1], Path(sys.argv[2])
stage = {{
    "pretrain": lambda: pretrain(60, microbatch=5),
    "sft": lambda: fine_tune(60),
    # several updates per rollout batch: a kill falls between them, too
    "rl": lambda: reinforce(30, method=GRPO_AS_VERL, minibatches=2, epochs=2),
}}[kind]()
recipe = Recipe(model=MODEL, symbols=SYMBOLS, seed=7, stages=(stage,))
root.mkdir(exist_ok=True)
train_stage(
    recipe, 0, parent=None, workspace=root, execution=Execution(device="cpu", checkpoint_every_s=float(sys.argv[3])),
    report=lambda progress: print(progress.done, flush=True),
)
"""


def start(kind: str, root: Path, every_s: float, hash_seed: int = 0) -> subprocess.Popen:
    script = CHILD.format(tests=str(Path(__file__).parent))
    return subprocess.Popen(
        [sys.executable, "-c", script, kind, str(root), str(every_s)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed), "OMP_NUM_THREADS": "1"},
    )


def result(root: Path) -> dict[str, bytes]:
    return {
        name: (root / "artifact" / name).read_bytes() for name in ("model.safetensors", "metrics.jsonl", "keys.npy")
    }


@pytest.mark.parametrize("kind", ["pretrain", "sft", "rl"])
def test_sigkill_mid_stage_several_times_changes_no_bit(kind, tmp_path):
    unbroken = start(kind, tmp_path / "unbroken", every_s=1000)
    unbroken.communicate()
    assert unbroken.returncode == 0

    broken = tmp_path / "broken"
    moments = random.Random(f"kill {kind}")  # when to kill; results must not depend on it
    seen: list[int] = []
    for kill in range(4):
        child = start(kind, broken, every_s=0, hash_seed=kill)
        reached = [int(child.stdout.readline()) for _ in range(moments.randint(3, 9))]
        time.sleep(moments.random() * 0.01)  # anywhere inside a step or a checkpoint
        child.send_signal(signal.SIGKILL)
        rest, _ = child.communicate()
        reached += [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        assert child.returncode == -signal.SIGKILL
        assert not (broken / "artifact" / "model.safetensors").exists()
        if seen:  # it really went on from a checkpoint, neither from the start nor past lost steps
            assert 1 < reached[0] <= seen[-1] + 2
        seen += reached
    child = start(kind, broken, every_s=0, hash_seed=99)
    child.communicate()
    assert child.returncode == 0
    assert result(broken) == result(tmp_path / "unbroken")


def test_a_kill_before_the_first_checkpoint_starts_over(tmp_path):
    root = tmp_path / "early"
    child = start("sft", root, every_s=1000)
    child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    for directory in (root, tmp_path / "unbroken"):
        child = start("sft", directory, every_s=1000)
        child.communicate()
        assert child.returncode == 0
    assert result(root) == result(tmp_path / "unbroken")


def test_rows_after_the_last_checkpoint_are_not_logged_twice(tmp_path):
    root = tmp_path / "rows"
    child = start("sft", root, every_s=0)
    for _ in range(10):
        child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    child = start("sft", root, every_s=0)
    child.communicate()
    rows = [json.loads(line)["step"] for line in (root / "artifact" / "metrics.jsonl").read_text().splitlines()]
    assert rows == list(range(1, 61))


def _damage_checkpoint(root):
    (root / "checkpoint.ckpt").write_bytes((root / "checkpoint.ckpt").read_bytes()[:1000])


def _lose_log(root):
    (root / "metrics.jsonl").unlink()


def _empty_log(root):
    (root / "metrics.jsonl").write_text("")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_damage_checkpoint, "does not load"),
        (_lose_log, "is ahead of metrics.jsonl, which has 0 of"),
        (_empty_log, "is ahead of metrics.jsonl, which has 0 of"),
    ],
)
def test_a_damaged_workspace_costs_time_and_nothing_else(recipe, stages, tmp_path, damage, reason):
    declared = recipe(stages["sft"](4))
    train_in(declared, tmp_path / "whole")
    train_in(declared, tmp_path / "broken")
    damage(tmp_path / "broken")
    with pytest.warns(UserWarning, match=f"{reason}.*; the stage starts anew"):
        train_in(declared, tmp_path / "broken")
    assert result(tmp_path / "broken") == result(tmp_path / "whole")


def test_a_checkpoint_of_another_stage_is_not_resumed(recipe, stages, tmp_path):
    train_in(recipe(stages["sft"](4, seed=5)), tmp_path / "shared")
    with pytest.warns(UserWarning, match="is of another stage; the stage starts anew"):
        train_in(recipe(stages["sft"](4)), tmp_path / "shared")
    train_in(recipe(stages["sft"](4)), tmp_path / "alone")
    assert result(tmp_path / "shared") == result(tmp_path / "alone")


def train_in(declared, workspace):
    workspace.mkdir(exist_ok=True)
    execution = Execution(device="cpu", checkpoint_every_s=0.0)
    train_stage(declared, 0, parent=None, workspace=workspace, execution=execution, report=silent)
