"""RL steps against an independent implementation: one sequence at a time, float64, straight from the equations.

It shares nothing with the stage but the rollouts that were sampled. What it checks: which policy scores, at which
temperature, with which reference; advantages, ratios, clipping, KL in both placements, entropy bonus; counts and
weights of every minibatch, whatever the micro-batches; the logged loss, gradient norm and reward metrics; the ledger.
"""

import json
import math
from dataclasses import replace

import pytest
import torch

from models import Policy, forward_flops, sampling_flops, training_flops
from training import GRPO, GRPO_AS_TRL, GRPO_AS_VERL, KL, REINFORCE, RLOO, AdamW, Cosine, PolicyGradient, dr_grpo
from training import reinforce as running
from training.advantages import BatchCentred, GroupCentred, GroupNormalised, LeaveOneOut
from training.aggregation import ConstantLength, SequenceMeanTokenMean, SequenceMeanTokenSum, TokenMean
from training.learner import Learner
from training.policy_losses import ClippedRatio, Score

CASES = {
    "reinforce": (REINFORCE, {}),
    "rloo": (RLOO, {"temperature": 0.6}),
    "grpo": (GRPO, {"minibatches": 2, "epochs": 2, "microbatch": 5}),
    "grpo-as-trl": (GRPO_AS_TRL, {"temperature": 1.7}),
    "grpo-as-verl": (GRPO_AS_VERL, {"minibatches": 4, "microbatch": 3}),
    "dr-grpo": (dr_grpo(max_tokens=6), {"epochs": 3}),
    "k1-in-reward": (replace(RLOO, kl=KL(coefficient=0.2)), {"temperature": 0.6, "microbatch": 7}),
    "k3-in-reward": (replace(dr_grpo(max_tokens=6), kl=KL(coefficient=0.3, estimator="k3")), {"minibatches": 2}),
    "k2-in-loss": (
        PolicyGradient(
            advantage=BatchCentred(),
            loss=ClippedRatio(low=0.05, high=0.28, dual=1.5),
            aggregation=TokenMean(),
            kl=KL(coefficient=0.3, estimator="k2", placement="loss", weighted=True),
            entropy_bonus=0.05,
        ),
        {"minibatches": 2, "epochs": 2, "temperature": 0.6},
    ),
    "k3-in-loss": (
        PolicyGradient(
            advantage=GroupNormalised(deviation="population", epsilon=1e-4),
            loss=Score(),
            aggregation=SequenceMeanTokenSum(),
            kl=KL(coefficient=0.3, estimator="k3", placement="loss"),
        ),
        {"temperature": 1.7, "microbatch": 5},
    ),
}
SETTINGS = AdamW(rate=2e-2, clip_norm=0.3, schedule=Cosine(warmup=0.0, final=0.0))


@pytest.fixture
def recorded(monkeypatch):
    """Everything that the equations start from: rollouts, and weights and gradient of each update."""
    rollouts, updates = [], []
    original_roll_out, original_clip = running.roll_out, Learner._clip

    def roll_out(*args, **kwargs):
        rollouts.append(original_roll_out(*args, **kwargs))
        return rollouts[-1]

    def clip(self):
        named = list(self.policy.decoder.named_parameters())
        updates.append(
            {
                "step": len(rollouts) - 1,
                "weights": {name: value.detach().clone() for name, value in self.policy.decoder.state_dict().items()},
                "gradient": {name: value.grad.detach().clone() for name, value in named},
            }
        )
        return original_clip(self)

    monkeypatch.setattr(running, "roll_out", roll_out)
    monkeypatch.setattr(Learner, "_clip", clip)
    return rollouts, updates


def scored(decoder, prompt, completion, temperature):
    """Log-probability and entropy of each completion token, of one sequence alone."""
    ids = torch.tensor([[*prompt, *completion]])
    logits = decoder(ids[:, :-1])[0, len(prompt) - 1 :] / temperature
    logp = torch.log_softmax(logits, -1)
    return logp.gather(1, torch.tensor(completion)[:, None])[:, 0], -(logp.exp() * logp).sum(-1)


def k(estimator, gap):
    return {"k1": gap, "k2": gap**2 / 2, "k3": torch.exp(-gap) - 1 + gap}[estimator]


def advantages(advantage, reward):
    mean, size = reward.mean(1, keepdim=True), reward.shape[1]
    match advantage:
        case BatchCentred():
            return reward - reward.mean()
        case GroupCentred():
            return reward - mean
        case LeaveOneOut():
            return torch.stack([reward[:, g] - (reward.sum(1) - reward[:, g]) / (size - 1) for g in range(size)], 1)
        case GroupNormalised():
            ddof = 1 if advantage.deviation == "sample" else 0
            deviation = (((reward - mean) ** 2).sum(1, keepdim=True) / (size - ddof)).sqrt()
            return (reward - mean) / (deviation + advantage.epsilon)
    return reward


def weight(aggregation, length, lengths):
    match aggregation:
        case TokenMean():
            return 1 / sum(lengths)
        case SequenceMeanTokenMean():
            return 1 / length / len(lengths)
        case SequenceMeanTokenSum():
            return 1 / len(lengths)
        case ConstantLength():
            return 1 / (len(lengths) * aggregation.length)
    raise AssertionError(aggregation)


class Replay:
    """One rollout batch by the equations."""

    def __init__(self, stage, rollouts, parent):
        self.stage, self.method = stage, stage.method
        self.reference = Policy.load(parent).decoder.double()
        self.prompts = [list(prompt) for prompt in rollouts.row_prompts]
        self.completions = [list(ids) for ids in rollouts.row_completions]
        self.behaviour = [
            rollouts.completions.logp_BT[row, : len(ids)].double() for row, ids in enumerate(self.completions)
        ]
        self.correct = torch.tensor([float(verdict.correct) for verdict in rollouts.verdicts], dtype=torch.float64)
        with torch.no_grad():
            self.frozen = [self._score(self.reference, row)[0] for row in range(len(self.prompts))]
        paid = self.correct.clone()
        if self.method.kl is not None and self.method.kl.placement == "reward":
            paid -= torch.stack(
                [
                    self.method.kl.coefficient * k(self.method.kl.estimator, b - q).sum()
                    for b, q in zip(self.behaviour, self.frozen, strict=True)
                ]
            )
        self.advantage = advantages(self.method.advantage, paid.reshape(-1, stage.group)).flatten()

    def _score(self, decoder, row):
        return scored(decoder, self.prompts[row], self.completions[row], self.stage.temperature)

    def gradient(self, weights, rows):
        """Loss and gradient of one optimizer batch."""
        decoder = Policy.load(self.parent).decoder
        decoder.load_state_dict(weights)
        decoder = decoder.double()
        lengths = [len(self.completions[row]) for row in rows]
        total = sum(
            (self._tokens(decoder, row) * weight(self.method.aggregation, len(self.completions[row]), lengths)).sum()
            for row in rows
        )
        parameters = dict(decoder.named_parameters())
        gradients = torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
        return total.item(), {
            name: torch.zeros_like(value) if gradient is None else gradient
            for (name, value), gradient in zip(parameters.items(), gradients, strict=True)
        }

    def _tokens(self, decoder, row):
        logp, entropy = self._score(decoder, row)
        credit = self.advantage[row]
        ratio = torch.exp(logp - (logp.detach() if self.stage.updates == 1 else self.behaviour[row]))
        if isinstance(self.method.loss, Score):
            loss = -credit * logp
        else:
            clip = self.method.loss
            loss = torch.maximum(-credit * ratio, -credit * ratio.clamp(1 - clip.low, 1 + clip.high))
            if clip.dual is not None and credit < 0:
                loss = torch.minimum(loss, -clip.dual * credit)
        kl = self.method.kl
        if kl is not None and kl.placement == "loss":
            factor = ratio.detach() if kl.weighted else 1.0
            loss = loss + kl.coefficient * factor * k(kl.estimator, logp - self.frozen[row])
        return loss - self.method.entropy_bonus * entropy


@pytest.mark.parametrize("case", CASES)
def test_rl_steps_are_the_equations(recipe, train, stages, recorded, case):
    method, changes = CASES[case]
    rollouts, updates = recorded
    base = recipe(stages["pretrain"](40, batch=32))
    parent = train(base)
    updates.clear()
    stage = stages["rl"](2, method=method, optimizer=SETTINGS, **changes)
    artifact = train(base.then(stage))
    del updates[: -2 * stage.updates]  # the base is trained again on the way
    rows = [json.loads(line) for line in (artifact / "metrics.jsonl").read_text().splitlines()]
    model, vocabulary = base.model, base.vocabulary
    spent = unsure = 0
    assert len(rollouts) == 2
    assert rollouts[0].row_completions != rollouts[1].row_completions
    for step, (sampled, row) in enumerate(zip(rollouts, rows, strict=True)):
        replay = Replay(stage, sampled, parent)
        replay.parent = parent
        own = [update for update in updates if update["step"] == step]
        losses, norms = [], []
        for update, chosen in zip(own, running.minibatches(stage, step, torch.device("cpu")), strict=True):
            loss, gradient = replay.gradient(update["weights"], chosen.tolist())
            largest = max(value.abs().max().item() for value in gradient.values())
            for name, value in gradient.items():
                torch.testing.assert_close(
                    update["gradient"][name].double(), value, atol=2e-4 * largest + 1e-7, rtol=0, msg=f"{case} {name}"
                )
            losses.append(loss)
            norms.append(math.sqrt(sum(value.square().sum().item() for value in gradient.values())))
        assert row["loss"] == pytest.approx(sum(losses) / len(losses), abs=2e-5)
        assert row["gradient_norm"] == pytest.approx(sum(norms) / len(norms), rel=1e-3, abs=1e-6)
        sure, perhaps = _check_metrics(stage, sampled, replay, row, model, vocabulary)
        spent, unsure = spent + sure, unsure + perhaps
        assert spent <= row["flops"] <= spent + unsure
        # two steps of a cosine from 1 to 0 without warm-up: halfway, then the end
        assert row["rate"] == pytest.approx(SETTINGS.rate * (0.5, 0.0)[step], abs=1e-12)


def _check_metrics(stage, sampled, replay, row, model, vocabulary):
    """The logged numbers, recomputed from the rollouts; gives the FLOPs of the step."""
    lengths = [len(ids) for ids in replay.completions]
    prompts = [len(ids) for ids in replay.prompts]
    groups = replay.correct.reshape(-1, stage.group)
    tokens = torch.cat(replay.behaviour)
    assert row["accuracy"] == pytest.approx(replay.correct.mean().item())
    assert row["reward"] == pytest.approx(replay.correct.mean().item())
    assert row["length_tokens"] == pytest.approx(sum(lengths) / len(lengths))
    assert row["entropy_estimate_nats"] == pytest.approx(-tokens.mean().item(), rel=1e-5)
    assert row["mixed_groups"] == pytest.approx(((groups.sum(1) > 0) & (groups.sum(1) < stage.group)).double().mean())
    if stage.method.kl is not None:
        gaps = [(b - q).sum().item() for b, q in zip(replay.behaviour, replay.frozen, strict=True)]
        assert row["kl_nats"] == pytest.approx(sum(gaps) / len(gaps), abs=1e-4)
    whole = [p + n for p, n in zip(prompts, lengths, strict=True)]
    always = stage.method.entropy_bonus or (stage.method.kl is not None and stage.method.kl.placement == "loss")
    # Equal completions of a group have equal rewards, and no credit, but for rounding: whether a credit of 1e-8 is one
    # differs between float32, float64 and kinds of processors. Rows with a clear credit are trained, those may be.
    clear = [always or abs(credit) > 1e-6 for credit in replay.advantage.tolist()]
    trained = [n for n, sure in zip(whole, clear, strict=True) if sure]
    perhaps = [
        n for n, sure, credit in zip(whole, clear, replay.advantage.tolist(), strict=True) if not sure and credit != 0
    ]
    flops = sampling_flops(model, vocabulary, prompts, lengths)
    flops += stage.epochs * (training_flops(model, vocabulary, trained) if trained else 0)
    if stage.method.kl is not None:
        flops += forward_flops(model, vocabulary, whole)
    assert len(sampled.verdicts) == len(lengths)
    return flops, stage.epochs * (training_flops(model, vocabulary, perhaps) if perhaps else 0)


def test_the_gradient_is_clipped_once_per_update_by_its_global_norm(recipe, train, stages, monkeypatch):
    norms = []
    original = Learner._clip

    def clip(self):
        before = original(self)
        named = list(self.policy.decoder.parameters())
        norms.append((before, math.sqrt(sum(value.grad.square().sum().item() for value in named))))
        return before

    monkeypatch.setattr(Learner, "_clip", clip)
    train(recipe(stages["pretrain"](4, optimizer=AdamW(rate=1e-2, clip_norm=0.25), microbatch=3)))
    assert len(norms) == 4  # once per optimizer step, not per micro-batch
    assert all(before > 0.25 for before, _ in norms)
    assert all(after == pytest.approx(0.25, rel=1e-4) for _, after in norms)


def test_minibatches_mix_the_groups_of_a_batch(stages):
    stage = stages["rl"](method=GRPO, minibatches=2, epochs=2)
    first, second, third, _ = running.minibatches(stage, 0, torch.device("cpu"))
    assert set(first.tolist()) | set(second.tolist()) == set(range(32))
    assert set(first.tolist()) != set(range(16))  # not in order
    assert set(third.tolist()) != set(first.tolist())  # nor the same in the next epoch


@pytest.mark.parametrize(
    ("method", "parts"),
    [
        (REINFORCE, ("RewardItself", "Score", "SequenceMeanTokenSum", None)),
        (RLOO, ("LeaveOneOut", "Score", "SequenceMeanTokenSum", None)),
        (GRPO, ("GroupNormalised", "ClippedRatio", "SequenceMeanTokenMean", ("k3", "loss", 0.04))),
        (GRPO_AS_TRL, ("GroupNormalised", "ClippedRatio", "TokenMean", None)),
        (GRPO_AS_VERL, ("GroupNormalised", "ClippedRatio", "TokenMean", None)),
        (dr_grpo(max_tokens=9), ("GroupCentred", "ClippedRatio", "ConstantLength", None)),
    ],
)
def test_presets_are_what_their_sources_say(method, parts):
    # as published, and as the frameworks document their defaults
    kl = method.kl and (method.kl.estimator, method.kl.placement, method.kl.coefficient)
    named = tuple(type(part).__name__ for part in (method.advantage, method.loss, method.aggregation))
    assert (*named, kl) == parts


def test_presets_differ_where_the_frameworks_do():
    assert (GRPO_AS_TRL.advantage.epsilon, GRPO_AS_VERL.advantage.epsilon) == (1e-4, 1e-6)
    assert (GRPO_AS_TRL.loss.dual, GRPO_AS_VERL.loss.dual) == (None, 3.0)
    assert dr_grpo(max_tokens=9).aggregation.length == 9
