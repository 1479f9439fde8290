"""Grids and canonical forms of Sudoku: exact counts, uniformity, symmetries."""

from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.stats import chi2

from testbeds import stream
from testbeds.sudoku.canonical import canonical_forms
from testbeds.sudoku.dice import below, dice
from testbeds.sudoku.geometry import BOXES, geometry
from testbeds.sudoku.grids import GRIDS, band_tables, draw_grids, reduced_grids
from testbeds.sudoku.small import every_puzzle

SIZES = (4, 6, 9)


def is_grid(size, grid):
    """By the rules, without the testbed's tables."""
    height, width = BOXES[size]
    rows = np.asarray(grid).reshape(size, size).tolist()
    boxes = [
        [rows[top + i][left + j] for i in range(height) for j in range(width)]
        for top in range(0, size, height)
        for left in range(0, size, width)
    ]
    return all(sorted(unit) == list(range(1, size + 1)) for unit in (*rows, *zip(*rows, strict=True), *boxes))


def image(size, grids, rng, *, turned=None):
    """The grids (0 for empty) under one random symmetry."""
    height, width = BOXES[size]
    label = np.array([0, *(rng.permutation(size) + 1)])
    rows = [height * band + row for band in rng.permutation(size // height) for row in rng.permutation(height)]
    columns = [width * stack + column for stack in rng.permutation(size // width) for column in rng.permutation(width)]
    turned = (height == width and rng.integers(2) == 1) if turned is None else turned
    moved = [label[grid.reshape(size, size)][rows][:, columns] for grid in grids]
    return [(grid.T if turned else grid).reshape(-1) for grid in moved]


def passes_chi_square(counts, expected):
    """At level 1e-6, so that a fixed seed fails by chance about never."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    assert expected.min() >= 5
    assert counts.sum() == pytest.approx(expected.sum())
    return ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, len(counts) - 1)


@pytest.mark.parametrize("size", SIZES)
def test_drawn_grids_obey_the_rules(size):
    grids = draw_grids(size, dice(stream("rules", size)), 50)
    assert all(is_grid(size, grid) for grid in grids)


def test_the_dice_are_fair_and_stay_below_their_bound():
    state = dice(stream("dice"))
    counts = np.bincount([below(state, 7) for _ in range(7_000)], minlength=7)
    assert passes_chi_square(counts, np.full(7, 1000))
    assert {int(below(state, 1)) for _ in range(20)} == {0}


def count_by_rows(size, *rows):
    """Grids that start with these rows, by trying all permutations as the next row: none of the testbed's code."""
    width = BOXES[size][1]

    def extend(grid, lines):
        if len(grid) == size:
            return 1
        in_box = grid[len(grid) - len(grid) % BOXES[size][0] :]
        lines = [line for line in lines if all(x != y for x, y in zip(line, grid[-1], strict=True))]
        return sum(extend([*grid, line], lines) for line in lines if not any(clash(line, row) for row in in_box))

    def clash(line, row):
        return any({*line[j : j + width]} & {*row[j : j + width]} for j in range(0, size, width))

    every = list(permutations(range(1, size + 1)))
    for row in rows[:-1]:
        every = [line for line in every if all(x != y for x, y in zip(line, row, strict=True))]
    return extend(list(rows), every)


def test_there_are_288_grids_of_4x4():
    # 12 with the first row 1 2 3 4, times the 4! relabellings.
    assert count_by_rows(4, (1, 2, 3, 4)) * 24 == GRIDS[4] == 288
    assert len(np.unique(reduced_grids(4), axis=0)) == 12


def test_there_are_28200960_grids_of_6x6():
    # Under 1 2 3 | 4 5 6 the second row is p(4 5 6) | q(1 2 3), 36 ways. Permuting columns and relabelling turns two of
    # them into each other if p q has the same cycle type: 6 are like the identity, 18 like a swap, 12 like a 3-cycle.
    first = (1, 2, 3, 4, 5, 6)
    types = {6: (4, 5, 6, 1, 2, 3), 18: (5, 4, 6, 1, 2, 3), 12: (5, 6, 4, 1, 2, 3)}
    counts = {times: count_by_rows(6, first, second) for times, second in types.items()}
    assert counts == {6: 1408, 18: 1088, 12: 928}
    assert sum(times * count for times, count in counts.items()) * 720 == GRIDS[6] == 28_200_960
    assert len(np.unique(reduced_grids(6), axis=0)) == 28_200_960 // 720


def test_bands_are_counted_as_felgenhauer_and_jarvis_do():
    # 9! for the first box, 56 ways to divide the digits among the rows of the others, 3!**6 orders within these rows.
    # The table holds one relabelling of the first box's columns in 280, and one order of the columns in 6**3.
    tables = band_tables()
    assert tables.bands.sum() * 280 * 6**3 == 362_880 * 56 * 6**6
    assert tables.bands.max() == tables.most == 12**3  # three equal partitions: three Latin squares side by side


@cache
def classes_of_bands():
    """Classes of top bands: the class of each pair (q, r) beside partition 0, and the number of grids of each class.

    Relabellings that keep partition 0 and swapping the second and the third stack change no count, so bands that these
    turn into each other have equally many completions, which are counted for one of each class.
    """
    tables = band_tables()
    number = {tuple(sorted(row)): i for i, row in enumerate(tables.masks.tolist())}

    def moved(relabelling):
        bits = [[sum(1 << relabelling[d] for d in range(9) if mask >> d & 1) for mask in row] for row in tables.masks]
        return np.array([number[tuple(sorted(row))] for row in bits])

    swaps = [
        (1, 0, 2, 3, 4, 5, 6, 7, 8),
        (1, 2, 0, 3, 4, 5, 6, 7, 8),
        (3, 4, 5, 0, 1, 2, 6, 7, 8),
        (3, 4, 5, 6, 7, 8, 0, 1, 2),
    ]
    q, r = np.divmod(np.arange(280 * 280), 280)
    ends = [move[q] * 280 + move[r] for move in map(moved, swaps)] + [r * 280 + q]
    links = coo_matrix((np.ones(5 * 280**2), (np.tile(q * 280 + r, 5), np.concatenate(ends))), shape=(280**2, 280**2))
    count, label = connected_components(links, directed=False)
    sizes = np.zeros(count, dtype=object)
    for k in range(count):
        members = np.flatnonzero(label == k)
        one, two = divmod(int(members[0]), 280)
        ways = []
        for index in (tables.after_index, tables.rest_index):
            relative = tables.relative
            a, b, c = index[0][:, None, None], index[one][None, :, None], index[two][None, None, :]
            ways.append(tables.bands[relative[a, b], relative[a, c]])
        completions = int((ways[0] * ways[1]).sum())
        sizes[k] = int(tables.bands[one, two]) * completions * len(members)
    return label.reshape(280, 280), sizes


def test_the_rejection_sampler_covers_every_9x9_grid_exactly_once():
    # Sum of n(top) n(middle) n(bottom) over everything that one round can draw, with 280 first partitions and 6**3
    # orders of columns: the number of grids, to the last digit.
    _, sizes = classes_of_bands()
    assert int(sizes.sum()) * 280 * 6**3 == GRIDS[9] == 6_670_903_752_021_072_936_960


def band_class(grids):
    """The class of the top band of each grid, shape (count, 9, 9)."""
    tables = band_tables()
    label, _ = classes_of_bands()
    number = {tuple(sorted(row)): i for i, row in enumerate(tables.masks.tolist())}
    masks = np.left_shift(1, grids[:, :3] - 1).sum(1).reshape(-1, 3, 3)  # column sets by stack
    parts = np.array([[number[tuple(sorted(box))] for box in band] for band in masks.tolist()])
    return label[tables.relative[parts[:, 0], parts[:, 1]], tables.relative[parts[:, 0], parts[:, 2]]]


@cache
def many_nines():
    return draw_grids(9, dice(stream("classes of bands")), 12_000).reshape(-1, 9, 9)


@pytest.mark.parametrize("view", ["top band", "bottom band", "left stack", "right stack"])
def test_9x9_grids_have_every_class_of_bands_as_often_as_all_grids_do(view):
    # Turning a grid upside down or onto its side maps the set of all grids onto itself, so bottom bands and stacks have
    # the distribution of top bands. The sampler treats them quite differently: it never looks at rows of stacks.
    grids = many_nines()
    seen = {
        "top band": grids,
        "bottom band": grids[:, ::-1],
        "left stack": grids.transpose(0, 2, 1),
        "right stack": grids.transpose(0, 2, 1)[:, ::-1],
    }[view]
    _, sizes = classes_of_bands()
    share = np.array([size / sizes.sum() for size in sizes], dtype=float)
    common = share * len(grids) >= 5
    counts = np.bincount(band_class(seen), minlength=len(share))
    pooled = [*counts[common], counts[~common].sum()]
    assert passes_chi_square(pooled, [*(share[common] * len(grids)), share[~common].sum() * len(grids)])


def test_4x4_grids_are_uniform_over_all_288():
    grids = draw_grids(4, dice(stream("uniform", 4)), 28_800)
    _, counts = np.unique(grids, axis=0, return_counts=True)
    assert len(counts) == 288
    assert passes_chi_square(counts, np.full(288, 100))


def test_6x6_grids_fall_into_their_49_classes_by_size():
    # The size of a class, counted over all grids whose first row is 1..6; there are 49 (known from the literature).
    geo = geometry(6)
    listed = reduced_grids(6)
    classes, sizes = np.unique(canonical_forms(geo, listed, listed)[1], axis=0, return_counts=True)
    assert len(classes) == 49
    drawn = draw_grids(6, dice(stream("uniform", 6)), 6_000)
    forms = canonical_forms(geo, drawn, drawn)[1]
    _, counts = np.unique(np.concatenate([classes, forms]), axis=0, return_counts=True)
    assert passes_chi_square(counts - 1, sizes / sizes.sum() * 6_000)


def test_a_digit_stands_anywhere_in_another_box_equally_often():
    # Rows within a band and columns within a stack can be permuted: of the nine cells of the middle box, each holds the
    # digit of the first cell in 1 grid of 9. A fill from the top, cell by cell, misses this.
    grids = many_nines()[:9_000]
    same = (grids[:, 3:6, 3:6] == grids[:, :1, :1]).reshape(-1, 9)
    assert passes_chi_square(same.sum(0), np.full(9, 1000))


# ---------------------------------------------------------------------------------------------- canonical forms


def some_puzzles(size, count, name):
    """Solutions with random cells given: canonical forms need a unique solution grid, which is passed along."""
    rng = stream("puzzles", name, size)
    solutions = draw_grids(size, dice(rng), count)
    return np.where(rng.random(solutions.shape) < 0.4, solutions, 0), solutions


@pytest.mark.parametrize("size", SIZES)
def test_images_of_a_puzzle_have_its_canonical_form(size):
    rng = stream("images", size)
    cells, solutions = some_puzzles(size, 40, "images")
    pairs = [image(size, pair, rng) for pair in zip(cells, solutions, strict=True)]
    geo = geometry(size)
    wanted = canonical_forms(geo, cells, solutions)
    found = canonical_forms(geo, np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs]))
    assert (found[0] == wanted[0]).all()
    assert (found[1] == wanted[1]).all()


@pytest.mark.parametrize("size", SIZES)
def test_a_canonical_form_is_an_image_itself_and_canonical_again(size):
    # So different classes have different forms: equal forms are a common image.
    cells, solutions = some_puzzles(size, 40, "again")
    geo = geometry(size)
    once = canonical_forms(geo, cells, solutions)
    twice = canonical_forms(geo, *once)
    assert (twice[0] == once[0]).all()
    assert (twice[1] == once[1]).all()
    assert all(is_grid(size, grid) for grid in once[1])
    assert ((once[0] == once[1]) | (once[0] == 0)).all()
    assert ((once[0] > 0).sum(1) == (cells > 0).sum(1)).all()


def test_the_most_symmetric_9x9_grid_has_one_form_for_all_its_images():
    # The grid with 648 automorphisms: ties on the solution everywhere, which the givens must decide.
    rows = [
        "123456789",
        "456789123",
        "789123456",
        "231564897",
        "564897231",
        "897231564",
        "312645978",
        "645978312",
        "978312645",
    ]
    solution = np.array([int(digit) for row in rows for digit in row])
    rng = stream("symmetric")
    cells = np.where(rng.random(81) < 0.1, solution, 0)
    pairs = [image(9, (cells, solution), rng) for _ in range(60)]
    forms = canonical_forms(geometry(9), np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs]))
    assert len(np.unique(np.concatenate(forms, axis=1), axis=0)) == 1


def test_6x6_puzzles_are_not_merged_with_their_transposes():
    # A transposed 6x6 grid has boxes of 3 rows and 2 columns: as a grid of 2x3 boxes it breaks the rules.
    grid = reduced_grids(6)[0]
    assert not is_grid(6, grid.reshape(6, 6).T)


def test_classes_of_4x4_puzzles_agree_with_brute_force():
    # All 2 * 8 * 8 moves of the cells times 4! relabellings, applied to puzzles with few givens.
    lines = [order for order in permutations(range(4)) if {*order[:2]} in ({0, 1}, {2, 3})]
    labels = [np.array([0, *order]) for order in permutations(range(1, 5))]
    puzzles = every_puzzle()
    few = puzzles.cells[(puzzles.cells > 0).sum(1) == 4]

    def least(cells):
        grid = cells.reshape(4, 4)
        views = [turned[list(r)][:, list(c)] for turned in (grid, grid.T) for r in lines for c in lines]
        return min(tuple(label[view].reshape(-1).tolist()) for view, label in product(views, labels))

    assert len({least(cells) for cells in few}) == len(few) == 13


def test_there_are_as_many_4x4_puzzles_as_known():
    # Minimal puzzles: 13 classes with 4 givens, 22 with 5, 1 with 6, known from exhaustive counts of 4x4 Sudoku.
    puzzles = every_puzzle()
    texts = {tuple(row) for row in puzzles.cells.tolist()}
    minimal = [row for row in puzzles.cells if not any(is_puzzle(smaller) for smaller in without_one_given(row))]
    assert np.bincount([(row > 0).sum() for row in minimal])[4:].tolist() == [13, 22, 1]
    assert len(texts) == len(puzzles.cells) == 4708


def test_every_4x4_puzzle_can_be_solved_by_naked_singles():
    for row in every_puzzle().cells:
        grid = row.copy()
        for _ in range(16):
            for cell in np.flatnonzero(grid == 0):
                seen = {int(grid[peer]) for peer in peers_of_four(int(cell))} - {0}
                if len(seen) == 3:
                    grid[cell] = 10 - sum(seen)
        assert grid.all()


@cache
def peers_of_four(cell):
    row, column = divmod(cell, 4)
    places = ((r, c) for r in range(4) for c in range(4))
    return [
        4 * r + c
        for r, c in places
        if 4 * r + c != cell and (r == row or c == column or (r // 2, c // 2) == (row // 2, column // 2))
    ]


def without_one_given(row):
    for cell in np.flatnonzero(row):
        smaller = row.copy()
        smaller[cell] = 0
        yield smaller


@cache
def all_four():
    return np.unique(
        np.concatenate([np.array([0, *order])[reduced_grids(4)] for order in permutations(range(1, 5))]), axis=0
    )


def is_puzzle(cells):
    grids = all_four()
    return ((grids == cells) | (cells == 0)).all(1).sum() == 1
