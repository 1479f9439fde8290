"""From canonical JSON back to declared objects: what an artifact's ``recipe.json`` says can be asked again.

Only frozen dataclasses of the laboratory's own packages are built, so that a file can name no other class.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

from testbeds.identity import Canonical, qualified_name

PACKAGES = ("testbeds", "models", "training", "experiments")
CLASS, REVISION, FIELD = "class", "revision", "."


def revive(form: Canonical, packages: tuple[str, ...] = PACKAGES) -> Any:  # noqa: ANN401  # whatever class the form names
    """The object whose canonical form this is.

    Raises:
        ValueError: for a class that does not exist any more, that has another revision or other fields today, or for
            JSON that is no canonical form.
    """
    if isinstance(form, list):
        return tuple(revive(item, packages) for item in form)
    if not isinstance(form, dict):
        return form
    if set(form) == {"float"}:
        return _float(form["float"])
    cls = _class_named(str(form.get(CLASS)), packages)
    if getattr(cls, REVISION, 1) != form.get(REVISION):
        raise ValueError(
            f"{qualified_name(cls)} was declared at revision {form.get(REVISION)}, and is at"
            f" {getattr(cls, REVISION, 1)} today: the same declaration means something else now"
        )
    entries = {
        name.removeprefix(FIELD): revive(value, packages) for name, value in form.items() if name.startswith(FIELD)
    }
    try:
        return cls(**entries)
    except (TypeError, AttributeError) as error:  # fields that the class has not, or values of another kind
        raise ValueError(f"{qualified_name(cls)} cannot be made of the fields {sorted(entries)}: {error}") from error


def parts_of_class(form: Canonical, cls: type) -> Iterator[Canonical]:
    """Every part of a canonical form that stands for an instance of ``cls``, in order of appearance."""
    if isinstance(form, list):
        for item in form:
            yield from parts_of_class(item, cls)
    elif isinstance(form, dict):
        if form.get(CLASS) == qualified_name(cls):
            yield form
        for value in form.values():
            yield from parts_of_class(value, cls)


def _float(text: Canonical) -> float:
    try:
        return float.fromhex(str(text))
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no hexadecimal float") from None


def _class_named(name: str, packages: tuple[str, ...]) -> type:
    module, _, attribute = name.rpartition(".")
    if module.partition(".")[0] in packages:
        try:
            found = getattr(importlib.import_module(module), attribute, None)
        except ModuleNotFoundError:
            found = None
        if isinstance(found, type) and is_dataclass(found):
            return found
    raise ValueError(f"{name!r} is no declared class of the laboratory; was it renamed, or made by another version?")
