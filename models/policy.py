"""A policy: a decoder with its tokenizer, which samples, scores, and is stored as a Hugging Face directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from models.hub import load_directory, save_directory
from models.sampling import Completions, Decoding, sample
from models.scoring import PackedRows, Scores, completion_logp, pack
from models.tokenizer import Tokenizer
from models.transformer import Decoder

ROWS_PER_PASS: Final = 1024  # bounds the memory of scoring; larger passes are no faster for the sizes of the ladder


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Policy:
    """Transformer and tokenizer.

    Prompts and completions are token ids. Nothing is added to them: a caller who wants ``<bos>`` writes it.
    """

    decoder: Decoder
    tokenizer: Tokenizer

    def __post_init__(self) -> None:
        if self.decoder.vocabulary != self.tokenizer.size:
            raise ValueError(
                f"the decoder has {self.decoder.vocabulary} tokens and the tokenizer {self.tokenizer.size};"
                " they must be equal"
            )

    def sample(  # noqa: PLR0913 - each is one well-known knob of sampling
        self,
        prompts: Sequence[Sequence[int]],
        *,
        lanes: Int[np.ndarray, " B"] | Int[Tensor, " B"] | None = None,
        max_new_tokens: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        greedy: bool = False,
    ) -> Completions:
        """Completions of the prompts, with the log-probabilities that they were sampled at.

        Args:
            prompts: token ids; rows may differ in length. Rows with the same prompt share its forward pass.
            lanes: one whole number a row, the key of its noise: equal lanes and prompts give equal completions in any
                batch. Only ``greedy`` goes without.
            max_new_tokens: most tokens of a completion, ``<eos>`` included; the context may end it earlier.
            temperature: logits are divided by it.
            top_k: keep exactly this many tokens; None keeps all.
            top_p: keep the smallest set of tokens with this much probability; None keeps all.
            greedy: take the likeliest token, the lowest id among equals.
        """
        return sample(
            self.decoder,
            prompts,
            lane_B=None if lanes is None else torch.as_tensor(lanes),
            max_new_tokens=max_new_tokens,
            decoding=Decoding(temperature=temperature, top_k=top_k, top_p=top_p, greedy=greedy),
            pad=self.tokenizer.pad,
            eos=self.tokenizer.eos,
        )

    @torch.no_grad()
    def score(
        self,
        prompts: Sequence[Sequence[int]],
        completions: Sequence[Sequence[int]],
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
    ) -> Scores:
        """Log-probability of every completion token after its prompt, without gradient.

        For gradients use ``models.scoring.completion_logp``, the same arithmetic.
        """
        decoding = Decoding(temperature=temperature, top_k=top_k, top_p=top_p)
        rows = pack(prompts, completions, self.tokenizer.pad).to(self.decoder.lm_head.weight.device)
        passes = [
            completion_logp(self.decoder, _part(rows, start), decoding)
            for start in range(0, len(prompts), ROWS_PER_PASS)
        ]
        return Scores(
            logp_BC=torch.cat([part.logp_BC for part in passes]),
            entropy_BC=torch.cat([part.entropy_BC for part in passes]),
            mask_BC=torch.cat([part.mask_BC for part in passes]),
        )

    def save(self, directory: Path) -> None:
        """Write the Hugging Face directory: weights, configurations, tokenizer."""
        save_directory(self.decoder, self.tokenizer, directory)

    @classmethod
    def load(cls, directory: Path, device: torch.device | str = "cpu") -> Policy:
        """The policy that ``save`` wrote into ``directory``, with the same bits."""
        decoder, tokenizer = load_directory(directory)
        return cls(decoder=decoder.to(device), tokenizer=tokenizer)


def _part(rows: PackedRows, start: int) -> PackedRows:
    here = slice(start, start + ROWS_PER_PASS)
    return replace(
        rows,
        token_BT=rows.token_BT[here],
        prompt_length_B=rows.prompt_length_B[here],
        length_B=rows.length_B[here],
    )
