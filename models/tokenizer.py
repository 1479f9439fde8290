"""A closed-lexicon tokenizer: one token per symbol of the tasks, longest match first, white space without meaning."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import tokenizers
from tokenizers import models, pre_tokenizers

SPECIALS: Final = ("<pad>", "<bos>", "<eos>")
RARE_SPECIALS: Final = ("⟨pad⟩", "⟨bos⟩", "⟨eos⟩")
"""In mathematical brackets: for lexicons that spell the usual names, such as one of all ASCII characters."""

UNKNOWN: Final = 255  # stands in a table of bytes for what is no symbol
WHITE: Final = bytes(code for code in range(128) if chr(code).isspace())

TOKENIZER_FILE: Final = "tokenizer.json"
TOKENIZER_CONFIG_FILE: Final = "tokenizer_config.json"


class Tokenizer:
    """Text to token ids and back: ``<pad>``, ``<bos>``, ``<eos>``, then the symbols in their given order.

    Where symbols can be joined to read the name of a special token, the special tokens have the names RARE_SPECIALS.

    Texts are read from left to right, the longest symbol first; white space ends a symbol and is skipped. Reading
    runs in Python, which for texts of tens of symbols is faster than crossing into the ``tokenizers`` library and
    starts no threads: by a table of bytes where all symbols are single ASCII characters, symbol by symbol where white
    space stands between all of them, and else by one compiled pattern. ``save`` writes the same rules for
    ``tokenizers`` and transformers.
    """

    __slots__ = ("_byte_table", "_id_of", "_pattern", "symbols", "vocabulary")

    def __init__(self, symbols: tuple[str, ...]) -> None:
        _check_symbols(symbols)
        self.symbols: Final = symbols
        self.vocabulary: Final = (*_specials(symbols), *symbols)
        self._id_of: Final = {symbol: index for index, symbol in enumerate(self.vocabulary)}
        self._pattern: Final = re.compile(_longest_match(symbols))
        self._byte_table: Final = _byte_table(self._id_of, symbols)

    @classmethod
    def of(cls, symbols: tuple[str, ...]) -> Tokenizer:
        """The tokenizer whose vocabulary is the three special tokens, then ``symbols`` in order."""
        return cls(symbols)

    @property
    def size(self) -> int:
        """Number of tokens, special ones included."""
        return len(self.vocabulary)

    @property
    def pad(self) -> int:
        """Id of the token that fills rows up."""
        return 0

    @property
    def bos(self) -> int:
        """Id of the token that begins a row."""
        return 1

    @property
    def eos(self) -> int:
        """Id of the token that ends a completion."""
        return 2

    def encode(self, text: str) -> list[int]:
        """Ids of the symbols of ``text``; no special token is added.

        Raises:
            ValueError: where the text leaves the lexicon; the message names the piece and its position.
        """
        if self._byte_table is not None:
            if text.isascii() and UNKNOWN not in (ids := text.encode().translate(self._byte_table, WHITE)):
                return list(ids)
        else:
            try:
                return [self._id_of[piece] for piece in text.split()]
            except KeyError:  # a piece is several symbols, or none
                pass
        read = self._pattern.findall(text)
        if sum(map(len, read)) != len(text) and "".join(read) != "".join(text.split()):
            raise ValueError(self._describe_unknown(text))
        id_of = self._id_of
        return [id_of[symbol] for symbol in read]

    def encode_many(self, texts: Iterable[str]) -> list[list[int]]:
        """``encode`` of each text."""
        encode = self.encode
        return [encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of the symbols, joined tightly, with one space exactly where tight joining would read differently.

        Special tokens are skipped. For symbol ids, ``encode(decode(ids)) == list(ids)``.
        """
        vocabulary = self.vocabulary
        try:
            symbols = [vocabulary[index] for index in ids if index >= len(SPECIALS)]
        except IndexError:
            raise ValueError(f"token ids must be below {self.size}, got {max(ids)}") from None
        if ids and min(ids) < 0:
            raise ValueError(f"token ids must not be negative, got {min(ids)}")
        tight = "".join(symbols)
        if self._pattern.findall(tight) == symbols:
            return tight
        return self._join(symbols)

    def save(self, directory: Path) -> None:
        """Write ``tokenizer.json`` and ``tokenizer_config.json``; ``transformers.AutoTokenizer`` reads the same ids."""
        self.backend().save(str(directory / TOKENIZER_FILE))
        pad, bos, eos = self.vocabulary[: len(SPECIALS)]
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": pad,
            "bos_token": bos,
            "eos_token": eos,
            # Left, as transformers' own batched generation needs it; ours pads on the right.
            "padding_side": "left",
            "clean_up_tokenization_spaces": False,
            "model_input_names": ["input_ids", "attention_mask"],
        }
        text = json.dumps(config, indent=2, sort_keys=True) + "\n"
        (directory / TOKENIZER_CONFIG_FILE).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> Tokenizer:
        """The tokenizer that ``save`` wrote into ``directory``."""
        path = directory / TOKENIZER_FILE
        stored = json.loads(path.read_text(encoding="utf-8"))
        id_of: dict[str, int] = stored["model"]["vocab"]
        vocabulary = tuple(sorted(id_of, key=id_of.__getitem__))
        specials, symbols = vocabulary[: len(SPECIALS)], vocabulary[len(SPECIALS) :]
        if specials not in (SPECIALS, RARE_SPECIALS) or stored["model"].get("type") != "WordLevel":
            raise ValueError(
                f"{path} is not a closed-lexicon tokenizer: its vocabulary must begin with {', '.join(SPECIALS)},"
                f" got {', '.join(specials)}"
            )
        return cls(symbols)

    def backend(self) -> tokenizers.Tokenizer:
        """The same rules as a ``tokenizers.Tokenizer``."""
        built = tokenizers.Tokenizer(models.WordLevel(dict(self._id_of)))  # no unknown token: foreign text is an error
        built.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(tokenizers.Regex(r"\s+"), "removed"),
                pre_tokenizers.Split(tokenizers.Regex(_longest_match(self.symbols)), "isolated"),
            ]
        )
        specials = self.vocabulary[: len(SPECIALS)]
        built.add_special_tokens([tokenizers.AddedToken(token, special=True, normalized=False) for token in specials])
        return built

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self.symbols == other.symbols

    def __hash__(self) -> int:
        return hash(self.symbols)

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[tuple[str, ...]]]:
        return Tokenizer, (self.symbols,)

    def __repr__(self) -> str:
        return f"Tokenizer.of({self.symbols!r})"

    def _join(self, symbols: Sequence[str]) -> str:
        """Join greedily: a symbol goes tightly to the chunk before it if the longer chunk still reads the same."""
        chunks: list[str] = []
        chunk: list[str] = []
        for symbol in symbols:
            longer = [*chunk, symbol]
            if self._pattern.findall("".join(longer)) == longer:
                chunk = longer
            else:
                chunks.append("".join(chunk))
                chunk = [symbol]
        return " ".join([*chunks, "".join(chunk)])

    def _describe_unknown(self, text: str) -> str:
        position = 0
        while position < len(text):
            found = self._pattern.match(text, position)
            if found:
                position = found.end()
            elif text[position].isspace():
                position += 1
            else:
                break
        piece = text[position:].split(maxsplit=1)[0]
        return (
            f"{piece!r} at position {position} of {text!r} begins with no symbol of the lexicon;"
            f" it has {len(self.symbols)} symbols: {_preview(self.symbols)}"
        )


def _byte_table(id_of: Mapping[str, int], symbols: tuple[str, ...]) -> bytes | None:
    """The id of each ASCII character, UNKNOWN where it has none; None where symbols are longer or ids are too many."""
    if len(id_of) > UNKNOWN or not all(len(symbol) == 1 and symbol.isascii() for symbol in symbols):
        return None
    return bytes(id_of.get(chr(code), UNKNOWN) for code in range(256))


def _longest_match(endings: Collection[str]) -> str:
    r"""A pattern that matches one of ``endings``, the longest that fits.

    It branches character by character, so that reading takes as long for a thousand symbols as for ten: of "m1", "m10"
    and "+" it makes ``m(?:1(?:0)?)|\+``.
    """
    after: dict[str, list[str]] = {}
    for ending in endings:
        if ending:
            after.setdefault(ending[0], []).append(ending[1:])
    branches = []
    for first, rests in after.items():
        branch = _escape(first)
        if rests != [""]:
            branch += f"(?:{_longest_match(rests)})" + ("?" if "" in rests else "")
        branches.append(branch)
    return "|".join(branches)


def _escape(character: str) -> str:
    """``character`` as a pattern that Python's and the ``tokenizers`` library's regular expressions read alike."""
    return f"\\{character}" if character in string.punctuation else character


def _preview(symbols: tuple[str, ...], limit: int = 20) -> str:
    return " ".join(symbols[:limit]) + (" ..." if len(symbols) > limit else "")


def _check_symbols(symbols: tuple[str, ...]) -> None:
    if not symbols:
        raise ValueError("a lexicon needs at least one symbol, got none")
    seen: set[str] = set()
    for symbol in symbols:
        if not symbol:
            raise ValueError(f"symbols must not be empty, got {symbols!r}")
        if any(character.isspace() for character in symbol):
            raise ValueError(f"symbols must not contain white space, got {symbol!r}; white space only separates them")
        if symbol in seen:
            raise ValueError(f"symbols must be distinct, got {symbol!r} twice")
        seen.add(symbol)


def _specials(symbols: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the special tokens: the first that no text of the symbols can hold."""
    spelt = []
    for names in (SPECIALS, RARE_SPECIALS):
        found = next((name for name in names if _can_spell(symbols, name)), None)
        if found is None:
            return names
        spelt.append(repr(found))
    raise ValueError(
        f"the symbols can be joined to read {' and '.join(spelt)}, names of special tokens; rename one of them:"
        f" {_preview(symbols)}"
    )


def _can_spell(symbols: tuple[str, ...], word: str) -> bool:
    """Whether ``word`` can occur inside a text of symbols that are joined tightly.

    transformers looks for the names of special tokens before it looks for symbols, so such a text would be misread.
    """
    reached = {0} | {end for end in range(1, len(word)) if any(symbol.endswith(word[:end]) for symbol in symbols)}
    for start in range(len(word)):
        if start not in reached:
            continue
        rest = word[start:]
        if any(symbol.startswith(rest) for symbol in symbols):
            return True
        reached |= {start + len(symbol) for symbol in symbols if rest.startswith(symbol)}
    return any(word in symbol for symbol in symbols)
