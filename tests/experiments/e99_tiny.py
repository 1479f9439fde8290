"""How little must a study be to be one? (for tests of the command line)"""

from __future__ import annotations

from typing import Final

from experiments.claims import Claim, difference
from experiments.experiment import Experiment, Reading
from experiments.experiment import Scale as Size
from models import Transformer
from testbeds.latent_modules import LatentModules
from testbeds.suites import Suite
from training.budget import Budget
from training.evaluation import Evaluation, ProblemSet
from training.optimizers import AdamW
from training.recipe import Recipe
from training.sources import Demonstrations, FreshText
from training.supervised import SFT, Pretrain

TASK = LatentModules(world=0, depth=2)
MODEL = Transformer(layers=1, width=16, heads=2, context=32)
STEPS = 3


def arms(seed, _scale):
    suite = Suite(task=TASK, seed=seed)
    budget, optimizer = Budget(steps=STEPS), AdamW(rate=1e-3)
    base = Recipe(
        model=MODEL,
        symbols=TASK.symbols,
        seed=seed,
        stages=(Pretrain(source=FreshText(suite=suite), budget=budget, optimizer=optimizer, seed=seed, batch=8),),
    )
    taught = SFT(source=Demonstrations(suite=suite, count=8), budget=budget, optimizer=optimizer, seed=seed, batch=8)
    return {"base": base, "taught": base.then(taught)}


def evaluations(seed, _scale):
    suite = Suite(task=TASK, seed=seed)
    return {"unseen": Evaluation(sets=(ProblemSet(suite=suite, count=8),), max_new_tokens=8, seed=seed, samples=4)}


READING = Reading(evaluation="unseen")
EXPERIMENT: Final = Experiment(
    name="e99",
    title="Tiny",
    question="How little must a study be to be one?",
    introduction="One world, two arms.",
    factor="Demonstrations.",
    held_equal=("The world.",),
    arms=arms,
    evaluations=evaluations,
    primary=READING,
    descriptions=(("base", "no demonstrations"), ("taught", "8 demonstrations")),
    seeds=(0, 1, 2),
    scales=(Size(name="smoke", seeds=1), Size(name="full", seeds=3)),
    claims=(
        Claim(
            name="help",
            statement="Demonstrations help.",
            effect=difference(READING.of("taught"), READING.of("base")),
            low=0.0,
        ),
    ),
)
