"""Candidate-line traces of chess: every word is true under python-chess, and the layout is exactly what was asked."""

import pickle
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbeds import (
    EXPLICIT,
    IMPLICIT,
    Problem,
    Suite,
    Trace,
    TraceStyle,
    Unrealisable,
    demonstration,
    fingerprint,
    stream,
)
from testbeds.chess import rules
from testbeds.chess.lines import (
    MATERIAL,
    SEPARATOR,
    TRACE_SYMBOLS,
    Material,
    Mates,
    answer_part,
    demonstrate,
    material_change,
)
from testbeds.chess.lines_style import ORDERINGS, CandidateStyle
from testbeds.chess.notation import BETWEEN, NOTATIONS, symbols
from testbeds.frozen_lake import FrozenLake
from testbeds.identity import canonical
from testbeds.latent_modules import LatentModules
from testbeds.lexicon import read
from testbeds.noise import DroppedSteps, ShuffledSteps, UnrelatedWorking, WrongResult
from testbeds.revival import revive
from testbeds.sokoban import Sokoban
from training.evaluation import Evaluation, ProblemSet

PAWNS = {"p": 1, "n": 3, "b": 3, "r": 5, "q": 9, "k": 0}
RANKS = ["[mated]", "[loss]", *(f"[{n:+d}]" for n in range(-9, 0)), "[0]", *(f"[+{n}]" for n in range(1, 10)), "[win]"]
RANKS += ["[mate]"]
MORPHY = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"  # Paul Morphy's problem: 1. Ra6! and mate in 2
BACK_RANK = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"  # 1. Ra8#


@dataclass(frozen=True, slots=True, kw_only=True)
class Quick:
    """A guide without a search: the line goes on with the first legal move."""

    def reply(self, board, played, *, right):
        return next(iter(board.legal_moves))

    def outcome(self, start, end):
        return material_change(start, end)


@cache
def positions():
    """Positions of random games, from the first move to bare kings, in which the game goes on."""
    found = []
    for game in range(12):
        rng, board = stream("random game", game), chess.Board()
        while not board.is_game_over() and board.ply() < 240:
            if board.ply() % 24 == game:
                found.append(board.copy(stack=False))
            moves = list(board.legal_moves)
            board.push(moves[int(rng.integers(len(moves)))])
    return tuple(found)


def some_right(board, place=7):
    moves = list(board.legal_moves)
    return moves[place % len(moves)]


def shown(board, style, *, seed=0, notation="long_algebraic", guide=None, right=None, correct=None, answer="move"):
    """A trace for one right move."""
    right = right or [some_right(board)]
    rng = stream("lines", seed)
    return demonstrate(
        board, right, style, rng, notation, correct=correct or {right[0]}, guide=guide or Quick(), answer=answer
    )


def lines_of(trace, board, notation):
    """The moves and the outcome of each candidate, read by python-chess alone: squares for three notations, SAN."""
    found = []
    for step in trace.steps:
        text, _, outcome = step.text.rpartition(" ")
        texts = text.split(BETWEEN[notation])
        assert step.text == f"{BETWEEN[notation].join(texts)} {outcome}"
        assert (step.operation, step.result) == (texts[0], outcome)
        end, moves = board.copy(), []
        for each in texts:
            move = python_chess_reads(end, each, notation)
            assert move in end.legal_moves, (each, end.fen())
            capture, castling = end.is_capture(move), end.is_castling(move)
            end.push(move)
            check_marks(each, end, notation, capture=capture and not castling)
            moves.append(move)
        found.append((moves, outcome, end))
    return found


def python_chess_reads(board, text, notation):
    if notation == "san" or text.startswith("O"):
        return board.parse_san(text)
    if notation in ("uci_squares", "uci_moves"):
        return chess.Move.from_uci(text)
    piece, _, promotion = text.rstrip("+#").partition("=")
    move = chess.Move.from_uci(piece[1:].replace("x", "") + promotion.lower())
    assert board.piece_at(move.from_square).symbol().upper() == piece[0]
    return move


def check_marks(text, after, notation, *, capture):
    if notation in ("long_algebraic", "san"):
        mark = "#" if after.is_checkmate() else "+" if after.is_check() else ""
        assert text[-1] == mark if mark else text[-1] not in "+#"
        assert ("x" in text) == capture


def true_outcome(start, end):
    """The outcome of a line by material, from the pieces on python-chess's boards."""
    if end.is_checkmate():
        return "[mated]" if end.turn == start.turn else "[mate]"
    if end.is_stalemate() or end.is_insufficient_material():
        return "[draw]"
    balances = [
        sum(PAWNS[p.symbol().lower()] * (1 if p.color == start.turn else -1) for p in board.piece_map().values())
        for board in (start, end)
    ]
    change = max(-9, min(9, balances[1] - balances[0]))
    return f"[{change:+d}]" if change else "[0]"


# ------------------------------------------------------------------------------------------------------ truth


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("depth", [1, 3])
def test_every_line_is_legal_its_marks_and_its_outcome_are_true(notation, depth):
    seen = Counter()
    for place, board in enumerate(positions()):
        before = board.fen()
        trace = shown(board, CandidateStyle(candidates=2, depth=depth), seed=place, notation=notation)
        assert board.fen() == before
        for moves, outcome, end in lines_of(trace, board, notation):
            assert outcome == true_outcome(board, end)
            assert len(moves) == depth or outcome in ("[mate]", "[mated]", "[draw]")
            seen[outcome] += 1
    assert len(seen) >= 3


def test_lines_that_a_search_for_material_leads_are_true_too():
    for place, board in enumerate(positions()[::4]):
        trace = shown(board, EXPLICIT, seed=place, guide=MATERIAL)
        for _, outcome, end in lines_of(trace, board, "long_algebraic"):
            assert outcome == true_outcome(board, end)


@pytest.mark.parametrize("plies", [1, 2, 3])
def test_a_line_goes_on_with_the_move_that_the_search_puts_first(plies):
    for board in positions()[::3]:
        first = rules.decode(rules.search(board, plies)[0][0])
        assert Material(plies=plies).reply(board, 1, right=False) == first


@pytest.mark.parametrize(
    ("fen", "wrong", "text"),
    [
        ("4k3/8/8/3p4/8/8/2Q5/4K3 w - - 0 1", "c2c4", "Qc2c4 Pd5xc4 [-9]"),  # the queen is lost for nothing
        ("rnbqkbnr/pppp1ppp/8/4p3/8/5P2/PPPPP1PP/RNBQKBNR w KQkq - 0 2", "g2g4", "Pg2g4 Qd8h4# [mated]"),  # fool's mate
        ("7k/8/6K1/8/8/8/8/5Q2 w - - 0 1", "f1f7", "Qf1f7 [draw]"),  # stalemate
        ("8/8/8/8/8/3k4/1q6/K6R w - - 0 1", "a1b2", "Ka1xb2"),  # a rook is left: the game goes on
        ("8/8/8/8/8/3k4/1q6/K7 w - - 0 1", "a1b2", "Ka1xb2 [draw]"),  # bare kings
        ("8/P6k/8/8/8/8/8/K7 w - - 0 1", "a7a8q", "Pa7a8=Q Kh7"),  # a pawn becomes a queen: 8 pawns more
    ],
)
def test_the_outcome_of_a_wrong_candidate_by_hand(fen, wrong, text):
    board = chess.Board(fen)
    others = [move for move in board.legal_moves if move.uci() != wrong]
    if others:  # the only wrong move is the one to look at
        style = CandidateStyle(candidates=2)
        trace = shown(board, style, guide=MATERIAL, right=others[:1], correct=set(others))
    else:
        trace = shown(board, EXPLICIT, guide=MATERIAL)
    assert trace.steps[0].text.startswith(text)
    if "=Q" in text:
        assert trace.steps[0].result == "[+8]"


def test_the_right_line_of_a_mate_follows_the_best_defence_to_the_mate():
    board, ra6 = chess.Board(MORPHY), chess.Move.from_uci("a1a6")
    trace = shown(board, CandidateStyle(candidates=1, depth=5), right=[ra6], guide=Mates(moves=2))
    ((moves, outcome, end),) = lines_of(trace, board, "long_algebraic")
    assert outcome == "[mate]"
    assert len(moves) == 3
    assert end.is_checkmate()


def has_mate_in_one(board):
    for move in list(board.legal_moves):
        board.push(move)
        mate = board.is_checkmate()
        board.pop()
        if mate:
            return True
    return False


def test_a_wrong_candidate_of_a_mate_is_shown_with_a_reply_after_which_there_is_no_mate():
    board, ra6 = chess.Board(MORPHY), chess.Move.from_uci("a1a6")
    wrong = board.legal_moves.count() - 1
    trace = shown(board, CandidateStyle(candidates=wrong + 1), right=[ra6], guide=Mates(moves=2))
    lines = lines_of(trace, board, "long_algebraic")
    assert len({moves[0] for moves, _, _ in lines}) == wrong + 1
    for moves, outcome, end in lines[:-1]:
        assert moves[0] != ra6
        assert outcome in ("[draw]", true_outcome(board, end))
        assert end.is_game_over() or not has_mate_in_one(end)


def test_a_mate_in_one_shows_what_the_other_moves_lead_to():
    board, mate = chess.Board(BACK_RANK), chess.Move.from_uci("a1a8")
    trace = shown(board, CandidateStyle(candidates=4), right=[mate], guide=Mates(moves=1))
    assert [step.result for step in trace.steps[:3]] == [
        true_outcome(board, e) for *_, e in lines_of(trace, board, "long_algebraic")
    ][:3]
    assert trace.steps[3].text == "Ra1a8# [mate]"
    assert trace.text.endswith("Ra1a8# [mate]#Ra1a8#")
    assert answer_part(trace.text) == "Ra1a8#"


def test_a_mate_that_cannot_be_excluded_within_the_budget_is_unrealisable_not_said():
    board, ra6 = chess.Board(MORPHY), chess.Move.from_uci("a1a6")
    with pytest.raises(Unrealisable, match="no reply on .* avoids mate in 1"):
        # After the right move there is no refutation: asking for one is what an unknown proof looks like.
        Mates(moves=2).reply(after(board, ra6), 1, right=False)


@pytest.mark.parametrize("fields", [{"moves": 0}, {"moves": 2, "plies": 0}, {"moves": 2, "most_nodes": 1.5}])
def test_a_guide_with_nothing_to_look_at_is_refused(fields):
    with pytest.raises(ValueError, match="must be a whole number of at least 1, got"):
        Mates(**fields)


def after(board, move):
    board = board.copy()
    board.push(move)
    return board


# ----------------------------------------------------------------------------------------------------- layout


@settings(max_examples=60, deadline=None)
@given(
    place=st.integers(0, 10_000),
    candidates=st.integers(1, 12),
    depth=st.integers(1, 4),
    ordering=st.sampled_from(ORDERINGS),
    wrong_first=st.sampled_from([0.0, 0.25, 0.5, 0.7, 1.0]),
    notation=st.sampled_from(NOTATIONS),
)
def test_a_trace_is_laid_out_exactly_as_asked(place, candidates, depth, ordering, wrong_first, notation):
    board = positions()[place % len(positions())]
    right = some_right(board, place)
    style = CandidateStyle(candidates=candidates, depth=depth, ordering=ordering, wrong_first=wrong_first)
    if board.legal_moves.count() < candidates:
        with pytest.raises(Unrealisable, match="wrong moves"):
            shown(board, style, right=[right], notation=notation)
        return
    trace = shown(board, style, seed=place, right=[right], notation=notation)
    lines = lines_of(trace, board, notation)
    firsts = [moves[0] for moves, _, _ in lines]
    assert len(set(firsts)) == len(lines) == candidates
    before = firsts.index(right)
    assert abs(before - wrong_first * (candidates - 1)) < 1
    assert trace.text == SEPARATOR.join(step.text for step in trace.steps) + f"#{trace.answer}"
    assert trace.answer == trace.steps[before].operation
    assert answer_part(trace.text) == trace.answer
    check_order([line for line in lines if line[0][0] != right], board, ordering)


def check_order(wrong, board, ordering):
    ranks = [RANKS.index("[0]" if outcome == "[draw]" else outcome) for _, outcome, _ in wrong]
    forcing = [0 if board.gives_check(m[0]) else 1 if board.is_capture(m[0]) else 2 for m, _, _ in wrong]
    if ordering == "best_last":
        assert ranks == sorted(ranks)
    if ordering == "best_first":
        assert ranks == sorted(ranks, reverse=True)
    if ordering == "checks_first":
        assert forcing == sorted(forcing)


def test_a_share_that_is_no_whole_number_of_candidates_holds_on_average():
    board = positions()[0]
    style = CandidateStyle(candidates=4, depth=1, wrong_first=0.5)
    right = some_right(board)
    places = Counter()
    for seed in range(400):
        trace = shown(board, style, seed=seed)
        places[[step.operation for step in trace.steps].index(trace.answer)] += 1
    assert right is not None
    assert set(places) == {1, 2}
    assert abs(places[1] - 200) < 50  # five standard deviations of 400 fair coins


def test_wrong_candidates_are_drawn_evenly_from_the_moves_that_are_no_answer():
    board = chess.Board(BACK_RANK)
    moves = list(board.legal_moves)
    correct = set(moves[:3])
    seen = Counter()
    for seed in range(600):
        trace = shown(board, CandidateStyle(candidates=2, depth=1), seed=seed, right=moves[:1], correct=correct)
        seen[lines_of(trace, board, "long_algebraic")[0][0][0]] += 1
    wrong = set(moves[3:])
    assert set(seen) == wrong
    expected = 600 / len(wrong)
    assert all(abs(count - expected) < 6 * expected**0.5 for count in seen.values())


def test_the_right_line_is_the_known_one_as_far_as_it_goes():
    board = chess.Board()
    known = [chess.Move.from_uci(text) for text in ("e2e4", "c7c5", "g1f3")]
    for depth in (1, 2, 3, 4):
        trace = shown(board, CandidateStyle(candidates=1, depth=depth), right=known)
        ((moves, _, _),) = lines_of(trace, board, "long_algebraic")
        assert len(moves) == depth
        assert moves[:3] == known[:depth]
    assert trace.answer == "Pe2e4"


@pytest.mark.parametrize(
    ("notation", "answer"),
    [("long_algebraic", "Pe2e4 Pc7c5 Ng1f3"), ("uci_moves", "e2e4 c7c5 g1f3"), ("san", "e4; c5; Nf3")],
)
def test_a_whole_line_may_be_the_answer(notation, answer):
    known = [chess.Move.from_uci(text) for text in ("e2e4", "c7c5", "g1f3")]
    trace = shown(chess.Board(), EXPLICIT, right=known, notation=notation, answer="line")
    assert trace.answer == answer
    assert answer_part(trace.text) == "".join(answer.split())
    assert shown(chess.Board(), IMPLICIT, right=known, notation=notation, answer="line").text == answer


def test_what_a_trace_is_written_in_is_the_lexicon():
    for notation in NOTATIONS:
        lexicon = tuple(dict.fromkeys((*symbols(notation), *TRACE_SYMBOLS)))
        for place, board in enumerate(positions()[::5]):
            text = shown(board, EXPLICIT, seed=place, notation=notation).text
            assert "".join(read(text, lexicon)) == "".join(text.split())
    assert len(set(TRACE_SYMBOLS)) == len(TRACE_SYMBOLS)


# ----------------------------------------------------------------------------------------------- plain styles


def test_plain_explicit_is_the_usual_candidate_style_and_makes_do_with_fewer_moves():
    board = positions()[0]
    assert shown(board, EXPLICIT) == shown(board, CandidateStyle())
    cornered = chess.Board("7k/8/8/8/8/8/6q1/K7 w - - 0 1")  # Kb1 and nothing else
    only = list(cornered.legal_moves)
    assert len(only) == 1
    assert len(shown(cornered, EXPLICIT, right=only).steps) == 1
    with pytest.raises(Unrealisable):
        shown(cornered, CandidateStyle(), right=only)


def test_plain_implicit_is_the_move_alone():
    trace = shown(positions()[0], IMPLICIT)
    assert trace.text == trace.answer
    assert trace.steps == ()


@pytest.mark.parametrize("backtracks", [0, 1, 3, 6])
def test_a_depth_first_search_shows_exactly_so_many_wrong_candidates_and_then_the_right_one(backtracks):
    for place, board in enumerate(positions()[::4]):
        style = TraceStyle(search="depth_first", backtracks=backtracks)
        if board.legal_moves.count() <= backtracks:
            with pytest.raises(Unrealisable):
                shown(board, style)
            continue
        trace = shown(board, style, seed=place)
        operations = [step.operation for step in trace.steps]
        assert len(set(operations)) == len(operations) == backtracks + 1
        assert operations[-1] == trace.answer


def test_a_depth_first_search_of_no_set_length_draws_one():
    board = positions()[0]
    lengths = Counter(len(shown(board, TraceStyle(search="depth_first"), seed=seed).steps) for seed in range(200))
    assert set(lengths) == {1, 2, 3, 4}
    assert min(lengths.values()) > 20


def test_a_shuffled_order_puts_the_right_move_anywhere():
    board = positions()[0]
    places = Counter()
    for seed in range(200):
        trace = shown(board, TraceStyle(order="shuffled"), seed=seed)
        places[[step.operation for step in trace.steps].index(trace.answer)] += 1
    assert set(places) == {0, 1, 2}
    assert min(places.values()) > 35


@pytest.mark.parametrize(
    "style",
    [
        TraceStyle(granularity="composed", group=2),
        TraceStyle(order="backward"),
        TraceStyle(search="breadth_first"),
        TraceStyle(search="depth_first", heuristic="luck"),
        TraceStyle(search="depth_first", backtracks=200, heuristic="luck"),
    ],
)
def test_what_candidates_cannot_be_written_in_is_refused_for_good(style):
    for board in positions()[:3]:
        with pytest.raises(ValueError, match=r"\S") as refusal:
            shown(board, style)
        assert not isinstance(refusal.value, Unrealisable)


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_a_search_may_be_told_how_to_order_its_branches(ordering):
    board = positions()[len(positions()) // 2]
    style = TraceStyle(search="depth_first", backtracks=4, heuristic=ordering)
    assert shown(board, style) == shown(board, CandidateStyle(candidates=5, ordering=ordering))


# ------------------------------------------------------------------------------------------------- the answer


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("", ""),
        ("#", "#"),
        ("##", "#"),
        ("Q d1 d8", "Qd1d8"),
        ("Q d1 d8 #", "Qd1d8#"),
        ("Q d1 d8 # [mate] # Q d1 d8 #", "Qd1d8#"),
        ("Q d1 d8 + [0] # Q d1 d8", "Qd1d8"),
        ("Q d1 d8 # [mate] #", "[mate]#"),  # an answer that is missing is no move
        ("# # e4", "e4"),
        (" \n#\te4 ", "e4"),
    ],
)
def test_the_answer_is_what_follows_the_last_mark_that_is_no_mate(completion, answer):
    assert answer_part(completion) == answer


@given(text=st.text())
def test_any_text_has_an_answer_part_without_white_space(text):
    part = answer_part(text)
    assert part == "".join(part.split())
    assert "".join(text.split()).endswith(part)
    assert part.count("#") <= 1


def test_a_million_characters_are_cut_at_once():
    for text in ("#" * 1_000_000, " " * 1_000_000, "a# " * 333_333, "\ud800 " * 500_000):
        start = time.perf_counter()
        answer_part(text)
        assert time.perf_counter() - start < 0.5


# ------------------------------------------------------------------------------------------ styles as values


def test_a_candidate_style_is_a_value_of_its_own():
    style = CandidateStyle()
    assert style not in (EXPLICIT, TraceStyle())
    assert style == CandidateStyle(candidates=3, wrong_first=1)
    assert hash(style) == hash(CandidateStyle(wrong_first=1))
    assert fingerprint(style) == fingerprint(CandidateStyle(wrong_first=1))
    assert pickle.loads(pickle.dumps(style)) == style
    assert revive(canonical(style)) == style
    variants = [style, *(replace(style, **change) for change in CHANGES), EXPLICIT]
    assert len({fingerprint(each) for each in variants}) == len(variants)
    assert len({each.name for each in variants}) == len(variants)


CHANGES = (
    {"candidates": 4},
    {"depth": 3},
    {"ordering": "best_last"},
    {"wrong_first": 0.5},
    {"noise": DroppedSteps(rate=0.5)},
)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"candidates": 0}, "between 1 and 218, got 0"),
        ({"candidates": 219}, "got 219"),
        ({"candidates": True}, "got True"),
        ({"depth": 0}, "between 1 and 200, got 0"),
        ({"depth": 1.5}, "got 1.5"),
        ({"ordering": "luck"}, "ordering must be one of random"),
        ({"wrong_first": -0.1}, "between 0 and 1, got -0.1"),
        ({"wrong_first": float("nan")}, "got nan"),
        ({"wrong_first": "half"}, "got 'half'"),
        ({"granularity": "implicit"}, "written explicitly and forward, got .*'implicit'"),
        ({"order": "shuffled"}, "written explicitly and forward, got .*'shuffled'"),
        ({"search": "breadth_first"}, "has search='depth_first', got 'breadth_first'"),
        ({"search": "optimal"}, "goes with a search"),
        ({"heuristic": "near"}, "has heuristic='candidates', got 'near'"),
        ({"backtracks": 2}, "has backtracks=None, got 2; say the number of its lines by candidates"),
        ({"group": 2}, "granularity='composed'"),
    ],
)
def test_what_is_no_candidate_style_is_refused_when_it_is_made(fields, complaint):
    with pytest.raises(ValueError, match=complaint):
        CandidateStyle(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Middlegame:
    """A task for the tests: a position of a random game, in which one move is right."""

    revision: ClassVar[int] = 1

    def generate(self, rng, count):
        wide = [board for board in positions() if board.legal_moves.count() > 4]
        fens = [wide[place].fen() for place in rng.integers(len(wide), size=count).tolist()]
        return [Problem(prompt=fen, key=fen, certificate=None) for fen in fens]

    def demonstrate(self, problem, style, rng):
        board = chess.Board(problem.prompt)
        right = some_right(board)
        return demonstrate(board, [right], style, rng, "long_algebraic", correct={right}, guide=Quick())


@pytest.mark.parametrize("noise", [WrongResult, DroppedSteps, ShuffledSteps, UnrelatedWorking])
@pytest.mark.parametrize("style", [EXPLICIT, CandidateStyle(candidates=4, depth=3, wrong_first=0.5)])
def test_noise_spoils_the_candidates_and_never_the_answer(noise, style):
    task = Middlegame()
    changed = 0
    for problem in task.generate(stream("openings"), 12):
        clean = demonstration(task, problem, style)
        spoiled = demonstration(task, problem, replace(style, noise=noise(rate=1.0)))
        changed += spoiled != clean
        assert spoiled.answer == clean.answer
        assert answer_part(spoiled.text) == answer_part(clean.text)
        assert spoiled == Trace.worked(spoiled.steps, spoiled.answer, separator=SEPARATOR)
        assert demonstration(task, problem, replace(style, noise=noise(rate=0.0))) == clean
    assert changed == 12


@pytest.mark.parametrize("task", [Sokoban(), LatentModules(world=5), FrozenLake()])
def test_a_testbed_without_candidates_refuses_them_instead_of_writing_something_else(task):
    problem = task.generate(stream("other"), 1)[0]
    with pytest.raises(ValueError, match=r"search|heuristic") as refusal:
        demonstration(task, problem, CandidateStyle())
    assert not isinstance(refusal.value, Unrealisable)


def test_styles_that_differ_have_draws_of_their_own_and_the_same_style_the_same():
    task = Middlegame()
    problems = task.generate(stream("openings"), 8)
    usual = [demonstration(task, problem, CandidateStyle()) for problem in problems]
    assert usual == [demonstration(task, problem, CandidateStyle(wrong_first=1)) for problem in problems]
    assert usual != [demonstration(task, problem, EXPLICIT) for problem in problems]


def test_an_evaluation_tells_candidate_styles_apart():
    sets = (ProblemSet(suite=Suite(task=LatentModules(world=5)), split="test", count=1),)
    styles = (EXPLICIT, CandidateStyle(), CandidateStyle(depth=3), CandidateStyle(wrong_first=0.5))
    usual = Evaluation(sets=sets, max_new_tokens=8, seed=0, styles=styles)
    assert len({fingerprint(usual), fingerprint(replace(usual, styles=styles[:1]))}) == 2
    with pytest.raises(ValueError, match="holds a style twice"):
        replace(usual, styles=(CandidateStyle(), CandidateStyle(wrong_first=1)))
