"""Solutions as trees of operations, and how they are written: as an expression, step by step, or several steps at once.

A form (see countdown_forms.py) is written without a negative result: in each sum the terms that add come first, then
those that are taken away, and a sum that is negative is turned round (``3-(5-9)`` is written ``9-5+3``). Both are the
same solution under the equivalence of countdown_search.py.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from testbeds import arithmetic
from testbeds.arithmetic import OPERATORS, PRECEDENCE, written
from testbeds.countdown_forms import Program
from testbeds.countdown_outline import MOST_NODES, outline, spelled_forms, worked_form

Ints = NDArray[np.int64]


class Node(NamedTuple):
    """A number, or an operation on two nodes."""

    top: int
    """Numerator of the value, in lowest terms."""
    bottom: int = 1
    operator: str = ""
    left: Node | None = None
    right: Node | None = None


Line = tuple[str, str]
"""(operation, result) as they are written."""

Outline = list[list[int]]
"""The nodes of a tree, operands first: (operator or -1 for a number, places of left and right, top, bottom)."""

RANKS = tuple(PRECEDENCE[operator] for operator in OPERATORS)
NUMBER = 3  # binds more tightly than any operator


def joined(operator: str, left: Node, right: Node) -> Node:
    """The node of an operation; the right value of a division is not 0."""
    ratio = arithmetic.joined(operator, (left.top, left.bottom), (right.top, right.bottom))
    if ratio is None:
        raise ZeroDivisionError(f"{left} is divided by {right}; a solution divides by no 0")
    divisor = gcd(*ratio)
    return Node(ratio[0] // divisor, ratio[1] // divisor, operator, left, right)


def outline_of(form: Program, values: tuple[int, ...], position: int) -> Outline:
    """The form at ``position`` over these values of the letters, written without a negative result."""
    nodes = np.zeros((MOST_NODES, 5), np.int64)
    count = outline(form.rows, np.array(values, np.int64), position, nodes)
    return cast(Outline, nodes[:count].tolist())


def spelled_all(form: Program, letters_RL: Ints, position_R: Ints) -> list[str]:
    """The expression of a form for each row of letters and position."""
    return spelled_forms(form.rows, letters_RL, position_R).tobytes().decode().splitlines()


def worked(form: Program, values: tuple[int, ...], position: int) -> tuple[str, list[str]]:
    """The expression of a form and its steps, as ``spelled`` writes both: several times as fast."""
    text = worked_form(form.rows, np.array(values, np.int64), position).tobytes().decode()
    steps, _, expression = text.partition("#")
    return expression, steps.split(",")


def outlined(node: Node) -> Outline:
    """A tree as the list of its nodes."""
    rows: Outline = []
    _outlined(node, rows)
    return rows


def _outlined(node: Node, rows: Outline) -> int:
    if node.left is None or node.right is None:
        rows.append([-1, 0, 0, node.top, 1])
    else:
        left, right = _outlined(node.left, rows), _outlined(node.right, rows)
        rows.append([OPERATORS.index(node.operator), left, right, node.top, node.bottom])
    return len(rows) - 1


def assembled(rows: Outline) -> Node:
    """The tree of an outline."""
    made: list[Node] = []
    for operator, left, right, top, bottom in rows:
        if operator < 0:
            made.append(Node(top))
        else:
            made.append(Node(top, bottom, OPERATORS[operator], made[left], made[right]))
    return made[-1]


# ---------------------------------------------------------------------------------------------------- writing


def spelled(rows: Outline, lines: list[Line]) -> str:
    """The expression of an outline; its steps are added to ``lines``, operands before the operation that uses them."""
    texts: list[str] = []
    values: list[str] = []
    ranks: list[int] = []
    for operator, left, right, top, bottom in rows:
        value = str(top) if bottom == 1 and top >= 0 else written(top, bottom)
        values.append(value)
        if operator < 0:
            texts.append(value)
            ranks.append(NUMBER)
            continue
        symbol, rank = OPERATORS[operator], RANKS[operator]
        first = texts[left] if ranks[left] >= rank else f"({texts[left]})"
        second = texts[right] if ranks[right] > rank else f"({texts[right]})"
        texts.append(f"{first}{symbol}{second}")
        ranks.append(rank)
        lines.append((f"{values[left]}{symbol}{values[right]}", value))
    return texts[-1]


def written_out(rows: Outline) -> tuple[str, list[str]]:
    """The expression of an outline, and its steps such as ``3*5=15``."""
    lines: list[Line] = []
    expression = spelled(rows, lines)
    return expression, [f"{operation}={result}" for operation, result in lines]


def _expression(node: Node, first: str, second: str) -> str:
    operator, left, right = node.operator, node.left, node.right
    binds = PRECEDENCE[operator]
    if left is not None and left.operator and PRECEDENCE[left.operator] < binds:
        first = f"({first})"
    if right is not None and right.operator and PRECEDENCE[right.operator] <= binds:
        second = f"({second})"
    return f"{first}{operator}{second}"


def _operations(node: Node) -> list[Node]:
    """The operations of a tree, operands before the operation that uses them."""
    if node.left is None or node.right is None:
        return []
    return [*_operations(node.left), *_operations(node.right), node]


def folded(rows: Outline, group: int) -> list[Line]:
    """The steps of an outline, ``group`` at a time, as equations.

    A result that the same fold uses is not written: its operation stands in its place, in parentheses where needed
    (``3*5+7=22``). Operations of one fold that do not meet in it stand side by side (``2+3=5,4*6=24``).
    """
    steps = _operations(assembled(rows))
    return [_fold(steps[start : start + group]) for start in range(0, len(steps), group)]


def _fold(steps: list[Node]) -> Line:
    inside = {id(step) for step in steps}
    used = {id(operand) for step in steps for operand in (step.left, step.right)}
    ends = [step for step in steps if id(step) not in used]
    *before, last = [(_inlined(end, inside), written(end.top, end.bottom)) for end in ends]
    return "".join(f"{operation}={result}," for operation, result in before) + last[0], last[1]


def _inlined(node: Node | None, inside: set[int]) -> str:
    """A step as an expression over given numbers and results of earlier folds."""
    if node is None:
        return ""
    if id(node) not in inside:
        return written(node.top, node.bottom)
    operands = [
        part if part is None or id(part) in inside else part._replace(operator="") for part in (node.left, node.right)
    ]
    first, second = (_inlined(part, inside) for part in (node.left, node.right))
    return _expression(node._replace(left=operands[0], right=operands[1]), first, second)
