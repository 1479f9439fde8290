"""Puzzles of chess: every right answer counts and no wrong one does, over all the puzzles that ship."""

import math
import pickle
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import islice

import chess
import pytest

from testbeds import EXPLICIT, IMPLICIT, TraceStyle, demonstration, fingerprint, stream
from testbeds.census import content_digest
from testbeds.chess import chess_puzzle, notation, puzzle_answers, rules
from testbeds.chess.chess_puzzle import LEVELS, ChessPuzzle
from testbeds.chess.lines_style import CandidateStyle
from testbeds.chess.mates import GameMates, MateIn
from testbeds.chess.puzzle_answers import Asked, asked_by
from testbeds.chess.puzzle_sources import ShippedPuzzles
from testbeds.chess.puzzles import Puzzle
from testbeds.chess.sources import SelfPlay

SHIPPED = ShippedPuzzles()
FIRST = ChessPuzzle(source=SHIPPED, without=("mateIn4",), notation="uci_moves")
LINES = replace(FIRST, answer="line")
NOTATIONS = [replace(FIRST, notation=name) for name in notation.NOTATIONS]


@cache
def problems():
    return tuple(FIRST.enumerate())


def own(problem):
    return problem.certificate.asked


def made(task, fen, line=(), mate=0):
    """The problem of a position and a line that no file has."""
    board = chess.Board(fen)
    for text in line:
        board.push_uci(text)
    codes = tuple(rules.encode(chess.Move.from_uci(text)) for text in line)
    winning = tuple(rules.mating_moves(chess.Board(fen), mate)) if mate else codes[:1]
    return task._problem(Asked(fen=fen, line=codes, mate=mate, winning=winning))


# ------------------------------------------------------------------------------------------------ the shipped puzzles


def test_in_every_mate_in_one_exactly_the_moves_that_python_chess_calls_mate_are_right():
    several = 0
    for problem in (problem for problem in problems() if own(problem).mate == 1):
        board = FIRST.board(problem)
        mates = set()
        for move in board.legal_moves:
            after = board.copy(stack=False)
            after.push(move)
            mates |= {move.uci()} if after.is_checkmate() else set()
            assert FIRST.verify(problem, move.uci()).correct == after.is_checkmate()
        assert sorted(FIRST.answers(problem)) == sorted(mates)
        several += len(mates) > 1
    assert several == 12  # counted with python-chess alone


def test_every_listed_first_move_is_right_and_every_move_that_wins_not_is_wrong():
    asked = Counter()
    for problem in problems()[::8]:
        board, winning = FIRST.board(problem), own(problem).winning
        assert own(problem).line[0] in winning
        for move in board.legal_moves:
            verdict = FIRST.verify(problem, move.uci())
            assert verdict.correct == (rules.encode(move) in winning)
            assert verdict.well_formed
        if not own(problem).mate:
            others = [rules.decode(code) for code in winning if code != own(problem).line[0]]
            for move in others:
                after = board.copy(stack=False)
                after.push(move)
                assert after.is_checkmate()
        asked[own(problem).mate] += 1
    assert min(asked[0], asked[1], asked[2], asked[3]) > 5


def test_all_shipped_puzzles_are_decided_but_those_that_are_longer_mates():
    # 1640 puzzles, 100 of them mates in 4 (left out here) and 13 mates in 5 or 6 without a theme that says so
    assert FIRST.undecided() == Counter({puzzle_answers.TOO_LONG: 13})
    assert FIRST.capacity == len(problems()) == 1640 - 100 - 13
    assert {own(problem).mate for problem in problems()} == {0, 1, 2, 3}


def test_a_mate_in_four_is_searched_through():
    task = ChessPuzzle(source=SHIPPED, mate=(4, 4))
    assert task.capacity is None  # counting takes all searches
    problem = next(iter(task.enumerate()))
    assert own(problem).line[0] in own(problem).winning
    assert problem.features["mate_distance"] == 4
    assert task.verify(problem, demonstration(task, problem, IMPLICIT).text).correct


def test_a_puzzle_whose_search_takes_too_long_is_passed_over(monkeypatch):
    puzzle = next(SHIPPED.puzzle(place) for place in range(SHIPPED.count) if "mateIn3" in SHIPPED.puzzle(place).themes)
    monkeypatch.setattr(puzzle_answers, "MOST_NODES", 10)
    renamed = replace(puzzle, fen=puzzle.fen.rsplit(" ", 1)[0] + " 77")  # not in the cache of searches
    assert asked_by(renamed) == puzzle_answers.OVER_BUDGET


def test_a_puzzle_whose_listed_move_forces_no_mate_is_passed_over():
    # After 1 g4 (or any move of White's king here) e5 does not force mate in 2; the line needs White's help, f3.
    fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
    puzzle = Puzzle(id="fool", fen=fen, moves=("g2g4", "e7e5", "f2f3", "d8h4"), rating=1, themes=("mateIn2",))
    assert asked_by(puzzle) == puzzle_answers.NOT_FORCED


def test_the_first_shipped_puzzle_by_hand():
    # 000rZ: White has just taken on e6; Black's queen on d6 takes h2 with mate: the knight on g4 protects her, and f1,
    # f2 and h1 are White's own or attacked by her. The same square reached by the knight only takes a pawn.
    puzzle = SHIPPED.puzzle(0)
    asked = asked_by(puzzle)
    assert puzzle.id == "000rZ"
    assert asked.fen == "2kr1b1r/p1p2pp1/2pqN3/7p/6n1/2NPB3/PPP2PPP/R2Q1RK1 b - - 0 13"
    assert asked.mate == 1
    task = ChessPuzzle(source=SHIPPED)
    problem = task._problem(asked)
    for text in ("Q d6 x h2 #", "Qd6xh2", "Qd6xh2+", "N g4 x h2 [0] # Q d6 x h2 #", "# Qd6xh2#"):
        assert task.verify(problem, text).correct, text
    for text in ("N g4 x h2", "Q d6 x e6", "Q d6 h2 #", "Q d6 x h2 # N g4 x h2"):
        verdict = task.verify(problem, text)
        assert (verdict.correct, verdict.well_formed, verdict.progress) == (False, True, 0.0), text
    assert not task.verify(problem, "Q d6 x h2 # Q d6 x h2 # K g1").well_formed
    assert problem.features == {
        "rating": 662,
        "rating_band": 400,
        "legal_moves": chess.Board(asked.fen).legal_moves.count(),
        "winning_moves": 1,
        "pieces": 26,
        "mate_distance": 1,
        "solver_moves": 1,
    }
    assert task.floor(problem) == 1 / problem.features["legal_moves"]


# ------------------------------------------------------------------------------------------------------- first moves


@pytest.mark.parametrize("task", NOTATIONS, ids=notation.NOTATIONS)
def test_every_listed_answer_is_right_in_every_notation(task):
    for problem in islice(task.enumerate(), 0, 200, 9):
        answers = list(task.answers(problem))
        assert len(set(answers)) == len(answers) >= problem.features["winning_moves"]
        assert all(task.verify(problem, answer).correct for answer in answers)


@pytest.mark.parametrize("task", NOTATIONS, ids=notation.NOTATIONS)
def test_choices_are_the_legal_moves_and_the_correct_ones_are_those_that_are_accepted(task):
    for problem in islice(task.enumerate(), 0, 100, 9):
        choices = task.choices(problem)
        assert len(choices) == len({choice.text for choice in choices}) == problem.features["legal_moves"]
        for choice in choices:
            assert task.verify(problem, choice.text).correct == ("correct" in choice.kinds)
        assert sum("correct" in choice.kinds for choice in choices) == problem.features["winning_moves"]


def test_another_mate_at_once_is_right_where_no_mate_was_asked():
    # Black's king comes back to g8 behind its pawns; White mates with the rook from d1 on d8, taking the queen.
    fen = "3q3k/5ppp/8/8/8/8/5PPP/3RR1K1 b - - 0 1"
    quiet = Puzzle(id="quiet", fen=fen, moves=("h8g8", "g2g3"), rating=1000, themes=("quietMove",))
    asked = asked_by(quiet)
    assert asked.mate == 0
    assert {rules.decode(code).uci() for code in asked.winning} == {"d1d8", "g2g3"}
    mate = asked_by(replace(quiet, moves=("h8g8", "d1d8"), themes=("mateIn1",)))
    assert mate.mate == 1
    assert {rules.decode(code).uci() for code in mate.winning} == {"d1d8"}


def test_the_position_asked_is_the_one_after_the_opponents_move():
    for place in range(0, SHIPPED.count, 100):
        puzzle = SHIPPED.puzzle(place)
        asked = asked_by(puzzle)
        if isinstance(asked, str):
            continue
        board = chess.Board(puzzle.fen)
        board.push_uci(puzzle.moves[0])
        assert asked.fen == board.fen(en_passant="legal")


def test_unreadable_answers_are_malformed_and_unplayable_ones_are_not():
    problem = problems()[0]
    for text in ("", "#", "e4", "a1a9", "d6h2 d6h2", "d6h2 d6h2#", "mate"):
        assert not FIRST.verify(problem, text).well_formed, text
    verdict = FIRST.verify(problem, "a1a2")
    assert verdict.well_formed
    assert verdict.reason == "a1a2 is no legal move"


# -------------------------------------------------------------------------------------------------------------- lines

TWO_ROOKS = "7k/8/8/8/8/8/R7/1R4K1 w - - 0 1"  # a2a7, then b1b8 mates; a king that moves only goes to g8
HANGING = "6k1/p4ppp/8/8/3q4/8/3R1PPP/6K1 w - - 0 1"  # d2d4 wins the queen; d8 mates once she is gone, without h7h6


def test_in_a_mate_every_reply_is_answered_and_every_move_that_keeps_the_mate_is_right():
    problem = made(LINES, TWO_ROOKS, mate=2)
    assert LINES.verify(problem, "a2a7 h8g8 b1b8").correct
    assert LINES.verify(problem, "b1b7 h8g8 a2a8").correct  # the rooks may change their parts
    early = LINES.verify(problem, "a2a7 h8g8")
    assert (early.correct, early.well_formed, early.progress) == (False, True, 0.5)
    away = LINES.verify(problem, "a2a7 h8g8 b1b2")
    assert away.progress == 0.5
    assert away.reason == "move 3, b1b2, does not force mate in 1"
    assert LINES.verify(problem, "g1g2 h8g8 b1b8").progress == 0.0
    assert LINES.verify(problem, "a2a7 h8h7 b1b8").reason.startswith("h8h7 is no legal move")
    assert LINES.verify(problem, "a2a7 h8h7 b1b8").progress == 0.5
    assert not LINES.verify(problem, "a2a7 h8g8 b1b8 g8g7").well_formed  # more moves than a mate in two has


def test_elsewhere_a_line_is_right_as_listed_or_with_a_mate_at_once():
    problem = made(LINES, HANGING, ("d2d4", "h7h6", "d4d8"))
    assert LINES.verify(problem, "d2d4 h7h6 d4d8").correct
    reply = LINES.verify(problem, "d2d4 h7h5 d4d8")
    assert (reply.correct, reply.progress) == (False, 0.5)
    assert "move 2, h7h5, is not the listed reply" in reply.reason
    assert LINES.verify(problem, "d2d4").progress == 0.5
    other = LINES.verify(problem, "d2d3 h7h6 d4d8")
    assert other.progress == 0.0
    assert other.reason == "move 1, d2d3, is not the move that the puzzle lists, nor mate at once"
    assert FIRST.verify(problem, "d2d3").reason == "d2d3 is not the move that the puzzle lists, nor mate at once"
    quicker = made(LINES, HANGING, ("d2d4", "a7a6", "d4d7", "a6a5", "d7d8"))
    assert LINES.verify(quicker, "d2d4 a7a6 d4d8").correct
    assert LINES.verify(quicker, "d2d4 a7a6 d4d8 a6a5").progress < 1  # nobody moves after mate


def test_a_shipped_line_as_listed_is_right_and_cut_or_changed_it_is_not():
    for problem in problems()[::25]:
        board, line = LINES.board(problem), [rules.decode(code) for code in own(problem).line]
        texts = [move.uci() for move in line]
        verdict = LINES.verify(problem, " ".join(texts))
        assert (verdict.correct, verdict.progress) == (True, 1.0), verdict.reason
        if len(texts) > 1:
            cut = LINES.verify(problem, " ".join(texts[:-1]))
            assert (cut.correct, cut.well_formed) == (False, True)
            assert cut.progress == pytest.approx(1 - 1 / own(problem).solver_moves)
        wrong = next((move for move in board.legal_moves if rules.encode(move) not in own(problem).winning), None)
        if wrong:
            assert LINES.verify(problem, wrong.uci()).progress == 0.0


@pytest.mark.parametrize("style", [EXPLICIT, IMPLICIT, TraceStyle(search="depth_first"), CandidateStyle(candidates=2)])
@pytest.mark.parametrize("task", [FIRST, LINES, ChessPuzzle(source=MateIn(moves=2, pieces=("KQRK",)), answer="line")])
def test_demonstrations_are_right(task, style):
    for problem in task.generate(stream("demonstrated"), 6):
        trace = demonstration(task, problem, style)
        verdict = task.verify(problem, trace.text)
        assert (verdict.correct, verdict.progress) == (True, 1.0), (trace.text, verdict.reason)


def test_all_right_first_moves_are_demonstrated_in_turn():
    problem = next(problem for problem in problems() if len(own(problem).winning) > 1 and own(problem).mate)
    shown = {FIRST.demonstrate(problem, IMPLICIT, stream("turns", turn)).text for turn in range(40)}
    assert shown == set(FIRST.answers(problem))


def test_the_floor_of_a_line_is_the_chance_of_guessing_it():
    problem = made(LINES, HANGING, ("d2d4", "h7h6", "d4d8"))
    boards = [chess.Board(HANGING)]
    for text in ("d2d4", "h7h6"):
        boards.append(boards[-1].copy())
        boards[-1].push_uci(text)
    chance = 1.0
    for board in boards:
        chance /= board.legal_moves.count()
    assert LINES.floor(problem) == pytest.approx(chance)
    # d4d8 mates where d4d7 is listed: right as well, once the first two moves are guessed.
    quicker = made(LINES, HANGING, ("d2d4", "a7a6", "d4d7", "a6a5", "d7d8"))
    board, shares = LINES.board(quicker), []
    for code in own(quicker).line:
        shares.append(1 / board.legal_moves.count())
        board.push(rules.decode(code))
    assert LINES.floor(quicker) == pytest.approx(math.prod(shares[:3]) + math.prod(shares))
    mate = made(LINES, TWO_ROOKS, mate=2)
    assert 0 < LINES.floor(mate) < FIRST.floor(mate) < 1


# ---------------------------------------------------------------------------------------------------- tasks and splits


def test_filters_choose_among_puzzles():
    task = ChessPuzzle(source=SHIPPED, rating=(1500, 1700), themes=("fork",), without=("pin",))
    drawn = task.generate(stream("filters"), 30)
    assert all(1500 <= problem.features["rating"] <= 1700 for problem in drawn)
    fitting = {problem.key for problem in task.enumerate()}
    assert {problem.key for problem in drawn} <= fitting
    places = [SHIPPED.puzzle(place) for place in range(SHIPPED.count)]
    assert len(fitting) == sum(
        1500 <= each.rating <= 1700 and "fork" in each.themes and "pin" not in each.themes for each in places
    )


def test_without_a_filter_no_rating_is_too_high():
    puzzle = replace(SHIPPED.puzzle(0), rating=99_999)
    assert chess_puzzle._fits(FIRST, puzzle)
    assert not chess_puzzle._fits(replace(FIRST, rating=(0, 5_000)), puzzle)


def test_mates_of_a_length_can_be_asked_for():
    task = ChessPuzzle(source=SHIPPED, mate=(2, 2))
    assert {problem.features["mate_distance"] for problem in task.generate(stream("two"), 20)} == {2}
    assert task.capacity == 254


def test_filters_that_nothing_fits_are_refused_when_puzzles_are_drawn():
    with pytest.raises(ValueError, match=r"none of 1640 puzzles .* fits rating=None, themes=\('fork', 'nonsense'\)"):
        ChessPuzzle(source=SHIPPED, themes=("fork", "nonsense")).generate(stream("none"), 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "shipped"}, "ChessPuzzle.source must be one of ShippedPuzzles"),
        ({"answer": "both"}, "ChessPuzzle.answer must be one of 'first', 'line', got 'both'"),
        ({"notation": "morse"}, "ChessPuzzle.notation must be one of"),
        ({"header": "fen"}, "ChessPuzzle.header must be one of"),
        ({"source": SHIPPED, "rating": (2000, 1000)}, "ChessPuzzle.rating"),
        ({"source": SHIPPED, "mate": (1, 5)}, "ChessPuzzle.mate"),
        ({"source": SHIPPED, "themes": "fork"}, "ChessPuzzle.themes must be a tuple of themes"),
        ({"rating": (1000, 2000)}, "ChessPuzzle.rating chooses among puzzles of Lichess, and source=MateIn makes"),
        ({"themes": ("fork",)}, "ChessPuzzle.themes chooses among puzzles of Lichess"),
    ],
)
def test_what_no_task_can_be_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        ChessPuzzle(**fields)


def test_a_position_has_one_key_whatever_is_asked_about_it():
    line, first = next(iter(LINES.enumerate())), problems()[0]
    assert line.key == first.key
    assert line.cut == first.cut
    assert LINES.asked(line) == FIRST.asked(first) == FIRST.shown(first)
    assert LINES.shown(line)[0] == FIRST.shown(first)[0]


def test_a_line_shows_each_of_its_positions():
    problem = next(problem for problem in problems() if len(own(problem).line) == 3)
    board = LINES.board(problem)
    hashes = [rules.position_hash(board)]
    for code in own(problem).line:
        board.push(rules.decode(code))
        hashes.append(rules.position_hash(board))
    assert list(LINES.shown(problem)) == hashes
    assert problem.certificate.position_hashes() == LINES.shown(problem)


def test_mates_of_games_make_puzzles():
    task = ChessPuzzle(source=GameMates(games=SelfPlay()))
    (problem,) = task.generate(stream("games"), 1)
    assert task.verify(problem, demonstration(task, problem, IMPLICIT).text).correct
    assert task.capacity is None
    assert task.enumerate() is None
    assert task.undecided() == Counter()


def test_problems_have_a_digest_and_their_certificates_are_values():
    assert content_digest(problems()[:20]) == content_digest(pickle.loads(pickle.dumps(problems()[:20])))


def test_a_board_is_drawn_with_its_squares():
    drawing = FIRST.drawing(problems()[0])
    assert drawing.split("\n")[0].startswith("8 ")
    assert drawing.endswith("  a b c d e f g h\nblack to move")


def test_levels_are_values_with_fingerprints_of_their_own():
    assert len({fingerprint(task) for task in LEVELS.values()}) == len(LEVELS)
    assert all(pickle.loads(pickle.dumps(task)) == task for task in LEVELS.values())


def test_a_certificate_of_another_testbed_is_refused():
    with pytest.raises(TypeError, match="ChessPuzzle reads problems with a PuzzleCertificate, got NoneType"):
        FIRST.verify(replace(problems()[0], certificate=None), "e2e4")
