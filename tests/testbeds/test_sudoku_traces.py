"""Traces of Sudoku, read by a checker that shares no code with the testbed."""

import re
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.extending import is_jitted

from testbeds import EXPLICIT, IMPLICIT, TraceStyle, stream, sudoku
from testbeds.core import Unrealisable
from testbeds.sudoku import LEVELS, Sudoku, backtracks_in

DEPTH_FIRST = TraceStyle(search="depth_first")
SHAPES = {4: (2, 2), 6: (2, 3), 9: (3, 3)}
FEW_GIVENS = {4: Sudoku(size=4, givens=(4, 6)), 6: Sudoku(size=6, givens=(9, 11)), 9: Sudoku(givens=(23, 26))}


@cache
def some(size):
    return FEW_GIVENS[size].generate(stream("traces", size), 12)


class Board:
    """Candidates as sets, units as lists of (row, column) from 1."""

    def __init__(self, prompt):
        rows = "".join(prompt.rstrip("> ").split()).split("/")
        self.size = n = len(rows)
        h, w = SHAPES[n]
        self.value = {
            (r + 1, c + 1): int(x) if x != "." else 0 for r, row in enumerate(rows) for c, x in enumerate(row)
        }
        self.units = {f"r{i}": [(i, c) for c in range(1, n + 1)] for i in range(1, n + 1)}
        self.units |= {f"c{i}": [(r, i) for r in range(1, n + 1)] for i in range(1, n + 1)}
        boxes = {}
        for r, c in self.value:
            boxes.setdefault(((r - 1) // h, (c - 1) // w), []).append((r, c))
        self.units |= {f"b{i}": cells for i, (_, cells) in enumerate(sorted(boxes.items()), 1)}
        self.lost = {cell: set() for cell in self.value}

    def seen(self, cell):
        return {self.value[other] for unit in self.units.values() if cell in unit for other in unit} - {0}

    def candidates(self, cell):
        if self.value[cell]:
            return set()
        return set(range(1, self.size + 1)) - self.seen(cell) - self.lost[cell]

    def places(self, unit, digit):
        return [cell for cell in self.units[unit] if digit in self.candidates(cell)]


def cell_of(text):
    match = re.fullmatch(r"r(\d)c(\d)", text)
    return int(match[1]), int(match[2])


def lines_of(trace):
    working, mark, _ = trace.text.partition("#")
    assert mark or not trace.steps
    return [line.split() for line in working.strip().splitlines()]


def check_technique(board, line):
    """Checks one explicit line against the board and carries it out."""
    word, *rest = line
    if ":" not in rest:
        where, digit = rest[-1].split("=")
        cell, digit = cell_of(where), int(digit)
        if word == "naked_single":
            assert board.candidates(cell) == {digit}
        elif word == "hidden_single":
            assert board.places(rest[0], digit) == [cell]
        else:
            assert word == "guess"
            assert len(board.candidates(cell)) == min(
                len(board.candidates(c)) for c in board.value if not board.value[c]
            )
        board.value[cell] = digit
        return
    colon = rest.index(":")
    removed = [(cell_of(text.split("!")[0]), int(text.split("!")[1])) for text in rest[colon + 1 :]]
    allowed = check_pattern(board, word, rest[:colon])
    assert removed
    for cell, digit in removed:
        assert digit in board.candidates(cell)
        assert (cell, digit) in allowed
        board.lost[cell].add(digit)


def check_pattern(board, word, seen):
    """What the technique may remove, once its pattern is there."""
    if word == "locked_candidates":
        digit, unit, other = int(seen[0]), seen[1], seen[2]
        assert set(board.places(unit, digit)) <= set(board.units[other])
        return {(cell, digit) for cell in set(board.units[other]) - set(board.units[unit])}
    unit, pair, digits = seen[0], [cell_of(text) for text in seen[1:3]], {int(text) for text in seen[3:]}
    assert set(pair) <= set(board.units[unit])
    assert len(digits) == len(set(pair)) == 2
    if word == "naked_pair":
        assert all(board.candidates(cell) == digits for cell in pair)
        return {(cell, digit) for cell in board.units[unit] if cell not in pair for digit in digits}
    assert word == "hidden_pair"
    assert all(set(board.places(unit, digit)) == set(pair) for digit in digits)
    return {(cell, digit) for cell in pair for digit in range(1, board.size + 1) if digit not in digits}


@pytest.mark.parametrize("size", [4, 6, 9])
def test_each_step_of_a_technique_is_sound_and_the_steps_fill_the_grid(size):
    for problem in some(size):
        board = Board(problem.prompt)
        trace = FEW_GIVENS[size].demonstrate(problem, EXPLICIT, stream("any"))
        lines = lines_of(trace)
        for line in lines:
            check_technique(board, line)
        assert "".join(str(board.value[cell]) for cell in sorted(board.value)) == problem.certificate.solution
        assert all(step.text.endswith(step.result) for step in trace.steps)
        words = [line[0] for line in lines]
        for word, feature in (("guess", "guesses"), ("hidden_single", "hidden_singles"), ("naked_pair", "naked_pairs")):
            assert words.count(word) == problem.features[feature]


def test_every_technique_appears_and_is_checked():
    words = set()
    for problem in FEW_GIVENS[9].generate(stream("all techniques"), 60):
        board = Board(problem.prompt)
        for line in lines_of(FEW_GIVENS[9].demonstrate(problem, EXPLICIT, stream("any"))):
            check_technique(board, line)
            words.add(line[0])
    assert words == {"naked_single", "hidden_single", "locked_candidates", "naked_pair", "hidden_pair", "guess"}


def cell_to_look_at(board, heuristic):
    open_cells = [cell for cell in sorted(board.value) if not board.value[cell]]
    if heuristic == "fewest":
        open_cells.sort(key=lambda cell: len(board.candidates(cell)))  # stable: reading order among equals
    return open_cells[0] if open_cells else None


def check_search(problem, trace, heuristic):
    """Replays a depth-first trace with a stack of states; the number of dead ends, all of them different."""
    board = Board(problem.prompt)
    stack, refuted, dead_ends, after_dead = [], {}, [], False
    for word, text in lines_of(trace):
        looked_at = cell_to_look_at(board, heuristic)
        if word == "back":
            where, digit = text.split("=")
            cell, value, before = stack.pop()
            assert (cell, value) == (cell_of(where), int(digit))
            state = tuple(sorted(before.items()))
            # It is refuted by a dead end right below it, or because the next choice has no candidate left.
            assert after_dead or refuted.get(tuple(sorted(board.value.items())), set()) >= board.candidates(looked_at)
            board.value = dict(before)
            refuted.setdefault(state, set()).add(value)
            after_dead = False
            continue
        where, _, digit = text.partition("=")
        cell = cell_of(where)
        assert cell == looked_at
        if word == "dead":
            assert not board.candidates(cell)
            dead_ends.append(tuple(sorted(board.value.items())))
            after_dead = True
            continue
        after_dead = False
        candidates = board.candidates(cell)
        assert int(digit) in candidates
        if word == "guess":
            assert len(candidates) > 1
            assert int(digit) not in refuted.get(tuple(sorted(board.value.items())), set())
            stack.append((cell, int(digit), dict(board.value)))
        else:
            assert word == "naked_single"
            assert len(candidates) == 1
        board.value[cell] = int(digit)
    assert "".join(str(board.value[cell]) for cell in sorted(board.value)) == problem.certificate.solution
    assert len(set(dead_ends)) == len(dead_ends)
    return len(dead_ends)


@pytest.mark.parametrize(("size", "heuristic"), [(4, "first"), (6, "first"), (6, "fewest"), (9, "fewest")])
@pytest.mark.parametrize("backtracks", [0, 1, 2, 5, None])
def test_a_search_meets_the_dead_ends_that_were_asked_for_and_each_is_real(size, heuristic, backtracks):
    if backtracks is None:
        style = TraceStyle(search="depth_first", heuristic=heuristic)
    else:
        style = TraceStyle(search="depth_first", heuristic=heuristic, backtracks=backtracks)
    written = 0
    for problem in some(size)[: 1 if backtracks is None else 6]:  # a whole search is long
        try:
            trace = FEW_GIVENS[size].demonstrate(problem, style, stream("search", problem.key))
        except Unrealisable:
            continue
        met = check_search(problem, trace, heuristic)
        assert met == backtracks_in(trace.text)
        assert backtracks in (None, met)
        assert FEW_GIVENS[size].verify(problem, trace.text).correct
        written += 1
    assert written


def test_the_real_search_tries_candidates_in_ascending_order():
    problem = some(9)[0]
    trace = FEW_GIVENS[9].demonstrate(problem, DEPTH_FIRST, stream("any"))
    tried = {}
    for word, text in lines_of(trace):
        where, _, digit = text.partition("=")
        if word == "guess":
            assert tried.get(where, 0) < int(digit)
            tried[where] = int(digit)
        if word == "back":
            for later in [cell for cell in tried if list(tried).index(cell) > list(tried).index(where)]:
                del tried[later]


def test_no_kernel_is_compiled_for_more_than_one_signature():
    # Each signature costs a second or more of compiling; numba makes one for each literal constant that it is passed.
    for size, task in FEW_GIVENS.items():
        problem = some(size)[0]
        task.pose(problem.certificate.givens)
        for style in (EXPLICIT, DEPTH_FIRST):
            task.demonstrate(problem, style, stream("any"))
    modules = [import_module(f"testbeds.sudoku.{found.name}") for found in iter_modules(sudoku.__path__)]
    kernels = {name: kernel for module in modules for name, kernel in vars(module).items() if is_jitted(kernel)}
    assert {"explore", "work_out", "count_from", "_record"} <= set(kernels)
    assert {name: kernel.signatures for name, kernel in kernels.items() if len(kernel.signatures) > 1} == {}


def test_different_streams_choose_different_dead_ends():
    style = TraceStyle(search="depth_first", heuristic="first", backtracks=2)
    problem = some(9)[1]
    texts = {FEW_GIVENS[9].demonstrate(problem, style, stream("choice", i)).text for i in range(10)}
    assert len(texts) > 3


def test_a_puzzle_without_so_many_dead_ends_is_unrealisable():
    task = LEVELS["easy"]
    problem = next(p for p in task.generate(stream("easy"), 50) if p.features["technique"] == 1)
    with pytest.raises(Unrealisable, match="exactly 3"):  # naked singles to the end: no choice is ever made
        task.demonstrate(problem, TraceStyle(search="depth_first", backtracks=3), stream("any"))
    with pytest.raises(Unrealisable, match="more than"):
        task.demonstrate(problem, TraceStyle(search="depth_first", backtracks=10**9), stream("any"))


@pytest.mark.parametrize(
    ("style", "message"),
    [
        (TraceStyle(search="breadth_first"), "breadth_first"),
        (TraceStyle(search="depth_first", heuristic="best"), "fewest or first"),
        (TraceStyle(granularity="implicit", order="backward"), "no steps"),
        (TraceStyle(search="depth_first", backtracks=1), "heuristic='first'"),
    ],
)
def test_styles_that_cannot_be_written_are_refused_with_what_can(style, message):
    with pytest.raises(ValueError, match=message) as refusal:
        FEW_GIVENS[4].demonstrate(some(4)[0], style, stream("any"))
    assert not isinstance(refusal.value, Unrealisable)


def test_composed_steps_hold_the_placements_in_order_in_groups():
    task = FEW_GIVENS[9]
    for problem in some(9)[:3]:
        explicit = task.demonstrate(problem, EXPLICIT, stream("any"))
        placed = [step.result for step in explicit.steps if "=" in step.result]
        composed = task.demonstrate(problem, TraceStyle(granularity="composed", group=4), stream("any"))
        lines = lines_of(composed)
        assert [text for line in lines for text in line] == placed
        assert {len(line) for line in lines[:-1]} == {4}
        assert len(placed) == problem.features["empty"]


def test_orders_permute_the_written_steps():
    task, problem = FEW_GIVENS[9], some(9)[2]
    forward = lines_of(task.demonstrate(problem, EXPLICIT, stream("any")))
    backward = lines_of(task.demonstrate(problem, TraceStyle(order="backward"), stream("any")))
    shuffled = lines_of(task.demonstrate(problem, TraceStyle(order="shuffled"), stream("any")))
    assert backward == forward[::-1]
    assert sorted(shuffled) == sorted(forward)
    assert shuffled not in (forward, backward)


def test_an_implicit_trace_is_the_grid_alone():
    problem = some(9)[0]
    trace = FEW_GIVENS[9].demonstrate(problem, IMPLICIT, stream("any"))
    assert trace.text == trace.answer
    assert "".join(trace.text.replace("/", "").split()) == problem.certificate.solution
    assert trace.steps
    assert not any(step.text for step in trace.steps)


@given(st.text())
def test_dead_ends_of_any_text_are_counted(text):
    assert backtracks_in(text) >= 0


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("dead", 0),
        ("dead r1c2", 1),
        ("deadr1c2back r1c1=3dead\n r9 c9", 2),
        ("dead r1c2 # dead r1c2", 1),  # what follows the mark is the answer
        ("dead r0c2 dead c1r2 dead r\uff11c1", 0),
        ("\ud800dead " * 1000, 0),
    ],
)
def test_dead_ends_are_counted_in_the_working_only(text, count):
    assert backtracks_in(text) == count
