import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from models.flops import forward_flops, parameter_count, sampling_flops, training_flops
from models.transformer import SIZES, Decoder, Transformer

TINY = Transformer(layers=3, width=8, heads=4, kv_heads=2, feedforward=12, context=16, tied=False)
NAMED_PARAMETERS = {"0.1M": 1e5, "0.5M": 5e5, "1M": 1e6, "3M": 3e6, "10M": 1e7, "30M": 3e7, "100M": 1e8, "300M": 3e8}


@pytest.mark.parametrize("architecture", [TINY, *SIZES.values()])
@pytest.mark.parametrize("tied", [True, False])
def test_the_parameter_count_is_that_of_the_module(architecture, tied):
    fields = {name: getattr(architecture, name) for name in ("layers", "width", "heads", "kv_heads", "feedforward")}
    architecture = Transformer(**fields, context=8, tied=tied)
    with torch.device("meta"):  # shapes without memory: the largest has a billion
        decoder = Decoder(architecture, vocabulary=50)
    assert parameter_count(architecture, 50) == sum(weight.numel() for weight in decoder.parameters())


@pytest.mark.parametrize(("name", "parameters"), [*NAMED_PARAMETERS.items(), ("1B", 1e9)])
def test_sizes_have_the_parameters_that_their_names_promise(name, parameters):
    assert parameter_count(SIZES[name], 40) == pytest.approx(parameters, rel=0.07)


def test_forward_flops_are_those_of_a_hand_count():
    # Per layer and token: query 8x8, key 8x4, value 8x4, output 8x8 -> 192; feedforward 3 x 8 x 12 = 288; 480 weights.
    # 3 layers -> 1440 multiply-adds, and the output layer 8 x 10 = 80: 1520 multiply-adds = 3040 operations a token.
    # Pairs: 1 + 2 + 3 = 6 and 1 + 2 = 3. A pair costs a score and a value of 8 multiply-adds each, in 3 layers: 96.
    assert forward_flops(TINY, 10, [3, 2]) == 5 * 3040 + 9 * 96
    assert training_flops(TINY, 10, [3, 2]) == 3 * forward_flops(TINY, 10, [3, 2])
    assert forward_flops(TINY, 10, []) == 0


@pytest.mark.parametrize("architecture", [TINY, Transformer(layers=2, width=16, heads=2, context=16)])
@pytest.mark.parametrize("rows", [1, 3])
def test_forward_flops_are_those_that_torch_counts(architecture, rows):
    time = 7
    decoder = Decoder(architecture, vocabulary=10)
    # The plain kernel: of the fused one for CPUs torch counts nothing.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        decoder(torch.zeros(rows, time, dtype=torch.int64))
    # torch counts attention over all 7 x 7 pairs; causality allows 7 * 8 / 2 = 28 of these 49.
    forbidden = rows * (49 - 28) * 4 * architecture.layers * architecture.width
    assert counter.get_total_flops() == forward_flops(architecture, 10, [time] * rows) + forbidden


@pytest.mark.parametrize("architecture", [TINY, Transformer(layers=2, width=16, heads=2, context=16)])
def test_training_flops_are_those_that_torch_counts(architecture):
    decoder = Decoder(architecture, vocabulary=10)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        decoder(torch.zeros(4, 5, dtype=torch.int64)).sum().backward()
    # 5 x 5 pairs, of which causality allows 15.
    forbidden = 3 * 4 * (25 - 15) * 4 * architecture.layers * architecture.width
    assert counter.get_total_flops() == training_flops(architecture, 10, [5] * 4) + forbidden


def test_sampling_flops_are_those_of_a_hand_count():
    # Prompt 3, completion 2: 4 tokens are fed (the last is never read back), 10 pairs, 2 rows of logits.
    assert sampling_flops(TINY, 10, [3], [2]) == 4 * 2 * 1440 + 10 * 96 + 2 * 2 * 80
    assert sampling_flops(TINY, 10, [3, 3], [2, 2]) == 2 * sampling_flops(TINY, 10, [3], [2])


def test_rows_that_cannot_be_sampled_are_refused():
    with pytest.raises(ValueError, match="got 2 and 1"):
        sampling_flops(TINY, 10, [3, 3], [2])
    with pytest.raises(ValueError, match="at least 1 token on either side, got 3 and 0"):
        sampling_flops(TINY, 10, [3], [0])
