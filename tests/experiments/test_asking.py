"""Asking a policy shows what it would answer at once, exactly, and asks what its stages learned from."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace

import pytest
import torch
from rich.console import Console

from experiments.gallery import completion_panel
from experiments.sampling import Asked, ask, foreign_task, questions_for
from models import Policy, Tokenizer, Transformer, initialise
from testbeds import Choice, Mixture, Splits, Suite
from testbeds.chess.chess_puzzle import ChessPuzzle
from testbeds.chess.mates import MateIn
from testbeds.chess.reaches import Reaches
from testbeds.identity import canonical
from testbeds.latent_modules import LatentModules
from training.probes import probe


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(LatentModules):
    """Latent modules whose problems have seven answers, of which the first is right, and a drawing."""

    def choices(self, _problem):
        texts = self.symbols[:7]
        return tuple(Choice(text=text, kinds=("correct",) if text == texts[0] else ()) for text in texts)

    def drawing(self, problem):
        return f"[{problem.prompt}]"


SPLITS = Splits(fractions=(("train", 0.5), ("test", 0.5)))


def saved(task, directory):
    """A policy with random weights in a directory, and itself."""
    tokenizer = Tokenizer.of(task.symbols)
    model = Transformer(layers=1, width=16, heads=2, context=40, initial_std=0.5)
    policy = Policy(decoder=initialise(model, tokenizer.size, torch.Generator().manual_seed(3)), tokenizer=tokenizer)
    policy.save(directory)
    return policy


def asked(task):
    """Two problems, a sample each."""
    suite = Suite(task=task, splits=SPLITS, seed=1)
    return Asked(suite=suite, split="test", count=2, samples=1, temperature=1.0, seed=0)


def printed(answered):
    console = Console(width=160, highlight=False, markup=False, record=True, file=io.StringIO())
    console.print(completion_panel("one", answered))
    return console.export_text()


@pytest.mark.parametrize("wrap", [lambda task: task, lambda task: Mixture(tasks=(task,), weights=(1.0,))])
def test_the_likeliest_choices_stand_below_the_completions(tmp_path, wrap):
    task = wrap(Listed(world=1, depth=2))
    policy = saved(task, tmp_path)
    for answered in ask(tmp_path, asked(task)):
        longest = 40 - len(policy.tokenizer.encode(answered.problem.prompt))
        (found,) = probe(policy, task, [answered.problem], max_new_tokens=longest)
        text = printed(answered)
        assert "the 5 likeliest of 7" in text
        assert f"all together {found.means['legal_mass']:.3g}" in text
        assert [f"{probability:.3g}" in text for _, probability, _ in found.rows] == [True] * 5 + [False] * 2
        assert answered.drawn.startswith("[")
        assert answered.drawn in text


def test_a_task_without_choices_is_shown_as_it_was(tmp_path):
    task = LatentModules(world=1, depth=2)
    saved(task, tmp_path)
    (first, _) = ask(tmp_path, asked(task))
    assert first.probed is None
    assert first.drawn is None
    assert "at once" not in printed(first)


def test_what_a_suite_keeps_out_of_training_is_not_what_was_learned(tmp_path):
    mates, others = ChessPuzzle(source=MateIn(moves=1)), ChessPuzzle(source=MateIn(moves=2))
    kept_out = Reaches(suites=((Suite(task=others, splits=SPLITS, seed=1), "test", 3),))
    learned = Suite(task=mates, splits=replace(SPLITS, held_out=(("kept out", kept_out),)), seed=1)
    (tmp_path / "recipe.json").write_text(json.dumps({".stages": [canonical(learned)]}))
    suite, split = questions_for(tmp_path)
    assert (suite, split) == (learned, "test")
    assert foreign_task(tmp_path, mates) is None
    assert "no stage of this artifact had problems of" in foreign_task(tmp_path, others)
