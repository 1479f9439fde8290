"""Puzzle files: what is read, what is skipped and why, and what is refused."""

from collections import Counter
from io import BytesIO

import chess
import pytest
import zstandard

from testbeds.chess import pgn_files
from testbeds.chess.puzzle_sources import SHIPPED
from testbeds.chess.puzzles import Puzzle, read_puzzles

HEADER = "PuzzleId,FEN,Moves,Rating,RatingDeviation,Popularity,NbPlays,Themes,GameUrl,OpeningTags"
FEN = "2kr1b1r/p1p2pp1/2pqb3/7p/3N2n1/2NPB3/PPP2PPP/R2Q1RK1 w - - 2 13"
GOOD = f"000rZ,{FEN},d4e6 d6h2,662,,,,kingsideAttack mateIn1,https://lichess.org/seIMDWkD#25,"
READ = Puzzle(id="000rZ", fen=FEN, moves=("d4e6", "d6h2"), rating=662, themes=("kingsideAttack", "mateIn1"))


def line(fen=FEN, moves="d4e6 d6h2", rating="662", themes="mateIn1"):
    return f"x,{fen},{moves},{rating},,,,{themes},,"


def read(*lines, raw=None):
    skipped = Counter()
    text = "\n".join((HEADER, *lines)).encode() if raw is None else raw
    return list(read_puzzles(BytesIO(text), skipped)), skipped


def test_a_line_is_read_into_its_fields():
    assert read(GOOD) == ([READ], Counter())


def test_fields_may_be_quoted_and_lines_end_as_on_any_system():
    quoted = ",".join(f'"{field}"' for field in GOOD.split(","))
    assert read(f"{quoted}\r", f"{GOOD}\r", "") == ([READ, READ], Counter())


def test_a_quoted_field_may_hold_a_comma():
    puzzles, skipped = read(GOOD.replace("https://lichess.org/seIMDWkD#25", '"a,b"'))
    assert puzzles == [READ]
    assert not skipped


def test_columns_are_found_by_their_names():
    puzzles, _ = read(raw=f"Rating,Moves,PuzzleId,FEN\n662,d4e6 d6h2,000rZ,{FEN}".encode())
    assert puzzles == [Puzzle(id="000rZ", fen=FEN, moves=READ.moves, rating=662, themes=())]


CASTLE = "r3k3/8/8/8/8/8/8/4K2R b K - 0 1"  # Black moves first, then White castles


def test_castling_may_be_written_as_the_king_taking_its_rook():
    both = [read(line(CASTLE, f"a8a7 {castles}", themes=""))[0][0].moves for castles in ("e1g1", "e1h1")]
    assert both == [("a8a7", "e1g1")] * 2


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("x,y,z", "wrong number of fields"),
        (f"{GOOD},more", "wrong number of fields"),
        (f'"{GOOD}', "wrong number of fields"),
        ("x" * 70_000, "wrong number of fields"),
        (line(rating="12a"), "bad rating"),
        (line(rating=""), "bad rating"),
        (line(rating="-5"), "bad rating"),
        (line(rating="1²"), "bad rating"),
        (line(fen="not a position"), "bad position"),
        (line(fen="8/8/8/8/8/8/8/8 w - - 0 1"), "bad position"),  # without kings
        (line(fen="4k3/4R3/8/8/8/8/8/4K3 w - - 0 1"), "bad position"),  # White could take the king
        (line(moves="d4e6 h2"), "bad move"),
        (line(moves="d4e6 d6h9"), "bad move"),
        (line(moves="d4e6 d6a1"), "illegal move"),
        (line(moves="d4d5 d6h2"), "illegal move"),
        (line(moves="0000 d6h2"), "illegal move"),
        (line(moves="d4e6"), "no solver move"),
        (line(moves=""), "no solver move"),
        (line(moves="d4e6 d6e6 f1e1"), "ends with the opponent's move"),
        (line(moves="d4e6 d6e6"), "mate theme without that mate"),
        (line(themes="mateIn2"), "mate theme without that mate"),
        (line(themes="mateIn5"), "mate theme without that mate"),
        (line(moves="d4e6 d6e6", themes="mate"), "mate theme without that mate"),
    ],
)
def test_a_bad_line_is_skipped_and_counted_by_its_reason(bad, reason):
    puzzles, skipped = read(GOOD, bad, GOOD)
    assert puzzles == [READ, READ]
    assert skipped == Counter({reason: 1})


def test_a_line_that_is_no_text_is_skipped():
    raw = f"{HEADER}\n".encode() + b"\xff\xfe,,,\n" + GOOD.encode()
    assert read(raw=raw) == ([READ], Counter({"not UTF-8 text": 1}))


@pytest.mark.parametrize("raw", [b"", b'[Event "a"]\n\n1. e4 e5', b"\x00" * 100, f"{GOOD}\n{GOOD}".encode()])
def test_a_file_without_the_columns_is_no_puzzle_file(raw):
    with pytest.raises(ValueError, match=r"is no puzzle file: its first line names no column PuzzleId"):
        read(raw=raw)


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="puzzles.csv"):
        list(read_puzzles(tmp_path / "puzzles.csv", Counter()))


def test_a_compressed_file_is_read_by_its_content_whatever_its_name(tmp_path):
    text = "\n".join((HEADER, *[GOOD] * 3)).encode()
    path = tmp_path / "puzzles.csv"
    path.write_bytes(zstandard.compress(text))
    assert list(read_puzzles(path, Counter())) == [READ] * 3


def test_a_compressed_file_that_breaks_off_is_read_up_to_there_and_the_break_is_counted():
    # Random ratings do not compress away, so that half of the file holds many lines.
    lines = [line(rating=str(number * 7919 % 3000)) for number in range(20_000)]
    whole = zstandard.compress("\n".join((HEADER, *lines)).encode())
    puzzles = read_puzzles(BytesIO(whole[: len(whole) // 2]), skipped := Counter())
    first = [next(puzzles) for _ in range(100)]
    assert [puzzle.rating for puzzle in first] == [number * 7919 % 3000 for number in range(100)]
    assert not skipped


def test_the_break_itself_is_counted_once():
    text = "\n".join((HEADER, *[GOOD] * 200)).encode()
    frames = zstandard.compress(text) + zstandard.compress(f"\n{GOOD}\n".encode())[:-4]
    puzzles, skipped = read(raw=frames)
    assert len(puzzles) >= 200 - 1  # the last line before the break may be half of one
    assert skipped == Counter({pgn_files.TRUNCATED: 1})


def test_every_shipped_puzzle_is_read_and_is_legal_by_python_chess():
    skipped = Counter()
    puzzles = list(read_puzzles(SHIPPED, skipped))
    assert len(puzzles) == 1640  # lines of the file after the header
    assert not skipped
    for puzzle in puzzles[::10]:
        board = chess.Board(puzzle.fen)
        for text in puzzle.moves:
            board.push_uci(text)  # refuses illegal moves
        if any(theme.startswith("mateIn") for theme in puzzle.themes):
            assert board.is_checkmate()
