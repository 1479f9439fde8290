"""Forms arranged as trees without negative results and written out, compiled: countdown_trees.py says how they read."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from testbeds.countdown_kernels import combined, reduced

Ints = NDArray[np.int64]
Rows = NDArray[np.uint32]
Bytes = NDArray[np.uint8]

LONGEST_WORKED = (
    1024  # bytes of a solution of six letters with its steps: 5 * (3 * (19 + 19 + 3) + 2), and what follows
)
LONGEST_SPELLED = 192  # bytes of the expression alone: 6 numerals of 19 digits, 5 operators, their parentheses
MOST_NODES = 11  # of a tree over six letters
ENDS = 10  # a line end, which no expression holds
MOST_PARTS = 16  # terms, factors and sums of a form: six letters make fewer than 12
LEAF = -1
OPERATOR, LEFT, RIGHT, TOP, BOTTOM = range(5)
"""What a node holds: LEAF or an operator, its operands as indices of nodes before it, and its value in lowest terms."""
NODE, OWN, SIDE = range(3)
"""What a part of a form holds: its node, whether that is the part itself or its negative (1, -1), and its operator."""


@njit(cache=True, error_model="numpy")
def spelled_forms(rows: Rows, letters_RL: Ints, position_R: Ints) -> Bytes:
    """The expression of one form for each row of letters, each with a line end after it."""
    written = np.empty(LONGEST_SPELLED * letters_RL.shape[0], np.uint8)
    nodes = np.zeros((MOST_NODES, BOTTOM + 1), np.int64)
    end = 0
    for r in range(letters_RL.shape[0]):
        end = _spell(nodes, outline(rows, letters_RL[r], position_R[r], nodes), written, end)
        end = _put(written, end, ENDS)
    return written[:end]


@njit(cache=True, error_model="numpy")
def worked_form(rows: Rows, values: Ints, position: int) -> Bytes:
    """The steps of one form, a comma between them, then ``#`` and its expression."""
    written = np.empty(LONGEST_WORKED, np.uint8)
    nodes = np.zeros((MOST_NODES, BOTTOM + 1), np.int64)
    count = outline(rows, values, position, nodes)
    end = 0
    for node in range(count):
        operator = nodes[node, OPERATOR]
        if operator != LEAF:
            end = _put_value(nodes[nodes[node, LEFT]], written, end)
            end = _put(written, end, _sign(operator))
            end = _put_value(nodes[nodes[node, RIGHT]], written, end)
            end = _put(written, end, 61)  # =
            end = _put_value(nodes[node], written, end)
            end = _put(written, end, 44 if node < count - 1 else 35)  # , or #
    return written[: _spell(nodes, count, written, end)]


@njit(cache=True, error_model="numpy")
def _spell(nodes: Ints, count: int, written: Bytes, end: int) -> int:
    """Write the expression of a tree, from left to right; where it ends."""
    waiting = np.empty(8 * MOST_NODES, np.int64)  # nodes, and characters as negative numbers
    waiting[0] = count - 1
    size = 1
    while size:
        size -= 1
        node = waiting[size]
        if node < 0:
            end = _put(written, end, -node)
        elif nodes[node, OPERATOR] == LEAF:
            end = _put_value(nodes[node], written, end)
        else:
            operator = nodes[node, OPERATOR]
            left, right = nodes[node, LEFT], nodes[node, RIGHT]
            rank = operator // 2
            size = _wait(waiting, size, right, nodes[right, OPERATOR] != LEAF and nodes[right, OPERATOR] // 2 <= rank)
            waiting[size] = -_sign(operator)
            size = _wait(waiting, size + 1, left, nodes[left, OPERATOR] != LEAF and nodes[left, OPERATOR] // 2 < rank)
    return end


@njit(cache=True, error_model="numpy")
def _wait(waiting: Ints, size: int, node: int, in_parentheses: bool) -> int:  # noqa: FBT001
    """Put a node on the pile of what is still to be written."""
    if in_parentheses:
        waiting[size], waiting[size + 1], waiting[size + 2] = -41, node, -40  # the opening one is taken first
        return size + 3
    waiting[size] = node
    return size + 1


@njit(cache=True, error_model="numpy")
def _put_value(node: Ints, written: Bytes, end: int) -> int:
    """Write a value that is not negative, as arithmetic.written does."""
    if node[BOTTOM] == 1:
        return _put_number(node[TOP], written, end)
    end = _put_number(node[TOP], written, _put(written, end, 40))
    end = _put_number(node[BOTTOM], written, _put(written, end, 47))
    return _put(written, end, 41)


@njit(cache=True, error_model="numpy")
def _put_number(number: int, written: Bytes, end: int) -> int:
    digits = 1
    left = number // 10
    while left:
        digits += 1
        left //= 10
    for place in range(end + digits - 1, end - 1, -1):
        written[place] = 48 + number % 10
        number //= 10
    return end + digits


@njit(cache=True, error_model="numpy")
def _put(written: Bytes, end: int, character: int) -> int:
    written[end] = character
    return end + 1


@njit(cache=True, error_model="numpy")
def _sign(operator: int) -> int:
    """The character of an operator."""
    return (43, 45, 42, 47)[operator]


@njit(cache=True, error_model="numpy")
def outline(rows: Rows, values: Ints, position: int, nodes: Ints) -> int:
    """Fill in the nodes of one form; how many they are."""
    letters = values.shape[0]
    if position < letters:
        return _leaf(nodes, 0, values[position])
    inner = np.zeros((MOST_PARTS, 4), np.int64)  # position, first of its parts, node, sign of each sum and product
    inner[0, 0] = position
    found, count = 1, 0
    entry = 0
    while entry < found:
        found = _open(rows, letters, inner, entry, found)
        inner[entry, 1] = found - 1
        entry += 1
    parts = np.zeros((MOST_PARTS, SIDE + 1), np.int64)
    for entry in range(found - 1, -1, -1):  # inner parts stand behind what they are parts of
        size, count = _parts(rows, values, inner, entry, parts, nodes, count)
        if rows[inner[entry, 0] - letters, 0] <= 1:
            inner[entry, 3], count = _sum(parts, size, nodes, count)
        else:
            inner[entry, 3], count = _product(parts, size, nodes, count)
        inner[entry, 2] = count - 1
    return count


@njit(cache=True, error_model="numpy")
def _is_of_kind(rows: Rows, letters: int, position: int, operator: int) -> bool:
    """Whether a position is a sum, or a product, as the operator says."""
    return position >= letters and (rows[position - letters, 0] <= 1) == (operator <= 1)


@njit(cache=True, error_model="numpy")
def _open(rows: Rows, letters: int, inner: Ints, entry: int, found: int) -> int:
    """List the sums and products that are parts of an entry, the first one last, so that it is taken up first."""
    position, first = inner[entry, 0], found
    operator = rows[position - letters, 0]
    while _is_of_kind(rows, letters, position, operator):
        if rows[position - letters, 2] >= letters:
            inner[found, 0] = rows[position - letters, 2]
            found += 1
        position = rows[position - letters, 1]
    if position >= letters:
        inner[found, 0] = position
        found += 1
    for k in range((found - first) // 2):
        inner[first + k, 0], inner[found - 1 - k, 0] = inner[found - 1 - k, 0], inner[first + k, 0]
    return found


@njit(cache=True, error_model="numpy")
def _parts(rows: Rows, values: Ints, inner: Ints, entry: int, parts: Ints, nodes: Ints, count: int) -> tuple[int, int]:  # noqa: PLR0913, PLR0917
    """The parts of an entry, sums and products before letters and these ascending; how many, and the count of nodes."""
    letters = values.shape[0]
    position, follower = inner[entry, 0], inner[entry, 1]
    first = rows[position - letters, 0]
    size = 0
    more = True
    while more:
        more = _is_of_kind(rows, letters, position, first)
        part = rows[position - letters, 2] if more else position
        parts[size, SIDE] = rows[position - letters, 0] if more else 2 * (first // 2)
        if part >= letters:
            parts[size, NODE], parts[size, OWN] = inner[follower, 2], inner[follower, 3]
            follower -= 1
        else:
            parts[size, NODE], parts[size, OWN] = count, 1
            count = _leaf(nodes, count, values[part])
        size += 1
        if more:
            position = rows[position - letters, 1]
    start = 0
    while start < size and nodes[parts[start, NODE], OPERATOR] != LEAF:
        start += 1
    end = size - 1
    while start < end:
        for column in range(SIDE + 1):
            parts[start, column], parts[end, column] = parts[end, column], parts[start, column]
        start, end = start + 1, end - 1
    return size, count


@njit(cache=True, error_model="numpy")
def _sum(parts: Ints, size: int, nodes: Ints, count: int) -> tuple[int, int]:
    """Join terms: first those that add, then those that are taken away; the sign of what comes out, and the count."""
    top, bottom, adding = 0, 1, 0
    for k in range(size):
        sign = parts[k, OWN] * (1 - 2 * parts[k, SIDE])
        adding += 1 if sign > 0 else 0
        term_top, term_bottom = nodes[parts[k, NODE], TOP], nodes[parts[k, NODE], BOTTOM]
        top, bottom = top * term_bottom + sign * term_top * bottom, bottom * term_bottom
    turned = -1 if top < 0 or adding == 0 else 1
    whole = -1
    for operator in range(2):
        for k in range(size):
            if parts[k, OWN] * (1 - 2 * parts[k, SIDE]) == turned * (1 - 2 * operator):
                whole, count = _join(nodes, count, operator, whole, parts[k, NODE])
    return turned, count


@njit(cache=True, error_model="numpy")
def _product(parts: Ints, size: int, nodes: Ints, count: int) -> tuple[int, int]:
    """Join factors: first those above the line; the sign of what comes out, and the count."""
    sign, whole = 1, -1
    for operator in range(2, 4):
        for k in range(size):
            if parts[k, SIDE] == operator:
                whole, count = _join(nodes, count, operator, whole, parts[k, NODE])
                sign *= parts[k, OWN]
    return sign, count


@njit(cache=True, error_model="numpy")
def _join(nodes: Ints, count: int, operator: int, left: int, right: int) -> tuple[int, int]:
    """A node for an operation, or the right operand alone where there is no left one yet."""
    if left < 0:
        return right, count
    top, bottom = combined(operator, nodes[left, TOP], nodes[left, BOTTOM], nodes[right, TOP], nodes[right, BOTTOM])
    top, bottom = reduced(top, bottom)
    nodes[count, OPERATOR], nodes[count, LEFT], nodes[count, RIGHT] = operator, left, right
    nodes[count, TOP], nodes[count, BOTTOM] = top, bottom
    return count, count + 1


@njit(cache=True, error_model="numpy")
def _leaf(nodes: Ints, count: int, value: int) -> int:
    nodes[count, OPERATOR], nodes[count, TOP], nodes[count, BOTTOM] = LEAF, value, 1
    return count + 1
