import json
import pickle
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from models.tokenizer import Tokenizer

GLUEY = ("1", "15", "5", "m1", "m10", "m", "0", "+", "->", "-", ">", "=", "é", "éé")
ARITHMETIC = tuple("0123456789+-*/=(),")
DETERMINISTIC = settings(derandomize=True, max_examples=200, deadline=None)


def ids_of(size):
    return st.lists(st.integers(3, size - 1), max_size=12)


@DETERMINISTIC
@given(ids_of(len(GLUEY) + 3))
def test_decoded_ids_encode_to_the_same_ids_even_where_symbols_glue(ids):
    tokenizer = Tokenizer.of(GLUEY)
    assert tokenizer.encode(tokenizer.decode(ids)) == ids


@DETERMINISTIC
@given(st.data())
def test_decoded_ids_encode_to_the_same_ids_for_any_lexicon(data):
    symbols = data.draw(st.lists(st.text("ab|.", min_size=1, max_size=3), min_size=1, max_size=8, unique=True))
    tokenizer = Tokenizer.of(tuple(symbols))
    ids = data.draw(ids_of(tokenizer.size))
    assert tokenizer.encode(tokenizer.decode(ids)) == ids


@DETERMINISTIC
@given(st.text(st.sampled_from((*ARITHMETIC, " ", "\n", "\x1f", "?", "é", "\ud800", "\x00", "\x7f")), max_size=12))
def test_single_character_symbols_are_read_one_by_one_and_strange_ones_are_refused(text):
    tokenizer = Tokenizer.of(ARITHMETIC)
    characters = [character for character in text if not character.isspace()]
    if all(character in ARITHMETIC for character in characters):
        assert tokenizer.encode(text) == [3 + ARITHMETIC.index(character) for character in characters]
    else:
        with pytest.raises(ValueError, match="begins with no symbol of the lexicon"):
            tokenizer.encode(text)


@DETERMINISTIC
@given(ids_of(len(GLUEY) + 3))
def test_every_space_of_a_decoded_text_is_needed(ids):
    tokenizer = Tokenizer.of(GLUEY)
    text = tokenizer.decode(ids)
    for space in re.finditer(" ", text):
        tighter = text[: space.start()] + text[space.end() :]
        assert tokenizer.encode(tighter) != ids


@pytest.fixture(scope="module")
def transformers_tokenizer(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tokenizer")
    Tokenizer.of(GLUEY).save(directory)
    return AutoTokenizer.from_pretrained(directory)


@settings(DETERMINISTIC, max_examples=100)
@given(st.lists(st.sampled_from((*GLUEY, " ", "\n", "\t", "  ")), max_size=12).map("".join))
def test_transformers_reads_every_text_as_we_do(transformers_tokenizer, text):
    assert transformers_tokenizer(text)["input_ids"] == Tokenizer.of(GLUEY).encode(text)


def test_transformers_knows_the_special_tokens(transformers_tokenizer):
    assert transformers_tokenizer.pad_token_id == 0
    assert transformers_tokenizer.bos_token_id == 1
    assert transformers_tokenizer.eos_token_id == 2
    assert len(transformers_tokenizer) == 3 + len(GLUEY)
    assert set(transformers_tokenizer("1")) == {"input_ids", "attention_mask"}  # generate() refuses token_type_ids


def test_the_text_that_transformers_decodes_encodes_to_the_same_ids(transformers_tokenizer):
    ids = list(range(3, 3 + len(GLUEY)))
    assert Tokenizer.of(GLUEY).encode(transformers_tokenizer.decode(ids)) == ids


def test_transformers_reads_every_punctuation_mark_as_we_do(tmp_path):
    tokenizer = Tokenizer.of(tuple(string.punctuation))
    tokenizer.save(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path)(string.punctuation)["input_ids"] == list(range(3, 3 + 32))
    assert tokenizer.encode(string.punctuation) == list(range(3, 3 + 32))


def test_symbols_come_after_the_special_tokens_in_their_given_order():
    tokenizer = Tokenizer.of(("b", "a"))
    assert (tokenizer.pad, tokenizer.bos, tokenizer.eos, tokenizer.size) == (0, 1, 2, 5)
    assert tokenizer.encode("ab") == [4, 3]


def test_the_longest_symbol_is_read_first_and_white_space_ends_it():
    tokenizer = Tokenizer.of(("m1", "m10", "0", "1"))  # ids 3, 4, 5, 6
    assert tokenizer.encode("m10") == [4]
    assert tokenizer.encode("m1 0") == [3, 5]
    assert tokenizer.encode(" 1\n0 ") == [6, 5]
    assert tokenizer.encode("") == []


def test_a_space_is_written_only_where_joining_would_read_differently():
    tokenizer = Tokenizer.of(("1", "15", "5", "+"))  # ids 3, 4, 5, 6
    assert tokenizer.decode([3, 5]) == "1 5"  # "15" would be one symbol
    assert tokenizer.decode([3, 6, 5]) == "1+5"
    assert tokenizer.decode([5, 3]) == "51"


def test_special_tokens_are_not_decoded():
    tokenizer = Tokenizer.of(("a", "b"))
    assert tokenizer.decode([1, 3, 4, 2, 0, 0]) == "ab"


def test_many_texts_encode_like_one_text_each():
    tokenizer = Tokenizer.of(ARITHMETIC)
    texts = ["3*5=15", "", "15 + 7 = 22"]
    assert tokenizer.encode_many(texts) == [tokenizer.encode(text) for text in texts]


def test_saving_and_loading_keeps_the_vocabulary(tmp_path):
    tokenizer = Tokenizer.of(GLUEY)
    tokenizer.save(tmp_path)
    assert Tokenizer.load(tmp_path) == tokenizer
    assert Tokenizer.load(tmp_path).vocabulary == tokenizer.vocabulary
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer


def test_loading_a_tokenizer_of_another_kind_is_refused(tmp_path):
    tokenizer = Tokenizer.of(("a",))
    tokenizer.save(tmp_path)
    stored = json.loads((tmp_path / "tokenizer.json").read_text())
    stored["model"]["vocab"] = {"a": 0}
    (tmp_path / "tokenizer.json").write_text(json.dumps(stored))
    with pytest.raises(ValueError, match="must begin with <pad>, <bos>, <eos>, got a"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "piece", "position"), [("1 + x7 = 3", "'x7'", 4), ("y", "'y'", 0), ("12<bos>", "'<bos>'", 2)]
)
def test_text_outside_the_lexicon_is_named_with_its_position(text, piece, position):
    with pytest.raises(ValueError, match=f"{piece} at position {position} of"):
        Tokenizer.of(ARITHMETIC).encode(text)


@pytest.mark.parametrize(
    ("symbols", "complaint"),
    [
        ((), "at least one symbol"),
        (("a", "b", "a"), "'a' twice"),
        (("a", "b c"), "white space, got 'b c'"),
        (("a", ""), "not be empty"),
        (("<eos>", "⟨", "bos", "⟩"), "joined to read '<eos>' and '⟨bos⟩'"),
    ],
)
def test_an_unreadable_lexicon_is_refused(symbols, complaint):
    with pytest.raises(ValueError, match=complaint):
        Tokenizer.of(symbols)


@pytest.mark.parametrize(
    "symbols",
    [
        ("<pad>",),
        ("a", "x<eos>y"),
        ("<", "bos", ">"),  # three harmless symbols that glue to a special token
        ("a<", "p", "a", "d>b"),
        tuple(chr(code) for code in range(33, 127)),  # every printable character, as the texts of reasoning-gym have
    ],
)
def test_special_tokens_have_other_names_where_the_symbols_spell_the_usual_ones(tmp_path, symbols):
    tokenizer = Tokenizer.of(symbols)
    assert tokenizer.vocabulary == ("⟨pad⟩", "⟨bos⟩", "⟨eos⟩", *symbols)
    tokenizer.save(tmp_path)
    assert Tokenizer.load(tmp_path) == tokenizer
    read = AutoTokenizer.from_pretrained(tmp_path)
    assert (read.pad_token_id, read.bos_token_id, read.eos_token_id) == (0, 1, 2)
    text = "".join(symbols) + "".join(sorted(symbols, reverse=True))
    assert read(text)["input_ids"] == tokenizer.encode(text)
    assert not {0, 1, 2} & set(tokenizer.encode(text))


def test_a_lexicon_that_only_comes_close_to_a_special_token_is_accepted():
    assert Tokenizer.of(("<", ">", "pa", "os")).encode("<pa>") == [3, 5, 4]  # no "d", no "b", no "e"


def test_ids_outside_the_vocabulary_are_refused():
    tokenizer = Tokenizer.of(("a", "b"))
    with pytest.raises(ValueError, match="below 5, got 5"):
        tokenizer.decode([3, 5])
    with pytest.raises(ValueError, match="negative, got -1"):
        tokenizer.decode([-1])
