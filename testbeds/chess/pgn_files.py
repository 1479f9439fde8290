"""The text of a PGN or CSV file, plain or compressed by zstd, in blocks: memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import zstandard

TRUNCATED: Final = "file ends in the middle of a frame"
DAMAGED: Final = "file is damaged: zstd data that cannot be decompressed"
LARGEST_WINDOW: Final = 1 << 30
"""Bytes of history that a frame may ask its reader to keep: 1 GiB, ``zstd --long=30``. Decompression takes as much."""

_MAGIC = b"\x28\xb5\x2f\xfd"
_READ = 8192  # compressed bytes at a time: the worst of them (runs of one byte) become 2048 blocks of 128 KiB
_PLAIN_READ = 1 << 20
_FOREIGN = {
    b"\x1f\x8b": "gzip data; decompress it first (gunzip), or compress it with zstd",
    b"BZh": "bzip2 data; decompress it first (bunzip2), or compress it with zstd",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\xfd7zXZ": "xz data; decompress it first (unxz), or compress it with zstd",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
    b"\xff\xfe": "UTF-16 text; convert it to UTF-8 first",
    b"\xfe\xff": "UTF-16 text; convert it to UTF-8 first",
    b"%PDF": "a PDF document",
}
_LONGEST_MAGIC = max(map(len, (_MAGIC, *_FOREIGN)))


class TextFile:
    """One pass over a file's text.

    Attributes:
        name: What messages call the file.
        read_bytes: Bytes of the file (compressed ones, where it is compressed) that have been read so far.
        trouble: After the pass: why the text ends before its end, or None.
    """

    def __init__(self, source: Path | str | BinaryIO, report: Callable[[int], None] | None = None) -> None:
        self._source = source
        self._report = report
        self.name = str(source) if isinstance(source, (Path, str)) else str(getattr(source, "name", "the stream"))
        self.read_bytes = 0
        self.trouble: str | None = None

    def blocks(self) -> Iterator[bytes]:
        """The text in blocks that are never empty; line ends are newlines, a byte order mark is left out.

        Raises:
            ValueError: where the file holds no text that can be read; the message names the file.
        """
        if isinstance(self._source, (Path, str)):
            with Path(self._source).open("rb") as stream:
                yield from _plain_lines(self._decoded(stream))
        else:
            yield from _plain_lines(self._decoded(self._source))

    def _decoded(self, stream: BinaryIO) -> Iterator[bytes]:
        start = self._start(stream)
        for magic, kind in _FOREIGN.items():
            if start.startswith(magic):
                raise ValueError(f"{self.name} is {kind}; .pgn, .csv, and these compressed by zstd can be read")
        if _is_zstd(start):
            yield from self._decompressed(stream, start)
            return
        if start and self.name.endswith((".zst", ".zstd")):
            raise ValueError(f"{self.name} is not zstd data: it begins with {start[:8]!r}")
        while start:
            yield start
            start = self._read(stream, _PLAIN_READ)

    def _decompressed(self, stream: BinaryIO, chunk: bytes) -> Iterator[bytes]:
        # A decompressor of its own for each frame tells where a frame ends, which a reader across frames does not.
        decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        frame = decompressor.decompressobj()
        inside, anything = False, False
        while chunk:
            try:
                text = frame.decompress(chunk)
            except zstandard.ZstdError as error:
                self.trouble = self._broken(error, anything=anything)
                return
            anything = anything or bool(text)
            if text:
                yield text
            inside = not frame.eof
            if frame.eof:
                chunk = frame.unused_data
                frame = decompressor.decompressobj()
            chunk = chunk if not inside and chunk else self._read(stream, _READ)
        if inside and not anything:
            raise ValueError(f"{self.name} ends before any of its text can be decompressed; it is not whole")
        if inside:
            self.trouble = TRUNCATED

    def _broken(self, error: zstandard.ZstdError, *, anything: bool) -> str:
        if "too much memory" in str(error):
            raise ValueError(
                f"{self.name} has a zstd frame whose window is larger than {LARGEST_WINDOW >> 20} MiB, which is all"
                " the memory that reading may take; compress it anew with zstd --long=30 or less"
            ) from error
        if not anything:
            raise ValueError(f"{self.name} cannot be decompressed: {error}; it is damaged") from error
        return DAMAGED

    def _start(self, stream: BinaryIO) -> bytes:
        """Enough of the file to know its kind, or all of it."""
        start = self._read(stream, _READ)
        if not isinstance(start, bytes):
            raise ValueError(f"{self.name} gives text, not bytes; open it in binary mode")  # noqa: TRY004
        while start and len(start) < _LONGEST_MAGIC:  # pipes may give less than was asked for
            more = self._read(stream, _READ)
            if not more:
                break
            start += more
        return start

    def _read(self, stream: BinaryIO, size: int) -> bytes:
        chunk = stream.read(size)
        self.read_bytes += len(chunk)
        if self._report is not None:
            self._report(self.read_bytes)
        return chunk


def _is_zstd(start: bytes) -> bool:
    skippable = start[1:4] == b"\x2a\x4d\x18" and 0x50 <= start[0] <= 0x5F
    return start.startswith(_MAGIC) or skippable


def _plain_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    r"""The same text with ``\n`` for ``\r\n`` and ``\r``, without a mark of byte order at the very beginning."""
    held, first = b"", True
    for read in blocks:
        block = held + read
        held = b""
        if first:
            if len(block) < 3 and b"\xef\xbb\xbf".startswith(block):
                held = block
                continue
            block, first = block.removeprefix(b"\xef\xbb\xbf"), False
        if b"\r" in block:
            if block.endswith(b"\r"):  # whether a newline follows is in the next block
                block, held = block[:-1], b"\r"
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if block:
            yield block
    if held:
        yield held.replace(b"\r", b"\n")
