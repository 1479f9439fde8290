"""Files for people: written whole or not at all, with an error that names the file that was asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from experiments.store import StoreError


@contextmanager
def whole_file(destination: Path) -> Iterator[Path]:
    """A temporary file beside ``destination`` that takes its place at the end, and is gone after any failure.

    Raises:
        StoreError: where the file cannot be written; the message names ``destination``.
    """
    if destination.is_dir():
        raise StoreError(f"cannot write {destination}: it is a directory; name a file in it")
    temporary = destination.with_name(f".{destination.name}.{uuid4().hex}")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())  # a full disk may show only here
        temporary.replace(destination)
    except OSError as error:
        raise StoreError(
            f"cannot write {destination}: {error.strerror or error}; free some space or name another file"
        ) from error
    finally:
        with suppress(OSError):  # its folder may not exist
            temporary.unlink(missing_ok=True)


def write_whole(destination: Path, text: str) -> None:
    """Writes a whole text file or none."""
    with whole_file(destination) as temporary:
        temporary.write_text(text, encoding="utf-8")
