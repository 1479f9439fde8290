"""The catalogue: every testbed of the package, found by its modules' closing constants.

A testbed is a module (or a sub-package) that ends with ``TESTBED: Final[type[Task]]`` and, for named difficulties, with
``LEVELS: Final[dict[str, Task]]``. The catalogue serves the command line, the gallery and the contract tests;
experiments import the class itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import testbeds
from testbeds.core import Task


def catalogue() -> dict[str, type[Task]]:
    """The class of each testbed by its name, which is its module's name, in alphabetical order."""
    return {name: module.TESTBED for name, module in _modules().items()}


def levels(name: str) -> dict[str, Task]:
    """The named difficulties of a testbed; the first is its default. Empty where it names none."""
    found = _modules()
    if name not in found:
        raise ValueError(f"there is no testbed {name!r}; these exist: {', '.join(found)}")
    return dict(getattr(found[name], "LEVELS", {}))


def task_named(name: str) -> Task:
    """The task that ``testbed`` or ``testbed/level`` names; without a level, the testbed's default."""
    testbed, _, level = name.partition("/")
    ladder = levels(testbed)
    if not ladder:
        raise ValueError(f"the testbed {testbed!r} names no levels; make its task in Python instead")
    if level and level not in ladder:
        raise ValueError(f"the testbed {testbed!r} has no level {level!r}; it has {', '.join(ladder)}")
    return ladder[level or next(iter(ladder))]


def _modules() -> dict[str, ModuleType]:
    names = sorted(entry.name for entry in pkgutil.iter_modules(testbeds.__path__))
    modules = {name: importlib.import_module(f"{testbeds.__name__}.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "TESTBED")}
