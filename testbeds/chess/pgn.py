"""Games from PGN files of any size, plain or compressed by zstd: one pass, and memory that does not grow with the file.

A file is read in blocks of about a megabyte that end where a game ends (``pgn_kernels.cut``). Of each game the tags
are looked at, its moves are stripped of comments and variations (``pgn_kernels.clean``) and played by
``rules.read_san_moves``. Other processes may read the blocks: the games come in the same order with the same counts.

Of well-formed games the moves and results are those of ``chess.pgn``. Where ``chess.pgn`` reads on behind an error, the
game is left out here and counted by its reason (``REASONS``); the first one that is found counts. Further differences:
a tag that stands twice after a blank line begins a game, tags need no blank line before them, blank lines may stand
between tags and moves, and variations are left out even before the first move.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import BinaryIO, Final

import chess
import numpy as np
from numpy.typing import NDArray

from testbeds.chess import pgn_kernels, rules
from testbeds.chess.games import Game
from testbeds.chess.pgn_files import DAMAGED, TRUNCATED, TextFile
from testbeds.chess.pgn_filter import EVERY_GAME, RESULTS, SPEEDS, GameFilter, Speed, elos
from testbeds.production import serve_only_the_parent

__all__ = ["REASONS", "SPEEDS", "GameBatch", "GameFilter", "Speed", "read_batches", "read_games"]

Source = Path | str | BinaryIO
Report = Callable[[int], None]

BLOCK_BYTES: Final = 1 << 20  # some hundred games: large against the cost of a call, small against memory
MOST_GAME_BYTES: Final = 1 << 20
"""Longer texts are no games: the longest game that the rules allow has 11,800 plies, 100 kB."""
AHEAD: Final = 3  # blocks a worker that are read before they are asked for

_OF_KERNEL: Final = {
    pgn_kernels.OPEN_COMMENT: "unfinished comment",
    pgn_kernels.OPEN_VARIATION: "unfinished variation",
    pgn_kernels.NULL_MOVE: "null move",
    pgn_kernels.DROP: "variant",
    pgn_kernels.AFTER_RESULT: "moves after the result",
}
REASONS: Final = (
    "game text too long",
    "unfinished tag",
    "variant",
    "bad result",
    *(reason for reason in _OF_KERNEL.values() if reason != "variant"),
    "no moves",
    "illegal first position",
    "illegal move",
    TRUNCATED,
    DAMAGED,
    "filter: event",
    "filter: Elo",
    "filter: time control",
    "filter: result",
    "filter: length",
)
"""Why games are not read. The two that speak of the file are counted once a file; the whole games before are read."""

_TAG = re.compile(rb'^\[\s*([A-Za-z0-9][\w+#=:-]*)\s+"((?:[^"\\\n]|\\.)*)"\s*\][^\S\n]*$', re.MULTILINE)
_LOOSE_TAG = re.compile(rb'^\[\s*([A-Za-z0-9][\w+#=:-]*)\s+"([^\n]*)"\s*\][^\S\n]*$')  # quotes inside, not escaped
_GAP = re.compile(rb"\n[^\S\n]{,60}\n(?=\[[A-Za-z0-9])")
_GAP_BYTES = 64  # so much of it may be behind us when the rest comes
_LOOKS_LIKE_PGN = re.compile(
    rb"\A\s*(?:[%;][^\n]*\n\s*)*(?:\[\s*\w+\s+\"|\d+\s*\.|[({*]|1-0|0-1|1/2|(?:[NBRQK]?[a-h]?[1-8]?x?[a-h][1-8]|O-O|0-0)\W)"
    rb"|^\[\w+\s+\"",
    re.MULTILINE,
)
_STANDARD = frozenset((b"", b"standard", b"chess", b"normal", b"from position", b"fromposition", b"?"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GameBatch:
    """Some games of a file, one after the other in its order, as arrays."""

    moves: NDArray[np.uint16]
    """The encoded moves of all games."""
    lengths: NDArray[np.int64]
    """Number of moves of each game."""
    starts: tuple[str | None, ...]
    results: NDArray[np.uint8]
    """Places in ``RESULTS``."""
    elos: NDArray[np.uint16]
    """Of White and Black, a row for each game; 0 is not known."""
    skipped: Counter[str]
    """Games between these that are not read, by reason."""

    def games(self) -> Iterator[Game]:
        """The games as objects."""
        end = 0
        for length, start, result in zip(self.lengths.tolist(), self.starts, self.results.tolist(), strict=True):
            begin, end = end, end + length
            yield Game(start=start, moves=tuple(self.moves[begin:end].tolist()), result=RESULTS[result])


def read_games(
    source: Source,
    filters: GameFilter = EVERY_GAME,
    skipped: Counter[str] | None = None,
    *,
    workers: int = 1,
    report: Report | None = None,
) -> Iterator[Game]:
    """The games of a PGN file, in its order.

    Args:
        source: Path of a ``.pgn`` or ``.pgn.zst`` file (by content, not by name), or a binary stream of such a file.
        filters: Which games are wanted.
        skipped: Counts the games that are not given, by reason (``REASONS``).
        workers: Processes that read moves; one is this process.
        report: Told how many bytes of the file have been read.

    Raises:
        ValueError: where the file as a whole is no PGN; the message names it.
    """
    for batch in read_batches(source, filters, workers=workers, report=report):
        if skipped is not None:
            skipped.update(batch.skipped)
        yield from batch.games()


def read_batches(
    source: Source, filters: GameFilter = EVERY_GAME, *, workers: int = 1, report: Report | None = None
) -> Iterator[GameBatch]:
    """The same as ``read_games`` in batches of arrays: for millions of games."""
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    text = TextFile(source, report)
    if workers == 1:
        for block in _blocks(text):
            yield _read(block, filters)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=serve_only_the_parent) as pool:
        yield from _from_pool(_blocks(text), filters, pool, workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A piece of text, the games in it, and what was passed over on the way there."""

    text: bytes
    spans: NDArray[np.int64]
    skipped: Counter[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Raw:
    """What one game's text says."""

    start: str | None
    moves: NDArray[np.uint16]
    result: int
    elos: tuple[int, int]


class _Skip(Exception):  # noqa: N818  # not an error: it never leaves this file
    """A game that is not read, with the reason that is counted."""


def _from_pool(
    blocks: Iterator[_Block], filters: GameFilter, pool: ProcessPoolExecutor, workers: int
) -> Iterator[GameBatch]:
    """The batches in order; at most ``AHEAD`` blocks a worker are in memory."""
    waiting: deque[Future[GameBatch]] = deque()
    try:
        for block in blocks:
            waiting.append(pool.submit(_read, block, filters))
            if len(waiting) >= AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a worker process that reads games died, perhaps for lack of memory; try again with fewer workers"
        ) from error
    finally:
        for future in waiting:
            future.cancel()


def _blocks(text: TextFile) -> Iterator[_Block]:
    """The text in pieces of whole games."""
    rest, lost = b"", False
    for piece in _checked(text):
        rest += piece
        if lost:
            rest, lost = _next_game(rest)
        if not lost:
            blocks, rest = _cut(rest, at_end=False)
            yield from blocks
            if len(rest) > 2 * MOST_GAME_BYTES:
                yield _nothing("game text too long")  # a comment that nobody closed, perhaps
                rest, lost = _next_game(rest)
    if text.trouble is not None:  # the game that was being read is not whole
        yield _nothing(text.trouble)
    elif not lost:
        blocks, _ = _cut(rest + b"\n\n", at_end=True)
        yield from blocks


def _nothing(reason: str) -> _Block:
    return _Block(text=b"", spans=np.empty((0, 4), np.int64), skipped=Counter([reason]))


def _next_game(text: bytes) -> tuple[bytes, bool]:
    """The text from what looks like the next game; or its end, and True, where nothing does so."""
    gap = _GAP.search(text)
    return (text[gap.end() :], False) if gap else (text[-_GAP_BYTES:], True)


def _checked(text: TextFile) -> Iterator[bytes]:
    """The text in large pieces; a ValueError where it is no PGN."""
    first = True
    for piece in _gathered(text.blocks()):
        if first:
            _refuse_other_kinds(text.name, piece)
        first = False
        yield piece
    if first and text.trouble is None:
        raise ValueError(f"{text.name} is empty; it should hold games in PGN")


def _gathered(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in larger blocks."""
    parts: list[bytes] = []
    size = 0
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size >= BLOCK_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


def _refuse_other_kinds(name: str, beginning: bytes) -> None:
    if b"\0" in beginning:
        raise ValueError(f"{name} is no PGN: it holds zero bytes, which no text has")
    if not _LOOKS_LIKE_PGN.search(beginning):
        raise ValueError(
            f'{name} is no PGN: it begins with {beginning[:40]!r}; games begin with tags such as [Event "?"]'
        )


def _cut(text: bytes, *, at_end: bool) -> tuple[list[_Block], bytes]:
    """Blocks of whole games, and the rest, which the next piece of the file completes."""
    blocks = []
    while True:
        spans = np.empty((max(len(text) // 64, 16), 4), np.int64)
        count, consumed = pgn_kernels.cut(np.frombuffer(text, np.uint8), at_end, spans)
        if count:
            blocks.append(_Block(text=text[:consumed], spans=spans[:count].copy(), skipped=Counter()))
        text = text[consumed:].lstrip(b"\n")  # a line begins there; of blank ones there may be millions
        if count < len(spans):
            break
    return blocks, text


def _read(block: _Block, filters: GameFilter) -> GameBatch:
    """The games of a block."""
    text = np.frombuffer(block.text, np.uint8)
    out = np.empty(MOST_GAME_BYTES + 1, np.uint8)
    skipped = Counter(block.skipped)
    found: list[_Raw] = []
    for begin, body, end, trouble in block.spans.tolist():
        try:
            _pass(_OF_KERNEL.get(trouble))
            _pass("game text too long" if end - begin > MOST_GAME_BYTES else None)
            tags = _tags(block.text, begin, body)
            found.append(_game(tags, text[body:end], out, filters))
        except _Skip as reason:
            skipped[str(reason)] += 1
    return GameBatch(
        moves=np.concatenate([raw.moves for raw in found]) if found else np.empty(0, np.uint16),
        lengths=np.array([len(raw.moves) for raw in found], np.int64),
        starts=tuple(raw.start for raw in found),
        results=np.array([raw.result for raw in found], np.uint8),
        elos=np.array([raw.elos for raw in found], np.uint16).reshape(-1, 2),
        skipped=skipped,
    )


def _tags(text: bytes, begin: int, body: int) -> dict[bytes, bytes]:
    """The tags by name, of equal names the last."""
    found = _TAG.findall(text, begin, body)
    lines = text.count(b"\n[", begin, body) + text.startswith(b"[", begin)
    if len(found) == lines:
        return dict(found)
    tags = {}
    for line in text[begin:body].split(b"\n"):
        if line.startswith(b"["):
            match = _LOOSE_TAG.match(line)
            if match is None:
                raise _Skip("unfinished tag")
            tags[match[1]] = match[2]
    return tags


def _game(tags: dict[bytes, bytes], movetext: NDArray[np.uint8], out: NDArray[np.uint8], filters: GameFilter) -> _Raw:
    """What a game says."""
    if tags.get(b"Variant", b"").strip().lower() not in _STANDARD:
        raise _Skip("variant")
    _pass(filters.refusal_of_tags(tags))
    written, plies, said, trouble = pgn_kernels.clean(movetext, 0, len(movetext), out)
    _pass(_OF_KERNEL.get(trouble))
    result = _result(tags.get(b"Result", b"*"), said)
    if plies == 0:
        raise _Skip("no moves")
    _pass(filters.refusal_of_result(RESULTS[result]) or filters.refusal_of_length(plies))
    fen = tags.get(b"FEN")
    start, state = _usual_state() if fen is None else _first_position(fen)
    moves, wrong = rules.read_san_moves(state, out[:written].tobytes())
    if wrong != -1:
        raise _Skip("illegal move")
    return _Raw(start=start, moves=moves, result=result, elos=elos(tags))


def _pass(refusal: str | None) -> None:
    if refusal:
        raise _Skip(refusal)


def _result(tag: bytes, said: int) -> int:
    """The result of the tag, or of the moves' end where the tag leaves it open."""
    name = tag.decode("ascii", "replace").strip()
    if name not in RESULTS:
        raise _Skip("bad result")
    if name == "*" and said != pgn_kernels.NO_RESULT:
        return said
    return RESULTS.index(name)


@cache
def _usual_state() -> tuple[None, rules.State]:
    return None, rules.state_of(chess.Board())


def _first_position(fen: bytes) -> tuple[str | None, rules.State]:
    """The first position that a FEN tag says."""
    try:
        board = chess.Board(fen.decode("ascii").strip())
    except ValueError as error:  # letters that are not ASCII, too
        raise _Skip("illegal first position") from error
    if board.has_chess960_castling_rights():
        raise _Skip("variant")
    if not board.is_valid():
        raise _Skip("illegal first position")
    if board.fen() == chess.STARTING_FEN:
        return _usual_state()
    return board.fen(), rules.state_of(board)
