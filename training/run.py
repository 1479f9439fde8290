"""The two jobs of the laboratory: train a stage, evaluate a policy. Each leaves an artifact.

There is one training loop, on Lightning Fabric: ask the stage for step t, log, checkpoint, until the budget is spent.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import torch
from lightning.fabric import Fabric

from models import Policy, Tokenizer, initialise
from testbeds.identity import canonical
from testbeds.streams import seed_from_key
from training.audit import KeyLog, asked
from training.checkpoints import METRICS, Checkpoints
from training.evaluation import Evaluation, Measured, check_fits, measure, problems_per_batch, summarise
from training.execution import Execution, Progress, Reporter
from training.learner import Learner
from training.ledger import Ledger, Spent
from training.recipe import Precision, Recipe, stage_id
from training.stage import Stage

ARTIFACT = "artifact"
REPORTED = ("reward", "accuracy_corrected", "loss")  # what a progress bar shows of a step's metrics


def make_fabric(execution: Execution, precision: Precision) -> Fabric:
    """One device, as asked. Raises ValueError where it is not there."""
    available = torch.cuda.is_available()
    if execution.device == "cuda" and not available:
        raise ValueError("device cuda was asked for, and this machine has no usable CUDA device; use cpu or auto")
    device = "cuda" if available and execution.device != "cpu" else "cpu"
    return Fabric(accelerator=device, devices=1, precision=precision)


def train_stage(  # what is trained, from what, where, how, and who watches
    recipe: Recipe,
    index: int,
    *,
    parent: Path | None,
    workspace: Path,
    execution: Execution,
    report: Reporter,
) -> None:
    """Train stage ``index`` of a recipe and leave its artifact in ``workspace / "artifact"``.

    Resumes from the checkpoint in the workspace where there is one, to the same bits as an unbroken run.

    Args:
        recipe: What is trained.
        index: Which of its stages.
        parent: Artifact of stage ``index - 1``; None for the first stage.
        workspace: Directory of this stage alone, kept between attempts.
        execution: Device and checkpoint cadence.
        report: Called after each step.
    """
    if (parent is None) != (index == 0):
        raise ValueError(f"stage {index} must start from {'new weights' if index == 0 else 'an artifact'}")
    stage = recipe.stages[index]
    fabric = make_fabric(execution, recipe.precision)
    policy = _starting_policy(recipe, parent, fabric)
    learner = Learner(fabric=fabric, policy=policy, declared=stage.optimizer, parent=parent)
    checkpoints = Checkpoints(
        workspace=workspace, identity=stage_id(recipe, index), every_s=execution.checkpoint_every_s
    )
    ledger = _train(stage, learner, checkpoints, report)
    checkpoints.save(learner, ledger)
    artifact = fresh_artifact(workspace)
    policy.save(artifact)
    checkpoints.keys.save(artifact)
    shutil.copyfile(workspace / METRICS, artifact / METRICS)
    (artifact / "ledger.json").write_text(json.dumps(ledger.to_json(), indent=2))
    (artifact / "recipe.json").write_text(json.dumps(canonical(recipe.upto(index)), indent=2))


def _starting_policy(recipe: Recipe, parent: Path | None, fabric: Fabric) -> Policy:
    if parent is not None:
        return Policy.load(parent, device=str(fabric.device))
    tokenizer = Tokenizer.of(recipe.symbols)
    # Drawn on the CPU whatever the device, so that a GPU run starts from the same weights.
    generator = torch.Generator().manual_seed(seed_from_key("weights", recipe.seed))
    decoder = initialise(recipe.model, tokenizer.size, generator)
    return Policy(decoder=decoder.to(fabric.device), tokenizer=tokenizer)


def _train(stage: Stage, learner: Learner, checkpoints: Checkpoints, report: Reporter) -> Ledger:
    ledger = checkpoints.resume(learner)
    step = stage.start(learner)
    budget = stage.budget
    while not budget.exhausted(ledger):
        result = step(ledger.steps, ledger)
        ledger = ledger.plus(steps=1, training=result.training, sampling=result.sampling)
        row = {
            "step": ledger.steps,
            "training_tokens": ledger.training.tokens,
            "sampling_tokens": ledger.sampling.tokens,
            "flops": ledger.training.flops + ledger.sampling.flops,
            **result.metrics,
        }
        checkpoints.log(row, result.keys)
        checkpoints.save_if_due(learner, ledger)
        shown = {name: float(row[name]) for name in REPORTED if name in row}
        report(Progress(done=min(budget.spent(ledger), budget.limit), total=budget.limit, metrics=shown))
    return ledger


def run_evaluation(
    evaluation: Evaluation, *, policy: Path, workspace: Path, execution: Execution, report: Reporter
) -> None:
    """Measure the policy of an artifact; leaves results.json, rollouts.jsonl and keys.npy in ``workspace/artifact``."""
    fabric = make_fabric(execution, "32-true")
    loaded = Policy.load(policy, device=str(fabric.device))
    began = time.process_time()
    measured: list[Measured] = []
    sets = [(chosen.suite.task, chosen.problems()) for chosen in evaluation.sets]
    check_fits(evaluation, loaded, sets)
    total = sum(len(problems) for _, problems in sets)
    size = problems_per_batch(evaluation)
    for number, (task, problems) in enumerate(sets):
        for start in range(0, len(problems), size):
            measured += measure(loaded, task, problems[start : start + size], evaluation, number=number, start=start)
            report(Progress(done=len(measured), total=total))
    keys = KeyLog()
    keys.add(mark for task, problems in sets for problem in problems for mark in asked(task, problem))
    artifact = fresh_artifact(workspace)
    spent = sum((one.spent for one in measured), Spent(cpu_s=time.process_time() - began))
    (artifact / "ledger.json").write_text(json.dumps(Ledger(evaluation=spent).to_json(), indent=2))
    (artifact / "results.json").write_text(json.dumps(summarise(measured, evaluation), indent=2))
    (artifact / "evaluation.json").write_text(json.dumps(canonical(evaluation), indent=2))
    with (artifact / "rollouts.jsonl").open("w") as lines:
        lines.writelines(json.dumps(one.row) + "\n" for one in measured)
    keys.save(artifact)


def fresh_artifact(workspace: Path) -> Path:
    """An empty directory for the finished files; what an earlier attempt left half-written is removed."""
    artifact = workspace / ARTIFACT
    if artifact.exists():
        shutil.rmtree(artifact)
    artifact.mkdir()
    return artifact
