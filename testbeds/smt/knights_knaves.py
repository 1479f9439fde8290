"""Knights and knaves: who always tells the truth and who always lies, from what they say.

Texts (white space between words is free, and means nothing):

============  ===================================================  ===================================================
what          example                                              grammar
============  ===================================================  ===================================================
prompt        ``1 : Ann says Ben is knight or Ann is knave ; 2 :   ``SAID (";" SAID)* "?"`` with ``SAID := NUMBER ":"
              Ben says not ( Ann is knave and Ben is knave ) ?``   NAME "says" STATEMENT`` (knights_knaves_engine.py)
answer        ``Ann is knight , Ben is knight``                    ``ROLE ("," ROLE)*`` with ``ROLE := NAME "is"
                                                                   ("knight" | "knave")``
.. worked     ``by 1 : Ann is knight # Ann is knight , ...``       ``WORKING "#" ANSWER``: WORKING is free text
============  ===================================================  ===================================================

An answer names everybody exactly once, in any order. Each puzzle has one right answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

from numpy.random import Generator

from testbeds.core import Problem, Step, Task, Trace, TraceStyle, Unrealisable, Verdict
from testbeds.smt import knights_knaves_engine as engine
from testbeds.smt.answers import Flaw
from testbeds.smt.knights_knaves_engine import CONNECTIVES, NAMES, ROLES, Dice, Grammar, Said, Sayings, dice
from testbeds.smt.language import violation
from testbeds.smt.renaming import canonical_writing
from testbeds.smt.working import arranged, check_style, depth_first, read_words, split_at
from testbeds.streams import stream

MARKS = (":", ";", ",", "?", "#", "(", ")")
PILOT_DRAWS = 1_000  # redraws after which a task is refused: a puzzle usually takes 3 to 10 ...
MOST_DRAWS = 100_000  # ... so where 1,000 were enough once, a hundred times as many do not fail twice in a universe
MOST_ORDERS = 40  # orders of the people that are tried for a search with a given number of dead ends


@dataclass(frozen=True, slots=True, kw_only=True)
class KnightsKnavesCertificate:
    """Who says what, and who is a knight."""

    people: int
    statements: tuple[Said, ...]
    knights: tuple[int, ...]
    """1 for each knight, 0 for each knave, in the order of the names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnightsKnaves:
    """Statements that leave one assignment of roles.

    The roles are drawn first and uniformly; then statements that each person can make under them, until together they
    leave no other assignment. Nobody says what is always true, always false, or "I am a knight". The key forgets names
    and the order of statements, and of parts where it does not matter (and, or, iff, exactly), exactly.
    """

    revision: ClassVar[int] = 1
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = "statements up to the names of people and the order of statements and of symmetric parts"
    people: int = 3
    """How many people, 2 to 8."""
    depth: int = 1
    """Connectives above the deepest atom of each statement, exactly; 1 to 5."""
    width: int = 2
    """Parts of an ``and``, ``or`` or ``exactly``, at most; 2 to 5, and never more than there are people."""
    statements: int = 1
    """Statements that each person makes, 1 or 2."""
    connectives: tuple[str, ...] = CONNECTIVES
    """Of what statements are made, in the order of ``CONNECTIVES``; drawn uniformly."""

    def __post_init__(self) -> None:
        for name, low, high in (("people", 2, len(NAMES)), ("depth", 1, 5), ("width", 2, 5), ("statements", 1, 2)):
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise ValueError(f"KnightsKnaves.{name} must be a whole number from {low} to {high}, got {value!r}")
        kinds: object = self.connectives
        in_order = tuple(kind for kind in CONNECTIVES if isinstance(kinds, tuple | list) and kind in kinds)
        if not in_order or kinds != in_order:
            raise ValueError(
                f"KnightsKnaves.connectives must be a tuple of some of {CONNECTIVES}, each once and in this order,"
                f" got {self.connectives!r}"
            )
        _check_unique(self)

    @property
    def symbols(self) -> tuple[str, ...]:
        return (
            *map(str, range(10)),
            *MARKS,
            *("says", "is", "of", "by", "try", "fails"),
            *CONNECTIVES,
            *ROLES,
            *NAMES[: self.people],
        )

    @property
    def instructions(self) -> str:
        return (
            "Everybody is either a knight, who only says what is true, or a knave, who only says what is false. The"
            " prompt lists numbered statements and who made them. 'S iff T' means that both are true or both false, 'S"
            " implies T' that S is false or T is true, 'exactly 1 of S , T' that one of them is true and no other, and"
            " 'Ben claims S' that Ben would say S: Ben is a knight and S is true, or Ben is a knave and S is false."
            " Find out who is what. Answer with everybody's role, separated by commas, such as 'Ann is knight , Ben is"
            " knave'. Working may stand before the answer, divided from it by one # mark."
        )

    @property
    def capacity(self) -> int | None:
        return None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        roles: list[int] = rng.integers(0, 2**self.people, size=count).tolist()
        supply = dice(rng)
        return [self._problem(knights, *_drawn(self, knights, supply)) for knights in roles]

    def enumerate(self) -> None:
        return None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """Deductions from as few statements as possible, or a case analysis that supposes role after role."""
        check_style(style, of="KnightsKnaves")
        certificate = _certificate(problem)
        if style.search == "depth_first":
            steps = _case_analysis(certificate, style.backtracks, rng)
        else:
            steps = arranged(engine.deductions(certificate.statements, certificate.people), style, rng)
        return Trace.worked(steps, _answer(certificate), separator=" ; ")

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the grammar at the top of this file; ``progress`` is the share of statements that fit."""
        certificate = _certificate(problem)
        roles = _read(certificate, completion)
        if isinstance(roles, Flaw):
            return roles.verdict
        fault = violation(engine.puzzle(certificate.statements, certificate.people), roles)
        if fault is None:
            return Verdict(correct=True, well_formed=True, progress=1.0, reason="every statement fits")
        return Verdict(correct=False, well_formed=True, progress=fault.held, reason=fault.reason)

    def solutions(self, problem: Problem) -> None:
        """None: working is free text. See ``answers``."""
        return

    def answers(self, problem: Problem) -> tuple[str, ...]:
        """The one right answer, people in order."""
        return (_answer(_certificate(problem)),)

    def floor(self, problem: Problem) -> float:
        """Success probability of the best guess that is blind to the statements: 1 / 2^people, exact."""
        return 0.5**self.people

    def _problem(self, knights: int, statements: tuple[Said, ...], tables: list[int]) -> Problem:
        roles = tuple(knights >> person & 1 for person in range(self.people))
        told = [
            f"{number} : {NAMES[speaker]} says {engine.told(statement)}"
            for number, (speaker, statement) in enumerate(statements, 1)
        ]
        return Problem(
            prompt=f"{' ; '.join(told)} ?",
            key=f"knights_knaves:{canonical(statements, roles)}",
            certificate=KnightsKnavesCertificate(people=self.people, statements=statements, knights=roles),
            features={
                "people": self.people,
                "statements": len(statements),
                "depth": self.depth,
                "atoms": sum(engine.atoms(statement) for _, statement in statements),
                "knights": sum(roles),
                "lone": _decided_by_one(tables, self.people),
            },
        )


def _drawn(task: KnightsKnaves, knights: int, dice: Dice, most: int = MOST_DRAWS) -> tuple[tuple[Said, ...], list[int]]:
    """Statements that leave these roles alone, and what each leaves.

    They are drawn for all, then anew for a random one at a time, and kept where no more assignments are left.

    Raises:
        Undecided: after ``most`` redraws.
    """
    sayings = Sayings(Grammar(task.people, task.connectives, task.width), task.depth, knights, dice)
    speakers = [speaker for speaker in range(task.people) for _ in range(task.statements)]
    said = [sayings.next(speaker) for speaker in speakers]
    tables = [saying[1] if saying is not None else -1 for saying in said]
    left = _all_of(tables)
    for _ in range(most):
        if left == 1 << knights:
            statements = tuple(saying[0] for saying in said if saying is not None)
            if len(set(statements)) == len(speakers):
                return statements, tables
        place = int(next(dice) * len(speakers))
        saying = sayings.next(speakers[place])
        if saying is not None:
            leaves = _all_of(tables[:place] + tables[place + 1 :]) & saying[1]
            if leaves.bit_count() <= left.bit_count():
                said[place], tables[place], left = saying, saying[1], leaves
    raise Undecided


def _all_of(tables: list[int]) -> int:
    """Where all tables hold."""
    left = -1
    for true in tables:
        left &= true
    return left


class Undecided(Exception):  # noqa: N818  # an outcome of a draw, not a fault
    """No statements were found that leave one assignment."""


@lru_cache(maxsize=256)
def _is_decidable(task: KnightsKnaves, knights: int) -> bool:
    """Whether draws soon decide roles with this many knights (people are alike, so their number is all that counts)."""
    try:
        _drawn(task, (1 << knights) - 1, dice(stream("knights_knaves", "pilot", knights)), PILOT_DRAWS)
    except Undecided:
        return False
    return True


def _check_unique(task: KnightsKnaves) -> None:
    poor = [knights for knights in range(task.people + 1) if not _is_decidable(task, knights)]
    if poor:
        raise ValueError(
            f"KnightsKnaves: statements of depth {task.depth} made of {', '.join(task.connectives)} hardly ever (or"
            f" never) decide everybody's role where {poor[0]} of {task.people} people are knights; allow more"
            " connectives, another depth, or more statements"
        )


def _decided_by_one(tables: list[int], people: int) -> int:
    """How many statements decide somebody's role alone."""
    knights = engine.knight_tables(people)
    return sum(any(true & knight in (0, true) for knight in knights) for true in tables)


def canonical(statements: tuple[Said, ...], roles: tuple[int, ...]) -> str:
    """The statements under canonical names: equal if and only if some renaming makes one puzzle the other."""
    said_by = [[statement for speaker, statement in statements if speaker == person] for person in range(len(roles))]

    def describe(person: int, colours: Sequence[int]) -> str:
        names = list(map(str, colours))
        names[person] = "me"
        return ";".join(sorted([engine.written(statement, names) for statement in said_by[person]]))

    def write(renamed: Sequence[int]) -> str:
        names = list(map(str, renamed))
        people = sorted(range(len(roles)), key=renamed.__getitem__)
        return "|".join(";".join(sorted([engine.written(line, names) for line in said_by[p]])) for p in people)

    return canonical_writing(list(map(str, roles)), describe, write)


def _certificate(problem: Problem) -> KnightsKnavesCertificate:
    certificate = problem.certificate
    if not isinstance(certificate, KnightsKnavesCertificate):
        raise TypeError(
            f"KnightsKnaves reads problems with a KnightsKnavesCertificate, got {type(certificate).__name__}; ask the"
            " task that made the problem"
        )
    return certificate


def _answer(certificate: KnightsKnavesCertificate) -> str:
    return " , ".join(f"{name} is {ROLES[role]}" for name, role in zip(NAMES, certificate.knights, strict=False))


def _case_analysis(certificate: KnightsKnavesCertificate, backtracks: int | None, rng: Generator) -> tuple[Step, ...]:
    """A search in the order of the names, or in the first of some random orders that has as many dead ends as asked."""
    people = certificate.people
    tables = tuple(engine.meaning(said, people) for said in certificate.statements)
    for attempt in range(1 if backtracks is None else MOST_ORDERS):
        order = tuple(range(people)) if attempt == 0 else tuple(rng.permutation(people).tolist())
        goal = tuple(certificate.knights[person] for person in order)
        try:
            return depth_first(engine.Cases(tables, people, order), goal, backtracks, rng)
        except Unrealisable:
            if backtracks is None:
                raise
    raise Unrealisable(f"none of {MOST_ORDERS} orders of the people has a search with exactly {backtracks} dead ends")


def _read(certificate: KnightsKnavesCertificate, completion: str) -> dict[str, int] | Flaw:
    """Everybody's role, 1 for a knight."""
    names = NAMES[: certificate.people]
    found = read_words(completion, (*names, *ROLES, "is", ","))
    if isinstance(found, Flaw):
        return found
    roles: dict[str, int] = {}
    for claim in split_at(found, ","):
        if len(claim) != 3 or claim[0] not in names or claim[1] != "is" or claim[2] not in ROLES:
            return Flaw(f"a role is a name, 'is', and knight or knave, got {' '.join(claim)[:80]!r}")
        if claim[0] in roles:
            return Flaw(f"{claim[0]} is named more than once")
        roles[claim[0]] = ROLES.index(claim[2])
    missing = [name for name in names if name not in roles]
    return Flaw(f"{missing[0]} is not named") if missing else roles


TESTBED: Final[type[Task]] = KnightsKnaves
LEVELS: Final[dict[str, Task]] = {
    "easy": KnightsKnaves(people=3, depth=1, width=2),
    "medium": KnightsKnaves(people=5, depth=2, width=2),
    "hard": KnightsKnaves(people=8, depth=2, width=3),
    "nested": KnightsKnaves(people=5, depth=4, width=3),
    "two_statements": KnightsKnaves(people=5, depth=1, width=3, statements=2),
    "claims": KnightsKnaves(people=4, depth=2, connectives=("not", "and", "claims")),
}
