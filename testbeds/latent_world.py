"""Worlds of latent modules: hidden functions on a row of registers, drawn from a seed.

A state is ``width`` registers that hold one symbol of the alphabet each; as a number it is read with register 0 as the
most significant digit. A module maps states to states, so a whole world is one table of shape (modules, states), and
every question about it (generation, floors, the inverse of a program) is indexing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from testbeds.core import Step, Trace
from testbeds.streams import stream

LETTERS: Final = "abcdefghijklnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # one character each; no m, which begins modules
LARGEST_SPACE = 1 << 16  # states: a world's table stays below a megabyte per module, an exact floor below a second
LARGEST_TABLE = 1 << 24  # states of all modules together: 128 megabytes
MOST_MODULES = 4096  # of a kind: a second's work, and far more than a policy could learn from examples
DRAWS = 1000  # attempts at a module that differs from the others; at 5 of 6 taken, failing has probability 1e-79

Kind = Literal["permutation", "map", "binary", "routing"]

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
Row = TypeVar("Row", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One hidden function."""

    name: str
    """What prompts call it; carries no meaning."""
    kind: Kind
    """``permutation`` and ``map`` (not injective) act on register 0; ``binary`` permutes register 0 by a permutation
    that register 1 picks; ``routing`` moves registers."""
    meaning: str
    """What it does, for a reader: ``a>c b>a ...`` for skills, words for routings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What determines the hidden modules; a program's depth is no part of it.

    Module ``j`` of a kind depends on the seed, the alphabet, the width and ``j``: a larger world contains the smaller.
    Names are dealt to the kinds by a keyed shuffle, and within a kind in order. So worlds of permutations alone share
    their names too: ``m1`` to ``m6`` of a world with 8 are those of the world with 6.
    """

    revision: ClassVar[int] = 1

    seed: int
    """Another seed draws another world."""
    alphabet: int
    """Symbols that a register can hold."""
    permutations: int
    """Skills that permute register 0."""
    maps: int
    """Skills that are random non-injective maps of register 0."""
    binaries: int
    """Skills that read registers 0 and 1 and write register 0."""
    routings: int
    """Modules that move registers."""
    width: int
    """Registers of a state."""

    def __post_init__(self) -> None:
        _require_range("alphabet", self.alphabet, 2, len(LETTERS))
        _require_range("width", self.width, 1, 16)
        if self.states > LARGEST_SPACE:
            raise ValueError(
                f"alphabet={self.alphabet} and width={self.width} make {self.states} states, above {LARGEST_SPACE};"
                " take a smaller alphabet or fewer registers"
            )
        different = math.factorial(self.alphabet)
        moving = different - 1  # permutations: the identity is left out
        _require_range("skills - noninvertible", self.permutations, 0, min(MOST_MODULES, moving))
        _require_range("noninvertible", self.maps, 0, min(MOST_MODULES, self.alphabet**self.alphabet - different))
        several = MOST_MODULES if self.width > 1 else 0
        _require_range("binary", self.binaries, 0, min(several, different**self.alphabet - 1))
        _require_range("routings", self.routings, 0, min(several, different))
        if self.modules < 1:
            raise ValueError("a world needs at least one module; raise skills")
        if self.modules * self.states > LARGEST_TABLE:
            raise ValueError(
                f"{self.modules} modules on {self.states} states make a table of more than {LARGEST_TABLE} entries;"
                " take fewer modules, a smaller alphabet or fewer registers"
            )

    @property
    def states(self) -> int:
        """Number of states, ``alphabet ** width``."""
        return int(self.alphabet**self.width)

    @property
    def modules(self) -> int:
        """Number of modules of all kinds."""
        return self.permutations + self.maps + self.binaries + self.routings

    @property
    def identity(self) -> str:
        """The world's part of a problem's key: equal for worlds that agree about all that they both have."""
        alone = self.permutations == self.modules
        kinds = "" if alone else f"/{self.permutations}p{self.maps}n{self.binaries}b{self.routings}r"
        return self.family + kinds

    @property
    def family(self) -> str:
        """What worlds that may share modules have in common."""
        return f"{self.seed}/{self.alphabet}^{self.width}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """A world, drawn."""

    modules: tuple[Module, ...]
    """The modules in the order of their names' numbers."""
    next_NS: NDArray[np.int64]
    """State that module n makes of state s, shape (modules, states); read-only."""
    state_texts: tuple[str, ...]
    """Each state as it is written: its registers' symbols, joined."""
    texts_S: NDArray[np.object_]
    """The same, to take many at once."""
    names_N: NDArray[np.object_]
    """The modules' names."""
    routes_N: NDArray[np.bool_]
    """Whether module n is a routing."""


@lru_cache(maxsize=64)  # worlds that one process works in; the largest takes 0.5 MB per module
def tables(world: World) -> Tables:
    """The modules of a world, drawn from its seed."""
    register_WS = _registers(world)
    kinds = _deal_names(world)
    drawn = {
        "permutation": iter(_distinct_modules(world, "permutation", world.permutations, _permutation, register_WS)),
        "map": iter(_distinct_modules(world, "map", world.maps, _map, register_WS)),
        "binary": iter(_distinct_modules(world, "binary", world.binaries, _binary, register_WS)),
        "routing": iter(_distinct_modules(world, "routing", world.routings, _routing, register_WS)),
    }
    modules, rows = [], []
    for number, kind in enumerate(kinds, start=1):
        row_S, meaning = next(drawn[kind])
        modules.append(Module(name=f"m{number}", kind=kind, meaning=meaning))
        rows.append(row_S)
    next_NS = np.stack(rows)
    next_NS.flags.writeable = False
    symbols = [[LETTERS[value] for value in register_S] for register_S in register_WS.tolist()]
    state_texts = tuple(map("".join, zip(*symbols, strict=True)))
    return Tables(
        modules=tuple(modules),
        next_NS=next_NS,
        state_texts=state_texts,
        texts_S=np.array(state_texts, dtype=object),
        names_N=np.array([module.name for module in modules], dtype=object),
        routes_N=np.array([module.kind == "routing" for module in modules]),
    )


def rows(of: type[Row], count: int, **columns: Iterable[object]) -> list[Row]:
    """``count`` instances of a frozen dataclass with slots, from one column per field.

    Equal to calling the class for each row, at a quarter of the time: the slots are filled column by column, without
    an ``__init__`` that goes through ``object.__setattr__`` for each value. For classes without ``__post_init__``.
    """
    if missing := {field.name for field in fields(of)} ^ set(columns):
        raise TypeError(f"{of.__name__} is made of one column for each field; missing or unknown: {sorted(missing)}")
    made = list(map(object.__new__, repeat(of, count)))
    for name, column in columns.items():
        deque(map(getattr(of, name).__set__, made, column), maxlen=0)  # runs the map and keeps nothing
    return made


_TRACE_SLOTS = [getattr(Trace, name).__set__ for name in ("steps", "text", "answer", "separator", "mark")]


def trace_of(steps: tuple[Step, ...], text: str, answer: str) -> Trace:
    """``Trace(steps=steps, text=text, answer=answer)`` in half the time; see ``rows``."""
    trace = object.__new__(Trace)
    for fill, value in zip(_TRACE_SLOTS, (steps, text, answer, " ", None), strict=True):
        fill(trace, value)
    return trace


Drawn = tuple[NDArray[np.int64], str]


def _registers(world: World) -> NDArray[np.int64]:
    """Symbol that register w holds in state s, shape (width, states)."""
    return np.stack(np.unravel_index(np.arange(world.states), (world.alphabet,) * world.width)).astype(np.int64)


def _state(register_WS: NDArray[np.int64], alphabet: int) -> NDArray[np.int64]:
    """The number of each state, from what its registers hold: the inverse of ``_registers``."""
    return np.asarray(np.ravel_multi_index(tuple(register_WS), (alphabet,) * len(register_WS)), dtype=np.int64)


def _deal_names(world: World) -> list[Kind]:
    """The kind of module behind m1, m2, ..."""
    kinds: list[Kind] = ["permutation"] * world.permutations
    kinds += ["map"] * world.maps
    kinds += ["binary"] * world.binaries
    kinds += ["routing"] * world.routings
    counts = (world.permutations, world.maps, world.binaries, world.routings)
    return [kinds[place] for place in stream("latent-modules", world.seed, "names", *counts).permutation(len(kinds))]


def _distinct_modules(
    world: World,
    kind: Kind,
    count: int,
    draw: Callable[[World, NDArray[np.int64], Generator, int], Drawn],
    register_WS: NDArray[np.int64],
) -> list[Drawn]:
    """``count`` modules of a kind, pairwise different and none the identity."""
    modules: list[Drawn] = []
    taken = {np.arange(world.states).tobytes()}
    for index in range(count):
        rng = stream("latent-modules", world.seed, kind, world.alphabet, index)
        for attempt in range(DRAWS):
            row_S, meaning = draw(world, register_WS, rng, index + attempt)
            if row_S.tobytes() not in taken:
                break
        else:
            raise ValueError(
                f"{count} different modules of kind {kind!r} were asked, of which {index} were found in an alphabet of"
                f" {world.alphabet} and {world.width} registers; ask for fewer or enlarge the alphabet"
            )
        taken.add(row_S.tobytes())
        modules.append((row_S, meaning))
    return modules


def _permutation(world: World, register_WS: NDArray[np.int64], rng: Generator, _attempt: int) -> Drawn:
    return _skill(rng.permutation(world.alphabet), register_WS)


def _map(world: World, register_WS: NDArray[np.int64], rng: Generator, _attempt: int) -> Drawn:
    """A uniform draw from the maps that are no permutation: a permutation is drawn again."""
    image_A = rng.integers(world.alphabet, size=world.alphabet)
    while len(np.unique(image_A)) == world.alphabet:  # at most half of all maps, so this ends
        image_A = rng.integers(world.alphabet, size=world.alphabet)
    return _skill(image_A, register_WS)


def _skill(image_A: NDArray[np.int64], register_WS: NDArray[np.int64]) -> Drawn:
    meaning = " ".join(f"{LETTERS[value]}>{LETTERS[image]}" for value, image in enumerate(image_A))
    after_WS = register_WS.copy()
    after_WS[0] = image_A[register_WS[0]]
    return _state(after_WS, len(image_A)), meaning


def _binary(world: World, register_WS: NDArray[np.int64], rng: Generator, _attempt: int) -> Drawn:
    image_AA = rng.permuted(np.tile(np.arange(world.alphabet), (world.alphabet, 1)), axis=1)
    after_WS = register_WS.copy()
    after_WS[0] = image_AA[register_WS[1], register_WS[0]]
    rows = ("".join(LETTERS[image] for image in image_A) for image_A in image_AA)
    meaning = " ".join(f"{LETTERS[value]}:{row}" for value, row in enumerate(rows))
    return _state(after_WS, world.alphabet), meaning


def _routing(world: World, register_WS: NDArray[np.int64], rng: Generator, attempt: int) -> Drawn:
    """A routing; successive attempts go round the four sorts, so that a few routings already cover them."""
    first, second = rng.choice(world.width, size=2, replace=False).tolist()
    half_A = rng.permutation(world.alphabet)[: world.alphabet // 2]
    after_WS = register_WS.copy()
    match attempt % 4:
        case 0:
            after_WS[[first, second]] = register_WS[[second, first]]
            meaning = f"swap registers {first} and {second}"
        case 1:
            after_WS[second] = register_WS[first]
            meaning = f"duplicate register {first} into {second}"
        case 2:
            in_half_S = np.isin(register_WS[0], half_A)
            other = max(first, second)
            after_WS[0] = np.where(in_half_S, register_WS[other], register_WS[0])
            after_WS[other] = np.where(in_half_S, register_WS[0], register_WS[other])
            letters = "".join(sorted((LETTERS[value] for value in half_A), key=LETTERS.index))
            meaning = f"swap registers 0 and {other} if register 0 holds one of {letters}"
        case _:
            turn = int(rng.integers(1, world.width))
            after_WS = np.roll(register_WS, turn, axis=0)
            meaning = f"rotate registers by {turn}"
    return _state(after_WS, world.alphabet), meaning


def _require_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        needs = " (it moves or reads a second register: raise width)" if high == 0 else ""
        raise ValueError(f"LatentModules.{name} must be between {low} and {high}, got {value}{needs}")
