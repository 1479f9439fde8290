"""Exact endgames of chess: find a move in a position whose value, and that of every move, is known.

Texts (white space between symbols is free, and means nothing):

============  ============================================  ======================================================
what          example                                       grammar
============  ============================================  ======================================================
prompt        ``white K b3 Q h7 black K a1 : white >``      a header of positions.py, then ``>``
answer        ``Q h7 h1 #``                                 one move in the task's notation (see notation.py)
.. with work  ``Q h7 h2 K a1 b1 [win] | ... # Q h7 h1 #``   ``WORKING "#" MOVE``: only what follows the last ``#``
                                                            that marks no mate is read
============  ============================================  ======================================================

Values are those of tablebase.py: with best play and without the fifty-move rule. With ``goal="optimal"`` a move is
right if no other is better: it mates soonest, or keeps the draw, or puts the mate off longest. With ``goal="win"`` it
is right if it keeps the outcome: a won position stays won, a drawn one drawn.

Positions in which every legal move is right ask nothing and are left out. What is left, by the outcome for the side
to move (one for each number of the table, see tablebase_kernels.py; ``all`` counts those that are left out, too):

======  ===========================  =================  =================
table   won: optimal / win / all     drawn: left / all  lost: left / all
======  ===========================  =================  =================
KQK     36,127 / 27,870 / 36,127     4,939 / 5,762      40,105 / 50,224
KRK     43,792 / 18,288 / 43,792     5,441 / 5,561      46,523 / 50,425
KPK     62,197 / 30,523 / 62,480     23,028 / 54,394    24,276 / 48,802
KBNK    2,705,543 / 1,806,991 /      610,151 /          2,298,871 /
        2,705,546                    631,434            2,797,042
======  ===========================  =================  =================

In a drawn position with a choice the lone king is to move, since the other side cannot lose; in a lost one, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final, Literal, get_args

import chess
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from testbeds.chess import lines, notation, positions, rules, tablebase_kernels
from testbeds.chess.boards import board_text, chess_picture
from testbeds.chess.notation import Notation
from testbeds.chess.positions import Header
from testbeds.chess.tablebase import ENDGAMES, Endgame, Judged, Table, Value, table, table_of, value_of
from testbeds.chess.tablebase_kernels import DRAWN, STRONG, WEAK
from testbeds.core import ANSWER_MARK, Choice, Problem, Task, Trace, TraceStyle, Verdict
from testbeds.grid_worlds import check_choice, check_range, malformed, right, wrong
from testbeds.streams import stream

Goal = Literal["optimal", "win"]
Outcome = Literal["won", "drawn", "lost"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)

LONGEST: Final[dict[Endgame, int]] = {"KQK": 10, "KRK": 16, "KPK": 28, "KBNK": 33}
"""Moves of the longest mate, in won positions and in lost ones."""
FIRST_LOST: Final[dict[Endgame, int]] = {"KQK": 2, "KRK": 2, "KPK": 2, "KBNK": 4}
"""Moves of the shortest mate in lost positions where it can be put off or hastened."""

_WORDS: Final = {1: "winning", 0: "drawing", -1: "losing"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChessEndgameCertificate:
    """The position, and what is accepted."""

    fen: str
    accepted: tuple[str, ...]
    """Every text of every right move, without white space."""

    def position_hashes(self) -> tuple[int, ...]:
        """The canonical hash of the position to solve."""
        return (rules.position_hash(chess.Board(self.fen)),)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChessEndgame:
    """Endgames with a king and a queen, a rook, a pawn, or a bishop and a knight against a king.

    A problem is uniform over the positions that fit ``outcomes`` and ``distance``, with either colour as the strong
    side, and in which some legal move is wrong. The value of every legal move is known, so the probability that a
    policy puts on optimal, winning, drawing and losing moves is exact (``choices``).

    The key is the position up to exchanging the colours and mirror images, eight without pawns: what
    ``positions.key_of`` gives, in all chess testbeds. So a position is on the same side of a split whatever is asked
    about it.

    Floor: the number of right moves over the number of legal ones, blind to everything but the rules.

    The level ``bishop_knight`` solves its table in about five seconds at first use, and then reads it from disk; the
    others take less than a second.
    """

    revision: ClassVar[int] = 1
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = (
        "the position up to exchanging colours and mirror images, whatever is asked about it: the same in all chess"
        " testbeds"
    )

    pieces: Endgame = "KQK"
    """Men of the strong side, then the king of the weak one."""
    goal: Goal = "optimal"
    """Whether a right move is one of the best, or any that keeps the outcome."""
    outcomes: tuple[Outcome, ...] = ("won",)
    """Which positions are posed, by what is in them for the side to move: some of won, drawn, lost, in this order."""
    distance: tuple[int, int] | None = None
    """Fewest and most moves to mate, both included, in won and lost positions; None: any."""
    notation: Notation = "long_algebraic"
    """How moves are written."""
    header: Header = "pieces"
    """How positions are written."""

    def __post_init__(self) -> None:
        check_choice("ChessEndgame.pieces", self.pieces, ENDGAMES)
        check_choice("ChessEndgame.goal", self.goal, get_args(Goal))
        notation.check_notation("ChessEndgame.notation", self.notation)
        positions.check_header("ChessEndgame.header", self.header)
        _check_outcomes(self)
        _check_distance(self)

    @property
    def symbols(self) -> tuple[str, ...]:
        header, moves = positions.header_symbols(self.header), notation.symbols(self.notation)
        return tuple(dict.fromkeys((*header, *moves, *lines.TRACE_SYMBOLS)))

    @property
    def instructions(self) -> str:
        best = (
            "a best move: one that mates as soon as possible, keeps a draw where there is no win, or puts off a mate"
            " that cannot be avoided as long as possible"
        )
        keeping = "a move after which a won position is still won, or a drawn one still drawn"
        example = {
            "long_algebraic": "Q h7 h1 #: piece, square from, square to, then + for check or # for mate",
            "uci_squares": "h7 h1: square from and square to, then a letter for a promotion",
            "uci_moves": "h7h1: squares from and to together, then a letter for a promotion",
            "san": "Q h 1 #: standard algebraic notation",
        }[self.notation]
        return (
            f"The prompt shows an endgame of chess, {_header_note(self.header)}, and ends with >. Both sides play as"
            f" well as possible, and the fifty-move rule does not count. Find"
            f" {best if self.goal == 'optimal' else keeping}."
            f" Answer with one legal move of the side to move, such as {example}. You may work first: then write"
            f" {ANSWER_MARK} and the move after it."
        )

    @property
    def capacity(self) -> int | None:
        return _pool(self.pieces, self.goal, self.outcomes, self.distance).keys

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        pool = _pool(self.pieces, self.goal, self.outcomes, self.distance)
        solved = table(self.pieces)
        places = rng.integers(len(pool.numbers), size=count)
        images = rng.integers(2 * solved.images, size=count).tolist()
        chosen = zip(pool.numbers[places].tolist(), pool.turns[places].tolist(), images, strict=True)
        return [self._problem(solved, *each) for each in chosen]

    def enumerate(self) -> Iterable[Problem] | None:
        return self._walk()

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """Candidate moves with a reply and the outcome that the table gives, then a best move: see lines.py.

        The move is drawn from all the best ones, with ``goal="win"``, too. Wrong candidates are drawn from all moves
        that are not right; both sides go on with best moves, the first in the order of squares.
        """
        board, judged = self._judged(problem)
        best = [each.move for each in judged if each.optimal]
        chosen = best[int(rng.integers(len(best)))]
        correct = self._right_moves(judged)
        return lines.demonstrate(board, [chosen], style, rng, self.notation, correct=correct, guide=_TABLES)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict; progress is 1/2 for a move that keeps the outcome where only a best one is right."""
        own = _certificate(problem)
        answer = lines.answer_part(completion)
        if answer in own.accepted:
            return right(f"{answer} is a move that is asked for")
        if not notation.has_form(answer, self.notation):
            return malformed(f"{_short(answer)} is not one move in {self.notation.replace('_', ' ')}")
        board = self.board(problem)
        move = notation.read_move(board, answer, self.notation)
        if move is None:
            return wrong(f"{answer} is no legal move", 0.0)
        return _fault(answer, *table(self.pieces).compared(board, move))

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """None: working may precede an answer; see ``answers``."""
        return None

    def answers(self, problem: Problem) -> Iterator[str]:
        """Every bare answer that is right, without white space."""
        return iter(_certificate(problem).accepted)

    def floor(self, problem: Problem) -> float:
        facts = problem.features
        keeping = self.goal == "win" and facts["winning_moves"] > 0
        return facts["winning_moves" if keeping else "optimal_moves"] / facts["legal_moves"]

    def board(self, problem: Problem) -> chess.Board:
        """The position to solve."""
        return chess.Board(_certificate(problem).fen)

    def drawing(self, problem: Problem) -> str:
        """The position as a board of letters with the names of ranks and files."""
        return board_text(self.board(problem))

    def picture(self, problem: Problem, probabilities: Sequence[tuple[Choice, float]]) -> str | None:
        """The board with the likeliest moves as arrows."""
        return chess_picture(self, problem, probabilities)

    def choices(self, problem: Problem) -> tuple[Choice, ...]:
        """Every legal move; its kinds are ``winning``, ``drawing`` or ``losing``, and ``optimal`` and ``correct``."""
        board, judged = self._judged(problem)
        correct = self._right_moves(judged)
        return tuple(
            [
                Choice(
                    text=notation.written(board, each.move, self.notation),
                    kinds=(
                        *(("correct",) if each.move in correct else ()),
                        *(("optimal",) if each.optimal else ()),
                        _WORDS[each.value.outcome],
                    ),
                    arrow=(chess.SQUARE_NAMES[each.move.from_square], chess.SQUARE_NAMES[each.move.to_square]),
                )
                for each in judged
            ]
        )

    def shown(self, problem: Problem) -> tuple[int, ...]:
        """The hash of the position to solve: what training on the problem shows."""
        return _certificate(problem).position_hashes()

    def asked(self, problem: Problem) -> tuple[int, ...]:
        """The hash of the position to solve: what no training may have shown."""
        return _certificate(problem).position_hashes()

    def _judged(self, problem: Problem) -> tuple[chess.Board, list[Judged]]:
        board = self.board(problem)
        return board, table(self.pieces).moves(board)

    def _right_moves(self, judged: list[Judged]) -> list[chess.Move]:
        """The moves that are accepted: a position keeps its outcome if its best moves do."""
        if self.goal == "optimal":
            return [each.move for each in judged if each.optimal]
        outcome = max(each.value.outcome for each in judged)
        return [each.move for each in judged if each.value.outcome == outcome]

    def _walk(self) -> Iterator[Problem]:
        pool = _pool(self.pieces, self.goal, self.outcomes, self.distance)
        solved = table(self.pieces)
        first = pool.first
        for number, turn in zip(pool.numbers[first].tolist(), pool.turns[first].tolist(), strict=True):
            # An image of its own, as drawn problems have: those of the table alone would be another distribution.
            image = stream("chess endgame image", self.pieces, turn, number).integers(2 * solved.images)
            yield self._problem(solved, number, turn, int(image))

    def _problem(self, solved: Table, number: int, turn: int, image: int) -> Problem:
        board = solved.board(number, turn, image >> 1, bool(image & 1))
        facts = solved.facts(board, keeping=self.goal == "win")
        accepted = [text for move in facts.right for text in notation.ways(board, move, self.notation)]
        fen = f"{positions.placement(board)} {'w' if board.turn == chess.WHITE else 'b'} - - 0 1"
        return Problem(
            prompt=f"{positions.header_text(board, self.header)} {positions.START}",
            key=positions.key_of(board),
            certificate=ChessEndgameCertificate(fen=fen, accepted=tuple(accepted)),
            features={
                "legal_moves": facts.legal,
                "winning_moves": facts.winning,
                "optimal_moves": facts.optimal,
                "pieces": len(self.pieces),
                "mate_distance": _moves(facts.value.plies_to_mate),
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLines:
    """Candidate lines as the tables play them, with exact outcomes (a ``Guide`` of lines.py)."""

    revision: ClassVar[int] = 1

    def reply(self, board: chess.Board, played: int, *, right: bool) -> chess.Move:
        """The first best move in the order of squares."""
        found = table_of(board)
        if found is None:
            raise ValueError(f"{board.fen()} is in no table, so there is no best move to reply with")
        return next(each.move for each in found.moves(board) if each.optimal)

    def outcome(self, start: chess.Board, end: chess.Board) -> str:
        """What the line's last position is worth for the side to move at its start."""
        outcome = value_of(end).outcome
        return ("[draw]", "[win]", "[loss]")[outcome if start.turn == end.turn else -outcome]


_TABLES: Final = TableLines()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pool:
    """The positions that a task poses, one for each number of its table, with either side to move."""

    numbers: NDArray[np.int64]
    turns: NDArray[np.int64]
    first: NDArray[np.bool_]
    """Whether a position is the first of those with its key."""
    keys: int
    """How many keys there are."""


@lru_cache(maxsize=8)  # the tasks that one process works with
def _pool(pieces: Endgame, goal: Goal, outcomes: tuple[Outcome, ...], distance: tuple[int, int] | None) -> _Pool:
    solved = table(pieces)
    numbers, turns = [], []
    for outcome in outcomes:
        turn = STRONG if outcome == "won" else WEAK
        row = solved.rows[turn]
        if outcome == "drawn":
            fit = row == DRAWN
        else:  # plies 2n - 1 and 2n are n moves
            low, high = distance or (0, LONGEST[pieces])
            fit = (row >= max(2 * low - 1, 0)) & (row <= 2 * high)
        found = np.flatnonzero(fit)
        counts = tablebase_kernels.survey(found, solved.kinds, turn, solved.rows, solved.promoted)
        found = found[counts[:, 2 if goal == "optimal" else 1] < counts[:, 0]]
        numbers.append(found)
        turns.append(np.full(len(found), turn, np.int64))
    together = np.concatenate(numbers)
    has_pawns = "P" in pieces
    first = np.ones(len(together), np.bool_) if has_pawns else tablebase_kernels.is_first(together, len(pieces))
    return _Pool(numbers=together, turns=np.concatenate(turns), first=first, keys=int(first.sum()))


def _certificate(problem: Problem) -> ChessEndgameCertificate:
    if not isinstance(problem.certificate, ChessEndgameCertificate):
        raise TypeError(
            f"ChessEndgame reads problems with a ChessEndgameCertificate, got {type(problem.certificate).__name__}; ask"
            f" the task that made the problem"
        )
    return problem.certificate


def _moves(plies: int | None) -> int:
    """Moves of the winner until mate; 0 where there is none."""
    return 0 if plies is None else (plies + 1) // 2


def _fault(answer: str, best: Value, after: Value) -> Verdict:
    """The verdict on a legal move that is not right, by the values after a best one and after it."""
    if after.outcome != best.outcome:
        had, left = (
            "drawn" if value.outcome == 0 else "won" if value.outcome > 0 else "lost" for value in (best, after)
        )
        return wrong(f"{answer} turns a {had} position into a {left} one", 0.0)
    taken, possible = ((value.plies_to_mate or 0) // 2 for value in (after, best))
    if best.outcome > 0:  # the move itself is one more
        return wrong(f"{answer} mates in {taken + 1} moves, {possible + 1} are enough", 0.5)
    return wrong(f"{answer} is mated in {taken + 1} moves, it can be put off to {possible + 1}", 0.5)


def _short(answer: str) -> str:
    return repr(answer) if len(answer) <= 60 else f"{answer[:60]!r}..."


def _header_note(header: Header) -> str:
    if header == "squares":
        return (
            "square by square from a8 to h1 with . for an empty square and capital letters for white, then the side to"
            " move, four places for castling rights and one for an en passant square"
        )
    return "as the pieces of white and of black with their squares, then a colon and the side to move"


# -------------------------------------------------------------------------------------------------- validation


def _check_outcomes(task: ChessEndgame) -> None:
    asked: object = task.outcomes
    if not isinstance(asked, tuple) or not asked or asked != tuple(each for each in OUTCOMES if each in asked):
        raise ValueError(
            f"ChessEndgame.outcomes must be a tuple of one or more of {', '.join(OUTCOMES)}, each once and in this"
            f" order, got {asked!r}"
        )
    if task.goal == "win" and "lost" in task.outcomes:
        raise ValueError(
            "ChessEndgame with goal='win' asks to keep the outcome, which every move of a lost position does; leave"
            f" 'lost' out of outcomes={task.outcomes!r}, or take goal='optimal'"
        )


def _check_distance(task: ChessEndgame) -> None:
    """Refuses distances at which there is no position for one of the outcomes."""
    if task.distance is None:
        return
    check_range("ChessEndgame.distance", task.distance, 1, LONGEST[task.pieces])
    if task.outcomes == ("drawn",):
        raise ValueError(
            f"ChessEndgame.distance={task.distance} is moves to mate, which drawn positions do not have; leave it None"
        )
    first = FIRST_LOST[task.pieces]
    if "lost" in task.outcomes and task.distance[1] < first:
        raise ValueError(
            f"ChessEndgame.distance={task.distance}: there is a choice only in lost positions of {task.pieces} with"
            f" {first} or more moves to mate"
        )


TESTBED: Final[type[Task]] = ChessEndgame
LEVELS: Final[dict[str, Task]] = {
    "queen": ChessEndgame(),
    "rook": ChessEndgame(pieces="KRK"),
    "pawn": ChessEndgame(pieces="KPK", goal="win", outcomes=("won", "drawn")),
    "resist": ChessEndgame(pieces="KRK", outcomes=("drawn", "lost")),
    "bishop_knight": ChessEndgame(pieces="KBNK", distance=(1, 12)),
}
