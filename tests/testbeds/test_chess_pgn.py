"""The PGN reader gives what chess.pgn gives of whole games, and leaves out what is broken, with a reason."""

from __future__ import annotations

import io
import logging
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import chess.pgn
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from testbeds.chess import pgn, rules
from testbeds.chess.pgn import REASONS, GameFilter, read_games
from testbeds.chess.pgn_files import DAMAGED, TRUNCATED, TextFile
from testbeds.chess.pgn_filter import EVERY_GAME, estimated_seconds, speed_of

SAMPLE = Path(pgn.__file__).parent / "data" / "games.pgn.zst"


@pytest.fixture(scope="module")
def sample():
    return zstandard.decompress(SAMPLE.read_bytes())


@pytest.fixture(autouse=True)
def _quiet():
    logging.getLogger("chess.pgn").setLevel(logging.CRITICAL)


def ours(text, filters=EVERY_GAME, **options):
    """Games and counts that our reader gives."""
    skipped = Counter()
    data = text if isinstance(text, bytes) else text.encode()
    games = list(read_games(io.BytesIO(data), filters, skipped, **options))
    return games, dict(skipped)


class Whole(chess.pgn.BaseVisitor):
    """Takes (first position, moves, result) of a game, or None if chess.pgn finds an error: no tree, half the time."""

    def begin_game(self):
        self.tags, self.moves, self.start, self.failed, self.said = {}, [], None, False, "*"

    def visit_header(self, name, text):
        self.tags[name] = text

    def visit_board(self, board):
        self.start = self.start or board.fen()

    def begin_variation(self):
        return chess.pgn.SKIP

    def visit_move(self, board, move):
        self.moves.append(rules.encode(move))

    def visit_result(self, result):
        self.said = self.said if self.said != "*" else result

    def handle_error(self, error):
        self.failed = True

    def result(self):
        if self.failed or not self.moves:
            return False
        named = self.tags.get("Result", "*")
        start = None if self.start == chess.STARTING_FEN else self.start
        return start, tuple(self.moves), self.said if named == "*" else named


def theirs(text):
    """The same of chess.pgn: (first position, moves, result), without the games in which it found errors."""
    handle, found = io.StringIO(text, newline=None), []
    while (game := chess.pgn.read_game(handle, Visitor=Whole)) is not None:
        found += [game] if game else []
    return found


def plain(games):
    return [(game.start, game.moves, game.result) for game in games]


def game(moves, tags='[Event "e"]\n', end="\n\n"):
    return f"{tags}\n{moves}{end}"


def one_in(step, sample):
    """The text of each game that is so many places behind another one."""
    begins = [place.start() for place in re.finditer(rb"^\[Date ", sample, re.MULTILINE)]
    return b"".join(sample[begin:end] for begin, end in pairwise([*begins, len(sample)]) if begin in begins[::step])


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.large)])
def test_the_shipped_games_are_those_that_python_chess_reads(sample, step):
    text = one_in(step, sample)
    games, skipped = ours(text)
    assert len(games) == -(-1557 // step)
    assert skipped == {}
    assert plain(games) == theirs(text.decode("latin-1"))


# ------------------------------------------------------------------------------------------ well-formed, if unusual

UNUSUAL = {
    "comments": "{ first } 1. e4 { a { b } e5 {x} ; to the end { of the line\n2. Nf3 {two\n\nlines [x] } Nc6 *",
    "clocks and evaluations": "1. e4 { [%eval 0.17] [%clk 0:00:30] } 1... c5 { [%eval 0.19] [%clk 0:00:3] } 2. Nf3 1-0",
    "nested variations": "1. e4 (1. d4 d5 (1... Nf6 2. c4 {(} e6) 2. c4) 1... e5 (1... c5) 2. Nf3 Nc6 1/2-1/2",
    "annotations": "1.e4! $1 e5?! $14 2. Nf3!! Nc6 $146 3. Bb5?? a6!? 0-1",
    "numbers": "1 e4 1... e5 2.Nf3 2...Nc6 3 . Bb5 a6 4.O-O Nf6 *",
    "no spaces after numbers": "1.e4 e5 2.Nf3 Nc6 3.Bb5 a6 4.Ba4 Nf6 5.O-O",
    "lines of an escape": '1. e4 e5\n% 1. d4 [Event "no"] {\n2. Nf3 *',
    "zeros for castling": "1. e4 e5 2. Nf3 Nf6 3. Bc4 Bc5 4. 0-0 0-0 *",
    "origins that are not needed": "1. Ng1f3 Nb8-c6 2. e2e4 e7-e5 3. Bf1-b5 a7a6 4. Bb5xc6 d7xc6 *",
    "promotions": "1. e4 d5 2. exd5 c6 3. dxc6 Nf6 4. cxb7 Ng8 5. bxa8Q Nf6 6. Qxb8 e6 7. h4 *",
    "marks of check that are missing or wrong": "1. e4+ f6 2. d4 g5 3. Qh5 1-0",
    "words": "1. e4 e5 novelty 2. Nf3 +- Nc6 = 3. Bb5+/- ... *",
    "en passant": "1. e4 a6 2. e5 d5 3. exd6e.p. cxd6 *",
    "no result": "1. e4 e5 2. Nf3",
    "moves over many lines": "1.\ne4\ne5\n2.\nNf3\n*",
}


@pytest.mark.parametrize("moves", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_games_are_read_as_python_chess_reads_them(moves):
    text = game("1. d4 *") + game(moves) + game("1. c4 *")
    games, skipped = ours(text)
    assert skipped == {}
    assert len(games) == 3
    assert plain(games) == theirs(text)


@pytest.mark.parametrize(
    "tags",
    [
        "",
        '[Event "?"]\n[White "Müller, \\"Hans\\""]\n[Result "0-1"]\n',
        '[White "An "old" one"]\n[Result "1-0"]\n',
        '[Event "a"]\n; a comment\n% an escape\n[Result "1/2-1/2"]\n',
        '[Event "a"]\n\n[Result "1-0"]\n',
        '[Result "*"]\n[Result "1-0"]\n',
        '[Variant "Standard"]\n[SetUp "1"]\n[FEN "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"]\n',
        '[Variant "From Position"]\n[FEN "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"]\n[SetUp "1"]\n',
    ],
)
def test_tags_are_read_as_python_chess_reads_them(tags):
    text = game("1. e4 *", tags)
    assert plain(ours(text)[0]) == theirs(text)
    assert len(theirs(text)) == 1


def test_black_may_begin():
    text = game("23... Kd7 24. Kd2 *", '[FEN "4k3/8/8/8/8/8/8/R3K3 b Q - 0 23"]\n[SetUp "1"]\n')
    assert plain(ours(text)[0]) == theirs(text)


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_other_line_ends_and_marks_of_byte_order_change_nothing(newline):
    text = game("1. e4\ne5 {a\nb} *") + game("1. d4 *")
    games, skipped = ours(b"\xef\xbb\xbf" + text.replace("\n", newline).encode())
    assert plain(games) == theirs(text)
    assert skipped == {}


def test_names_in_latin_1_are_no_obstacle():
    games, skipped = ours(game("1. e4 *", '[White "M\xfcller"]\n').encode("latin-1"))
    assert len(games) == 1
    assert skipped == {}


def test_a_stream_of_text_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match="binary mode"):
        list(read_games(io.StringIO("1. e4 *")))


# -------------------------------------------------------------------------------- where chess.pgn reads otherwise


def test_blank_lines_may_be_missing_or_many():
    text = '[Event "a"]\n1. e4 *\n[Event "b"]\n\n\n\n1. d4 *\n[Event "c"]\n1. c4 *'
    games, skipped = ours(text)
    assert [game.moves for game in games] == [ours(f"1. {move} *")[0][0].moves for move in ("e4", "d4", "c4")]
    assert skipped == {}


def test_a_variation_before_the_first_move_is_left_out():
    assert plain(ours("(1. d4) 1. e4 *")[0]) == plain(ours("1. e4 *")[0])


# --------------------------------------------------------------------------------------------------- broken games

# Two moves without a space between them: neither is passed over as the rest of the other.
GLUED = (
    "1. e4 e5 2. Nf3 Nf60-0 *",
    "1. e4 e5 2. Nf3 Nf6 3. Bc4 Bc5 4. O-OO-O *",
    "1. e4O-O-O *",
    "1. e4e5 *",
    "1. e40-1",
)

BROKEN = {
    "illegal move": [
        game("1. e4 e5 2. Ke3 *"),
        game("1. Sf3 *"),
        game("1. e4 e5 2. Nf4 Nc6 *"),
        game("1. Dd4 d5 *"),
        *map(game, GLUED),
    ],
    "unfinished tag": ['[Event "a\n[Result "*"]\n\n1. e4 *\n\n', "[Event a]\n\n1. e4 *\n\n"],
    "variant": [
        game("1. e4 *", '[Variant "Crazyhouse"]\n'),
        game("1. e4 *", '[Variant "Chess960"]\n[FEN "bnrkqnrb/pppppppp/8/8/8/8/PPPPPPPP/BNRKQNRB w GCgc - 0 1"]\n'),
        game("1. e4 *", '[FEN "bnrkqnrb/pppppppp/8/8/8/8/PPPPPPPP/BNRKQNRB w GCgc - 0 1"]\n'),
        game("1. e4 e5 2. N@f4 *"),
    ],
    "illegal first position": [
        game("1. e4 *", '[FEN "no position"]\n'),
        game("1. e4 *", '[FEN "8/8/8/8/8/8/4P3/4K3 w - - 0 1"]\n'),  # one king
        game("1. e4 *", '[FEN "4k3/8/8/8/8/8/4R3/4K3 w - - 0 1"]\n'),  # Black is in check, White to move
    ],
    "null move": [game("1. e4 -- 2. d4 *"), game("1. Z0 e5 *"), game("1. e4 0000 *"), game("1. @@@@ *")],
    "no moves": [game("*"), game("{nothing}", end="\n\n"), '[Event "a"]\n\n\n'],
    "bad result": [game("1. e4 *", '[Result "2-0"]\n'), game("1. e4 *", '[Result ""]\n')],
    "unfinished comment": [game("1. e4 { e5"), game("1. e4 {\n\n% }\n")],
    "unfinished variation": [game("1. e4 (1. d4 (1. c4) e5 *")],
    "moves after the result": [game("1. e4 1-0 e5 2. d4")],
    "game text too long": [game("1. e4 {" + "x" * pgn.MOST_GAME_BYTES + "} *")],
}


@pytest.mark.parametrize(("reason", "text"), [(reason, text) for reason, texts in BROKEN.items() for text in texts])
def test_a_broken_game_is_counted_and_the_games_around_it_are_read(reason, text):
    games, skipped = ours(game("1. d4 *") + text + game("1. c4 *"))
    assert skipped == {reason: 1}
    assert [game.moves for game in games] == [ours("1. d4 *")[0][0].moves, ours("1. c4 *")[0][0].moves]


def test_every_reason_is_one_of_the_list():
    assert BROKEN.keys() < set(REASONS)


def test_a_comment_that_nobody_closes_costs_no_more_than_its_game():
    # names of tags differ from game to game, so that only what looks like the next game can end the comment
    text = '[A "1"]\n\n1. e4 {' + "never closed " * 200_000 + '\n\n[B "1"]\n\n1. d4 *\n\n[C "2"]\n\n1. c4 *'
    games, skipped = ours(text)
    assert skipped == {"game text too long": 1}
    assert len(games) == 2


def test_blank_lines_in_a_comment_are_looked_through_once():
    # Half a million of them: looked through from each one anew, that would be 10^11 steps, minutes.
    text = game("1. e4 {" + "\n" * 500_000 + "} e5 *") + game("1. e4 {" + "\n\n% x" * 100_000 + "} e5 *")
    assert plain(ours(text)[0]) == plain(ours("1. e4 e5 *")[0] * 2)


def test_millions_of_blank_lines_between_games_are_no_game():
    text = "1. e4 *" + "\n" * 5 * pgn.MOST_GAME_BYTES + "1. d4 *"
    games, skipped = ours(text)
    assert (len(games), skipped) == (2, {})


def test_tags_alone_at_the_end_are_a_game_without_moves():
    assert ours('[Event "a"]\n\n1. e4 *\n\n[Event "b"]\n[Result "*"]')[1] == {"no moves": 1}


# ------------------------------------------------------------------------------------------------- files and zstd


def test_frames_follow_each_other_and_may_be_skippable(tmp_path, sample):
    middle = sample.index(b"[Date", len(sample) // 2) + 3  # a frame may end anywhere
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    frames = [zstandard.compress(part) for part in (sample[:middle], b"", sample[middle:])]
    path = tmp_path / "games.pgn.zst"
    path.write_bytes(skippable + frames[0] + skippable + frames[1] + frames[2])
    assert b"".join(TextFile(path).blocks()) == sample


def cut_off(sample):
    compressed = zstandard.compress(sample[:200_000], 1)
    return compressed[: len(compressed) * 3 // 4]


def test_a_truncated_file_gives_the_games_that_are_whole(tmp_path, sample):
    path = tmp_path / "games.pgn.zst"
    path.write_bytes(cut_off(sample))
    skipped = Counter()
    games = list(read_games(path, skipped=skipped))
    whole = ours(sample[:200_000])[0]
    assert skipped == {TRUNCATED: 1}
    assert 100 < len(games) < len(whole)
    assert games == whole[: len(games)]


def test_a_damaged_file_gives_the_games_before_the_damage(tmp_path, sample):
    path = tmp_path / "games.pgn.zst"
    path.write_bytes(zstandard.compress(sample[:50_000]) + b"no frame")
    skipped = Counter()
    games = list(read_games(path, skipped=skipped))
    assert skipped == {DAMAGED: 1}
    assert games == ours(sample[:50_000])[0][: len(games)]
    assert len(games) > 50


def test_a_window_that_would_take_too_much_memory_is_refused(tmp_path):
    # a frame's header: magic, descriptor 0, window 2**(10 + 21) bytes; then one last raw block of 4 bytes
    path = tmp_path / "long.pgn.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00" + bytes([21 << 3]) + b"\x21\x00\x00abcd")
    with pytest.raises(ValueError, match="window is larger than 1024 MiB.*--long=30"):
        list(read_games(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is no PGN"),
        (b"PuzzleId,FEN,Moves\n000rZ,x,e4\n", "is no PGN: it begins with b'PuzzleId"),
        (b"# 1. A heading\n\nText *\n", "is no PGN"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "zero bytes"),
        (b"\x1f\x8b\x08\0", "gzip data; decompress it"),
        (b"PK\x03\x04", "zip archive"),
        ("1. e4 *".encode("utf-16"), "UTF-16"),
        (b"\x28\xb5\x2f\xfdnonsense", "cannot be decompressed"),
        (b"\x28\xb5\x2f\xfd", "ends before any of its text"),
        (zstandard.compress(b"1. e4 * " * 100)[:-3], "ends before any of its text"),
        (zstandard.compress(b""), "is empty"),
    ],
)
def test_a_file_of_another_kind_is_refused_by_name(tmp_path, content, message):
    path = tmp_path / "some.pgn"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as refusal:
        list(read_games(path))
    assert "some.pgn" in str(refusal.value)


def test_a_file_that_is_named_zst_and_is_none_is_refused(tmp_path):
    path = tmp_path / "some.pgn.zst"
    path.write_bytes(b"1. e4 *")
    with pytest.raises(ValueError, match="some.pgn.zst is not zstd data"):
        list(read_games(path))
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="some.pgn.zst is empty"):
        list(read_games(path))


def test_a_stream_may_give_a_byte_at_a_time():
    class Pipe(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 1))

    text = game("1. e4 e5 *").encode()
    assert list(read_games(Pipe(zstandard.compress(text)))) == list(read_games(Pipe(text))) == ours(text)[0]
    with pytest.raises(ValueError, match="gzip data"):
        list(read_games(Pipe(b"\x1f\x8b\x08\0")))


def test_progress_counts_the_bytes_of_the_file():
    told = []
    games = read_games(SAMPLE, report=told.append)
    next(games)
    assert told[-1] == SAMPLE.stat().st_size
    assert told == sorted(told)


# --------------------------------------------------------------------------------------------- blocks and workers

MIXED = [
    game("1. e4 e5 {a\n\nb} *"),
    game("1. e4 (1. d4) e5 1-0"),
    game("1. e4 { e5"),
    game("1. Ke2 *"),
    '[Event "x"]\n1. c4 *\n',
    "1. Nf3 *\n\n",
    game("1. g3 *", '[Site "y"]\n\n[Result "1-0"]\n'),
    "% escaped\n\n; comment\n\n",
]


@given(st.lists(st.sampled_from(MIXED), min_size=1, max_size=12), st.integers(1, 60))
def test_where_blocks_end_changes_nothing(parts, size):
    text = '[Event "first"]\n\n1. a3 *\n\n' + "".join(parts)

    class Dripping(io.BytesIO):
        def read(self, _=-1):
            return super().read(size)

    skipped = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pgn, "BLOCK_BYTES", size)
        patch.setattr(pgn, "_refuse_other_kinds", lambda *_: None)  # a byte alone looks like nothing
        games = list(read_games(Dripping(text.encode()), skipped=skipped))
    assert (games, dict(skipped)) == ours(text)


@given(st.text(alphabet='eN4f35O-xQ01/2*+#!?$(){};%[]" \n."Event\\', max_size=80))
def test_no_text_raises_anything_but_a_refusal_or_loses_the_game_before(text):
    games, skipped = ours("1. a3 *\n\n" + text)
    assert games[0] == ours("1. a3 *")[0][0]
    assert set(skipped) <= set(REASONS)


def test_workers_give_the_same_games_in_the_same_order_with_the_same_counts(sample, monkeypatch):
    text = (sample[:150_000] + b"\n\n" + game("1. e4 e5 2. Ke3 *").encode()) * 2
    monkeypatch.setattr(pgn, "BLOCK_BYTES", 20_000)
    assert ours(text, workers=2) == ours(text)


# -------------------------------------------------------------------------------------------------------- filters


def tagged(white="1500", black="1600", control="300+3", event="Rated Blitz game", result="1-0"):
    return game(
        f"1. e4 e5 2. Nf3 {result}",
        f'[Event "{event}"]\n[Result "{result}"]\n[WhiteElo "{white}"]\n[BlackElo "{black}"]\n'
        f'[TimeControl "{control}"]\n',
    )


@pytest.mark.parametrize(
    ("filters", "text", "reason"),
    [
        (GameFilter(min_elo=1500), tagged(), None),
        (GameFilter(min_elo=1501), tagged(), "filter: Elo"),
        (GameFilter(max_elo=1599), tagged(), "filter: Elo"),
        (GameFilter(min_elo=1000), tagged(white="?"), "filter: Elo"),
        (GameFilter(min_elo=1000, unknown=True), tagged(white="?"), None),
        (GameFilter(min_elo=1000, unknown=True), tagged(white="?", black="900"), "filter: Elo"),
        (GameFilter(results=("0-1",)), tagged(), "filter: result"),
        (GameFilter(results=("0-1",)), tagged(result="0-1"), None),
        (GameFilter(min_plies=4), tagged(), "filter: length"),
        (GameFilter(max_plies=3), tagged(), None),
        (GameFilter(max_plies=2), tagged(), "filter: length"),
        (GameFilter(min_seconds=421), tagged(), "filter: time control"),  # 300 + 40 * 3 = 420
        (GameFilter(min_seconds=420, max_seconds=420), tagged(), None),
        (GameFilter(speeds=("rapid", "classical")), tagged(), "filter: time control"),
        (GameFilter(speeds=("blitz",)), tagged(), None),
        (GameFilter(speeds=("blitz",)), tagged(control="-"), "filter: time control"),
        (GameFilter(speeds=("blitz",), unknown=True), tagged(control="-"), None),
        (GameFilter(event="rated"), tagged(), None),
        (GameFilter(event="rated"), tagged(event="Casual game"), "filter: event"),
    ],
)
def test_filters_take_what_they_say(filters, text, reason):
    games, skipped = ours(text, filters)
    assert skipped == ({reason: 1} if reason else {})
    assert len(games) == (reason is None)


@pytest.mark.parametrize(
    ("control", "seconds"),
    [
        (b"600", 600),
        (b"15+0", 15),
        (b"180+2", 260),
        (b"40/7200:3600", 7200),
        (b"1/86400", 40 * 86400),
        (b"*60", 2400),
        (b"-", None),
        (b"?", None),
        (b"", None),
        (b"1/", None),
        (b"0/60", None),
    ],
)
def test_a_time_control_is_estimated_for_40_moves(control, seconds):
    assert estimated_seconds(control) == seconds


@pytest.mark.parametrize(
    ("seconds", "speed"),
    [
        (29, "ultrabullet"),
        (30, "bullet"),
        (179, "bullet"),
        (180, "blitz"),
        (479, "blitz"),
        (480, "rapid"),
        (1499, "rapid"),
        (1500, "classical"),
        (86400, "correspondence"),
    ],
)
def test_the_limits_of_speeds_are_those_of_lichess(seconds, speed):
    assert speed_of(seconds) == speed


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"results": ("1:0",)}, "1:0"),
        ({"results": ()}, "must be some of"),
        ({"speeds": ("fast",)}, "fast"),
        ({"min_elo": 2000, "max_elo": 1000}, "2000"),
        ({"min_plies": 0}, "at least 1"),
        ({"min_seconds": -1}, "-1"),
        ({"max_seconds": float("nan")}, "nan"),
        ({"min_plies": 10, "max_plies": 5}, "10"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        GameFilter(**fields)


def test_workers_must_be_at_least_one():
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        list(read_games(SAMPLE, workers=0))
