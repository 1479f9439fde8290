"""Exact counts: parameters, and floating-point operations of forward passes and of cached sampling.

A multiply-add counts as 2. Counted are the matrix products: projections, feedforward, output layer, and attention's
scores and weighted values over the pairs that causality allows. Norms, rotations, softmax, activations and sums are
left out (a few operations a number, against ``width`` or more). Nothing is counted for padding, and a prompt that many
rows share is counted once a row: the counts say what the rows need, whatever batch they stand in. The backward pass of
a training step costs twice its forward pass, so training counts three times ``forward_flops``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from models.transformer import Transformer

TRAINING_FACTOR: Final = 3  # forward 1; backward 2, for the gradients of the inputs and of the weights


def parameter_count(architecture: Transformer, vocabulary: int) -> int:
    """Number of parameters, embedding and output layer included; a tied matrix counts once."""
    matrices = vocabulary * architecture.width * (1 if architecture.tied else 2)
    norms = architecture.width * (2 * architecture.layers + 1)
    return matrices + norms + _block_weights(architecture)


def forward_flops(architecture: Transformer, vocabulary: int, lengths: Sequence[int]) -> int:
    """Operations of one forward pass over rows of these lengths, with logits at every position."""
    tokens = sum(lengths)
    pairs = sum(_causal_pairs(length) for length in lengths)
    return (
        tokens * _token_flops(architecture)
        + pairs * _pair_flops(architecture)
        + tokens * _head_flops(architecture, vocabulary)
    )


def training_flops(architecture: Transformer, vocabulary: int, lengths: Sequence[int]) -> int:
    """Operations of the forward and backward pass over rows of these lengths."""
    return TRAINING_FACTOR * forward_flops(architecture, vocabulary, lengths)


def sampling_flops(
    architecture: Transformer, vocabulary: int, prompt_lengths: Sequence[int], completion_lengths: Sequence[int]
) -> int:
    """Operations of sampling these completions with a cache of keys and values.

    A completion of n tokens reads its prompt once, feeds back n - 1 tokens, and asks for logits n times.
    """
    if len(prompt_lengths) != len(completion_lengths):
        raise ValueError(
            f"as many prompts as completions are needed, got {len(prompt_lengths)} and {len(completion_lengths)}"
        )
    flops = 0
    for prompt, completion in zip(prompt_lengths, completion_lengths, strict=True):
        if prompt < 1 or completion < 1:
            raise ValueError(f"a sampled row has at least 1 token on either side, got {prompt} and {completion}")
        fed = prompt + completion - 1
        flops += fed * _token_flops(architecture) + _causal_pairs(fed) * _pair_flops(architecture)
        flops += completion * _head_flops(architecture, vocabulary)
    return flops


def _causal_pairs(length: int) -> int:
    """Number of (reader, read) pairs: position t reads t + 1 positions."""
    return length * (length + 1) // 2


def _block_weights(architecture: Transformer) -> int:
    kv_width = architecture.key_value_heads * architecture.head_width
    attention = 2 * architecture.width * (architecture.width + kv_width)  # query and output, key and value
    feedforward = 3 * architecture.width * architecture.inner_width
    return architecture.layers * (attention + feedforward)


def _token_flops(architecture: Transformer) -> int:
    return 2 * _block_weights(architecture)


def _pair_flops(architecture: Transformer) -> int:
    return 2 * 2 * architecture.layers * architecture.width  # a score and a weighted value, over all heads


def _head_flops(architecture: Transformer, vocabulary: int) -> int:
    return 2 * architecture.width * vocabulary
