"""A world small enough to train in: one layer, width 16, depth-2 chains over 4 symbols."""

from collections.abc import Callable
from pathlib import Path

import pytest

from models import Transformer
from testbeds import EXPLICIT, Splits, Suite
from testbeds.latent_modules import LatentModules
from training import (
    RL,
    SFT,
    AdamW,
    Budget,
    Demonstrations,
    Execution,
    FreshText,
    Pretrain,
    Recipe,
    Styles,
    dr_grpo,
    lexicon,
)
from training.execution import silent
from training.run import train_stage

TASK = LatentModules(world=5, alphabet=4, skills=3, depth=2)
SUITE = Suite(task=TASK, splits=Splits(fractions=(("train", 0.7), ("test", 0.3))), seed=3)
MODEL = Transformer(layers=1, width=16, heads=2, context=12)
SYMBOLS = lexicon((TASK,))


def pretrain(steps: int = 4, **changes: object) -> Pretrain:
    declared: dict[str, object] = {
        "source": FreshText(suite=SUITE, styles=Styles(styles=(EXPLICIT,), weights=(1.0,))),
        "budget": Budget(steps=steps),
        "optimizer": AdamW(rate=1e-2),
        "seed": 1,
        "batch": 16,
    }
    return Pretrain(**(declared | changes))  # type: ignore[arg-type]


def fine_tune(steps: int = 4, **changes: object) -> SFT:
    declared: dict[str, object] = {
        "source": Demonstrations(suite=SUITE, count=6),
        "budget": Budget(steps=steps),
        "optimizer": AdamW(rate=1e-2),
        "seed": 2,
        "batch": 8,
    }
    return SFT(**(declared | changes))  # type: ignore[arg-type]


def reinforce(steps: int = 4, **changes: object) -> RL:
    declared: dict[str, object] = {
        "suite": SUITE,
        "method": dr_grpo(max_tokens=6),
        "budget": Budget(steps=steps),
        "optimizer": AdamW(rate=1e-2),
        "seed": 3,
        "max_new_tokens": 6,
        "prompts": 8,
        "group": 4,
    }
    return RL(**(declared | changes))  # type: ignore[arg-type]


@pytest.fixture
def recipe() -> Callable[..., Recipe]:
    """A recipe from stages."""

    def build(*stages: object, **changes: object) -> Recipe:
        declared: dict[str, object] = {"model": MODEL, "symbols": SYMBOLS, "seed": 7, "stages": stages}
        return Recipe(**(declared | changes))  # type: ignore[arg-type]

    return build


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Path]:
    """Train every stage of a recipe in a fresh directory; gives the last artifact."""
    runs = iter(range(1000))

    def run(recipe: Recipe, **execution: object) -> Path:
        parent = None
        root = tmp_path / f"run-{next(runs)}"
        for index in range(len(recipe.stages)):
            workspace = root / str(index)
            workspace.mkdir(parents=True)
            train_stage(
                recipe,
                index,
                parent=parent,
                workspace=workspace,
                execution=Execution(**({"device": "cpu"} | execution)),  # type: ignore[arg-type]
                report=silent,
            )
            parent = workspace / "artifact"
        assert parent is not None
        return parent

    return run


@pytest.fixture
def stages() -> dict[str, Callable[..., object]]:
    """Builders of small stages by name."""
    return {"pretrain": pretrain, "sft": fine_tune, "rl": reinforce}
