import pytest

import testbeds
from testbeds import Task
from testbeds.catalogue import catalogue, levels, task_named
from testbeds.latent_modules import LEVELS, LatentModules


def test_the_catalogue_holds_every_module_that_ends_with_a_testbed():
    assert catalogue()["latent_modules"] is LatentModules
    assert list(catalogue()) == sorted(catalogue())
    assert "core" not in catalogue()


def test_levels_are_tasks_of_their_testbed():
    for name, testbed in catalogue().items():
        assert all(isinstance(task, testbed) and isinstance(task, Task) for task in levels(name).values())


def test_a_task_is_named_by_testbed_and_level():
    assert task_named("latent_modules/hard") == LEVELS["hard"]
    assert task_named("latent_modules") == LEVELS["easy"]


def test_unknown_names_are_refused_with_those_that_exist():
    with pytest.raises(ValueError, match=r"no testbed 'latent'; these exist: .*latent_modules"):
        task_named("latent/easy")
    with pytest.raises(ValueError, match="no level 'hrad'; it has easy, medium, hard"):
        task_named("latent_modules/hrad")


def test_the_package_offers_what_it_says():
    assert len(set(testbeds.__all__)) == len(testbeds.__all__)
    assert all(hasattr(testbeds, name) for name in testbeds.__all__)
