"""Candidate moves with what becomes of them, as the working of a trace; every word of it is true.

``P d4 d5 P e6 x d5 [-1] | Q d1 h5 + P g7 g6 [0] | Q d1 d8 # [mate] # Q d1 d8 #``: each candidate is a line of moves
that begins with it and ends with an outcome in brackets, said from the side that is to move in the problem:

* ``[mate]`` and ``[mated]``: the line ends with the opponent or with the side itself mated; ``[draw]``: in stalemate or
  with material that mates nobody;
* else what the testbed says of the last position (its ``Guide``): how the balance of material changed along the line in
  pawns (``[+3]``; 9 is 9 or more), or its exact value, ``[win]``, ``[draw]`` or ``[loss]``.

How many lines there are, how long and in which order is the style: a ``CandidateStyle``, or a plain ``TraceStyle``:

===========================  =====================================================================================
``explicit``                 the usual candidates: 3 lines of 2 moves, the right one last; fewer where fewer are legal
``explicit``, ``shuffled``   the same in random order
``depth_first``, backtracks  exactly so many wrong candidates and then the right one; None: a number drawn evenly
                             from 0 to 3, or to as many as there are; ``heuristic`` may be one of ``ORDERINGS``
``implicit``                 the answer alone
===========================  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, Protocol

import chess
import numpy as np
from numpy.random import Generator

from testbeds.chess import rules
from testbeds.chess.lines_style import ORDERINGS, USUAL_CANDIDATES, USUAL_DEPTH, CandidateStyle, Ordering
from testbeds.chess.notation import BETWEEN, Notation, written, written_line
from testbeds.chess.rules_kernels import MOST_MOVES
from testbeds.chess.rules_play import root_scores
from testbeds.core import ANSWER_MARK, Step, Trace, TraceStyle, Unrealisable

__all__ = [
    "MATERIAL",
    "ORDERINGS",
    "SEPARATOR",
    "TRACE_SYMBOLS",
    "Answer",
    "CandidateStyle",
    "Guide",
    "Material",
    "Mates",
    "answer_part",
    "demonstrate",
]

Answer = Literal["move", "line"]

MOST_PAWNS: Final = 9  # a queen; the outcome of a change by more says 9
_CHANGES: Final = tuple(f"[{pawns:+d}]" if pawns else "[0]" for pawns in range(-MOST_PAWNS, MOST_PAWNS + 1))
_BEFORE: Final = ("[mated]", "[loss]")
_AFTER: Final = ("[win]", "[mate]")
TRACE_SYMBOLS: Final[tuple[str, ...]] = ("|", *_BEFORE, *_CHANGES, "[draw]", *_AFTER, ANSWER_MARK)
"""The lexicon of a trace beside that of the moves, in a stable order."""

SEPARATOR: Final = " | "
"""What stands between two candidates."""

_RANK: Final = {outcome: rank for rank, outcome in enumerate((*_BEFORE, *_CHANGES, *_AFTER))} | {
    "[draw]": len(_BEFORE) + MOST_PAWNS
}
"""Outcomes from the worst to the best; a draw is as good as an even exchange."""


class Guide(Protocol):
    """What a testbed knows of its positions: how a candidate's line goes on, and what is said of its end."""

    def reply(self, board: chess.Board, played: int, *, right: bool) -> chess.Move:
        """The move that is played on ``board``, after ``played`` moves of the line of a right or a wrong candidate.

        The game is not over on it. It must be left as it is.
        """
        ...

    def outcome(self, start: chess.Board, end: chess.Board) -> str:
        """The outcome, one of ``TRACE_SYMBOLS``, of a line between two positions, for the side to move at its start.

        It is asked only where the game goes on after the line.
        """
        ...


def _check_counts(guide: object, *names: str) -> None:
    for name in names:
        value = getattr(guide, name)
        if type(value) is not int or value < 1:
            raise ValueError(f"{type(guide).__name__}.{name} must be a whole number of at least 1, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Lines as a search for material prefers them, with how the balance of material changed."""

    revision: ClassVar[int] = 1

    plies: int = 2
    """How many moves the search looks ahead: 2, so that it sees what is recaptured."""

    def __post_init__(self) -> None:
        _check_counts(self, "plies")

    def reply(self, board: chess.Board, played: int, *, right: bool) -> chess.Move:
        """The move that the search likes best."""
        return _favourite(board, self.plies)

    def outcome(self, start: chess.Board, end: chess.Board) -> str:
        """The change of the balance."""
        return material_change(start, end)


MATERIAL: Final = Material()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mates:
    """Lines of a problem that asks for mate: the best defence to a right move, a refutation of a wrong one.

    A refutation is a reply after which mate is no longer forced in the moves that are left; among those, the one that
    a search for material likes best. So is every move where there is no mate to be made or to be avoided.
    """

    revision: ClassVar[int] = 1

    moves: int
    """Within how many moves of the side to move mate can be forced."""
    plies: int = 2
    """How many moves the search for material looks ahead."""
    most_nodes: int = 1_000_000
    """Positions that may be looked at for each proof that mate is, or is not, forced."""

    def __post_init__(self) -> None:
        _check_counts(self, "moves", "plies", "most_nodes")

    def reply(self, board: chess.Board, played: int, *, right: bool) -> chess.Move:
        """The attacker's mating move, the best defence, or the refutation."""
        left = self.moves - (played + 1) // 2  # moves that the attacker has left, this one included if it is his turn
        if played % 2 == 0:
            return self._attack(board, left)
        if right and left > 0:
            return self._defence(board, left)
        return self._refutation(board, left)

    def outcome(self, start: chess.Board, end: chess.Board) -> str:
        """The change of the balance of material."""
        return material_change(start, end)

    def _attack(self, board: chess.Board, left: int) -> chess.Move:
        for moves in range(1, left + 1):  # the quickest mate first
            mating = rules.mating_moves(board, moves, self.most_nodes)
            if mating:
                return rules.decode(mating[0])
        return _favourite(board, self.plies)

    def _defence(self, board: chess.Board, left: int) -> chess.Move:
        longest = rules.best_defence(board, left)
        return _favourite(board, self.plies) if longest is None else rules.decode(longest)

    def _refutation(self, board: chess.Board, left: int) -> chess.Move:
        if left < 1:
            return _favourite(board, self.plies)
        for reply in _liked(board, self.plies):
            after = board.copy(stack=False)
            after.push(reply)
            if rules.forced_mate(after, left, self.most_nodes) is False:
                return reply
        raise Unrealisable(
            f"no reply on {board.fen()} was found within {self.most_nodes} positions that avoids mate in {left}"
        )


def answer_part(completion: str) -> str:
    """The answer of a completion ``WORKING # ANSWER`` or ``ANSWER``, without white space, of any string whatever.

    ``#`` marks the answer and mate alike, so one at the very end belongs to the last move.
    """
    tight = "".join(completion.split())
    mate = ANSWER_MARK if tight.endswith(ANSWER_MARK) else ""
    return tight.removesuffix(ANSWER_MARK).rpartition(ANSWER_MARK)[2] + mate


def material_change(start: chess.Board, end: chess.Board) -> str:
    """How the balance of material changed between two positions for the side to move in the first, as an outcome."""
    change = _balance(end) - _balance(start)
    change = change if start.turn == chess.WHITE else -change
    return _CHANGES[max(-MOST_PAWNS, min(MOST_PAWNS, change)) + MOST_PAWNS]


def demonstrate(  # noqa: PLR0913  # the terms of Task.demonstrate, and the parts of a problem, spelt out
    board: chess.Board,
    right: Sequence[chess.Move],
    style: TraceStyle,
    rng: Generator,
    notation: Notation,
    *,
    correct: Collection[chess.Move],
    guide: Guide = MATERIAL,
    answer: Answer = "move",
) -> Trace:
    """The trace ``CANDIDATES # ANSWER`` of a problem.

    Args:
        board: The position to solve.
        right: The line of the move that is chosen, from that move on, as far as it is known: the guide goes on from
            there to the depth of the style.
        style: How many candidates there are and in which order; see above.
        rng: Draws the wrong candidates and their order.
        notation: How moves are written.
        correct: Every first move that is an answer: none of them stands among the wrong candidates.
        guide: How lines go on, and what is said of their ends.
        answer: Whether the answer is the first move of ``right`` or all of it.

    Raises:
        ValueError: for a style that is none of those above.
        Unrealisable: for a position with fewer wrong moves than the style asks for.
    """
    layout = _layout(style)
    said = written(board, right[0], notation) if answer == "move" else written_line(board, right, notation)
    if layout is None:
        return Trace.worked((), said)
    wrong_moves = [move for move in board.legal_moves if move not in correct and move != right[0]]
    drawn, before = layout.drawn(len(wrong_moves), rng)
    moves = [wrong_moves[place] for place in rng.permutation(len(wrong_moves))[:drawn].tolist()]
    wrong = [_candidate(board, (move,), layout.depth, guide, notation, right=False) for move in moves]
    wrong = _ordered(board, wrong, moves, layout.ordering)
    chosen = _candidate(board, right, layout.depth, guide, notation, right=True)
    return Trace.worked((*wrong[:before], chosen, *wrong[before:]), said, separator=SEPARATOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """How many candidates a trace shows, how they are laid out."""

    wrong: int | None
    """Wrong candidates; None: drawn."""
    strict: bool
    """Whether fewer will not do."""
    depth: int
    ordering: Ordering
    wrong_first: float | None
    """Share of the wrong candidates before the right one; None: the right one's place is drawn."""

    def drawn(self, possible: int, rng: Generator) -> tuple[int, int]:
        """How many wrong candidates there are of those possible, and how many of them stand before the right one."""
        most = USUAL_CANDIDATES if self.wrong is None else self.wrong
        if self.strict and possible < most:
            raise Unrealisable(f"the position has {possible} wrong moves, and {most} wrong candidates are asked for")
        wrong = min(most, possible)
        if self.wrong is None:
            wrong = int(rng.integers(wrong + 1))
        if self.wrong_first is None:
            return wrong, int(rng.integers(wrong + 1))
        whole, rest = divmod(round(self.wrong_first * wrong, 9), 1)  # 0.7 * 10 is 7.000000000000001
        return wrong, int(whole) + (rest > 0 and rng.random() < rest)


def _layout(style: TraceStyle) -> _Layout | None:
    """What a style asks for; None for the answer alone."""
    if isinstance(style, CandidateStyle):
        return _Layout(
            wrong=style.candidates - 1,
            strict=True,
            depth=style.depth,
            ordering=style.ordering,
            wrong_first=style.wrong_first,
        )
    _check_style(style)
    if style.granularity == "implicit":
        return None
    if style.search == "depth_first":
        return _Layout(
            wrong=style.backtracks,
            strict=style.backtracks is not None,
            depth=USUAL_DEPTH,
            ordering=_heuristic(style),
            wrong_first=1.0,
        )
    return _Layout(
        wrong=USUAL_CANDIDATES - 1,
        strict=False,
        depth=USUAL_DEPTH,
        ordering="random",
        wrong_first=None if style.order == "shuffled" else 1.0,
    )


def _check_style(style: TraceStyle) -> None:
    """ValueError for what plain styles candidates cannot be written in."""
    if style.granularity == "composed":
        raise ValueError(
            f"candidate moves do not fold into each other, got granularity='composed' with group={style.group}; a"
            f" CandidateStyle says how many there are and how deep"
        )
    if style.order == "backward":
        raise ValueError("the lines of candidate moves are not written backward; order may be 'forward' or 'shuffled'")
    if style.search == "breadth_first":
        raise ValueError("candidate moves are looked at one after the other; search may be 'depth_first'")
    if style.search == "depth_first":
        _heuristic(style)


def _heuristic(style: TraceStyle) -> Ordering:
    """How a search orders its wrong candidates."""
    for ordering in ORDERINGS:
        if style.heuristic in (ordering, ""):  # the first is the usual one
            return ordering
    raise ValueError(f"heuristic must be empty or one of {', '.join(ORDERINGS)}, got {style.heuristic!r}")


def _ordered(board: chess.Board, wrong: Sequence[Step], moves: Sequence[chess.Move], ordering: Ordering) -> list[Step]:
    """The wrong candidates, each with its move, as the style orders them; what is equal stands as drawn."""
    if ordering == "random":
        return list(wrong)
    if ordering == "checks_first":
        keys = [_calm(board, move) for move in moves]
    else:
        sign = 1 if ordering == "best_last" else -1
        keys = [sign * _RANK[step.result] for step in wrong]
    return [wrong[place] for place in sorted(range(len(wrong)), key=keys.__getitem__)]


def _calm(board: chess.Board, move: chess.Move) -> int:
    """0 for a check, 1 for another capture, 2 for the rest."""
    if board.gives_check(move):
        return 0
    return 1 if board.is_capture(move) else 2


def _candidate(
    board: chess.Board, known: Sequence[chess.Move], depth: int, guide: Guide, notation: Notation, *, right: bool
) -> Step:
    """The line that begins with the known moves and goes on as the guide says, as a step."""
    end = board.copy(stack=False)
    texts: list[str] = []
    over = ""
    while len(texts) < depth and not over:
        played = len(texts)
        move = known[played] if played < len(known) else guide.reply(end, played, right=right)
        texts.append(written(end, move, notation))
        end.push(move)
        over = _over(end, board.turn)
    outcome = over or guide.outcome(board, end)
    return Step(operation=texts[0], result=outcome, text=f"{BETWEEN[notation].join(texts)} {outcome}")


def _over(board: chess.Board, side: chess.Color) -> str:
    """How the game ended, as an outcome for ``side``; empty where it goes on."""
    if not any(board.generate_legal_moves()):
        if not board.is_check():
            return "[draw]"
        return "[mated]" if board.turn == side else "[mate]"
    return "[draw]" if board.is_insufficient_material() else ""


def _liked(board: chess.Board, plies: int) -> list[chess.Move]:
    """The legal moves, the one that a search for material likes best first."""
    return [rules.decode(move) for move, _, _ in rules.search(board, plies)]


def _favourite(board: chess.Board, plies: int) -> chess.Move:
    """The first of those moves, found in half the time: the scores of the others need not be exact."""
    found, lines = np.zeros((3, MOST_MOVES), np.int64), np.zeros((MOST_MOVES, plies), np.uint16)
    count = root_scores(rules.state_of(board), plies, True, found, lines)  # noqa: FBT003  # compiled: no keywords
    codes, scores = found[:2, :count].tolist()
    best = max(scores)
    return rules.decode(min(code for code, score in zip(codes, scores, strict=True) if score == best))


def _balance(board: chess.Board) -> int:
    """White's material minus black's in pawns."""
    white, black = board.occupied_co[chess.WHITE], board.occupied_co[chess.BLACK]
    return sum(
        pawns * ((mask & white).bit_count() - (mask & black).bit_count())
        for mask, pawns in (
            (board.pawns, 1),
            (board.knights, 3),
            (board.bishops, 3),
            (board.rooks, 5),
            (board.queens, 9),
        )
    )
