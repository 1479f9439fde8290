"""Latin squares are drawn uniformly, and the bounds on which that rests hold."""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

from testbeds import stream
from testbeds.smt import latin_squares
from testbeds.smt.latin_squares import count_ways, random_square, row_bounds

# Chi-square with n - 1 degrees of freedom has mean n - 1 and variance 2 (n - 1): four standard deviations are allowed.
# A search with random branches, whose squares are then permuted, misses by hundreds of them at order 4.


@pytest.mark.parametrize(("size", "squares"), [(3, 12), (4, 576)])
def test_every_latin_square_of_a_small_order_is_equally_likely(size, squares):
    rng = stream("latin squares", size)
    seen = Counter(random_square(size, rng) for _ in range(30 * squares))
    assert len(seen) == squares
    chi = sum((times - 30) ** 2 / 30 for times in seen.values())
    freedom = squares - 1
    assert abs(chi - freedom) < 4 * (2 * freedom) ** 0.5


def test_the_two_classes_of_order_5_come_as_often_as_they_are_large():
    # Of the 161,280 squares of order 5, 17,280 (3 of 28) are isotopic to the cyclic group, 144,000 are not (McKay,
    # Meynert, Myrvold 2007: 2 main classes). In the group's, any two rows differ by a permutation with one cycle.
    rng = stream("classes")
    draws = 4000
    cyclic = sum(is_cyclic(np.array(random_square(5, rng)).reshape(5, 5)) for _ in range(draws))
    expected = draws * 17_280 / 161_280
    assert abs(cyclic - expected) < 4 * (expected * (1 - 17_280 / 161_280)) ** 0.5


def is_cyclic(square):
    for one, other in permutations(range(5), 2):
        step = dict(zip(square[one].tolist(), square[other].tolist(), strict=True))
        number, length = step[0], 1
        while number:
            number, length = step[number], length + 1
        if length < 5:
            return False
    return True


@pytest.mark.parametrize("size", [1, 2, 6, 7, 8, 9])
def test_what_is_drawn_is_a_latin_square(size):
    rng = stream("drawn", size)
    for _ in range(5):
        square = np.array(random_square(size, rng)).reshape(size, size)
        assert all(sorted(line) == list(range(size)) for line in (*square.tolist(), *square.T.tolist()))


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7])
def test_no_more_rows_fit_below_others_than_the_bound_says(size):
    rng = stream("bounds", size)
    ways = np.empty(2**size, dtype=np.int64)
    for _ in range(40):
        square = np.array(random_square(size, rng)).reshape(size, size)
        free = np.full(size, 2**size - 1, dtype=np.int64)
        for row, bound in zip(square, row_bounds(size), strict=True):
            count_ways(free, ways)
            assert 1 <= ways[-1] <= bound
            free &= ~(1 << row)


def test_the_bounds_are_those_of_theory():
    # n!, derangements D(6) = 265, Bregman's (4!)^(6/4) = 117.6, (3!)^(6/3) = 36, three cycles of two ways, one way.
    assert row_bounds(6) == (720, 265, 117, 36, 8, 1)


def test_rows_are_counted_as_by_trying_all():
    rng = stream("ways")
    for size in (3, 4, 5):
        free = rng.integers(1, 2**size, size=size)
        ways = np.empty(2**size, dtype=np.int64)
        count_ways(free, ways)
        every = permutations(range(size))
        assert ways[-1] == sum(all(free[c] >> number & 1 for c, number in enumerate(row)) for row in every)


def test_compiled_and_plain_code_build_the_same_squares():
    for size, seed in product((3, 4, 5), range(4)):
        draws = stream("both", seed).integers(0, row_bounds(size), size=(64, size))
        compiled, plain = np.zeros((2, size, size), dtype=np.int64)
        assert latin_squares.build(compiled, draws) == latin_squares.build.py_func(plain, draws)
        assert (compiled == plain).all()
