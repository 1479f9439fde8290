"""Statements of knights and knaves: meaning as truth tables, words, draws, and what follows from them.

A statement is a nested tuple; people are numbers from 0:

=========================  =============================================  ====================================
statement                  told                                           true if
=========================  =============================================  ====================================
``("is", p, 1)``           ``Ann is knight`` (0: ``Ann is knave``)        p is a knight (a knave)
``("not", s)``             ``not S``                                      s is false
``("and", s, t, ..)``      ``S and T and U``                              all are true
``("or", s, t, ..)``       ``S or T or U``                                at least one is true
``("iff", s, t)``          ``S iff T``                                    both are true or both false
``("implies", s, t)``      ``S implies T``                                s is false or t true
``("exactly", k, s, ..)``  ``exactly 1 of S , T , U``                     k of them are true
``("claims", p, s)``       ``Ben claims S``                               p is a knight and s true, or neither
=========================  =============================================  ====================================

Over n people there are 2^n assignments, numbered by their knights (bit p of the number: p is a knight). A truth table
is a whole number with a bit for each assignment, so a connective is a few operations on numbers of at most 256 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

from numpy.random import Generator

from testbeds.core import Step
from testbeds.smt.constraints import Constraint, Expression, Is, Values
from testbeds.smt.language import Puzzle, Variable
from testbeds.smt.logic import And, Iff, Implies, Not, Or, Told, joined

CONNECTIVES = ("not", "and", "or", "iff", "implies", "exactly", "claims")
NAMES = ("Ann", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal")
ROLES = ("knave", "knight")
MOST_SAYINGS = 200  # half of all draws have the right truth value, few say nothing: none of 200 means that none exist

Statement = tuple[Any, ...]  # nested, see above: mypy's recursive tuples would need a cast at each use
Said = tuple[int, Statement]
"""Who says what."""


# --------------------------------------------------------------------------------------------------- truth tables


@lru_cache(maxsize=16)
def knight_tables(people: int) -> tuple[int, ...]:
    """For each person, the assignments in which that person is a knight."""
    return tuple(sum(1 << knights for knights in range(2**people) if knights >> p & 1) for p in range(people))


@lru_cache(maxsize=16)
def everything(people: int) -> int:
    """The table of all assignments."""
    full: int = (1 << 2**people) - 1
    return full


def table(statement: Statement, people: int) -> int:
    """The assignments in which a statement is true."""
    return _table(statement, knight_tables(people), everything(people))


def _table(statement: Statement, knights: Sequence[int], full: int) -> int:
    kind = statement[0]
    if kind == "is":
        return knights[statement[1]] if statement[2] else full ^ knights[statement[1]]
    if kind == "claims":
        return full ^ knights[statement[1]] ^ _table(statement[2], knights, full)
    if kind == "exactly":
        return _exactly(statement[1], [_table(part, knights, full) for part in statement[2:]], full)
    tables = [_table(part, knights, full) for part in statement[1:]]
    return full ^ tables[0] if kind == "not" else _combined(kind, tables, full)


def _combined(kind: str, tables: Sequence[int], full: int) -> int:
    """The table of ``and``, ``or``, ``iff`` or ``implies`` of others."""
    first = tables[0]
    if kind == "iff":
        return full ^ first ^ tables[1]
    if kind == "implies":
        return (full ^ first) | tables[1]
    for part in tables[1:]:
        first = first & part if kind == "and" else first | part
    return first


def _exactly(count: int, parts: Sequence[int], full: int) -> int:
    """Where exactly ``count`` of the tables hold: one table for each count so far, moved up part by part."""
    by_count = [full, *[0] * len(parts)]
    for part in parts:
        for so_far in range(len(parts), 0, -1):
            by_count[so_far] = by_count[so_far] & ~part | by_count[so_far - 1] & part
        by_count[0] &= ~part
    return by_count[count]


def meaning(said: Said, people: int) -> int:
    """The assignments that a statement leaves: its speaker is a knight if and only if it is true."""
    speaker, statement = said
    return everything(people) ^ knight_tables(people)[speaker] ^ table(statement, people)


def solutions(statements: Sequence[Said], people: int) -> int:
    """The assignments that all statements leave."""
    left = everything(people)
    for said in statements:
        left &= meaning(said, people)
    return left


# -------------------------------------------------------------------------------------------------------- measures


def depth(statement: Statement) -> int:
    """Connectives on the longest way down to an atom."""
    return 0 if statement[0] == "is" else 1 + max(depth(part) for part in parts(statement))


def atoms(statement: Statement) -> int:
    """How many atoms a statement has."""
    return 1 if statement[0] == "is" else sum(atoms(part) for part in parts(statement))


def parts(statement: Statement) -> tuple[Statement, ...]:
    """The statements of which one is made."""
    return tuple(part for part in statement[1:] if isinstance(part, tuple))


# ----------------------------------------------------------------------------------------------------------- words


def told(statement: Statement) -> str:
    """A statement in words; parts that are not atoms stand in parentheses."""
    kind = statement[0]
    if kind == "is":
        return f"{NAMES[statement[1]]} is {ROLES[statement[2]]}"
    inner = [told(part) if part[0] == "is" else f"( {told(part)} )" for part in parts(statement)]
    if kind == "not":
        return f"not {inner[0]}"
    if kind == "claims":
        return f"{NAMES[statement[1]]} claims {inner[0]}"
    if kind == "exactly":
        return f"exactly {statement[1]} of {' , '.join(inner)}"
    return f" {kind} ".join(inner)


def written(statement: Statement, names: Sequence[str]) -> str:
    """A statement under other names, alike for all orders of what may change places (and, or, iff, exactly)."""
    kind = statement[0]
    if kind == "is":
        return names[statement[1]] + "-+"[statement[2]]
    if kind == "claims":
        return f"claims{names[statement[1]]}({written(statement[2], names)})"
    inner = [written(part, names) for part in statement[1 + (kind == "exactly") :]]
    if kind != "implies":
        inner.sort()
    return f"{kind}{statement[1] if kind == 'exactly' else ''}({','.join(inner)})"


# ------------------------------------------------------------------------------------------------ puzzle language


@dataclass(frozen=True, slots=True)
class Exactly:
    """``count`` of the parts hold."""

    count: int
    of: tuple[Constraint, ...]

    @property
    def scope(self) -> tuple[str, ...]:
        return joined(self.of)

    @property
    def text(self) -> str:
        return f"exactly({self.count};{','.join(part.text for part in self.of)})"

    def holds(self, values: Values) -> bool:
        return sum(part.holds(values) for part in self.of) == self.count

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        import z3

        return z3.Sum([z3.If(part.to_z3(expressions), 1, 0) for part in self.of]) == self.count


def declared(statement: Statement) -> Constraint:
    """A statement in the puzzle language."""
    kind = statement[0]
    if kind == "is":
        return Is(NAMES[statement[1]], statement[2], ROLES[statement[2]])
    inner = tuple(declared(part) for part in parts(statement))
    if kind == "exactly":
        return Exactly(statement[1], inner)
    if kind == "claims":
        return Iff(Is(NAMES[statement[1]], 1, "knight"), inner[0])
    if kind in ("and", "or"):
        return And(inner) if kind == "and" else Or(inner)
    if kind == "not":
        return Not(inner[0])
    return Iff(*inner) if kind == "iff" else Implies(*inner)


@lru_cache(maxsize=256)
def puzzle(statements: tuple[Said, ...], people: int) -> Puzzle:
    """The puzzle in the puzzle language: a variable for each person, 1 for a knight; a clue for each statement."""
    return Puzzle(
        variables=tuple(Variable(name=name, domain=(0, 1), words=ROLES) for name in NAMES[:people]),
        clues=tuple(
            Told(Iff(Is(NAMES[speaker], 1, "knight"), declared(statement)), f"statement {number} of {NAMES[speaker]}")
            for number, (speaker, statement) in enumerate(statements, 1)
        ),
    )


# ----------------------------------------------------------------------------------------------------------- draws


Dice = Iterator[float]
"""Random numbers from 0 to 1, one after another."""


def dice(rng: Generator) -> Dice:
    """An endless supply of random numbers, drawn in bulk."""
    while True:
        yield from rng.random(512).tolist()


Drawn = tuple[Statement, int]
"""A statement and its table."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """What statements may be made of."""

    people: int
    connectives: tuple[str, ...]
    width: int
    """Parts of ``and``, ``or`` and ``exactly``, at most."""

    def draw(self, depth: int, dice: Dice) -> Drawn:
        """A random statement of exactly this depth: one part is as deep as can be, the others as it comes.

        Atoms that stand side by side are about different people.
        """
        if depth == 0:
            return self._atom(list(range(self.people)), dice)
        kind = self.connectives[int(next(dice) * len(self.connectives))]
        full = everything(self.people)
        if kind == "not":
            part, true = self.draw(depth - 1, dice)
            return (kind, part), full ^ true
        if kind == "claims":
            person = int(next(dice) * self.people)
            part, true = self.draw(depth - 1, dice)
            return (kind, person, part), full ^ knight_tables(self.people)[person] ^ true
        size = 2
        if kind not in ("iff", "implies"):
            size += int(next(dice) * (min(self.width, self.people) - 1))
        inner, tables = zip(*self._parts(depth, size, dice), strict=True)
        if kind == "exactly":
            wanted = 1 + int(next(dice) * (size - 1))
            return (kind, wanted, *inner), _exactly(wanted, tables, full)
        return (kind, *inner), _combined(kind, tables, full)

    def _parts(self, depth: int, size: int, dice: Dice) -> list[Drawn]:
        deepest = int(next(dice) * size)
        unnamed = list(range(self.people))
        drawn = []
        for place in range(size):
            below = depth - 1
            if below and place != deepest:
                below = int(next(dice) * depth)
            drawn.append(self.draw(below, dice) if below else self._atom(unnamed, dice))
        return drawn

    def _atom(self, unnamed: list[int], dice: Dice) -> Drawn:
        person = unnamed.pop(int(next(dice) * len(unnamed)))
        true = knight_tables(self.people)[person]
        if next(dice) < 0.5:
            return ("is", person, 0), everything(self.people) ^ true
        return ("is", person, 1), true


class Sayings:
    """An endless supply of statements of one depth under one assignment, true ones for knights, false ones for knaves.

    A draw of the other truth value waits for the next who needs it, so each speaker's statement is distributed as if
    draws were repeated for it until one fits.
    """

    def __init__(self, grammar: Grammar, depth: int, knights: int, dice: Dice) -> None:
        self._grammar = grammar
        self._depth = depth
        self._knights = knights
        self._dice = dice
        self._full = everything(grammar.people)
        self._waiting: tuple[list[Drawn], list[Drawn]] = ([], [])

    def next(self, speaker: int) -> tuple[Said, int] | None:
        """What this person can say, and the assignments that it leaves; None where no draw fits.

        Neither the statement nor that it was made is true of every assignment, nor false of every one.
        """
        full, knights = self._full, self._knights
        knight = knight_tables(self._grammar.people)[speaker]
        wanted = knights >> speaker & 1
        for _ in range(MOST_SAYINGS):
            drawn = (
                self._waiting[wanted].pop() if self._waiting[wanted] else self._grammar.draw(self._depth, self._dice)
            )
            true = drawn[1]
            if true >> knights & 1 != wanted:
                self._waiting[1 - wanted].append(drawn)
            elif true not in (0, full, knight):
                return (speaker, drawn[0]), full ^ knight ^ true
        return None


# ------------------------------------------------------------------------------------------------------- reasoning


@lru_cache(maxsize=256)
def deductions(statements: tuple[Said, ...], people: int) -> tuple[Step, ...]:
    """The steps to everybody's role, each from as few statements as possible (and the roles known before).

    ``by 1 , 3 : Ben is knave`` says that statements 1 and 3 together leave no other role to Ben.
    """
    tables = [meaning(said, people) for said in statements]
    known = everything(people)
    open_people = list(range(people))
    steps: list[Step] = []
    while open_people:
        reason, news = _cheapest(tables, known, open_people, people)
        for person, role in news:
            result = f"{NAMES[person]} is {ROLES[role]}"
            steps.append(Step(operation=reason, result=result, text=f"{reason} : {result}"))
            known &= knight_tables(people)[person] ^ (0 if role else everything(people))
            open_people.remove(person)
    return tuple(steps)


def _cheapest(
    tables: Sequence[int], known: int, open_people: Sequence[int], people: int
) -> tuple[str, list[tuple[int, int]]]:
    """The smallest set of statements, the first of its size, that decides somebody, and whom it decides how."""
    knights = knight_tables(people)
    for size in range(1, len(tables) + 1):
        for chosen in combinations(range(len(tables)), size):
            left = known
            for number in chosen:
                left &= tables[number]
            news = [
                (person, int(bool(left & knights[person])))
                for person in open_people
                if not left & knights[person] or not left & ~knights[person]
            ]
            if news:
                return f"by {' , '.join(str(number + 1) for number in chosen)}", news
    raise ValueError("the statements leave more than one assignment, so they do not decide everybody's role")


@dataclass(frozen=True, slots=True)
class Cases:
    """The search tree that supposes one person's role after another; see working.py.

    A supposition fails if some statement alone has no assignment left.
    """

    tables: tuple[int, ...]
    people: int
    order: tuple[int, ...]

    @property
    def depth(self) -> int:
        return self.people

    def choices(self, path: tuple[int, ...]) -> Sequence[int]:
        return (1, 0)

    def failure(self, path: tuple[int, ...]) -> str:
        left = everything(self.people)
        for person, role in zip(self.order, path, strict=False):
            left &= knight_tables(self.people)[person] ^ (0 if role else everything(self.people))
        broken = next((number for number, true in enumerate(self.tables, 1) if not left & true), None)
        return "" if broken is None else f"{broken} fails"

    def shown(self, path: tuple[int, ...]) -> str:
        return f"{NAMES[self.order[len(path) - 1]]} is {ROLES[path[-1]]}"
