"""Recipes: a model and its stages, everything that a result depends on, with the identity of each stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from models import Tokenizer, Transformer
from testbeds.core import Task
from testbeds.identity import fingerprint
from training.stage import Stage

Precision = Literal["32-true", "bf16-mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A model and the stages that train it, in order."""

    revision: ClassVar[int] = 1
    model: Transformer
    symbols: tuple[str, ...]
    """The lexicon, the same for all stages: see ``lexicon``."""
    seed: int
    """Draws the initial weights."""
    stages: tuple[Stage, ...]
    precision: Precision = "32-true"
    """Arithmetic of the forward and backward pass; part of the recipe, since it changes results."""

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError("a Recipe needs at least one stage, got none")
        if self.precision not in ("32-true", "bf16-mixed"):
            raise ValueError(f"Recipe.precision must be 32-true or bf16-mixed, got {self.precision!r}")
        Tokenizer.of(self.symbols)  # refuses a lexicon that cannot be one
        for stage in self.stages:
            missing = sorted(set(stage.task.symbols) - set(self.symbols))
            if missing:
                raise ValueError(
                    f"Recipe.symbols lacks {missing} of stage {stage.name}; use symbols=lexicon(...) over all tasks"
                )
            longest = stage.longest()
            if longest > self.model.context:
                raise ValueError(
                    f"stage {stage.name} needs a context of at least {longest} tokens,"
                    f" got Transformer.context={self.model.context}"
                )

    @property
    def vocabulary(self) -> int:
        """Number of token ids, special tokens included."""
        return Tokenizer.of(self.symbols).size

    def then(self, *stages: Stage) -> Recipe:
        """This recipe with more stages after its own."""
        return replace(self, stages=self.stages + stages)

    def upto(self, index: int) -> Recipe:
        """This recipe, ending with stage ``index``."""
        return replace(self, stages=self.stages[: index + 1])


def lexicon(tasks: Sequence[Task]) -> tuple[str, ...]:
    """The union of the tasks' symbols, each once, in order of first appearance."""
    return tuple(dict.fromkeys(symbol for task in tasks for symbol in task.symbols))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Root:
    """What the first stage starts from."""

    model: Transformer
    symbols: tuple[str, ...]
    seed: int
    precision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """A stage and the identity of what it starts from."""

    stage: Stage
    parent: str


def stage_id(recipe: Recipe, index: int = -1) -> str:
    """32 hexadecimal digits that identify stage ``index`` and all that it depends on; equal prefixes share them."""
    stages = recipe.stages[: index % len(recipe.stages) + 1]
    identity = fingerprint(
        _Root(model=recipe.model, symbols=recipe.symbols, seed=recipe.seed, precision=recipe.precision)
    )
    for stage in stages:
        identity = fingerprint(_Link(stage=stage, parent=identity))
    return identity


def estimated_flops(recipe: Recipe, index: int) -> int:
    """Training and sampling FLOPs that stage ``index`` is expected to cost, from its declared budget and lengths."""
    return recipe.stages[index].estimated_flops(recipe.model, recipe.vocabulary)
