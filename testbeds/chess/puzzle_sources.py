"""Where puzzles come from: the sample that is shipped, and corpora on disk. Mates without end are in mates.py."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final, Protocol, runtime_checkable

from testbeds.chess.corpus import PuzzleCorpus
from testbeds.chess.puzzles import Puzzle, read_puzzles

__all__ = ["CorpusPuzzles", "PuzzleSource", "ShippedPuzzles"]

SHIPPED: Final = Path(__file__).parent / "data" / "puzzles.csv.zst"


@runtime_checkable
class PuzzleSource(Protocol):
    """A collection of puzzles. A frozen dataclass with a ``revision: ClassVar[int]``, as it is a field of tasks."""

    @property
    def count(self) -> int:
        """How many puzzles there are."""
        ...

    def puzzle(self, place: int) -> Puzzle:
        """The puzzle at a place from 0 to ``count`` - 1."""
        ...

    def describe(self) -> str:
        """A few words that say which puzzles these are."""
        ...

    def __hash__(self) -> int:
        """Sources are values: equal ones hash alike."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedPuzzles:
    """The puzzles of Lichess that ship with the project (data/README.md has their origin): about 1,600."""

    revision: ClassVar[int] = 1

    @property
    def count(self) -> int:
        return len(_shipped())

    def puzzle(self, place: int) -> Puzzle:
        return _shipped()[place]

    def describe(self) -> str:
        return f"{self.count} puzzles of Lichess, shipped with the project"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusPuzzles:
    """The puzzles of a corpus on disk (``stagecraft corpus`` makes one of a puzzle file), read where they lie."""

    revision: ClassVar[int] = 1

    corpus: PuzzleCorpus
    """The corpus; its digest is part of a task's fingerprint, its path is not."""

    @property
    def count(self) -> int:
        return len(self.corpus)

    def puzzle(self, place: int) -> Puzzle:
        return self.corpus[place]

    def describe(self) -> str:
        return f"{self.count} puzzles of a corpus"


@lru_cache(maxsize=1)
def _shipped() -> tuple[Puzzle, ...]:
    return tuple(read_puzzles(SHIPPED, Counter()))
