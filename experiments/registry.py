"""The registry: what a store has in writing about an experiment, as files that are never changed.

Layout of an experiment's folder::

    claims.json                     the claims and checks that were registered first
    claims-<fingerprint>.json       those of a later run, where they differ
    designs/<scale>/<seed>.json     stages and evaluations of a scale at a seed, as they were registered first
    designs/<scale>/<seed>-<fingerprint>.json
    runs.jsonl                      one line per run that was started

An entry carries the fingerprint of its content, so that an edit shows. A line of ``runs.jsonl`` that a full disk or a
lost power supply cut is counted and skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from experiments.store import StoreError
from testbeds.identity import canonical, digest

CLAIMS = "claims.json"
DESIGNS = "designs"
RUNS = "runs.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One registered object, as it stands in its file."""

    fingerprint: str
    registered: str
    """When, in UTC."""
    content: Mapping[str, Any]
    """Its canonical form."""
    sound: bool
    """Whether the content has the fingerprint that stands beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run that was started."""

    time: str
    """In UTC."""
    scale: str
    seeds: tuple[int, ...]


def enter(file: Path, field: str, declared: object, *, moment: str) -> Entry:
    """The entry of ``file``, which is written if it is not there.

    Where another one stands there, it stays, and ``declared`` goes beside it under a name with its fingerprint.
    """
    content = canonical_json(declared)
    today = _fingerprint(content)
    written = {"fingerprint": today, "registered": moment, field: content}
    file.parent.mkdir(parents=True, exist_ok=True)
    _write_if_absent(file, written)
    first = entry(file, field)
    if first.fingerprint != today:
        _write_if_absent(file.with_name(f"{file.stem}-{today}{file.suffix}"), written)
    return first


def entry(file: Path, field: str) -> Entry:
    """The entry of ``file``.

    Raises:
        StoreError: if it is not one; the message names the remedy.
    """
    try:
        found = json.loads(file.read_bytes())
    except ValueError as error:
        raise unreadable(file, f"is not JSON ({error})") from None
    for name, kind in (("fingerprint", str), ("registered", str), (field, dict)):
        if not isinstance(found, dict) or not isinstance(found.get(name), kind):
            raise unreadable(file, f"has no entry {name!r}")
    try:
        since = datetime.fromisoformat(found["registered"])
    except ValueError:
        raise unreadable(file, f"was registered at {found['registered']!r}, which is no time") from None
    if since.tzinfo is None:
        raise unreadable(file, f"was registered at {found['registered']!r}, which names no time zone")
    return Entry(
        fingerprint=found["fingerprint"],
        registered=found["registered"],
        content=found[field],
        sound=_fingerprint(found[field]) == found["fingerprint"],
    )


def canonical_json(declared: object) -> dict[str, Any]:
    """A declared object as it would be read back from a file."""
    content: dict[str, Any] = json.loads(json.dumps(canonical(declared)))
    return content


def note_run(file: Path, run: Run, fingerprint: str) -> None:
    """Appends a line for a run, on a line of its own even where the last one was cut."""
    line = json.dumps({"time": run.time, "scale": run.scale, "seeds": run.seeds, "fingerprint": fingerprint})
    with file.open("a+b") as log:
        start = b""
        if log.tell():
            log.seek(-1, os.SEEK_END)
            start = b"" if log.read(1) == b"\n" else b"\n"
        log.write(start + line.encode() + b"\n")  # one short write, so that the lines of two drivers do not mix


def runs(file: Path) -> tuple[tuple[Run, ...], int]:
    """The runs of a log, oldest first, and the number of lines that cannot be read."""
    if not file.exists():
        return (), 0
    lines = [line for line in file.read_bytes().splitlines() if line.strip()]
    read = [found for line in lines if (found := _run(line)) is not None]
    return tuple(read), len(lines) - len(read)


def _run(line: bytes) -> Run | None:
    try:
        found = json.loads(line)
        return Run(time=str(found["time"]), scale=str(found["scale"]), seeds=tuple(int(s) for s in found["seeds"]))
    except (ValueError, KeyError, TypeError):
        return None


def _fingerprint(content: Mapping[str, Any]) -> str:
    """As ``testbeds.identity.fingerprint`` of the declared object: canonical forms survive JSON."""
    return digest(json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode())


def unreadable(file: Path, fault: str) -> StoreError:
    """The error for a file that is no entry, with the remedy."""
    return StoreError(
        f"{file} {fault}; restore it from a copy of the store, or delete it: the next run then registers anew, and the"
        " report says which artifacts are older"
    )


def _write_if_absent(path: Path, content: object) -> None:
    """Writes JSON to ``path`` unless it exists; never half a file, and of two writers the first one wins."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with temporary.open("w", encoding="utf-8") as out:
            json.dump(content, out, indent=2)
            out.flush()
            os.fsync(out.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        temporary.unlink(missing_ok=True)
