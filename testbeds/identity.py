"""Fingerprints: what makes two declared objects the same object of science.

``fingerprint`` hashes the qualified class name, the class's ``revision`` and all fields, recursively. Two classes
with equal fields differ; defaults count; ``1`` and ``1.0`` are equal where the annotation says ``float``, inside a
tuple too. Code is not hashed: ``revision`` speaks for it. What cannot be compared by value (functions, sets, NaN,
lists) is refused.
"""

from __future__ import annotations

import json
import math
import typing
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b
from types import UnionType
from typing import Union, get_args, get_origin

DIGEST_BYTES = 16  # 128 bits: no collision in any store that fits on a disk

Canonical = None | bool | int | str | list["Canonical"] | dict[str, "Canonical"]


def canonical(declared: object, *, where: str = "value") -> Canonical:
    """The JSON-ready canonical form of a declared object, from which its fingerprint is taken.

    Raises:
        TypeError: for a value that has no stable identity; the message names its place and what to use instead.
        ValueError: for NaN and infinities.
    """
    match declared:
        case None | bool() | int() | str():
            return declared
        case float():
            return _canonical_float(declared, where)
        case tuple():
            return [canonical(item, where=f"{where}[{i}]") for i, item in enumerate(declared)]
    if is_dataclass(declared) and not isinstance(declared, type):
        return _canonical_dataclass(declared, where)
    raise TypeError(f"{where} is {_kind(declared)}, which has no stable identity; {_remedy(declared)}")


def fingerprint(declared: object) -> str:
    """32 hexadecimal digits that identify a declared object by class, revision and fields."""
    return digest(json.dumps(canonical(declared), sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode())


def digest(content: bytes) -> str:
    """32 hexadecimal digits of BLAKE2b over ``content``."""
    return blake2b(content, digest_size=DIGEST_BYTES).hexdigest()


def qualified_name(cls: type) -> str:
    """The name by which a class is identified: module and qualified name."""
    return f"{cls.__module__}.{cls.__qualname__}"


def _canonical_float(number: float, where: str) -> Canonical:
    if not math.isfinite(number):
        raise ValueError(
            f"{where} is {number}, which is not equal to itself or not finite; use None or a finite number"
        )
    return {"float": number.hex()}


def _canonical_dataclass(declared: object, where: str) -> Canonical:
    cls: type = type(declared)
    hints = _hints(cls)
    entries: dict[str, Canonical] = {
        "class": qualified_name(cls),
        "revision": getattr(cls, "revision", 1),
    }
    for entry in fields(declared):  # type: ignore[arg-type]  # is_dataclass was checked by the caller
        value = _as_annotated(getattr(declared, entry.name), hints[entry.name])
        entries[f".{entry.name}"] = canonical(value, where=f"{where}.{entry.name}")
    return entries


@cache
def _hints(cls: type) -> dict[str, object]:
    return typing.get_type_hints(cls)


def _as_annotated(value: object, hint: object) -> object:
    """The value with whole numbers made floats where the annotation says ``float``, inside tuples too.

    ``float | None`` says so; ``int | float`` does not.
    """
    if get_origin(hint) in (Union, UnionType):
        members = [member for member in get_args(hint) if member is not type(None)]
        return _as_annotated(value, members[0]) if len(members) == 1 else value
    if type(value) is int and hint is float:
        return float(value)
    if isinstance(value, tuple) and get_origin(hint) is tuple:
        inner = get_args(hint)
        inner = inner[:1] * len(value) if inner[-1:] == (...,) else inner
        if len(inner) == len(value):
            return tuple(_as_annotated(item, item_hint) for item, item_hint in zip(value, inner, strict=True))
    return value


def _kind(declared: object) -> str:
    return f"{declared!r} of type {type(declared).__qualname__}"


def _remedy(declared: object) -> str:
    if callable(declared):
        return "use a frozen dataclass with __call__ instead of a function or a class"
    if isinstance(declared, set | frozenset):
        return "use a sorted tuple instead"
    if isinstance(declared, list):
        return "use a tuple instead"
    if isinstance(declared, dict):
        return "use a frozen dataclass, or a tuple of (name, value) pairs, instead"
    return "use None, bool, int, float, str, a tuple or a frozen dataclass"
