"""The studies of this package: modules named like ``e01_what_it_asks`` that end with ``EXPERIMENT``.

Listing them reads the first line of each file and imports nothing, since a study's import takes torch with it.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import experiments
from experiments.experiment import Experiment
from experiments.naming import unknown

STUDY = re.compile(r"(e\d+)_\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study that can be run."""

    name: str
    """Short name, such as ``e01``."""
    module: str
    """Name of its module in ``experiments``."""
    headline: str
    """First line of the module's docstring."""


def studies() -> tuple[Study, ...]:
    """All studies, by name."""
    modules = sorted(entry.name for entry in pkgutil.iter_modules(experiments.__path__))
    matches = [match for name in modules if (match := STUDY.fullmatch(name))]
    return tuple(Study(name=match[1], module=match[0], headline=_headline(match[0])) for match in matches)


def experiment_named(name: str) -> Experiment:
    """The experiment of a study, by its short name or its module's name.

    Raises:
        UnknownNameError: with the closest name and all others.
        ValueError: when the module does not end with an ``EXPERIMENT``.
    """
    known = {study.name: study for study in studies()} | {study.module: study for study in studies()}
    if name not in known:
        raise unknown("experiment", name, (study.name for study in studies()))
    module = f"{experiments.__name__}.{known[name].module}"
    declared = getattr(importlib.import_module(module), "EXPERIMENT", None)
    if not isinstance(declared, Experiment):
        message = f"{module} declares no experiment; end the file with EXPERIMENT: Final = Experiment(...)"
        raise ValueError(message)  # noqa: TRY004  # what is wrong is the file, not the type of an argument
    return declared


def _headline(module: str) -> str:
    spec = find_spec(f"{experiments.__name__}.{module}")
    if spec is None or spec.origin is None:
        return ""
    docstring = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8")))
    return docstring.splitlines()[0] if docstring else ""
