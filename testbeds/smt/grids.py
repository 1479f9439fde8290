"""Squares under their symmetries: rotations and reflections, and the permutations of a Latin square."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from testbeds.smt.renaming import canonical_writing


def rows_of(text: str, width: int) -> list[str]:
    """A text cut into pieces of one width."""
    return [text[start : start + width] for start in range(0, len(text), width)]


@cache
def images(size: int) -> tuple[tuple[int, ...], ...]:
    """Where each cell of a square, counted by rows, goes under the 8 rotations and reflections."""
    last = size - 1
    quarter = [column * size + last - row for row in range(size) for column in range(size)]
    mirror = [row * size + last - column for row in range(size) for column in range(size)]
    turns = [list(range(size**2))]
    for _ in range(3):
        turns.append([quarter[place] for place in turns[-1]])
    return (*map(tuple, turns), *(tuple(mirror[place] for place in turn) for turn in turns))


def turned(size: int, cells: Sequence[int], image: Sequence[int]) -> tuple[int, ...]:
    """The square with each cell where the image takes it."""
    moved = [0] * size**2
    for place, cell in enumerate(cells):
        moved[image[place]] = cell
    return tuple(moved)


def relabelled(size: int, cells: tuple[int, ...]) -> str:
    """The givens of a Latin square under permutation of rows, columns and numbers and exchange of these three roles.

    A given is a triple (row, column, number); 0 is an empty cell. Equal for two squares if and only if one becomes the
    other under these. In a square that is nearly full all rows look alike to the refinement, so it begins with what
    tells them apart: how the givens of one hang together with those of each other.
    """
    givens = [(place // size, size + place % size, 2 * size + cell - 1) for place, cell in enumerate(cells) if cell]
    touching: list[list[tuple[int, int]]] = [[] for _ in range(3 * size)]
    for a, b, c in givens:
        touching[a].append((b, c))
        touching[b].append((a, c))
        touching[c].append((a, b))

    def describe(thing: int, colours: Sequence[int]) -> str:
        seen = sorted(tuple(sorted((colours[a], colours[b]))) for a, b in touching[thing])
        mates = sorted(colours[mate] for mate in range(thing // size * size, thing // size * size + size))
        return f"{seen}{mates}"

    def write(names: Sequence[int]) -> str:
        roles = sorted(".".join(map(str, sorted(names[role * size : (role + 1) * size]))) for role in range(3))
        triples = sorted(sorted((names[a], names[b], names[c])) for a, b, c in givens)
        return f"{'/'.join(roles)}:{','.join('.'.join(map(str, triple)) for triple in triples)}"

    def are_twins(one: int, other: int) -> bool:
        return one // size == other // size and not touching[one] and not touching[other]

    start = [""] * (3 * size)
    if 2 * len(givens) > size**2:
        start = [_ties(thing, size, touching) for thing in range(3 * size)]
    return canonical_writing(start, describe, write, are_twins)


def _ties(thing: int, size: int, touching: Sequence[Sequence[tuple[int, int]]]) -> str:
    """For each other thing of the same role: the sizes of the parts that the givens of the two link together."""
    first = thing // size * size
    mates = [mate for mate in range(first, first + size) if mate != thing]
    return f"{sorted(_parts([*touching[thing], *touching[mate]]) for mate in mates)}"


def _parts(links: Sequence[tuple[int, int]]) -> list[int]:
    part: dict[int, set[int]] = {}
    for one, other in links:
        joined = part.get(one, {one}) | part.get(other, {other})
        part |= dict.fromkeys(joined, joined)
    return sorted(map(len, part.values()))
