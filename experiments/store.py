"""The store: finished work under the id of what it was made from, and nothing half-finished beside it.

Layout under the root::

    artifacts/<id[:2]>/<id>/    a finished artifact; record.json, its list of files and digests, was written last
    work/<id>/                  the workspace of a stage in work; it outlives a kill, and the next run finds it again
    locks/<id>.lock             one writer per id; the operating system releases the lock of a process that dies
    experiments/<name>/         claims and reports

A directory without ``record.json`` is not an artifact. What does not agree with its record is never served.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b, file_digest
from pathlib import Path, PurePosixPath
from typing import Any

from filelock import FileLock, Timeout

from experiments.provenance import code_identity, library_versions, machine_kind
from testbeds.identity import DIGEST_BYTES

RECORD = "record.json"
ARTIFACT = "artifact"
"""The directory of a workspace in which a job leaves its finished files."""
KINDS = ("stage", "evaluation")
LAYOUT = ("artifacts", "work", "locks", "experiments")
"""What a store consists of."""
HARMLESS = frozenset({"lost+found", ".gitignore", ".DS_Store"})
"""What an otherwise empty directory may hold and still become a store."""
PROBE_BYTES = 1 << 20  # a disk with less than a MiB left cannot take the smallest artifact
DIGEST_DIGITS = 2 * DIGEST_BYTES

TROUBLES = {
    errno.ENOSPC: ("is on a full disk", "free some space, or choose another --store"),
    errno.EDQUOT: ("is over its disk quota", "free some space, or choose another --store"),
    errno.EROFS: ("is on a read-only file system", "choose another --store"),
    errno.EACCES: ("may not be written", "change its permissions, or choose another --store"),
    errno.EPERM: ("may not be written", "change its permissions, or choose another --store"),
    errno.ENOTDIR: ("is not a directory", "choose another --store"),
    errno.EEXIST: ("is not a directory", "choose another --store"),
    errno.ENAMETOOLONG: ("has a name that is too long", "choose another --store"),
}
"""What an operating-system error means for a store, and the remedy."""
DISK_TROUBLES = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""The errors that speak of the disk, whatever file was written."""
ASKED_FIRST = "Not enough free space to write"  # numpy, which asks for the space before it takes any; without a number


class StoreError(Exception):
    """The store cannot do what was asked; the message names the place and the remedy."""


class DamagedArtifact(StoreError):  # noqa: N818  # the word of the project's vocabulary, and it is an error by itself
    """An artifact does not agree with its own record."""


class BusyArtifactError(StoreError):
    """Another process is making this artifact."""


class Store:
    """Finished and unfinished work below one directory, addressed by id. Creating the object touches no disk."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self._verified: set[str] = set()

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        """A copy in another process verifies for itself."""
        return (Store, (self.root,))

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r})"

    def location(self, artifact_id: str) -> Path:
        """Where the artifact stands, or would stand."""
        return self.root / "artifacts" / artifact_id[:2] / artifact_id

    def workspace(self, artifact_id: str) -> Path:
        """Where work on the artifact goes on, or would."""
        return self.root / "work" / artifact_id

    def experiment(self, name: str) -> Path:
        """The directory of an experiment's claims and reports; it may not exist yet."""
        return self.root / "experiments" / name

    def has(self, artifact_id: str) -> bool:
        """Whether the artifact is finished. One look at the disk; ``path`` verifies."""
        return (self.location(artifact_id) / RECORD).is_file()

    def ids(self) -> list[str]:
        """The ids of all finished artifacts, sorted."""
        return sorted(found.parent.name for found in (self.root / "artifacts").glob(f"*/*/{RECORD}"))

    def resolve(self, prefix: str) -> str:
        """The one id that starts with ``prefix``."""
        matches = [found for found in self.ids() if found.startswith(prefix)]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise StoreError(f"no artifact in {self.root} has an id that starts with {prefix!r}; see `stagecraft plan`")
        listed = ", ".join(matches[:5]) + (", ..." if len(matches) > 5 else "")
        raise StoreError(f"{len(matches)} artifacts start with {prefix!r} ({listed}); give more digits")

    def record(self, artifact_id: str) -> dict[str, Any]:
        """What ``record.json`` of a finished artifact says."""
        file = self.location(artifact_id) / RECORD
        if not file.is_file():
            raise StoreError(f"there is no finished artifact {artifact_id} in {self.root}; run it first")
        entries = read_record(file)
        if entries["id"] != artifact_id:
            raise damaged(file, f"belongs to the artifact {entries['id']!r}")
        return entries

    def check(self, artifact_id: str) -> Path:
        """The artifact's directory, when every recorded file is there in its recorded size. Reads no content."""
        return _check_sizes(self.location(artifact_id), self.record(artifact_id))

    def path(self, artifact_id: str, *, verify: bool = False) -> Path:
        """The artifact's directory. Sizes are compared always, digests on first use in a process or with ``verify``."""
        directory, record = self.location(artifact_id), self.record(artifact_id)
        _check_sizes(directory, record)
        if verify or artifact_id not in self._verified:
            _check_content(directory, record)
            self._verified.add(artifact_id)
        return directory

    def read(self, artifact_id: str, name: str) -> bytes | None:
        """The content of one file of a finished artifact, verified without its other files; None if it has no such."""
        entry = self.record(artifact_id)["files"].get(name)
        if entry is None:
            return None
        directory = self.location(artifact_id)
        _check_sizes(directory, {"files": {name: entry}})
        _check_content(directory, {"files": {name: entry}})
        return (directory / name).read_bytes()

    def refuse_foreign(self) -> None:
        """Nothing, if the root is a store or can become one: an empty directory, or none.

        Raises:
            StoreError: where the root holds other things, such as a checkout whose ``experiments`` is a package.
        """
        with explained(self.root):
            names = {entry.name for entry in self.root.iterdir()} if self.root.is_dir() else set()
        if names.issuperset(set(LAYOUT) - {"experiments"}):
            return  # a store; what its owner put beside is no concern
        if foreign := sorted(names - set(LAYOUT) - HARMLESS):
            listed = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
            raise StoreError(
                f"{self.root} is not a store, and holds other things ({listed}); give --store a store, an empty"
                " directory or a new one"
            )

    def require(self) -> None:
        """Nothing, if there is a store at the root. Only a run makes one."""
        self.refuse_foreign()
        if not (self.root / "artifacts").is_dir():
            raise StoreError(f"there is no store at {self.root}; `stagecraft run` makes one, or choose another --store")

    def preflight(self) -> None:
        """Make sure that the store can be written, with a file that is written, flushed and removed again."""
        self.refuse_foreign()
        try:
            with explained(self.root):
                for name in LAYOUT:
                    (self.root / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:  # such as a place under /proc, where nothing can be made
            raise StoreError(f"the store {self.root} cannot be made there ({error}); choose another --store") from error
        self.probe()

    def probe(self) -> None:
        """Nothing, if the disk of the work in progress takes one more MiB. The file is gone again afterwards.

        Raises:
            StoreError: where the disk is full, over quota or read-only.
        """
        with explained(self.root), tempfile.TemporaryFile(dir=self.root / "work") as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())

    @contextmanager
    def open(self, artifact_id: str, *, timeout_s: float = -1) -> Iterator[Path]:
        """The artifact's workspace under its lock: the same directory that a killed process left behind.

        Waits for the lock as long as it takes, or ``timeout_s`` seconds.

        Raises:
            BusyArtifactError: when another process holds the lock for longer.
        """
        file = self.root / "locks" / f"{artifact_id}.lock"
        with explained(self.root):
            file.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(file)
            try:
                lock.acquire(timeout=timeout_s)
            except Timeout:
                raise BusyArtifactError(f"another process is making {artifact_id} in {self.root}") from None
        try:
            with explained(self.root):
                self.workspace(artifact_id).mkdir(parents=True, exist_ok=True)
            yield self.workspace(artifact_id)
        finally:
            lock.release()

    def seal(self, artifact_id: str, workspace: Path, record: Mapping[str, object]) -> Path:
        """Turn ``workspace/artifact`` into the finished artifact, and remove the workspace.

        ``record`` has ``kind`` ("stage" or "evaluation"), ``description``, ``parents`` (ids), and whatever else is
        worth keeping. Call it inside ``open``.
        """
        entries = _checked_entries(artifact_id, record)
        source = workspace / ARTIFACT
        files = sorted(file for file in source.rglob("*") if file.is_file() and file != source / RECORD)
        if not files:
            raise ValueError(f"cannot seal {artifact_id}: its job left no file in {source}")
        if not self.has(artifact_id):
            with explained(self.root):
                listed = {file.relative_to(source).as_posix(): _described(file) for file in files}
                _write_flushed(source / RECORD, {**entries, "files": listed})
                self._move_into_place(artifact_id, source)
        self.clear(artifact_id)
        return self.location(artifact_id)

    def clear(self, artifact_id: str) -> None:
        """Remove the workspace of a finished artifact. Call it inside ``open``."""
        if self.has(artifact_id):
            shutil.rmtree(self.workspace(artifact_id), ignore_errors=True)

    def tidy(self, artifact_id: str) -> None:
        """Remove the workspace that a process left which was killed between sealing an artifact and clearing up."""
        if self.has(artifact_id) and self.workspace(artifact_id).exists():
            with suppress(BusyArtifactError), self.open(artifact_id, timeout_s=0):
                self.clear(artifact_id)

    def _move_into_place(self, artifact_id: str, source: Path) -> None:
        """One atomic rename; whatever stood there without a record was no artifact."""
        destination = self.location(artifact_id)
        destination.parent.mkdir(parents=True, exist_ok=True)
        if destination.exists():
            shutil.rmtree(destination)
        for directory in (entry for entry in source.rglob("*") if entry.is_dir()):
            _flush_directory(directory)
        _flush_directory(source)
        source.rename(destination)
        _flush_directory(destination.parent)


@contextmanager
def explained(root: Path) -> Iterator[None]:
    """Turns an operating-system error that speaks of the store's disk into a StoreError with the remedy."""
    try:
        yield
    except OSError as error:
        if error.errno not in TROUBLES:
            raise
        trouble, remedy = TROUBLES[error.errno]
        raise StoreError(f"the store {root} {trouble} ({error}); {remedy}") from error


def disk_trouble(error: BaseException, root: Path) -> StoreError | None:
    """The StoreError for an error, or a cause of it, that a full or read-only disk raised; None for any other.

    What a library made of the system's error is known by the system's words in its message.
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        for number in DISK_TROUBLES:
            if _speaks_of(link, number):
                trouble, remedy = TROUBLES[number]
                return StoreError(f"the store {root} {trouble} ({first_line(error)}); {remedy}")
        link = link.__cause__ or link.__context__
    return None


def _speaks_of(error: BaseException, number: int) -> bool:
    if isinstance(error, OSError) and error.errno == number:
        return True
    text = str(error)
    return os.strerror(number) in text or (number == errno.ENOSPC and ASKED_FIRST in text)


def first_line(error: BaseException) -> str:
    """An error's message without the frames that a C++ library writes below it."""
    return str(error).partition("\n")[0]


def damaged(place: Path, fault: str) -> DamagedArtifact:
    """The error for an artifact's directory, or a file in it, that is not what it was."""
    directory = place if place.is_dir() else place.parent
    return DamagedArtifact(f"damaged artifact: {place} {fault}; delete the directory {directory} and run again")


def verified(directory: Path) -> Path:
    """The directory of an artifact, wherever it stands now, when every file is what its record says.

    Raises:
        DamagedArtifact: where one is not.
    """
    record = read_record(directory / RECORD)
    _check_sizes(directory, record)
    _check_content(directory, record)
    return directory


def read_record(file: Path) -> dict[str, Any]:
    """The entries of a ``record.json``, of the kinds that ``seal`` writes.

    Raises:
        DamagedArtifact: where it is no JSON, or some entry is of another kind.
    """
    try:
        entries = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        raise damaged(file, "is not JSON") from None
    if not isinstance(entries, dict) or not isinstance(entries.get("files"), dict):
        raise damaged(file, "has no list of files")
    if not entries["files"]:
        raise damaged(file, "lists no file")
    for name, entry in entries["files"].items():
        if not _is_file_entry(name, entry):
            raise damaged(file, f"has an entry for the file {name!r} that is no size and digest")
    for name, kind in {"id": str, "description": str, "parents": list, "versions": dict, "created": str}.items():
        if not isinstance(entries.get(name), kind):
            raise damaged(file, f"has {name!r} missing or of another kind")
    return entries


def _is_file_entry(name: str, entry: object) -> bool:
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts or not place.parts or not isinstance(entry, dict):
        return False
    size, digest = entry.get("bytes"), entry.get("blake2b")
    return type(size) is int and isinstance(digest, str) and len(digest) == DIGEST_DIGITS


def _check_sizes(directory: Path, record: Mapping[str, Any]) -> Path:
    for name, entry in record["files"].items():
        file = directory / name
        if not file.is_file():
            raise damaged(directory, f"lacks the file {name}")
        if (found := file.stat().st_size) != entry["bytes"]:
            raise damaged(directory, f"has {found} bytes in {name} where its record says {entry['bytes']}")
    return directory


def _check_content(directory: Path, record: Mapping[str, Any]) -> None:
    for name, entry in record["files"].items():
        if _file_digest(directory / name) != entry["blake2b"]:
            raise damaged(directory, f"has a file {name} whose content is not what its record says")


def _checked_entries(artifact_id: str, record: Mapping[str, object]) -> dict[str, object]:
    """The record without its files."""
    if record.get("kind") not in KINDS:
        raise ValueError(f"the kind of an artifact's record is one of {KINDS}, got {record.get('kind')!r}")
    if missing := {"description", "parents"} - set(record):
        raise ValueError(f"the record of {artifact_id} lacks {sorted(missing)}")
    return {
        **record,
        "id": artifact_id,
        "versions": library_versions(),
        "code": code_identity(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine_kind(),
    }


def _file_digest(file: Path) -> str:
    with file.open("rb") as content:
        return file_digest(content, partial(blake2b, digest_size=DIGEST_BYTES)).hexdigest()


def _described(file: Path) -> dict[str, object]:
    """Size and digest of a file that is now safely on the disk."""
    with file.open("rb") as content:
        os.fsync(content.fileno())
    return {"bytes": file.stat().st_size, "blake2b": _file_digest(file)}


def _write_flushed(file: Path, entries: Mapping[str, object]) -> None:
    with file.open("w", encoding="utf-8") as out:
        json.dump(entries, out, indent=2, sort_keys=True)
        out.flush()
        os.fsync(out.fileno())


def _flush_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
