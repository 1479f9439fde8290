"""How texts are read as symbols: the longest symbol first, from left to right; white space ends a symbol."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache


@lru_cache(maxsize=64)  # lexicons that one process looks at
def _pattern(symbols: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(symbol) for symbol in sorted(symbols, key=len, reverse=True)))


def read(text: str, symbols: tuple[str, ...]) -> list[str]:
    """The symbols of ``text``, by the rule of ``models.Tokenizer`` and without torch; what is no symbol is skipped."""
    return _pattern(symbols).findall(text)


def spaced(text: str, symbols: tuple[str, ...]) -> str:
    """The text with one space between all its symbols: it reads the same in any lexicon that has them, too."""
    return " ".join(read(text, symbols))


def can_be_misread(own: Collection[str], foreign: Collection[str]) -> str | None:
    """A symbol of ``foreign`` that begins some tight joining of ``own`` symbols and is longer than the first of them.

    In a common lexicon that text would be read differently: "12" beside "1" and "2". None where there is none.
    """
    pieces = set(own)
    return next((symbol for symbol in sorted(set(foreign) - pieces) if _spans(symbol, pieces)), None)


def _spans(symbol: str, pieces: Collection[str]) -> bool:
    """Whether ``symbol`` is a beginning of two or more joined pieces, longer than the first of them."""
    ends = {len(piece) for piece in pieces if len(piece) < len(symbol) and symbol.startswith(piece)}
    for start in range(1, len(symbol)):
        if start in ends:
            rest = symbol[start:]
            if any(piece.startswith(rest) for piece in pieces):
                return True
            ends |= {start + len(piece) for piece in pieces if rest.startswith(piece)}
    return False
