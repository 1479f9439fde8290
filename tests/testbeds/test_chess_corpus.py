"""Corpora hold what their files say, once, whatever interrupts; and are known by name and digest."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path

import chess
import numpy as np
import pytest
import zstandard
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from testbeds.chess import corpus, corpus_tables, pgn, puzzle_sources, rules
from testbeds.chess.chess_puzzle import ChessPuzzle
from testbeds.chess.corpus import (
    GameCorpus,
    PuzzleCorpus,
    PuzzleFilter,
    build_games,
    build_puzzles,
    corpora,
    corpus_named,
)
from testbeds.chess.corpus_puzzles import pack, unpack
from testbeds.chess.pgn import GameFilter, read_games
from testbeds.chess.puzzle_sources import CorpusPuzzles, ShippedPuzzles
from testbeds.chess.puzzles import read_puzzles
from testbeds.streams import stream

DATA = Path(pgn.__file__).parent / "data"
OTHER_START = '[Event "e"]\n[FEN "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"]\n[SetUp "1"]\n'
TEXT = (
    '[Event "e"]\n[Result "1-0"]\n[WhiteElo "1500"]\n[BlackElo "1700"]\n\n1. e4 e5 1-0\n\n'
    f"{OTHER_START}\n1. e4 *\n\n"
    '[Event "e"]\n[Result "0-1"]\n\n1. e4 e5 0-1\n\n'  # the moves of the first game
    '[Event "e"]\n\n1. Ke2 *\n\n'
    f"{OTHER_START}\n1. e3 *\n\n"
)


@pytest.fixture(autouse=True)
def _root(monkeypatch, tmp_path):
    monkeypatch.setenv(corpus.ROOT_VARIABLE, str(tmp_path / "corpora"))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.pgn"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """The first 150 shipped games, and 300 shipped puzzles, as plain files."""
    folder = tmp_path_factory.mktemp("some")
    games = zstandard.decompress((DATA / "games.pgn.zst").read_bytes())
    ends = [place for place in range(len(games)) if games.startswith(b"\n\n[Date", place)]
    (folder / "games.pgn").write_bytes(games[: ends[149]])
    puzzles = zstandard.decompress((DATA / "puzzles.csv.zst").read_bytes())
    (folder / "puzzles.csv").write_bytes(b"\n".join(puzzles.split(b"\n")[:301]) + b"\n")
    return folder


def leftovers():
    return sorted(path.name for path in corpus.root().iterdir() if not path.name.endswith(".lock"))


def test_a_corpus_of_games_is_the_games_of_its_file(some):
    made = build_games("some", [some / "games.pgn"])
    assert list(made) == list(read_games(some / "games.pgn"))
    assert len(made) == 150
    assert made[-1] == made[149]
    made.verify()


def test_games_that_are_there_twice_are_taken_once_with_the_first_result(file):
    made = build_games("small", [file, file])
    games = list(made)
    assert [(game.start is None, len(game.moves), game.result) for game in games] == [
        (True, 2, "1-0"),
        (False, 1, "*"),
        (False, 1, "*"),
    ]
    assert made.open().columns["elo"].tolist() == [[1500, 1700], [0, 0], [0, 0]]
    assert chess.Board(games[1].start) == chess.Board("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1")
    manifest = made.open().manifest
    assert (manifest["rows"], manifest["duplicates"], manifest["skipped"]) == (3, 5, {"illegal move": 2})


def test_equal_hashes_alone_do_not_make_games_equal(file, monkeypatch):
    monkeypatch.setattr(corpus, "row_hashes", lambda _, count: np.zeros(count, np.int64))
    assert len(build_games("small", [file])) == 3


def test_many_passes_and_pieces_give_the_same_corpus(some, monkeypatch):
    whole = build_games("whole", [some / "games.pgn", some / "games.pgn"])
    monkeypatch.setattr(corpus_tables, "ROWS_OF_PASS", 7)
    monkeypatch.setattr(corpus_tables, "ROWS_AT_ONCE", 5)
    monkeypatch.setattr(pgn, "BLOCK_BYTES", 10_000)
    pieces = build_games("pieces", [some / "games.pgn", some / "games.pgn"])
    assert pieces.digest == whole.digest
    assert list(pieces) == list(whole)


@given(st.lists(st.sampled_from(["e4", "d4", "e4 e5", "c4 c5 g3", "Nf3"]), min_size=1, max_size=30))
def test_what_is_kept_is_the_first_of_equals_in_order(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "lines.pgn"
    path.write_text("".join(f"{line} *\n\n" for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_tables, "ROWS_OF_PASS", 4)
        patch.setattr(corpus_tables, "ROWS_AT_ONCE", 3)
        made = build_games("lines", [path], force=True)
    assert list(made) == list(dict.fromkeys(read_games(path)))


def test_the_digest_is_of_the_content_alone(file, tmp_path):
    moved = tmp_path / "elsewhere" / "other.pgn.zst"
    moved.parent.mkdir()
    moved.write_bytes(zstandard.compress(file.read_bytes()))
    assert build_games("one", [file]).digest == build_games("two", [moved]).digest
    assert build_games("three", [file], GameFilter(min_plies=2)).digest != build_games("four", [file]).digest


def test_the_manifest_names_files_filters_and_reasons_and_no_directory(file):
    made = build_games("small", [file], GameFilter(max_plies=10))
    text = (corpus.root() / "small" / "manifest.json").read_text()
    manifest = json.loads(text)
    assert manifest["sources"] == [{"name": "small.pgn", "bytes": len(TEXT)}]
    assert manifest["filters"]["max_plies"] == 10
    assert manifest["skipped"] == {"illegal move": 1}
    assert manifest["digest"] == made.digest
    assert str(file.parent) not in text


def test_a_corpus_is_hashable_picklable_and_found_by_name(file):
    made = build_games("small", [file])
    assert pickle.loads(pickle.dumps(made)) == made == corpus_named("games", "small")
    assert len({made, corpus_named("games", "small")}) == 1
    assert made.open() is corpus_named("games", "small").open()


def test_where_there_is_no_corpus_the_message_has_the_command_that_makes_one(file):
    build_games("small", [file])
    with pytest.raises(ValueError, match="there: small.*stagecraft corpus games FILE.pgn.zst --name large"):
        corpus_named("games", "large")
    with pytest.raises(ValueError, match="stagecraft corpus puzzles lichess_db_puzzle.csv.zst --name large"):
        corpus_named("puzzles", "large")
    with pytest.raises(ValueError, match="a corpus of games, not of puzzles"):
        corpus_named("puzzles", "small")


def test_a_corpus_with_another_content_is_refused_with_both_digests(file):
    made = build_games("small", [file])
    other = replace(made, digest="0" * 32)
    with pytest.raises(ValueError, match=f"has the digest {made.digest}, the one that is declared has 00000"):
        other.open()


def test_damage_is_noticed(file):
    made = build_games("small", [file])
    moves = corpus.root() / "small" / "moves.bin"
    whole = moves.read_bytes()
    moves.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    with pytest.raises(ValueError, match="the corpus is damaged"):
        made.verify()
    moves.write_bytes(whole[:-2])
    corpus._opened.cache_clear()
    with pytest.raises(ValueError, match=r"moves.bin has \d+ bytes, not \d+: the corpus is damaged"):
        made.open()
    moves.unlink()
    with pytest.raises(ValueError, match="moves.bin is missing"):
        made.open()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"kind": 1}'])
def test_a_damaged_manifest_is_noticed(file, content):
    build_games("small", [file])
    (corpus.root() / "small" / "manifest.json").write_text(content)
    with pytest.raises(ValueError, match="manifest.json is damaged"):
        corpus_named("games", "small")


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("rows", 2, "says 2 rows, which moves.bin has not"),
        ("rows", 10**6, "says 1000000 rows"),
        ("rows", "3", "its entry 'rows' is '3'"),
        ("sources", None, "its entry 'sources' is None"),
        ("files", [], r"its entry 'files' is \[\]"),
        ("digest", 5, "its entry 'digest' is 5"),
    ],
)
def test_an_edited_manifest_is_noticed_when_the_corpus_is_opened(file, entry, value, message):
    build_games("small", [file])
    path = corpus.root() / "small" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {entry: value}))
    with pytest.raises(ValueError, match=message):
        corpus_named("games", "small").open()


@pytest.mark.parametrize(
    ("name", "size"), [("hash.bin", 16), ("moves.offsets.bin", 24), ("elo.bin", 11), ("moves.bin", 2)]
)
def test_files_that_end_early_are_noticed_even_if_the_manifest_agrees(file, name, size):
    made = build_games("small", [file])
    manifest = corpus.root() / "small" / "manifest.json"
    entries = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(entries | {"files": entries["files"] | {name: size}}))
    with (corpus.root() / "small" / name).open("r+b") as shorter:
        shorter.truncate(size)
    with pytest.raises(ValueError, match="the corpus is damaged"):
        made.open()


def test_force_gives_up_corpora_and_nothing_else(file):
    mine = corpus.root() / "mine"
    mine.mkdir(parents=True)
    (mine / "letter.txt").write_text("dear")
    with pytest.raises(
        ValueError, match="mine is no corpus, since it has no manifest.json, so --force leaves it alone"
    ):
        build_games("mine", [file], force=True)
    assert (mine / "letter.txt").read_text() == "dear"
    (corpus.root() / "note").write_text("dear")
    with pytest.raises(ValueError, match="note is no corpus"):
        build_games("note", [file], force=True)


def test_a_corpus_that_is_finished_while_another_build_waits_stays(file, monkeypatch):
    class Waited(FileLock):
        """A lock that another process held until it had built the corpus."""

        def __enter__(self):
            monkeypatch.undo()
            monkeypatch.setenv(corpus.ROOT_VARIABLE, root)
            self.made = build_games("small", [file])
            return super().__enter__()

    root = str(corpus.root())
    monkeypatch.setattr(corpus_tables, "FileLock", Waited)
    with pytest.raises(ValueError, match="small exists; give --force"):
        build_games("small", [file], GameFilter(min_plies=2))
    assert len(corpus_named("games", "small")) == 3


def test_a_build_that_was_killed_while_it_took_the_place_of_a_corpus_gives_that_back(file):
    made = build_games("small", [file])
    (corpus.root() / "small").rename(corpus.root() / ".small.old")  # what _put does first
    with pytest.raises(ValueError, match="small exists; give --force"):
        build_games("small", [file], GameFilter(min_plies=2))
    assert corpus_named("games", "small") == made
    assert leftovers() == ["small"]


def test_a_corpus_of_another_form_is_refused(file):
    build_games("small", [file])
    path = corpus.root() / "small" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    with pytest.raises(ValueError, match="has the form 99, this version reads 1"):
        corpus_named("games", "small")


def test_a_name_that_is_taken_is_refused_and_the_corpus_stays(file):
    made = build_games("small", [file])
    with pytest.raises(ValueError, match=r"small exists; give --force to replace it"):
        build_games("small", [file], GameFilter(min_plies=2))
    assert corpus_named("games", "small") == made
    other = build_games("small", [file], GameFilter(min_plies=2), force=True)
    assert corpus_named("games", "small") == other
    assert leftovers() == ["small"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
@pytest.mark.parametrize("step", ["_append_games", "finish"])
def test_an_interrupted_build_leaves_nothing_and_the_corpus_before_it(file, monkeypatch, error, step):
    made = build_games("small", [file])

    def fails(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(corpus, step, fails)
        with pytest.raises(type(error) if isinstance(error, OSError) else error):
            build_games("small", [file], force=True)
        with pytest.raises(type(error) if isinstance(error, OSError) else error):
            build_games("new", [file])
    assert leftovers() == ["small"]
    assert corpus_named("games", "small") == made


def test_what_a_killed_build_left_is_no_corpus_and_the_next_one_begins_anew(file):
    left = corpus.root() / ".small.partial"
    left.mkdir(parents=True)
    (left / "moves.bin").write_bytes(b"half")
    assert corpora() == []
    with pytest.raises(ValueError, match="there is no corpus 'small'"):
        corpus_named("games", "small")
    build_games("small", [file])
    assert leftovers() == ["small"]


def test_two_builds_of_one_name_do_not_mix(file):
    corpus.root().mkdir()
    with FileLock(corpus.root() / ".small.lock"), pytest.raises(ValueError, match="another process is building"):
        build_games("small", [file])


def test_a_corpus_of_nothing_is_refused_with_the_reasons(file):
    with pytest.raises(ValueError, match="no games are left of small.pgn: filter: length 5; loosen"):
        build_games("small", [file], GameFilter(min_plies=100))
    assert leftovers() == []


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "ä", "x" * 101])
def test_a_name_that_is_no_plain_directory_is_refused(file, name):
    with pytest.raises(ValueError, match="a corpus is named by letters"):
        build_games(name, [file])


def test_files_that_are_not_there_are_named(tmp_path):
    with pytest.raises(ValueError, match="none.pgn is not a file"):
        build_games("small", [tmp_path / "none.pgn"])
    with pytest.raises(ValueError, match="at least one file"):
        build_games("small", [])


def test_a_digest_and_a_place_that_cannot_be_are_refused(file):
    with pytest.raises(ValueError, match="32 hexadecimal digits, got 'abc'"):
        GameCorpus(name="small", digest="abc")
    made = build_games("small", [file])
    with pytest.raises(IndexError, match="has 3 games, there is no number 3"):
        made[3]


def test_corpora_lists_what_is_finished(file, some):
    build_games("small", [file])
    build_puzzles("puzzles", some / "puzzles.csv", PuzzleFilter(themes=("mateIn1",)))
    assert [(name, manifest["kind"]) for name, manifest in corpora()] == [("puzzles", "puzzles"), ("small", "games")]


# -------------------------------------------------------------------------------------------------------- puzzles


def as_sets(puzzles):
    return [replace(puzzle, themes=tuple(sorted(puzzle.themes))) for puzzle in puzzles]


def test_a_corpus_of_puzzles_is_the_puzzles_of_its_file(some):
    made = build_puzzles("some", some / "puzzles.csv")
    assert isinstance(made, PuzzleCorpus)
    assert as_sets(made) == as_sets(read_puzzles(some / "puzzles.csv", Counter()))
    made.verify()


def test_a_corpus_of_the_shipped_puzzles_gives_their_problems(some, monkeypatch):
    puzzles = tuple(read_puzzles(some / "puzzles.csv", Counter()))  # a part, for time
    monkeypatch.setattr(puzzle_sources, "_shipped", lambda: puzzles)
    shipped, mine = ShippedPuzzles(), CorpusPuzzles(corpus=build_puzzles("some", some / "puzzles.csv"))
    assert mine.count == shipped.count == 300
    for place in range(300):
        one, other = shipped.puzzle(place), mine.puzzle(place)
        assert replace(one, themes=()) == replace(other, themes=())
        assert set(one.themes) == set(other.themes)  # their order is that of the bits
    first, second = (ChessPuzzle(source=source, mate=(1, 1)) for source in (shipped, mine))
    assert list(first.enumerate()) == list(second.enumerate())
    assert first.generate(stream("corpus"), 50) == second.generate(stream("corpus"), 50)


def test_the_hash_is_of_the_position_that_is_asked(some):
    made = build_puzzles("some", some / "puzzles.csv", PuzzleFilter(max_rating=900))
    for place in range(0, len(made), 10):
        puzzle = made[place]
        board = chess.Board(puzzle.fen)
        board.push_uci(puzzle.moves[0])
        assert made.open().columns["asked"][place] == rules.position_hash(board)


def test_puzzles_that_are_there_twice_are_taken_once(some, tmp_path):
    lines = (some / "puzzles.csv").read_bytes().split(b"\n")
    path = tmp_path / "twice.csv"
    path.write_bytes(b"\n".join([*lines[:3], lines[1], b"bad,line", lines[3]]))
    made = build_puzzles("twice", path)
    assert [puzzle.id for puzzle in made] == [line.split(b",")[0].decode() for line in lines[1:4]]
    assert made.open().manifest["duplicates"] == 1
    assert sum(made.open().manifest["skipped"].values()) == 1


@pytest.mark.parametrize(
    ("filters", "passes"),
    [
        (PuzzleFilter(min_rating=1500), lambda puzzle: puzzle.rating >= 1500),
        (PuzzleFilter(max_rating=1000), lambda puzzle: puzzle.rating <= 1000),
        (PuzzleFilter(themes=("fork", "pin")), lambda puzzle: {"fork", "pin"} & set(puzzle.themes)),
        (PuzzleFilter(without=("mateIn1",)), lambda puzzle: "mateIn1" not in puzzle.themes),
    ],
)
def test_filters_of_puzzles_take_what_they_say(some, filters, passes):
    every = list(read_puzzles(some / "puzzles.csv", Counter()))
    made = build_puzzles("filtered", some / "puzzles.csv", filters)
    wanted = [puzzle.id for puzzle in every if passes(puzzle)]
    assert [puzzle.id for puzzle in made] == wanted
    assert sum(made.open().manifest["skipped"].values()) == len(every) - len(wanted)


def test_more_themes_than_there_are_bits_and_long_ids_are_counted(tmp_path, some):
    header, line, *_ = (some / "puzzles.csv").read_text().split("\n")
    fields = line.split(",")
    fields[7] = " ".join(f"t{number}" for number in range(256))
    longer = [*fields[:7], "another", *fields[8:]]
    path = tmp_path / "themes.csv"
    path.write_text("\n".join([header, ",".join(fields), ",".join(longer), ",".join(["i" * 17, *fields[1:]])]))
    made = build_puzzles("themes", path)
    assert made.open().manifest["skipped"] == {"id too long": 1, "more than 256 different themes": 1}
    assert made[0].themes == tuple(fields[7].split())


def test_a_filter_of_puzzles_that_means_nothing_is_refused():
    with pytest.raises(ValueError, match=r"min_rating \(9\) must not be above max_rating \(8\)"):
        PuzzleFilter(min_rating=9, max_rating=8)
    with pytest.raises(ValueError, match="fork both in themes and in without"):
        PuzzleFilter(themes=("fork",), without=("fork",))


def test_positions_come_back_from_38_bytes_with_all_that_a_fen_says():
    for fen in (
        chess.STARTING_FEN,
        "r3k2r/8/8/8/8/8/8/R3K2R b Kq - 12 345",
        "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
        "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1",
        "8/8/8/8/8/8/8/8 w - - 0 1",
    ):
        assert len(pack(chess.Board(fen))) == 38
        assert unpack(pack(chess.Board(fen))).fen(en_passant="fen") == fen
