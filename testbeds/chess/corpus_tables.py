"""Large tables on disk: one file for each column, mapped into memory, written whole or not at all.

A table is a directory with ``COLUMN.bin`` for every column (little endian, row after row), ``COLUMN.offsets.bin`` for
columns whose rows have different lengths (where each row begins, and where the last one ends) and ``manifest.json``,
which is written last: what has no manifest is no table.

Memory while writing, for any number of rows: appended rows go to the files at once. Rows that are there twice are
found in passes over the column of 63-bit row hashes; a pass sorts the hashes of one residue class, ``ROWS_OF_PASS`` or
so of them, with their places: 0.5 GiB, measured at 24 million rows in three passes. One byte a row says what stays:
0.1 GiB for the 100 million games of a month of Lichess. Equal hashes alone decide nothing, the rows are compared.
Copying, offsets and the digest go through the files in pieces of ``ROWS_AT_ONCE``. Nothing is mapped into memory here,
so that pages of the files do not count as memory of the process.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

Array = NDArray[Any]
Entries = Mapping[str, Any]  # of a manifest, which is JSON

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
DIGEST_BYTES: Final = 16  # 128 bits: no two corpora ever share it
ROWS_OF_PASS: Final = 1 << 23
ROWS_AT_ONCE: Final = 1 << 19
_OFFSETS = np.dtype("<i8")
_ENTRIES = {
    "kind": str,
    "rows": int,
    "duplicates": int,
    "filters": dict,
    "skipped": dict,
    "sources": list,
    "meaning": dict,
    "files": dict,
    "digest": str,
}
"""What a manifest must have, besides its form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    name: str
    dtype: str
    """Of numpy, with its byte order."""
    width: int = 1
    """Numbers in a row; 0: rows have different lengths."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the mapped array."""
        return (-1,) if self.width <= 1 else (-1, self.width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns of a kind of table."""

    kind: str
    columns: tuple[Column, ...]
    same: tuple[str, ...]
    """Rows that are equal in these columns are there once."""
    row_hash: str
    """The column of 63-bit hashes of the columns of ``same``."""

    def files(self) -> Iterator[tuple[str, np.dtype[Any]]]:
        """Names of all files of arrays, in a fixed order, with the type of their numbers."""
        for column in self.columns:
            yield f"{column.name}.bin", np.dtype(column.dtype)
            if column.width == 0:
                yield f"{column.name}.offsets.bin", _OFFSETS


class TableWriter:
    """Appends rows to the files of a directory; a context manager that closes them."""

    def __init__(self, directory: Path, layout: Layout) -> None:
        self.directory, self.layout = directory, layout
        self.rows = 0
        self._files: dict[str, BinaryIO] = {}
        self._ends = {column.name: 0 for column in layout.columns if column.width == 0}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        for name, _ in self.layout.files():
            self._files[name] = self._open.enter_context((self.directory / name).open("wb"))
        for name in self._ends:
            self._files[f"{name}.offsets.bin"].write(np.zeros(1, _OFFSETS).tobytes())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def append(self, columns: Mapping[str, Array], lengths: Mapping[str, NDArray[np.int64]]) -> None:
        """Writes rows; ``lengths`` has the lengths of the rows of each column where they differ."""
        for column in self.layout.columns:
            array = np.ascontiguousarray(columns[column.name], np.dtype(column.dtype))
            self._files[f"{column.name}.bin"].write(array.tobytes())
            if column.width == 0:
                ends = self._ends[column.name] + np.cumsum(lengths[column.name])
                self._files[f"{column.name}.offsets.bin"].write(ends.astype(_OFFSETS).tobytes())
                self._ends[column.name] += len(array)
        self.rows += len(columns[self.layout.row_hash])


@contextmanager
def building(destination: Path, *, force: bool) -> Iterator[Path]:
    """A hidden directory beside ``destination`` that takes its place at the end, and is gone after any failure.

    Raises:
        ValueError: where something has that name and ``force`` is not said, or it is no table, or another process
            builds it.
    """
    _check_free(destination, force=force)
    destination.parent.mkdir(parents=True, exist_ok=True)
    partial, old = (destination.with_name(f".{destination.name}.{mark}") for mark in ("partial", "old"))
    try:
        with FileLock(destination.with_name(f".{destination.name}.lock"), timeout=0):
            if old.is_dir() and not destination.exists():
                old.rename(destination)  # a process was killed between the two steps of _put
            _check_free(destination, force=force)  # another process may just have finished it
            shutil.rmtree(partial, ignore_errors=True)  # left behind by a process that was killed
            partial.mkdir()
            try:
                yield partial
                _put(partial, destination, old)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    except Timeout as error:
        raise ValueError(f"another process is building {destination}; wait for it, or give another --name") from error


def _check_free(destination: Path, *, force: bool) -> None:
    """A ValueError where something stays that has the name; ``force`` gives up tables, and nothing else."""
    if not destination.exists():
        return
    if not force:
        raise ValueError(f"{destination} exists; give --force to replace it, or another --name")
    if not (destination / MANIFEST).is_file():
        raise ValueError(
            f"{destination} is no corpus, since it has no {MANIFEST}, so --force leaves it alone; move it away, or give"
            f" another --name"
        )


def _put(partial: Path, destination: Path, old: Path) -> None:
    """The directory in its place: what was there before is moved out of the way first, then deleted."""
    shutil.rmtree(old, ignore_errors=True)
    if destination.exists():
        destination.rename(old)
    partial.rename(destination)
    shutil.rmtree(old, ignore_errors=True)


def finish(writer: TableWriter, entries: Entries, meaning: Entries | None = None) -> dict[str, Any]:
    """Leaves rows that are there twice out, and writes the manifest.

    Args:
        writer: Closed, with all rows.
        entries: What the manifest says besides.
        meaning: What readers need to understand the arrays, such as names of bits: part of the digest.
    """
    directory, layout = writer.directory, writer.layout
    keep = _first_of_equals(directory, layout, writer.rows)
    rows = int(np.count_nonzero(keep))
    if rows < writer.rows:
        for column in layout.columns:
            _compact(directory, column, keep)
    files = {name: (directory / name).stat().st_size for name, _ in layout.files()}
    manifest = {
        "kind": layout.kind,
        "format": FORMAT,
        "rows": rows,
        "duplicates": writer.rows - rows,
        **entries,
        "meaning": dict(meaning or {}),
        "files": files,
    }
    manifest["digest"] = digest_of(directory, layout, manifest)
    with (directory / MANIFEST).open("w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    return manifest


def digest_of(directory: Path, layout: Layout, manifest: Entries) -> str:
    """BLAKE2b over all arrays with their names and types, and over what they mean: 32 hexadecimal digits."""
    hasher = blake2b(digest_size=DIGEST_BYTES)
    head = {"kind": layout.kind, "format": FORMAT, "meaning": manifest["meaning"]}
    hasher.update(json.dumps(head, sort_keys=True).encode())
    for name, dtype in layout.files():
        path = directory / name
        hasher.update(f"\n{name} {dtype.str} {path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            while piece := file.read(1 << 22):
                hasher.update(piece)
    return hasher.hexdigest()


def _pieces(path: Path, dtype: np.dtype[Any], numbers: int) -> Iterator[Array]:
    """A file's numbers, so many at a time."""
    with path.open("rb") as file:
        while piece := file.read(numbers * dtype.itemsize):
            yield np.frombuffer(piece, dtype)


def _first_of_equals(directory: Path, layout: Layout, rows: int) -> NDArray[np.bool_]:
    """Which rows have no equal before them."""
    keep = np.ones(rows, np.bool_)
    passes = max(-(-rows // ROWS_OF_PASS), 1)
    with ExitStack() as stack:
        same = _Comparison(directory, layout, stack)
        for residue in range(passes):
            hashes, places = _of_residue(directory / f"{layout.row_hash}.bin", residue, passes)
            order = np.argsort(hashes, kind="stable")
            ordered = hashes[order]
            repeated = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
            first = last = -1
            for place in repeated.tolist():
                if place != last + 1:
                    first = int(places[order[place - 1]])
                last = place
                row = int(places[order[place]])
                keep[row] = not same(first, row)
    return keep


def _of_residue(path: Path, residue: int, passes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The row hashes of a residue class, and their rows."""
    hashes, places, begin = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    for piece in _pieces(path, np.dtype("<i8"), ROWS_AT_ONCE):
        chosen = np.flatnonzero(piece % passes == residue)
        hashes.append(piece[chosen].astype(np.int64))
        places.append(chosen + begin)
        begin += len(piece)
    return np.concatenate(hashes), np.concatenate(places)


class _Comparison:
    """Whether two rows are equal in the columns that count."""

    def __init__(self, directory: Path, layout: Layout, stack: ExitStack) -> None:
        def opened(name: str) -> BinaryIO:
            return stack.enter_context((directory / name).open("rb"))

        self._columns = [
            (
                opened(f"{column.name}.bin"),
                opened(f"{column.name}.offsets.bin") if column.width == 0 else None,
                np.dtype(column.dtype).itemsize * max(column.width, 1),
            )
            for column in layout.columns
            if column.name in layout.same
        ]

    def __call__(self, one: int, other: int) -> bool:
        return all(
            self._row(values, offsets, size, one) == self._row(values, offsets, size, other)
            for values, offsets, size in self._columns
        )

    @staticmethod
    def _row(values: BinaryIO, offsets: BinaryIO | None, size: int, row: int) -> bytes:
        begin, end = row, row + 1
        if offsets is not None:
            offsets.seek(row * _OFFSETS.itemsize)
            begin, end = np.frombuffer(offsets.read(2 * _OFFSETS.itemsize), _OFFSETS).tolist()
        values.seek(begin * size)
        return values.read((end - begin) * size)


def _compact(directory: Path, column: Column, keep: NDArray[np.bool_]) -> None:
    """Leaves out the rows of a column that are not kept."""
    values, dtype = directory / f"{column.name}.bin", np.dtype(column.dtype)
    shorter = values.with_suffix(".new")
    with shorter.open("wb") as file:
        if column.width:
            begin = 0
            for piece in _pieces(values, dtype, ROWS_AT_ONCE * column.width):
                table = piece.reshape(-1, column.width)
                file.write(table[keep[begin : begin + len(table)]].tobytes())
                begin += len(table)
        else:
            _compact_ragged(directory, column, keep, file)
    shorter.replace(values)


def _compact_ragged(directory: Path, column: Column, keep: NDArray[np.bool_], file: BinaryIO) -> None:
    offsets, dtype = directory / f"{column.name}.offsets.bin", np.dtype(column.dtype)
    shorter = offsets.with_suffix(".new")
    begin = end = total = 0
    with shorter.open("wb") as ends, (directory / f"{column.name}.bin").open("rb") as values:
        ends.write(np.zeros(1, _OFFSETS).tobytes())
        with offsets.open("rb") as all_ends:
            all_ends.seek(_OFFSETS.itemsize)
            while piece := all_ends.read(ROWS_AT_ONCE * _OFFSETS.itemsize):
                lengths = np.diff(np.frombuffer(piece, _OFFSETS), prepend=end).astype(np.int64)
                end += int(lengths.sum())
                kept = keep[begin : begin + len(lengths)]
                begin += len(lengths)
                numbers = np.frombuffer(values.read(int(lengths.sum()) * dtype.itemsize), dtype)
                file.write(numbers[np.repeat(kept, lengths)].tobytes())
                kept_ends = total + np.cumsum(lengths[kept])
                total += int(lengths[kept].sum())
                ends.write(kept_ends.astype(_OFFSETS).tobytes())
    shorter.replace(offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A finished table, mapped into memory: only what is read is loaded."""

    directory: Path
    manifest: Entries
    columns: Mapping[str, Array]
    offsets: Mapping[str, NDArray[np.int64]]

    def __len__(self) -> int:
        return int(self.manifest["rows"])

    def row(self, column: str, place: int) -> Array:
        """The numbers of one row of a column whose rows have different lengths."""
        begin, end = self.offsets[column][place : place + 2].tolist()
        part: Array = self.columns[column][begin:end]
        return part


def read_manifest(directory: Path, kind: str | None = None) -> Entries:
    """The manifest of a finished table; of any kind, where none is said.

    Raises:
        ValueError: where there is none, or one of another kind or form.
    """
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        found, form = manifest["kind"], manifest["format"]
    except (FileNotFoundError, IsADirectoryError):
        raise ValueError(f"{directory} is no corpus: it has no {MANIFEST}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{directory / MANIFEST} is damaged ({error!r}); build the corpus again") from error
    if kind is not None and found != kind:
        raise ValueError(f"{directory} is a corpus of {found}, not of {kind}")
    if form != FORMAT:
        raise ValueError(f"{directory} has the form {form}, this version reads {FORMAT}; build the corpus again")
    for name, needed in _ENTRIES.items():
        if type(manifest.get(name)) is not needed:
            raise ValueError(
                f"{directory / MANIFEST} is damaged (its entry {name!r} is {manifest.get(name)!r}); build the corpus"
                f" again with --force"
            )
    return dict(manifest)


def open_table(directory: Path, layout: Layout, manifest: Entries) -> Table:
    """Maps a table's files.

    Raises:
        ValueError: where a file is missing or has another size than its manifest says, or other rows.
    """
    arrays: dict[str, Array] = {}
    for name, dtype in layout.files():
        path, wanted = directory / name, manifest["files"].get(name)
        size = path.stat().st_size if path.is_file() else None
        if size is None or size != wanted:
            there = "is missing" if size is None else f"has {size} bytes, not {wanted}"
            raise ValueError(f"{path} {there}: the corpus is damaged; build it again with --force")
        if size % dtype.itemsize:
            raise ValueError(
                f"{path} ends in the middle of a number: the corpus is damaged; build it again with --force"
            )
        # A plain view of the mapping: numpy's own class of maps takes many times as long to give a row.
        arrays[name] = np.asarray(np.memmap(path, dtype, "r")) if size else np.empty(0, dtype)
    for column in layout.columns:
        if _rows_of(column, arrays) != manifest["rows"]:
            raise ValueError(
                f"{directory / MANIFEST} says {manifest['rows']} rows, which {column.name}.bin has not: the corpus is"
                f" damaged; build it again with --force"
            )
    return Table(
        directory=directory,
        manifest=manifest,
        columns={column.name: arrays[f"{column.name}.bin"].reshape(column.shape) for column in layout.columns},
        offsets={column.name: arrays[f"{column.name}.offsets.bin"] for column in layout.columns if column.width == 0},
    )


def _rows_of(column: Column, arrays: Mapping[str, Array]) -> int:
    """How many rows the files of a column hold; -1 where they end in the middle of one."""
    numbers = len(arrays[f"{column.name}.bin"])
    if column.width:
        return -1 if numbers % column.width else numbers // column.width
    offsets = arrays[f"{column.name}.offsets.bin"]
    return len(offsets) - 1 if len(offsets) and offsets[0] == 0 and offsets[-1] == numbers else -1


def row_hashes(parts: Iterator[tuple[bytes, ...]], count: int) -> NDArray[np.int64]:
    """63 bits of BLAKE2b over the parts of each row; the parts before the last have no zero byte or one length."""
    digests = (blake2b(b"\0".join(row), digest_size=8).digest() for row in parts)
    return (np.frombuffer(b"".join(digests), "<u8", count) >> np.uint64(1)).astype(np.int64)


Report = Callable[[int], None]
