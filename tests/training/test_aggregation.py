"""Aggregation: closed forms, and independence of how a batch is cut, padded or ordered."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training.aggregation import (
    AGGREGATIONS,
    ConstantLength,
    Counts,
    SequenceMeanTokenMean,
    SequenceMeanTokenSum,
    TokenMean,
    aggregate,
)

RULES = [rule(length=5) if rule is ConstantLength else rule() for rule in AGGREGATIONS]


def mask_of(lengths: list[int]) -> torch.Tensor:
    return torch.arange(max(*lengths, 1))[None] < torch.tensor(lengths)[:, None]


# Two sequences with token losses (2) and (1, 1, 1): N = 4, B = 2.
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (TokenMean(), (2 + 1 + 1 + 1) / 4),
        (SequenceMeanTokenMean(), (2 / 1 + 3 / 3) / 2),
        (SequenceMeanTokenSum(), (2 + 3) / 2),
        (ConstantLength(length=10), (2 + 3) / (2 * 10)),
    ],
)
def test_each_rule_has_its_closed_form_on_unequal_lengths(rule, expected):
    mask_BT = mask_of([1, 3])
    loss_BT = torch.tensor([[2.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert aggregate(loss_BT, rule.weights(mask_BT, Counts.of(mask_BT))).item() == pytest.approx(expected)


def test_token_mean_is_not_the_mean_of_micro_batch_means():
    # micro-batches of 1 token at NLL 2.0 and 3 tokens at 1.0: right 1.25, mean of means 1.5.
    mask_BT = mask_of([1, 3])
    weight_BT = TokenMean().weights(mask_BT, Counts.of(mask_BT))
    loss_BT = torch.tensor([[2.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    parts = [aggregate(loss_BT[row : row + 1], weight_BT[row : row + 1]) for row in (0, 1)]
    assert sum(part.item() for part in parts) == pytest.approx(1.25)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@given(lengths=st.lists(st.integers(0, 5), min_size=2, max_size=9), cut=st.integers(1, 8), seed=st.integers(0, 99))
def test_any_cut_into_micro_batches_or_ranks_gives_the_same_sum(rule, lengths, cut, seed):
    mask_BT = mask_of(lengths)
    loss_BT = torch.rand(mask_BT.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    counts = Counts.of(mask_BT)
    whole = aggregate(loss_BT, rule.weights(mask_BT, counts).double())
    cut = min(cut, len(lengths) - 1)
    ranks = (slice(0, cut), slice(cut, None))  # each rank weights its own rows with the counts of all ranks
    assert Counts.of(mask_BT[ranks[0]]) + Counts.of(mask_BT[ranks[1]]) == counts
    parts = [aggregate(loss_BT[rank], rule.weights(mask_BT[rank], counts).double()) for rank in ranks]
    assert (parts[0] + parts[1]).item() == pytest.approx(whole.item(), abs=1e-6)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_padding_may_hold_anything_and_gets_no_gradient(rule):
    mask_BT = mask_of([1, 3, 0])
    loss_BT = torch.full(mask_BT.shape, torch.nan)
    loss_BT[mask_BT] = torch.tensor([0.5, 1.0, 2.0, 3.0])
    loss_BT.requires_grad_()
    total = aggregate(loss_BT, rule.weights(mask_BT, Counts.of(mask_BT)))
    total.backward()
    assert total.isfinite()
    assert (loss_BT.grad[~mask_BT] == 0).all()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_masking_a_row_equals_removing_it(rule):
    mask_BT, loss_BT = mask_of([2, 3]), torch.tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]])
    masked = torch.cat((mask_BT, torch.zeros(1, 3, dtype=torch.bool)))
    padded = torch.cat((loss_BT, torch.ones(1, 3)))
    without = aggregate(loss_BT, rule.weights(mask_BT, Counts.of(mask_BT)))
    assert aggregate(padded, rule.weights(masked, Counts.of(masked))).item() == pytest.approx(without.item())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_an_empty_batch_weighs_nothing(rule):
    mask_BT = torch.zeros(2, 3, dtype=torch.bool)
    assert rule.weights(mask_BT, Counts.of(mask_BT)).sum() == 0


def test_the_constant_length_is_declared_and_not_the_padded_width():
    narrow, wide = mask_of([2, 1]), torch.nn.functional.pad(mask_of([2, 1]), (0, 4))
    rule = ConstantLength(length=8)
    assert rule.weights(narrow, Counts.of(narrow)).sum() == rule.weights(wide, Counts.of(wide)).sum() == 3 / 16
    with pytest.raises(ValueError, match="at least 1, got 0"):
        ConstantLength(length=0)
