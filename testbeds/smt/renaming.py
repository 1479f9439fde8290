"""Canonical forms under renaming, exact: colours that renaming cannot change are refined, ties are tried out.

The method is individualisation and refinement (McKay 1981): things get colours, a thing's colour becomes its colour
and what it says of coloured things, until no class splits. If every class has one member the colours are names; else
each member of the first class with more is told apart in turn, and the least writing of all is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Describe = Callable[[int, Sequence[int]], str]
"""What thing ``i`` is among things with these colours, independent of how they are called."""


def canonical_writing(
    start: Sequence[str],
    describe: Describe,
    write: Callable[[Sequence[int]], str],
    are_twins: Callable[[int, int], bool] | None = None,
) -> str:
    """The least ``write(names)`` over the namings that refinement leaves; ``names[i]`` is the new name of thing ``i``.

    Args:
        start: What is known of each thing that renaming does not change.
        describe: Refines the colours.
        write: The writing of everything under new names 0, 1, ...; it must not depend on the old ones.
        are_twins: Whether exchanging two things changes nothing: one member stands for a class of twins.
    """
    return _least(_ranks(start), describe, write, are_twins)


def _least(
    colours: list[int],
    describe: Describe,
    write: Callable[[Sequence[int]], str],
    are_twins: Callable[[int, int], bool] | None,
) -> str:
    colours = _refined(colours, describe)
    if len(set(colours)) == len(colours):
        return write(colours)
    tied = min(colour for colour in colours if colours.count(colour) > 1)
    members = [thing for thing, colour in enumerate(colours) if colour == tied]
    if are_twins is not None and all(are_twins(members[0], other) for other in members[1:]):
        members = members[:1]
    writings = []
    for member in members:
        apart = [2 * colour + (colour == tied and thing != member) for thing, colour in enumerate(colours)]
        writings.append(_least(_ranks(apart), describe, write, are_twins))
    return min(writings)


def _refined(colours: list[int], describe: Describe) -> list[int]:
    """Colours that no further description splits."""
    classes = len(set(colours))
    while classes < len(colours):
        colours = _ranks([(colour, describe(thing, colours)) for thing, colour in enumerate(colours)])
        if len(set(colours)) == classes:
            break
        classes = len(set(colours))
    return colours


def _ranks(labels: Sequence[str] | Sequence[int] | Sequence[tuple[int, str]]) -> list[int]:
    """The place of each label among the different ones, ascending."""
    place = {label: rank for rank, label in enumerate(sorted(set(labels)))}  # type: ignore[type-var]
    return [place[label] for label in labels]
