"""The fast half of zebra puzzles: clue sets drawn, made minimal, and put in canonical form by compiled code.

Houses are bits. A value is named by its attribute and its house in the solution: value ``a * n + p`` is attribute
``a``'s value that stands in house ``p``, so the solution is always "every value at its own place", and a clue set
over such names has forgotten the words already. A clue is a row ``(kind, x, y)``; ``image[kind, mask]`` holds the
houses that ``y`` can have when ``x`` has one of ``mask``, ``preimage`` the other way round. Kind ``k + NEGATED`` is
the negation of kind ``k``.

A clue set is found by counterexamples: while another arrangement fits, a true clue that it breaks is added. Then each
clue is dropped, in random order, unless the others and its negation have a common arrangement. What is left is
minimal: a clue that was needed among more clues is needed among fewer.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Seeds = NDArray[np.uint64]

SAME, NOT_SAME, LEFT, NEXT, BEFORE, AT, NOT_AT = range(7)
NEGATED = 7
MOST_CLUES = 160  # 6x6 never needs 60; redundant clues come on top
DRAWS_PER_KIND = 24  # random clues of a kind tried against a counterexample before the next kind


def tables(houses: int) -> tuple[Ints, Ints]:
    """``image`` and ``preimage`` of the binary kinds and their negations, shape (14, 2**houses)."""
    image = np.zeros((2 * NEGATED, 2**houses), dtype=np.int64)
    preimage = np.zeros_like(image)
    for p, q in product(range(houses), repeat=2):
        holds = {SAME: p == q, NOT_SAME: p != q, LEFT: q == p + 1, NEXT: abs(p - q) == 1, BEFORE: p < q}
        for kind, does in holds.items():
            code = kind if does else kind + NEGATED
            for mask in range(2**houses):
                image[code, mask] |= (mask >> p & 1) << q
                preimage[code, mask] |= (mask >> q & 1) << p
    return image, preimage


def attribute_orders(attributes: int) -> Ints:
    """Every permutation of the attributes, one a row."""
    return np.array(list(permutations(range(attributes))), dtype=np.int64)


@njit(cache=True)
def random_below(state: Seeds, below: int) -> int:
    """A whole number from 0 to below - 1, by SplitMix64 (Steele, Lea and Flood 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return int(np.int64(z >> np.uint64(33)) % below)


@njit(cache=True)
def _settle(n: int, m: int, dom: Ints) -> int:  # noqa: C901
    """One pass of "each house once per attribute": -1 contradiction, 1 something changed, 0 nothing."""
    full = (1 << n) - 1
    changed = 0
    for a in range(m):
        once = twice = single = clash = 0
        for v in range(a * n, a * n + n):
            d = dom[v]
            if d == 0:
                return -1
            twice |= once & d
            once |= d
            if d & (d - 1) == 0:
                clash |= single & d
                single |= d
        if once != full or clash:
            return -1
        alone = once & ~twice
        for v in range(a * n, a * n + n):
            d = dom[v]
            if d & (d - 1):
                reduced = d & ~single
                if d & alone:
                    reduced = d & alone
                if reduced & (reduced - 1) and d & alone:
                    return -1
                if reduced != d:
                    dom[v] = reduced
                    changed = 1
    return changed


@njit(cache=True)
def _propagate(n: int, m: int, image: Ints, preimage: Ints, clues: Ints, count: int, dom: Ints) -> bool:  # noqa: PLR0913, PLR0917
    """Whether the domains, narrowed by all clues until nothing changes, are still possible."""
    while True:
        changed = 0
        for c in range(count):
            kind = clues[c, 0]
            if kind % NEGATED >= AT:
                continue
            x, y = clues[c, 1], clues[c, 2]
            reduced = dom[y] & image[kind, dom[x]]
            if reduced != dom[y]:
                dom[y] = reduced
                changed = 1
            reduced = dom[x] & preimage[kind, dom[y]]
            if reduced != dom[x]:
                dom[x] = reduced
                changed = 1
        settled = _settle(n, m, dom)
        if settled < 0:
            return False
        if not changed and not settled:
            return True


@njit(cache=True)
def _start(n: int, m: int, clues: Ints, count: int, dom: Ints) -> None:
    """Fill ``dom`` with what the clues about single houses leave."""
    full = (1 << n) - 1
    for v in range(n * m):
        dom[v] = full
    for c in range(count):
        kind = clues[c, 0]
        if kind % NEGATED >= AT:
            bit = 1 << clues[c, 2]
            dom[clues[c, 1]] &= bit if kind in (AT, NOT_AT + NEGATED) else full & ~bit


@njit(cache=True)
def _branch(n: int, values: int, dom: Ints, state: Seeds) -> int:
    """The undecided value with the fewest houses, ties broken at random from a random start; -1 if all are decided."""
    best, fewest = -1, n + 1
    start = random_below(state, values)
    for i in range(values):
        v = (start + i) % values
        d = dom[v]
        if d & (d - 1):
            size = 0
            while d:
                d &= d - 1
                size += 1
            if size < fewest:
                best, fewest = v, size
    return best


@njit(cache=True)
def other_arrangement(  # noqa: C901, PLR0913, PLR0917
    n: int, m: int, image: Ints, preimage: Ints, clues: Ints, count: int, state: Seeds, stack: Ints, out: Ints
) -> int:
    """Nodes searched for an arrangement that fits and is not the solution; negative if one was found, into ``out``.

    ``stack`` holds domains by depth; wrong houses are tried first, so that a counterexample comes soon.
    """
    values = n * m
    nodes, depth = 0, 0
    _start(n, m, clues, count, stack[0])
    while depth >= 0:
        dom = stack[depth]
        nodes += 1
        if not _propagate(n, m, image, preimage, clues, count, dom):
            depth -= 1
            continue
        v = _branch(n, values, dom, state)
        if v < 0:
            wrong = False
            for w in range(values):
                if dom[w] != 1 << (w % n):
                    wrong = True
            if wrong:
                for w in range(values):
                    p = 0
                    while not dom[w] >> p & 1:
                        p += 1
                    out[w] = p
                return -nodes
            depth -= 1
            continue
        own = 1 << (v % n)
        wrong_houses = dom[v] & ~own
        pick = wrong_houses & -wrong_houses
        if random_below(state, 2):  # from the other end
            while wrong_houses & (wrong_houses - 1):
                wrong_houses &= wrong_houses - 1
            pick = wrong_houses
        stack[depth + 1] = dom
        stack[depth, v] = dom[v] & ~pick
        stack[depth + 1, v] = pick
        depth += 1
    return nodes


@njit(cache=True)
def _true_clue(n: int, m: int, kind: int, state: Seeds, clue: Ints) -> bool:
    """Write a random clue of this kind that holds in the solution; False where the draw is none."""
    a, b = random_below(state, m), random_below(state, m)
    p, q = random_below(state, n), random_below(state, n)
    if kind in (SAME, NOT_SAME):
        b = (a + 1 + random_below(state, m - 1)) % m
    if kind == SAME:
        q = p
    elif kind in (LEFT, NEXT):
        p = random_below(state, n - 1)
        q = p + 1
        if kind == NEXT and random_below(state, 2):
            p, q = q, p
    elif p == q and kind != AT:
        return False
    elif kind == BEFORE and p > q:
        p, q = q, p
    clue[0], clue[1] = kind, a * n + p
    clue[2] = b * n + q if kind < AT else (p if kind == AT else q)
    return True


@njit(cache=True)
def _breaks(image: Ints, clue: Ints, places: Ints) -> bool:
    """Whether an arrangement breaks a clue."""
    kind, here = clue[0], places[clue[1]]
    if kind == AT:
        return bool(here != clue[2])
    if kind == NOT_AT:
        return bool(here == clue[2])
    return not image[kind, 1 << here] >> places[clue[2]] & 1


@njit(cache=True)
def _nth_clue(n: int, m: int, kind: int, index: int, clue: Ints) -> bool:
    """Write the clue number ``index`` of a kind; False where it is not true of the solution or malformed."""
    values = n * m
    x, y = index // values, index % values
    a, b, p, q = x // n, y // n, x % n, y % n
    clue[0], clue[1], clue[2] = kind, x, y
    if kind >= AT:
        clue[2] = q
        return b == 0 and (p == q) == (kind == AT)
    if kind == SAME:
        return a != b and p == q
    if kind == NOT_SAME:
        return a != b and p != q
    if kind == LEFT:
        return q == p + 1
    if kind == NEXT:
        return abs(p - q) == 1
    return p < q


@njit(cache=True)
def _breaking_clue(n: int, m: int, image: Ints, kinds: Ints, places: Ints, state: Seeds, clue: Ints) -> bool:  # noqa: PLR0913, PLR0917
    """Write a true clue that ``places`` breaks, its kind drawn uniformly while a few draws find one; False if none."""
    for _ in range(4 * kinds.size):
        kind = kinds[random_below(state, kinds.size)]
        for _ in range(DRAWS_PER_KIND):
            if _true_clue(n, m, kind, state, clue) and _breaks(image, clue, places):
                return True
    values = n * m
    offset = random_below(state, values * values)
    for kind in kinds:
        for i in range(values * values):
            index = (i + offset) % (values * values)
            if _nth_clue(n, m, kind, index, clue) and _breaks(image, clue, places):
                return True
    return False


@njit(cache=True)
def _minimise(  # noqa: PLR0913, PLR0917
    n: int, m: int, tabs: tuple[Ints, Ints], clues: Ints, count: int, state: Seeds, work: tuple[Ints, Ints]
) -> int:
    """Drop clues in random order while the rest still has one arrangement; the number that is left."""
    image, preimage = tabs
    stack, places = work
    for i in range(count - 1, 0, -1):
        j = random_below(state, i + 1)
        for k in range(3):
            clues[i, k], clues[j, k] = clues[j, k], clues[i, k]
    i = 0
    while i < count:
        clues[i, 0] += NEGATED
        needed = other_arrangement(n, m, image, preimage, clues, count, state, stack, places) < 0
        clues[i, 0] -= NEGATED
        if needed:
            i += 1
        else:
            count -= 1
            clues[i] = clues[count]
    return count


@njit(cache=True)
def _is_among(clues: Ints, count: int, clue: Ints) -> bool:
    """Whether a clue says literally what one of the others says."""
    for c in range(count):
        if clues[c, 0] == clue[0]:
            if clues[c, 1] == clue[1] and clues[c, 2] == clue[2]:
                return True
            symmetric = clue[0] in (SAME, NOT_SAME, NEXT)
            if symmetric and clues[c, 1] == clue[2] and clues[c, 2] == clue[1]:
                return True
    return False


@njit(cache=True)
def _pad(n: int, m: int, kinds: Ints, clues: Ints, count: int, redundant: int, state: Seeds) -> int:  # noqa: PLR0913, PLR0917
    """Insert ``redundant`` true clues at random places; the number of clues, or -1 where too few exist."""
    values = n * m
    clue = np.zeros(3, dtype=np.int64)
    for _ in range(redundant):
        found = False
        for _ in range(10 * DRAWS_PER_KIND):
            kind = kinds[random_below(state, kinds.size)]
            if _true_clue(n, m, kind, state, clue) and not _is_among(clues, count, clue):
                found = True
                break
        index = 0
        while not found and index < kinds.size * values * values:
            found = _nth_clue(n, m, kinds[index % kinds.size], index // kinds.size, clue) and not _is_among(
                clues, count, clue
            )
            index += 1
        if not found:
            return -1
        place = random_below(state, count + 1)
        clues[count] = clues[place]
        clues[place] = clue
        count += 1
    return count


@njit(cache=True)
def _code(n: int, values: int, clue: Ints, order: Ints, mirrored: bool) -> int:  # noqa: FBT001
    """One number that says what a clue says, after renaming attributes and perhaps mirroring the street."""
    kind, x, y = clue[0], clue[1], clue[2]
    p = n - 1 - x % n if mirrored else x % n
    x = order[x // n] * n + p
    if kind >= AT:
        return int((kind * values + x) * values + (n - 1 - y if mirrored else y))
    q = n - 1 - y % n if mirrored else y % n
    y = order[y // n] * n + q
    if kind in (LEFT, BEFORE):
        if mirrored:
            x, y = y, x
    elif x > y:
        x, y = y, x
    return int((kind * values + x) * values + y)


@njit(cache=True)
def canonical_codes(n: int, m: int, clues: Ints, count: int, orders: Ints, best: Ints) -> None:  # noqa: C901
    """Write into ``best`` the least sorted list of codes over all orders of the attributes and both directions."""
    values = n * m
    codes = np.empty(count, dtype=np.int64)
    first = True
    for o in range(orders.shape[0]):
        for mirrored in (False, True):
            for c in range(count):
                code = _code(n, values, clues[c], orders[o], mirrored)
                i = c
                while i > 0 and codes[i - 1] > code:
                    codes[i] = codes[i - 1]
                    i -= 1
                codes[i] = code
            smaller = first
            if not first:
                for c in range(count):
                    if codes[c] != best[c]:
                        smaller = codes[c] < best[c]
                        break
            if smaller:
                best[:count] = codes
                first = False


@njit(cache=True)
def draw(  # noqa: PLR0913, PLR0917
    n: int, m: int, image: Ints, preimage: Ints, kinds: Ints, redundant: int, orders: Ints, seeds: Seeds
) -> tuple[Ints, Ints, Ints, Ints]:
    """For each seed a clue set with one arrangement: (clues, counts, canonical codes, nodes of the proof).

    A count is -1 where the kinds of clue cannot do what was asked.
    """
    problems = seeds.size
    values = n * m
    clues = np.zeros((problems, MOST_CLUES, 3), dtype=np.int64)
    codes = np.zeros((problems, MOST_CLUES), dtype=np.int64)
    counts = np.zeros(problems, dtype=np.int64)
    nodes = np.zeros(problems, dtype=np.int64)
    stack = np.zeros((values * n + 2, values), dtype=np.int64)
    places = np.zeros(values, dtype=np.int64)
    state = np.zeros(1, dtype=np.uint64)
    for i in range(problems):
        state[0] = seeds[i]
        count = 0
        while other_arrangement(n, m, image, preimage, clues[i], count, state, stack, places) < 0:
            if count == MOST_CLUES or not _breaking_clue(n, m, image, kinds, places, state, clues[i, count]):
                count = -1
                break
            count += 1
        if count >= 0:
            count = _minimise(n, m, (image, preimage), clues[i], count, state, (stack, places))
            count = _pad(n, m, kinds, clues[i], count, redundant, state)
        counts[i] = count
        if count >= 0:
            state[0] = 0  # so that the count belongs to the clues, not to how they were found
            nodes[i] = other_arrangement(n, m, image, preimage, clues[i], count, state, stack, places)
            canonical_codes(n, m, clues[i], count, orders, codes[i])
    return clues, counts, codes, nodes
