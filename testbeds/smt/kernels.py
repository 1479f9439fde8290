"""The compiled inner loops of search.py: how rows narrow masks, propagation, and the depth-first search on top of it.

They stand in one file because numba does not see that a compiled function changed if another file's was. The longest
are exempt from the bounds on length and arguments: what is compiled is a loop over plain arrays.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from testbeds.smt.model import (
    AND,
    CHECK,
    DIFFERENT,
    FALSE,
    IFF,
    JUDGE,
    LINEAR,
    NOT,
    PROPAGATE,
    RELATION,
    TABLE,
    TRUE,
    UNARY,
    UNKNOWN,
    Integers,
    Model,
)


@njit(cache=True)
def popcount(mask: int) -> int:
    """Number of values in a mask."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@njit(cache=True)
def lowest(mask: int) -> int:
    """Place of the lowest bit of a mask that is not empty."""
    place = 0
    while not (mask >> place) & 1:
        place += 1
    return place


@njit(cache=True)
def highest(mask: int) -> int:
    """Place of the highest bit of a mask that is not empty."""
    place = 0
    while mask >> (place + 1):
        place += 1
    return place


@njit(cache=True)
def sum_bounds(model: Model, row: int, masks: Integers) -> tuple[int, int]:
    """Least and greatest value of a linear row's sum."""
    least = 0
    greatest = 0
    for place in range(model.starts[row], model.starts[row + 1]):
        mask = masks[model.variables[place]]
        weight = model.weights[place]
        one = weight * (lowest(mask) + model.base)
        other = weight * (highest(mask) + model.base)
        least += min(one, other)
        greatest += max(one, other)
    return least, greatest


@njit(cache=True)
def revise_different(model: Model, row: int, masks: Integers, level: int) -> bool:  # noqa: C901, PLR0911, PLR0912
    """Removes values that are taken; with PROPAGATE, sets the variable that alone can take a value that must be."""
    start, stop = model.starts[row], model.starts[row + 1]
    taken = 0
    for place in range(start, stop):
        mask = masks[model.variables[place]]
        if mask & (mask - 1) == 0:
            bit = mask << model.weights[place]
            if taken & bit:
                return False
            taken |= bit
    if level == JUDGE:
        return True
    once = 0
    twice = 0
    for place in range(start, stop):
        variable = model.variables[place]
        mask = masks[variable]
        if mask & (mask - 1):
            mask &= ~(taken >> model.weights[place])
            if mask == 0:
                masks[variable] = 0
                return False
            masks[variable] = mask
        shifted = mask << model.weights[place]
        twice |= once & shifted
        once |= shifted
    if level == CHECK:
        return True
    values = popcount(once)
    if values > stop - start:
        return True
    if values < stop - start:
        return False
    alone = once & ~twice
    for place in range(start, stop):
        variable = model.variables[place]
        only = (masks[variable] << model.weights[place]) & alone
        if only:
            if only & (only - 1):
                return False
            masks[variable] = only >> model.weights[place]
    return True


@njit(cache=True)
def revise_relation(model: Model, row: int, masks: Integers) -> bool:
    """Removes from either variable the values without a partner."""
    relation = model.low[row]
    left = model.variables[model.starts[row]]
    right = model.variables[model.starts[row] + 1]
    masks[right] &= partners(model.forward[relation], masks[left])
    masks[left] &= partners(model.backward[relation], masks[right])
    return bool(masks[left] != 0 and masks[right] != 0)


@njit(cache=True)
def partners(relation: Integers, mask: int) -> int:
    """All values that go with some value of a mask."""
    together = 0
    place = 0
    while mask:
        if mask & 1:
            together |= relation[place]
        mask >>= 1
        place += 1
    return together


@njit(cache=True)
def revise_linear(model: Model, high: Integers, row: int, masks: Integers) -> bool:
    """Removes values with which the sum cannot get within its bounds."""
    floor, ceiling = model.low[row], high[row]
    least, greatest = sum_bounds(model, row, masks)
    if least > ceiling or greatest < floor:
        return False
    if least >= floor and greatest <= ceiling:
        return True
    for place in range(model.starts[row], model.starts[row + 1]):
        variable = model.variables[place]
        mask = masks[variable]
        weight = model.weights[place]
        one = weight * (lowest(mask) + model.base)
        other = weight * (highest(mask) + model.base)
        least_rest = least - min(one, other)
        greatest_rest = greatest - max(one, other)
        kept = 0
        for bit in range(lowest(mask), highest(mask) + 1):
            value = weight * (bit + model.base)
            if (mask >> bit) & 1 and value + least_rest <= ceiling and value + greatest_rest >= floor:
                kept |= 1 << bit
        masks[variable] = kept
        if kept == 0:
            return False
        one = weight * (lowest(kept) + model.base)
        other = weight * (highest(kept) + model.base)
        least = least_rest + min(one, other)
        greatest = greatest_rest + max(one, other)
    return True


@njit(cache=True)
def revise_table(model: Model, high: Integers, row: int, masks: Integers) -> bool:
    """Removes values that stand in no row that is still possible."""
    start = model.starts[row]
    width = model.starts[row + 1] - start
    kept = np.zeros(width, dtype=np.int64)
    for first in range(model.low[row], high[row], width):
        possible = True
        for column in range(width):
            possible &= (masks[model.variables[start + column]] >> model.rows[first + column]) & 1 == 1
        if possible:
            for column in range(width):
                kept[column] |= 1 << model.rows[first + column]
    for column in range(width):
        masks[model.variables[start + column]] &= kept[column]
    return bool(kept[0] != 0)


@njit(cache=True)
def status(model: Model, high: Integers, row: int, masks: Integers) -> int:
    """Whether a row, but no formula, is FALSE, TRUE or UNKNOWN whatever is chosen from the masks."""
    start, stop = model.starts[row], model.starts[row + 1]
    kind = model.kinds[row]
    if kind == UNARY:
        mask = masks[model.variables[start]]
        inside = mask & model.low[row]
        return FALSE if inside == 0 else TRUE if inside == mask else UNKNOWN
    if kind == LINEAR:
        least, greatest = sum_bounds(model, row, masks)
        if least > high[row] or greatest < model.low[row]:
            return FALSE
        return TRUE if least >= model.low[row] and greatest <= high[row] else UNKNOWN
    if kind == RELATION:
        return relation_status(
            model.forward[model.low[row]], masks[model.variables[start]], masks[model.variables[start + 1]]
        )
    trial = np.empty(masks.shape[0], dtype=np.int64)
    known = True
    for place in range(start, stop):
        mask = masks[model.variables[place]]
        trial[model.variables[place]] = mask
        known &= mask & (mask - 1) == 0
    fine = revise_different(model, row, trial, CHECK) if kind == DIFFERENT else revise_table(model, high, row, trial)
    return FALSE if not fine else TRUE if known else UNKNOWN


@njit(cache=True)
def relation_status(relation: Integers, left: int, right: int) -> int:
    """FALSE, TRUE or UNKNOWN for all pairs out of two masks."""
    some = False
    every = True
    for bit in range(relation.shape[0]):
        if (left >> bit) & 1:
            some |= relation[bit] & right != 0
            every &= relation[bit] & right == right
    return FALSE if not some else TRUE if every else UNKNOWN


@njit(cache=True)
def evaluate(model: Model, high: Integers, row: int, masks: Integers) -> int:
    """FALSE, TRUE or UNKNOWN: a formula, by Kleene's logic of three values."""
    stack = np.empty(high[row] - model.low[row], dtype=np.int64)
    top = 0
    for place in range(model.low[row], high[row]):
        operator = model.program[place]
        if operator >= 0:
            stack[top] = status(model, high, operator, masks)
            top += 1
            continue
        right = stack[top - 1]
        if operator == NOT:
            stack[top - 1] = right if right == UNKNOWN else TRUE - right
            continue
        top -= 1
        left = stack[top - 1]
        decisive = FALSE if operator == AND else TRUE
        if operator == IFF:
            stack[top - 1] = UNKNOWN if UNKNOWN in (left, right) else TRUE if left == right else FALSE
        elif decisive in (left, right):
            stack[top - 1] = decisive
        else:
            stack[top - 1] = UNKNOWN if UNKNOWN in (left, right) else TRUE - decisive
    return int(stack[0])


@njit(cache=True)
def revise_formula(model: Model, high: Integers, row: int, masks: Integers) -> bool:
    """Removes values with which the formula is false whatever the others are."""
    now = evaluate(model, high, row, masks)
    if now != UNKNOWN:
        return bool(now == TRUE)
    for place in range(model.starts[row], model.starts[row + 1]):
        variable = model.variables[place]
        mask = masks[variable]
        if mask & (mask - 1) == 0:
            continue
        kept = 0
        for bit in range(lowest(mask), highest(mask) + 1):
            if (mask >> bit) & 1:
                masks[variable] = 1 << bit
                if evaluate(model, high, row, masks) != FALSE:
                    kept |= 1 << bit
        masks[variable] = kept
        if kept == 0:
            return False
    return True


@njit(cache=True)
def revise(model: Model, high: Integers, row: int, masks: Integers, level: int) -> bool:
    """What one row removes from the masks of its variables; False where it cannot be met."""
    kind = model.kinds[row]
    start = model.starts[row]
    if kind == UNARY:
        masks[model.variables[start]] &= model.low[row]
        return bool(masks[model.variables[start]] != 0)
    if kind == DIFFERENT:
        return bool(revise_different(model, row, masks, level))
    if level != PROPAGATE:
        unknown = 0
        for place in range(start, model.starts[row + 1]):
            mask = masks[model.variables[place]]
            unknown += mask & (mask - 1) != 0
        if unknown > (1 if level == CHECK else 0):
            return True
    if kind == RELATION:
        return bool(revise_relation(model, row, masks))
    if kind == LINEAR:
        return bool(revise_linear(model, high, row, masks))
    return bool(revise_table(model, high, row, masks) if kind == TABLE else revise_formula(model, high, row, masks))


@njit(cache=True)
def propagate(  # noqa: C901, PLR0913, PLR0915, PLR0917
    model: Model, active: Integers, high: Integers, masks: Integers, trigger: int, extra: int, level: int, log: Integers
) -> tuple[bool, int]:
    """Revises rows until nothing changes: those that touch ``trigger`` and row ``extra``, or all where it is -1.

    Returns whether no row failed, and how many lines of ``log`` were written: row, variable, mask before, mask after.
    A failure writes a line with the mask 0, or with variable -1. A log of length 0 takes nothing.
    """
    count = active.shape[0]
    queue = np.empty(count + 1, dtype=np.int64)
    queued = np.zeros(count, dtype=np.bool_)
    before = np.empty(masks.shape[0], dtype=np.int64)
    head = 0
    waiting = 0
    first, last = (0, count) if trigger < 0 else (model.touch_starts[trigger], model.touch_starts[trigger + 1])
    for place in range(first, last):
        row = place if trigger < 0 else model.touch[place]
        if active[row]:
            queue[waiting] = row
            queued[row] = True
            waiting += 1
    if extra >= 0 and not queued[extra]:
        queue[waiting] = extra
        queued[extra] = True
        waiting += 1
    written = 0
    while waiting:
        row = queue[head]
        head = (head + 1) % (count + 1)
        waiting -= 1
        queued[row] = False
        start, stop = model.starts[row], model.starts[row + 1]
        for place in range(start, stop):
            before[model.variables[place]] = masks[model.variables[place]]
        fine = revise(model, high, row, masks, level)
        changed = False
        for place in range(start, stop):
            variable = model.variables[place]
            if masks[variable] == before[variable]:
                continue
            changed = True
            if log.shape[0]:
                log[written, 0] = row
                log[written, 1] = variable
                log[written, 2] = before[variable]
                log[written, 3] = masks[variable]
                written += 1
            for touched in range(model.touch_starts[variable], model.touch_starts[variable + 1]):
                other = model.touch[touched]
                if active[other] and not queued[other]:
                    queue[(head + waiting) % (count + 1)] = other
                    queued[other] = True
                    waiting += 1
        if not fine:
            if log.shape[0] and not changed:
                log[written, 0] = row
                log[written, 1] = -1
                log[written, 2] = 0
                log[written, 3] = 0
                written += 1
            return False, written
    return True, written


@njit(cache=True)
def search(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917
    model: Model,
    active: Integers,
    high: Integers,
    start: Integers,
    goal: int,
    seed: int,
    found: Integers,
    most_nodes: int,
) -> tuple[int, int]:
    """Solutions, as bits, into ``found`` until it is full; returns how many and the branches tried.

    With ``goal`` a linear row, each solution lowers its bound below what it reached, in ``high``, and overwrites the
    one before: the last is the best. With a ``seed`` above 0 values are tried in random order. The branches tried are
    above
    ``most_nodes`` where the search gave up.
    """
    size = start.shape[0]
    stack = np.empty((size + 1, size), dtype=np.int64)
    chosen = np.zeros(size + 1, dtype=np.int64)
    left = np.zeros(size + 1, dtype=np.int64)
    silent = np.empty((0, 4), dtype=np.int64)
    stack[0] = start
    fine, _ = propagate(model, active, high, stack[0], -1, -1, PROPAGATE, silent)
    count = 0
    nodes = 0
    depth = 0 if fine else -1
    state = seed
    fresh = True
    while depth >= 0:
        if fresh:
            fewest = 64
            for variable in range(size):
                choices = popcount(stack[depth, variable])
                if 1 < choices < fewest:
                    fewest = choices
                    chosen[depth] = variable
            left[depth] = stack[depth, chosen[depth]]
            if fewest == 64:
                left[depth] = 0
                total = 0
                for variable in range(size):
                    found[0 if goal >= 0 else count, variable] = lowest(stack[depth, variable])
                count += 1
                if goal >= 0:
                    _, total = sum_bounds(model, goal, stack[depth])
                    high[goal] = total - 1
                elif count == found.shape[0]:
                    return count, nodes
        if left[depth] == 0:
            depth -= 1
            fresh = False
            continue
        bit = left[depth] & -left[depth]
        if seed > 0:
            state = (state * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
            skipped = left[depth]
            for _ in range((state >> 33) % popcount(skipped)):
                skipped &= skipped - 1
            bit = skipped & -skipped
        left[depth] ^= bit
        nodes += 1
        if nodes > most_nodes:
            return count, nodes
        stack[depth + 1] = stack[depth]
        stack[depth + 1, chosen[depth]] = bit
        fresh, _ = propagate(model, active, high, stack[depth + 1], chosen[depth], goal, PROPAGATE, silent)
        if fresh:
            depth += 1
    return count, nodes
