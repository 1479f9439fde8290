"""Games as text: windows that tile a game, verdicts by the rules, and games that show what is evaluated kept out."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import chess
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbeds import EXPLICIT, IMPLICIT, Mixture, Problem, Splits, Suite, TraceStyle, fingerprint, stream
from testbeds.arithmetic_graphs import LEVELS as GRAPHS
from testbeds.chess import positions, rules
from testbeds.chess.chess_endgame import ChessEndgame
from testbeds.chess.chess_games import LEVELS, ChessGames, GameWindow
from testbeds.chess.chess_puzzle import ChessPuzzle
from testbeds.chess.game_texts import header_of, legal_texts, move_texts
from testbeds.chess.games import Game
from testbeds.chess.notation import BETWEEN, NOTATIONS, written, written_line
from testbeds.chess.positions import HEADERS, header_text
from testbeds.chess.reaches import Positioned, Reaches
from testbeds.chess.sources import SelfPlay, ShippedGames
from testbeds.mixture import innermost
from training import audit

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
PROMOTIONS = "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1"
MANY_QUEENS = "7k/8/8/Q2Q4/8/8/Q2Q4/7K w - - 0 1"  # they reach d5's and a2's surroundings by file, rank and both
EN_PASSANT = "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 3"
FENS = (chess.STARTING_FEN, KIWIPETE, PROMOTIONS, MANY_QUEENS, EN_PASSANT)


@st.composite
def lines(draw, most=30):
    """A board and the moves of a game that goes on from it."""
    board = chess.Board(draw(st.sampled_from(FENS)))
    end, moves = board.copy(), []
    for choice in draw(st.lists(st.integers(0, 217), min_size=1, max_size=most)):
        legal = list(end.legal_moves)
        if legal:
            moves.append(legal[choice % len(legal)])
            end.push(moves[-1])
    return board, moves


def game_of(text, start=None):
    """A game from moves such as ``e2e4 e7e5``."""
    board = chess.Board(start) if start else chess.Board()
    for move in text.split():
        board.push_uci(move)
    return Game(start=start, moves=tuple(rules.encode(move) for move in board.move_stack), result="*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A source of just these games."""

    revision: ClassVar[int] = 1

    listed: tuple[Game, ...]

    def draw(self, rng, count: int) -> list[Game]:
        return [self.listed[place] for place in rng.integers(len(self.listed), size=count)]

    def games(self) -> Iterable[Game] | None:
        return self.listed

    @property
    def count(self) -> int | None:
        return len(self.listed)

    def describe(self) -> str:
        return f"{len(self.listed)} listed games"


OPEN = game_of("e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4")


def windows(task):
    return list(task.enumerate())


# ------------------------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize("notation", NOTATIONS)
@given(line=lines())
@settings(max_examples=60)
def test_moves_are_written_as_python_chess_says(notation, line):
    board, moves = line
    texts = move_texts(rules.state_of(board), [rules.encode(move) for move in moves], notation)
    assert BETWEEN[notation].join(texts) == written_line(board, moves, notation)
    for move in moves:
        board.push(move)
    told = {rules.decode(move): text for move, text in legal_texts(rules.state_of(board), notation)}
    assert told == {move: written(board, move, notation) for move in board.legal_moves}


@pytest.mark.parametrize("header", HEADERS)
@given(line=lines())
@settings(max_examples=60)
def test_headers_are_written_as_python_chess_says(header, line):
    board, moves = line
    state = rules.state_of(board)
    for move in moves:
        assert header_of(state, header) == header_text(board, header)
        rules.play(state, rules.encode(move))
        board.push(move)


@pytest.mark.parametrize("notation", NOTATIONS)
def test_the_windows_of_a_game_are_all_of_it_and_each_says_where_it_starts(notation):
    game = ShippedGames().draw(stream("chess games", "one"), 1)[0]
    task = ChessGames(source=Listed(listed=(game,)), notation=notation, plies=15)
    board = chess.Board()
    for problem in windows(task):
        assert problem.prompt == f"{header_text(board, 'squares')} >"
        assert task.board(problem).fen().split()[:2] == board.fen().split()[:2]
        moves = [rules.decode(code) for code in game.moves[board.ply() : board.ply() + 15]]
        trace = task.demonstrate(problem, EXPLICIT, stream("trace"))
        assert trace.text == written_line(board, moves, notation)
        assert len(trace.steps) == len(moves) == problem.features["plies"]
        assert problem.features["ply"] == board.ply()
        assert problem.features["pieces"] == len(board.piece_map())
        assert problem.features["legal_moves"] == board.legal_moves.count()
        for move in moves:
            board.push(move)
    assert board.ply() == len(game.moves)


def test_moves_that_are_given_stand_in_the_prompt_and_are_not_asked():
    task = ChessGames(source=Listed(listed=(OPEN,)), plies=4, given=2, notation="uci_moves", header="pieces")
    first, second = windows(task)
    assert first.prompt.endswith("> e2e4 e7e5")
    assert task.demonstrate(first, EXPLICIT, stream("trace")).text == "g1f3 b8c6"
    assert task.verify(first, "g1f3").correct
    assert not task.verify(first, "e2e4 e7e5 g1f3 b8c6").correct
    assert second.prompt.endswith("> f1b5 a7a6")
    assert task.demonstrate(second, EXPLICIT, stream("trace")).text == "b5a4"
    assert len(windows(replace(task, given=3))) == 1  # the second window has three moves: none is left to say
    whole = ChessGames(source=Listed(listed=(OPEN,)), plies=None, given=6, header=None, notation="uci_moves")
    assert [problem.prompt for problem in windows(whole)] == ["> e2e4 e7e5 g1f3 b8c6 f1b5 a7a6"]


def test_a_problem_knows_its_game_and_its_window():
    task = ChessGames(source=Listed(listed=(OPEN,)), plies=4)
    first, second = windows(task)
    assert first.family == second.family
    assert first.key != second.key
    assert {problem.key for problem in windows(replace(task, plies=5))}.isdisjoint({first.key})
    other = replace(OPEN, moves=OPEN.moves[:-1])
    assert windows(replace(task, source=Listed(listed=(other,))))[0].family != first.family


def test_all_games_of_a_family_are_in_one_split_and_their_number_is_exact():
    task = ChessGames(plies=40)
    problems = windows(task)
    # ceil(plies / 40) windows of each game
    expected = sum(-(-len(game.moves) // 40) for game in ShippedGames().games())
    assert len(problems) == len({problem.key for problem in problems}) == task.capacity == expected
    by_split = {split: set() for split in Splits().names}
    for problem in problems:
        by_split[Splits().of(problem)].add(problem.family)
    assert not by_split["train"] & by_split["test"]
    assert len(Suite(task=task).distinct("test", 100)) == 100


def test_a_window_is_drawn_uniformly_from_those_of_its_game():
    task = ChessGames(source=Listed(listed=(OPEN,)), plies=2)
    drawn = task.generate(stream("chess games", "windows"), 4000)
    counts = np.unique([problem.features["ply"] for problem in drawn], return_counts=True)[1]
    # 4 windows: 1000 each, with a standard deviation of 27
    assert np.abs(counts - 1000).max() < 140


def test_games_without_a_window_are_left_out_and_a_source_of_nothing_else_is_refused():
    elsewhere = game_of("a2a4 e5d5", "8/8/8/4k3/8/8/P7/K7 w - - 0 1")
    long = Game(start=None, moves=tuple(map(rules.encode, map(chess.Move.from_uci, SHUFFLE))), result="*")
    source = Listed(listed=(OPEN, elsewhere, long))
    whole = ChessGames(source=source, header=None, plies=None)
    assert [problem.certificate.game for problem in windows(whole)] == [OPEN]
    assert {problem.certificate.game for problem in whole.generate(stream("chess games", "left out"), 20)} == {OPEN}
    assert len(windows(ChessGames(source=source, plies=8))) == 1 + 1 + 76  # 602 plies are 76 windows
    nothing = ChessGames(source=Listed(listed=(elsewhere,)), header=None, plies=None)
    with pytest.raises(ValueError, match="gave no game with a window"):
        nothing.generate(stream("chess games", "nothing"), 1)


SHUFFLE = ("g1f3", "g8f6", "f3g1", "f6g8") * 150 + ("e2e4", "e7e5")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (dict(header=None), "a header must say"),
        (dict(header=None, plies=None, source=SelfPlay(start="KQK")), "usual start"),
        (dict(header="fen"), "header must be one of"),
        (dict(notation="english"), "notation must be one of"),
        (dict(plies=0), "from 1 to 600"),
        (dict(plies=601), "from 1 to 600"),
        (dict(plies=True), "from 1 to 600"),
        (dict(given=16), "from 0 to 15"),
        (dict(given=-1), "from 0 to 15"),
        (dict(given="1"), "from 0 to 15"),
        (dict(source="games.pgn"), "a source of games"),
    ],
)
def test_what_makes_no_task_is_refused_with_what_would(wrong, told):
    with pytest.raises(ValueError, match=told):
        ChessGames(**wrong)


@pytest.mark.parametrize(
    "style",
    [
        IMPLICIT,
        TraceStyle(order="backward"),
        TraceStyle(granularity="composed", group=2),
        TraceStyle(search="depth_first"),
        TraceStyle(search="breadth_first"),
    ],
    ids=lambda style: style.name,
)
def test_a_game_is_written_as_it_was_played_and_in_no_other_style(style):
    task = ChessGames()
    with pytest.raises(ValueError, match="'explicit' alone"):
        task.demonstrate(task.generate(stream("chess games"), 1)[0], style, stream("trace"))


# ---------------------------------------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize("notation", NOTATIONS)
@given(line=lines())
@settings(max_examples=30)
def test_any_legal_moves_are_right_and_the_first_illegal_one_is_named(notation, line):
    board, moves = line
    if not moves:
        return
    task = ChessGames(source=Listed(listed=(game_at(board),)), notation=notation)
    problem = windows(task)[0]
    verdict = task.verify(problem, written_line(board, moves, notation))
    assert verdict.correct, verdict
    assert verdict.progress == 1
    texts = written_line(board, moves, notation).split(BETWEEN[notation])
    stays = {"san": "Na1b2", "long_algebraic": "Na1b2"}.get(notation, "a1a1")  # no knight moves so, no piece stays
    verdict = task.verify(problem, BETWEEN[notation].join([*texts, stays, *texts]))
    assert (verdict.correct, verdict.well_formed) == (False, True)
    assert verdict.progress == len(moves) / (2 * len(moves) + 1)
    assert stays in verdict.reason


def game_at(board):
    """A game that starts from a position, by its first legal move."""
    fen = board.fen()
    return game_of(next(iter(board.legal_moves)).uci(), None if fen == chess.STARTING_FEN else fen)


def test_verdicts_of_a_few_texts():
    task = ChessGames(source=Listed(listed=(OPEN,)))
    problem = windows(task)[0]

    def said(text):
        verdict = task.verify(problem, text)
        return verdict.correct, verdict.well_formed, round(verdict.progress, 3)

    assert said("P e2 e4 P e7 e5 N g1 f3 N b8 c6 B f1 b5 P a7 a6 B b5 a4") == (True, True, 1)
    assert said("Pd2d4") == (True, True, 1)
    assert said("Pe2e4 Pe7e5 Pe4e5") == (False, True, 0.667)  # two of three moves are legal
    assert said("Pe2e5") == (False, True, 0)
    assert said("Pe2e4+") == (False, True, 0)  # it gives no check
    assert said("Pf2f3 Pe7e5 Pg2g4 Qd8h4#") == (True, True, 1)
    assert said("Pf2f3 Pe7e5 Pg2g4 Qd8h4# Pa2a3") == (False, True, 0.8)  # nothing is legal after mate
    assert said("e4") == (False, False, 0)
    assert said("") == (False, False, 0)
    assert "Pe4e5" in task.verify(problem, "Pe2e4 Pe7e5 Pe4e5").reason


@pytest.mark.parametrize("notation", NOTATIONS)
def test_600_moves_are_read_and_more_are_refused(notation):
    task = ChessGames(source=Listed(listed=(OPEN,)), notation=notation)
    problem = windows(task)[0]
    moves = [chess.Move.from_uci(move) for move in SHUFFLE]
    assert task.verify(problem, written_line(chess.Board(), moves[:600], notation)).correct
    refused = task.verify(problem, written_line(chess.Board(), moves[:601], notation))
    assert (refused.correct, refused.well_formed) == (False, False)
    assert "600" in refused.reason


def test_every_choice_is_a_legal_move_that_is_accepted():
    for name in ("shipped", "endings"):
        task = LEVELS[name]
        problem = task.generate(stream("chess games", "choices"), 1)[0]
        choices = task.choices(problem)
        assert len(choices) == problem.features["legal_moves"]
        board = task.board(problem)
        assert {choice.arrow for choice in choices} == {
            (chess.SQUARE_NAMES[move.from_square], chess.SQUARE_NAMES[move.to_square]) for move in board.legal_moves
        }
        assert all(task.verify(problem, choice.text).correct for choice in choices)
        assert str(board).split("\n")[0] in task.drawing(problem)
        assert "<svg" in task.picture(problem, [(choice, 1.0) for choice in choices])


def test_the_floor_is_the_move_that_is_legal_most_often():
    assert ChessGames(header=None, plies=None).floor(LEVELS["whole"].generate(stream("chess games"), 1)[0]) == 1
    # Windows of one game of seven moves, by two: White moves at 0, 2, 4 and 6. Pa2a3 and others are legal in all four.
    task = ChessGames(source=Listed(listed=(OPEN,)), plies=2)
    assert task.floor(windows(task)[0]) == 1
    # Windows of three: White at 0 and 6, Black at 3. No move is legal for both; two of three windows, each drawn with
    # probability 1/3, give 2/3 with a standard deviation of 0.02 in a sample of 500.
    task = ChessGames(source=Listed(listed=(OPEN,)), plies=3)
    assert abs(task.floor(windows(task)[0]) - 2 / 3) < 0.1


def test_levels_differ_in_what_they_read():
    assert len({fingerprint(task) for task in LEVELS.values()}) == len(LEVELS) >= 4


# --------------------------------------------------------------------------------------- what is evaluated stays unseen


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Certificate of a position that is asked."""

    fen: str

    def position_hashes(self) -> tuple[int, ...]:
        return (rules.position_hash(chess.Board(self.fen)),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """A task that asks some positions, as puzzles and endgames do."""

    revision: ClassVar[int] = 1

    fens: tuple[str, ...]

    symbols: ClassVar[tuple[str, ...]] = ("?",)
    instructions: ClassVar[str] = "A position is asked."

    @property
    def capacity(self):
        return len(self.fens)

    def enumerate(self):
        return [Problem(prompt=fen, key=fen, certificate=Asked(fen=fen)) for fen in self.fens]

    def generate(self, rng, count):
        problems = self.enumerate()
        return [problems[place] for place in rng.integers(len(problems), size=count)]

    def asked(self, problem):
        return problem.certificate.position_hashes()

    shown = asked

    def demonstrate(self, problem, style, rng): ...
    def verify(self, problem, completion): ...
    def solutions(self, problem): ...
    def floor(self, problem): ...


WHOLE = Splits(fractions=(("train", 1.0),))
KNIGHTS = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3"  # after 1. e4 e5 2. Nf3 Nc6
REACHING = (
    OPEN,
    game_of("g1f3 b8c6 e2e4 e7e5 d2d4"),  # by other moves
    game_of("e2e3 e7e5 e3e4 g8f6 b1c3 a7a6"),  # Black has what White has there, and moves: with e2e3 a move is lost
)
OTHERS = (game_of("e2e4 e7e5 g1f3 g8f6 b1c3"), game_of("d2d4 d7d5 c2c4 e7e6 b1c3"))


def held_out(*fens):
    evaluation = Suite(task=Positions(fens=fens), splits=WHOLE)
    return replace(WHOLE, held_out=(("reaches", Reaches(suites=((evaluation, "train", None),))),))


def test_games_that_reach_a_position_by_whatever_moves_or_as_its_mirror_image_are_held_out():
    task = ChessGames(source=Listed(listed=(*REACHING, *OTHERS)), header=None, plies=None)
    for fen in (KNIGHTS, chess.Board(KNIGHTS).mirror().fen()):
        splits = held_out(fen)
        assert [splits.of(problem) for problem in windows(task)] == [*["reaches"] * 3, *["train"] * 2]


def test_an_ending_is_held_out_as_its_image_from_left_to_right():
    start = "8/8/8/4k3/8/8/P7/K7 w - - 0 1"
    task = ChessGames(source=Listed(listed=(game_of("a2a4 e5d5", start), OTHERS[1])))
    asked = chess.Board(start)
    asked.push_uci("a2a4")
    splits = held_out(asked.transform(chess.flip_horizontal).fen())
    assert [splits.of(problem) for problem in windows(task)] == ["reaches", "train"]


def test_a_window_is_held_out_if_the_position_is_in_it_at_either_end():
    task = ChessGames(source=Listed(listed=(OPEN,)), plies=2)
    splits = held_out(KNIGHTS)  # after four moves: at the end of the second window and the start of the third
    assert [splits.of(problem) for problem in windows(task)] == ["train", "reaches", "reaches", "train"]


def test_training_never_shows_what_an_evaluation_asks():
    task = ChessGames(source=Listed(listed=(*REACHING, *OTHERS)), header="pieces", plies=4)
    # Positions of real games, some of them as mirror images, and those of the listed games.
    played = [problem for problem in ChessGames().generate(stream("chess games", "asked"), 40)]
    boards = [ChessGames().board(problem) for problem in played]
    fens = tuple(
        dict.fromkeys(
            [KNIGHTS, *((board.mirror() if place % 2 else board).fen() for place, board in enumerate(boards))]
        )
    )
    evaluation = Suite(task=Positions(fens=fens), splits=WHOLE)
    reaches = Reaches(suites=((evaluation, "train", None),))
    asked = {mark for problem in evaluation.each_distinct("train") for mark in audit.asked(evaluation.task, problem)}
    assert reaches.positions() == asked
    mixed = Mixture(tasks=(task, ChessGames(), GRAPHS["easy"]), weights=(1, 2, 1))
    for splits, overlaps in ((WHOLE, True), (replace(WHOLE, held_out=(("reaches", reaches),)), False)):
        suite = Suite(task=mixed, splits=splits)
        shown = {mark for problem in suite.stream("train")[:1024] for mark in audit.shown(mixed, problem)}
        assert bool(shown & asked) == overlaps


def test_games_never_show_what_endgames_and_puzzles_ask_nor_an_image_of_it():
    endings = ChessGames(source=SelfPlay(policy="greedy", noise=0.2, most_plies=40, start="KRK"), header="pieces")
    mixed = Mixture(tasks=(endings, ChessEndgame(pieces="KRK"), ChessPuzzle(header="pieces")), weights=(2, 1, 1))
    evaluations = tuple((Suite(task=task), "test", 150) for task in mixed.tasks[1:])
    reaches = Reaches(suites=evaluations)
    problems = [
        (suite.task, problem) for suite, split, count in evaluations for problem in suite.distinct(split, count)
    ]
    asked = {mark for task, problem in problems for mark in audit.asked(task, problem)}
    assert reaches.positions() == asked
    keys = {positions.key_of(task.board(problem)) for task, problem in problems}
    for held_out, overlaps in (((), True), ((("reaches", reaches),), False)):
        seen = Suite(task=mixed, splits=Splits(held_out=held_out)).stream("train")[:256]
        shown = {mark for problem in seen for mark in audit.shown(mixed, problem)}
        assert bool(shown & asked) == overlaps
        assert any(key in keys for problem in seen for key in keys_of_window(problem)) == overlaps


def keys_of_window(problem):
    """The keys of a window's positions, by python-chess; none for another problem."""
    own = innermost(problem.certificate)
    if not isinstance(own, GameWindow):
        return
    board = chess.Board() if own.game.start is None else chess.Board(own.game.start)
    for ply, code in enumerate(own.game.moves[: own.until]):
        if ply >= own.ply:
            yield positions.key_of(board)
        board.push(rules.decode(code))
    yield positions.key_of(board)


def test_an_evaluation_of_games_is_told_from_training_by_the_games():
    task = ChessGames()
    train, test = (Suite(task=task).stream(split)[:256] for split in ("train", "test"))
    shown = {mark for problem in train for mark in audit.shown(task, problem)}
    assert shown.isdisjoint(mark for problem in test for mark in audit.asked(task, problem))
    assert all(set(audit.asked(task, problem)) <= set(audit.shown(task, problem)) for problem in train)


def test_what_is_shown_are_all_positions_of_a_window():
    task = ChessGames(source=Listed(listed=(OPEN,)), plies=3)
    problem = windows(task)[1]
    board = chess.Board()
    hashes = [rules.position_hash(board)]
    for code in OPEN.moves:
        board.push(rules.decode(code))
        hashes.append(rules.position_hash(board))
    certificate = problem.certificate
    assert isinstance(certificate, GameWindow)
    assert isinstance(certificate, Positioned)
    assert certificate.position_hashes() == tuple(hashes[3:7])
    assert task.shown(problem)[1:] == tuple(hashes[3:7])


def test_a_problem_of_the_evaluation_reaches_itself_and_nothing_reaches_without_positions():
    splits = held_out(KNIGHTS)
    puzzle = Positions(fens=(KNIGHTS,)).enumerate()[0]
    assert splits.of(puzzle) == "reaches"
    graph = GRAPHS["easy"].generate(stream("chess games", "graph"), 1)[0]
    assert splits.of(graph) == "train"


def test_a_predicate_may_stand_in_the_splits_of_another_ones_suite():
    first = held_out(KNIGHTS)
    other = Suite(task=Positions(fens=(KNIGHTS, chess.STARTING_FEN)), splits=first)
    second = Reaches(suites=((other, "train", None),))
    assert second.positions() == {rules.position_hash(chess.Board())}


def test_what_asks_no_positions_or_cannot_be_walked_is_refused():
    games = Suite(task=ChessGames(source=Listed(listed=(OPEN,))), splits=WHOLE)
    with pytest.raises(ValueError, match="asks no position"):
        Reaches(suites=((games, "train", None),)).positions()
    with pytest.raises(ValueError, match="is empty"):
        Reaches(suites=())
    with pytest.raises(ValueError, match="no split 'dev'"):
        Reaches(suites=((games, "dev", None),))
    with pytest.raises(ValueError, match="cannot be walked"):
        Reaches(suites=((Suite(task=LEVELS["self_play"]), "test", None),))
    with pytest.raises(ValueError, match="at least 1"):
        Reaches(suites=((games, "train", 0),))
