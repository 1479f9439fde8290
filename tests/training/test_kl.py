"""KL estimators: worked values, and exact expected gradients by enumeration for every estimator and placement."""

import pytest
import torch

from training.kl import KL, kl_estimate
from training.reinforce import penalised

# Fixture A: realised probabilities under policy and reference; row 1 in full for the enumeration.
LOGP_BT = torch.tensor([[0.5, 0.1, 0.8]], dtype=torch.float64).log()
LOGQ_BT = torch.tensor([[0.4, 0.25, 0.7]], dtype=torch.float64).log()
P_V = torch.tensor([0.5, 0.25, 0.15, 0.1], dtype=torch.float64)
Q_V = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        ("k1", [0.223144, -0.916291, 0.133531]),
        ("k2", [0.0248965, 0.419794, 0.00891532]),
        ("k3", [0.0231436, 0.583709, 0.00853139]),
    ],
)
def test_values_at_the_realised_tokens(estimator, expected):
    assert kl_estimate(LOGP_BT, LOGQ_BT, estimator)[0].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [("k1", [1, 1, 1]), ("k2", [0.223144, -0.916291, 0.133531]), ("k3", [0.2, -1.5, 0.125])],
)
def test_gradients_at_the_realised_tokens(estimator, expected):
    logp_BT = LOGP_BT.clone().requires_grad_()
    kl_estimate(logp_BT, LOGQ_BT, estimator).sum().backward()
    assert logp_BT.grad[0].tolist() == pytest.approx(expected, abs=1e-6)


def expected_loss_gradient(estimator: str) -> torch.Tensor:
    """E over the policy's samples of the gradient of k in the loss, all four tokens enumerated."""
    logit_V = P_V.log().requires_grad_()
    estimate_V = kl_estimate(logit_V.log_softmax(0)[None], Q_V.log()[None], estimator)[0]
    return torch.autograd.grad((P_V * estimate_V).sum(), logit_V)[0]


def divergence_gradient(direction: str) -> torch.Tensor:
    logit_V = P_V.log().requires_grad_()
    logp_V = logit_V.log_softmax(0)
    value = (logp_V.exp() * (logp_V - Q_V.log())).sum() if direction == "reverse" else (Q_V * -logp_V).sum()
    return torch.autograd.grad(value, logit_V)[0]


def test_in_the_loss_k1_teaches_nothing_k2_the_reverse_and_k3_the_forward_divergence():
    torch.testing.assert_close(expected_loss_gradient("k1"), torch.zeros(4, dtype=torch.float64), atol=1e-15, rtol=0)
    torch.testing.assert_close(expected_loss_gradient("k2"), divergence_gradient("reverse"))
    torch.testing.assert_close(expected_loss_gradient("k3"), divergence_gradient("forward"))
    # and in numbers
    assert expected_loss_gradient("k2").tolist() == pytest.approx(
        [0.100152, -0.0512902, -0.0465782, -0.00228391], abs=1e-6
    )
    assert expected_loss_gradient("k3").tolist() == pytest.approx([0.1, -0.05, -0.05, 0.0], abs=1e-9)


def test_k1_in_the_reward_has_the_gradient_of_the_reverse_divergence():
    logit_V = P_V.log().requires_grad_()
    logp_V = logit_V.log_softmax(0)
    penalty_V = kl_estimate(logp_V[None], Q_V.log()[None], "k1")[0].detach()
    gradient = torch.autograd.grad((P_V * penalty_V * logp_V).sum(), logit_V)[0]
    torch.testing.assert_close(gradient, divergence_gradient("reverse"))


def test_k1_and_k3_are_unbiased_and_k3_is_never_negative():
    exact = (P_V * (P_V / Q_V).log()).sum()
    for estimator in ("k1", "k3"):
        estimate_V = kl_estimate(P_V.log()[None], Q_V.log()[None], estimator)[0]
        torch.testing.assert_close((P_V * estimate_V).sum(), exact)
    assert (kl_estimate(P_V.log()[None], Q_V.log()[None], "k3") >= 0).all()


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_identical_policies_have_divergence_zero(estimator):
    assert (kl_estimate(LOGP_BT, LOGP_BT, estimator) == 0).all()


def test_the_penalty_in_the_reward_is_summed_over_the_tokens_of_each_completion():
    # R20: beta = .1, R = 1: the three tokens cost .0223144, -.0916291 and .0133531; the padding slot costs nothing
    behaviour_BT = torch.nn.functional.pad(LOGP_BT, (0, 1), value=torch.nan)
    reference_BT = torch.nn.functional.pad(LOGQ_BT, (0, 1), value=5.0)
    mask_BT = torch.tensor([[True, True, True, False]])
    paid = penalised(KL(coefficient=0.1), torch.ones(1, 1), behaviour_BT, reference_BT, mask_BT)
    assert paid.item() == pytest.approx(1 - 0.0223144 + 0.0916291 - 0.0133531, abs=1e-6)
    in_loss = KL(coefficient=0.1, estimator="k2", placement="loss")
    assert penalised(in_loss, torch.ones(1, 1), behaviour_BT, reference_BT, mask_BT).item() == 1


def test_k1_in_the_loss_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match="expected gradient of exactly 0.*put k1 in the reward, or use k2"):
        KL(coefficient=0.1, estimator="k1", placement="loss")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"coefficient": 0.0}, "coefficient must be positive and finite, got 0.0; use kl=None"),
    ],
)
def test_bad_declarations_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        KL(**fields)


def test_beyond_its_bound_k3_never_pushes_away_from_the_reference():
    # log pi = -25, log ref = -.1: the exponent is past its bound, and the other term alone would have gradient +1
    logp_BT = torch.tensor([[-25.0]], dtype=torch.float64, requires_grad=True)
    kl_estimate(logp_BT, torch.tensor([[-0.1]], dtype=torch.float64), "k3").sum().backward()
    assert logp_BT.grad.item() <= 0
