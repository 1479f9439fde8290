"""Scoring: log-probabilities of given completions, on the one path that training and evaluation share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.cache import Cache
from models.sampling import Decoding, entropy


@runtime_checkable
class Readable(Protocol):
    """What scoring asks of a decoder: a ``Decoder``, or a training library's wrapper around one."""

    def features(
        self,
        token_BT: Int[Tensor, "B T"],
        position_BT: Int[Tensor, "B T"] | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "B T D"]:
        """What ``lm_head`` turns into logits."""
        ...

    @property
    def lm_head(self) -> Callable[[Tensor], Tensor]:
        """The output layer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedRows:
    """Prompts and their completions, one row each, padded on the right."""

    token_BT: Int[Tensor, "B T"]
    """Prompt, completion, padding."""
    prompt_length_B: Int[Tensor, " B"]
    """Number of prompt tokens in each row, at least 1."""
    length_B: Int[Tensor, " B"]
    """Number of tokens in each row, prompt and completion."""
    completion_width: int
    """Number of tokens of the longest completion: the C of everything that is aligned with completions."""

    @property
    def target_BT(self) -> Int[Tensor, "B T"]:
        """The token that each position has to predict: its successor; padding after the last."""
        return torch.cat((self.token_BT[:, 1:], self.token_BT[:, -1:]), dim=1)

    @property
    def target_mask_BT(self) -> Bool[Tensor, "B T"]:
        """True where the position's *target* is a completion token: from the last prompt token to the last but one."""
        position_T = torch.arange(self.token_BT.shape[1], device=self.token_BT.device)
        return (position_T >= self.prompt_length_B[:, None] - 1) & (position_T < self.length_B[:, None] - 1)

    @property
    def row_mask_BT(self) -> Bool[Tensor, "B T"]:
        """True where the position's target is any token of the row: for a loss on prompt and completion alike."""
        position_T = torch.arange(self.token_BT.shape[1], device=self.token_BT.device)
        return position_T < self.length_B[:, None] - 1

    @property
    def completion_mask_BC(self) -> Bool[Tensor, "B C"]:
        """True on the tokens of each completion, counted from its first."""
        index_C = torch.arange(self.completion_width, device=self.token_BT.device)
        return index_C < (self.length_B - self.prompt_length_B)[:, None]

    @property
    def predictor_BC(self) -> Int[Tensor, "B C"]:
        """The position that predicts each completion token; any position of the row where there is no such token."""
        index_C = torch.arange(self.completion_width, device=self.token_BT.device)
        return (self.prompt_length_B[:, None] - 1 + index_C).clamp(max=max(self.token_BT.shape[1] - 2, 0))

    @property
    def completion_BC(self) -> Int[Tensor, "B C"]:
        """The completions' tokens, counted from the first of each; arbitrary where ``completion_mask_BC`` is False."""
        return self.target_BT.gather(1, self.predictor_BC)

    def take(self, chosen: slice | Int[Tensor, " N"]) -> PackedRows:
        """The chosen rows, without the padding that only the others needed."""
        length_N, prompt_length_N = self.length_B[chosen], self.prompt_length_B[chosen]
        return PackedRows(
            token_BT=self.token_BT[chosen, : int(length_N.max())],
            prompt_length_B=prompt_length_N,
            length_B=length_N,
            completion_width=int((length_N - prompt_length_N).max()),
        )

    def to(self, device: torch.device | str) -> PackedRows:
        """The same rows on another device."""
        return PackedRows(
            token_BT=self.token_BT.to(device),
            prompt_length_B=self.prompt_length_B.to(device),
            length_B=self.length_B.to(device),
            completion_width=self.completion_width,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Log-probabilities of completions, aligned with ``Completions``: column c is the c-th token of the completion."""

    logp_BC: Float[Tensor, "B C"]
    """Log-probability of each token in nats; 0 where there is none."""
    entropy_BC: Float[Tensor, "B C"]
    """Entropy of the distribution that the token was scored in, in nats; 0 where there is none."""
    mask_BC: Bool[Tensor, "B C"]
    """True where the completion has a token."""

    @property
    def total_logp_B(self) -> Float[Tensor, " B"]:
        """Log-probability of each whole completion, in nats."""
        return self.logp_BC.sum(1)


def pack(prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], pad: int) -> PackedRows:
    """Rows of prompt then completion. Nothing is added: a completion that should end has to bring its ``<eos>``."""
    if not prompts or len(prompts) != len(completions):
        raise ValueError(f"pack needs as many completions as prompts, got {len(completions)} and {len(prompts)}")
    empty = [row for row, prompt in enumerate(prompts) if not prompt]
    if empty:
        raise ValueError(f"prompt {empty[0]} is empty; a prompt needs at least one token, such as <bos>")
    rows = [[*prompt, *completion] for prompt, completion in zip(prompts, completions, strict=True)]
    width = max(map(len, rows))
    return PackedRows(
        token_BT=torch.tensor([row + [pad] * (width - len(row)) for row in rows]),
        prompt_length_B=torch.tensor([len(prompt) for prompt in prompts]),
        length_B=torch.tensor([len(row) for row in rows]),
        completion_width=max(map(len, completions)),
    )


def token_logits(
    decoder: Readable, token_BT: Int[Tensor, "B T"], length_B: Int[Tensor, " B"] | None = None
) -> Float[Tensor, "B T V"]:
    """Logits of the token after each position of right-padded rows, in float32; arbitrary on padding.

    With ``length_B``, whatever number stands in a padding slot is ignored, even one that is no token id.
    """
    logits_BTV: Tensor = decoder.lm_head(_features(decoder, token_BT, length_B))
    return logits_BTV.float()


def completion_logits(decoder: Readable, rows: PackedRows) -> Float[Tensor, "B C V"]:
    """Logits that predict each completion token, in float32; arbitrary where the completion has none.

    The output layer runs on these positions only.
    """
    features_BTD = _features(decoder, rows.token_BT, rows.length_B)
    index_BCD = rows.predictor_BC[:, :, None].expand(-1, -1, features_BTD.shape[-1])
    logits_BCV: Tensor = decoder.lm_head(features_BTD.gather(1, index_BCD))
    return logits_BCV.float()


def completion_logp(decoder: Readable, rows: PackedRows, decoding: Decoding | None = None) -> Scores:
    """Log-probability of each completion token in the distribution that ``decoding`` draws from; differentiable.

    The default is temperature 1. A token that top-k or top-p leaves out has log-probability minus infinity.
    """
    logp_BCV = _log_distribution(completion_logits(decoder, rows), decoding or Decoding())
    mask_BC = rows.completion_mask_BC
    token_BC = rows.completion_BC.masked_fill(~mask_BC, 0)
    logp_BC = logp_BCV.gather(-1, token_BC[..., None])[..., 0]
    return Scores(
        logp_BC=logp_BC.masked_fill(~mask_BC, 0.0),
        entropy_BC=entropy(logp_BCV).masked_fill(~mask_BC, 0.0),
        mask_BC=mask_BC,
    )


def _log_distribution(logits_BCV: Tensor, decoding: Decoding) -> Tensor:
    """``decoding.logp`` in float32, which training needs no more than and gets faster."""
    if decoding.top_k is not None or decoding.top_p is not None:
        return decoding.logp(logits_BCV).float()
    return (logits_BCV / decoding.temperature).log_softmax(-1)


def _features(decoder: Readable, token_BT: Tensor, length_B: Tensor | None) -> Tensor:
    if length_B is not None:
        position_T = torch.arange(token_BT.shape[1], device=token_BT.device)
        token_BT = token_BT.masked_fill(position_T >= length_B[:, None], 0)
    return decoder.features(token_BT)
