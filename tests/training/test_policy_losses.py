"""Policy losses: worked numbers with their gradients, and identities."""

import math

import pytest
import torch

from training.advantages import GroupNormalised
from training.aggregation import (
    ConstantLength,
    Counts,
    SequenceMeanTokenMean,
    SequenceMeanTokenSum,
    TokenMean,
    aggregate,
)
from training.batch import TokenBatch
from training.kl import KL
from training.methods import GRPO, REINFORCE, RLOO, PolicyGradient, dr_grpo
from training.policy_losses import ClippedRatio, Score, clipped_tokens
from training.reinforce import token_loss

# Fixture G: four rollouts of one prompt, reward 1 for the first.
LENGTHS = (2, 3, 1, 1)
LOGP = [[-0.5, -1.0, 0.0], [-0.2, -0.7, -0.1], [-1.5, 0.0, 0.0], [-0.3, 0.0, 0.0]]
RATIO = [[1.5, 0.95, 1.0], [1.5, 0.5, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
MASK_BT = torch.arange(3)[None] < torch.tensor(LENGTHS)[:, None]


def batch_g(advantage: list[float], ratio: list[list[float]] | None = None) -> TokenBatch:
    logp_BT = torch.tensor(LOGP, dtype=torch.float64, requires_grad=True)
    behaviour_BT = logp_BT.detach() - torch.tensor(ratio or [[1.0] * 3] * 4, dtype=torch.float64).log()
    credit_BT = torch.tensor(advantage, dtype=torch.float64)[:, None].expand(-1, 3)
    return TokenBatch(logp_BT=logp_BT, mask_BT=MASK_BT, advantage_BT=credit_BT, behaviour_BT=behaviour_BT)


def total(loss_BT, rule):
    return aggregate(loss_BT, rule.weights(MASK_BT, Counts.of(MASK_BT)).double()).item()


@pytest.mark.parametrize(
    ("advantage", "expected"),
    [
        ([1, 0, 0, 0], 0.375),  # R1, raw reward: 1 * 1.5 / 4
        ([0.75, -0.25, -0.25, -0.25], 0.10625),  # R1, group mean: (0.75*1.5 - 0.25*(1.0+1.5+0.3)) / 4
        ([1, -1 / 3, -1 / 3, -1 / 3], 0.141667),  # R2
    ],
)
def test_reinforce_and_rloo_values(advantage, expected):
    assert total(Score()(batch_g(advantage)), SequenceMeanTokenSum()) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("rule", "off_policy", "on_policy"),
    [
        (SequenceMeanTokenMean(), -0.015625, 0.0),
        (TokenMean(), -0.0821429, -0.0714286),
        (SequenceMeanTokenSum(), -0.14375, -0.125),
        (ConstantLength(length=3), -0.0479167, -0.0416667),
    ],
)
def test_grpo_values_under_each_aggregation(rule, off_policy, on_policy):
    # R5, A = (1.5, -.5, -.5, -.5). Row 1 off policy: -1.5*min(1.5, 1.2), -1.5*0.95; row 2: max of +.5*(1.5, .8, 1) ...
    advantage = [1.5, -0.5, -0.5, -0.5]
    assert total(ClippedRatio()(batch_g(advantage, RATIO)), rule) == pytest.approx(off_policy, abs=1e-6)
    assert total(ClippedRatio()(batch_g(advantage)), rule) == pytest.approx(on_policy, abs=1e-6)


def test_dr_grpo_value():
    # R6, off policy, CONST(3): (-.75*(1.2+.95) + .25*(1.5+.8+1) + .25 + .25) / (4*3); on policy (-.75*2 + .25*5) / 12
    advantage = [0.75, -0.25, -0.25, -0.25]
    rule = ConstantLength(length=3)
    assert total(ClippedRatio()(batch_g(advantage, RATIO)), rule) == pytest.approx(-0.0239583, abs=1e-6)
    assert total(ClippedRatio()(batch_g(advantage)), rule) == pytest.approx(-0.25 / 12)


def test_clip_higher_of_dapo():
    # the upper clip at 1.28 and the token mean
    loss_BT = ClippedRatio(high=0.28)(batch_g([1.5, -0.5, -0.5, -0.5], RATIO))
    assert total(loss_BT, TokenMean()) == pytest.approx(-0.0992857, abs=1e-6)


def one_token(advantage: float, ratio: float, loss: ClippedRatio) -> tuple[float, float]:
    logp_BT = torch.zeros(1, 1, dtype=torch.float64, requires_grad=True)
    batch = TokenBatch(
        logp_BT=logp_BT,
        mask_BT=torch.ones(1, 1, dtype=torch.bool),
        advantage_BT=torch.full((1, 1), advantage, dtype=torch.float64),
        behaviour_BT=torch.full((1, 1), -math.log(ratio), dtype=torch.float64),
    )
    value = loss(batch)
    value.sum().backward()
    return value.item(), logp_BT.grad.item()


# PPO's four quadrants (eps .2): the clip silences r > 1.2 at A > 0 and r < 0.8 at A < 0, and nothing else.
@pytest.mark.parametrize(
    ("advantage", "ratio", "value", "gradient", "clipped"),
    [
        (1.0, 1.5, -1.2, 0.0, 1.0),
        (1.0, 0.5, -0.5, -0.5, 0.0),
        (-1.0, 1.5, 1.5, 1.5, 0.0),
        (-1.0, 0.5, 0.8, 0.0, 1.0),
    ],
)
def test_the_four_quadrants_of_the_clip(advantage, ratio, value, gradient, clipped):
    loss = ClippedRatio()
    assert one_token(advantage, ratio, loss) == pytest.approx((value, gradient))
    batch = TokenBatch(
        logp_BT=torch.tensor([[math.log(ratio)]]),
        mask_BT=torch.ones(1, 1, dtype=torch.bool),
        advantage_BT=torch.tensor([[advantage]]),
        behaviour_BT=torch.zeros(1, 1),
    )
    assert clipped_tokens(batch, loss) == clipped


def test_the_dual_clip_bounds_tokens_of_negative_advantage():
    # R4: A = -.5, r = 6, c = 3 gives 1.5, not 3.0; a positive advantage is untouched
    assert one_token(-0.5, 6.0, ClippedRatio(dual=3.0))[0] == pytest.approx(1.5)
    assert one_token(-0.5, 6.0, ClippedRatio())[0] == pytest.approx(3.0)
    assert one_token(0.5, 1.1, ClippedRatio(dual=3.0)) == pytest.approx(one_token(0.5, 1.1, ClippedRatio()))


def test_ratios_are_bounded_before_they_overflow():
    value, gradient = one_token(-1.0, math.exp(300), ClippedRatio())
    assert value == pytest.approx(math.exp(20))
    assert math.isfinite(gradient)


def test_at_ratio_one_the_clipped_surrogate_has_the_gradient_of_reinforce():
    advantage = [0.7, -1.2, 0.0, 2.0]
    gradients = []
    for loss in (Score(), ClippedRatio(), ClippedRatio(dual=3.0)):
        batch = batch_g(advantage)
        loss(batch)[MASK_BT].sum().backward()
        gradients.append(batch.logp_BT.grad[MASK_BT])
    torch.testing.assert_close(gradients[0], gradients[1])
    torch.testing.assert_close(gradients[0], gradients[2])
    torch.testing.assert_close(gradients[0], -batch_g(advantage).advantage_BT[MASK_BT])


def test_grpo_equals_dr_grpo_over_the_deviation_under_equal_lengths():
    reward_PG = torch.tensor([[1.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    mask_BT = torch.ones(4, 5, dtype=torch.bool)
    logp_BT = -torch.rand(4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = []
    for advantage, rule in (
        (GroupNormalised(epsilon=1e-12), SequenceMeanTokenMean()),
        (dr_grpo(max_tokens=5).advantage, ConstantLength(length=5)),
    ):
        credit_BT = advantage(reward_PG).reshape(4, 1).expand(4, 5)
        batch = TokenBatch(
            logp_BT=logp_BT, mask_BT=mask_BT, advantage_BT=credit_BT, behaviour_BT=logp_BT - 0.05 * credit_BT.sign()
        )
        values.append(aggregate(ClippedRatio()(batch), rule.weights(mask_BT, Counts.of(mask_BT)).double()))
    torch.testing.assert_close(values[0] * reward_PG.std(), values[1])


def test_the_entropy_bonus_is_subtracted_per_token():
    # R19: c = .001 and mean entropy 1.00174 of fixture A: the term is -.00100174
    method = PolicyGradient(advantage=RLOO.advantage, loss=Score(), aggregation=TokenMean(), entropy_bonus=0.001)
    mask_BT = torch.ones(1, 3, dtype=torch.bool)
    batch = TokenBatch(
        logp_BT=torch.zeros(1, 3),
        mask_BT=mask_BT,
        advantage_BT=torch.zeros(1, 3),
        entropy_BT=torch.tensor([[1.20797, 1.0889, 0.708347]]),
    )
    value = aggregate(token_loss(method, batch), TokenMean().weights(mask_BT, Counts.of(mask_BT)))
    assert value.item() == pytest.approx(-0.00100174, abs=1e-8)


def test_the_kl_in_the_loss_is_added_per_token():
    # R20, k3 at the realised tokens of fixture A, coefficient 2
    method = PolicyGradient(
        advantage=RLOO.advantage,
        loss=Score(),
        aggregation=TokenMean(),
        kl=KL(coefficient=2.0, estimator="k3", placement="loss"),
    )
    batch = TokenBatch(
        logp_BT=torch.tensor([[0.5, 0.1, 0.8]]).log(),
        mask_BT=torch.ones(1, 3, dtype=torch.bool),
        advantage_BT=torch.zeros(1, 3),
        reference_BT=torch.tensor([[0.4, 0.25, 0.7]]).log(),
    )
    assert token_loss(method, batch)[0].tolist() == pytest.approx(
        [2 * 0.0231436, 2 * 0.583709, 2 * 0.00853139], abs=1e-5
    )


def test_a_missing_quantity_is_named():
    batch = TokenBatch(logp_BT=torch.zeros(1, 1), mask_BT=torch.ones(1, 1, dtype=torch.bool))
    with pytest.raises(ValueError, match="Score needs TokenBatch.advantage_BT"):
        Score()(batch)
    with pytest.raises(ValueError, match="KL in the loss needs TokenBatch.reference_BT"):
        token_loss(
            PolicyGradient(
                advantage=REINFORCE.advantage,
                loss=_Zero(),
                aggregation=TokenMean(),
                kl=GRPO.kl,
            ),
            batch,
        )


class _Zero:
    def __call__(self, batch: TokenBatch) -> torch.Tensor:
        return torch.zeros_like(batch.logp_BT)


@pytest.mark.parametrize(
    ("field", "value"), [("low", 0.0), ("low", 1.5), ("high", 0.0), ("high", -1.0), ("dual", 1.0), ("dual", 0.5)]
)
def test_impossible_clips_are_refused(field, value):
    with pytest.raises(ValueError, match=f"ClippedRatio.{field} must be .*got {value}"):
        ClippedRatio(**{field: value})
