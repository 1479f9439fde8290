"""Sudoku: puzzles, the verifier, and the public faults that must not recur."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import EXPLICIT, Splits, Suite, TraceStyle, stream
from testbeds.sudoku import LEVELS, Sudoku

ROYLE = "000000010400000000020000000000050407008000300001090000300400200050100000000806000"
"""The first of Gordon Royle's list of puzzles with 17 givens, and its solution."""
ROYLE_SOLUTION = "693784512487512936125963874932651487568247391741398625319475268856129743274836159"
BOXES = {4: (2, 2), 6: (2, 3), 9: (3, 3)}
FEW = {4: Sudoku(size=4, givens=(4, 8)), 6: Sudoku(size=6, givens=(9, 14)), 9: Sudoku(givens=(23, 32))}


@cache
def some(size):
    return FEW[size].generate(stream("some", size), 10)


# ------------------------------------------------------------------------------- a second solver: exact cover


def exact_cover_solutions(size, givens, limit):
    """Solutions of a puzzle by Knuth's Algorithm X over sets: cells, and digits of rows, columns and boxes."""
    covers = items_of_options(size, givens)
    choices = {}
    for option, items in covers.items():
        for item in items:
            choices.setdefault(item, set()).add(option)
    found = []

    def search(partial):
        if not choices:
            found.append("".join(d for _, d in sorted(partial)))
            return
        for option in sorted(choices[min(choices, key=lambda item: len(choices[item]))]):
            removed = cover(covers, choices, option)
            search([*partial, option])
            uncover(covers, choices, option, removed)
            if len(found) >= limit:
                return

    search([])
    return found


def items_of_options(size, givens):
    height, width = BOXES[size]
    covers = {}
    for cell, digit in enumerate(givens):
        r, c = divmod(cell, size)
        b = r // height, c // width
        for d in [digit] if digit != "." else map(str, range(1, size + 1)):
            covers[cell, d] = [("cell", cell), ("row", r, d), ("column", c, d), ("box", b, d)]
    return covers


def cover(covers, choices, option):
    removed = []
    for item in covers[option]:
        for other in choices[item]:
            for theirs in covers[other]:
                if theirs != item:
                    choices[theirs].discard(other)
        removed.append(choices.pop(item))
    return removed


def uncover(covers, choices, option, removed):
    for item in reversed(covers[option]):
        choices[item] = removed.pop()
        for other in choices[item]:
            for theirs in covers[other]:
                if theirs != item:
                    choices[theirs].add(other)


@pytest.mark.parametrize("size", [4, 6, 9])
def test_a_second_solver_finds_the_one_solution(size):
    for problem in some(size):
        certificate = problem.certificate
        assert exact_cover_solutions(size, certificate.givens, limit=2) == [certificate.solution]
        assert all(x in (".", y) for x, y in zip(certificate.givens, certificate.solution, strict=True))


def test_a_puzzle_with_17_givens_is_solved_and_verified():
    task = Sudoku()
    problem = task.pose(ROYLE)
    assert problem.certificate.solution == ROYLE_SOLUTION
    assert problem.features["givens"] == 17
    assert task.verify(problem, ROYLE_SOLUTION).correct
    assert task.verify(problem, task.demonstrate(problem, EXPLICIT, stream("any")).text).correct


@pytest.mark.parametrize(
    ("givens", "message"),
    [
        (ROYLE.replace("1", "0", 1), "several solutions"),
        ("11" + ROYLE[2:], "no solution"),
        (ROYLE[:-1], "81 digits"),
        (ROYLE_SOLUTION, "81 digits"),  # nothing is left to fill
        ("x" + ROYLE[1:], "81 digits"),
        ("", "81 digits"),
    ],
)
def test_only_puzzles_with_one_solution_can_be_posed(givens, message):
    with pytest.raises(ValueError, match=message):
        Sudoku().pose(givens)


# ---------------------------------------------------------------------------------------------- generation


@pytest.mark.parametrize("name", LEVELS)
def test_givens_and_techniques_stay_in_the_levels_range(name):
    task = LEVELS[name]
    hardest = {"hidden_single": 2, "hidden_pair": 5, None: 6}[task.hardest]
    problems = task.generate(stream("range", name), 40)
    assert {task.givens[0] <= p.features["givens"] <= task.givens[1] for p in problems} == {True}
    assert max(p.features["technique"] for p in problems) <= hardest
    for problem in problems:
        assert sum(x != "." for x in problem.certificate.givens) == problem.features["givens"]
        assert problem.features["empty"] + problem.features["givens"] == task.size**2
        steps = sum(problem.features[name] for name in ("naked_singles", "hidden_singles", "guesses"))
        assert steps == problem.features["empty"]


def test_the_number_of_givens_is_uniform_over_its_range():
    counts = Counter(p.features["givens"] for p in Sudoku(size=4, givens=(5, 9)).generate(stream("uniform"), 2_000))
    # 400 expected each; 100 off is 5.6 standard deviations of a binomial.
    assert sorted(counts) == [5, 6, 7, 8, 9]
    assert all(abs(count - 400) < 100 for count in counts.values())


def test_every_4x4_grid_is_the_solution_equally_often():
    solutions = Counter(p.certificate.solution for p in Sudoku(size=4, givens=(4, 5)).generate(stream("floor"), 5_760))
    # 20 expected each: the sum of squares over 20 is chi-square with 287 degrees of freedom, at most 420 but for 1e-6.
    assert len(solutions) == 288
    assert sum((count - 20) ** 2 / 20 for count in solutions.values()) < 420
    assert Sudoku(size=4, givens=(4, 5)).floor(some(4)[0]) == 1 / 288


@pytest.mark.parametrize("hardest", ["naked_single", "hidden_single", "locked_candidates"])
def test_a_technique_can_be_made_the_hardest_one(hardest):
    level = ("naked_single", "hidden_single", "locked_candidates").index(hardest) + 1
    problems = Sudoku(givens=(25, 27), hardest=hardest).generate(stream("hardest", hardest), 30)
    assert max(p.features["technique"] for p in problems) == level  # few givens: some puzzle needs all that it may
    easier = TECHNIQUE_FEATURES[level:]
    assert all(p.features[name] == 0 for p in problems for name in easier)


TECHNIQUE_FEATURES = ("naked_singles", "hidden_singles", "locked_candidates", "naked_pairs", "hidden_pairs", "guesses")


def test_all_4x4_puzzles_are_walked_once_each_and_in_a_random_presentation():
    task = Sudoku(size=4, givens=(4, 5))
    walked = list(task.enumerate())
    assert task.capacity == len(walked) == len({p.key for p in walked}) == 13 + 96
    assert {p.key for p in task.generate(stream("walk"), 300)} <= {p.key for p in walked}
    assert [p.prompt for p in task.enumerate()] == [p.prompt for p in walked]
    assert len({p.certificate.solution for p in walked}) > 50  # not the two canonical grids
    assert all(task.pose(p.certificate.givens) == p for p in walked[:20])


def test_families_of_9x9_puzzles_are_their_solutions_and_smaller_ones_stand_alone():
    task = Sudoku()
    problem = task.generate(stream("family"), 1)[0]
    cells = list(problem.certificate.givens)
    cells[cells.index(".")] = problem.certificate.solution[cells.index(".")]
    richer = task.pose("".join(cells))
    assert richer.key != problem.key
    assert richer.cut == problem.cut
    assert some(4)[0].cut == some(4)[0].key


def test_a_relabelled_and_turned_puzzle_has_the_same_key():
    problem = Sudoku().pose(ROYLE)
    relabelled = ROYLE.translate(str.maketrans("123456789", "987654321"))
    turned = "".join(relabelled[row * 9 + column] for column in range(9) for row in range(9))
    other = Sudoku().pose(turned)
    assert other.key == problem.key
    assert other.family == problem.family
    assert other.certificate != problem.certificate


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"size": 5}, "size"),
        ({"size": True}, "size"),
        ({"givens": (16, 30)}, "from 22 to 80"),  # no puzzle has 16 givens
        ({"givens": (19, 19)}, "from 22 to 80"),  # A4: 62 empty cells
        ({"givens": (22, 30), "hardest": "naked_single"}, "nothing harder than naked_single"),
        ({"givens": (30, 81)}, "from 22 to 80"),
        ({"givens": (40, 30)}, "low <= high"),
        ({"givens": [30, 40]}, "tuple"),
        ({"givens": (30.0, 40)}, "whole numbers"),
        ({"givens": (30, True)}, "whole numbers"),
        ({"size": 4}, "from 4 to 15"),  # the default is for 9x9
        ({"size": 4, "givens": (3, 8)}, "from 4 to 15"),
        ({"size": 6, "givens": (7, 8)}, "from 9 to 35"),
        ({"hardest": "search"}, "None or one of"),
    ],
)
def test_infeasible_tasks_are_refused_at_construction(fields, message):
    with pytest.raises(ValueError, match=message):
        Sudoku(**fields)


def test_fault_a4_and_a26_as_many_empty_cells_as_offered_and_still_one_solution():
    # A4: reasoning-gym's 9x9 puzzles were not unique, and slow beyond 60 empty cells. A26: an infinite loop.
    for problem in Sudoku(givens=(22, 22)).generate(stream("A4"), 3):
        assert problem.features["empty"] == 59
        assert len(exact_cover_solutions(9, problem.certificate.givens, limit=2)) == 1


def test_fault_b40_seeds_42_62_and_82_share_no_puzzle_across_splits():
    splits = Splits(fractions=(("train", 0.5), ("validation", 0.25), ("test", 0.25)))
    for size in (4, 9):
        cuts = {split: set() for split in splits.names}
        for seed in (42, 62, 82):
            suite = Suite(task=Sudoku(size=size, givens={4: (5, 9), 9: (30, 40)}[size]), splits=splits, seed=seed)
            for split in splits.names:
                cuts[split] |= {problem.cut for problem in suite.stream(split)[:64]}
        assert not cuts["train"] & (cuts["validation"] | cuts["test"])
        assert not cuts["validation"] & cuts["test"]


# ------------------------------------------------------------------------------------------------ verifier


def grid_of(problem):
    return problem.certificate.solution


def lines(grid, size):
    return [grid[start : start + size] for start in range(0, len(grid), size)]


@pytest.mark.parametrize("size", [4, 6, 9])
def test_the_grid_is_accepted_in_every_documented_spelling(size):
    task, problem = FEW[size], some(size)[0]
    grid = grid_of(problem)
    for text in (
        grid,
        "/".join(lines(grid, size)),
        " / ".join(lines(grid, size)),
        "\n".join(lines(grid, size)),
        " ".join(grid),
        f"any words 1234 / dead #{grid}",
        f"#{grid}",
        grid + " \n" * 5_000,
    ):
        verdict = task.verify(problem, text)
        assert verdict.correct, verdict.reason
        assert verdict.progress == 1.0


@pytest.mark.parametrize("size", [4, 6, 9])
def test_other_spellings_are_malformed_with_the_first_slip(size):
    task, problem = FEW[size], some(size)[0]
    grid = grid_of(problem)
    rows = lines(grid, size)
    for text, reason in (
        ("", "empty"),
        (f"{grid}#", "empty"),
        (f"{grid}#{grid}#{grid}", "2 answer marks"),
        (grid[:-1], f"{size**2 - 1} cells"),
        (grid + grid[0], f"{size**2 + 1} cells"),
        ("/".join(rows) + "/", f"{size + 1} rows"),
        ("/".join([*rows[:-1], rows[-1][:-1]]), f"row {size} has {size - 1} cells"),
        (rows[0] + "/" + "".join(rows[1:]), "2 rows"),
        (grid.replace(grid[0], "\uff11", 1), "neither a digit"),
        (grid.replace(grid[0], "0", 1), "neither a digit"),
        (grid.replace(grid[0], ".", 1), "neither a digit"),
        (f"[{grid}]", "neither a digit"),
        (f"{grid}\x00", "neither a digit"),
        (grid + " " * 1_000_000, "characters"),
        (problem.prompt, "neither a digit"),
    ):
        verdict = task.verify(problem, text)
        assert not verdict.well_formed
        assert not verdict.correct
        assert verdict.progress == 0
        assert reason in verdict.reason


def test_the_first_violated_unit_is_named():
    # Its solution is 1234 3412 2143 4321. Only cells to fill are changed below, but for the last case.
    task = Sudoku(size=4, givens=(4, 9))
    problem = task.pose("1... / .41. / .14. / 4321")
    solution = grid_of(problem)
    assert lines(solution, 4) == ["1234", "3412", "2143", "4321"]
    for grid, reason in (
        ("1334 3412 2143 4321", "row 1 has two 3s and misses 2"),
        ("1324 3412 2143 4321", "column 2 has two 3s and misses 2"),
        ("1333 3412 2143 4321", "row 1 has three 3s and misses 2 and 4"),
        ("1234 2413 3142 4321", "box 1 has two 2s and misses 3"),  # rows and columns are complete
        ("4234 3412 2143 4321", "cell r1c1 is 4 but 1 is given"),
    ):
        assert task.verify(problem, grid).reason == reason


def test_changed_givens_and_wrong_cells_are_told_apart():
    task, problem = Sudoku(), Sudoku().pose(ROYLE)
    changed = "5" + ROYLE_SOLUTION[1:]  # r1c1 is to be filled
    assert task.verify(problem, changed).reason == "row 1 has two 5s and misses 6"
    assert task.verify(problem, changed).progress == 63 / 64
    given_changed = ROYLE_SOLUTION[:7] + "9" + ROYLE_SOLUTION[8:]
    assert task.verify(problem, given_changed).reason == "cell r1c8 is 9 but 1 is given"
    assert task.verify(problem, given_changed).progress == 64 / 65
    swapped_rows = ROYLE_SOLUTION[9:18] + ROYLE_SOLUTION[:9] + ROYLE_SOLUTION[18:]  # obeys the rules, not the givens
    assert "is given" in task.verify(problem, swapped_rows).reason


@pytest.mark.parametrize("size", [4, 6, 9])
@given(draw=st.data())
def test_grids_are_judged_by_the_rules_alone(size, draw):
    # Against a judge of its own: rows, columns, boxes and givens as sets.
    task, problem = FEW[size], draw.draw(st.sampled_from(some(size)))
    grid = list(grid_of(problem))
    for cell in draw.draw(st.lists(st.integers(0, size**2 - 1), max_size=3)):
        grid[cell] = draw.draw(st.sampled_from("123456789"[:size]))
    height, width = BOXES[size]
    units = [set() for _ in range(3 * size)]
    for cell, digit in enumerate(grid):
        r, c = divmod(cell, size)
        for unit in (r, size + c, 2 * size + r // height * (size // width) + c // width):
            units[unit].add(digit)
    kept = all(x in (".", y) for x, y in zip(problem.certificate.givens, grid, strict=True))
    verdict = task.verify(problem, "".join(grid))
    assert verdict.correct == (kept and all(len(unit) == size for unit in units))
    assert verdict.well_formed
    assert (verdict.progress == 1) == verdict.correct


def test_a_verdict_needs_a_problem_of_the_size():
    with pytest.raises(TypeError, match="size=9"):
        Sudoku().verify(some(4)[0], "1")


def test_a_megabyte_of_anything_gets_a_verdict():
    task, problem = FEW[9], some(9)[0]
    for text in (
        "1" * 1_000_000,
        " 1" * 500_000,
        "#" * 1_000_000,
        "m1 " * 330_000,
        "/" * 1_000_000,
        "\ud800" * 1_000_000,
    ):
        assert not task.verify(problem, text).correct
    assert task.verify(problem, "x " * 500_000 + "#" + grid_of(problem)).correct


def test_a_drawing_shows_the_givens_in_their_boxes():
    mini = Sudoku(size=4, givens=(4, 9))
    drawn = mini.drawing(mini.pose("1... / .41. / .14. / 4321"))
    assert drawn == " 1 . | . .\n . 4 | 1 .\n-----+-----\n . 1 | 4 .\n 4 3 | 2 1"
    for size, rules in ((6, 2), (9, 2)):
        height, width = BOXES[size]
        lines_drawn = FEW[size].drawing(some(size)[0]).split("\n")
        assert [number for number, line in enumerate(lines_drawn) if "-" in line] == [height, 2 * height + 1][:rules]
        assert {line.count("|") for line in lines_drawn if "-" not in line} == {size // width - 1}
        assert "".join(x for x in "".join(lines_drawn) if x in ".123456789") == some(size)[0].certificate.givens
    with pytest.raises(TypeError, match="size=9"):
        Sudoku().drawing(some(4)[0])


def test_symbols_are_the_same_for_all_difficulties_of_a_size():
    assert LEVELS["easy"].symbols == LEVELS["hard"].symbols == Sudoku().symbols
    assert set(LEVELS["mini"].symbols) < set(Sudoku().symbols)


def test_instructions_tell_the_grammar_and_the_size():
    text = LEVELS["six"].instructions
    assert all(words in text for words in ("6x6", "2 rows by 3 columns", "#", "/", "from 1 to 6"))


def test_generation_does_not_depend_on_the_batch_before():
    task = Sudoku(givens=(30, 40))
    first = task.generate(stream("batch"), 5)
    task.generate(stream("other"), 7)
    assert task.generate(stream("batch"), 5) == first
    assert np.unique([p.key for p in first]).size == 5


def test_a_trace_style_is_honoured_by_mini_puzzles_with_the_first_cell_heuristic():
    style = TraceStyle(search="depth_first", heuristic="first", backtracks=1)
    task = FEW[4]
    assert any(_is_written(task, problem, style) for problem in some(4))


def _is_written(task, problem, style):
    try:
        return task.verify(problem, task.demonstrate(problem, style, stream("any")).text).correct
    except ValueError:
        return False
