"""What to say of a name that does not exist: the closest one that does, and all of them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UnknownNameError(ValueError):
    """A name that was asked for and does not exist."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for an unknown ``name`` of a ``kind`` of thing."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(names) if names else "none"
    return UnknownNameError(f"there is no {kind} {name!r}{hint} (known: {listed})")
