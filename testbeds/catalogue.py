"""The catalogue: every testbed of the package, found by its modules' closing constants.

A testbed is a module or a sub-package, at any depth, that ends with ``TESTBED: Final[type[Task]]`` and, for named
difficulties, with ``LEVELS: Final[dict[str, Task]]``; the last part of the module's name is the testbed's. The
catalogue serves the command line, the gallery and the contract tests; experiments import the class itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
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


@cache
def _modules() -> dict[str, ModuleType]:
    found: dict[str, ModuleType] = {}
    for entry in pkgutil.walk_packages(testbeds.__path__, f"{testbeds.__name__}."):
        module = importlib.import_module(entry.name)
        if hasattr(module, "TESTBED"):
            name = entry.name.rpartition(".")[2]
            if name in found:
                raise ValueError(
                    f"two testbeds are called {name!r}: {found[name].__name__} and {entry.name}; rename one"
                )
            found[name] = module
    return dict(sorted(found.items()))
