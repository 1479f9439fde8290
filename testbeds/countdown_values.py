"""Which targets many numbers reach, compiled: sets of values of all small parts, met in the middle.

A *part* is a multiset of the given numbers, coded in mixed radix by how often it has each letter, so that the code of a
union is the sum of the codes. The values that a part can have are kept without sign: with + beside - a value and its
negative lead to the same absolute values, and where every result must be positive there are no others. Parts of up to
``depth`` numbers have their values listed, in lowest terms, in one table with hashing. A larger part has a value if one
of its splits has an operand in the table whose partner the other side has, found by going back from the value.

``rules`` is (.., positive, largest or 0, exact use, operators) as in countdown_kernels.evaluate.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from testbeds.countdown_kernels import combined, permitted, reduced, whole_between

Ints = NDArray[np.int64]
Listed = tuple[Ints, Ints, Ints, Ints]
"""What is known of the parts of a multiset: (parts, spans, values, table).

* parts: a row (code, how many numbers, then how often each letter) per part, smaller parts first;
* spans: a row (first value, end of values) per part, equal for parts that are not listed;
* values: a row (top, bottom, index of the part) per value;
* table: a hash table of indices of values, with -1 where there is none; its size is a power of 2."""

SPREAD, STEP = -7046029254386353131, 7809847782465536323  # odd 64-bit constants without a pattern
FULL = -1  # more values than there is room for
WAYS = 6  # a+x, a-x, x-a, a*x, a/x, x/a
CODE, SIZE, LETTERS = range(3)
PART, SOUGHT_TOP, SOUGHT_BOTTOM, SPLIT, VALUE, WAY, REST = range(7)
"""What a frame of ``find`` holds: the part and the value that is sought; where it is in its search; the other part."""


@njit(cache=True, error_model="numpy")
def _place(table: Ints, values: Ints, part: int, top: int, bottom: int) -> int:
    """The slot of the table that holds a value of a part, or would."""
    mask = table.shape[0] - 1
    mixed = (top * SPREAD) ^ (bottom * STEP + part * 40503)
    mixed = (mixed ^ (mixed >> 29)) * SPREAD
    slot = (mixed ^ (mixed >> 32)) & mask
    while table[slot] >= 0:
        found = table[slot]
        if values[found, 0] == top and values[found, 1] == bottom and values[found, 2] == part:
            break
        slot = (slot + 1) & mask
    return int(slot)


@njit(cache=True, error_model="numpy")
def _split(parts: Ints, whole: int, part: int) -> int:
    """The index of what a part leaves of another; -1 unless it is a proper part of it."""
    if parts[part, SIZE] >= parts[whole, SIZE]:
        return -1
    for letter in range(LETTERS, parts.shape[1]):
        if parts[part, letter] > parts[whole, letter]:
            return -1
    code = parts[whole, CODE] - parts[part, CODE]
    for rest in range(whole):
        if parts[rest, CODE] == code:
            return rest
    return -1


@njit(cache=True, error_model="numpy")
def operator_of(way: int) -> int:
    """The operator of a way, as in countdown_forms.py."""
    if way == 0:
        return 0
    if way < 3:
        return 1
    return 2 if way == 3 else 3


@njit(cache=True, error_model="numpy")
def _result(way: int, a: int, b: int, c: int, d: int) -> tuple[int, int]:
    """The value of a way for a/b and x = c/d; bottom 0 where it divides by zero, top < 0 where it is negative."""
    if way in (2, 5):
        return combined(operator_of(way), c, d, a, b)
    return combined(operator_of(way), a, b, c, d)


@njit(cache=True, error_model="numpy")
def list_values(listed: Listed, letters: Ints, rules: Ints, depth: int) -> int:
    """Fill in spans, values and table for all parts of up to ``depth`` numbers; how many values, or FULL.

    The parts of one number stand first, in the order of ``letters``; the table is full of -1, the spans of 0.
    """
    parts, spans, values, table = listed
    count = 0
    for whole in range(parts.shape[0]):
        spans[whole, 0] = count
        if parts[whole, SIZE] == 1:
            values[count, 0], values[count, 1], values[count, 2] = letters[whole], 1, whole
            table[_place(table, values, whole, letters[whole], 1)] = count
            count += 1
        elif parts[whole, SIZE] <= depth:
            for part in range(whole):
                rest = _split(parts, whole, part)
                if rest >= part:
                    count = _join_all(listed, (part, rest, whole), rules, count)
                if count == FULL:
                    return FULL
        spans[whole, 1] = count
    return count


@njit(cache=True, error_model="numpy")
def _join_all(listed: Listed, split: tuple[int, int, int], rules: Ints, count: int) -> int:
    """Add the values that two parts make of a third; the count of values afterwards, or FULL."""
    _, spans, values, table = listed
    room = min(values.shape[0], table.shape[0] // 2)
    part, rest, whole = split
    for i in range(spans[part, 0], spans[part, 1]):
        for j in range(spans[rest, 0], spans[rest, 1]):
            for way in range(WAYS):
                if not (rules[4] >> operator_of(way)) & 1:
                    continue
                top, bottom = _result(way, values[i, 0], values[i, 1], values[j, 0], values[j, 1])
                if bottom == 0 or top < 0 or not permitted(top, bottom, rules[1] != 0, rules[2]):
                    continue
                top, bottom = reduced(top, bottom)
                slot = _place(table, values, whole, top, bottom)
                if table[slot] < 0:
                    if count == room:
                        return FULL
                    table[slot] = count
                    values[count, 0], values[count, 1], values[count, 2] = top, bottom, whole
                    count += 1
    return count


@njit(cache=True, error_model="numpy")
def mark(listed: Listed, rules: Ints, low: int, reached: Ints) -> int:
    """Set the targets to 1 that listed values make, directly or two at a time; how many of them stay at 0.

    ``reached`` has a place for each target from ``low`` on, with something else than 0 for those that are not asked.
    """
    parts, spans, values, _ = listed
    open_targets = 0
    for place in range(reached.shape[0]):
        open_targets += 1 if reached[place] == 0 else 0
    last = parts.shape[0] - 1
    for whole in range(last if rules[3] else 0, parts.shape[0]):
        if parts[whole, SIZE] == 1:
            continue
        for i in range(spans[whole, 0], spans[whole, 1]):
            open_targets -= _reach(values[i, 0], values[i, 1], low, reached)
        if spans[whole, 0] < spans[whole, 1]:
            continue
        for part in range(whole):
            rest = _split(parts, whole, part)
            if rest >= part and open_targets:
                open_targets -= _mark_split(listed, (part, rest), rules, low, reached)
    return open_targets


@njit(cache=True, error_model="numpy")
def _mark_split(listed: Listed, split: tuple[int, int], rules: Ints, low: int, reached: Ints) -> int:
    """How many targets are new among those that two listed parts make."""
    _, spans, values, _ = listed
    part, rest = split
    new = 0
    for i in range(spans[part, 0], spans[part, 1]):
        for j in range(spans[rest, 0], spans[rest, 1]):
            for way in range(WAYS):
                if (rules[4] >> operator_of(way)) & 1:
                    top, bottom = _result(way, values[i, 0], values[i, 1], values[j, 0], values[j, 1])
                    if top > 0:
                        new += _reach(top, bottom, low, reached)
    return new


@njit(cache=True, error_model="numpy")
def _reach(top: int, bottom: int, low: int, reached: Ints) -> int:
    value = whole_between(top, bottom, low, low + reached.shape[0] - 1)
    if value == 0 or reached[value - low] != 0:
        return 0
    reached[value - low] = 1
    return 1


@njit(cache=True, error_model="numpy")
def _partner(way: int, t: int, u: int, a: int, b: int) -> tuple[int, int]:
    """The x >= 0 for which a way of a/b and x gives t/u, not reduced; bottom 0 where there is none.

    Of 0 as a product or quotient the cases with a = 0 are left out: the same zero comes from another split, in which a
    single number is a/b.
    """
    top, bottom = 0, 0
    if way == 0:
        top, bottom = t * b - a * u, u * b
    elif way == 1:
        top, bottom = a * u - t * b, u * b
    elif way == 2:
        top, bottom = a * u + t * b, u * b
    elif way == 3:
        top, bottom = t * b, u * a
    elif way == 4:
        top, bottom = a * u, b * t
        if top == 0:
            bottom = 0
    else:
        top, bottom = t * a, u * b
        if a == 0:
            bottom = 0
    return (top, bottom) if top >= 0 else (0, 0)


@njit(cache=True, error_model="numpy")
def find(listed: Listed, rules: Ints, order: Ints, frames: Ints, budget: int) -> tuple[int, int]:
    """How ``frames[0]`` has its part's value: (number of frames, budget left); 0 frames where it has not.

    Each frame says: SPLIT and VALUE, the part in ``order`` and the listed value of it that is one operand; WAY; REST
    and the next frame's value, the other one. The last frame's other operand is listed and stands in the frame after
    it. Splits with both sides listed are tried first, all in the given order. At -1 the budget of steps is spent and
    nothing is decided.
    """
    count = listed[0].shape[0]
    depth = 0
    _open(frames, 0)
    while depth >= 0 and budget > 0:
        frame = frames[depth]
        budget -= 1
        if frame[SPLIT] == 2 * count:
            depth -= 1
        elif _step(listed, order, frame) and _back(listed, rules, frame, frames[depth + 1]):
            depth += 1
            if frame[SPLIT] >= count:
                _open(frames, depth)
            elif _is_listed(listed, frames[depth]):
                return depth, budget
            else:
                depth -= 1
    return 0, (budget if budget > 0 else -1)


@njit(cache=True, error_model="numpy")
def _step(listed: Listed, order: Ints, frame: Ints) -> bool:
    """Move a frame to its next way, value or split; whether there is an operand to try."""
    parts, spans, _, _ = listed
    if frame[VALUE] < 0 and not _begin(parts, spans, order, frame):
        frame[SPLIT] += 1
        return False
    frame[WAY] += 1
    if frame[WAY] == WAYS:
        frame[WAY] = 0
        frame[VALUE] += 1
    if frame[VALUE] == spans[order[frame[SPLIT] % parts.shape[0]], 1]:
        frame[VALUE] = -1
        frame[SPLIT] += 1
        return False
    return True


@njit(cache=True, error_model="numpy")
def _back(listed: Listed, rules: Ints, frame: Ints, follower: Ints) -> bool:
    """Write into ``follower`` what the other side of a split must make; whether it can be anything permitted."""
    values = listed[2]
    if not (rules[4] >> operator_of(frame[WAY])) & 1:
        return False
    a, b = values[frame[VALUE], 0], values[frame[VALUE], 1]
    top, bottom = _partner(frame[WAY], frame[SOUGHT_TOP], frame[SOUGHT_BOTTOM], a, b)
    if bottom == 0 or not permitted(top, bottom, rules[1] != 0, rules[2]):
        return False
    follower[PART] = frame[REST]
    follower[SOUGHT_TOP], follower[SOUGHT_BOTTOM] = reduced(top, bottom)
    return True


@njit(cache=True, error_model="numpy")
def _is_listed(listed: Listed, frame: Ints) -> bool:
    """Whether the part that a frame is about, which is listed, has the value that is sought."""
    _, _, values, table = listed
    slot = _place(table, values, frame[PART], frame[SOUGHT_TOP], frame[SOUGHT_BOTTOM])
    return bool(table[slot] >= 0)


@njit(cache=True, error_model="numpy")
def _open(frames: Ints, depth: int) -> None:
    frames[depth, SPLIT], frames[depth, VALUE], frames[depth, WAY] = 0, -1, -1


@njit(cache=True, error_model="numpy")
def _begin(parts: Ints, spans: Ints, order: Ints, frame: Ints) -> bool:
    """Whether the frame's split is one: a listed part, and a rest that is listed in the first round only."""
    count = parts.shape[0]
    part = order[frame[SPLIT] % count]
    if spans[part, 0] == spans[part, 1]:
        return False
    rest = _split(parts, frame[PART], part)
    if rest < 0 or (spans[rest, 0] == spans[rest, 1]) != (frame[SPLIT] >= count):
        return False
    if frame[SPLIT] < count and parts[part, SIZE] > parts[rest, SIZE]:
        return False  # the other way round it is tried, too
    frame[REST], frame[VALUE], frame[WAY] = rest, spans[part, 0], -1
    return True
