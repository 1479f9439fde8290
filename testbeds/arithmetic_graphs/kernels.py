"""Random dependency graphs with their values, many at once, and their labels for the canonical form: compiled.

A graph is a row: node v has ``kind_N[v]`` (0 a constant, 1 a sum, 2 a difference, 3 a product) and operands
``left_N[v]`` and ``right_N[v]``, each the number of an earlier node, or ``-1 - n`` for the number n. A constant is its
left operand. The nodes that the asked one needs come first, it is the last of them, and the distractors follow.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DRAWS_PER_NODE = 8  # uniform numbers that one operation takes
CONSTANT_SHARE = 0.25  # of the distractors
ASKED = 1 << 40  # added to the asked node's label: above all others


@njit(cache=True)
def _write(row_KN: Ints, v: int, operands: tuple[int, int], u_D: Floats, setting: Ints) -> None:
    """Writes an operation on one node and a number (``operands[1]`` is -1) or on two nodes, in either order."""
    modulus, kinds = setting[0], len(setting) - 1
    kind = setting[1 + int(u_D[5] * kinds)]
    other = operands[1]
    if other < 0:
        lowest = 2 if kind == 3 else 1  # times 1, times 0, plus 0 and minus 0 are no operations
        other = -1 - (lowest + int(u_D[6] * (modulus - lowest)))
    row_KN[0, v] = kind
    is_swapped = u_D[7] < 0.5
    row_KN[1, v] = other if is_swapped else operands[0]
    row_KN[2, v] = operands[0] if is_swapped else other


@njit(cache=True)
def _needed(row_KN: Ints, u_D: Floats, setting: Ints, operations: int, width: int) -> int:
    """Writes the asked node and what it needs, from the asked one back; their number.

    Open nodes are needed and not yet defined. One of them is drawn and becomes an operation, on open nodes or on new
    ones, never with more than ``width`` open at once; what is open after the last operation becomes a constant.
    """
    open_W = np.empty(width + 2, dtype=np.int64)
    defined_O = np.empty(operations, dtype=np.int64)
    operand_OK = np.empty((operations, 2), dtype=np.int64)
    place_C = np.empty(operations + width + 1, dtype=np.int64)
    open_W[0] = 0
    opened, created = 1, 1
    for t in range(operations):
        u = u_D[t * DRAWS_PER_NODE : (t + 1) * DRAWS_PER_NODE]
        pick = int(u[0] * opened)
        defined_O[t] = open_W[pick]
        opened -= 1
        open_W[pick] = open_W[opened]
        wanted = 1 if width == 1 or u[1] < 0.5 else 2
        least, most = max(0, wanted - (width - opened)), min(wanted, opened)
        reused = least + int(u[2] * (most - least + 1))
        operand_OK[t, 1] = -1
        for k in range(reused):  # the first places of a partial shuffle
            chosen = k + int(u[3 + k] * (opened - k))
            open_W[k], open_W[chosen] = open_W[chosen], open_W[k]
            operand_OK[t, k] = open_W[k]
        for k in range(reused, wanted):
            open_W[opened] = created
            operand_OK[t, k] = created
            opened += 1
            created += 1
    for place in range(opened):
        place_C[open_W[place]] = place
    for t in range(operations):
        place_C[defined_O[t]] = opened + operations - 1 - t
    u = u_D[operations * DRAWS_PER_NODE :]
    for place in range(opened):
        row_KN[0, place], row_KN[1, place], row_KN[2, place] = 0, -1 - int(u[place] * setting[0]), 0
    for t in range(operations):
        first, second = operand_OK[t, 0], operand_OK[t, 1]
        operands = (place_C[first], place_C[second] if second >= 0 else -1)
        v = place_C[defined_O[t]]
        _write(row_KN, v, operands, u_D[t * DRAWS_PER_NODE : (t + 1) * DRAWS_PER_NODE], setting)
    return opened + operations


@njit(cache=True)
def _distract(row_KN: Ints, u_D: Floats, setting: Ints, needed: int, size: int, width: int) -> None:
    """Writes the distractors: constants, or operations on any nodes but the asked one."""
    for v in range(needed, size):
        u = u_D[(v - needed) * DRAWS_PER_NODE : (v - needed + 1) * DRAWS_PER_NODE]
        if u[0] < CONSTANT_SHARE:
            row_KN[0, v], row_KN[1, v], row_KN[2, v] = 0, -1 - int(u[1] * setting[0]), 0
            continue
        usable = v - 1  # every earlier node but the asked one
        first = int(u[1] * usable)
        second = -1
        if width > 1 and usable > 1 and u[2] < 0.5:
            second = int(u[3] * (usable - 1))
            second += second >= first
            second += second >= needed - 1
        first += first >= needed - 1
        _write(row_KN, v, (first, second), u, setting)


@njit(cache=True)
def _evaluate(row_KN: Ints, size: int, modulus: int) -> None:
    kind_N, left_N, right_N, value_N = row_KN[0], row_KN[1], row_KN[2], row_KN[3]
    for v in range(size):
        left = value_N[left_N[v]] if left_N[v] >= 0 else -1 - left_N[v]
        right = value_N[right_N[v]] if right_N[v] >= 0 else -1 - right_N[v]
        if kind_N[v] == 0:
            value_N[v] = left
        elif kind_N[v] == 1:
            value_N[v] = (left + right) % modulus
        elif kind_N[v] == 2:
            value_N[v] = (left - right) % modulus
        else:
            value_N[v] = left * right % modulus


@njit(cache=True)
def draw(u_PD: Floats, row_KPN: Ints, needed_P: Ints, want_P: Ints, setting: Ints, sizes: tuple[int, int, int]) -> None:
    """Draws one graph from each row of ``u_PD`` and gives it to the first open problem that wants its answer.

    Problem i takes ``row_KPN[:, i]`` (kind, left, right, value) and ``needed_P[i]``, which is 0 while it is open.
    ``setting`` is the modulus and the permitted kinds, ``sizes`` are operations, width and distractors.
    """
    operations, width, distractors = sizes
    nodes = row_KPN.shape[2]
    row_KN = np.zeros((4, nodes), dtype=np.int64)
    filled = 0
    for needed in needed_P:
        filled += needed > 0
    next_V = np.zeros(setting[0], dtype=np.int64)  # where to look for an open problem, by wanted answer
    first_distractor = operations * DRAWS_PER_NODE + width
    for row in range(len(u_PD)):
        needed = _needed(row_KN, u_PD[row], setting, operations, width)
        _evaluate(row_KN, needed, setting[0])
        answer = row_KN[3, needed - 1]
        place = next_V[answer]
        while place < len(want_P) and (want_P[place] != answer or needed_P[place] > 0):
            place += 1
        next_V[answer] = place
        if place == len(want_P):
            continue
        size = needed + distractors
        _distract(row_KN, u_PD[row, first_distractor:], setting, needed, size, width)
        _evaluate(row_KN, size, setting[0])
        for v in range(size):  # by element: an assignment of slices takes seconds to compile
            for k in range(4):
                row_KPN[k, place, v] = row_KN[k, v]
        needed_P[place] = needed
        filled += 1
        if filled == len(want_P):
            break


@njit(cache=True)
def label(rows: tuple[Ints, Ints], distractors: int, cell_PN: Ints, edge_PNN: Ints) -> None:
    """Writes the labels of nodes and edges of each graph, up to which isomorphisms are taken; ``edge_PNN`` is all 0.

    They are the renamings of nodes and the exchanges of commuting operands. A node's label is its operation with its
    number, if it has one; an edge leads from a node to its operand and tells the sides of a difference apart.
    ``rows`` are ``row_KPN`` and ``needed_P``; each graph is the first ``needed_P + distractors`` nodes of its row.
    """
    row_KPN, needed_P = rows
    for p in range(len(needed_P)):
        for v in range(needed_P[p] + distractors):
            kind, left, right = row_KPN[0, p, v], row_KPN[1, p, v], row_KPN[2, p, v]
            number = 0
            if left < 0:
                number = -2 * left + (1 if kind == 2 else 0)  # a difference from a number, not of one
            else:
                edge_PNN[p, v, left] = 1
            if kind > 0:
                if right < 0:
                    number = -2 * right
                else:
                    edge_PNN[p, v, right] = 2 if kind == 2 else 1
            cell_PN[p, v] = number * 4 + kind + (ASKED if v == needed_P[p] - 1 else 0)


@njit(cache=True)
def measure(row_KPN: Ints, needed_P: Ints, measure_PF: Ints) -> None:
    """Per graph: operations on the longest path to the asked node, nodes used more than once, products, values of 0."""
    nodes = row_KPN.shape[2]
    depth_N = np.zeros(nodes, dtype=np.int64)
    uses_N = np.zeros(nodes, dtype=np.int64)
    for row in range(len(needed_P)):
        products = zeros = reused = 0
        for v in range(needed_P[row]):
            depth_N[v] = uses_N[v] = 0
            zeros += row_KPN[3, row, v] == 0
            if row_KPN[0, row, v] == 0:
                continue
            products += row_KPN[0, row, v] == 3
            for side in (1, 2):
                operand = row_KPN[side, row, v]
                if operand >= 0:
                    depth_N[v] = max(depth_N[v], depth_N[operand])
                    uses_N[operand] += 1
                    reused += uses_N[operand] == 2
            depth_N[v] += 1
        measure_PF[row, 0] = depth_N[needed_P[row] - 1]
        measure_PF[row, 1] = reused
        measure_PF[row, 2] = products
        measure_PF[row, 3] = zeros
