"""Moves and positions as text: written one way, read back exactly."""

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbeds.chess.notation import NOTATIONS, has_form, read_line, read_move, symbols, ways, written, written_line
from testbeds.chess.positions import HEADERS, board_of, header_symbols, header_text, images, key_of, placement
from testbeds.lexicon import spaced

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
PROMOTIONS = "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1"
EN_PASSANT = "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 3"
PINNED_EN_PASSANT = "8/8/8/K2pP2r/8/8/8/4k3 w - d6 0 1"  # taking would open the rank: the capture is not legal
FENS = (chess.STARTING_FEN, KIWIPETE, PROMOTIONS, EN_PASSANT, PINNED_EN_PASSANT)


@st.composite
def boards(draw, plies=40):
    """Positions of games that begin at one of FENS."""
    board = chess.Board(draw(st.sampled_from(FENS)))
    for choice in draw(st.lists(st.integers(0, 217), max_size=plies)):
        moves = list(board.legal_moves)
        if not moves:
            break
        board.push(moves[choice % len(moves)])
    return board


def test_moves_stand_as_the_table_says():
    board = chess.Board(KIWIPETE)
    castling, capture = chess.Move.from_uci("e1g1"), chess.Move.from_uci("e5f7")
    assert [written(board, castling, notation) for notation in NOTATIONS] == ["O-O", "e1g1", "e1g1", "O-O"]
    assert [written(board, capture, notation) for notation in NOTATIONS] == ["Ne5xf7", "e5f7", "e5f7", "Nxf7"]
    promotion = chess.Move.from_uci("f2f1q")
    board = chess.Board("8/8/8/8/8/8/1K3p1k/8 b - - 0 1")
    assert written(board, promotion, "long_algebraic") == "Pf2f1=Q"
    mate = chess.Board("7k/5K2/8/8/8/8/8/6R1 w - - 0 1")
    assert written(mate, chess.Move.from_uci("g1h1"), "long_algebraic") == "Rg1h1#"


def test_the_lexicons_have_their_known_sizes():
    assert {notation: len(symbols(notation)) for notation in NOTATIONS} == {
        "long_algebraic": 76,  # with three special tokens 79; arXiv 2607.16097 has about 81
        "uci_squares": 68,
        "uci_moves": 1968,  # 1792 of a queen or a knight, 176 promotions
        "san": 28,
    }
    assert all(len(set(symbols(notation))) == len(symbols(notation)) for notation in NOTATIONS)


@pytest.mark.parametrize("notation", NOTATIONS)
@given(board=boards())
@settings(max_examples=30)
def test_every_way_to_say_a_move_is_read_as_that_move_and_no_other(notation, board):
    said = {}
    for move in board.legal_moves:
        texts = ways(board, move, notation)
        assert texts[0] == written(board, move, notation)
        assert all(has_form(text, notation) for text in texts)
        said |= {text: move for text in texts if said.setdefault(text, move) == move}
        assert {read_move(board, text, notation) for text in texts} == {move}
    if notation == "san":
        assert all(board.parse_san(text) == move for text, move in said.items())


@pytest.mark.parametrize("notation", NOTATIONS)
@given(board=boards(plies=10), choices=st.lists(st.integers(0, 217), min_size=1, max_size=30))
@settings(max_examples=30)
def test_a_line_of_moves_is_read_back_whatever_its_white_space(notation, board, choices):
    moves, end = [], board.copy()
    for choice in choices:
        legal = list(end.legal_moves)
        if legal:
            moves.append(legal[choice % len(legal)])
            end.push(moves[-1])
    text = written_line(board, moves, notation)
    if not moves:
        assert not read_line(board, text, notation, 50).well_formed
        return
    for spread in (text, "".join(text.split()), spaced(text, symbols(notation))):
        line = read_line(board, spread, notation, 50)
        assert line.moves == tuple(moves)
        assert line.well_formed
        assert not line.trouble
    assert len(moves) == 1 or not read_line(board, text, notation, len(moves) - 1).well_formed


def test_a_mark_may_be_missing_but_not_false():
    board = chess.Board("7k/5K2/8/8/8/8/8/6R1 w - - 0 1")
    mate, quiet = chess.Move.from_uci("g1h1"), chess.Move.from_uci("g1g2")
    assert {text: read_move(board, text, "long_algebraic") for text in ("Rg1h1#", "Rg1h1+", "Rg1h1")} == {
        "Rg1h1#": mate,
        "Rg1h1+": mate,
        "Rg1h1": mate,
    }
    assert read_move(board, "Rg1g2", "long_algebraic") == quiet
    assert read_move(board, "Rg1g2+", "long_algebraic") is None
    assert read_move(board, "Rg1xg2", "long_algebraic") is None  # nothing is taken there
    assert read_move(board, "Ng1g2", "long_algebraic") is None  # no knight stands there
    assert read_move(board, "Rg2+", "san") is None


def test_a_move_from_a_square_to_itself_is_read_as_no_move():
    for notation, text in (("long_algebraic", "Pe2e2"), ("uci_squares", "e2e2"), ("uci_moves", "e2e2")):
        line = read_line(chess.Board(), f"{text} {text}", notation, 5)
        assert (line.moves, line.well_formed, line.said) == ((), True, 2)


def test_a_knight_may_say_more_of_its_origin_than_it_must():
    board = chess.Board("7k/8/8/8/8/5N2/8/KN6 w - - 0 1")  # both knights reach d2
    assert set(ways(board, chess.Move.from_uci("b1d2"), "san")) == {"Nbd2", "N1d2", "Nb1d2"}
    assert read_move(board, "Nd2", "san") is None
    assert set(ways(board, chess.Move.from_uci("f3e5"), "san")) == {"Ne5", "Nfe5", "N3e5", "Nf3e5"}


def test_a_pawn_may_name_the_square_it_comes_from():
    board = chess.Board("7k/8/8/2pP4/8/8/4P3/K7 w - c6 0 1")
    assert set(ways(board, chess.Move.from_uci("e2e4"), "san")) == {"e4", "e2e4"}
    assert set(ways(board, chess.Move.from_uci("d5c6"), "san")) == {"dxc6", "d5xc6"}  # en passant
    assert read_move(board, "d5c6", "san") is None  # a capture must say so
    board = chess.Board("7k/4P3/8/8/8/8/8/K7 w - - 0 1")
    assert set(ways(board, chess.Move.from_uci("e7e8n"), "san")) == {"e8=N", "e7e8=N"}
    assert "e7e8=Q#" not in ways(board, chess.Move.from_uci("e7e8q"), "san")


@pytest.mark.parametrize("notation", ["uci_squares", "uci_moves"])
def test_castling_is_the_move_of_the_king_and_never_the_king_that_takes_its_rook(notation):
    board = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")
    for text in ("e1g1", "e1c1"):
        assert read_move(board, text, notation) == chess.Move.from_uci(text)
    for text in ("e1h1", "e1a1"):
        assert read_move(board, text, notation) is None
    line = read_line(board, "e1h1 a8a1", notation, 4)
    assert (line.moves, line.trouble) == ((), "e1h1 is no legal move")


@pytest.mark.parametrize("notation", NOTATIONS)
@given(board=boards())
@settings(max_examples=15)
def test_a_move_is_read_from_its_texts_and_from_no_other(notation, board):
    said = {text: move for move in board.legal_moves for text in ways(board, move, notation)}
    for text in said:
        bare = text.rstrip("+#")
        for other in (text, bare, bare + "+", bare + "#", text.replace("x", ""), bare[:2] + "x" + bare[2:], text[1:]):
            assert read_move(board, other, notation) == said.get(other), (board.fen(), other)


def test_a_promotion_to_a_bishop_is_told_from_a_move_on_the_b_file():
    board = chess.Board("7k/4P3/8/8/8/8/8/K7 w - - 0 1")
    moves = read_line(board, "e7e8b h8h7 a1b1", "uci_squares", 9).moves
    assert [move.uci() for move in moves] == ["e7e8b", "h8h7", "a1b1"]
    board = chess.Board("7k/4p3/8/8/8/8/8/1N5K w - - 0 1")
    assert [move.uci() for move in read_line(board, "b1c3e7e5", "uci_moves", 9).moves] == ["b1c3", "e7e5"]


@pytest.mark.parametrize("notation", NOTATIONS)
@given(text=st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_reason(notation, text):
    line = read_line(chess.Board(), text, notation, 5)
    if line.trouble:
        assert line.trouble.strip()
        return
    assert line.well_formed
    assert 1 <= len(line.moves) <= 5
    assert read_line(chess.Board(), written_line(chess.Board(), line.moves, notation), notation, 5) == line


@pytest.mark.parametrize("header", HEADERS)
@given(board=boards())
@settings(max_examples=40)
def test_a_header_holds_the_whole_position(header, board):
    text = header_text(board, header)
    for spread in (text, "".join(text.split()), spaced(text, header_symbols(header))):
        read = board_of(spread, header)
        assert read.epd(en_passant="legal") == board.epd(en_passant="legal")
        assert set(read.legal_moves) == set(board.legal_moves)


def test_headers_stand_as_documented():
    assert header_text(chess.Board(), "squares").split() == [
        *("rnbqkbnr", "pppppppp", "........", "........", "........", "........", "PPPPPPPP", "RNBQKBNR"),
        *("white", "KQkq", "-"),
    ]
    ending = chess.Board("4k3/8/8/8/8/8/8/3QK3 b - - 0 1")
    assert header_text(ending, "pieces") == "white K e1 Q d1 black K e8 : black"
    assert header_text(chess.Board(EN_PASSANT), "squares").endswith("black KQkq e3")
    assert header_text(chess.Board(PINNED_EN_PASSANT), "pieces") == "white K a5 P e5 black K e1 R h5 P d5 : white"


@pytest.mark.parametrize("header", HEADERS)
def test_what_is_no_position_is_refused_with_one_that_is(header):
    for text in ("", "white", "8/8", header_text(chess.Board(), header) + " Q", "white K e9 black K e8 : white"):
        with pytest.raises(ValueError, match="is no position in the form"):
            board_of(text, header)


@given(board=boards())
@settings(max_examples=60)
def test_images_of_a_position_share_its_key(board):
    key = key_of(board)
    assert key == min(map(plain, images(board)))
    assert placement(board) == board.board_fen()
    assert key_of(board.mirror()) == key
    assert {key_of(image) for image in images(board)} == {key}
    again = board.copy()
    again.halfmove_clock += 5
    assert key_of(again) == key


def plain(board):
    """A position as python-chess writes it, without the side to move and the clocks."""
    pieces, _, castling, passed = board.epd(en_passant="legal").split()
    return f"{pieces} {castling} {passed}"


def test_what_differs_under_the_rules_has_another_key():
    board = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")
    without = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQk - 0 1")
    assert key_of(board) != key_of(without)
    assert key_of(board) != key_of(board.transform(chess.flip_horizontal))  # castling tells left from right
    assert key_of(chess.Board(EN_PASSANT)) != key_of(chess.Board(EN_PASSANT.replace("e3", "-")))
    assert key_of(chess.Board(PINNED_EN_PASSANT)) == key_of(chess.Board(PINNED_EN_PASSANT.replace("d6", "-")))
    pawn = chess.Board("8/8/8/4k3/8/8/P7/K7 w - - 0 1")
    assert key_of(pawn) == key_of(pawn.transform(chess.flip_horizontal))
    assert key_of(pawn) != key_of(pawn.transform(chess.flip_vertical))  # pawns move up
    queen = chess.Board("8/8/8/4k3/8/8/Q7/K7 w - - 0 1")
    assert len({key_of(queen.transform(flip)) for flip in (chess.flip_vertical, chess.flip_diagonal)}) == 1
