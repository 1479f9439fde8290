"""Golden digests: behaviour that a fingerprint vouches for must not change without a new revision.

A recipe's identity hashes class names, revisions and fields, not code. So when a class starts to behave differently
under the same revision, old artifacts would be served for new code. These digests turn that into a red test.
``make golden`` writes them anew, and only for classes whose revision was raised or that are new.
"""

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from models import SIZES, Tokenizer, Transformer, initialise
from testbeds import EXPLICIT, IMPLICIT, Suite, TraceStyle, stream
from testbeds.catalogue import catalogue, levels
from testbeds.identity import digest, qualified_name
from training.advantages import ADVANTAGES
from training.aggregation import AGGREGATIONS, ConstantLength, Counts
from training.batch import TokenBatch
from training.kl import kl_estimate
from training.objectives import OBJECTIVES
from training.optimizers import Constant, Cosine, WarmupStableDecay
from training.policy_losses import POLICY_LOSSES
from training.rewards import Outcome, Shuffled

GOLDEN = Path(__file__).parent / "golden" / "digests.json"
PROBLEMS = 40
STYLES = (EXPLICIT, TraceStyle(granularity="composed", group=2), IMPLICIT)


def _testbed(task):
    """Problems, keys, features and demonstrations of the start of the training stream."""
    lines = []
    for problem in Suite(task=task, seed=1).stream("train").take(0, PROBLEMS):
        lines.append([problem.prompt, problem.key, sorted(problem.features.items()), repr(problem.certificate)])
        for style in STYLES:
            try:
                lines.append(task.demonstrate(problem, style, stream("golden", problem.key)).text)
            except ValueError as refusal:  # a style that the testbed does not write is behaviour, too
                lines.append(str(refusal))
        lines.append(asdict(task.verify(problem, problem.prompt)))
    return digest(json.dumps(lines).encode())


def _numbers(tensor):
    """Six significant digits: the arithmetic, not the rounding of one machine."""
    return digest(json.dumps([f"{float(x):.6g}" for x in tensor.flatten()]).encode())


def _inputs():
    rng = stream("golden numbers")
    draw = {name: torch.from_numpy(rng.uniform(-2, -0.1, (4, 6))) for name in ("logp_BT", "behaviour_BT")}
    return TokenBatch(
        mask_BT=torch.from_numpy(rng.random((4, 6)) < 0.8),
        advantage_BT=torch.from_numpy(rng.normal(size=(4, 6))),
        **draw,
    )


TASKS = {f"{name}/{level}": (cls, task) for name, cls in catalogue().items() for level, task in levels(name).items()}


def _equations():
    reward_PG = torch.from_numpy(stream("golden rewards").random((3, 5)))
    batch = _inputs()
    counts = Counts.of(batch.mask_BT)
    instances = {cls: cls(length=7) if cls is ConstantLength else cls() for cls in AGGREGATIONS}
    values = {cls: cls()(reward_PG) for cls in ADVANTAGES}
    values |= {cls: rule.weights(batch.mask_BT, counts) for cls, rule in instances.items()}
    values |= {cls: cls()(batch)[batch.mask_BT] for cls in (*OBJECTIVES, *POLICY_LOSSES)}
    values |= {cls: cls()(reward_PG, 3, 4) for cls in (Outcome, Shuffled)}
    for schedule in (Constant(warmup=0.2), Cosine(), WarmupStableDecay()):
        values[type(schedule)] = torch.tensor([schedule(x) for x in np.linspace(0.01, 1, 34)])
    for cls, numbers in values.items():
        yield qualified_name(cls), cls.revision, _numbers(numbers)
    for estimator in ("k1", "k2", "k3"):
        yield f"training.kl.{estimator}", 1, _numbers(kl_estimate(batch.logp_BT, batch.behaviour_BT, estimator))


def _models():
    tokenizer = Tokenizer.of(("a", "b", "m1", "m10", "1", "0"))
    yield "models.tokenizer", 1, digest(json.dumps(tokenizer.encode("a m10 m1 0 10 b")).encode())
    decoder = initialise(SIZES["0.1M"], tokenizer.size, torch.Generator().manual_seed(1))
    logits = decoder(torch.tensor([[3, 4, 5, 6, 7, 8]])).detach()
    yield qualified_name(Transformer), Transformer.revision, _numbers((logits * 1e3).round() / 1e3 + 0.0)


@cache
def others():
    """What is cheap enough to be measured together."""
    return {name: {"revision": revision, "digest": value} for name, revision, value in (*_equations(), *_models())}


def measured(name):
    """Revision of a class (or level) and the digest of its behaviour; a testbed only when its turn comes."""
    if name not in TASKS:
        return others()[name]
    cls, task = TASKS[name]
    return {"revision": cls.revision, "digest": _testbed(task)}


NAMES = sorted([*TASKS, *others()])


@pytest.mark.parametrize("name", NAMES)
def test_behaviour_changes_only_with_the_revision(name):
    golden = json.loads(GOLDEN.read_text())
    assert name in golden, f"{name} is new: run make golden"
    assert measured(name) == golden[name], (
        f"behaviour of {name} changed: raise its revision and run make golden, or undo"
    )


def test_no_digest_outlives_its_class():
    assert sorted(json.loads(GOLDEN.read_text())) == NAMES
