"""Collections of games and puzzles on disk, made once from a user's files and read at random from then on.

``stagecraft corpus games FILE... --name NAME`` makes ``ROOT/NAME``; ``ROOT`` is the environment variable
STAGECRAFT_CORPORA, or ``corpora`` in the working directory. A corpus is known by its name and the digest of its
content: a task that declares one means exactly these games, wherever they lie.

Columns of games: moves, first positions (empty: the usual one), results, Elo of both (0: not known) and a hash of
first position and moves. Columns of puzzles: the position of the file, moves, rating, themes as bits, id and the
canonical hash of the position that is asked. Either is there once: a game by first position and moves, a puzzle by
position and line.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final, Literal, overload

import numpy as np
from numpy.typing import NDArray

from testbeds.chess.corpus_puzzles import EVERY_PUZZLE, PUZZLES, PuzzleFilter, puzzle_of, write_puzzles
from testbeds.chess.corpus_tables import (
    MANIFEST,
    Column,
    Entries,
    Layout,
    Report,
    Table,
    TableWriter,
    building,
    digest_of,
    finish,
    open_table,
    read_manifest,
    row_hashes,
)
from testbeds.chess.games import Game
from testbeds.chess.pgn import GameBatch, read_batches
from testbeds.chess.pgn_filter import EVERY_GAME, RESULTS, GameFilter
from testbeds.chess.puzzles import Puzzle

__all__ = [
    "GameCorpus",
    "PuzzleCorpus",
    "PuzzleFilter",
    "build_games",
    "build_puzzles",
    "corpora",
    "corpus_named",
    "root",
]

Kind = Literal["games", "puzzles"]
ROOT_VARIABLE: Final = "STAGECRAFT_CORPORA"

GAMES: Final = Layout(
    kind="games",
    columns=(
        Column(name="moves", dtype="<u2", width=0),
        Column(name="start", dtype="|u1", width=0),
        Column(name="result", dtype="|u1"),
        Column(name="elo", dtype="<u2", width=2),
        Column(name="hash", dtype="<i8"),
    ),
    same=("moves", "start"),
    row_hash="hash",
)
_LAYOUTS: Final = {layout.kind: layout for layout in (GAMES, PUZZLES)}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DIGEST = re.compile(r"[0-9a-f]{32}")


def root() -> Path:
    """The directory of all corpora."""
    return _path(os.environ.get(ROOT_VARIABLE) or "corpora")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Corpus:
    """What corpora of both kinds share."""

    revision: ClassVar[int] = 1
    layout: ClassVar[Layout]

    name: str
    """Of its directory."""
    digest: str
    """BLAKE2b of its content, 32 hexadecimal digits: what ``corpus_named`` finds."""

    def __post_init__(self) -> None:
        check_name(self.name)
        if not _DIGEST.fullmatch(self.digest):
            raise ValueError(f"the digest of a corpus is 32 hexadecimal digits, got {self.digest!r}")

    def open(self) -> Table:
        """The columns, mapped into memory; a process opens them once.

        Raises:
            ValueError: where there is no such corpus, or another one of this name, or a file is damaged.
        """
        return _opened(root().absolute(), self.name, self.digest, self.layout.kind)

    def __len__(self) -> int:
        return len(self.open())

    def verify(self) -> None:
        """Reads all files and compares their digest.

        Raises:
            ValueError: where they hold something else than when they were written.
        """
        table = self.open()
        found = digest_of(table.directory, self.layout, table.manifest)
        if found != self.digest:
            raise ValueError(
                f"the files in {table.directory} have the digest {found}, not {self.digest}: the corpus is damaged;"
                " build it again with --force"
            )

    def _row(self, place: int) -> tuple[Table, int]:
        """The table, and the row that a place means, which may count from the end."""
        table = self.open()
        size = len(table)
        if not -size <= place < size:
            raise IndexError(f"the corpus {self.name!r} has {size} {self.layout.kind}, there is no number {place}")
        return table, place % size


@dataclass(frozen=True, slots=True, kw_only=True)
class GameCorpus(_Corpus):
    """Games on disk: ``corpus[i]`` is a game, ``len(corpus)`` their number, ``open()`` the arrays of all."""

    layout: ClassVar[Layout] = GAMES

    def __getitem__(self, place: int) -> Game:
        """The game of a place, in the order of the files it was made from."""
        table, place = self._row(place)
        return Game(
            start=table.row("start", place).tobytes().decode("ascii") or None,
            moves=tuple(table.row("moves", place).tolist()),
            result=RESULTS[int(table.columns["result"][place])],
        )

    def __iter__(self) -> Iterator[Game]:
        return map(self.__getitem__, range(len(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PuzzleCorpus(_Corpus):
    """Puzzles on disk: ``corpus[i]`` is a puzzle, ``open()`` the arrays of all (``rating``, ``asked`` ...)."""

    layout: ClassVar[Layout] = PUZZLES

    def __getitem__(self, place: int) -> Puzzle:
        """The puzzle of a place, in the order of the file it was made from."""
        return puzzle_of(*self._row(place))

    def __iter__(self) -> Iterator[Puzzle]:
        return map(self.__getitem__, range(len(self)))


def check_name(name: str) -> None:
    """Nothing, if a corpus may have this name.

    Raises:
        ValueError: for a name that would not be a plain directory.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"a corpus is named by letters, digits, '.', '_' and '-', up to 100 of them; got {name!r}")


@overload
def corpus_named(kind: Literal["games"], name: str) -> GameCorpus: ...
@overload
def corpus_named(kind: Literal["puzzles"], name: str) -> PuzzleCorpus: ...
def corpus_named(kind: Kind, name: str) -> GameCorpus | PuzzleCorpus:
    """The corpus that has this name now, with its digest.

    Raises:
        ValueError: where there is none; the message has the command that makes one.
    """
    check_name(name)
    digest = str(_manifest(root(), kind, name)["digest"])
    return GameCorpus(name=name, digest=digest) if kind == "games" else PuzzleCorpus(name=name, digest=digest)


def corpora() -> list[tuple[str, Entries]]:
    """Name and manifest of every corpus, in order of names."""
    found = []
    for manifest in sorted(root().glob(f"*/{MANIFEST}")):
        if not manifest.parent.name.startswith("."):
            with suppress(ValueError):  # a damaged one: who asks for it by name is told
                found.append((manifest.parent.name, read_manifest(manifest.parent)))
    return found


def build_games(
    name: str,
    sources: Sequence[Path],
    filters: GameFilter = EVERY_GAME,
    *,
    workers: int = 1,
    report: Report | None = None,
    force: bool = False,
) -> GameCorpus:
    """Makes a corpus of the games of PGN files, in their order.

    Memory for files of any size: reading holds a few blocks of a megabyte a worker (see pgn.py) and up to 1 GiB of
    history where a zstd file was compressed with so long a window (Lichess': 8 MiB or less); writing holds what
    corpus_tables.py says, 0.6 GiB at 100 million games, when the reading is over. At any time less than 2 GiB.

    Args:
        name: Of the corpus.
        sources: Files; games that more than one has are taken once.
        filters: Which games are wanted.
        workers: Processes that read moves.
        report: Told how many bytes of all files have been read.
        force: Whether a corpus of this name gives way.

    Raises:
        ValueError: where the name is taken, a file is no PGN, or no game is left.
    """
    check_name(name)
    _check_sources(sources)
    skipped: Counter[str] = Counter()
    with building(root() / name, force=force) as directory:
        with TableWriter(directory, GAMES) as writer:
            before = 0
            for source in sources:
                for batch in read_batches(source, filters, workers=workers, report=_shifted(report, before)):
                    _append_games(writer, batch)
                    skipped.update(batch.skipped)
                before += source.stat().st_size
        _require_rows(writer, sources, skipped)
        manifest = finish(writer, _entries(sources, asdict(filters), skipped))
    return GameCorpus(name=name, digest=manifest["digest"])


def build_puzzles(
    name: str,
    source: Path,
    filters: PuzzleFilter = EVERY_PUZZLE,
    *,
    report: Report | None = None,
    force: bool = False,
) -> PuzzleCorpus:
    """Makes a corpus of the puzzles of a Lichess CSV file; ``report`` is told how many puzzles have been read."""
    check_name(name)
    _check_sources([source])
    skipped: Counter[str] = Counter()
    with building(root() / name, force=force) as directory:
        with TableWriter(directory, PUZZLES) as writer:
            themes = write_puzzles(writer, source, filters, skipped, report)
        _require_rows(writer, [source], skipped)
        manifest = finish(writer, _entries([source], asdict(filters), skipped), {"themes": themes})
    return PuzzleCorpus(name=name, digest=manifest["digest"])


@lru_cache(maxsize=16)
def _path(text: str) -> Path:
    """The path of a text: one object, whose hash is found once, since every game that is read asks for it."""
    return Path(text)


@lru_cache(maxsize=64)
def _opened(directory: Path, name: str, digest: str, kind: str) -> Table:
    layout = _LAYOUTS[kind]
    manifest = _manifest(directory, kind, name)
    if manifest["digest"] != digest:
        raise ValueError(
            f"the corpus {name!r} in {directory} has the digest {manifest['digest']}, the one that is declared has"
            f" {digest}: it was made of other files or with other filters; make it again as it was, or declare"
            f" corpus_named({kind!r}, {name!r})"
        )
    return open_table(directory / name, layout, manifest)


def _manifest(directory: Path, kind: str, name: str) -> Entries:
    if not (directory / name).is_dir():
        files = "FILE.pgn.zst" if kind == "games" else "lichess_db_puzzle.csv.zst"
        others = ", ".join(other for other, manifest in corpora() if manifest["kind"] == kind) or "none"
        raise ValueError(
            f"there is no corpus {name!r} in {directory.absolute()} (${ROOT_VARIABLE}; there: {others}); make it with:"
            f" stagecraft corpus {kind} {files} --name {name}"
        )
    return read_manifest(directory / name, kind)


def _check_sources(sources: Sequence[Path]) -> None:
    if not sources:
        raise ValueError("a corpus is made of at least one file, got none")
    for source in sources:
        if not source.is_file():
            raise ValueError(f"{source} is not a file")


def _shifted(report: Report | None, before: int) -> Report | None:
    return None if report is None else lambda done: report(before + done)


def _append_games(writer: TableWriter, batch: GameBatch) -> None:
    starts = [(start or "").encode("ascii") for start in batch.starts]
    ends = np.cumsum(batch.lengths)
    moves = memoryview(batch.moves.astype("<u2").tobytes())
    spans = zip((ends - batch.lengths).tolist(), ends.tolist(), starts, strict=True)
    rows = ((start, bytes(moves[2 * begin : 2 * end])) for begin, end, start in spans)
    columns: dict[str, NDArray[np.generic]] = {
        "moves": batch.moves,
        "start": np.frombuffer(b"".join(starts), np.uint8),
        "result": batch.results,
        "elo": batch.elos,
        "hash": row_hashes(rows, len(starts)),
    }
    writer.append(columns, {"moves": batch.lengths, "start": np.array([len(start) for start in starts], np.int64)})


def _require_rows(writer: TableWriter, sources: Sequence[Path], skipped: Counter[str]) -> None:
    if not writer.rows:
        why = ", ".join(f"{reason} {count}" for reason, count in skipped.most_common()) or "there are none"
        names = ", ".join(source.name for source in sources)
        raise ValueError(f"no {writer.layout.kind} are left of {names}: {why}; loosen the filters or take other files")


def _entries(sources: Sequence[Path], filters: Entries, skipped: Counter[str]) -> dict[str, object]:
    """What a manifest says of the origin: names of files, never where they were."""
    return {
        "filters": dict(filters),
        "skipped": dict(sorted(skipped.items())),
        "sources": [{"name": source.name, "bytes": source.stat().st_size} for source in sources],
    }
