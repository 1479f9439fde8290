"""The endgame tables, against python-chess, published numbers, and Syzygy tables where there are some."""

import os
import subprocess
import sys
from functools import cache
from itertools import product

import chess
import chess.syzygy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbeds.chess import tablebase
from testbeds.chess.tablebase import DRAW, ENDGAMES, Counts, Value, table, table_of, value_of
from testbeds.chess.tablebase_kernels import DRAWN, ILLEGAL, STRONG, WEAK, attacked, is_first
from testbeds.streams import stream

KINDS = {"KQK": "Q", "KRK": "R", "KPK": "P", "KBNK": "BN"}
SYZYGY = os.environ.get("STAGECRAFT_SYZYGY", "")

# Positions of king and rook against king with black to move, one of each class of mirror images, by the moves to mate:
# UCI data set "Chess (King-Rook vs. King)", Bain and Hoff 1994, 28,056 positions.
ROOK_MATES = [27, 78, 246, 81, 198, 471, 592, 683, 1433, 1712, 1985, 2854, 3597, 4194, 4553, 2166, 390]
ROOK_DRAWS = 2796


@cache
def solved(name):
    """Solved here and now: what is on disk may be older than the kernels."""
    return tablebase.solve(name)


@pytest.fixture
def cache_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("STAGECRAFT_CACHE", str(tmp_path / "tables"))
    tablebase.forget()
    yield tmp_path / "tables"
    tablebase.forget()


def board_with(name, squares, turn, strong=chess.WHITE):
    board = chess.Board(None)
    for symbol, square in zip("Kk" + KINDS[name], squares, strict=True):
        board.set_piece_at(square, chess.Piece.from_symbol(symbol))
    board.turn = turn
    return board if strong == chess.WHITE else board.mirror()


def drawn_boards(name, count, *key):
    """Legal positions, drawn uniformly, with either colour as the strong side."""
    rng = stream("tablebase tests", name, *key)
    while count:
        squares = rng.permutation(64)[: len(name)].tolist()
        board = board_with(name, squares, turn=bool(rng.integers(2)), strong=bool(rng.integers(2)))
        if board.is_valid():
            count -= 1
            yield board


def negated(value):
    return Value(outcome=-value.outcome, plies_to_mate=value.plies_to_mate)


def rank(value):
    """By what a player prefers: a quick win, a slow win, a draw, a slow loss, a quick loss."""
    return value.outcome * (1000 - (value.plies_to_mate or 0))


@pytest.mark.parametrize(("name", "moves"), [("KQK", 10), ("KRK", 16), ("KPK", 28), ("KBNK", 33)])
def test_the_longest_mates_are_the_published_ones(name, moves):
    assert solved(name).longest_mate() == moves


def test_rook_endings_have_the_published_number_of_positions_at_each_distance():
    row = solved("KRK").rows[WEAK]
    numbers = np.flatnonzero(row != ILLEGAL)
    entries = row[numbers[is_first(numbers, 3)]]
    assert [int((entries == 2 * moves).sum()) for moves in range(17)] == ROOK_MATES
    assert int((entries == DRAWN).sum()) == ROOK_DRAWS
    assert len(entries) == 28_056


def test_pawn_endings_have_the_published_numbers_of_positions():
    # 331,352 legal positions with a white pawn: 163,328 with white to move, of which 124,960 are won, and 168,024 with
    # black to move, of which 97,604 are lost.
    pawn = solved("KPK")
    assert pawn.counts(chess.WHITE) == Counts(won=124_960, drawn=163_328 - 124_960, lost=0)
    assert pawn.counts(chess.BLACK) == Counts(won=0, drawn=168_024 - 97_604, lost=97_604)


@pytest.mark.parametrize(("name", "mates"), [("KQK", 364), ("KRK", 216)])
def test_every_mate_on_the_board_is_known_and_no_other(name, mates):
    # A lone king is mated on the edge alone; python-chess says where.
    edge = [square for square in chess.SQUARES if chess.BB_SQUARES[square] & (chess.BB_BACKRANKS | FILES)]
    found = 0
    for squares in product(chess.SQUARES, edge, chess.SQUARES):
        king, weak, _ = squares
        if len(set(squares)) < 3 or chess.square_distance(king, weak) != 2:  # the kings are in touch
            continue
        at = np.array(squares)
        if attacked(at, np.array([chess.Piece.from_symbol(KINDS[name]).piece_type]), weak, -1):
            found += board_with(name, squares, chess.BLACK).is_checkmate()
    assert found == mates
    assert 4 * int((solved(name).rows[WEAK] == 0).sum()) == mates


FILES = chess.BB_FILE_A | chess.BB_FILE_H


@pytest.mark.parametrize("name", ["KQK", "KRK", "KPK"])
def test_the_legal_positions_are_those_of_python_chess_for_all_places_of_the_other_men(name):
    held = solved(name)
    for king in (chess.A1, chess.C4):
        for weak, man, turn in product(chess.SQUARES, chess.SQUARES, chess.COLORS):
            if len({king, weak, man}) < 3:
                continue
            board = board_with(name, (king, weak, man), turn)
            at, side, _ = held._read(board)
            assert (entry(held, at, side) != ILLEGAL) == board.is_valid(), board.fen()


@pytest.mark.parametrize("name", ENDGAMES)
def test_random_placements_are_legal_as_python_chess_says(name):
    rng = stream("tablebase tests", "placements", name)
    for _ in range(1000):
        board = board_with(
            name, rng.permutation(64)[: len(name)].tolist(), bool(rng.integers(2)), bool(rng.integers(2))
        )
        at, side, _ = solved(name)._read(board)
        assert (entry(solved(name), at, side) != ILLEGAL) == board.is_valid(), board.fen()


def entry(held, at, side):
    return held.rows[side, tablebase.kernels.number(at, tablebase.kernels.flips_of(held.kinds))]


@pytest.mark.parametrize("name", ENDGAMES)
def test_every_value_is_the_best_of_the_values_after_python_chess_legal_moves(name):
    held = solved(name)
    for board in drawn_boards(name, 300, "minimax"):
        judged = held.moves(board)
        assert {each.move for each in judged} == set(board.legal_moves)
        assert len(judged) == board.legal_moves.count()
        value = held.value(board)
        check_summaries(held, board, judged)
        if not judged:
            mated = Value(outcome=-1, plies_to_mate=0)
            assert value == (mated if board.is_checkmate() else DRAW)
            continue
        for each in judged:
            board.push(each.move)
            after = value_of(board) if table_of(board) is None or table_of(board).name != name else held.value(board)
            assert negated(after) == each.value, (board.fen(), each)
            board.pop()
        best = max((each.value for each in judged), key=rank)
        assert value.outcome == best.outcome
        assert value.plies_to_mate == (None if best == DRAW else best.plies_to_mate + 1)
        assert [each.optimal for each in judged] == [each.value == best for each in judged]


def check_summaries(held, board, judged):
    """What is said of all moves at once, and of one, is what the list of moves says."""
    best = [each.move for each in judged if each.optimal]
    outcome = max((each.value.outcome for each in judged), default=0)
    kept = [each.move for each in judged if each.value.outcome == outcome]
    winning = sum(each.value.outcome > 0 for each in judged)
    for keeping, right in ((False, best), (True, kept)):
        facts = held.facts(board, keeping=keeping)
        assert facts == (held.value(board), len(judged), winning, len(best), right)
    for each in judged:
        assert held.compared(board, each.move) == (next(other.value for other in judged if other.optimal), each.value)
    with pytest.raises(ValueError, match="0000 is no legal move"):
        held.compared(board, chess.Move(0, 0))


@pytest.mark.parametrize("name", ENDGAMES)
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_mirror_images_and_exchanged_colours_have_the_same_value(name, seed):
    (board,) = drawn_boards(name, 1, "images", seed)
    value = solved(name).value(board)
    flips = [chess.flip_horizontal]
    if name != "KPK":
        flips += [chess.flip_vertical, chess.flip_diagonal, chess.flip_anti_diagonal]
    for image in (board.mirror(), *(board.transform(flip) for flip in flips)):
        assert solved(name).value(image) == value


@pytest.mark.parametrize("name", ENDGAMES)
def test_a_numbered_position_is_written_on_the_board_in_all_its_images(name):
    held = solved(name)
    for turn in (STRONG, WEAK):
        for number in np.flatnonzero(held.rows[turn] > 0)[:: len(held.rows[turn]) // 50].tolist():
            boards = [
                held.board(number, turn, image, strong) for image in range(held.images) for strong in chess.COLORS
            ]
            assert len({board.fen() for board in boards}) == 2 * held.images
            assert {held.value(board).plies_to_mate for board in boards} == {int(held.rows[turn, number])}
            assert all(board.is_valid() for board in boards)


def test_known_positions_have_known_values():
    # White mates with Qg7; that is mate; black is stalemated; the king takes the rook; the pawn queens.
    assert value_of(chess.Board("7k/8/5KQ1/8/8/8/8/8 w - - 0 1")) == Value(outcome=1, plies_to_mate=1)
    assert value_of(chess.Board("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1")) == Value(outcome=-1, plies_to_mate=0)
    assert value_of(chess.Board("7k/5Q2/5K2/8/8/8/8/8 b - - 0 1")) == DRAW
    assert value_of(chess.Board("8/8/8/8/8/2k5/1R6/7K b - - 0 1")) == DRAW
    assert value_of(chess.Board("8/7P/8/8/8/k7/8/7K w - - 0 1")).outcome == 1
    # The opposition: whoever is to move loses the key squares.
    assert value_of(chess.Board("4k3/8/4K3/4P3/8/8/8/8 w - - 0 1")).outcome == 1
    assert value_of(chess.Board("8/8/8/4k3/8/4K3/4P3/8 w - - 0 1")) == DRAW
    assert value_of(chess.Board("8/8/8/4k3/8/4K3/4P3/8 b - - 0 1")).outcome == -1


def test_what_cannot_mate_is_drawn_and_other_men_are_refused():
    for fen in ("8/8/8/4k3/8/4K3/8/8 w - - 0 1", "8/8/8/4k3/8/4K3/4N3/8 w - - 0 1", "8/8/4b3/4k3/8/4K3/8/8 w - - 0 1"):
        assert value_of(chess.Board(fen)) == DRAW
        assert table_of(chess.Board(fen)) is None
    with pytest.raises(ValueError, match="is in none of the tables KQK, KRK, KPK, KBNK"):
        value_of(chess.Board())
    with pytest.raises(ValueError, match="does not have the men of KRK"):
        table("KRK").value(chess.Board("8/8/8/4k3/8/4K3/4Q3/8 w - - 0 1"))
    with pytest.raises(ValueError, match="must be one of KQK, KRK, KPK, KBNK, got 'KQKR'"):
        table("KQKR")


@pytest.mark.parametrize(
    ("fen", "reason"),
    [
        ("8/8/8/4k3/4K3/8/4R3/8 w - - 0 1", "the kings touch"),
        ("8/8/8/4k3/8/2K5/4R3/8 w - - 0 1", "is no legal position"),
        ("4k3/8/8/8/8/8/8/R3K3 w Q - 0 1", "castling rights"),
    ],
)
def test_positions_outside_the_table_are_refused_with_a_reason(fen, reason):
    for ask in (table("KRK").value, table("KRK").moves):
        with pytest.raises(ValueError, match=reason):
            ask(chess.Board(fen))


def test_a_table_is_written_once_whole_and_read_again(cache_directory):
    first = table("KPK")
    assert sorted(path.name for path in cache_directory.iterdir()) == [
        f"{name}-1.table" for name in ("KPK", "KQK", "KRK")
    ]
    written = (cache_directory / "KPK-1.table").read_bytes()
    assert len(written) < 263_000  # one byte for each of 2 x 32 x 64 x 64 numbers
    tablebase.forget()
    again = table("KPK")
    assert again is not first
    assert np.array_equal(again.rows, first.rows)
    assert np.array_equal(again.promoted, first.promoted)
    assert not again.rows.flags.writeable


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: content[:1000] + bytes([content[1000] ^ 1]) + content[1001:],
        lambda content: content.replace(b"KRK", b"KQK", 1),
        lambda _: b"something else",
        lambda _: b"",
    ],
)
def test_a_damaged_or_foreign_file_is_solved_and_written_anew(cache_directory, spoil):
    rows = table("KRK").rows
    path = cache_directory / "KRK-1.table"
    good = path.read_bytes()
    path.write_bytes(spoil(good))
    tablebase.forget()
    assert np.array_equal(table("KRK").rows, rows)
    assert path.read_bytes() == good


def test_processes_that_solve_at_once_leave_one_whole_table(cache_directory):
    ask = "from testbeds.chess.tablebase import table; print(table('KRK').longest_mate())"
    others = [subprocess.Popen([sys.executable, "-c", ask], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [other.communicate()[0].strip() for other in others] == ["16", "16"]
    assert [path.name for path in cache_directory.iterdir()] == ["KRK-1.table"]
    assert table("KRK").longest_mate() == 16


def test_a_disk_that_cannot_be_written_leaves_the_table_in_memory(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("STAGECRAFT_CACHE", str(tmp_path / "file" / "tables"))
    tablebase.forget()
    assert table("KQK") is table("KQK")
    assert table("KQK").longest_mate() == 10
    tablebase.forget()


def test_a_disk_that_fills_up_leaves_no_half_file(cache_directory, monkeypatch):
    def full(_path, _target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tablebase.Path, "replace", full)
    assert table("KQK").longest_mate() == 10
    assert list(cache_directory.iterdir()) == []


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("STAGECRAFT_CACHE", str(tmp_path))
    assert tablebase.cache_directory() == tmp_path
    monkeypatch.delenv("STAGECRAFT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert tablebase.cache_directory() == tmp_path / "xdg" / "stagecraft"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert tablebase.cache_directory().parts[-2:] == (".cache", "stagecraft")


@pytest.mark.parametrize("name", ENDGAMES)
@pytest.mark.skipif(not SYZYGY, reason="STAGECRAFT_SYZYGY names no directory of Syzygy tables")
def test_outcomes_are_those_of_the_syzygy_tables(name):
    with chess.syzygy.open_tablebase(SYZYGY) as tables:
        for board in drawn_boards(name, 500, "syzygy"):
            # 2 won, 0 drawn, -2 lost; none of these endgames has wins that the fifty-move rule takes away (+-1).
            assert tables.probe_wdl(board) == 2 * solved(name).value(board).outcome, board.fen()
