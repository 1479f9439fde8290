"""Mates in random positions and in games: exact, uniform, and the same for the same stream."""

from collections import Counter

import chess
import pytest

from testbeds import fingerprint, stream
from testbeds.chess import rules
from testbeds.chess.mates import KNOWN, PILOT_HITS, GameMates, MateIn, _pilot, mates_in
from testbeds.chess.sources import SelfPlay


def forced(board, moves):
    """First moves that force mate in at most so many moves, by python-chess and nothing else."""
    found = set()
    for move in list(board.legal_moves):
        board.push(move)
        if board.is_checkmate() or (moves > 1 and not board.is_stalemate() and no_escape(board, moves - 1)):
            found.add(rules.encode(move))
        board.pop()
    return found


def no_escape(board, moves):
    for reply in list(board.legal_moves):
        board.push(reply)
        mated = bool(forced(board, moves))
        board.pop()
        if not mated:
            return False
    return not board.is_checkmate()


@pytest.mark.parametrize(
    ("moves", "pieces", "count"), [(1, "KQRK", 60), (1, "KQKPP", 60), (2, "KRRK", 8), (2, "KQKP", 2)]
)
def test_winning_moves_are_those_that_python_chess_finds_and_no_mate_is_quicker(moves, pieces, count):
    for mate in MateIn(moves=moves, pieces=(pieces,)).draw(stream("exact", pieces, moves), count):
        board = chess.Board(mate.fen)
        assert set(mate.winning) == forced(board, moves)
        assert mate.winning == tuple(sorted(mate.winning)) != ()
        assert not any(forced(board, fewer) for fewer in range(1, moves))


def test_a_mate_in_three_is_none_in_two():
    (mate,) = MateIn(moves=3, pieces=("KRRK",)).draw(stream("three"), 1)
    state = rules.state_of(chess.Board(mate.fen))
    assert mate.winning == mates_in(state, 3)
    assert not rules.mating_moves(chess.Board(mate.fen), 2)


def test_mates_at_once_are_found_by_hand():
    # The white king on c7 keeps the king on a8 from b7 and b8. So the queen mates from the a-file (a1, a2, a3), where
    # she attacks a7 as well, and next to the king where her own king protects her: on b7 and on b8.
    board = chess.Board("k7/2K5/8/8/8/8/1Q6/8 w - - 0 1")
    assert set(mates_in(rules.state_of(board), 1)) == forced(board, 1)
    goals = {chess.square_name(code >> 6 & 63) for code in mates_in(rules.state_of(board), 1)}
    assert goals == {"a1", "a2", "a3", "b7", "b8"}


@pytest.mark.parametrize("source", [MateIn(), MateIn(moves=2, pieces=("KRRK",)), GameMates(games=SelfPlay())])
def test_positions_are_legal_and_have_the_pieces_asked(source):
    for mate in source.draw(stream("legal"), 12):
        board = chess.Board(mate.fen)
        assert board.is_valid() or board.status() == chess.STATUS_IMPOSSIBLE_CHECK  # more than a game could give
        assert mate.moves == source.moves
        assert mate.fen.split()[0] == board.board_fen()


def test_pieces_belong_to_the_side_to_move_and_sets_are_drawn_evenly():
    sets = Counter()
    for mate in MateIn(pieces=("KQKP", "KRRK")).draw(stream("sets"), 400):
        board = chess.Board(mate.fen)
        own = "".join(
            sorted(chess.piece_symbol(p.piece_type) for p in board.piece_map().values() if p.color == board.turn)
        )
        sets[own] += 1
    assert set(sets) == {"kq", "krr"}
    assert 140 < sets["kq"] < 260  # 200 expected, standard deviation 10


def test_colours_and_mirror_images_are_alike():
    # Every symmetry of the draw must hold: of 600 positions half have Black to move, in half the king stands left.
    boards = [chess.Board(mate.fen) for mate in MateIn(pieces=("KRRK",)).draw(stream("uniform"), 600)]
    black = sum(board.turn == chess.BLACK for board in boards)
    left = sum(chess.square_file(board.king(chess.WHITE)) < 4 for board in boards)
    assert 240 < black < 360  # standard deviation 12.2
    assert 240 < left < 360


def test_the_number_of_winning_moves_can_be_asked_for():
    for mate in MateIn(winning=1, pieces=("KRRK",)).draw(stream("unique"), 20):
        assert len(mate.winning) == 1
    for mate in MateIn(winning=2, pieces=("KQK",)).draw(stream("two"), 5):
        assert len(mate.winning) == 2


def test_the_same_stream_gives_the_same_mates_and_others_give_others():
    source = MateIn()
    assert source.draw(stream("a"), 20) == source.draw(stream("a"), 20)
    assert source.draw(stream("a"), 20) != source.draw(stream("b"), 20)


def test_mates_in_games_are_exact():
    for mate in GameMates(games=SelfPlay(policy="random")).draw(stream("games"), 5):
        assert set(mate.winning) == forced(chess.Board(mate.fen), 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"moves": 4}, "MateIn.moves must be a whole number from 1 to 3, got 4"),
        ({"moves": True}, "MateIn.moves must be a whole number"),
        ({"winning": 0}, "MateIn.winning must be None or a whole number of at least 1, got 0"),
        ({"pieces": ()}, "MateIn.pieces must be a tuple of sets"),
        ({"pieces": "KQK"}, "MateIn.pieces must be a tuple of sets"),
        ({"pieces": ("KQ",)}, "each with its king first"),
        ({"pieces": ("KQQQQRRRK",)}, "3 to 8 in all"),
        ({"pieces": ("KNK",)}, "0 of 65536 random placements of KNK are mates in exactly 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        MateIn(**fields)


def test_the_sets_that_need_no_pilot_would_pass_it():
    assert all(_pilot(pieces, moves, None) >= PILOT_HITS for pieces in KNOWN for moves in (1, 2))


def test_a_source_of_games_is_needed():
    with pytest.raises(ValueError, match="must be a source of games such as SelfPlay"):
        GameMates(games="games")


def test_sources_are_values():
    assert MateIn() == MateIn()
    assert hash(MateIn(moves=2)) == hash(MateIn(moves=2))
    assert fingerprint(MateIn()) != fingerprint(MateIn(winning=1))
    assert "mates in 1" in MateIn().describe()
    assert "self-play" in GameMates(games=SelfPlay()).describe()
