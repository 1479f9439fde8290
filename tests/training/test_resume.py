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

root, every_s = Path(sys.argv[1]), float(sys.argv[2])
# several updates per rollout batch: a kill falls between them, too
rl = reinforce(30, method=GRPO_AS_VERL, minibatches=2, epochs=2)
recipe = Recipe(model=MODEL, symbols=SYMBOLS, seed=7, stages=(pretrain(60, microbatch=5), fine_tune(60), rl))
parent = None
for index, stage in enumerate(recipe.stages):
    workspace = root / stage.name
    workspace.mkdir(parents=True, exist_ok=True)
    if not (workspace / "done").exists():
        train_stage(
            recipe, index, parent=parent, workspace=workspace,
            execution=Execution(device="cpu", checkpoint_every_s=every_s),
            report=lambda progress: print(stage.name, progress.done, flush=True),
        )
        (workspace / "done").touch()
    parent = workspace / "artifact"
"""
STAGES = ("Pretrain", "SFT", "RL")


def start(root: Path, every_s: float, hash_seed: int = 0) -> subprocess.Popen:
    script = CHILD.format(tests=str(Path(__file__).parent))
    return subprocess.Popen(
        [sys.executable, "-c", script, str(root), str(every_s)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed), "OMP_NUM_THREADS": "1"},
    )


def result(workspace: Path) -> dict[str, bytes]:
    names = ("model.safetensors", "metrics.jsonl", "keys.npy")
    return {name: (workspace / "artifact" / name).read_bytes() for name in names}


def kill(child: subprocess.Popen, after_lines: int, pause_s: float) -> list[tuple[str, int]]:
    """SIGKILL after so many steps and a pause, anywhere inside a step or a checkpoint; gives the steps it made."""
    lines = [child.stdout.readline() for _ in range(after_lines)]
    time.sleep(pause_s)
    child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate()
    assert child.returncode == -signal.SIGKILL
    lines += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    return [(name, int(step)) for name, step in map(str.split, lines)]


def test_sigkill_at_any_moment_several_times_changes_no_bit(tmp_path):
    unbroken = start(tmp_path / "unbroken", every_s=1000)
    unbroken.communicate()
    assert unbroken.returncode == 0

    broken = tmp_path / "broken"
    moments = random.Random("kill")  # when to kill; results must not depend on it
    early = kill(start(broken, every_s=1000), after_lines=5, pause_s=0)  # before the first checkpoint
    assert early[0] == ("Pretrain", 1)
    seen: list[tuple[str, int]] = []
    killed_in = set()
    while len(killed_in) < len(STAGES) or len(seen) < 90:
        child = start(broken, every_s=0, hash_seed=len(seen))
        reached = kill(child, after_lines=moments.randint(12, 22), pause_s=moments.random() * 0.01)
        if seen:  # it went on from the last checkpoint, neither from the start nor past lost steps
            (name, step), (last_name, last) = reached[0], seen[-1]
            assert (1 < step <= last + 2) if name == last_name else step == 1
        seen += reached
        killed_in.add(reached[-1][0])
    child = start(broken, every_s=0, hash_seed=99)
    child.communicate()
    assert child.returncode == 0
    for name, steps in zip(STAGES, (60, 60, 30), strict=True):
        assert result(broken / name) == result(tmp_path / "unbroken" / name)
        log = (broken / name / "artifact" / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(line)["step"] for line in log] == list(range(1, steps + 1))  # no row twice


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
