import math

import pytest
import torch
from torch import nn

from models.transformer import SIZES, Decoder, Transformer, initialise
from testbeds.identity import fingerprint

SMALL = Transformer(layers=2, width=32, heads=4, kv_heads=2, context=24, initial_std=0.1)
VOCABULARY = 11


def generator(seed):
    return torch.Generator().manual_seed(seed)


def tokens(rows, time, seed=0):
    return torch.randint(0, VOCABULARY, (rows, time), generator=generator(seed))


def test_a_position_ignores_everything_to_its_right():
    decoder = initialise(SMALL, VOCABULARY, generator(0))
    token_BT = tokens(3, 12)
    changed_BT = token_BT.clone()
    changed_BT[:, 7:] = (changed_BT[:, 7:] + 1) % VOCABULARY
    with torch.no_grad():
        logits_BTV, changed_BTV = decoder(token_BT), decoder(changed_BT)
    assert torch.equal(logits_BTV[:, :7], changed_BTV[:, :7])
    assert not torch.equal(logits_BTV[:, 7:], changed_BTV[:, 7:])


def test_attention_depends_on_distances_only():
    # Rotary embeddings turn queries and keys by their positions, so scores see differences of positions.
    decoder = initialise(SMALL, VOCABULARY, generator(0))
    token_BT = tokens(2, 8)
    with torch.no_grad():
        here_BTV = decoder(token_BT)
        shifted_BTV = decoder(token_BT, torch.arange(8).expand(2, 8) + 13)
        stretched_BTV = decoder(token_BT, torch.arange(8).expand(2, 8) * 2)
    torch.testing.assert_close(here_BTV, shifted_BTV, atol=1e-5, rtol=0)
    assert (here_BTV - stretched_BTV).abs().max() > 1e-3


def test_a_cache_gives_the_logits_of_the_full_forward_pass_at_every_position():
    decoder = initialise(SMALL, VOCABULARY, generator(0))
    token_BT = tokens(3, 12)
    with torch.no_grad():
        full_BTV = decoder(token_BT)
        cache = decoder.empty_cache(rows=3, slots=12)
        pieces = [decoder(token_BT[:, :4], None, cache)]
        pieces += [decoder(token_BT[:, t : t + 1], torch.full((3, 1), t), cache) for t in range(4, 8)]
        pieces.append(decoder(token_BT[:, 8:], torch.arange(8, 12).expand(3, 4), cache))  # several tokens at once
    torch.testing.assert_close(torch.cat(pieces, dim=1), full_BTV, atol=1e-5, rtol=0)


def test_a_cache_of_ragged_rows_reads_nothing_beyond_each_row():
    decoder = initialise(SMALL, VOCABULARY, generator(0))
    token_BT = tokens(2, 9)
    short, long = 3, 8
    with torch.no_grad():
        cache = decoder.empty_cache(rows=2, slots=9)
        decoder(token_BT[:, :long], None, cache)  # row 0 is prefilled with 5 slots of padding
        next_B1 = torch.stack((token_BT[0, short], token_BT[1, long]))[:, None]
        logits_BV = decoder(next_B1, torch.tensor([[short], [long]]), cache)[:, 0]
        full_BTV = decoder(token_BT)
    torch.testing.assert_close(logits_BV, full_BTV[[0, 1], [short, long]], atol=1e-5, rtol=0)


def test_a_cache_that_was_used_before_gives_the_same_bits():
    decoder = initialise(SMALL, VOCABULARY, generator(0))
    token_BT, other_BT = tokens(2, 6), tokens(2, 10, seed=1)
    position_B1 = torch.full((2, 1), 6)
    with torch.no_grad():
        used, fresh = decoder.empty_cache(2, 10), decoder.empty_cache(2, 10)
        decoder(other_BT, None, used)
        results = []
        for cache in (used, fresh):
            decoder(token_BT, None, cache)
            results.append(decoder(other_BT[:, :1], position_B1, cache))
    assert torch.equal(*results)


def test_equal_generators_give_equal_weights_and_no_global_generator_is_touched():
    before = torch.get_rng_state()
    first, second, other = (initialise(SMALL, VOCABULARY, generator(seed)).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["lm_head.weight"], other["lm_head.weight"])
    assert torch.equal(torch.get_rng_state(), before)


def test_every_matrix_is_drawn_at_the_declared_spread_and_every_norm_is_one():
    architecture = Transformer(layers=2, width=128, heads=4, context=8, tied=False, initial_std=0.05)
    for name, weight in initialise(architecture, 200, generator(0)).named_parameters():
        if weight.ndim == 1:
            assert torch.equal(weight, torch.ones_like(weight)), name
        else:
            # n >= 128 * 128 draws: the mean has standard error s/sqrt(n), the spread s/sqrt(2n); 5 of them.
            n = weight.numel()
            assert abs(weight.mean()) < 5 * 0.05 / math.sqrt(n), name
            assert abs(weight.std() - 0.05) < 5 * 0.05 / math.sqrt(2 * n), name


def test_weights_are_nan_until_they_are_set():
    decoder = Decoder(SMALL, vocabulary=VOCABULARY)
    assert decoder(tokens(1, 3)).isnan().all()
    assert not any(weight.isnan().any() for weight in initialise(SMALL, VOCABULARY, generator(0)).parameters())


def test_a_tied_output_layer_is_the_embedding_itself_also_after_a_load_and_a_step():
    decoder = initialise(SMALL, VOCABULARY, generator(0))
    decoder.load_state_dict(initialise(SMALL, VOCABULARY, generator(1)).state_dict())
    optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
    decoder(tokens(2, 5)).logsumexp(-1).sum().backward()
    optimizer.step()
    assert decoder.lm_head.weight.data_ptr() == decoder.model.embed_tokens.weight.data_ptr()
    assert len(list(decoder.parameters())) == 1 + 2 * 9 + 1  # embedding; 7 matrices and 2 norms a block; the last norm


def test_an_untied_output_layer_has_weights_of_its_own():
    untied = Transformer(layers=1, width=32, heads=4, context=8, tied=False)
    decoder = initialise(untied, VOCABULARY, generator(0))
    assert not torch.equal(decoder.lm_head.weight, decoder.model.embed_tokens.weight)


def test_nothing_is_random_in_training_mode():
    decoder = initialise(SMALL, VOCABULARY, generator(0)).train()
    token_BT = tokens(2, 6)
    assert torch.equal(decoder(token_BT), decoder(token_BT))
    assert not [module for module in decoder.modules() if isinstance(module, nn.Dropout)]


def test_bfloat16_autocast_stays_close_to_float32():
    decoder = initialise(SMALL, VOCABULARY, generator(0))
    token_BT = tokens(2, 6)
    with torch.no_grad():
        exact_BTV = decoder(token_BT)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded_BTV = decoder(token_BT).float()
    # bfloat16 keeps 8 bits: a relative 2^-8 at each of a dozen products, on logits of about 1.
    torch.testing.assert_close(rounded_BTV, exact_BTV, atol=0.1, rtol=0)
    assert not torch.equal(rounded_BTV, exact_BTV)


def test_rows_beyond_the_context_are_refused():
    decoder = initialise(SMALL, VOCABULARY, generator(0))
    with pytest.raises(ValueError, match="25 tokens are longer than the context of 24"):
        decoder(tokens(1, 25))
    with pytest.raises(ValueError, match="position 4 does not fit into a cache of 4 slots"):
        decoder(tokens(1, 1), torch.tensor([[4]]), decoder.empty_cache(1, 4))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"layers": 0}, "layers must be at least 1, got 0"),
        ({"context": 0}, "context must be at least 1, got 0"),
        ({"width": 30}, r"width=30 must be a multiple of 2 \* heads=8"),
        ({"width": 36}, r"width=36 must be a multiple of 2 \* heads=8"),  # heads of odd width cannot be turned
        ({"kv_heads": 3}, "kv_heads=3 must divide heads=4"),
        ({"kv_heads": 0}, "key_value_heads must be at least 1, got 0"),
        ({"initial_std": 0.0}, "initial_std must be positive"),
        ({"rope_theta": float("nan")}, "rope_theta must be positive and finite, got nan"),
    ],
)
def test_an_impossible_architecture_is_refused(fields, complaint):
    with pytest.raises(ValueError, match=complaint):
        Transformer(**{"layers": 2, "width": 32, "heads": 4, "context": 24, **fields})


def test_every_field_is_part_of_the_fingerprint():
    base = {"layers": 2, "width": 64, "heads": 4, "context": 24}
    changes = ({}, {"layers": 3}, {"width": 128}, {"heads": 2}, {"kv_heads": 2}, {"feedforward": 64}, {"context": 25})
    changes += ({"tied": False}, {"rope_theta": 1e5}, {"norm_epsilon": 1e-6}, {"initial_std": 0.1})
    assert len({fingerprint(Transformer(**{**base, **change})) for change in changes}) == len(changes)


@pytest.mark.parametrize(
    ("width", "inner"),
    [(64, 176), (96, 256), (512, 1368), (2048, 5464)],  # 170.7, 256, 1365.3, 5461.3, up to a multiple of 8
)
def test_the_feedforward_is_eight_thirds_of_the_width(width, inner):
    assert Transformer(layers=1, width=width, heads=1, context=1).inner_width == inner


def test_the_ladder_climbs():
    widths = [(architecture.layers, architecture.width) for architecture in SIZES.values()]
    assert list(SIZES) == ["0.1M", "0.5M", "1M", "3M", "10M", "30M", "100M", "300M", "1B"]
    assert SIZES["0.1M"] == Transformer(layers=2, width=64, heads=4, context=128)
    assert [width for _, width in widths] == sorted(width for _, width in widths)
