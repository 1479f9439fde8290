"""Endgames with exact values: which positions are posed, which moves are right, and what traces say of them."""

import pickle
from collections import Counter
from dataclasses import replace

import chess
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbeds import EXPLICIT, Splits, TraceStyle, stream
from testbeds.chess import chess_endgame, notation, positions, rules
from testbeds.chess.chess_endgame import FIRST_LOST, LEVELS, LONGEST, ChessEndgame, TableLines
from testbeds.chess.lines import CandidateStyle
from testbeds.chess.tablebase import table, table_of, value_of
from testbeds.chess.tablebase_kernels import DRAWN, STRONG, WEAK, survey

FAST = {name: task for name, task in LEVELS.items() if name != "bishop_knight"}


def drawn(task, count, *key):
    return task.generate(stream("endgame tests", *key), count)


def problem_of(task, fen):
    """The problem of a position that the task poses, in the image that is asked for."""
    board = chess.Board(fen)
    key = positions.key_of(board)
    found = next(problem for problem in task.enumerate() if problem.key == key)
    accepted = [
        text
        for move in task._right_moves(table(task.pieces).moves(board))
        for text in notation.ways(board, move, task.notation)
    ]
    return replace(
        found,
        prompt=f"{positions.header_text(board, task.header)} >",
        certificate=replace(found.certificate, fen=fen, accepted=tuple(accepted)),
    )


def worth(board):
    """What python-chess or the tables say of a position, over or not, for the side to move."""
    if board.is_checkmate():
        return -1
    return 0 if board.is_stalemate() else value_of(board).outcome


@pytest.mark.parametrize("name", LEVELS)
def test_the_right_moves_are_those_that_the_values_after_them_make_right(name):
    task = LEVELS[name]
    for problem in drawn(task, 40, "right", name):
        board = task.board(problem)
        assert board.is_valid()
        assert problem.prompt == f"{positions.header_text(board, task.header)} >"
        before = value_of(board)
        right = 0
        for choice in task.choices(problem):
            move = notation.read_move(board, choice.text, task.notation)
            assert choice.arrow == (chess.SQUARE_NAMES[move.from_square], chess.SQUARE_NAMES[move.to_square])
            board.push(move)
            mover, plies = -worth(board), 0 if board.is_game_over() else value_of(board).plies_to_mate
            board.pop()
            kept = mover == before.outcome
            optimal = kept and (mover == 0 or plies == before.plies_to_mate - 1)
            assert choice.kinds[-1] == {1: "winning", 0: "drawing", -1: "losing"}[mover]
            assert ("optimal" in choice.kinds) == optimal
            assert ("correct" in choice.kinds) == (optimal if task.goal == "optimal" else kept)
            for text in notation.ways(board, move, task.notation):
                assert task.verify(problem, text).correct == ("correct" in choice.kinds)
            right += "correct" in choice.kinds
        assert len(task.choices(problem)) == board.legal_moves.count() == problem.features["legal_moves"]
        assert 0 < right < problem.features["legal_moves"], "where every move is right nothing is asked"
        assert task.floor(problem) == right / problem.features["legal_moves"]


@pytest.mark.parametrize("name", LEVELS)
def test_features_count_what_the_choices_list(name):
    task = LEVELS[name]
    for problem in drawn(task, 30, "features", name):
        kinds = Counter(kind for choice in task.choices(problem) for kind in choice.kinds)
        plies = value_of(task.board(problem)).plies_to_mate
        assert problem.features == {
            "legal_moves": kinds["winning"] + kinds["drawing"] + kinds["losing"],
            "winning_moves": kinds["winning"],
            "optimal_moves": kinds["optimal"],
            "pieces": len(task.board(problem).piece_map()),
            "mate_distance": 0 if plies is None else -(-plies // 2),
        }


@pytest.mark.parametrize("outcomes", [("won",), ("drawn",), ("lost",), ("won", "drawn", "lost")])
def test_the_positions_have_the_outcomes_and_distances_that_are_asked_for(outcomes):
    task = ChessEndgame(pieces="KPK", outcomes=outcomes, distance=None if outcomes == ("drawn",) else (5, 9))
    seen = set()
    for problem in drawn(task, 200, "outcomes"):
        value = value_of(task.board(problem))
        seen.add(("drawn", "won", "lost")[value.outcome])
        assert value.outcome == 0 or 5 <= problem.features["mate_distance"] <= 9
    assert seen == set(outcomes)


def test_draws_are_uniform_over_positions_with_either_colour_as_the_strong_side():
    # The longest mates with a queen: 2 numbers of the table, each in 4 images and 2 colours.
    task = ChessEndgame(distance=(10, 10))
    pool = chess_endgame._pool("KQK", "optimal", ("won",), (10, 10))
    fens = Counter(problem.certificate.fen for problem in drawn(task, 800, "uniform"))
    possible = len(pool.numbers) * 4 * 2
    assert possible == 16
    assert len(fens) == possible
    # Chi-square with n - 1 degrees of freedom: mean n, standard deviation (2n) ** 0.5; five of them never happen.
    expected = 800 / possible
    chi_square = sum((times - expected) ** 2 / expected for times in fens.values())
    assert abs(chi_square - possible) < 5 * (2 * possible) ** 0.5


@pytest.mark.parametrize(
    "task",
    [
        ChessEndgame(distance=(1, 2)),
        ChessEndgame(pieces="KRK", distance=(16, 16)),
        ChessEndgame(pieces="KPK", distance=(25, 28), outcomes=("won", "lost")),
        ChessEndgame(pieces="KRK", goal="win", distance=(1, 1), outcomes=("won",)),
    ],
)
def test_each_key_is_walked_once_and_no_drawn_problem_has_another(task):
    keys = [problem.key for problem in task.enumerate()]
    assert len(keys) == len(set(keys)) == task.capacity
    assert {problem.key for problem in drawn(task, 100, "keys")} <= set(keys)
    assert all(problem.key == positions.key_of(task.board(problem)) for problem in drawn(task, 20, "keys"))


def test_the_number_of_lost_rook_endings_is_the_published_one_less_those_without_a_choice():
    # Classes of positions under eight symmetries with black to move, mate in 16: 390 (see test_chess_tablebase.py).
    # In each a king that is mated in 16 has a worse move unless all its moves resist as long.
    task = ChessEndgame(pieces="KRK", outcomes=("lost",), distance=(16, 16))
    assert 0 < task.capacity <= 390
    for problem in task.enumerate():
        assert problem.features["optimal_moves"] < problem.features["legal_moves"]


@pytest.mark.parametrize(
    ("pieces", "won", "kept", "drawn", "lost"),
    [
        ("KQK", 36_127, 27_870, 4_939, 40_105),
        ("KRK", 43_792, 18_288, 5_441, 46_523),
        ("KPK", 62_197, 30_523, 23_028, 24_276),
        pytest.param("KBNK", 2_705_543, 1_806_991, 610_151, 2_298_871, marks=pytest.mark.large),
    ],
)
def test_as_many_positions_are_posed_as_the_table_of_the_module_says_and_every_distance_has_some(
    pieces, won, kept, drawn, lost
):
    solved = table(pieces)
    found = []
    for turn, decided in ((STRONG, True), (WEAK, False), (WEAK, True)):
        row = solved.rows[turn]
        numbers = np.flatnonzero(row >= 0 if decided else row == DRAWN)
        counts = survey(numbers, solved.kinds, turn, solved.rows, solved.promoted)
        for goal in (2, 1):
            chosen = counts[:, goal] < counts[:, 0]
            found.append(int(chosen.sum()))
            if decided and chosen.any():
                distances = set(((row[numbers[chosen]].astype(int) + 1) // 2).tolist())
                assert distances == set(range(1 if turn == STRONG else FIRST_LOST[pieces], LONGEST[pieces] + 1))
    assert found == [won, kept, drawn, drawn, lost, 0]
    row = solved.rows[STRONG]
    numbers = np.flatnonzero(row == DRAWN)
    counts = survey(numbers, solved.kinds, STRONG, solved.rows, solved.promoted)
    assert (counts[:, 1] == counts[:, 0]).all(), "with the strong side to move a draw cannot be lost"
    for name in (f"{won:,} / {kept:,} /", f"{drawn:,} /", f"{lost:,} /"):
        assert name in chess_endgame.__doc__


@pytest.mark.parametrize("style", [EXPLICIT, TraceStyle(search="depth_first", backtracks=2), CandidateStyle(depth=5)])
@pytest.mark.parametrize("name", FAST)
def test_every_outcome_of_a_trace_is_true(name, style):
    task = FAST[name]
    told = 0
    for problem in drawn(task, 25, "traces", name):
        if problem.features["legal_moves"] * (1 - task.floor(problem)) < 2:
            continue
        board = task.board(problem)
        trace = task.demonstrate(problem, style, stream("trace", problem.key))
        assert task.verify(problem, trace.text).correct
        for step in trace.steps:
            text, _, _ = step.text.partition("[")
            line = notation.read_line(board, text, task.notation, 10)
            assert line.trouble == ""
            end = board.copy()
            for move in line.moves:
                end.push(move)
            mover = worth(end) * (1 if end.turn == board.turn else -1)
            assert step.result == outcome_of(end, mover), (board.fen(), step)
            told += 1
    assert told > 20


def outcome_of(end, mover):
    if end.is_checkmate():
        return "[mate]" if mover > 0 else "[mated]"
    return ("[draw]", "[win]", "[loss]")[mover]


def test_a_demonstration_plays_best_moves_even_where_others_are_right():
    task = LEVELS["pawn"]
    for problem in drawn(task, 30, "best"):
        answer = task.demonstrate(problem, EXPLICIT, stream("best", problem.key)).answer
        (choice,) = [each for each in task.choices(problem) if each.text == "".join(answer.split())]
        assert "optimal" in choice.kinds


def test_lines_go_on_as_the_tables_play_through_captures_and_promotions():
    board = chess.Board("8/1P6/8/8/8/k7/8/1K6 w - - 0 1")
    board.push_uci("b7b8q")
    reply = TableLines().reply(board, 1, right=True)
    assert next(each for each in table_of(board).moves(board) if each.move == reply).optimal
    with pytest.raises(ValueError, match="is in no table"):
        TableLines().reply(chess.Board(), 1, right=True)


def test_verdicts_say_what_is_wrong_with_a_move():
    # The king on b3 covers a2, b2 and c2: a check along the first rank is mate. Qc2 covers b1, too: stalemate.
    task = ChessEndgame(distance=(1, 1))
    problem = problem_of(task, "8/7Q/8/8/8/1K6/8/k7 w - - 0 1")
    assert task.verify(problem, "Q h7 h1 #").correct
    assert task.verify(problem, "Qh7h1").correct
    assert task.verify(problem, "Q h7 h2 [win] | Q h7 h1 # # Q h7 h1 #").correct
    slow = task.verify(problem, "Q h7 h6")
    assert (slow.correct, slow.well_formed, slow.progress) == (False, True, 0.5)
    assert "mates in" in slow.reason
    assert slow.reason.endswith("1 are enough")
    stale = task.verify(problem, "Q h7 c2")
    assert (stale.correct, stale.progress, stale.reason) == (False, 0.0, "Qh7c2 turns a won position into a drawn one")
    illegal = task.verify(problem, "Q h7 g5")
    assert (illegal.correct, illegal.well_formed, illegal.progress) == (False, True, 0.0)
    assert illegal.reason == "Qh7g5 is no legal move"
    assert not task.verify(problem, "Q h7 h1 + +").well_formed
    assert not task.verify(problem, "Q h7 h1 # Q h7 h6").correct


@pytest.mark.parametrize("name", LEVELS)
def test_a_certificate_holds_the_position_as_python_chess_writes_it(name):
    task = LEVELS[name]
    for problem in drawn(task, 20, "fen", name):
        assert task.board(problem).fen() == problem.certificate.fen


def test_a_lost_king_is_told_how_long_it_could_have_resisted():
    task = ChessEndgame(pieces="KRK", outcomes=("lost",), distance=(8, 16))
    for problem in drawn(task, 10, "resist"):
        slow = next(choice for choice in task.choices(problem) if "correct" not in choice.kinds)
        verdict = task.verify(problem, slow.text)
        if "losing" in slow.kinds:
            assert verdict.progress == 0.5
            assert verdict.reason.endswith(f"it can be put off to {problem.features['mate_distance']}")


@pytest.mark.parametrize("written", notation.NOTATIONS)
@pytest.mark.parametrize("header", positions.HEADERS)
def test_every_notation_and_header_poses_the_same_positions(written, header):
    usual = drawn(ChessEndgame(pieces="KPK"), 20, "notations")
    task = ChessEndgame(pieces="KPK", notation=written, header=header)
    for problem, other in zip(drawn(task, 20, "notations"), usual, strict=True):
        assert problem.key == other.key
        assert problem.features == other.features
        assert positions.board_of(problem.prompt.removesuffix(">"), header).fen() == task.board(problem).fen()
        assert all(task.verify(problem, f"x # {answer}").correct for answer in task.answers(problem))
        assert "such as" in task.instructions


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_a_position_is_on_one_side_of_a_split_whatever_is_asked_about_it(seed):
    splits = Splits()
    best = drawn(ChessEndgame(), 1, "split", seed)[0]
    mirrored = chess.Board(best.certificate.fen).mirror().transform(chess.flip_diagonal)
    assert positions.key_of(mirrored) == best.key
    assert splits.of(best) == splits.of(replace(best, prompt="another", certificate=None))
    assert best.family == ""


def test_what_is_shown_and_asked_is_the_hash_of_the_position_in_any_image():
    task = LEVELS["rook"]
    for problem in drawn(task, 5, "hashes"):
        board = task.board(problem)
        expected = (rules.position_hash(board),)
        assert task.shown(problem) == task.asked(problem) == problem.certificate.position_hashes() == expected
        assert (rules.position_hash(board.mirror()),) == expected


def test_a_board_is_drawn_with_its_ranks_files_and_the_side_to_move():
    task = ChessEndgame(distance=(1, 1))
    drawing = task.drawing(problem_of(task, "8/7Q/8/8/8/1K6/8/k7 w - - 0 1"))
    assert drawing.splitlines() == [
        "8 . . . . . . . .",
        "7 . . . . . . . Q",
        "6 . . . . . . . .",
        "5 . . . . . . . .",
        "4 . . . . . . . .",
        "3 . K . . . . . .",
        "2 . . . . . . . .",
        "1 k . . . . . . .",
        "  a b c d e f g h",
        "white to move",
    ]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"pieces": "KQKR"}, "pieces must be one of 'KQK', 'KRK', 'KPK', 'KBNK', got 'KQKR'"),
        ({"goal": "best"}, "goal must be one of 'optimal', 'win', got 'best'"),
        ({"notation": "descriptive"}, "notation must be one of"),
        ({"header": "fen"}, "header must be one of"),
        ({"outcomes": ()}, "outcomes must be a tuple of one or more of won, drawn, lost"),
        ({"outcomes": ("drawn", "won")}, "in this order, got"),
        ({"outcomes": ["won"]}, "must be a tuple"),
        ({"outcomes": "won"}, "must be a tuple"),
        ({"goal": "win", "outcomes": ("won", "lost")}, "take goal='optimal'"),
        ({"distance": (1, 11)}, "1 <= lowest <= highest <= 10, got"),
        ({"distance": (0, 3)}, "1 <= lowest"),
        ({"distance": (4, 3)}, "lowest <= highest"),
        ({"distance": (1.0, 3)}, "whole numbers"),
        ({"distance": (1, 3), "outcomes": ("drawn",)}, "drawn positions do not have"),
        ({"distance": (1, 1), "outcomes": ("won", "lost")}, "with 2 or more moves to mate"),
        ({"pieces": "KBNK", "distance": (1, 3), "outcomes": ("lost",)}, "with 4 or more moves to mate"),
    ],
)
def test_fields_that_pose_nothing_are_refused_with_what_would_be_right(fields, reason):
    with pytest.raises(ValueError, match=reason):
        ChessEndgame(**fields)


def test_a_task_and_its_problems_survive_pickling_and_foreign_problems_are_refused():
    task = LEVELS["pawn"]
    problem = drawn(task, 1, "pickle")[0]
    assert pickle.loads(pickle.dumps((task, problem))) == (task, problem)
    with pytest.raises(TypeError, match="ask the task that made the problem"):
        task.verify(replace(problem, certificate="fen"), "K a1 a2")
