"""`stagecraft corpus` makes corpora of files, says what was left out, and refuses with one message and exit code 2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments import corpus_commands
from testbeds.chess import corpus, pgn
from testbeds.chess.corpus import corpus_named

DATA = Path(pgn.__file__).parent / "data"
GAMES = (
    '[Event "Rated"]\n[WhiteElo "1500"]\n[BlackElo "1700"]\n[TimeControl "60+0"]\n\n1. e4 e5 1-0\n\n'
    '[Event "Rated"]\n[WhiteElo "2500"]\n[BlackElo "2700"]\n[TimeControl "600+0"]\n\n1. d4 d5 2. c4 1-0\n\n'
    '[Event "Casual"]\n[WhiteElo "2500"]\n[BlackElo "2700"]\n[TimeControl "600+0"]\n\n1. d4 d5 2. c4 1-0\n\n'
    '[Event "Rated"]\n\n1. e4 Ke7 0-1\n\n'
)
PUZZLES = (
    "PuzzleId,FEN,Moves,Rating,Themes\n"
    "000rZ,2kr1b1r/p1p2pp1/2pqb3/7p/3N2n1/2NPB3/PPP2PPP/R2Q1RK1 w - - 2 13,d4e6 d6h2,662,mateIn1 kingsideAttack\n"
    "0017R,r2qk2r/pp2ppbp/1n1p2p1/3Pn3/2P5/2NBBP1P/PP3P2/R2QK2R b KQkq - 0 12,"
    "e5c4 d3c4 b6c4 d1a4 d8d7 a4c4,1655,fork\n"
    "bad,line\n"
)


@pytest.fixture(autouse=True)
def _folder(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv(corpus.ROOT_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.pgn").write_text(GAMES)
    (tmp_path / "some.csv").write_text(PUZZLES)


def test_a_corpus_of_games_is_made_and_summed_up(stagecraft):
    code, out, err = stagecraft("corpus games some.pgn --name small")
    assert (code, err) == (0, "")
    made = corpus_named("games", "small")
    assert f"small: 2 games, digest {made.digest}" in out
    assert "left out: 1 that were there before" in out
    assert re.search(r"left out: 1 +illegal move", out)
    assert "corpus_named('games', 'small')" in out
    assert [len(game.moves) for game in made] == [2, 3]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--min-elo 2000", "filter: Elo"),
        ("--max-elo 3000 --min-elo 2400", "filter: Elo"),
        ("--min-plies 3", "filter: length"),
        ("--min-seconds 300", "filter: time control"),
        ("--speed rapid --speed classical", "filter: time control"),
    ],
)
def test_filters_leave_the_first_game_out(stagecraft, options, reason):
    code, out, _ = stagecraft(f"corpus games some.pgn --name small {options}")
    assert code == 0
    assert reason in out
    assert [len(game.moves) for game in corpus_named("games", "small")] == [3]


@pytest.mark.parametrize("options", ["--max-plies 2", "--max-elo 2000", "--max-seconds 100", "--speed bullet"])
def test_filters_leave_the_second_game_out(stagecraft, options):
    assert stagecraft(f"corpus games some.pgn --name small --event rated --result 1-0 {options}")[0] == 0
    assert [len(game.moves) for game in corpus_named("games", "small")] == [2]


def test_a_corpus_of_puzzles_is_made_and_summed_up(stagecraft):
    code, out, err = stagecraft("corpus puzzles some.csv --name mates --theme mateIn1 --max-rating 1000")
    assert (code, err) == (0, "")
    assert "mates: 1 puzzles, digest " in out
    assert "left out: 1  filter: rating" in out
    assert "left out: 1  wrong number of fields" in out
    assert corpus_named("puzzles", "mates")[0].id == "000rZ"


def test_corpora_are_listed(stagecraft):
    assert "no corpora in corpora" in stagecraft("corpus list")[1]
    stagecraft("corpus games some.pgn --name small")
    stagecraft("corpus puzzles some.csv --name mates --without fork")
    _, out, _ = stagecraft("corpus list")
    assert re.search(r"mates .* puzzles .* 1 .* some.csv .* [0-9a-f]{32}", out)
    assert re.search(r"small .* games .* 2 .* some.pgn .* [0-9a-f]{32}", out)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("corpus games none.pgn --name a", "none.pgn is not a file"),
        ("corpus games some.csv --name a", "some.csv is no PGN: it begins with"),
        ("corpus puzzles some.pgn --name a", "some.pgn is no puzzle file"),
        ("corpus games some.pgn --name a/b", "a corpus is named by letters"),
        ("corpus games some.pgn --name a --speed fast", "GameFilter.speeds must be some of"),
        ("corpus games some.pgn --name a --min-elo 9 --max-elo 8", "min_elo (9) must not be above max_elo (8)"),
        ("corpus games some.pgn --name a --min-plies 100", "no games are left of some.pgn: filter: length"),
        ("corpus puzzles some.csv --name a --theme x --without x", "x both in themes and in without"),
    ],
)
def test_what_cannot_be_is_refused_with_one_message_and_leaves_nothing(stagecraft, line, message):
    code, _, err = stagecraft(line)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert not list(Path().glob("corpora/[!.]*"))


def test_a_name_that_is_taken_needs_force(stagecraft):
    stagecraft("corpus games some.pgn --name small")
    code, _, err = stagecraft("corpus games some.pgn --name small --min-plies 3")
    assert code == 2
    assert "--force" in err
    assert len(corpus_named("games", "small")) == 2
    assert stagecraft("corpus games some.pgn --name small --min-plies 3 --force")[0] == 0
    assert len(corpus_named("games", "small")) == 1


def test_corpora_are_verified(stagecraft):
    stagecraft("corpus games some.pgn --name small")
    stagecraft("corpus puzzles some.csv --name mates")
    code, out, _ = stagecraft("corpus verify small mates")
    assert code == 0
    assert re.search(r"small: 2 games, whole, digest [0-9a-f]{32}\nmates: 2 puzzles, whole", out)
    result = Path("corpora/small/result.bin")
    result.write_bytes(b"\1" * result.stat().st_size)
    for line, message in (
        ("small", "the corpus is damaged"),
        ("none", "no whole corpus 'none'"),
        ("../x", "is named by"),
    ):
        code, _, err = stagecraft(f"corpus verify {line}")
        assert code == 2
        assert message in err


def test_an_interrupt_says_that_nothing_was_written(stagecraft, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(corpus, "finish", interrupted)
    code, _, err = stagecraft("corpus games some.pgn --name small")
    assert code == 130
    assert "nothing was written" in err
    assert not list(Path().glob("corpora/[!.]*"))


def test_plain_lines_tell_how_far_it_is(stagecraft, monkeypatch):
    monkeypatch.setattr(corpus_commands, "HEARTBEAT_S", -1.0)
    assert "of 0 MiB read" in stagecraft("corpus games some.pgn --name small")[1]


def test_a_download_that_was_cut_off_gets_a_warning(stagecraft, tmp_path):
    whole = (DATA / "games.pgn.zst").read_bytes()
    (tmp_path / "cut.pgn.zst").write_bytes(whole[: len(whole) // 2])
    code, out, err = stagecraft("corpus games cut.pgn.zst --name cut")
    assert code == 0
    assert "left out: 1  file ends in the middle of a frame" in out
    assert err.startswith("warning: file ends in the middle of a frame")
