import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from models.policy import Policy
from models.sampling import Decoding, draw, entropy, sample, uniforms
from models.tokenizer import Tokenizer
from models.transformer import Decoder, Transformer, initialise
from testbeds.streams import stream

TOKENIZER = Tokenizer.of(tuple("0123456789+-="))
ARCHITECTURE = Transformer(layers=2, width=32, heads=4, kv_heads=2, context=24, initial_std=0.1)
POLICY = Policy(decoder=initialise(ARCHITECTURE, TOKENIZER.size, torch.Generator().manual_seed(5)), tokenizer=TOKENIZER)
RAGGED = [[1, *TOKENIZER.encode(text)] for text in ("1+2=", "7", "12+34-5=", "9-9=", "7", "3+3+3=", "0=", "12+34-5=")]
LANES = stream("test", "lanes").integers(0, 2**63, len(RAGGED))
DETERMINISTIC = settings(derandomize=True, max_examples=60, deadline=None)


def same(first, second, atol=1e-5):
    """Whether completions agree: tokens exactly, log-probabilities to the rounding of the matrix kernels."""
    width = max(first.token_BT.shape[1], second.token_BT.shape[1])

    def padded(x_BT):
        return torch.nn.functional.pad(x_BT, (0, width - x_BT.shape[1]))

    return (
        torch.equal(padded(first.token_BT), padded(second.token_BT))
        and torch.equal(padded(first.mask_BT), padded(second.mask_BT))
        and torch.equal(first.finished_B, second.finished_B)
        and torch.allclose(padded(first.logp_BT), padded(second.logp_BT), atol=atol, rtol=0)
        and torch.allclose(padded(first.entropy_BT), padded(second.entropy_BT), atol=atol, rtol=0)
    )


def rows_of(completions, rows):
    return replace(
        completions,
        **{name: getattr(completions, name)[rows] for name in completions.__dataclass_fields__},
    )


def sampled(rows=None, **options):
    rows = list(range(len(RAGGED))) if rows is None else rows
    options = {"max_new_tokens": 12, **options}
    return POLICY.sample([RAGGED[row] for row in rows], lanes=LANES[rows], **options)


def test_equal_calls_give_equal_bits():
    assert same(sampled(), sampled(), atol=0.0)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7}, {"top_k": 5, "top_p": 0.9}, {"greedy": True}])
def test_a_row_alone_is_the_row_in_a_ragged_batch(options):
    together = sampled(**options)
    for row in range(len(RAGGED)):
        width = int(together.mask_BT[row].sum())
        alone = sampled([row], **options)
        assert alone.token_BT.shape[1] == width
        assert same(alone, rows_of(together, [row]))


def test_the_order_of_the_rows_does_not_matter():
    order = [5, 2, 7, 0, 3, 1, 6, 4]
    assert same(sampled(order), rows_of(sampled(), order))


def test_dropping_finished_rows_changes_nothing():
    runs = [
        sample(
            POLICY.decoder,
            RAGGED * 4,
            lane_B=torch.as_tensor(stream("test", "compaction").integers(0, 2**63, 4 * len(RAGGED))),
            max_new_tokens=15,
            decoding=Decoding(),
            pad=TOKENIZER.pad,
            eos=TOKENIZER.eos,
            compact=compact,
        )
        for compact in (True, False)
    ]
    lengths = runs[0].mask_BT.sum(1)
    assert len(set(lengths.tolist())) > 5  # rows really end at different steps
    assert same(*runs)


def test_a_longer_limit_only_continues_the_rows_that_were_cut():
    short, long = sampled(max_new_tokens=4), sampled(max_new_tokens=12)
    assert torch.equal(short.token_BT, long.token_BT[:, :4])
    assert torch.equal(short.finished_B, long.finished_B & (long.mask_BT.sum(1) <= 4))


def test_equal_prompts_with_different_lanes_give_different_rollouts():
    completions = POLICY.sample([RAGGED[0]] * 16, lanes=np.arange(16), max_new_tokens=12)
    assert len({tuple(row) for row in completions.rows()}) == 16


def test_lanes_may_be_numpy_or_torch_and_negative():
    numpy_lanes = np.array([-5, 2**63 - 1], dtype=np.int64)
    first = POLICY.sample(RAGGED[:2], lanes=numpy_lanes, max_new_tokens=5)
    second = POLICY.sample(RAGGED[:2], lanes=torch.as_tensor(numpy_lanes), max_new_tokens=5)
    assert same(first, second, atol=0.0)


def test_the_mask_covers_every_sampled_token_and_eos_is_one_of_them():
    completions = POLICY.sample(RAGGED * 8, lanes=np.arange(8 * len(RAGGED)), max_new_tokens=12)
    assert completions.finished_B.any()
    assert not completions.finished_B.all()
    for row, finished, token_T in zip(
        completions.rows(), completions.finished_B.tolist(), completions.token_BT.tolist(), strict=True
    ):
        assert row.count(TOKENIZER.eos) == int(finished)
        assert not finished or row[-1] == TOKENIZER.eos
        assert finished or len(row) == 12  # a row that did not end was cut off
        assert token_T == row + [TOKENIZER.pad] * (len(token_T) - len(row))
    assert torch.equal(completions.logp_BT == 0, ~completions.mask_BT)


def test_the_context_cuts_a_completion_off():
    prompts = [[1, *[3] * 19], [1, 3]]  # context 24: room for 4 tokens, and for 22
    completions = POLICY.sample(prompts, lanes=np.array([0, 5]), max_new_tokens=100)
    lengths = completions.mask_BT.sum(1).tolist()
    for length, finished, room in zip(lengths, completions.finished_B.tolist(), (4, 22), strict=True):
        assert length <= room
        assert finished or length == room
    full = POLICY.sample([[1, *[3] * 22]], lanes=np.array([1]), max_new_tokens=100)
    assert full.token_BT.shape == (1, 1)  # the last slot of the context still gets a token


def test_sampling_touches_no_global_generator():
    before = torch.get_rng_state()
    sampled()
    assert torch.equal(torch.get_rng_state(), before)


def test_sampling_runs_in_bfloat16_autocast_and_returns_float32():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        completions = sampled()
    assert completions.logp_BT.dtype == torch.float32
    # bfloat16 moves log-probabilities by hundredths, so a few rows may part ways; not most of them.
    exact = sampled()
    assert (completions.token_BT[:, 0] == exact.token_BT[:, 0]).sum() >= 6


def test_greedy_needs_no_lanes_and_takes_the_likeliest_token():
    completions = POLICY.sample(RAGGED, max_new_tokens=12, greedy=True)
    for prompt, row in zip(RAGGED, completions.rows(), strict=True):
        with torch.no_grad():
            logits_TV = POLICY.decoder(torch.tensor([[*prompt, *row]]))[0]
        assert logits_TV[len(prompt) - 1 : -1].argmax(-1).tolist() == row


def test_low_temperatures_approach_greedy():
    greedy = POLICY.sample(RAGGED, max_new_tokens=12, greedy=True)
    assert torch.equal(sampled(temperature=1e-4).token_BT, greedy.token_BT)
    assert torch.equal(sampled(top_k=1).token_BT, greedy.token_BT)


def test_greedy_takes_the_lowest_id_among_equals():
    flat = Policy(decoder=initialise(ARCHITECTURE, TOKENIZER.size, torch.Generator()), tokenizer=TOKENIZER)
    with torch.no_grad():
        flat.decoder.lm_head.weight.zero_()  # tied: every logit is 0
    assert flat.sample([[1]], max_new_tokens=3, greedy=True).token_BT.tolist() == [[0, 0, 0]]


def test_tokens_are_drawn_at_their_probabilities():
    # One prompt, 20 000 lanes: the first token's counts against the exact distribution, chi-square. The key is fixed;
    # a wrong sampler of this size gives p < 1e-6.
    count = 20_000
    lanes = stream("test", "chi-square").integers(0, 2**63, count)
    for options in ({}, {"temperature": 0.5}, {"top_k": 6, "top_p": 0.8}):
        completions = POLICY.sample([RAGGED[0]] * count, lanes=lanes, max_new_tokens=1, **options)
        with torch.no_grad():
            logits_V = POLICY.decoder(torch.tensor([RAGGED[0]]))[0, -1]
        expected_V = Decoding(**options).logp(logits_V).exp().numpy() * count
        counts_V = np.bincount(completions.token_BT[:, 0], minlength=TOKENIZER.size)
        assert (counts_V[expected_V == 0] == 0).all()
        kept_V = expected_V > 0
        assert stats.chisquare(counts_V[kept_V], expected_V[kept_V]).pvalue > 0.001, options


def test_uniform_numbers_are_uniform_over_lanes_and_over_positions_and_independent():
    # Kolmogorov-Smirnov and correlations on 2^14 numbers; consecutive lanes are the hardest case for a hash.
    count = 2**14
    lane_B = torch.arange(count)
    first_B, second_B = uniforms(lane_B, 0), uniforms(lane_B, 1)
    over_positions = torch.stack([uniforms(torch.tensor([7]), position)[0] for position in range(2000)])
    for numbers in (first_B, second_B, over_positions):
        assert stats.kstest(numbers.numpy(), "uniform").pvalue > 0.001
    # The correlation of independent numbers has standard error 1/128; 4 of them.
    for left_B, right_B in ((first_B, second_B), (first_B[:-1], first_B[1:]), (first_B[1:], second_B[:-1])):
        assert abs(np.corrcoef(left_B, right_B)[0, 1]) < 4 / math.sqrt(count)
    assert len(set(first_B.tolist()) | set(second_B.tolist())) == 2 * count


def test_uniform_numbers_are_those_of_splitmix64():
    # The reference algorithm in Python's unbounded integers (Steele, Lea & Flood 2014).
    word = (1 << 64) - 1

    def mix(x):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & word
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & word
        return x ^ (x >> 31)

    golden = 0x9E3779B97F4A7C15
    # The published first output of SplitMix64 at seed 0: this is the reference, not a look-alike.
    assert mix(golden) == 0xE220A8397B1DCDAF
    for lane in (0, 1, 2**63 - 1, -1):
        for position in (0, 1, 500):
            state = (mix((lane + golden) & word) + (position + 1) * golden) & word
            expected = (mix(state) >> 11) * 2.0**-53
            assert uniforms(torch.tensor([lane]), position).item() == expected


def test_the_draw_inverts_the_cumulative_sum():
    # Probabilities 1/4, 0, 1/2, 1/4: stretches [0, 1/4), none, [1/4, 3/4), [3/4, 1).
    logp_V = torch.tensor([0.25, 0.0, 0.5, 0.25], dtype=torch.float64).log()
    below_one = math.nextafter(1.0, 0.0)
    uniform_N = torch.tensor([0.0, 0.2499, 0.25, 0.7499, 0.75, below_one], dtype=torch.float64)
    assert draw(logp_V.expand(6, 4), uniform_N).tolist() == [0, 0, 2, 2, 3, 3]


@DETERMINISTIC
@given(st.lists(st.sampled_from([0.0, 1e-300, 1e-17, 0.1, 0.3, 1.0]), min_size=1, max_size=9).filter(any), st.data())
def test_a_token_of_probability_zero_is_never_drawn(weights, data):
    weight_V = torch.tensor(weights, dtype=torch.float64)
    logp_V = weight_V.log().log_softmax(-1)
    uniform = data.draw(st.sampled_from([0.0, 2.0**-53, 0.5, math.nextafter(1.0, 0.0)]))
    token = draw(logp_V[None], torch.tensor([uniform], dtype=torch.float64)).item()
    assert weights[token] > 0


def kept(decoding, logits):
    return decoding.logp(torch.tensor(logits)).isfinite().nonzero()[:, 0].tolist()


def test_top_k_keeps_exactly_k_and_the_lowest_ids_among_equals():
    assert kept(Decoding(top_k=2), [1.0, 1.0, 1.0, 0.0]) == [0, 1]
    assert kept(Decoding(top_k=2), [0.0, 1.0, 5.0, 1.0]) == [1, 2]
    assert kept(Decoding(top_k=9), [0.0, 1.0]) == [0, 1]


def test_top_p_keeps_the_smallest_set_that_reaches_p():
    logits = np.log([0.5, 0.25, 0.125, 0.125]).tolist()
    assert kept(Decoding(top_p=0.4), logits) == [0]
    assert kept(Decoding(top_p=0.6), logits) == [0, 1]
    assert kept(Decoding(top_p=0.8), logits) == [0, 1, 2]  # of two equal tokens the lower id
    assert kept(Decoding(top_p=1.0), logits) == [0, 1, 2, 3]
    assert kept(Decoding(top_p=1e-9), logits) == [0]


def test_top_p_counts_within_what_top_k_left():
    # Of 0.4, 0.4, 0.2 top-k leaves 1/2 and 1/2; the first reaches 0.5 within them, and only 0.4 without.
    logits = np.log([0.4, 0.4, 0.2]).tolist()
    assert kept(Decoding(top_k=2, top_p=0.45), logits) == [0]
    assert kept(Decoding(top_p=0.45), logits) == [0, 1]


def test_top_p_is_taken_at_the_sampling_temperature():
    # Probabilities 0.6 and 0.4 at temperature 1; at 0.5 they are 0.36 and 0.16, so 9/13 = 0.69 and 0.31.
    logits = np.log([0.6, 0.4]).tolist()
    assert kept(Decoding(top_p=0.65), logits) == [0, 1]
    assert kept(Decoding(top_p=0.65, temperature=0.5), logits) == [0]


def test_kept_tokens_are_renormalised():
    logp_V = Decoding(top_k=2).logp(torch.tensor([0.5, 0.25, 0.25]).log())
    assert logp_V.exp().tolist() == pytest.approx([2 / 3, 1 / 3, 0])


def test_entropy_is_that_of_the_kept_distribution():
    # Two equal tokens: log 2 nats. Four: log 4.
    logits_V = torch.zeros(4)
    assert entropy(Decoding(top_k=2).logp(logits_V)).item() == pytest.approx(math.log(2))
    assert entropy(Decoding().logp(logits_V)).item() == pytest.approx(math.log(4))


def test_a_decoder_without_weights_cannot_be_sampled():
    unset = Policy(decoder=Decoder(ARCHITECTURE, vocabulary=TOKENIZER.size), tokenizer=TOKENIZER)
    with pytest.raises(FloatingPointError, match="weights are not set"):
        unset.sample([[1]], lanes=np.array([1]), max_new_tokens=2)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"temperature": 0.0}, "temperature must be positive and finite, got 0.0; for temperature 0 use greedy=True"),
        ({"temperature": -1.0}, "temperature must be positive"),
        ({"temperature": float("nan")}, "temperature must be positive"),
        ({"top_k": 0}, "top_k must be at least 1, got 0"),
        ({"top_p": 0.0}, r"top_p must be in \(0, 1\], got 0.0"),
        ({"top_p": 1.1}, r"top_p must be in \(0, 1\], got 1.1"),
        ({"greedy": True, "top_p": 0.5}, "top_k and top_p must be None"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1, got 0"),
    ],
)
def test_an_impossible_option_is_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        sampled(**options)


@pytest.mark.parametrize(
    ("prompts", "lanes", "complaint"),
    [
        ([], [], "at least one prompt"),
        ([[1], []], [1, 2], "prompt 1 is empty"),
        ([[1] * 24], [1], "prompt 0 has 24 tokens, which leaves no room in the context of 24; at most 23 fit"),
        ([[1], [1]], [1], r"2 prompts need 2 lanes, got shape \(1,\)"),
        ([[1]], None, "sampling needs lanes"),
    ],
)
def test_impossible_prompts_and_lanes_are_refused(prompts, lanes, complaint):
    lanes = None if lanes is None else np.array(lanes, dtype=np.int64)
    with pytest.raises(ValueError, match=complaint):
        POLICY.sample(prompts, lanes=lanes, max_new_tokens=3)


def test_a_top_p_of_one_keeps_every_token():
    # 5,000 tokens: rounding of the running sum reaches 1 before the tail is through
    logits = torch.randn(20, 5000, generator=torch.Generator().manual_seed(0)) * 5
    assert Decoding(top_p=1.0).logp(logits).isfinite().all()
