import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from models.hub import declared_architecture, load_directory
from models.policy import Policy
from models.tokenizer import Tokenizer
from models.transformer import Transformer, initialise

TOKENIZER = Tokenizer.of((*"0123456789+-*/=(),", "m1", "m10"))
VARIANTS = {
    "tied": {},
    "untied": {"tied": False},
    "grouped": {"kv_heads": 2},
    "one key head, untied, other constants": {
        "kv_heads": 1,
        "tied": False,
        "rope_theta": 500.0,
        "norm_epsilon": 1e-3,
        "feedforward": 40,
    },
}


def policy(**fields):
    # Spread 0.15: logits of several nats, so that every part of the network shows in them.
    architecture = Transformer(**{"layers": 3, "width": 64, "heads": 4, "context": 48, "initial_std": 0.15, **fields})
    decoder = initialise(architecture, TOKENIZER.size, torch.Generator().manual_seed(3))
    with torch.no_grad():
        for name, weight in decoder.named_parameters():  # norms that are not 1, or their place would not show
            if name.endswith("norm.weight"):
                weight.uniform_(0.5, 1.5, generator=torch.Generator().manual_seed(len(name)))
    return Policy(decoder=decoder, tokenizer=TOKENIZER)


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS.keys())
def test_transformers_loads_the_directory_and_gives_the_same_logits(tmp_path, fields):
    ours = policy(**fields)
    ours.save(tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path)
    token_BT = torch.randint(0, TOKENIZER.size, (4, 48), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        ours_BTV, theirs_BTV = ours.decoder(token_BT), theirs(token_BT).logits
    assert type(theirs).__name__ == "LlamaForCausalLM"
    assert theirs_BTV.dtype == torch.float32
    assert ours_BTV.std() > 0.5
    torch.testing.assert_close(ours_BTV, theirs_BTV, atol=1e-5, rtol=0)


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS.keys())
def test_loading_gives_the_same_bits(tmp_path, fields):
    stored = policy(**fields)
    stored.save(tmp_path)
    loaded = Policy.load(tmp_path)
    assert loaded.tokenizer == stored.tokenizer
    before, after = stored.decoder.state_dict(), loaded.decoder.state_dict()
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    tied = loaded.decoder.lm_head.weight.data_ptr() == loaded.decoder.model.embed_tokens.weight.data_ptr()
    assert tied == stored.decoder.architecture.tied
    token_BT = torch.arange(10).expand(2, 10)
    assert torch.equal(stored.decoder(token_BT), loaded.decoder(token_BT))


def test_saving_twice_gives_the_same_files(tmp_path):
    for name in ("first", "second"):
        policy().save(tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert files == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    for name in files:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_transformers_generates_the_greedy_completion_that_we_sample(tmp_path):
    ours = policy(initial_std=0.3)
    ours.save(tmp_path)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    texts = ["1+2=", "(m10+3)*5=", "7"]
    batch = tokenizer(texts, return_tensors="pt", padding=True)  # left padding, as its generate() needs
    theirs = model.generate(**batch, do_sample=False, max_new_tokens=12)[:, batch["input_ids"].shape[1] :]
    completions = ours.sample(TOKENIZER.encode_many(texts), max_new_tokens=12, greedy=True)
    assert completions.token_BT.tolist() == theirs.tolist()


def test_transformers_reads_the_special_tokens_and_the_context(tmp_path):
    policy().save(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    for config in (model.config, GenerationConfig.from_pretrained(tmp_path)):
        assert (config.pad_token_id, config.bos_token_id, config.eos_token_id) == (0, 1, 2)
    assert model.config.max_position_embeddings == 48


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_architecture_is_read_back(tmp_path, fields):
    stored = policy(**fields).decoder.architecture
    policy(**fields).save(tmp_path)
    read = declared_architecture(json.loads((tmp_path / "config.json").read_text()))
    for name in ("layers", "width", "heads", "key_value_heads", "inner_width", "context", "tied", "rope_theta"):
        assert getattr(read, name) == getattr(stored, name), name
    assert (read.norm_epsilon, read.initial_std) == (stored.norm_epsilon, stored.initial_std)


@pytest.mark.parametrize(
    ("entry", "value", "complaint"),
    [
        ("model_type", "mistral", "model_type='llama', got 'mistral'"),
        ("hidden_act", "gelu", "hidden_act='silu', got 'gelu'"),
        ("attention_bias", True, "attention_bias=False, got True"),
        ("rope_theta", "high", "a decimal number under rope_theta, got 'high'"),
        ("hidden_size", None, "a whole number under hidden_size, got None"),
    ],
)
def test_another_kind_of_model_is_refused(tmp_path, entry, value, complaint):
    policy().save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, entry: value}))
    with pytest.raises(ValueError, match=complaint):
        load_directory(tmp_path)


def test_weights_of_another_precision_are_refused(tmp_path):
    half = policy()
    half.decoder.to(torch.bfloat16)
    half.save(tmp_path)
    with pytest.raises(ValueError, match=r"must hold float32 weights, got \['torch.bfloat16'\]"):
        load_directory(tmp_path)


def test_a_decoder_with_another_vocabulary_than_its_tokenizer_is_refused():
    with pytest.raises(ValueError, match="the decoder has 23 tokens and the tokenizer 4"):
        Policy(decoder=policy().decoder, tokenizer=Tokenizer.of(("a",)))
