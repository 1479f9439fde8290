"""The style of a chess trace that weighs candidate moves.

It stands apart from the rules and python-chess, so that a command line can name it without waiting for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Final, Literal, get_args

from testbeds.core import Search, TraceStyle

Ordering = Literal["random", "best_last", "best_first", "checks_first"]
ORDERINGS: Final[tuple[Ordering, ...]] = get_args(Ordering)

HEURISTIC: Final = "candidates"
USUAL_CANDIDATES: Final = 3
USUAL_DEPTH: Final = 2  # a move and the reply to it
MOST_MOVES: Final = 218  # no position has more legal moves
MOST_DEPTH: Final = 200  # moves of a line: without mate it would go on for ever


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateStyle(TraceStyle):
    """Candidate moves, each with the line that follows and its outcome, and then the move that is chosen.

    The right move is one of the candidates. The wrong ones are drawn from the legal moves that are no answer.

    To a testbed that knows plain styles alone it is a depth-first search by a heuristic that is not there: it refuses
    it, and never writes something else under this name.
    """

    revision: ClassVar[int] = 1

    search: Search = "depth_first"
    """Candidates are looked at one after the other."""
    heuristic: str = HEURISTIC
    """Always this one; ``ordering`` says more."""

    candidates: int = USUAL_CANDIDATES
    """Lines that are shown, that of the right move included."""
    depth: int = USUAL_DEPTH
    """Moves of either side in each line; fewer where the game ends before."""
    ordering: Ordering = "random"
    """How the wrong candidates stand: as drawn, the best outcome last or first (from the side to move), or checks, then
    captures, then the rest. What is equal stands as drawn."""
    wrong_first: float = 1.0
    """Share of the wrong candidates that stand before the right one. Where that is no whole number, one more or less,
    drawn so that the share holds on average."""

    def __post_init__(self) -> None:
        TraceStyle.__post_init__(self)
        _check_count("candidates", self.candidates, MOST_MOVES)
        _check_count("depth", self.depth, MOST_DEPTH)
        if self.ordering not in ORDERINGS:
            raise ValueError(f"CandidateStyle.ordering must be one of {', '.join(ORDERINGS)}, got {self.ordering!r}")
        if type(self.wrong_first) not in (int, float) or not 0 <= self.wrong_first <= 1:
            raise ValueError(f"CandidateStyle.wrong_first must be a share between 0 and 1, got {self.wrong_first!r}")
        for name, value in (("search", "depth_first"), ("heuristic", HEURISTIC), ("backtracks", None)):
            if getattr(self, name) != value:
                raise ValueError(
                    f"a CandidateStyle has {name}={value!r}, got {getattr(self, name)!r}; say the number of its lines"
                    f" by candidates and depth, their order by ordering and wrong_first"
                )

    @property
    def name(self) -> str:
        """The style in a few words, which the command line reads, such as ``candidates=3 depth=2``."""
        parts = [f"candidates={self.candidates}", f"depth={self.depth}"]
        parts += [f"wrong_first={_decimal(self.wrong_first)}"] if self.wrong_first != 1 else []
        parts += [f"ordering={self.ordering}"] if self.ordering != "random" else []
        parts += [repr(self.noise)] if self.noise is not None else []
        return " ".join(parts)


def _decimal(share: float) -> str:
    """The share without an exponent, which the command line would not read."""
    return format(Decimal(repr(float(share))), "f")


def _check_count(name: str, value: int, most: int) -> None:
    if type(value) is not int or not 1 <= value <= most:
        raise ValueError(f"CandidateStyle.{name} must be a whole number between 1 and {most}, got {value!r}")
