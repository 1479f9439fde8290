"""Advantages: worked numbers, identities, degenerate groups, and exact expectations by enumeration."""

import itertools

import pytest
import torch

from training.advantages import ADVANTAGES, BatchCentred, GroupCentred, GroupNormalised, LeaveOneOut, RewardItself

REWARD_PG = torch.tensor([[1.0, 0.0, 0.0, 0.0]])  # fixture G


@pytest.mark.parametrize(
    ("advantage", "expected"),
    [
        (RewardItself(), [1, 0, 0, 0]),
        (GroupCentred(), [0.75, -0.25, -0.25, -0.25]),  # R1, R6
        (LeaveOneOut(), [1, -1 / 3, -1 / 3, -1 / 3]),  # R2
        (GroupNormalised(), [1.5, -0.5, -0.5, -0.5]),  # R5: deviation 0.5 with n-1
        (GroupNormalised(deviation="population"), [3**0.5, -(3**-0.5), -(3**-0.5), -(3**-0.5)]),  # R5: sqrt(3)/4
    ],
)
def test_worked_numbers(advantage, expected):
    # epsilon moves the normalised ones by 3e-6
    torch.testing.assert_close(advantage(REWARD_PG)[0], torch.tensor(expected, dtype=torch.float32), atol=5e-6, rtol=0)


def test_leave_one_out_is_the_centred_reward_times_g_over_g_minus_1():
    reward_PG = torch.rand(5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(LeaveOneOut()(reward_PG), GroupCentred()(reward_PG) * 6 / 5)


def test_leave_one_out_subtracts_the_mean_of_the_others():
    reward_PG = torch.tensor([[3.0, 1.0, 8.0]])
    # others' means: (1+8)/2, (3+8)/2, (3+1)/2
    assert LeaveOneOut()(reward_PG)[0].tolist() == pytest.approx([3 - 4.5, 1 - 5.5, 8 - 2])


def test_normalising_divides_the_centred_reward_by_the_group_deviation():
    reward_PG = torch.rand(5, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = GroupCentred()(reward_PG) / (reward_PG.std(1, keepdim=True) + 1e-6)
    torch.testing.assert_close(GroupNormalised()(reward_PG), expected)


def test_a_binary_pair_gets_the_frameworks_known_values():
    # frameworks differ: G=2 binary is +-0.7071 with the sample deviation and +-1 with the population's
    pair = torch.tensor([[1.0, 0.0]])
    assert GroupNormalised(epsilon=1e-9)(pair)[0].tolist() == pytest.approx([0.5**0.5, -(0.5**0.5)])
    assert GroupNormalised(deviation="population", epsilon=1e-9)(pair)[0].tolist() == pytest.approx([1, -1])


@pytest.mark.parametrize("advantage", [GroupCentred(), LeaveOneOut(), GroupNormalised(epsilon=1e-9)])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1 / 3])
def test_a_uniform_group_has_no_credit(advantage, value):
    credit = advantage(torch.full((2, 7), value))
    assert credit.isfinite().all()
    assert credit.abs().max() < 1e-6
    if isinstance(advantage, GroupNormalised):  # rounding of the mean must not be blown up by 1/epsilon
        assert (credit == 0).all()


@pytest.mark.parametrize("advantage", [GroupCentred(), LeaveOneOut(), GroupNormalised()])
def test_a_singleton_group_is_refused_with_the_remedy(advantage):
    with pytest.raises(ValueError, match="at least 2 rollouts, got G=1; raise RL.group"):
        advantage(torch.ones(3, 1))


def test_batch_centring_uses_the_whole_batch():
    assert BatchCentred()(torch.tensor([[1.0], [0.0], [0.0], [1.0]])).flatten().tolist() == [0.5, -0.5, -0.5, 0.5]


@pytest.mark.parametrize("advantage", [cls() for cls in ADVANTAGES], ids=lambda advantage: type(advantage).__name__)
def test_advantages_follow_a_permutation_of_groups_and_members(advantage):
    reward_PG = torch.rand(3, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    rows, columns = torch.tensor([2, 0, 1]), torch.tensor([3, 1, 0, 2])
    torch.testing.assert_close(advantage(reward_PG)[rows][:, columns], advantage(reward_PG[rows][:, columns]))


@pytest.mark.parametrize(
    ("advantage", "scale"),
    [(RewardItself(), 1.0), (LeaveOneOut(), 1.0), (GroupCentred(), 2 / 3)],  # (G-1)/G with G = 3
)
def test_expected_gradient_is_the_exact_one_by_enumeration(advantage, scale):
    # A softmax over 3 answers with rewards r; all 3^3 groups of 3 rollouts, weighted by their probability.
    logit_V = torch.tensor([0.3, -0.4, 0.1], dtype=torch.float64, requires_grad=True)
    reward_V = torch.tensor([1.0, 0.0, 0.25], dtype=torch.float64)
    exact = torch.autograd.grad((logit_V.softmax(0) * reward_V).sum(), logit_V)[0]
    expected = torch.zeros_like(exact)
    for group in itertools.product(range(3), repeat=3):
        chosen_G = torch.tensor(group)
        logp_G = logit_V.log_softmax(0)[chosen_G]
        credit_G = advantage(reward_V[chosen_G][None])[0]
        gradient = torch.autograd.grad((credit_G * logp_G).mean(), logit_V)[0]
        expected += logp_G.detach().sum().exp() * gradient
    torch.testing.assert_close(expected, exact * scale)
