"""The studies of this package: modules named like ``e01_what_it_asks`` or ``e_what_it_asks``, with an ``EXPERIMENT``.

The first kind is called by its number, the second by its whole name.

Listing them reads the first line of each file and imports nothing, since a study's import takes torch with it. A file
that cannot be read is listed as such, and stops nobody who asks for another study.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import traceback
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import experiments
from experiments.experiment import Experiment
from experiments.naming import unknown
from experiments.worker import is_declared

STUDY = re.compile(r"(e\d+)_\w+|(e_\w+)")
IMPORT_SYSTEM = "<frozen importlib"


class StudyError(ValueError):
    """A study's file cannot be used; the message names the file, the line where there is one, and the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study that can be run, or at least listed."""

    name: str
    """Short name, such as ``e01``."""
    module: str
    """Name of its module in ``experiments``."""
    headline: str
    """First line of the module's docstring, or why it cannot be read."""


def studies() -> tuple[Study, ...]:
    """All studies, by name."""
    modules = sorted(entry.name for entry in pkgutil.iter_modules(experiments.__path__))
    matches = [match for name in modules if (match := STUDY.fullmatch(name))]
    return tuple(Study(name=match[1] or match[2], module=match[0], headline=_headline(match[0])) for match in matches)


def shared_names() -> frozenset[str]:
    """Short names that more than one file claims; neither of them can be run, since they would share one folder."""
    counts = Counter(study.name for study in studies())
    return frozenset(name for name, count in counts.items() if count > 1)


def experiment_named(name: str) -> Experiment:
    """The experiment of a study, by its short name or its module's name.

    Raises:
        UnknownNameError: with the closest name and all others.
        StudyError: when the file cannot be imported, does not end with an ``EXPERIMENT``, or has not its own name.
    """
    found = studies()
    known = {study.name: study for study in found} | {study.module: study for study in found}
    if name not in known:
        raise unknown("experiment", name, dict.fromkeys(study.name for study in found))
    study = known[name]
    modules = [each.module for each in found if each.name == study.name]
    if len(modules) > 1:
        raise StudyError(
            f"the name {study.name!r} belongs to {len(modules)} files ({', '.join(modules)}), whose results would share"
            " one folder; give each a number of its own"
        )
    return _declared(study)


def _declared(study: Study) -> Experiment:
    module = f"{experiments.__name__}.{study.module}"
    declared = getattr(_imported(module), "EXPERIMENT", None)
    if not isinstance(declared, Experiment):
        message = f"{module} declares no experiment; end the file with EXPERIMENT: Final = Experiment(...)"
        raise StudyError(message)  # what is wrong is the file, not the type of an argument
    if declared.name != study.name:
        raise StudyError(
            f"{module} declares an experiment named {declared.name!r}, whose results would stand in the folder of"
            f" another study; write name={study.name!r}, or rename the file"
        )
    return declared


def _imported(module: str) -> ModuleType:
    """The study's module; what its own lines do wrong becomes one message with file and line.

    What breaks deeper than that, without a message that says it all, is a fault of the program and keeps its traceback.
    """
    file = str(_file(module))
    try:
        return importlib.import_module(module)
    except SyntaxError as error:
        raise StudyError(f"{error.filename or file}, {_line(error.lineno)}{error.msg}") from error
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame.lineno for frame in frames if frame.filename == file]
        innermost = frames[-1].filename
        if innermost != file and not innermost.startswith(IMPORT_SYSTEM) and not is_declared(error):
            raise
        raise StudyError(f"{file}, {_line(own[-1] if own else None)}{type(error).__name__}: {error}") from error


def _line(number: int | None) -> str:
    return "" if number is None else f"line {number}: "


def _headline(module: str) -> str:
    file = _file(f"{experiments.__name__}.{module}")
    if file is None:
        return ""
    try:
        docstring = ast.get_docstring(ast.parse(file.read_bytes(), filename=str(file)))
    except SyntaxError as error:
        return f"(cannot be read: {_line(error.lineno).removesuffix(': ') or error.msg})"
    except (OSError, ValueError) as error:  # no permission, or bytes that are no text
        return f"(cannot be read: {error})"
    return docstring.splitlines()[0] if docstring else ""


def _file(module: str) -> Path | None:
    spec = find_spec(module)
    return None if spec is None or spec.origin is None else Path(spec.origin)
