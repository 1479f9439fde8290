"""A game of chess as data: where it starts, the moves encoded as small numbers, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from numpy.random import Generator

__all__ = ["Game", "GameSource", "check_game_source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """One game."""

    start: str | None
    """The first position in Forsyth-Edwards notation; None: the usual one."""
    moves: tuple[int, ...]
    """Encoded as from | to << 6 | promotion << 12: squares 0..63 from a1 to h8; promotion as python-chess counts
    pieces, 2 knight to 5 queen, 0 for none."""
    result: str
    """``1-0``, ``0-1``, ``1/2-1/2``, or ``*`` for a game that was left unfinished."""


@runtime_checkable
class GameSource(Protocol):
    """Where games come from. A frozen dataclass with a ``revision: ClassVar[int]``, as it is a field of tasks."""

    def draw(self, rng: Generator, count: int) -> list[Game]:
        """``count`` games drawn independently, with replacement: a pure function of the source and of ``rng``."""
        ...

    def games(self) -> Iterable[Game] | None:
        """All games, each once and in a stable order; None where they are too many to walk, or without end."""
        ...

    @property
    def count(self) -> int | None:
        """How many games there are; None where there is no end of them."""
        ...

    def describe(self) -> str:
        """A few words that say which games these are."""
        ...

    def __hash__(self) -> int:
        """Sources are values: equal ones hash alike."""
        ...


def check_game_source(where: str, source: object, *, such_as: str) -> None:
    """Nothing, if games can be drawn from ``source``; else ValueError that names the field and one that would do."""
    if not callable(getattr(type(source), "draw", None)):  # isinstance would read the property that counts the games
        raise ValueError(  # noqa: TRY004  # as for every field that is wrong
            f"{where} must be a source of games such as {such_as}, got {source!r}"
        )
