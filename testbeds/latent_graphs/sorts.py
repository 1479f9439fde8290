"""The sorts of modules: skills on symbols, residues, lists and strings, and routings on any of them.

Each sort draws its parameters and gives the meaning, a text from which the function can be rebuilt, and the function.
Results that would be longer than ``longest`` are cut at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from numpy.random import Generator

from testbeds.latent_world import LETTERS

Value = str | int | tuple[Any, Any]
Apply = Callable[..., Any]
Meant = tuple[str, Apply]


class Draw:
    """Draws of letters, numbers, tables and values in one world's ranges."""

    def __init__(self, rng: Generator, *, alphabet: int, modulus: int, longest: int) -> None:
        self.letters = LETTERS[:alphabet]
        self.modulus = modulus
        self.longest = longest
        self._rng = rng

    def below(self, limit: int) -> int:
        return int(self._rng.integers(limit))

    def letter(self) -> str:
        return self.letters[self.below(len(self.letters))]

    def shuffled(self) -> str:
        """The alphabet in an order of its own."""
        return "".join(self.letters[place] for place in self._rng.permutation(len(self.letters)).tolist())

    def row(self) -> str:
        """1 to ``longest`` letters; each length is as likely."""
        return "".join(self.letter() for _ in range(1 + self.below(self.longest)))

    def value(self, of: str) -> Value:
        """A uniform value of a type; of lists and strings, the length is uniform, then each letter."""
        if of.endswith(" pair"):
            part = of.removesuffix(" pair")
            return self.value(part), self.value(part)
        if of == "residue":
            return self.below(self.modulus)
        return self.letter() if of == "symbol" else self.row()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """One sort of module."""

    name: str
    takes: tuple[str, ...]
    gives: str
    invertible: bool = False
    draw: Callable[[Draw], Meant]


def _table(pairs: str, images: str) -> str:
    return " ".join(f"{letter}>{image}" for letter, image in zip(pairs, images, strict=True))


def _lossy(draw: Draw) -> str:
    """The images of a map that loses something: of a uniform map, drawn again while it is a permutation."""
    images = draw.shuffled()
    while len(set(images)) == len(images):  # at most half of all maps are permutations, so this ends
        images = "".join(draw.letter() for _ in draw.letters)
    return images


# ------------------------------------------------------------------------------------------------ symbols, residues


def _permute(draw: Draw) -> Meant:
    images = draw.shuffled()
    return _table(draw.letters, images), dict(zip(draw.letters, images, strict=True)).__getitem__


def _collapse(draw: Draw) -> Meant:
    images = _lossy(draw)
    return _table(draw.letters, images), dict(zip(draw.letters, images, strict=True)).__getitem__


def _combine(draw: Draw) -> Meant:
    letters = draw.letters
    rows = {second: draw.shuffled() for second in letters}
    meaning = " ".join(f"{second}:{row}" for second, row in rows.items())
    table = {(first, second): rows[second][place] for second in letters for place, first in enumerate(letters)}
    return meaning, lambda first, second: table[first, second]


def _affine(draw: Draw) -> Meant:
    a, b, p = 1 + draw.below(draw.modulus - 1), draw.below(draw.modulus), draw.modulus
    return f"{a}*x+{b} mod {p}", lambda x: (a * x + b) % p


def _quadratic(draw: Draw) -> Meant:
    a, b, p = 1 + draw.below(draw.modulus - 1), draw.below(draw.modulus), draw.modulus
    return f"{a}*x*x+{b} mod {p}", lambda x: (a * x * x + b) % p


def _add(draw: Draw) -> Meant:
    p = draw.modulus
    a, b, c = 1 + draw.below(p - 1), 1 + draw.below(p - 1), draw.below(p)
    return f"{a}*x+{b}*y+{c} mod {p}", lambda x, y: (a * x + b * y + c) % p


def _multiply(draw: Draw) -> Meant:
    a, b, p = 1 + draw.below(draw.modulus - 1), draw.below(draw.modulus), draw.modulus
    return f"{a}*x*y+{b} mod {p}", lambda x, y: (a * x * y + b) % p


def _number(draw: Draw) -> Meant:
    table = {letter: draw.below(draw.modulus) for letter in draw.letters}
    return " ".join(f"{letter}>{number}" for letter, number in table.items()), table.__getitem__


def _letter(draw: Draw) -> Meant:
    table = {number: draw.letter() for number in range(draw.modulus)}
    return " ".join(f"{number}>{letter}" for number, letter in table.items()), table.__getitem__


# ------------------------------------------------------------------------------------------------ lists, strings


def _relabel(draw: Draw) -> Meant:
    images = draw.shuffled()
    table = str.maketrans(draw.letters, images)
    return _table(draw.letters, images), lambda row: row.translate(table)


def _reverse(_draw: Draw) -> Meant:
    return "reverse", lambda row: row[::-1]


def _rotate(draw: Draw) -> Meant:
    turn = 1 + draw.below(max(1, draw.longest - 1))

    def rotate(row: str) -> str:
        place = turn % len(row) if row else 0
        return row[place:] + row[:place]

    return f"rotate left by {turn}", rotate


def _drop(draw: Draw) -> Meant:
    count = 1 + draw.below(max(1, draw.longest - 1))
    return f"drop {count}", lambda row: row[count:]


def _take(draw: Draw) -> Meant:
    count = 1 + draw.below(max(1, draw.longest - 1))
    return f"take {count}", lambda row: row[:count]


def _sort(draw: Draw) -> Meant:
    order = draw.shuffled()
    place = order.index
    return f"sort by {order}", lambda row: "".join(sorted(row, key=place))


def _concatenate(draw: Draw) -> Meant:
    most = draw.longest
    return f"concatenate up to {most}", lambda one, other: (one + other)[:most]


def _interleave(draw: Draw) -> Meant:
    most = draw.longest

    def interleave(one: str, other: str) -> str:
        both = "".join(a + b for a, b in zip(one, other, strict=False))
        shorter = len(both) // 2
        return (both + one[shorter:] + other[shorter:])[:most]

    return f"interleave up to {most}", interleave


def _push(draw: Draw) -> Meant:
    most = draw.longest
    return f"put second before first up to {most}", lambda row, letter: (letter + row)[:most]


def _attach(draw: Draw) -> Meant:
    most = draw.longest
    return f"put second after first up to {most}", lambda row, letter: (row + letter)[:most]


def _append(draw: Draw) -> Meant:
    letter, most = draw.letter(), draw.longest
    return f"append {letter} up to {most}", lambda row: (row + letter)[:most]


def _double(draw: Draw) -> Meant:
    most = draw.longest
    return f"double each up to {most}", lambda row: "".join(letter + letter for letter in row)[:most]


def _replace(draw: Draw) -> Meant:
    order = draw.shuffled()
    old, new = order[0], order[1]
    return f"replace {old} by {new}", lambda row: row.replace(old, new)


def _pick(draw: Draw) -> Meant:
    place, none = draw.below(draw.longest), draw.letter()
    meaning = f"element {place} counted round, of nothing {none}"
    return meaning, lambda row: row[place % len(row)] if row else none


def _length(draw: Draw) -> Meant:
    a, b, p = 1 + draw.below(draw.modulus - 1), draw.below(draw.modulus), draw.modulus
    return f"{a}*length+{b} mod {p}", lambda row: (a * len(row) + b) % p


def _skill(name: str, signature: str, draw: Callable[[Draw], Meant], *, invertible: bool = False) -> Sort:
    takes, _, gives = signature.partition(" > ")
    return Sort(name=name, takes=tuple(takes.split()), gives=gives, invertible=invertible, draw=draw)


SKILLS: Final = (
    _skill("permute", "symbol > symbol", _permute, invertible=True),
    _skill("affine", "residue > residue", _affine, invertible=True),
    _skill("relabel", "list > list", _relabel, invertible=True),
    _skill("encipher", "string > string", _relabel, invertible=True),
    _skill("collapse", "symbol > symbol", _collapse),
    _skill("quadratic", "residue > residue", _quadratic),
    _skill("sort", "list > list", _sort),
    _skill("replace", "string > string", _replace),
    _skill("combine", "symbol symbol > symbol", _combine),
    _skill("add", "residue residue > residue", _add),
    _skill("concatenate", "list list > list", _concatenate),
    _skill("interleave", "string string > string", _interleave),
    _skill("number", "symbol > residue", _number),
    _skill("letter", "residue > symbol", _letter),
    _skill("pick", "list > symbol", _pick),
    _skill("push", "list symbol > list", _push),
    _skill("spell", "list > string", _relabel, invertible=True),
    _skill("attach", "string symbol > string", _attach),
    _skill("length", "string > residue", _length),
    _skill("reverse", "list > list", _reverse, invertible=True),
    _skill("multiply", "residue residue > residue", _multiply),
    _skill("reverse string", "string > string", _reverse, invertible=True),
    _skill("rotate", "list > list", _rotate, invertible=True),
    _skill("double", "string > string", _double),
    _skill("drop", "list > list", _drop),
    _skill("append", "string > string", _append),
    _skill("take", "list > list", _take),
)
"""In the order in which they take turns: a few skills already cover each type with one that loses nothing."""


# ------------------------------------------------------------------------------------------------ routings


def _select(draw: Draw) -> Meant:
    if draw.below(2):
        return "second of two", lambda _one, other: other
    return "first of two", lambda one, _other: one


def _part(draw: Draw) -> Meant:
    which = draw.below(2)
    return f"{('first', 'second')[which]} of a pair", lambda pair: pair[which]


def _branch_on(condition: str) -> Callable[[Draw], Meant]:
    def branch(draw: Draw) -> Meant:
        if condition == "symbol":
            order: list[Any] = list(draw.shuffled())
            chosen = sorted(order[: len(order) // 2], key=LETTERS.index)
        else:
            order = sorted(range(draw.modulus), key=lambda _: draw.below(1 << 40))
            chosen = sorted(order[: len(order) // 2])
        true = frozenset(chosen)
        meaning = f"second if first is one of {' '.join(map(str, chosen))}, else third"
        return meaning, lambda value, one, other: one if value in true else other

    return branch


def _fixed(meaning: str, apply: Apply) -> Callable[[Draw], Meant]:
    return lambda _draw: (meaning, apply)


def routings_of(of: str, condition: str) -> tuple[Sort, ...]:
    """The sorts of routing of values of one type, in the order in which they take turns."""
    pair = f"{of} pair"
    return (
        Sort(name="select", takes=(of, of), gives=of, draw=_select),
        Sort(name="branch", takes=(condition, of, of), gives=of, draw=_branch_on(condition)),
        Sort(name="duplicate", takes=(of,), gives=pair, draw=_fixed("twice", lambda one: (one, one))),
        Sort(name="part", takes=(pair,), gives=of, draw=_part),
        Sort(name="swap", takes=(pair,), gives=pair, invertible=True, draw=_fixed("swap", lambda two: two[::-1])),
        Sort(name="pair", takes=(of, of), gives=pair, draw=_fixed("pair", lambda one, other: (one, other))),
    )
