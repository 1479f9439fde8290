"""Where games come from: each source gives legal games, and the same ones for the same random numbers."""

import os
import pickle
import shutil
import sys

import chess
import numpy as np
import pytest

from testbeds import fingerprint, stream
from testbeds.chess import rules
from testbeds.chess.corpus import build_games
from testbeds.chess.games import Game, GameSource
from testbeds.chess.sources import MOST_PIECES, CorpusGames, SelfPlay, ShippedGames, Stockfish

PGN = """[Result "1-0"]

1. f3 e5 2. g4 Qh4# 1-0

[FEN "8/8/8/4k3/8/8/P7/K7 w - - 0 1"]
[SetUp "1"]
[Result "1/2-1/2"]

1. a4 Kd5 1/2-1/2
"""
ENGINE = """#!{python}
# Speaks as much UCI as a game needs, plays the first legal move in the order of text, and logs what it hears.
import sys
import chess

board = chess.Board()
for line in sys.stdin:
    with open({log!r}, "a") as log:
        log.write(line)
    match line.split():
        case ["uci"]:
            print("id name Fake 1.0")
            print("option name Threads type spin default 4 min 1 max 512")
            print("option name Hash type spin default 64 min 1 max 1024")
            print("uciok")
        case ["isready"]:
            print("readyok")
        case ["position", "startpos", *rest]:
            board = chess.Board()
            for move in rest[1:]:
                board.push_uci(move)
        case ["go", *_]:
            print("bestmove", min(move.uci() for move in board.legal_moves))
        case ["quit"]:
            break
    sys.stdout.flush()
"""


def played(game):
    """The board after a game, whose moves are all legal."""
    board = chess.Board() if game.start is None else chess.Board(game.start)
    assert board.is_valid()
    for code in game.moves:
        move = rules.decode(code)
        assert board.is_legal(move), (game, move)
        board.push(move)
    return board


def sources():
    return (
        ShippedGames(),
        SelfPlay(),
        SelfPlay(policy="greedy", noise=0.2, most_plies=60),
        SelfPlay(policy="one_ply", noise=0.1, most_plies=60, start="KQPKR"),
        SelfPlay(policy="two_ply", noise=0.3, most_plies=20),
    )


@pytest.mark.parametrize("source", sources(), ids=repr)
def test_a_source_gives_legal_games_and_the_same_ones_for_the_same_random_numbers(source):
    assert isinstance(source, GameSource)
    games = source.draw(stream("sources", "some"), 12)
    assert len(games) == 12
    assert games == pickle.loads(pickle.dumps(source)).draw(stream("sources", "some"), 12)
    assert games != source.draw(stream("sources", "others"), 12)
    for game in games:
        assert played(game)
        assert game.moves
        assert game.result in ("1-0", "0-1", "1/2-1/2", "*")
    assert source.describe().strip()
    assert fingerprint(source)


def test_the_shipped_games_are_all_of_the_sample_and_each_there_once():
    games = tuple(ShippedGames().games())
    assert len(games) == ShippedGames().count == 1557
    assert len({game.moves for game in games}) == len(games)
    assert all(game.start is None and len(game.moves) > 1 for game in games)
    drawn = ShippedGames().draw(stream("sources", "all"), 20_000)
    # 20,000 draws of 1,557 games leave out each with probability e^-12.8, 0.004 games in all.
    assert set(drawn) == set(games)


def test_self_play_has_no_end():
    assert SelfPlay().games() is None
    assert SelfPlay().count is None


def test_a_game_of_self_play_ends_by_the_rules_or_after_so_many_plies():
    games = SelfPlay(most_plies=150).draw(stream("sources", "ends"), 60)
    for game in games:
        board = played(game)
        over = board.outcome(claim_draw=True)
        assert len(game.moves) == 150 or over is not None
        assert len(game.moves) <= 150
        if board.is_checkmate() or board.is_stalemate() or board.is_insufficient_material():
            assert game.result == board.result()
        else:
            assert game.result == "*"
    assert len({game.moves for game in games}) == 60


def test_a_policy_that_looks_ahead_mates_with_a_queen_more_often_than_chance_does():
    def mates(policy):
        games = SelfPlay(policy=policy, start="KQQK", most_plies=60).draw(stream("sources", "strength"), 30)
        return sum(game.result == "1-0" for game in games)

    assert mates("two_ply") > mates("random") + 5


def test_noise_of_one_plays_as_the_random_policy_does_on_average():
    def length(source):
        return np.mean([len(game.moves) for game in source.draw(stream("sources", "noise"), 60)])

    # Both are means of 60 games of the same distribution; one ply without noise takes what it can.
    noisy = SelfPlay(policy="one_ply", noise=1.0, start="KRPKR", most_plies=80)
    assert abs(length(noisy) - length(SelfPlay(start="KRPKR", most_plies=80))) < 15


@pytest.mark.parametrize("pieces", ["KQK", "KRPKR", "KPPPKPP", "KBNKN", "KQQQQQQQQK", "KPPPPPPPPK"])
def test_a_start_from_pieces_is_a_legal_position_with_just_these(pieces):
    games = SelfPlay(start=pieces, most_plies=1).draw(stream("sources", "starts", pieces), 30)
    boards = [chess.Board(game.start) for game in games]
    white, black = pieces[: pieces.index("K", 1)], pieces[pieces.index("K", 1) :]
    for board in boards:
        assert board.is_valid()
        letters = [piece.symbol() for piece in board.piece_map().values()]
        assert sorted(letters) == sorted([*white, *black.lower()])
        assert any(board.legal_moves)
    assert {board.turn for board in boards} == {chess.WHITE, chess.BLACK} or "QQ" in pieces
    assert len({game.start for game in games}) > 25


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (dict(policy="strong"), "policy must be one of"),
        (dict(noise=1.5), "probability"),
        (dict(noise="some"), "probability"),
        (dict(most_plies=0), "from 1 to 600"),
        (dict(most_plies=True), "from 1 to 600"),
        (dict(start="QKK"), "each with its king first"),
        (dict(start="KK"), "3 to 10"),
        (dict(start="KQ"), "each with its king first"),
        (dict(start="KQQQQQQQQQQK"), f"{MOST_PIECES} in all"),
        (dict(start=None), "must be 'usual'"),
    ],
)
def test_self_play_refuses_what_it_cannot_play_and_says_what_it_can(wrong, told):
    with pytest.raises(ValueError, match=told):
        SelfPlay(**wrong)


def test_a_corpus_is_a_source_of_its_games(tmp_path, monkeypatch):
    monkeypatch.setenv("STAGECRAFT_CORPORA", str(tmp_path / "corpora"))
    file = tmp_path / "some.pgn"
    file.write_text(PGN)
    source = CorpusGames(corpus=build_games("some", [file]))
    listed = list(source.games())
    assert source.count == len(listed) == 2
    assert [game.start for game in listed] == [None, "8/8/8/4k3/8/8/P7/K7 w - - 0 1"]
    assert played(listed[0]).is_checkmate()
    drawn = source.draw(stream("sources", "corpus"), 40)
    assert drawn == source.draw(stream("sources", "corpus"), 40)
    assert set(drawn) == set(listed)
    assert "some" in source.describe()


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A small engine on the search path, under Stockfish's name; what it was told."""
    log = tmp_path / "heard"
    program = tmp_path / "stockfish"
    program.write_text(ENGINE.format(python=sys.executable, log=str(log)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return log


def test_an_engine_plays_with_one_thread_a_fixed_number_of_nodes_and_a_clean_table_for_each_game(engine):
    source = Stockfish(nodes=7, opening=2, most_plies=6)
    games = source.draw(stream("sources", "engine"), 3)
    heard = engine.read_text().splitlines()
    assert games == source.draw(stream("sources", "engine"), 3)
    assert "setoption name Threads value 1" in heard
    assert heard.count("ucinewgame") == 3
    assert {line for line in heard if line.startswith("go")} == {"go nodes 7"}
    for game in games:
        assert len(game.moves) == 6
        board = chess.Board()
        for place, code in enumerate(game.moves):
            move = rules.decode(code)
            assert place < 2 or move == min(board.legal_moves, key=chess.Move.uci)
            board.push(move)
    assert len({game.moves[:2] for game in games}) == 3


def test_noise_plays_for_the_engine(engine):
    game = Stockfish(noise=1.0, most_plies=12).draw(stream("sources", "engine"), 1)[0]
    assert played(game)
    assert not [line for line in engine.read_text().splitlines() if line.startswith("go")]


@pytest.mark.usefixtures("engine")
def test_an_engine_of_another_version_is_refused():
    assert Stockfish(version="Fake 1.0", most_plies=3, opening=1).draw(stream("sources", "engine"), 1)
    with pytest.raises(ValueError, match="is 'Fake 1.0'"):
        Stockfish(version="Stockfish 16.1").draw(stream("sources", "engine"), 1)


def test_without_an_engine_the_error_says_how_to_install_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="apt-get install stockfish"):
        Stockfish().draw(stream("sources", "engine"), 1)


@pytest.mark.skipif(shutil.which("stockfish") is None, reason="Stockfish is not installed (apt-get install stockfish)")
def test_stockfish_plays_the_same_games_again():
    source = Stockfish(nodes=200, most_plies=40)
    games = source.draw(stream("sources", "stockfish"), 2)
    assert games == source.draw(stream("sources", "stockfish"), 2)
    assert all(played(game) for game in games)


@pytest.mark.parametrize(
    "wrong", [dict(nodes=0), dict(opening=200), dict(opening=-1), dict(noise=2), dict(most_plies=0)]
)
def test_an_engine_is_not_asked_for_what_it_cannot_play(wrong):
    with pytest.raises(ValueError, match="must be"):
        Stockfish(**wrong)


def test_a_game_is_a_value():
    game = Game(start=None, moves=(1, 2), result="*")
    assert hash(game) == hash(pickle.loads(pickle.dumps(game)))
