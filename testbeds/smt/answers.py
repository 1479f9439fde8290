"""How an answer is found in a completion, and the two ways of families to write and read one (see family.py)."""

from __future__ import annotations

from dataclasses import dataclass

from testbeds.arithmetic import shown
from testbeds.core import ANSWER_MARK, Verdict
from testbeds.smt.language import Puzzle

MOST_TEXT = 100_000  # characters after the mark that are read; an answer has a few hundred, the rest is white space


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a text is no answer."""

    reason: str

    @property
    def verdict(self) -> Verdict:
        """The verdict that says so."""
        return Verdict(correct=False, well_formed=False, progress=0.0, reason=self.reason)


def answer_part(completion: str) -> str | Flaw:
    """The part of a completion in which the answer stands: all of it, or what follows its one mark."""
    marks = completion.count(ANSWER_MARK)
    if marks > 1:
        return Flaw(f"the mark {ANSWER_MARK} stands {marks} times, at most once is allowed")
    text = completion.rpartition(ANSWER_MARK)[2]
    if len(text) > MOST_TEXT:
        return Flaw(f"the answer has {len(text)} characters, at most {MOST_TEXT} are read")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What an answer to a puzzle can look like."""

    puzzle: Puzzle
    width: int
    words: dict[str, dict[str, int]]
    """Of each variable, by its name: the value of each word."""
    is_tight: bool
    """Whether every word is one character, so that no comma is needed between them."""
    longest: int
    """Characters of the longest answer, without white space."""

    @classmethod
    def of(cls, puzzle: Puzzle, width: int) -> Form:
        """The form of the answers to a puzzle: in rows of ``width`` values, or by names where it is 0."""
        words = {v.name: dict(zip(v.words or map(str, v.domain), v.domain, strict=True)) for v in puzzle.variables}
        longest = sum(len(name) + max(map(len, known)) + 2 for name, known in words.items())
        return cls(puzzle=puzzle, width=width, words=words, is_tight=_is_tight(puzzle), longest=longest)


def write(puzzle: Puzzle, solution: tuple[int, ...], width: int) -> str:
    """A solution as an answer is written."""
    words = [variable.word(value) for variable, value in zip(puzzle.variables, solution, strict=True)]
    if not width:
        return ",".join(f"{name}={word}" for name, word in zip(puzzle.names, words, strict=True))
    comma = "" if _is_tight(puzzle) else ","
    return "/".join(comma.join(words[start : start + width]) for start in range(0, len(words), width))


def read(form: Form, completion: str) -> dict[str, int] | Flaw:
    """The values that a completion gives to all variables."""
    text = answer_part(completion)
    if isinstance(text, Flaw):
        return text
    tight = "".join(text.split())
    if not tight:
        return Flaw("there is no answer")
    if len(tight) > form.longest:
        return Flaw(f"{shown(tight)} is longer than any answer")
    return _read_rows(tight, form) if form.width else _read_names(tight, form.words)


def _is_tight(puzzle: Puzzle) -> bool:
    return all(len(variable.word(value)) == 1 for variable in puzzle.variables for value in variable.domain)


def _read_names(tight: str, words: dict[str, dict[str, int]]) -> dict[str, int] | Flaw:
    values: dict[str, int] = {}
    for part in tight.split(","):
        name, equals, word = part.partition("=")
        if not equals or word not in words.get(name, {}):
            return Flaw(f"{shown(part)} gives no variable one of its values")
        if name in values:
            return Flaw(f"{name} has two values")
        values[name] = words[name][word]
    missing = [name for name in words if name not in values]
    return Flaw(f"{missing[0]} has no value") if missing else values


def _read_rows(tight: str, form: Form) -> dict[str, int] | Flaw:
    rows = [list(row) if form.is_tight else row.split(",") for row in tight.split("/")]
    height = len(form.words) // form.width
    if len(rows) != height:
        return Flaw(f"there must be {height} rows, got {len(rows)}")
    for place, row in enumerate(rows, 1):
        if len(row) != form.width:
            return Flaw(f"row {place} must have {form.width} values, got {len(row)}")
    values: dict[str, int] = {}
    cells = [word for row in rows for word in row]
    for (name, known), word in zip(form.words.items(), cells, strict=True):
        if word not in known:
            return Flaw(f"{shown(word)} is no value of {name}")
        values[name] = known[word]
    return values
