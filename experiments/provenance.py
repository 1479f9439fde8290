"""Under what a result was made: the code, the library versions and the kind of machine, as an artifact's record says.

No host names and no paths: the same work leaves the same kind of record.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PROJECT = "stagecraft"
RECORDED_PACKAGES = ("numpy", "torch", "lightning", PROJECT)
CODE = ("testbeds", "models", "training", "experiments")
"""Folders of a checkout whose files can move a result."""
ROOT = Path(__file__).parents[1]
GIT_PATIENCE_S = 10.0  # on a slow network file system; a record without a commit is better than a run that hangs


def library_versions() -> dict[str, str]:
    """The versions that may move a result's last bits."""
    return {"python": platform.python_version()} | {package: _version(package) for package in RECORDED_PACKAGES}


@cache  # once in a process, when it begins: what it imports is what was there then
def code_identity(root: Path = ROOT) -> dict[str, str | bool]:
    """``version`` of the project and, where ``root`` is a git checkout, its ``commit`` and whether it is ``dirty``.

    Dirty is a checkout with changed or untracked files in the packages: the commit alone does not give that code back.
    """
    identity: dict[str, str | bool] = {"version": _version(PROJECT)}
    if not (root / ".git").exists():
        return identity
    commit = _git(root, "rev-parse", "--verify", "HEAD")
    changes = _git(root, "status", "--porcelain", "--untracked-files=normal", "--", *CODE)
    if commit is None or changes is None:
        return identity
    return identity | {"commit": commit, "dirty": bool(changes)}


def machine_kind() -> dict[str, str]:
    """Architecture, and the vector instructions that torch uses where torch had a part in the work."""
    kind = {"architecture": platform.machine()}
    if torch := sys.modules.get("torch"):
        kind["cpu_capability"] = torch.backends.cpu.get_cpu_capability()
    return kind


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _git(root: Path, *arguments: str) -> str | None:
    """What git answers, without taking its locks; None where it is not installed or refuses."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(root), *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=GIT_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
