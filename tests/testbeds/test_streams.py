import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds.streams import key_bytes, lanes, seed_from_key, stream, unit_interval, unit_intervals

KEYS = st.lists(st.one_of(st.text(max_size=8), st.integers()), min_size=1, max_size=4)


@given(key=KEYS)
def test_equal_keys_give_equal_numbers(key):
    assert stream(*key).integers(2**63) == stream(*key).integers(2**63)
    assert unit_interval(*key) == unit_interval(*key)
    assert seed_from_key(*key) == seed_from_key(*key)


@given(one=KEYS, other=KEYS)
def test_different_keys_give_different_bytes(one, other):
    assert (key_bytes(*one, size=16) == key_bytes(*other, size=16)) == (one == other)


def test_parts_do_not_run_into_each_other():
    keys = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), (1,), ("1",), (1, 1), (11,), ("i1:1",), (-1,)]
    assert len({key_bytes(*key, size=16) for key in keys}) == len(keys)


def test_bytes_are_blake2b_of_typed_and_length_prefixed_parts():
    from hashlib import blake2b

    # ("ab", -7) is written s, length 2, ab, then i, length 2, -7: the format that every stored artifact rests on.
    assert key_bytes("ab", -7, size=16) == blake2b(b"s2:abi2:-7", digest_size=16).digest()


@pytest.mark.parametrize("part", [1.0, None, True, b"a", np.int64(1), ("a",)])
def test_parts_that_are_neither_text_nor_whole_numbers_are_refused(part):
    with pytest.raises(TypeError, match="made of str and int"):
        stream("a", part)


def test_a_key_of_no_parts_is_refused():
    with pytest.raises(ValueError, match="at least one part"):
        stream()


def test_half_a_character_is_a_key_like_any_other():
    assert unit_interval("\ud800") != unit_interval("\ud801")


def test_neighbouring_seeds_share_no_number():
    one, other = (stream("suite", seed).integers(2**63, size=1000) for seed in (42, 43))
    assert not set(one.tolist()) & set(other.tolist())


def test_the_global_generator_is_left_alone():
    np.random.seed(0)  # noqa: NPY002  # the global state is what is watched
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    stream("a").random(1000)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_a_begun_key_gives_the_numbers_of_the_whole_key():
    draw = unit_intervals("split", 7)
    for part in ("a", "", "ü", "\ud800", "countdown:24<-3,8"):
        assert draw(part) == unit_interval("split", 7, part)


def test_unit_intervals_are_uniform():
    numbers = np.array([unit_interval("uniform", index) for index in range(4000)])
    assert ((numbers >= 0) & (numbers < 1)).all()
    # The mean of 4000 uniform numbers has standard deviation 1 / sqrt(12 * 4000) = 0.0046; five of them are 0.023.
    assert abs(numbers.mean() - 0.5) < 5 / math.sqrt(12 * 4000)


def test_a_seed_has_63_bits():
    seeds = [seed_from_key(index) for index in range(2000)]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert any(seed >= 2**62 for seed in seeds)


def test_a_lane_does_not_depend_on_how_many_are_asked_for():
    wide = lanes("rl", 3, rows=4, columns=8)
    assert (lanes("rl", 3, rows=2, columns=5) == wide[:2, :5]).all()
    assert wide.dtype == np.int64
    assert (wide >= 0).all()
    assert len(np.unique(wide)) == 32


def test_no_lanes_are_an_empty_array():
    assert lanes("rl", rows=0, columns=8).shape == (0, 8)
    assert lanes("rl", rows=2, columns=0).shape == (2, 0)


def test_another_process_draws_the_same_numbers():
    code = "from testbeds import stream; print(stream('a', 1).integers(2**63), stream('a', 1).random())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(stream("a", 1).integers(2**63)), str(stream("a", 1).random())]
