"""A policy on disk: a Hugging Face directory that transformers and vLLM load as ``LlamaForCausalLM``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import safetensors.torch
import torch

from models.tokenizer import Tokenizer
from models.transformer import Decoder, Transformer

CONFIG_FILE: Final = "config.json"
GENERATION_CONFIG_FILE: Final = "generation_config.json"
WEIGHTS_FILE: Final = "model.safetensors"
OUTPUT_WEIGHT: Final = "lm_head.weight"

# What the decoder cannot vary.
SUPPORTED: Final = MappingProxyType(
    {"model_type": "llama", "hidden_act": "silu", "attention_bias": False, "mlp_bias": False}
)

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def save_directory(decoder: Decoder, tokenizer: Tokenizer, directory: Path) -> None:
    """Write ``config.json``, ``generation_config.json``, ``model.safetensors`` and the tokenizer's files."""
    directory.mkdir(parents=True, exist_ok=True)
    weights = {name: weight.detach().contiguous() for name, weight in decoder.state_dict().items()}
    if decoder.architecture.tied:
        del weights[OUTPUT_WEIGHT]  # stored once, as the embedding, like transformers does
    safetensors.torch.save_file(weights, directory / WEIGHTS_FILE, metadata={"format": "pt"})
    _write_json(directory / CONFIG_FILE, llama_config(decoder, tokenizer))
    _write_json(directory / GENERATION_CONFIG_FILE, {**_token_ids(tokenizer), "do_sample": True})
    tokenizer.save(directory)


def load_directory(directory: Path) -> tuple[Decoder, Tokenizer]:
    """The decoder, on the CPU, and the tokenizer of a directory that ``save_directory`` wrote.

    Raises:
        ValueError: where the directory holds another kind of model; the message names the entry.
    """
    config = json.loads((directory / CONFIG_FILE).read_text(encoding="utf-8"))
    architecture = declared_architecture(config)
    decoder = Decoder(architecture, vocabulary=_whole(config, "vocab_size"))
    weights = safetensors.torch.load_file(directory / WEIGHTS_FILE)
    dtypes = {weight.dtype for weight in weights.values()}
    if dtypes != {torch.float32}:
        raise ValueError(f"{directory / WEIGHTS_FILE} must hold float32 weights, got {sorted(map(str, dtypes))}")
    if architecture.tied:
        weights[OUTPUT_WEIGHT] = weights["model.embed_tokens.weight"]
    decoder.load_state_dict(weights)
    return decoder, Tokenizer.load(directory)


def llama_config(decoder: Decoder, tokenizer: Tokenizer) -> dict[str, Json]:
    """The entries of ``config.json``, for transformers 4.48 and later."""
    architecture = decoder.architecture
    dtype = str(decoder.lm_head.weight.dtype).removeprefix("torch.")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": decoder.vocabulary,
        "hidden_size": architecture.width,
        "intermediate_size": architecture.inner_width,
        "num_hidden_layers": architecture.layers,
        "num_attention_heads": architecture.heads,
        "num_key_value_heads": architecture.key_value_heads,
        "head_dim": architecture.head_width,
        "max_position_embeddings": architecture.context,
        "hidden_act": "silu",
        "rms_norm_eps": architecture.norm_epsilon,
        "rope_theta": architecture.rope_theta,  # read up to transformers 4
        "rope_parameters": {"rope_type": "default", "rope_theta": architecture.rope_theta},  # read from 5 on
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": architecture.initial_std,
        "tie_word_embeddings": architecture.tied,
        "torch_dtype": dtype,  # read up to transformers 4
        "dtype": dtype,  # read from 5 on
        **_token_ids(tokenizer),
    }


def declared_architecture(config: Mapping[str, Json]) -> Transformer:
    """The architecture that a ``config.json`` declares."""
    for entry, wanted in SUPPORTED.items():
        if config.get(entry) != wanted:
            raise ValueError(f"{CONFIG_FILE} must have {entry}={wanted!r}, got {config.get(entry)!r}")
    heads, kv_heads = _whole(config, "num_attention_heads"), _whole(config, "num_key_value_heads")
    return Transformer(
        layers=_whole(config, "num_hidden_layers"),
        width=_whole(config, "hidden_size"),
        heads=heads,
        kv_heads=None if kv_heads == heads else kv_heads,
        context=_whole(config, "max_position_embeddings"),
        feedforward=_whole(config, "intermediate_size"),
        tied=bool(config.get("tie_word_embeddings")),
        rope_theta=_real(config, "rope_theta"),
        norm_epsilon=_real(config, "rms_norm_eps"),
        initial_std=_real(config, "initializer_range"),
    )


def _whole(config: Mapping[str, Json], entry: str) -> int:
    match config.get(entry):
        case bool() as value:
            pass
        case int() as number:
            return number
        case value:
            pass
    raise ValueError(f"{CONFIG_FILE} must have a whole number under {entry}, got {value!r}")


def _real(config: Mapping[str, Json], entry: str) -> float:
    match config.get(entry):
        case float() as number:
            return number
        case value:
            raise ValueError(f"{CONFIG_FILE} must have a decimal number under {entry}, got {value!r}")


def _token_ids(tokenizer: Tokenizer) -> dict[str, Json]:
    return {"pad_token_id": tokenizer.pad, "bos_token_id": tokenizer.bos, "eos_token_id": tokenizer.eos}


def _write_json(path: Path, entries: dict[str, Json]) -> None:
    path.write_text(json.dumps(entries, indent=2, sort_keys=True) + "\n", encoding="utf-8")
