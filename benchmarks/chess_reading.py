"""Games per second that the PGN reader gives, against chess.pgn; and what a large file takes in time and memory.

Both sides read the games of the shipped sample, which are 1,557, from memory, in one process and in turn, and give
every game's moves and result. chess.pgn builds its tree of nodes, as it does for anyone who calls ``read_game``, or
only plays the moves, with a visitor that keeps nothing else. The large file is made of the sample's games with the
tags, clocks and evaluations of Lichess and other ends, compressed by zstd; a corpus is made of it in a process of its
own, whose peak of resident memory is the last line.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

import chess.pgn
import zstandard
from rich.table import Table

from benchmarks.side_by_side import Contender, contest, machine, show
from testbeds.chess.pgn import read_games
from testbeds.chess.sources import SHIPPED

LARGE_BYTES: Final = 100_000_000
BUILD: Final = """
import sys, time
from pathlib import Path
from testbeds.chess.corpus import build_games
from testbeds.chess.pgn import read_batches
def peak():  # VmHWM: getrusage begins with what the parent process had
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
small, large = Path(sys.argv[1]), Path(sys.argv[2])
for _ in read_batches(small): pass  # compiled
before = peak()
began = time.process_time()
for _ in read_batches(large): pass
read_s, read_peak = time.process_time() - began, peak()
began = time.process_time()
made = build_games("large", [large])
print(before, read_s, read_peak, time.process_time() - began, peak(), len(made), made.open().manifest["duplicates"])
"""


class _MovesOnly(chess.pgn.BaseVisitor[int]):
    """Counts moves: chess.pgn without its tree."""

    def begin_game(self) -> None:
        self.moves = 0

    def visit_move(self, board: chess.Board, move: chess.Move) -> None:
        self.moves += 1

    def begin_variation(self) -> chess.pgn.SkipType:
        return chess.pgn.SKIP

    def result(self) -> int:
        return self.moves


def _ours(text: bytes) -> Contender:
    return lambda: sum(1 for _ in read_games(io.BytesIO(text)))


def _trees(text: str) -> Contender:
    def read() -> float:
        handle, count = io.StringIO(text), 0
        while (game := chess.pgn.read_game(handle)) is not None:
            count += bool(tuple(game.mainline_moves()) and game.headers["Result"])
        return count

    return read


def _moves(text: str) -> Contender:
    def read() -> float:
        handle, count = io.StringIO(text), 0
        while chess.pgn.read_game(handle, Visitor=_MovesOnly) is not None:
            count += 1
        return count

    return read


def _large_games(text: str) -> Iterator[bytes]:
    """The sample over and over as Lichess writes games: with clocks, evaluations, other tags, other ends."""
    moves = [[move.san() for move in game.mainline()] for game in _trees_of(text)]
    number = 0
    while True:
        for line in moves:
            number += 1
            kept = line[: max(len(line) - number // len(moves), 2)]
            body = " ".join(
                f"{ply // 2 + 1}{'...' if ply % 2 else '.'} {san} {{ [%eval 0.17] [%clk 0:0{ply % 10}:3{ply % 7}] }}"
                for ply, san in enumerate(kept)
            )
            yield (
                f'[Event "Rated Blitz game"]\n[Site "https://lichess.org/{number:08d}"]\n[White "someone"]\n'
                f'[Black "other"]\n[Result "1-0"]\n[UTCDate "2020.01.01"]\n[UTCTime "00:00:00"]\n'
                f'[WhiteElo "{1500 + number % 900}"]\n[BlackElo "{1500 + number % 700}"]\n[ECO "A00"]\n'
                f'[Opening "Any"]\n[TimeControl "180+2"]\n[Termination "Normal"]\n\n{body} 1-0\n\n'
            ).encode()


def _trees_of(text: str) -> Iterator[chess.pgn.Game]:
    handle = io.StringIO(text)
    while (game := chess.pgn.read_game(handle)) is not None:
        yield game


def _large_file(path: Path, text: str) -> int:
    """Writes the large file; its bytes before compression."""
    size = 0
    with path.open("wb") as file, zstandard.ZstdCompressor(level=3).stream_writer(file) as writer:
        for game in _large_games(text):
            writer.write(game)
            size += len(game)
            if size >= LARGE_BYTES:
                return size
    return size


def _large(text: str) -> Iterator[str]:
    """What a large file takes, line by line."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = folder / "large.pgn.zst"
        size = _large_file(large, text)
        began = time.process_time()
        with large.open("rb") as file:
            reader = zstandard.ZstdDecompressor().stream_reader(file)
            while reader.read(1 << 20):
                pass
        zstd_s = time.process_time() - began
        done = subprocess.run(
            [sys.executable, "-c", BUILD, str(SHIPPED), str(large)],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"STAGECRAFT_CORPORA": str(folder)},
        )
        before, read_s, read_peak, build_s, peak, games, duplicates = map(float, done.stdout.split())
        megabytes = size / 1e6
        yield (
            f"{megabytes:.0f} MB of text, {large.stat().st_size / 1e6:.0f} MB compressed,"
            f" {games + duplicates:,.0f} games:"
        )
        yield f"  read at {megabytes / read_s:.0f} MB, {(games + duplicates) / read_s:,.0f} games a second of one core"
        yield f"  decompression alone: {megabytes / zstd_s:,.0f} MB a second"
        yield f"  corpus of {games:,.0f} games made at {megabytes / build_s:.0f} MB a second of one core"
        yield f"  resident memory: {before:.0f} MiB before, at most {read_peak:.0f} in reading, {peak:.0f} in making"


def main() -> None:
    """Print the table and lines of README.md."""
    raw = zstandard.decompress(SHIPPED.read_bytes())
    text = raw.decode("latin-1")
    table = Table(title=f"PGN, games per second of one core; {machine()}", title_justify="left")
    for heading in ("chess.pgn", "ours", "chess.pgn", "ratio (range)"):
        table.add_column(heading, justify="left" if not table.columns else "right")
    for name, peer in (("read_game, its tree", _trees(text)), ("a visitor of moves alone", _moves(text))):
        result = contest(_ours(raw), peer)
        ours, theirs = (median(timed.rate for timed in side) for side in (result.ours, result.peer))
        table.add_row(name, f"{ours:,.0f}", f"{theirs:,.0f}", result.ratio())
    show(table)
    show(*_large(text))


if __name__ == "__main__":
    main()
