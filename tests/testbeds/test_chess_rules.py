"""The compiled rules of chess are those of python-chess."""

import csv
import pickle
import re
from functools import cache
from io import StringIO
from pathlib import Path

import chess
import chess.pgn
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbeds.chess import rules
from testbeds.chess.positions import images, key_of
from testbeds.streams import stream

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
PROMOTIONS = "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1"
ENDGAME = "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"
PINNED_ALONG_THE_RANK = "8/8/8/K2pP2r/8/8/8/4k3 w - d6 0 1"
PINNED_ALONG_A_DIAGONAL = "7k/8/8/2pP4/8/8/5K2/q7 w - c6 0 1"
PASSING_ENDS_CHECK = "8/8/8/2k5/3Pp3/8/8/4K3 b - d3 0 1"
ONE_OF_TWO_MAY_PASS = "k2r4/8/8/2PpP3/3K4/8/8/8 w - d6 0 1"
DOUBLE_CHECK = "4k3/8/8/8/8/5n2/4r3/4K2R w K - 0 1"
CASTLING_THROUGH_CHECK = "r3k2r/8/8/8/8/8/6p1/R3K2R w KQkq - 0 1"
PIECES = "8/3k4/8/8/2N5/8/5K2/1b6 w - - 3 1"
FENS = (
    chess.STARTING_FEN,
    KIWIPETE,
    PROMOTIONS,
    ENDGAME,
    PINNED_ALONG_THE_RANK,
    PINNED_ALONG_A_DIAGONAL,
    PASSING_ENDS_CHECK,
    ONE_OF_TWO_MAY_PASS,
    DOUBLE_CHECK,
    CASTLING_THROUGH_CHECK,
    PIECES,
)
START = rules.state_of(chess.Board())


@st.composite
def boards(draw, plies=60):
    """Positions of games that begin at one of FENS."""
    board = chess.Board(draw(st.sampled_from(FENS)))
    for choice in draw(st.lists(st.integers(0, 217), max_size=plies)):
        moves = list(board.legal_moves)
        if not moves:
            break
        board.push(moves[choice % len(moves)])
    return board


@cache
def puzzles() -> tuple[dict[str, str], ...]:
    path = SHARED / "lichess_puzzles_sample.csv"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    with path.open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def mates_of_puzzles(n: int) -> list[chess.Board]:
    """The positions to solve of the puzzles with mate in n."""
    found = []
    for row in puzzles():
        if f"mateIn{n}" in row["Themes"].split():
            board = chess.Board(row["FEN"])
            board.push_uci(row["Moves"].split()[0])
            found.append(board)
    return found


def listed(state: rules.State) -> list[int]:
    out = np.zeros(rules.MOST_MOVES, np.uint16)
    return out[: rules.legal_moves(state, out)].tolist()


def status_of(board: chess.Board) -> int:
    if board.is_checkmate():
        return rules.MATE
    if board.is_stalemate():
        return rules.STALEMATE
    return rules.INSUFFICIENT if board.is_insufficient_material() else rules.GOES_ON


def check_position(board: chess.Board) -> rules.State:
    """The state of a board, of which everything agrees with python-chess."""
    state = rules.state_of(board)
    before = state.copy()
    assert sorted(listed(state)) == sorted(map(rules.encode, board.legal_moves)), board.fen()
    assert rules.in_check(state) == board.is_check()
    assert rules.status(state) == status_of(board)
    assert (state == before).all()
    return state


@pytest.mark.parametrize(
    ("fen", "depth", "lines"),
    [
        (chess.STARTING_FEN, 4, 197_281),
        (KIWIPETE, 3, 97_862),
        (ENDGAME, 4, 43_238),
        ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", 3, 9_467),
        ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", 3, 62_379),
        ("r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10", 3, 89_890),
        (PROMOTIONS, 4, 182_838),
        (chess.STARTING_FEN, 0, 1),
    ],
)
def test_lines_of_legal_moves_are_as_many_as_published(fen, depth, lines):
    assert rules.perft(rules.state_of(chess.Board(fen)), depth) == lines


def test_no_position_has_more_moves_than_the_one_with_218():
    assert len(listed(check_position(chess.Board("R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1")))) == 218


@pytest.mark.parametrize("fen", FENS)
def test_positions_of_random_games_agree_with_python_chess(fen):
    rng = stream("chess rules", fen)
    for _ in range(3):
        board = chess.Board(fen)
        state = check_position(board)
        for _ in range(100):
            if not any(board.generate_legal_moves()):
                break
            moves = list(board.legal_moves)
            move = moves[int(rng.integers(len(moves)))]
            board.push(move)
            rules.play(state, rules.encode(move))
            assert (state == check_position(board)).all(), board.fen()


def test_positions_of_puzzles_agree_with_python_chess():
    for row in puzzles():
        check_position(chess.Board(row["FEN"]))


@given(board=boards())
@settings(max_examples=60)
def test_a_state_becomes_the_same_board(board):
    again = rules.board_of_state(rules.state_of(board))
    assert again.fen().split()[:5] == chess.Board(board.fen(en_passant="legal")).fen(en_passant="legal").split()[:5]
    assert (rules.state_of(again) == rules.state_of(board)).all()


@given(st.lists(st.integers(-6, 6), min_size=64, max_size=64), st.integers(0, 2**16 - 1))
@settings(max_examples=60)
def test_kernels_bear_any_state_and_any_move(squares, move):
    state = np.zeros(68, np.int8)
    state[:64], state[64], state[65], state[66] = squares, 1, 15, 43
    assert len(listed(state)) <= rules.MOST_MOVES
    rules.play(state, move)
    assert rules.canonical_hash(state) >= 0


@pytest.mark.parametrize("uci", ["e2e4", "e7e8q", "a7b8n", "e1g1"])
def test_moves_are_numbers_and_back(uci):
    move = chess.Move.from_uci(uci)
    assert rules.decode(rules.encode(move)) == move
    assert rules.encode(chess.Move.from_uci("a1b1")) == 1 << 6
    assert rules.encode(chess.Move.from_uci("h7h8q")) == 55 | 63 << 6 | 5 << 12


@pytest.mark.parametrize("fen", ["8/8/8/8/8/8/8/K7 w - - 0 1", "kk6/8/8/8/8/8/8/K7 w - - 0 1"])
def test_each_side_must_have_one_king(fen):
    with pytest.raises(ValueError, match="one king"):
        rules.state_of(chess.Board(fen))


def test_castling_of_chess960_is_refused():
    with pytest.raises(ValueError, match="Chess960"):
        rules.state_of(chess.Board.from_chess960_pos(5))


def test_material_is_counted_in_pawns():
    assert rules.material(START) == 0
    assert rules.material(rules.state_of(chess.Board("qk6/8/8/8/8/8/8/KRBNP3 w - - 0 1"))) == 5 + 3 + 3 + 1 - 9


# --------------------------------------------------------------------------------------------------------- hashes


@given(board=boards())
@settings(max_examples=60)
def test_images_of_a_position_have_its_hash(board):
    expected = rules.position_hash(board)
    assert expected == rules.position_hash(board.mirror())
    assert 0 <= expected < 2**63
    for image in images(board):
        assert rules.position_hash(image) == expected


def test_hashes_are_equal_exactly_where_keys_are():
    keys: dict[str, int] = {}
    rng = stream("chess rules", "hashes")
    for fen in FENS:
        board = chess.Board(fen)
        for _ in range(60):
            moves = list(board.legal_moves)
            if not moves:
                break
            board.push(moves[int(rng.integers(len(moves)))])
            key = key_of(board)
            assert keys.setdefault(key, rules.position_hash(board)) == rules.position_hash(board)
    assert len(set(keys.values())) == len(keys) > 300


@pytest.mark.parametrize("fen", [PINNED_ALONG_THE_RANK, PINNED_ALONG_A_DIAGONAL])
def test_an_en_passant_square_counts_where_the_capture_is_legal(fen):
    board = chess.Board(fen)
    without = chess.Board(fen)
    without.ep_square = None
    assert (rules.position_hash(board) == rules.position_hash(without)) == (not board.has_legal_en_passant())


def test_hashes_are_the_same_in_every_process():
    assert rules.position_hash(chess.Board()) == 6_043_797_701_651_463_891
    assert rules.position_hash(chess.Board(KIWIPETE)) == 2_195_648_395_555_754_496


def test_the_hashes_of_a_game_are_those_of_its_positions():
    moves = rules.self_play(5, START, 0, 0.0, 120)
    board = chess.Board()
    expected = [rules.position_hash(board)]
    for code in moves:
        board.push(rules.decode(code))
        expected.append(rules.position_hash(board))
    assert rules.hashes_of_game(None, moves).tolist() == expected
    assert rules.hashes_of_game(KIWIPETE, ()).tolist() == [rules.position_hash(chess.Board(KIWIPETE))]


def test_a_game_with_an_illegal_move_has_no_hashes():
    with pytest.raises(ValueError, match="move 1 is e2e4"):
        rules.hashes_of_game(None, [rules.encode(chess.Move.from_uci("e2e4"))] * 2)


# ---------------------------------------------------------------------------------------------------------- mates


def wins(board: chess.Board, n: int) -> bool:
    return any(loses_after(board, move, n - 1) for move in list(board.legal_moves))


def loses_after(board: chess.Board, move: chess.Move, n: int) -> bool:
    board.push(move)
    replies = list(board.legal_moves)
    lost = bool(replies) and n > 0 and all(wins_after(board, reply, n) for reply in replies)
    lost = lost or (not replies and board.is_check())
    board.pop()
    return lost


def wins_after(board: chess.Board, move: chess.Move, n: int) -> bool:
    board.push(move)
    won = wins(board, n)
    board.pop()
    return won


def brute_force(board: chess.Board, n: int) -> list[int]:
    return sorted(rules.encode(move) for move in list(board.legal_moves) if loses_after(board, move, n - 1))


def test_all_mates_at_once_of_the_puzzles_are_found():
    several = 0
    for board in mates_of_puzzles(1):
        expected = brute_force(board, 1)
        assert rules.mating_moves(board, 1) == expected
        several += len(expected) > 1
    assert several > 0


def test_mates_in_two_agree_with_brute_force():
    for board in mates_of_puzzles(2)[:3]:
        assert rules.mating_moves(board, 2) == brute_force(board, 2)


@pytest.mark.parametrize(
    "fen",
    [
        "8/8/8/8/8/4k3/7q/4K3 b - - 0 1",
        "6k1/5ppp/8/8/8/8/8/3RK3 w - - 0 1",
        "8/8/8/8/1k6/8/2r5/K7 b - - 0 1",
        "8/6P1/8/8/8/1K6/8/k7 w - - 0 1",
        "7k/5K2/8/5PpP/8/8/8/8 w - g6 0 1",
        "8/8/8/8/8/1p1k4/8/3K4 b - - 0 1",
    ],
)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_small_positions_agree_with_brute_force(fen, n):
    board = chess.Board(fen)
    expected = brute_force(board, n)
    assert rules.mating_moves(board, n) == expected
    assert rules.forced_mate(board, n) == bool(expected)


def test_every_mate_of_the_puzzles_is_found_within_the_moves_asked_for():
    for n, count in ((2, 100), (3, 20)):
        for board in mates_of_puzzles(n)[:count]:
            assert rules.forced_mate(board, n)
            assert not rules.forced_mate(board, n - 1)


def test_stalemate_is_no_mate():
    board = chess.Board("7k/8/6K1/8/8/8/8/5Q2 w - - 0 1")
    assert [rules.decode(code).uci() for code in rules.mating_moves(board, 1) or ()] == ["f1f8"]
    stalemates = chess.Board("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1")  # c7 leaves black no move
    assert rules.encode(chess.Move.from_uci("c1c7")) not in (rules.mating_moves(stalemates, 1) or ())


def test_a_search_beyond_its_budget_says_so():
    board = mates_of_puzzles(3)[0]
    assert rules.mating_moves(board, 3, most_nodes=50) is None
    assert rules.forced_mate(board, 3, most_nodes=50) is None


def test_no_mate_is_searched_for_in_no_moves():
    assert rules.forced_mate(chess.Board(), 0) is False
    with pytest.raises(ValueError, match="got 0"):
        rules.mating_moves(chess.Board(), 0)


def delay(board: chess.Board, n: int) -> int:
    """In how many moves, up to n, the side to move mates; n + 1 for more."""
    return next((moves for moves in range(1, n + 1) if wins(board, moves)), n + 1)


@pytest.mark.parametrize(
    "fen", ["8/8/8/8/8/2k5/7r/2K5 w - - 0 1", "8/8/8/8/8/2q5/8/K1k5 w - - 0 1", "k7/8/K7/8/8/8/1Q6/8 b - - 0 1"]
)
def test_the_best_defence_delays_mate_longest(fen):
    board, n = chess.Board(fen), 2
    delays = {}
    for move in board.legal_moves:
        after = board.copy()
        after.push(move)
        delays[rules.encode(move)] = delay(after, n)
    best = rules.best_defence(board, n)
    if delays:
        assert best == min(code for code, length in delays.items() if length == max(delays.values()))
    else:
        assert best is None


# --------------------------------------------------------------------------------------------------- search, games


def valued(board: chess.Board, depth: int, ply: int) -> int:
    """The value of a position by plain minimax."""
    moves = list(board.legal_moves)
    if not moves:
        return ply - rules.MATED if board.is_check() else 0
    if board.is_insufficient_material():
        return 0
    if depth == 0:
        return rules.material(rules.state_of(board)) * (1 if board.turn else -1)
    values = []
    for move in moves:
        board.push(move)
        values.append(-valued(board, depth - 1, ply + 1))
        board.pop()
    return max(values)


@pytest.mark.parametrize(("fen", "depth"), [(KIWIPETE, 2), (PROMOTIONS, 2), (ENDGAME, 3), (PIECES, 3)])
def test_the_search_agrees_with_minimax_and_its_lines_are_worth_their_scores(fen, depth):
    board = chess.Board(fen)
    rows = rules.search(board, depth)
    assert {code for code, _, _ in rows} == set(map(rules.encode, board.legal_moves))
    assert rows == sorted(rows, key=lambda row: (-row[1], row[0]))
    for code, score, line in rows:
        assert line[0] == code
        after = board.copy()
        after.push(rules.decode(code))
        assert score == -valued(after, depth - 1, 1)
        for move in line[1:]:
            assert after.is_legal(rules.decode(move))
            after.push(rules.decode(move))
        assert abs(valued(after, 0, len(line))) == abs(score)


def test_mates_have_scores_of_their_own():
    fools = chess.Board("rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq - 0 2")
    code, score, line = rules.search(fools, 2)[0]
    assert rules.decode(code).uci() == "d8h4"
    assert (score, line) == (rules.MATED - 1, (code,))
    with pytest.raises(ValueError, match="got 0"):
        rules.search(fools, 0)


def ended(board: chess.Board) -> bool:
    """Whether a game ends here by the rules of self-play."""
    return status_of(board) != rules.GOES_ON or board.is_repetition(3) or board.halfmove_clock >= 100


@pytest.mark.parametrize("policy", range(len(rules.POLICIES)))
@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_games_depend_on_their_seed_alone_and_are_legal_to_their_end(policy, seed):
    most = 60 if policy > 1 else 400
    moves = rules.self_play(seed, START, policy, 0.2, most)
    assert moves == rules.self_play(seed, START, policy, 0.2, most)
    assert moves != rules.self_play(seed ^ 1, START, policy, 0.2, most)
    board = chess.Board()
    for code in moves:
        assert not ended(board)
        assert board.is_legal(rules.decode(code))
        board.push(rules.decode(code))
    assert ended(board) or len(moves) == most


def test_random_games_end_in_every_way():
    endings = set()
    for seed in range(60):
        board = rules.board_of_state(START)
        for code in rules.self_play(seed, START, 0, 0.0, 1000):
            board.push(rules.decode(code))
        endings.add("fifty moves" if board.halfmove_clock >= 100 else status_of(board))
    assert {rules.MATE, rules.INSUFFICIENT, "fifty moves"} <= endings


def points(white: int, black: int, games: int) -> float:
    """White's points, from ends of games or else the material."""
    total = 0.0
    for seed in range(games):
        state = START.copy()
        for code in rules.self_play(seed, START, (white, black), 0.1, 80):
            rules.play(state, code)
        loser = int(state[64]) if rules.status(state) == rules.MATE else 0
        balance = -100 * loser or rules.material(state)
        total += 1.0 if balance > 0 else 0.5 if balance == 0 else 0.0
    return total


@pytest.mark.parametrize(("stronger", "games"), [(1, 24), (2, 16)])
def test_policies_that_look_further_win_more(stronger, games):
    assert points(stronger, stronger - 1, games) > 0.7 * games
    assert points(stronger - 1, stronger, games) < 0.3 * games


@pytest.mark.parametrize(
    ("seed", "policy", "epsilon", "plies", "message"),
    [(0, 4, 0.0, 10, "policy"), (0, 0, 1.5, 10, "epsilon"), (-1, 0, 0.0, 10, "seed"), (0, 0, 0.0, -1, "most_plies")],
)
def test_self_play_refuses_what_it_cannot_do(seed, policy, epsilon, plies, message):
    with pytest.raises(ValueError, match=message):
        rules.self_play(seed, START, policy, epsilon, plies)


# ------------------------------------------------------------------------------------------------------------ SAN


@cache
def master_games() -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Movetext without result, and moves by chess.pgn, of a part of the shipped games."""
    path = SHARED / "master_games_sample.pgn"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    blocks = re.split(r"\n\n(?=\[)", path.read_text(encoding="latin-1"))[::12]
    rows = []
    for block in blocks:
        game = chess.pgn.read_game(StringIO(block))
        assert game is not None
        text = re.sub(r"(1-0|0-1|1/2-1/2|\*)\s*$", "", block.split("\n\n", 1)[1].strip())
        rows.append((text, tuple(map(rules.encode, game.mainline_moves()))))
    return tuple(rows)


def test_games_are_read_as_by_chess_pgn():
    assert len(master_games()) > 100
    for text, expected in master_games():
        moves, wrong = rules.read_san_moves(START, text.encode())
        assert (tuple(moves.tolist()), wrong) == (expected, -1)


def texts_of(board: chess.Board, move: chess.Move) -> set[str]:
    """Ways in which files write a move."""
    usual = board.san(move).rstrip("+#")
    texts = {usual, usual + "!?", usual + "+", usual + "#", usual.replace("=", ""), usual.replace("O", "0")}
    texts |= {usual.replace("x", ""), usual.replace("x", "-"), move.uci(), f"7.{usual}", f"12...{usual}"}
    kind = board.piece_type_at(move.from_square)
    if kind not in (None, chess.PAWN):
        letter, end = chess.piece_symbol(kind).upper(), chess.square_name(move.to_square)
        start = chess.square_name(move.from_square)
        texts |= {f"{letter}{part}{end}" for part in ("", start, start[0], start[1])}
    return texts


@given(board=boards())
@settings(max_examples=40)
def test_every_way_to_write_a_move_is_read_as_python_chess_reads_it(board):
    state = rules.state_of(board)
    for move in list(board.legal_moves)[:12]:
        for text in texts_of(board, move):
            check_token(board, state, text)


@given(board=boards(), text=st.from_regex(r"\A[NBRQKOP0ab]?[a-h]?[1-8]?[x-]?[a-h]?[1-8]?=?[NBRQKqk0O]?[+#]?\Z"))
@settings(max_examples=200)
def test_any_token_is_read_as_python_chess_reads_it(board, text):
    check_token(board, rules.state_of(board), text)


@pytest.mark.parametrize(
    "text", ["e1h1", "e1a1", "e1g1", "e1c1", "Kg1", "Kc1", "O-O", "0-0-0", "O-0", "Kh1", "e8", "e8="]
)
@pytest.mark.parametrize("fen", ["r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "8/4P1k1/8/8/8/8/8/4K2R w K - 0 1"])
def test_castling_and_promotion_are_read_as_python_chess_reads_them(fen, text):
    board = chess.Board(fen)
    check_token(board, rules.state_of(board), text)


def check_token(board: chess.Board, state: rules.State, text: str) -> None:
    moves, wrong = rules.read_san_moves(state, text.encode())
    bare = re.sub(r"^\d+\.+", "", text).rstrip("+#!?")
    try:
        expected = [rules.encode(board.parse_san(bare))] if bare else []
    except ValueError:
        expected = []
    if expected == [0]:
        expected = []  # no null moves
    assert moves.tolist() == expected, (board.fen(), text)
    assert (wrong == -1) == (bool(expected) or not text.strip()), text


@given(st.binary(max_size=60))
@settings(max_examples=200)
def test_any_bytes_are_read_without_an_error(text):
    moves, wrong = rules.read_san_moves(START, b"e4 e5 " + text)
    assert moves[:2].tolist() == [rules.encode(chess.Move.from_uci(uci)) for uci in ("e2e4", "e7e5")]
    assert -1 <= wrong < len(text) + 6


def test_the_first_token_that_is_no_move_is_named():
    text = b"1. e4 e5 2. Ke3 Nf6"
    moves, wrong = rules.read_san_moves(START, text)
    assert len(moves) == 2
    assert text[wrong:].split()[0] == b"Ke3"
    assert (rules.state_of(chess.Board()) == START).all()


def test_states_travel_between_processes():
    assert (pickle.loads(pickle.dumps(START)) == START).all()
