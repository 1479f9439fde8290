"""Sampling: ragged prompts, a key and value cache, noise that belongs to the rollout and not to the batch.

Each rollout has a *lane*, a whole number. Its n-th token is drawn with one uniform number, a hash of (lane, n), that
picks from the distribution's cumulative sum. So neither the other rows of the batch, nor their order, nor padding, nor
dropping finished rows changes which numbers a rollout uses. The logits themselves carry the rounding of the matrix
kernels, which differ between batch shapes (about 1e-6 in float32): equal calls are bit-equal, and different batches
agree in tokens, except where a uniform number falls within rounding of a boundary, and in log-probabilities to 1e-5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from models.cache import Cache
from models.transformer import Decoder

# SplitMix64's constants. int64 arithmetic wraps, so it is arithmetic on 64-bit words whatever the sign.
_WEYL: Final = 0x9E3779B97F4A7C15 - (1 << 64)  # 2^64 / golden ratio, odd: its multiples visit every word
_MIX_1: Final = 0xBF58476D1CE4E5B9 - (1 << 64)
_MIX_2: Final = 0x94D049BB133111EB - (1 << 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """Which distribution tokens are drawn from, given the logits."""

    revision: ClassVar[int] = 1
    temperature: float = 1.0
    """Logits are divided by it."""
    top_k: int | None = None
    """Keep exactly this many of the likeliest tokens, the lowest ids among equals; None: all."""
    top_p: float | None = None
    """Keep the smallest set of the likeliest tokens (after ``top_k``) whose probability reaches this; None: all."""
    greedy: bool = False
    """Take the likeliest token, the lowest id among equals. Its log-probability is still that at ``temperature``."""

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise ValueError(
                f"temperature must be positive and finite, got {self.temperature}; for temperature 0 use greedy=True"
            )
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {self.top_k}; None keeps every token")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be in (0, 1], got {self.top_p}; None keeps every token")
        if self.greedy and (self.top_k is not None or self.top_p is not None):
            raise ValueError("greedy=True takes the likeliest token, so top_k and top_p must be None")

    def logp(self, logits_NV: Float[Tensor, "*N V"]) -> Float64[Tensor, "*N V"]:
        """Log-probabilities in float64, renormalised over the kept tokens; minus infinity for the others."""
        scaled_NV = logits_NV.double() / self.temperature
        if self.top_k is not None or self.top_p is not None:
            scaled_NV = scaled_NV.masked_fill(~self.kept(scaled_NV), -torch.inf)
        return scaled_NV.log_softmax(-1)

    def kept(self, scaled_NV: Float[Tensor, "*N V"]) -> Bool[Tensor, "*N V"]:
        """Which tokens ``top_k`` and ``top_p`` keep."""
        # Stable, so that among equals the lowest ids come first.
        sorted_NV, order_NV = scaled_NV.sort(dim=-1, descending=True, stable=True)
        kept_NV = torch.ones_like(sorted_NV, dtype=torch.bool)
        if self.top_k is not None:
            kept_NV[..., self.top_k :] = False
        if self.top_p is not None and self.top_p < 1:  # at 1, rounding of the running sum would drop the tail
            probability_NV = sorted_NV.masked_fill(~kept_NV, -torch.inf).softmax(-1)
            before_NV = probability_NV.cumsum(-1) - probability_NV
            kept_NV &= before_NV < self.top_p  # the token that reaches top_p is kept, the ones after it are not
            kept_NV[..., 0] = True
        return torch.zeros_like(kept_NV).scatter(-1, order_NV, kept_NV)


@dataclass(frozen=True, slots=True, kw_only=True)
class Completions:
    """Sampled completions, one a row, on the decoder's device."""

    token_BT: Int[Tensor, "B T"]
    """Token ids with the sampled ``<eos>``, then padding."""
    mask_BT: Bool[Tensor, "B T"]
    """True on every sampled token, ``<eos>`` included."""
    logp_BT: Float[Tensor, "B T"]
    """Log-probability, in nats, of each token in the distribution that it was drawn from; 0 on padding."""
    entropy_BT: Float[Tensor, "B T"]
    """Entropy, in nats, of that distribution; 0 on padding."""
    finished_B: Bool[Tensor, " B"]
    """Whether the row ended with ``<eos>``; False: it was cut off by ``max_new_tokens`` or the context."""

    def rows(self) -> list[list[int]]:
        """Token ids of each completion without padding, ``<eos>`` included where it was sampled."""
        lengths = self.mask_BT.sum(1).tolist()
        return [row[:length] for row, length in zip(self.token_BT.tolist(), lengths, strict=True)]


def uniforms(lane_B: Int[Tensor, " B"], position: int) -> Float64[Tensor, " B"]:
    """The uniform number in [0, 1) of each (lane, position): a multiple of 2^-53, the same on every device.

    SplitMix64 (Steele, Lea & Flood 2014): a Weyl sequence over positions, begun at the mixed lane, then mixed.
    """
    position_B = torch.full_like(lane_B, position + 1)
    state_B = _mix(lane_B + _WEYL) + position_B * _WEYL
    return _shift_right(_mix(state_B), 11).double() * 2.0**-53


def draw(logp_NV: Float64[Tensor, "N V"], uniform_N: Float64[Tensor, " N"]) -> Int[Tensor, " N"]:
    """The token of each row whose stretch of the cumulative sum contains the row's uniform number.

    A token of probability 0 has no stretch, so it is never drawn.
    """
    reached_NV = logp_NV.exp().cumsum(-1)
    # The sum is 1 only up to rounding, so it scales the number. At most 1 - 2^-53 times a sum rounds to less than the
    # sum, so some token is always beyond it.
    below_N = uniform_N * reached_NV[:, -1]
    return (reached_NV > below_N[:, None]).to(torch.uint8).argmax(-1)  # the first of equals


@torch.no_grad()
def sample(  # noqa: PLR0913 - the arguments of Policy.sample, and what the tokenizer knows
    decoder: Decoder,
    prompts: Sequence[Sequence[int]],
    *,
    lane_B: Int[Tensor, " B"] | None,
    max_new_tokens: int,
    decoding: Decoding,
    pad: int,
    eos: int,
    compact: bool = True,
) -> Completions:
    """Completions of the prompts, drawn token by token until ``<eos>``, ``max_new_tokens`` or the end of the context.

    Rows that name the same prompt share its forward pass. ``compact`` drops finished rows from the batch whenever at
    least half are; it saves time and changes nothing else.
    """
    _check(decoder, prompts, lane_B, max_new_tokens, decoding)
    device = decoder.lm_head.weight.device
    if lane_B is None:
        lane_B = torch.zeros(len(prompts), dtype=torch.int64)  # greedy decoding draws nothing
    lane_B = lane_B.to(device=device, dtype=torch.int64)
    length_B = torch.tensor([len(prompt) for prompt in prompts], device=device)
    limit_B = (decoder.architecture.context - length_B).clamp(max=max_new_tokens)
    written = _Written(len(prompts), int(limit_B.max()), pad=pad, device=device)

    logits_BV, cache = _prefill(decoder, prompts, slots=int((length_B + limit_B).max()) - 1, pad=pad)
    row_N = torch.arange(len(prompts), device=device)  # the rows still in the batch
    alive_N = torch.ones_like(row_N, dtype=torch.bool)
    for step in range(written.token_BT.shape[1]):
        logp_NV = decoding.logp(logits_BV)
        token_N = logp_NV.argmax(-1) if decoding.greedy else draw(logp_NV, uniforms(lane_B[row_N], step))
        written.write(step, row_N[alive_N], token_N[alive_N], logp_NV[alive_N])
        ended_N = token_N == eos
        written.finished_B[row_N[alive_N & ended_N]] = True
        alive_N = alive_N & ~ended_N & (step + 1 < limit_B[row_N])
        alive = int(alive_N.sum())
        if alive == 0:
            break
        if compact and 2 * alive <= len(row_N):
            kept_N = alive_N.nonzero()[:, 0]
            row_N, token_N, cache = row_N[kept_N], token_N[kept_N], cache.select(kept_N)
            alive_N = alive_N[kept_N]
        # Rows that are done but still in the batch write into their own last slots, which nobody reads any more.
        position_N = (length_B[row_N] + step).clamp(max=cache.slots - 1)
        logits_BV = decoder(token_N[:, None], position_N[:, None], cache)[:, 0]
    return written.completions()


class _Written:
    """What has been sampled so far, padded to the longest that it may become."""

    def __init__(self, rows: int, width: int, *, pad: int, device: torch.device) -> None:
        self.token_BT = torch.full((rows, width), pad, device=device)
        self.mask_BT = torch.zeros((rows, width), dtype=torch.bool, device=device)
        self.logp_BT = torch.zeros((rows, width), device=device)
        self.entropy_BT = torch.zeros((rows, width), device=device)
        self.finished_B = torch.zeros(rows, dtype=torch.bool, device=device)
        self.steps = 0

    def write(self, step: int, row_N: Tensor, token_N: Tensor, logp_NV: Tensor) -> None:
        self.token_BT[row_N, step] = token_N
        self.mask_BT[row_N, step] = True
        self.logp_BT[row_N, step] = logp_NV.gather(-1, token_N[:, None])[:, 0].float()
        self.entropy_BT[row_N, step] = entropy(logp_NV).float()
        self.steps = step + 1

    def completions(self) -> Completions:
        if self.logp_BT.isnan().any():
            raise FloatingPointError("the decoder's logits are NaN: its weights are not set, or training has diverged")
        return Completions(
            token_BT=self.token_BT[:, : self.steps],
            mask_BT=self.mask_BT[:, : self.steps],
            logp_BT=self.logp_BT[:, : self.steps],
            entropy_BT=self.entropy_BT[:, : self.steps],
            finished_B=self.finished_B,
        )


def entropy(logp_NV: Float[Tensor, "*N V"]) -> Float[Tensor, "*N"]:
    """Entropy in nats of each distribution; a token of probability 0 adds 0."""
    probability_NV = logp_NV.exp()
    # 0 * -inf is NaN, in the value and in the gradient: replace the logarithm before the product.
    return -(probability_NV * logp_NV.masked_fill(probability_NV == 0, 0.0)).sum(-1)


def _prefill(
    decoder: Decoder, prompts: Sequence[Sequence[int]], *, slots: int, pad: int
) -> tuple[Float[Tensor, "B V"], Cache]:
    """Logits after each prompt, and a cache that holds it; each distinct prompt is computed once."""
    number_of: dict[tuple[int, ...], int] = {}
    shared = [number_of.setdefault(tuple(prompt), len(number_of)) for prompt in prompts]
    longest = max(map(len, number_of))
    device = decoder.lm_head.weight.device
    token_UT = torch.tensor([[*prompt, *[pad] * (longest - len(prompt))] for prompt in number_of], device=device)
    last_U = torch.tensor([len(prompt) - 1 for prompt in number_of], device=device)
    cache = decoder.empty_cache(len(number_of), slots)
    features_UTD = decoder.features(token_UT, None, cache)
    logits_UV = decoder.lm_head(features_UTD[torch.arange(len(last_U), device=device), last_U])
    if len(number_of) == len(prompts):
        return logits_UV, cache
    shared_B = torch.tensor(shared, device=device)
    return logits_UV[shared_B], cache.select(shared_B)


def _check(
    decoder: Decoder,
    prompts: Sequence[Sequence[int]],
    lane_B: Tensor | None,
    max_new_tokens: int,
    decoding: Decoding,
) -> None:
    context = decoder.architecture.context
    if not prompts:
        raise ValueError("sampling needs at least one prompt, got none")
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    for row, prompt in enumerate(prompts):
        if not prompt:
            raise ValueError(f"prompt {row} is empty; a prompt needs at least one token, such as <bos>")
        if len(prompt) >= context:
            raise ValueError(
                f"prompt {row} has {len(prompt)} tokens, which leaves no room in the context of {context};"
                f" at most {context - 1} fit"
            )
    if lane_B is None and not decoding.greedy:
        raise ValueError("sampling needs lanes, one whole number a rollout; only greedy=True goes without")
    if lane_B is not None and lane_B.shape != (len(prompts),):
        raise ValueError(f"{len(prompts)} prompts need {len(prompts)} lanes, got shape {tuple(lane_B.shape)}")


def _mix(x_B: Tensor) -> Tensor:
    """A bijection of 64-bit numbers in which every input bit moves every output bit (SplitMix64's finaliser)."""
    x_B = (x_B ^ _shift_right(x_B, 30)) * _MIX_1
    x_B = (x_B ^ _shift_right(x_B, 27)) * _MIX_2
    return x_B ^ _shift_right(x_B, 31)


def _shift_right(x_B: Tensor, bits: int) -> Tensor:
    """Logical shift: int64's own shift copies the sign bit, which the mask takes away."""
    return (x_B >> bits) & ((1 << (64 - bits)) - 1)
