"""Transformers, tokenizers and policies; never a problem.

Shape letters, at the end of every tensor's name:

    B batch · T time · V vocabulary · D width · H query heads · K key and value heads · L layers · P problems · G group

and inside this package: C position in a completion · E width of a head · S slot of a cache · N rows still sampling ·
U distinct prompts. A leading blank in a shape (``" B"``) means nothing; it keeps a linter from reading a name.
"""

from models.flops import forward_flops, parameter_count, sampling_flops, training_flops
from models.policy import Policy
from models.sampling import Completions, Decoding, sample, uniforms
from models.scoring import PackedRows, Scores, completion_logits, completion_logp, pack, token_logits
from models.tokenizer import Tokenizer
from models.transformer import SIZES, Decoder, Transformer, initialise

__all__ = [
    "SIZES",
    "Completions",
    "Decoder",
    "Decoding",
    "PackedRows",
    "Policy",
    "Scores",
    "Tokenizer",
    "Transformer",
    "completion_logits",
    "completion_logp",
    "forward_flops",
    "initialise",
    "pack",
    "parameter_count",
    "sample",
    "sampling_flops",
    "token_logits",
    "training_flops",
    "uniforms",
]
