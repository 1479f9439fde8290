"""Supervised objectives: worked numbers, and contracts over every objective that the module lists."""

import math

import pytest
import torch

from models import Transformer, completion_logp, initialise, pack
from models.sampling import entropy
from training.aggregation import Counts, TokenMean, aggregate
from training.batch import TokenBatch
from training.objectives import OBJECTIVES, CrossEntropy

# Fixture A: three tokens with probabilities .5, .1, .8
P_TV = torch.tensor([[0.5, 0.25, 0.15, 0.10], [0.1, 0.2, 0.6, 0.1], [0.05, 0.05, 0.8, 0.1]], dtype=torch.float64)
LOGP = [math.log(0.5), math.log(0.1), math.log(0.8)]
EVERY = [cls() for cls in OBJECTIVES]


def loss_and_gradient(objective, logp, mask):
    logp_BT = torch.tensor(logp, dtype=torch.float64, requires_grad=True)
    mask_BT = torch.tensor(mask)
    batch = TokenBatch(logp_BT=logp_BT, mask_BT=mask_BT)
    loss = aggregate(objective(batch), TokenMean().weights(mask_BT, Counts.of(mask_BT)).double())
    loss.backward()
    return loss.item(), logp_BT.grad


def test_cross_entropy_of_fixture_a():
    # S1: (ln 2 + ln 10 + ln 1.25) / 3 and -1/3 per token
    loss, gradient_BT = loss_and_gradient(CrossEntropy(), [LOGP], [[True] * 3])
    assert loss == pytest.approx(1.07296, abs=5e-6)
    assert gradient_BT[0].tolist() == pytest.approx([-1 / 3] * 3)


def test_entropies_of_fixture_a():
    # their mean is 1.00174; four equal tokens have ln 4
    assert entropy(P_TV.log()).tolist() == pytest.approx([1.20797, 1.0889, 0.708347], abs=5e-6)
    assert entropy(torch.full((1, 4), 0.25).log()).item() == pytest.approx(1.386294, abs=1e-6)


def test_uniform_logits_cost_the_logarithm_of_the_vocabulary():
    architecture = Transformer(layers=1, width=16, heads=2, context=12, tied=False)
    decoder = initialise(architecture, 9, torch.Generator().manual_seed(0))
    decoder.lm_head.weight.data.zero_()
    scores = completion_logp(decoder, pack([[3, 4]], [[5, 6, 2]], pad=0))
    batch = TokenBatch(logp_BT=scores.logp_BC, mask_BT=scores.mask_BC)
    assert CrossEntropy()(batch)[0].tolist() == pytest.approx([math.log(9)] * 3)
    assert scores.entropy_BC[0].tolist() == pytest.approx([math.log(9)] * 3)


@pytest.mark.parametrize("objective", EVERY, ids=lambda objective: type(objective).__name__)
def test_masked_slots_may_hold_anything_and_get_no_gradient(objective):
    clean, gradient_BT = loss_and_gradient(objective, [LOGP, LOGP], [[True] * 3, [True, False, False]])
    fuzzed, fuzzed_BT = loss_and_gradient(
        objective, [LOGP, [LOGP[0], math.nan, 1e30]], [[True] * 3, [True, False, False]]
    )
    assert clean == fuzzed
    assert torch.equal(gradient_BT, fuzzed_BT)
    assert gradient_BT[1, 1:].tolist() == [0, 0]


@pytest.mark.parametrize("objective", EVERY, ids=lambda objective: type(objective).__name__)
def test_the_order_of_sequences_does_not_matter(objective):
    rows, mask = [LOGP, [-0.3, -1.0, -2.0], [-0.1, -0.2, -0.3]], [[True] * 3, [True, True, False], [True, False, False]]
    loss, gradient_BT = loss_and_gradient(objective, rows, mask)
    order = [2, 0, 1]
    permuted, permuted_BT = loss_and_gradient(objective, [rows[i] for i in order], [mask[i] for i in order])
    assert permuted == pytest.approx(loss, rel=1e-12)
    torch.testing.assert_close(permuted_BT, gradient_BT[order])


@pytest.mark.parametrize("objective", EVERY, ids=lambda objective: type(objective).__name__)
def test_gradients_are_the_derivative_of_the_value(objective):
    mask_BT = torch.tensor([[True, True, False]])

    def value(logp_BT):
        weight_BT = TokenMean().weights(mask_BT, Counts.of(mask_BT)).double()
        return aggregate(objective(TokenBatch(logp_BT=logp_BT, mask_BT=mask_BT)), weight_BT)

    assert torch.autograd.gradcheck(value, torch.tensor([[-0.5, -1.0, -2.0]], dtype=torch.float64, requires_grad=True))
