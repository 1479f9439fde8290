"""Chess puzzles: find the move that wins, or the whole line. Which answers are right is known exactly.

Texts (white space between symbols is free, and means nothing):

============  ============================================  ======================================================
what          example                                       grammar
============  ============================================  ======================================================
prompt        ``white K c7 Q f7 black K a8 : white >``      a header of positions.py, then ``>``
answer        ``Q f7 b7 #``                                 one move in the task's notation (see notation.py)
answer: line  ``Q a1 a7 + K b8 c8 Q a7 b7 #``               the solver's moves and the replies to them, in turn
.. with work  ``Q f7 f8 + ... | ... # Q f7 b7 #``           ``WORKING "#" ANSWER``: only what follows the last ``#``
                                                            that marks no mate is read
============  ============================================  ======================================================

What is right depends on what the puzzle asks:

* a mate in n moves (the listed line ends in mate, or the position was drawn as such a mate): every first move that
  forces mate in at most n moves, by exhaustive search. In a line every move of the solver must keep the forced mate
  within what is left of n, the replies may be any legal ones, and the last move mates.
* anything else: the listed moves, and any move that mates at once in place of a move of the solver, which ends the
  line. This is Lichess's own rule.

A puzzle of Lichess begins with a move of the opponent; the position asked is the one after it. Puzzles whose right
moves the search could not tell within 2,000,000 positions are passed over and never judged (``undecided``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final, Literal, get_args

import chess
from numpy.random import Generator

from testbeds.chess import lines, notation, positions, rules
from testbeds.chess.boards import board_text, chess_picture
from testbeds.chess.mates import GameMates, MateIn
from testbeds.chess.notation import Notation
from testbeds.chess.positions import Header
from testbeds.chess.puzzle_answers import (
    LONGEST_MATE,
    Asked,
    asked_by,
    judged,
    line_floor,
    mate_length,
    of_mate,
    right_line,
)
from testbeds.chess.puzzle_sources import CorpusPuzzles, PuzzleSource, ShippedPuzzles
from testbeds.chess.puzzles import Puzzle
from testbeds.core import ANSWER_MARK, Choice, Problem, Task, Trace, TraceStyle, Verdict
from testbeds.grid_worlds import check_choice, check_range, malformed, right, wrong

__all__ = ["LEVELS", "TESTBED", "ChessPuzzle", "PuzzleCertificate"]

Answer = Literal["first", "line"]
Source = MateIn | GameMates | ShippedPuzzles | CorpusPuzzles

QUICK_MATE: Final = 3  # moves; the search for a mate in 4 takes half a second where one in 3 takes a hundredth
RATING_BAND: Final = 400  # points: a difference at which the stronger side scores ten elevenths
HIGHEST_RATING: Final = 5_000  # above every rating there is
WALKED: Final = 20_000  # puzzles of a source up to which those that fit are listed once; else draws are blind
BARREN_DRAWS: Final = 100_000  # draws in a row from a large source without a fitting puzzle after which it is refused
_ANSWERS: Final[dict[Answer, lines.Answer]] = {"first": "move", "line": "line"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PuzzleCertificate:
    """What is asked, and the texts of the right first moves."""

    asked: Asked
    texts: tuple[str, ...]
    """Every text of every right first move in the task's notation, without white space."""

    def position_hashes(self) -> tuple[int, ...]:
        """The canonical hashes of the position to solve and of those after each move of the listed line."""
        return tuple(rules.hashes_of_game(self.asked.fen, self.asked.line).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class ChessPuzzle:
    """Chess puzzles, of Lichess or made up: mates in random positions and in games, without end.

    A puzzle is drawn uniformly from those of the source that fit the filters and whose right moves are known; mates are
    drawn as their source says (mates.py). Filters go with puzzles of Lichess: made-up mates have no rating or theme.

    The search for all right moves of a puzzle is made when it is first drawn, and kept: thousandths of a second for a
    mate in 2, hundredths for one in 3, half a second for one in 4. Of the 1,640 puzzles that ship all are decided but
    13, which are mates in 5 or 6.

    The key is the position up to exchanging the colours and mirror images: what ``positions.key_of`` gives, in all
    chess testbeds. So a position is on the same side of a split whatever is asked about it.

    Floor: the number of right first moves over the number of legal ones, blind to everything but the rules. For a line
    that is listed, the chance that moves drawn from the legal ones are it, or mate before; for a mate, the product of
    the shares of right moves of the solver along one line with the best defence, since any reply will do.
    """

    revision: ClassVar[int] = 1
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = (
        "the position up to exchanging colours and mirror images, whatever is asked about it: the same in all chess"
        " testbeds"
    )

    source: Source = MateIn()
    """Where puzzles come from: ``ShippedPuzzles``, ``CorpusPuzzles``, ``MateIn`` or ``GameMates``."""
    answer: Answer = "first"
    """Whether the first move is asked, or the whole line."""
    rating: tuple[int, int] | None = None
    """Lowest and highest rating of a puzzle, both included; None: any."""
    themes: tuple[str, ...] = ()
    """Themes that a puzzle must have, all of them."""
    without: tuple[str, ...] = ()
    """Themes of which a puzzle must have none."""
    mate: tuple[int, int] | None = None
    """Fewest and most moves of the mate that a puzzle must ask for, at most 4; None: any mate, or none."""
    notation: Notation = "long_algebraic"
    """How moves are written."""
    header: Header = "squares"
    """How positions are written."""

    def __post_init__(self) -> None:
        if not isinstance(self.source, (MateIn, GameMates, ShippedPuzzles, CorpusPuzzles)):
            raise ValueError(  # noqa: TRY004  # a bad value, as all others
                f"ChessPuzzle.source must be one of ShippedPuzzles, CorpusPuzzles, MateIn, GameMates, got"
                f" {self.source!r}"
            )
        check_choice("ChessPuzzle.answer", self.answer, get_args(Answer))
        notation.check_notation("ChessPuzzle.notation", self.notation)
        positions.check_header("ChessPuzzle.header", self.header)
        _check_filters(self)

    @property
    def symbols(self) -> tuple[str, ...]:
        header, moves = positions.header_symbols(self.header), notation.symbols(self.notation)
        return tuple(dict.fromkeys((*header, *moves, *lines.TRACE_SYMBOLS)))

    @property
    def instructions(self) -> str:
        return (
            f"This is a chess puzzle. The prompt shows a position, {_HEADERS[self.header]}, and ends with >. The side"
            f" to move has a winning move, such as one that forces mate as soon as possible or wins material."
            f" {_ASKED[self.answer]} {_EXAMPLES[self.notation]} You may work first: then write {ANSWER_MARK} and the"
            f" answer after it."
        )

    @property
    def capacity(self) -> int | None:
        return _capacity(self)

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        if isinstance(self.source, (MateIn, GameMates)):
            return [self._problem(of_mate(mate)) for mate in self.source.draw(rng, count)]
        source = self.source
        places = _fitting(self, source) if source.count <= WALKED else range(source.count)
        return [self._problem(_drawn(self, source, places, rng)) for _ in range(count)]

    def enumerate(self) -> Iterable[Problem] | None:
        return None if _is_endless(self) else (self._problem(asked) for asked in _distinct(self))

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """Candidate moves with what becomes of them, then the answer: see lines.py.

        In a mate the move, or each move of the solver in a line, is drawn from all that are right, and the opponent
        defends as long as possible; else it is the listed one. Wrong candidates are drawn from the other moves.
        """
        own = _certificate(problem).asked
        line = self._answer(own, rng)
        return lines.demonstrate(
            self.board(problem),
            line,
            style,
            rng,
            self.notation,
            correct=[rules.decode(code) for code in own.winning],
            guide=lines.Mates(moves=own.mate) if own.mate else lines.MATERIAL,
            answer=_ANSWERS[self.answer],
        )

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the rules at the top of this file.

        ``progress`` is 1 for a right answer; for a wrong line, the moves of the solver before the first wrong one over
        all the moves that the solver has; else 0.
        """
        certificate = _certificate(problem)
        answer = lines.answer_part(completion)
        if self.answer == "line":
            return self._line_verdict(certificate.asked, answer)
        if answer in certificate.texts:
            return right(f"{answer} is a right move")
        read = notation.read_line(chess.Board(certificate.asked.fen), answer, self.notation, 1)
        if not read.well_formed:
            return malformed(read.trouble)
        mate = certificate.asked.mate
        fault = f"does not force mate in {mate}" if mate else "is not the move that the puzzle lists, nor mate at once"
        return wrong(read.trouble or f"{answer} {fault}", 0.0)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """None: working may precede an answer; see ``answers``."""
        return None

    def answers(self, problem: Problem) -> Iterator[str] | None:
        """Every bare answer that is right, without white space; None for lines, which may be too many."""
        return None if self.answer == "line" else iter(_certificate(problem).texts)

    def floor(self, problem: Problem) -> float:
        own = _certificate(problem).asked
        if self.answer == "line":
            return line_floor(own)
        return problem.features["winning_moves"] / problem.features["legal_moves"]

    def board(self, problem: Problem) -> chess.Board:
        """The position to solve."""
        return chess.Board(_certificate(problem).asked.fen)

    def drawing(self, problem: Problem) -> str:
        """The position as a board of letters with the names of ranks and files."""
        return board_text(self.board(problem))

    def picture(self, problem: Problem, probabilities: Sequence[tuple[Choice, float]]) -> str | None:
        """The board with the likeliest moves as arrows."""
        return chess_picture(self, problem, probabilities)

    def choices(self, problem: Problem) -> tuple[Choice, ...]:
        """Every legal move, those that are right of the kind ``correct``; none where a whole line is asked."""
        if self.answer == "line":
            return ()
        board, winning = self.board(problem), _certificate(problem).asked.winning
        return tuple(
            [
                Choice(
                    text=notation.written(board, move, self.notation),
                    kinds=("correct",) if rules.encode(move) in winning else (),
                    arrow=(chess.SQUARE_NAMES[move.from_square], chess.SQUARE_NAMES[move.to_square]),
                )
                for move in board.legal_moves
            ]
        )

    def shown(self, problem: Problem) -> tuple[int, ...]:
        """The hashes of the position asked and, where a line is asked, of those of the listed line.

        A mate that is made up lists none: the lines that its demonstrations draw are not among them.
        """
        hashes = _certificate(problem).position_hashes()
        return hashes if self.answer == "line" else hashes[:1]

    def asked(self, problem: Problem) -> tuple[int, ...]:
        """The hash of the position to solve: what no training may have shown."""
        return (rules.position_hash(self.board(problem)),)

    def undecided(self) -> Counter[str]:
        """How many puzzles that fit the filters are passed over, by the reason; all of the source are looked at."""
        if isinstance(self.source, (MateIn, GameMates)):
            return Counter()
        source = self.source
        found = [asked_by(source.puzzle(place)) for place in range(source.count) if _fits(self, source.puzzle(place))]
        return Counter(each for each in found if isinstance(each, str))

    def _answer(self, own: Asked, rng: Generator) -> tuple[chess.Move, ...]:
        """A right line, or as much of it as is known where the first move is asked."""
        if self.answer == "line":
            return right_line(own, rng)
        if not own.mate:
            return tuple(map(rules.decode, own.line))
        first = own.winning[int(rng.integers(len(own.winning)))]
        known = own.line if own.line and own.line[0] == first else (first,)
        return tuple(map(rules.decode, known))

    def _line_verdict(self, own: Asked, answer: str) -> Verdict:
        most = 2 * own.mate - 1 if own.mate else len(own.line)
        read = notation.read_line(chess.Board(own.fen), answer, self.notation, most)
        if not read.well_formed:
            return malformed(read.trouble)
        found = judged(own, read.moves, read.trouble)
        if found.trouble:
            return wrong(found.trouble, min(found.right, own.solver_moves - 1) / own.solver_moves)
        return right(f"a right line of {len(read.moves)} moves")

    def _problem(self, asked: Asked) -> Problem:
        board = chess.Board(asked.fen)
        winning = [rules.decode(code) for code in asked.winning]
        texts = tuple([text for move in winning for text in notation.ways(board, move, self.notation)])
        return Problem(
            prompt=f"{positions.header_text(board, self.header)} {positions.START}",
            key=positions.key_of(board),
            certificate=PuzzleCertificate(asked=asked, texts=texts),
            features={
                "rating": asked.rating,
                "rating_band": asked.rating // RATING_BAND * RATING_BAND,
                "legal_moves": board.legal_moves.count(),
                "winning_moves": len(winning),
                "pieces": board.occupied.bit_count(),
                "mate_distance": asked.mate,
                "solver_moves": asked.solver_moves,
            },
        )


def _certificate(problem: Problem) -> PuzzleCertificate:
    if not isinstance(problem.certificate, PuzzleCertificate):
        raise TypeError(
            f"ChessPuzzle reads problems with a PuzzleCertificate, got {type(problem.certificate).__name__}; ask the"
            f" task that made the problem"
        )
    return problem.certificate


_HEADERS: Final[dict[Header, str]] = {
    "squares": (
        "square by square from a8 to h1 with . for an empty square and capital letters for white, then the side to"
        " move, four places for castling rights and one for an en passant square"
    ),
    "pieces": "as the pieces of white and of black with their squares, then a colon and the side to move",
}
_ASKED: Final[dict[Answer, str]] = {
    "first": "Answer with the first move of it alone, such as",
    "line": (
        "Answer with the whole line: your moves and the opponent's best replies to them in turn, ending with a move of"
        " yours. A move is written such as"
    ),
}
_EXAMPLES: Final[dict[Notation, str]] = {
    "long_algebraic": (
        "Q h7 x a7 #: piece, square from, x for a capture, square to, = and a piece for a promotion, then + for check"
        " or # for mate."
    ),
    "uci_squares": "h7 a7: square from and square to, then a letter for a promotion.",
    "uci_moves": "h7a7: squares from and to together, then a letter for a promotion.",
    "san": "Q x a 7 #: standard algebraic notation; a ; stands between two moves.",
}


# ---------------------------------------------------------------------------------------------------- choosing puzzles


def _is_endless(task: ChessPuzzle) -> bool:
    """Whether the puzzles are too many to walk."""
    return isinstance(task.source, (MateIn, GameMates)) or task.source.count > WALKED


def _fits(task: ChessPuzzle, puzzle: Puzzle) -> bool:
    """Whether a puzzle passes the filters."""
    if task.rating is not None and not task.rating[0] <= puzzle.rating <= task.rating[1]:
        return False
    if not set(task.themes) <= set(puzzle.themes) or set(task.without) & set(puzzle.themes):
        return False
    return task.mate is None or task.mate[0] <= mate_length(puzzle) <= task.mate[1]


@lru_cache(maxsize=64)
def _fitting(task: ChessPuzzle, source: PuzzleSource) -> tuple[int, ...]:
    """The places of the puzzles of a small source that pass the filters."""
    found = tuple([place for place in range(source.count) if _fits(task, source.puzzle(place))])
    if not found:
        raise ValueError(_too_few(task, source, source.count))
    return found


def _distinct(task: ChessPuzzle) -> Iterator[Asked]:
    """What the puzzles of a small source ask, the first of each key, in order."""
    seen: set[str] = set()
    if isinstance(task.source, (MateIn, GameMates)):
        return
    for place in _fitting(task, task.source):
        asked = asked_by(task.source.puzzle(place))
        if isinstance(asked, Asked):
            key = positions.key_of(chess.Board(asked.fen))
            if key not in seen:
                seen.add(key)
                yield asked


@lru_cache(maxsize=64)
def _capacity(task: ChessPuzzle) -> int | None:
    """The number of keys; None where they have no end, or where counting them takes long searches."""
    if isinstance(task.source, (MateIn, GameMates)) or task.source.count > WALKED:
        return None
    lengths = [mate_length(task.source.puzzle(place)) for place in _fitting(task, task.source)]
    return None if any(QUICK_MATE < length <= LONGEST_MATE for length in lengths) else sum(1 for _ in _distinct(task))


def _drawn(task: ChessPuzzle, source: PuzzleSource, places: tuple[int, ...] | range, rng: Generator) -> Asked:
    """What a puzzle asks that is drawn from those at the places until one fits and is decided."""
    for _ in range(BARREN_DRAWS):
        puzzle = source.puzzle(places[int(rng.integers(len(places)))])
        if _fits(task, puzzle):
            asked = asked_by(puzzle)
            if isinstance(asked, Asked):
                return asked
    raise ValueError(_too_few(task, source, BARREN_DRAWS))


def _too_few(task: ChessPuzzle, source: PuzzleSource, looked_at: int) -> str:
    return (
        f"none of {looked_at} puzzles ({source.describe()}) fits rating={task.rating}, themes={task.themes},"
        f" without={task.without} and mate={task.mate} and has right moves that are known; ask for less"
    )


# ---------------------------------------------------------------------------------------------------------- validation


def _check_themes(name: str, themes: object) -> None:
    if not isinstance(themes, tuple) or not all(isinstance(theme, str) and theme for theme in themes):
        raise ValueError(f"ChessPuzzle.{name} must be a tuple of themes such as ('fork',), got {themes!r}")


def _check_filters(task: ChessPuzzle) -> None:
    if task.rating is not None:
        check_range("ChessPuzzle.rating", task.rating, 0, HIGHEST_RATING)
    if task.mate is not None:
        check_range("ChessPuzzle.mate", task.mate, 1, LONGEST_MATE)
    _check_themes("themes", task.themes)
    _check_themes("without", task.without)
    set_here = [name for name in ("rating", "themes", "without", "mate") if getattr(task, name)]
    if set_here and isinstance(task.source, (MateIn, GameMates)):
        raise ValueError(
            f"ChessPuzzle.{set_here[0]} chooses among puzzles of Lichess, and source={type(task.source).__name__} makes"
            f" its own; set its fields instead"
        )


LEVELS: Final[dict[str, Task]] = {  # without mates in 4, whose searches take minutes together
    "mate1": ChessPuzzle(header="pieces"),
    "mate2": ChessPuzzle(source=MateIn(moves=2, pieces=("KRRK", "KQRK", "KQBNK")), header="pieces"),
    "shipped": ChessPuzzle(source=ShippedPuzzles(), without=("mateIn4",)),
    "shipped_mates": ChessPuzzle(source=ShippedPuzzles(), mate=(1, QUICK_MATE)),
    "lines": ChessPuzzle(source=ShippedPuzzles(), answer="line", without=("mateIn4",)),
}
TESTBED: Final[type[Task]] = ChessPuzzle
