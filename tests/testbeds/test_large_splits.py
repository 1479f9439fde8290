"""A hundred thousand problems per split of every testbed, for neighbouring seeds, share no key between splits."""

import pytest

from testbeds import Splits, Suite
from testbeds.catalogue import catalogue, levels

PER_SPLIT = 100_000
AT_ONCE = 4096


@pytest.mark.large
@pytest.mark.parametrize("name", [name for name in catalogue() if levels(name)])
def test_a_hundred_thousand_problems_of_each_split_share_no_key(name):
    splits = Splits(fractions=(("train", 0.5), ("test", 0.5)))
    task = next(iter(levels(name).values()))
    keys: dict[str, set[str]] = {split: set() for split in splits.names}
    for seed in (42, 43):
        suite = Suite(task=task, splits=splits, seed=seed)
        for split in splits.names:
            problems = suite.stream(split)
            for start in range(0, PER_SPLIT, AT_ONCE):
                keys[split].update(p.key for p in problems.take(start, min(AT_ONCE, PER_SPLIT - start)))
    assert not keys["train"] & keys["test"]
