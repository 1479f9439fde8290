import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.policy import Policy
from models.sampling import Decoding
from models.scoring import completion_logits, completion_logp, pack, token_logits
from models.tokenizer import Tokenizer
from models.transformer import Transformer, initialise

TOKENIZER = Tokenizer.of(tuple("0123456789+-="))
ARCHITECTURE = Transformer(layers=2, width=32, heads=4, kv_heads=2, context=24, initial_std=0.1)
POLICY = Policy(decoder=initialise(ARCHITECTURE, TOKENIZER.size, torch.Generator().manual_seed(5)), tokenizer=TOKENIZER)
PROMPTS = [[1, 4, 13, 5], [1, 10], [1, 4, 5, 13, 6, 7]]
COMPLETIONS = [[6, 2], [7, 8, 9, 2], [3]]


def test_packed_rows_are_prompt_completion_padding():
    rows = pack([[1, 5], [1]], [[6, 2], [7]], 0)
    assert rows.token_BT.tolist() == [[1, 5, 6, 2], [1, 7, 0, 0]]
    assert rows.prompt_length_B.tolist() == [2, 1]
    assert rows.length_B.tolist() == [4, 2]
    # Position t predicts token t + 1. Row 0: its completion 6, 2 is predicted at 1 and 2. Row 1: 7 is predicted at 0.
    assert rows.target_BT[0, :3].tolist() == [5, 6, 2]
    assert rows.target_mask_BT.tolist() == [[False, True, True, False], [True, False, False, False]]
    assert rows.row_mask_BT.tolist() == [[True, True, True, False], [True, False, False, False]]
    assert rows.completion_mask_BC.tolist() == [[True, True], [True, False]]
    assert rows.completion_BC[rows.completion_mask_BC].tolist() == [6, 2, 7]


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.lists(st.integers(3, 9), min_size=1, max_size=5), st.lists(st.integers(3, 9), max_size=5)))
)
def test_masked_targets_are_exactly_the_completion_tokens(pairs):
    if not pairs:
        return
    prompts, completions = [prompt for prompt, _ in pairs], [completion for _, completion in pairs]
    rows = pack(prompts, completions, 0)
    assert rows.target_mask_BT.sum().item() == sum(map(len, completions))
    for row, completion in enumerate(completions):
        assert rows.target_BT[row][rows.target_mask_BT[row]].tolist() == completion
        assert rows.completion_BC[row][rows.completion_mask_BC[row]].tolist() == completion
        assert int(rows.row_mask_BT[row].sum()) == len(prompts[row]) + len(completion) - 1


def test_scores_are_the_softmax_of_the_logits_at_the_position_before_each_token():
    scores = POLICY.score(PROMPTS, COMPLETIONS, temperature=0.7)
    for row, (prompt, completion) in enumerate(zip(PROMPTS, COMPLETIONS, strict=True)):
        with torch.no_grad():
            logits_TV = POLICY.decoder(torch.tensor([prompt + completion]))[0].double() / 0.7
        probability_TV = logits_TV.softmax(-1)
        for index, token in enumerate(completion):
            at_V = probability_TV[len(prompt) - 1 + index]
            assert scores.logp_BC[row, index].item() == pytest.approx(math.log(at_V[token]), abs=1e-5)
            assert scores.entropy_BC[row, index].item() == pytest.approx(-(at_V * at_V.log()).sum().item(), abs=1e-5)
    assert scores.mask_BC.tolist() == [[i < len(completion) for i in range(4)] for completion in COMPLETIONS]
    assert torch.equal(scores.logp_BC == 0, ~scores.mask_BC)
    assert scores.total_logp_B.tolist() == pytest.approx([row.sum().item() for row in scores.logp_BC])


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.7}, {"temperature": 0.5, "top_k": 6}, {"temperature": 0.7, "top_p": 0.8}]
)
def test_sampled_log_probabilities_are_the_scored_ones(options):
    prompts = PROMPTS * 8
    completions = POLICY.sample(prompts, lanes=np.arange(24), max_new_tokens=12, **options)
    scores = POLICY.score(prompts, completions.rows(), **options)
    assert torch.equal(scores.mask_BC, completions.mask_BT)
    torch.testing.assert_close(scores.logp_BC, completions.logp_BT, atol=1e-5, rtol=0)
    torch.testing.assert_close(scores.entropy_BC, completions.entropy_BT, atol=1e-5, rtol=0)


def test_scores_at_another_temperature_differ_from_the_sampled_ones():
    completions = POLICY.sample(PROMPTS, lanes=np.arange(3), max_new_tokens=12, temperature=0.5)
    scores = POLICY.score(PROMPTS, completions.rows())
    assert (scores.logp_BC - completions.logp_BT).abs().max() > 0.1


def test_a_token_that_top_k_leaves_out_has_probability_zero():
    with torch.no_grad():
        likeliest = POLICY.decoder(torch.tensor([PROMPTS[0]]))[0, -1].argmax().item()
    other = 3 if likeliest != 3 else 4
    scores = POLICY.score([PROMPTS[0]] * 2, [[likeliest], [other]], top_k=1)
    assert scores.logp_BC.tolist() == [[0.0], [-math.inf]]


def test_a_row_alone_has_the_scores_of_the_row_in_a_batch():
    together = POLICY.score(PROMPTS, COMPLETIONS)
    for row, (prompt, completion) in enumerate(zip(PROMPTS, COMPLETIONS, strict=True)):
        alone = POLICY.score([prompt], [completion])
        torch.testing.assert_close(alone.logp_BC[0], together.logp_BC[row, : len(completion)], atol=1e-5, rtol=0)


def test_scoring_in_several_passes_changes_nothing():
    many = 700  # 2 100 rows, three passes
    scores = POLICY.score(PROMPTS * many, COMPLETIONS * many)
    once = POLICY.score(PROMPTS, COMPLETIONS)
    torch.testing.assert_close(scores.logp_BC, once.logp_BC.repeat(many, 1), atol=1e-5, rtol=0)


@pytest.mark.parametrize("garbage", [0, 2, 15, -100, 10**9])
def test_whatever_stands_in_padding_changes_neither_scores_nor_gradients(garbage):
    # Even numbers that are no token ids; equal bits, not only equal to rounding.
    results = []
    for pad in (0, garbage):
        decoder = initialise(ARCHITECTURE, TOKENIZER.size, torch.Generator().manual_seed(5))
        scores = completion_logp(decoder, pack(PROMPTS, COMPLETIONS, pad))
        (scores.logp_BC.sum() + scores.entropy_BC.sum()).backward()
        results.append((scores.logp_BC.detach(), *(weight.grad for weight in decoder.parameters())))
    assert all(torch.equal(clean, fuzzed) for clean, fuzzed in zip(*results, strict=True))


@pytest.mark.parametrize("garbage", [2, -100])
def test_token_logits_ignore_padding(garbage):
    clean, fuzzed = pack(PROMPTS, COMPLETIONS, 0), pack(PROMPTS, COMPLETIONS, garbage)
    with torch.no_grad():
        clean_BTV = token_logits(POLICY.decoder, clean.token_BT, clean.length_B)
        fuzzed_BTV = token_logits(POLICY.decoder, fuzzed.token_BT, fuzzed.length_B)
    assert torch.equal(clean_BTV, fuzzed_BTV)


def test_completion_logits_are_the_rows_of_token_logits_that_predict_the_completion():
    rows = pack(PROMPTS, COMPLETIONS, 0)
    with torch.no_grad():
        logits_BTV = token_logits(POLICY.decoder, rows.token_BT, rows.length_B)
        logits_BCV = completion_logits(POLICY.decoder, rows)
    torch.testing.assert_close(logits_BCV[rows.completion_mask_BC], logits_BTV[rows.target_mask_BT], atol=1e-6, rtol=0)


def test_gradients_reach_only_the_predictors_of_completion_tokens():
    rows = pack([[1, 4, 5]], [[6, 2]], 0)
    features = []

    def keep(_module, _arguments, output):
        output.retain_grad()
        features.append(output)

    hook = POLICY.decoder.model.norm.register_forward_hook(keep)
    completion_logp(POLICY.decoder, rows).logp_BC.sum().backward()
    hook.remove()
    POLICY.decoder.zero_grad()
    # 6 is predicted at position 2, <eos> at position 3; position 4 predicts nothing that was sampled.
    assert features[0].grad[0].abs().sum(-1).bool().tolist() == [False, False, True, True, False]


def test_gradients_under_top_k_are_finite():
    decoder = initialise(ARCHITECTURE, TOKENIZER.size, torch.Generator().manual_seed(5))
    rows = pack(PROMPTS, COMPLETIONS, 0)
    scores = completion_logp(decoder, rows, Decoding(top_k=3))
    scores.entropy_BC.sum().backward()
    assert all(weight.grad.isfinite().all() for weight in decoder.parameters())


def test_the_log_probability_of_all_completions_of_a_length_sums_to_one():
    # Every pair of tokens after a prompt: 16 * 16 rows, total probability 1.
    pairs = [[first, second] for first in range(TOKENIZER.size) for second in range(TOKENIZER.size)]
    scores = POLICY.score([[1, 5]] * len(pairs), pairs)
    assert scores.total_logp_B.double().exp().sum().item() == pytest.approx(1.0, abs=1e-5)


def test_a_score_has_no_gradient_and_a_completion_may_be_empty():
    scores = POLICY.score([[1, 4], [1]], [[], [5]])
    assert not scores.logp_BC.requires_grad
    assert scores.mask_BC.tolist() == [[False], [True]]
    assert scores.logp_BC[0, 0] == 0
    assert POLICY.score([[1]], [[]]).logp_BC.shape == (1, 0)


def test_scoring_needs_as_many_completions_as_prompts():
    with pytest.raises(ValueError, match="got 1 and 2"):
        pack([[1], [1]], [[2]], 0)
    with pytest.raises(ValueError, match="prompt 1 is empty"):
        pack([[1], []], [[2], [2]], 0)
    with pytest.raises(ValueError, match="25 tokens are longer than the context of 24"):
        POLICY.score([[1] * 24], [[2]])
