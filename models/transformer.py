"""The decoder-only transformer with Llama's exact arithmetic and parameter names, and the ladder of its sizes.

Source: Touvron et al. 2023 (arXiv 2302.13971); the reference is transformers' ``LlamaForCausalLM``, whose logits and
state dict this module reproduces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from models.cache import Cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """The declared architecture of a decoder."""

    revision: ClassVar[int] = 1
    layers: int
    """Number of blocks, each attention then feedforward."""
    width: int
    """Size of the residual stream."""
    heads: int
    """Number of query heads; each is ``width / heads`` wide."""
    kv_heads: int | None = None
    """Number of key and value heads, which groups of query heads share; None: as many as ``heads``."""
    feedforward: int | None = None
    """Inner width of the gated feedforward; None: 8/3 of ``width``, rounded up to a multiple of 8."""
    context: int
    """Most tokens that a row may have, prompt and completion together."""
    tied: bool = True
    """Whether the output layer is the transposed embedding."""
    rope_theta: float = 10000.0
    """Base of the rotary embedding's wavelengths."""
    norm_epsilon: float = 1e-5
    """Added to the mean square inside RMSNorm."""
    initial_std: float = 0.02
    """Standard deviation of the normal distribution from which every matrix is drawn."""

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "key_value_heads", "inner_width", "context"):
            if getattr(self, name) < 1:
                raise ValueError(f"Transformer.{name} must be at least 1, got {getattr(self, name)}")
        if self.width % (2 * self.heads):
            raise ValueError(
                f"Transformer.width={self.width} must be a multiple of 2 * heads={2 * self.heads}:"
                " rotary embeddings turn pairs inside a head"
            )
        if self.heads % self.key_value_heads:
            raise ValueError(f"Transformer.kv_heads={self.kv_heads} must divide heads={self.heads}")
        for name in ("rope_theta", "norm_epsilon", "initial_std"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"Transformer.{name} must be positive and finite, got {getattr(self, name)}")

    @property
    def key_value_heads(self) -> int:
        """Number of key and value heads."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def inner_width(self) -> int:
        """Inner width of the feedforward."""
        return 8 * math.ceil(self.width / 3) if self.feedforward is None else self.feedforward

    @property
    def head_width(self) -> int:
        """Width of one head."""
        return self.width // self.heads


# Names give the parameters of the blocks and a small vocabulary, rounded. Heads are narrow in the toys and 64
# wide from 10M on, as in models that people use.
SIZES: Final[Mapping[str, Transformer]] = MappingProxyType(
    {
        "0.1M": Transformer(layers=2, width=64, heads=4, context=128),
        "0.5M": Transformer(layers=4, width=104, heads=4, context=128),
        "1M": Transformer(layers=5, width=128, heads=4, context=256),
        "3M": Transformer(layers=6, width=208, heads=4, context=256),
        "10M": Transformer(layers=8, width=320, heads=5, context=512),
        "30M": Transformer(layers=10, width=512, heads=8, context=512),
        "100M": Transformer(layers=14, width=768, heads=12, context=1024),
        "300M": Transformer(layers=24, width=1024, heads=16, context=1024),
        "1B": Transformer(layers=20, width=2048, heads=32, context=2048),
    }
)


class Linear(nn.Linear):
    """A matrix without bias that holds NaN until it is initialised or loaded, and never touches a global generator."""

    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__(width_in, width_out, bias=False)

    def reset_parameters(self) -> None:
        """Mark the weights as not yet set."""
        nn.init.constant_(self.weight, math.nan)


class Embedding(nn.Embedding):
    """Token vectors that hold NaN until they are initialised or loaded."""

    def reset_parameters(self) -> None:
        """Mark the weights as not yet set."""
        nn.init.constant_(self.weight, math.nan)


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + epsilon) * weight. Source: Zhang & Sennrich 2019."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x_BTD: Tensor) -> Tensor:
        """The normalised vectors."""
        return nn.functional.rms_norm(x_BTD, self.weight.shape, self.weight, self.epsilon)


class Attention(nn.Module):
    """Causal attention with rotary embeddings; groups of query heads share a key and value head."""

    def __init__(self, architecture: Transformer) -> None:
        super().__init__()
        self.heads = architecture.heads
        self.kv_heads = architecture.key_value_heads
        self.head_width = architecture.head_width
        kv_width = self.kv_heads * self.head_width
        self.q_proj = Linear(architecture.width, architecture.width)
        self.k_proj = Linear(architecture.width, kv_width)
        self.v_proj = Linear(architecture.width, kv_width)
        self.o_proj = Linear(architecture.width, architecture.width)

    def forward(self, x_BTD: Tensor, angles: Angles, layer: int, cache: Cache | None) -> Tensor:
        """What each position reads from itself and the positions before it."""
        rows, time, width = x_BTD.shape
        q_BHTE = angles.turn(self.q_proj(x_BTD).view(rows, time, self.heads, self.head_width)).transpose(1, 2)
        k_BKTE = angles.turn(self.k_proj(x_BTD).view(rows, time, self.kv_heads, self.head_width)).transpose(1, 2)
        v_BKTE = self.v_proj(x_BTD).view(rows, time, self.kv_heads, self.head_width).transpose(1, 2)
        mask_B1TS = None
        if cache is not None:
            k_BKTE, v_BKTE, mask_B1TS = cache.extend(layer, k_BKTE, v_BKTE)
        y_BHTE = nn.functional.scaled_dot_product_attention(
            q_BHTE,
            k_BKTE,
            v_BKTE,
            attn_mask=mask_B1TS,
            is_causal=mask_B1TS is None,
            enable_gqa=self.kv_heads != self.heads,
        )
        projected_BTD: Tensor = self.o_proj(y_BHTE.transpose(1, 2).reshape(rows, time, width))
        return projected_BTD


class Feedforward(nn.Module):
    """down(silu(gate(x)) * up(x)). Source: Shazeer 2020, SwiGLU."""

    def __init__(self, architecture: Transformer) -> None:
        super().__init__()
        self.gate_proj = Linear(architecture.width, architecture.inner_width)
        self.up_proj = Linear(architecture.width, architecture.inner_width)
        self.down_proj = Linear(architecture.inner_width, architecture.width)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """The feedforward's contribution to the residual stream."""
        projected_BTD: Tensor = self.down_proj(nn.functional.silu(self.gate_proj(x_BTD)) * self.up_proj(x_BTD))
        return projected_BTD


class Block(nn.Module):
    """Attention, then feedforward, each on normalised input and added to the residual stream."""

    def __init__(self, architecture: Transformer) -> None:
        super().__init__()
        self.self_attn = Attention(architecture)
        self.mlp = Feedforward(architecture)
        self.input_layernorm = RMSNorm(architecture.width, architecture.norm_epsilon)
        self.post_attention_layernorm = RMSNorm(architecture.width, architecture.norm_epsilon)

    def forward(self, x_BTD: Tensor, angles: Angles, layer: int, cache: Cache | None) -> Tensor:
        """The residual stream after this block."""
        x_BTD = x_BTD + self.self_attn(self.input_layernorm(x_BTD), angles, layer, cache)
        after_BTD: Tensor = x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))
        return after_BTD


@dataclass(frozen=True, slots=True, kw_only=True)
class Angles:
    """Cosines and sines of the rotary embedding at the positions of a batch, with room for the heads' axis.

    Without the batch axis they hold for every row.
    """

    cos_BT1E: Float[Tensor, "*#B T 1 E"]
    sin_BT1E: Float[Tensor, "*#B T 1 E"]

    def turn(self, x_BTHE: Tensor) -> Tensor:
        """Each head's pairs (i, i + E/2), turned by the angle of their position. Source: Su et al. 2021, RoPE."""
        first, second = x_BTHE.chunk(2, dim=-1)
        return x_BTHE * self.cos_BT1E + torch.cat((-second, first), dim=-1) * self.sin_BT1E


class Body(nn.Module):
    """Embedding, blocks and the last norm: everything but the output layer, under Llama's name ``model``."""

    def __init__(self, architecture: Transformer, vocabulary: int) -> None:
        super().__init__()
        self.embed_tokens = Embedding(vocabulary, architecture.width)
        self.layers = nn.ModuleList(Block(architecture) for _ in range(architecture.layers))
        self.norm = RMSNorm(architecture.width, architecture.norm_epsilon)
        # The reference's arithmetic, in float32 like there.
        exponent_E = torch.arange(0, architecture.head_width, 2, dtype=torch.float32) / architecture.head_width
        angle_TE = torch.arange(architecture.context, dtype=torch.float32)[:, None] * (
            1.0 / architecture.rope_theta**exponent_E
        )
        self.register_buffer("cos_TE", torch.cat((angle_TE, angle_TE), -1).cos(), persistent=False)
        self.register_buffer("sin_TE", torch.cat((angle_TE, angle_TE), -1).sin(), persistent=False)
        self.cos_TE: Tensor
        self.sin_TE: Tensor

    def forward(self, token_BT: Tensor, position_BT: Tensor | None, cache: Cache | None) -> Tensor:
        """Normalised features, one vector a position."""
        x_BTD = self.embed_tokens(token_BT)
        if position_BT is None:
            here: slice | Tensor = slice(token_BT.shape[1])
        else:
            here = position_BT
        angles = Angles(
            cos_BT1E=self.cos_TE[here, None].to(x_BTD.dtype),
            sin_BT1E=self.sin_TE[here, None].to(x_BTD.dtype),
        )
        for layer, block in enumerate(self.layers):
            x_BTD = block(x_BTD, angles, layer, cache)
        normalised_BTD: Tensor = self.norm(x_BTD)
        return normalised_BTD


class Decoder(nn.Module):
    """The running transformer. Its state dict has the names of ``LlamaForCausalLM``; it has no dropout at all.

    Attention is causal: whatever stands to the right of a position, padding included, cannot change it. Weights are
    NaN until ``initialise`` or a checkpoint sets them.
    """

    def __init__(self, architecture: Transformer, *, vocabulary: int) -> None:
        super().__init__()
        if vocabulary < 1:
            raise ValueError(f"a decoder needs a vocabulary of at least 1 token, got {vocabulary}")
        self.architecture = architecture
        self.vocabulary = vocabulary
        self.model = Body(architecture, vocabulary)
        self.lm_head = Linear(architecture.width, vocabulary)
        if architecture.tied:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(
        self,
        token_BT: Int[Tensor, "B T"],
        position_BT: Int[Tensor, "B T"] | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Logits of the token after each position; see ``features`` for the arguments."""
        logits_BTV: Tensor = self.lm_head(self.features(token_BT, position_BT, cache))
        return logits_BTV

    def features(
        self,
        token_BT: Int[Tensor, "B T"],
        position_BT: Int[Tensor, "B T"] | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "B T D"]:
        """What ``lm_head`` turns into logits, one vector a position.

        Args:
            token_BT: rows of token ids, padded on the right if they are ragged.
            position_BT: where each token stands in its row; None: 0, 1, 2, ... in every row.
            cache: keys and values of the tokens before these. Without ``position_BT`` the tokens are written to an
                empty cache from position 0 on; with it, each token is written at its position and sees all before it.
        """
        if token_BT.shape[1] > self.architecture.context:
            raise ValueError(
                f"rows of {token_BT.shape[1]} tokens are longer than the context of {self.architecture.context}"
            )
        if cache is not None:
            cache.place(position_BT, time=token_BT.shape[1])
        features_BTD: Tensor = self.model(token_BT, position_BT, cache)
        return features_BTD

    def empty_cache(self, rows: int, slots: int) -> Cache:
        """A cache for ``rows`` rows of up to ``slots`` tokens."""
        weight = self.lm_head.weight
        shape = (self.architecture.layers, rows, self.architecture.key_value_heads, slots, self.architecture.head_width)
        # Zeros, not whatever memory holds: a masked slot has weight 0, and 0 * NaN is NaN.
        return Cache(weight.new_zeros(shape), weight.new_zeros(shape))


def initialise(architecture: Transformer, vocabulary: int, generator: torch.Generator) -> Decoder:
    """A decoder with every matrix drawn from N(0, initial_std^2) and every norm at 1, on the CPU.

    Matrices are drawn in the order of the state dict, so equal generators give equal weights on every device.
    """
    decoder = Decoder(architecture, vocabulary=vocabulary)
    with torch.no_grad():
        for parameter in decoder.parameters():  # a tied matrix comes once
            if parameter.ndim > 1:
                parameter.normal_(0.0, architecture.initial_std, generator=generator)
    return decoder
