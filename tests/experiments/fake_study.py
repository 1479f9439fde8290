"""A small study with results written by hand, for tests of results and report: nothing is trained."""

from __future__ import annotations

import json

from experiments import Check, Claim, Experiment, Reading, Scale, difference
from experiments.store import Store
from models import SIZES
from testbeds import EXPLICIT, FeatureAtLeast, Splits, Suite
from testbeds.latent_modules import LatentModules
from training.audit import KeyLog
from training.budget import Budget
from training.evaluation import Evaluation, ProblemSet, evaluation_id
from training.ledger import Ledger, Spent
from training.methods import RLOO
from training.optimizers import AdamW
from training.recipe import Recipe, lexicon, stage_id
from training.reinforce import RL
from training.sources import Demonstrations, FreshText, Styles
from training.supervised import SFT, Pretrain

FLOOR = 0.1
SCALE = Scale(name="demo", seeds=3)
TEST = Reading(evaluation="test", band="depth=2")
SPLITS = Splits(held_out=(("deep", FeatureAtLeast(name="depth", value=9)),))
STEPS = 5


def suite(seed):
    return Suite(task=LatentModules(world=seed, depth=2), splits=SPLITS, seed=seed)


def arms(seed, _scale):
    problems = suite(seed)
    optimizer = AdamW(rate=1e-3)
    base = Recipe(
        model=SIZES["0.1M"],
        symbols=lexicon([problems.task]),
        seed=seed,
        stages=(
            Pretrain(source=FreshText(suite=problems), budget=Budget(steps=STEPS), optimizer=optimizer, seed=seed),
        ),
    )

    def sft(count):
        source = Demonstrations(suite=problems, count=count, styles=Styles(styles=(EXPLICIT,)))
        return SFT(source=source, budget=Budget(steps=STEPS), optimizer=optimizer, seed=seed)

    rl = RL(suite=problems, method=RLOO, budget=Budget(steps=STEPS), optimizer=optimizer, seed=seed, max_new_tokens=4)
    return {"RL": base.then(rl), "SFT-4 <b>": base.then(sft(4), rl), "SFT-8": base.then(sft(8), rl)}


def evaluations(seed, _scale):
    return {
        "test": Evaluation(
            sets=(ProblemSet(suite=suite(seed), count=6),), max_new_tokens=4, seed=seed, samples=4, band="depth"
        ),
        "memory": Evaluation(
            sets=(ProblemSet(suite=suite(seed), count=2, split="train"),),
            max_new_tokens=4,
            seed=seed,
            samples=4,
            seen=True,
        ),
    }


def claim(name="demonstrations unlock RL", low=0.2, high=None, arm="SFT-8"):
    return Claim(
        name=name,
        statement=f"RL gains more than {low} after {arm} than alone.",
        effect=difference(TEST.of(arm), TEST.of("RL")),
        low=low,
        high=high,
    )


CHECK = Check(
    name="memorised",
    statement="SFT memorises its demonstrations.",
    measure=Reading(evaluation="memory").of("SFT-8", stage=1),
    low=0.9,
)


def experiment(**changes):
    declared = {
        "name": "e99",
        "title": "Fake & small",
        "question": "Does <SFT> help RL?",
        "introduction": "One world.\n\nThree arms.",
        "factor": "the number of demonstrations",
        "held_equal": ("the base",),
        "arms": arms,
        "evaluations": evaluations,
        "primary": TEST,
        "descriptions": (("RL", "no demonstrations"), ("SFT-4 <b>", "4 of them"), ("SFT-8", "8 of them")),
        "seeds": (11, 12, 13, 14),
        "scales": (Scale(name="smoke", seeds=1), SCALE, Scale(name="full", seeds=4)),
        "claims": (claim(),),
        "checks": (CHECK,),
        "threats": ("Three seeds.",),
        "references": ("Nobody (2000).",),
    }
    return Experiment(**(declared | changes))


def accuracy(arm, stage, seed):
    """By hand: RL alone stays near the floor, SFT-4 rises a little, SFT-8 a lot.

    After the last stage the seeds 11, 12, 13 give RL .09 .10 .11 and SFT-8 .88 .90 .92, so their difference is
    .79 .80 .81.
    """
    means = {"RL": (0.1, 0.1), "SFT-4 <b>": (0.1, 0.2, 0.3), "SFT-8": (0.1, 0.4, 0.9)}[arm]
    spread = {"RL": 0.01, "SFT-4 <b>": 0.01, "SFT-8": 0.02}[arm]
    return means[stage] + (spread * (seed - 12) if stage else 0.0)


def fill(store: Store, study, scale=SCALE, *, skip=lambda _: False, leaking=False, memory=1.0):
    """Writes the artifacts of every stage and evaluation, except where ``skip((seed, arm, stage, evaluation))``."""
    for seed in study.seeds_of(scale):
        for arm, recipe in study.arms(seed, scale).items():
            for index, stage in enumerate(recipe.stages):
                identity = stage_id(recipe, index)
                if not skip((seed, arm, index, None)) and not store.has(identity):
                    _stage(store, identity, stage, seed)
                for name, evaluation in study.evaluations(seed, scale).items():
                    made = evaluation_id(evaluation, identity)
                    if not skip((seed, arm, index, name)) and not store.has(made):
                        value = memory if name == "memory" else accuracy(arm, index, seed)
                        _evaluation(store, made, identity, evaluation, value, leaking=leaking)


def _seal(store, identity, kind, files, keys, parents=()):
    with store.open(identity) as workspace:
        artifact = workspace / "artifact"
        artifact.mkdir()
        for name, text in files.items():
            (artifact / name).write_text(text)
        log = KeyLog()
        log.add(keys)
        log.save(artifact)
        store.seal(identity, workspace, {"kind": kind, "description": "fake", "parents": list(parents)})


def _stage(store, identity, stage, seed):
    rows = [{"step": step + 1, "loss": 1.0 / (step + 1), "flops": 10 * step} for step in range(STEPS)]
    if stage.name == "RL":
        rows = [row | {"reward": FLOOR + 0.1 * row["step"] + seed / 1000, "floor": FLOOR} for row in rows]
    ledger = Ledger(
        steps=STEPS,
        training=Spent(tokens=1000, flops=2_000_000, cpu_s=1.5),
        sampling=Spent(tokens=100 if stage.name == "RL" else 0),
    )
    files = {
        "metrics.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "ledger.json": json.dumps(ledger.to_json()),
    }
    _seal(store, identity, "stage", files, [f"{stage.name} {i}" for i in range(20)])


def _evaluation(store, identity, parent, evaluation, value, *, leaking):
    metrics = {
        "floor": FLOOR,
        "accuracy": value,
        "accuracy_floor": FLOOR,
        "accuracy_corrected": (value - FLOOR) / (1 - FLOOR),
        "length_tokens": 3.0,
    }
    bands = {"depth=10": metrics | {"accuracy": 0.0}, "depth=2": metrics} if evaluation.band else {}
    problems = [problem for chosen in evaluation.sets for problem in chosen.problems()]
    rows = [
        {
            "prompt": f"{problem.prompt} <i>",
            "key": problem.key,
            "features": dict(problem.features),
            "floor": FLOOR,
            "reference": "a b",
            "completions": [
                {"text": f"c{i}", "correct": i % 2 == 0, "well_formed": True, "reason": "as <written>"}
                for i in range(4)
            ],
        }
        for problem in problems
    ]
    files = {
        "results.json": json.dumps({"metrics": metrics, "bands": bands}),
        "rollouts.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "ledger.json": json.dumps(Ledger(evaluation=Spent(tokens=8)).to_json()),
    }
    seen = evaluation.seen or leaking
    keys = [f"SFT {i}" for i in range(3)] if seen else [f"test {i}" for i in range(4)]
    _seal(store, identity, "evaluation", files, keys, [parent])
