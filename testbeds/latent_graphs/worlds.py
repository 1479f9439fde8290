"""Worlds of typed modules: which skills and routings a seed draws, what they take and what they give.

A type is one of ``symbol``, ``residue``, ``list``, ``string``, or a pair of one of them (``symbol pair``). Symbols are
letters, residues whole numbers below the modulus, lists and strings rows of up to ``longest`` symbols. A value is a
str, an int, a str of letters, or a tuple of two; it is written ``c``, ``5``, ``[abc]``, ``(abc)``, ``{c,d}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import ClassVar, Final, Literal

from testbeds.latent_graphs.sorts import SKILLS, Apply, Draw, Sort, Value, routings_of
from testbeds.latent_world import LETTERS
from testbeds.streams import stream

BASE_TYPES: Final = ("symbol", "residue", "list", "string")
PAIR: Final = " pair"
ATTEMPTS_A_SORT = 20  # draws of one sort before the next one has its turn: a sort without parameters is soon used up
PROBES = 60  # inputs on which two modules must differ somewhere to count as different
PRIMES: Final = tuple(n for n in range(3, 98) if all(n % d for d in range(2, n)))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphModule:
    """One hidden function."""

    name: str
    """What prompts call it; carries no meaning."""
    kind: Literal["skill", "routing"]
    """``skill``: makes a new value; ``routing``: selects, moves or copies values as they are."""
    sort: str
    """Which sort of skill or routing, such as ``rotate`` or ``branch``."""
    takes: tuple[str, ...]
    """Types of the arguments."""
    gives: str
    """Type of the result."""
    invertible: bool
    """Whether it is a bijection from the values of its argument to those of its result."""
    meaning: str
    """What it does, for a reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphWorld:
    """What determines the hidden modules; shape and size of the graphs are no part of it.

    Skill ``j`` depends on the seed, the alphabet, the modulus, ``longest``, the types and ``j``, and so does routing
    ``j``: a larger world contains the smaller one. Names are dealt to all by a shuffle that is keyed by their numbers.
    """

    revision: ClassVar[int] = 1

    seed: int
    """Another seed draws another world."""
    alphabet: int
    """Letters."""
    modulus: int
    """Residues: 0 to ``modulus`` - 1."""
    longest: int
    """Symbols of a list or string, at most."""
    types: tuple[str, ...]
    """Types of inputs and results, out of ``BASE_TYPES`` and in their order."""
    skills: int
    """How many skills."""
    routings: int
    """How many routings."""

    @property
    def family(self) -> str:
        """What worlds that may share modules have in common."""
        initials = "".join(name[0] for name in self.types)
        return f"{self.seed}/{initials}{self.alphabet}.{self.modulus}.{self.longest}"

    @property
    def identity(self) -> str:
        """The world's part of a problem's key."""
        return f"{self.family}/{self.skills}s{self.routings}r"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """A world, drawn."""

    modules: tuple[GraphModule, ...]
    """In the order of their names' numbers."""
    functions: tuple[Apply, ...]
    """What each does to its arguments."""


@lru_cache(maxsize=64)  # worlds that one process works in
def drawn_world(world: GraphWorld) -> Drawn:
    """The modules of a world, drawn from its seed."""
    found = [*_distinct(world, "skill", world.skills), *_distinct(world, "routing", world.routings)]
    order = stream("latent-graphs", world.seed, "names", world.skills, world.routings).permutation(len(found)).tolist()
    modules, functions = [], []
    for number, place in enumerate(order, start=1):
        kind, sort, meaning, apply = found[place]
        modules.append(
            GraphModule(
                name=f"m{number}",
                kind=kind,
                sort=sort.name,
                takes=sort.takes,
                gives=sort.gives,
                invertible=sort.invertible,
                meaning=meaning,
            )
        )
        functions.append(apply)
    return Drawn(modules=tuple(modules), functions=tuple(functions))


Found = tuple[Literal["skill", "routing"], Sort, str, Apply]


def _distinct(world: GraphWorld, kind: Literal["skill", "routing"], count: int) -> Iterator[Found]:
    """``count`` modules of a kind that differ pairwise and from doing nothing, in turn of all the sorts there are."""
    sorts = sorts_of(world.types, kind)
    taken: set[object] = set()
    for index in range(count):
        key = (world.seed, kind, world.alphabet, world.modulus, world.longest, *world.types, index)
        rng = Draw(stream("latent-graphs", *key), alphabet=world.alphabet, modulus=world.modulus, longest=world.longest)
        for attempt in range(ATTEMPTS_A_SORT * len(sorts)):
            sort = sorts[(index + attempt // ATTEMPTS_A_SORT) % len(sorts)]
            meaning, apply = sort.draw(rng)
            behaviour = _behaviour(world, sort, apply)
            if behaviour is not None and behaviour not in taken:
                break
        else:
            raise ValueError(
                f"{count} different modules of kind {kind!r} were asked, of which {index} were found over"
                f" {', '.join(world.types)} with alphabet={world.alphabet}, modulus={world.modulus} and"
                f" longest={world.longest}; ask for fewer or enlarge these"
            )
        taken.add(behaviour)
        yield kind, sort, meaning, apply


def sorts_of(types: tuple[str, ...], kind: Literal["skill", "routing"]) -> list[Sort]:
    """The sorts of a kind that need no other types than these, in the order in which they take turns."""
    if kind == "skill":
        known = set(types)
        return [sort for sort in SKILLS if known.issuperset((*sort.takes, sort.gives))]
    condition = types[0]  # symbols or residues, as the task demands
    return [sort for of in types for sort in routings_of(of, condition)]


def _behaviour(world: GraphWorld, sort: Sort, apply: Apply) -> object:
    """Types and what a module makes of some inputs, the same for all worlds of a family; None if that is nothing."""
    probes = _probes(world.alphabet, world.modulus, world.longest, sort.takes)
    made = tuple(apply(*probe) for probe in probes)
    if sort.takes == (sort.gives,) and all(probe == (value,) for probe, value in zip(probes, made, strict=True)):
        return None
    return sort.takes, sort.gives, made


@lru_cache(maxsize=256)
def _probes(alphabet: int, modulus: int, longest: int, takes: tuple[str, ...]) -> tuple[tuple[Value, ...], ...]:
    rng = Draw(stream("latent-graphs", "probes", *takes), alphabet=alphabet, modulus=modulus, longest=longest)
    return tuple(tuple(rng.value(of) for of in takes) for _ in range(PROBES))


# ------------------------------------------------------------------------------------------------ values as text


def _write_pair(of: str) -> Callable[[Value], str]:
    part = WRITERS[of]
    return lambda value: f"{{{part(value[0])},{part(value[1])}}}"  # type: ignore[index]  # a pair's value is a tuple


WRITERS: Final[dict[str, Callable[[Value], str]]] = {
    "symbol": str,
    "residue": str,
    "list": lambda value: f"[{value}]",
    "string": lambda value: f"({value})",
}
WRITERS.update({of + PAIR: _write_pair(of) for of in BASE_TYPES})


def value_pattern(world: GraphWorld) -> str:
    """A regular expression for the written values of a world, without white space."""
    letter = f"[{LETTERS[: world.alphabet]}]"
    row = f"{letter}{{0,{world.longest}}}"
    residues = "|".join(str(number) for number in range(world.modulus - 1, -1, -1))
    forms = {"symbol": letter, "residue": f"(?:{residues})", "list": rf"\[{row}\]", "string": rf"\({row}\)"}
    base = [forms[of] for of in world.types]
    pairs = [rf"\{{{form},{form}\}}" for form in base]
    return "|".join((*base, *pairs))


# ------------------------------------------------------------------------------------------------- typed choices

Wanted = tuple[tuple[int, str], ...]
Choice = tuple[int, tuple[int, ...]]


class Choices:
    """Which modules fit a place of a graph."""

    def __init__(self, modules: tuple[GraphModule, ...]) -> None:
        self._modules = modules
        self._known: dict[tuple[str, Wanted], tuple[Choice, ...]] = {}
        self.most_arguments = max(len(module.takes) for module in modules)
        self._given = [
            {module.gives for module in modules if len(module.takes) >= arguments}
            for arguments in range(self.most_arguments + 1)
        ]

    def at(self, demanded: str, wanted: Wanted) -> tuple[Choice, ...]:
        """Each module, with a slot for each result among its arguments, that fits; listed once and kept.

        ``demanded`` is the type that must come out, or "" where any may. ``wanted`` says of each result that it must
        take how many results that one takes itself, and its type, or "" where no other application has demanded one.
        """
        choices = self._known.get((demanded, wanted))
        if choices is None:
            choices = self._known[demanded, wanted] = tuple(self._fitting(demanded, wanted))
        return choices

    def _fitting(self, demanded: str, wanted: Wanted) -> Iterator[Choice]:
        for index, module in enumerate(self._modules):
            if len(module.takes) < len(wanted) or demanded not in ("", module.gives):
                continue
            for slots in permutations(range(len(module.takes)), len(wanted)):
                if all(
                    module.takes[slot] == of if of else module.takes[slot] in self._given[arguments]
                    for slot, (arguments, of) in zip(slots, wanted, strict=True)
                ):
                    yield index, slots


@lru_cache(maxsize=64)
def choices_of(world: GraphWorld) -> Choices:
    """The choices of a world, shared by its tasks."""
    return Choices(drawn_world(world).modules)
