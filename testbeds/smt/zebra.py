"""Zebra puzzles: which value of each attribute belongs to which house, told by few clues.

Texts (white space between words is free, and means nothing):

============  ===========================================  ==========================================================
what          example                                      grammar
============  ===========================================  ==========================================================
prompt        ``street 1 2 ; colour red green ; pet cat    ``"street" HOUSE+ (";" ATTRIBUTE VALUE+)+ (";" "clue"
              dog ; clue 1 : red is directly left of       NUMBER ":" CLUE)+ "?"``
              cat ?``
CLUE          ``red is with cat``                          same house; ``is not with``: different houses
..            ``red is directly left of cat``              the house just before (``left``)
..            ``red is next to cat``                       houses side by side (``next``)
..            ``red is somewhere left of cat``             a smaller house number (``before``)
..            ``red is in house 2``                        (``at``); ``is not in house 2`` (``not_at``)
answer        ``1 : red dog ; 2 : green cat``              ``ROW (";" ROW)*`` with ``ROW := HOUSE ":" VALUE+``
.. worked     ``clue 1 : red in 1 # 1 : red dog ; ...``    ``WORKING "#" ANSWER``: one mark, WORKING is free text
============  ===========================================  ==========================================================

An answer has one row for each house, in any order; a row has one value of each attribute, in the prompt's order. It is
right if each value stands once and every clue holds, and each puzzle has one right answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial
from typing import ClassVar, Final

import numpy as np
from numpy.random import Generator

from testbeds.core import Problem, Task, Trace, TraceStyle, Verdict
from testbeds.smt import zebra_engine as engine
from testbeds.smt import zebra_kernels as kernels
from testbeds.smt.answers import Flaw
from testbeds.smt.language import violation
from testbeds.smt.working import arranged, check_style, depth_first, read_words, split_at
from testbeds.smt.zebra_engine import KINDS, WORDS, Clue

DECISIVE = ("left", "before", "at", "not_at")  # all others hold in a street's mirror image, too


@dataclass(frozen=True, slots=True, kw_only=True)
class ZebraCertificate:
    """The clues, as zebra_engine.py writes them, and where each value belongs."""

    houses: int
    attributes: int
    clues: tuple[Clue, ...]
    places: tuple[int, ...]
    """The house of each value, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Zebra:
    """Clues that leave one arrangement; without ``redundant`` ones, each clue is needed.

    The arrangement is uniform over all ``houses!`` to the power ``attributes``, whatever the clues: they are drawn for
    unnamed values, and names are dealt afterwards. The key forgets the order of the clues, the names of values and of
    attributes, and the direction of the street, exactly: two problems have one key if and only if such a renaming makes
    one the other. (It is cheap because a solved puzzle names its values itself, by their houses.)
    """

    revision: ClassVar[int] = 1
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = (
        "set of clues up to order, names of values within an attribute, order of attributes and direction of the street"
    )
    houses: int = 3
    """How many houses, 2 to 6."""
    attributes: int = 3
    """How many attributes a house has, 2 to 6."""
    kinds: tuple[str, ...] = KINDS
    """Which kinds of clue are told, in the order of ``KINDS``; a clue's kind is drawn uniformly."""
    redundant: int = 0
    """True clues that are told beyond a minimal set."""

    def __post_init__(self) -> None:
        for name in ("houses", "attributes"):
            value = getattr(self, name)
            if type(value) is not int or not 2 <= value <= 6:
                raise ValueError(f"Zebra.{name} must be a whole number from 2 to 6, got {value!r}")
        kinds: object = self.kinds
        in_order = tuple(kind for kind in KINDS if isinstance(kinds, tuple | list) and kind in kinds)
        if not in_order or kinds != in_order:
            raise ValueError(
                f"Zebra.kinds must be a tuple of some of {KINDS}, each once and in this order, got {self.kinds!r}"
            )
        if not set(DECISIVE) & set(self.kinds):
            raise ValueError(
                f"Zebra.kinds={self.kinds!r} cannot tell a street from its mirror image or the houses apart, so no"
                f" puzzle would have one solution; add one of {', '.join(DECISIVE)}"
            )
        if type(self.redundant) is not int or not 0 <= self.redundant <= self.most_redundant:
            raise ValueError(
                f"Zebra.redundant must be a whole number from 0 to {self.most_redundant}, the room that"
                f" is left beside a minimal set of such clues, got {self.redundant!r}"
            )

    @property
    def most_redundant(self) -> int:
        """Redundant clues that a puzzle of this size always has room for."""
        n, m = self.houses, self.attributes
        true = {
            "same": n * m * (m - 1) // 2,
            "not_same": n * (n - 1) * m * (m - 1) // 2,
            "left": (n - 1) * m * m,
            "next": (n - 1) * m * m,
            "before": n * (n - 1) // 2 * m * m,
            "at": n * m,
            "not_at": n * (n - 1) * m,
        }
        room = m if self.kinds == ("at",) else n * m  # all houses but one of each attribute must be told
        return min(sum(true[kind] for kind in self.kinds) // 4, room)

    @property
    def symbols(self) -> tuple[str, ...]:
        return (
            *map(str, range(10)),
            *engine.MARKS,
            *engine.GRAMMAR,
            *engine.REASONING,
            *list(WORDS)[: self.attributes],
            *engine.names(self.houses, self.attributes),
        )

    @property
    def instructions(self) -> str:
        return (
            "A street has numbered houses, 1 on the left. Each house has one value of each attribute, and each value"
            " belongs to one house. The prompt lists the houses, each attribute with its values, and numbered clues:"
            " 'red is with cat' means the same house, 'directly left of' the house just before, 'next to' side by"
            " side, 'somewhere left of' a smaller house number. Find the one arrangement that fits all clues. Answer"
            " with a row for each house, its values in the order in which the prompt lists the attributes, such as"
            " '1 : red dog ; 2 : green cat'. Working may stand before the answer, divided from it by one # mark."
        )

    @property
    def capacity(self) -> int | None:
        return None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        n, m = self.houses, self.attributes
        seeds = rng.integers(0, 2**64, size=count, dtype=np.uint64)
        dealt = rng.permuted(np.tile(np.arange(n), (count * m, 1)), axis=1).reshape(count, m, n)
        words = (dealt + n * np.arange(m)[:, None]).reshape(count, n * m)  # the word of each value's place
        clues, counts, codes, nodes = kernels.draw(n, m, *_tables(self), self.redundant, _orders(m), seeds)
        if counts.min(initial=0) < 0:
            raise ValueError(f"{self} has too few true clues to draw from; lower redundant or allow more kinds")
        x = np.take_along_axis(words, clues[:, :, 1], axis=1)
        y = np.take_along_axis(words, clues[:, :, 2], axis=1)
        kind = clues[:, :, 0]
        told = np.stack((kind, x, np.where(kind >= kernels.AT, clues[:, :, 2], y)), axis=2)
        places = np.argsort(words, axis=1) % n
        return [
            self._problem(tuple(map(tuple, told[i, :size].tolist())), tuple(place), codes[i, :size].tolist(), node)
            for i, (size, place, node) in enumerate(zip(counts.tolist(), places.tolist(), nodes.tolist(), strict=True))
        ]

    def enumerate(self) -> None:
        return None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """Deductions that each narrow a value, or a search that places value after value.

        The search tries houses from the left, and places next the value that most clues tie to placed ones.
        """
        check_style(style, of="Zebra")
        certificate = _certificate(problem)
        shape = (certificate.houses, certificate.attributes, certificate.clues)
        if style.search == "depth_first":
            order = engine.most_told_first(*shape)
            goal = tuple(certificate.places[value] for value in order)
            steps = depth_first(engine.Placements(*shape, order), goal, style.backtracks, rng)
        else:
            steps = arranged(engine.deductions(*shape), style, rng)
        return Trace.worked(steps, _answer(certificate), separator=" ; ")

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the grammar at the top of this file; ``progress`` is the share of rules and clues met."""
        certificate = _certificate(problem)
        places = _read(certificate, completion)
        if isinstance(places, Flaw):
            return places.verdict
        words = engine.names(certificate.houses, certificate.attributes)
        missing = [word for word in words if word not in places]
        if missing:
            reason = f"{missing[0]} stands in no row, and another value in more than one"
            return Verdict(correct=False, well_formed=True, progress=0.0, reason=reason)
        fault = violation(engine.puzzle(certificate.clues, certificate.houses, certificate.attributes), places)
        if fault is None:
            return Verdict(correct=True, well_formed=True, progress=1.0, reason="every clue holds")
        return Verdict(correct=False, well_formed=True, progress=fault.held, reason=_named(certificate, fault.reason))

    def solutions(self, problem: Problem) -> None:
        """None: working is free text. See ``answers``."""
        return

    def answers(self, problem: Problem) -> tuple[str, ...]:
        """The one right table, houses in order."""
        return (_answer(_certificate(problem)),)

    def floor(self, problem: Problem) -> float:
        """Success probability of the best guess that is blind to the clues: 1 / houses! ^ attributes, exact."""
        return float(factorial(self.houses)) ** -self.attributes

    def _problem(self, clues: tuple[Clue, ...], places: tuple[int, ...], codes: list[int], nodes: int) -> Problem:
        n, m = self.houses, self.attributes
        told = " ; ".join([f"clue {i} : {engine.told(clue, n, m)}" for i, clue in enumerate(clues, 1)])
        return Problem(
            prompt=f"{_heading(n, m)} ; {told} ?",
            key=_key(n, m, codes),
            certificate=ZebraCertificate(houses=n, attributes=m, clues=clues, places=places),
            features={
                "houses": n,
                "attributes": m,
                "clues": len(clues),
                "placed": sum(kind == kernels.AT for kind, _, _ in clues),
                "nodes": nodes,
            },
        )


def canonical(certificate: ZebraCertificate) -> str:
    """The clues in canonical form: equal if and only if some renaming, reordering or mirroring makes one the other."""
    n, m = certificate.houses, certificate.attributes
    place = [value // n * n + house for value, house in enumerate(certificate.places)]
    clues = np.array([(k, place[x], y if k >= kernels.AT else place[y]) for k, x, y in certificate.clues])
    codes = np.zeros(len(clues), dtype=np.int64)
    kernels.canonical_codes(n, m, clues.astype(np.int64), len(clues), _orders(m), codes)
    return _key(n, m, codes.tolist())


def _key(houses: int, attributes: int, codes: list[int]) -> str:
    return f"zebra:{houses}x{attributes}:{','.join(map(str, codes))}"


@lru_cache(maxsize=64)
def _tables(task: Zebra) -> tuple[kernels.Ints, kernels.Ints, kernels.Ints]:
    """What the kernels need to know of a task: image, preimage, numbers of the kinds."""
    return *kernels.tables(task.houses), np.array([KINDS.index(kind) for kind in task.kinds], dtype=np.int64)


@lru_cache(maxsize=8)
def _orders(attributes: int) -> kernels.Ints:
    return kernels.attribute_orders(attributes)


@lru_cache(maxsize=32)
def _heading(houses: int, attributes: int) -> str:
    words = engine.names(houses, attributes)
    lists = [
        f"{attribute} {' '.join(words[a * houses : (a + 1) * houses])}"
        for a, attribute in enumerate(list(WORDS)[:attributes])
    ]
    return " ; ".join((f"street {' '.join(str(house + 1) for house in range(houses))}", *lists))


def _certificate(problem: Problem) -> ZebraCertificate:
    certificate = problem.certificate
    if not isinstance(certificate, ZebraCertificate):
        raise TypeError(
            f"Zebra reads problems with a ZebraCertificate, got {type(certificate).__name__}; ask the task that made"
            " the problem"
        )
    return certificate


def _answer(certificate: ZebraCertificate) -> str:
    n, words = certificate.houses, engine.names(certificate.houses, certificate.attributes)
    rows = [
        [word for word, place in zip(words, certificate.places, strict=True) if place == house] for house in range(n)
    ]
    return " ; ".join(f"{house} : {' '.join(row)}" for house, row in enumerate(rows, 1))


def _read(certificate: ZebraCertificate, completion: str) -> dict[str, int] | Flaw:
    """The house of each value that stands in a table, the last one where it stands twice."""
    n, m = certificate.houses, certificate.attributes
    words = engine.names(n, m)
    houses = tuple(str(house + 1) for house in range(n))
    found = read_words(completion, (*words, *houses, ":", ";"))
    if isinstance(found, Flaw):
        return found
    attribute = {word: place // n for place, word in enumerate(words)}
    places: dict[str, int] = {}
    seen: list[str] = []
    for row in split_at(found, ";"):
        if len(row) < 2 or row[0] not in houses or row[1] != ":":
            return Flaw(f"a row is a house from 1 to {n}, a colon and values, got {' '.join(row)[:80]!r}")
        if [attribute.get(word) for word in row[2:]] != list(range(m)):
            return Flaw(f"the row of house {row[0]} does not have one value of each attribute, in their order")
        if row[0] in seen:
            return Flaw(f"house {row[0]} has more than one row")
        seen.append(row[0])
        places |= dict.fromkeys(row[2:], int(row[0]))
    if len(seen) < n:
        return Flaw(f"the table has {len(seen)} of {n} rows")
    return places


def _named(certificate: ZebraCertificate, reason: str) -> str:
    """The reason, with the clue's number in front where a clue is broken."""
    for number, clue in enumerate(certificate.clues, 1):
        if reason == f"{engine.told(clue, certificate.houses, certificate.attributes)} is violated":
            return f"clue {number}: {reason}"
    return reason


TESTBED: Final[type[Task]] = Zebra
LEVELS: Final[dict[str, Task]] = {
    "easy": Zebra(houses=3, attributes=3),
    "medium": Zebra(houses=4, attributes=4),
    "hard": Zebra(houses=5, attributes=5),
    "expert": Zebra(houses=6, attributes=6),
    "redundant": Zebra(houses=4, attributes=4, redundant=4),
    "relations": Zebra(houses=4, attributes=3, kinds=("same", "left", "next", "before")),
}
