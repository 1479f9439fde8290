"""Canonical JSON gives the declared object back, or says why it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbeds.identity import canonical, fingerprint
from testbeds.latent_modules import LatentModules
from testbeds.revival import parts_of_class, revive
from testbeds.suites import Splits, Suite

STUDIES = Path(__file__).parents[1] / "experiments"
SUITE = Suite(task=LatentModules(world=3, depth=2), splits=Splits(fractions=(("train", 0.9), ("test", 0.1))), seed=7)


def stored(declared):
    return json.loads(json.dumps(canonical(declared)))


def test_a_declared_object_survives_json():
    again = revive(stored(SUITE))
    assert again == SUITE
    assert fingerprint(again) == fingerprint(SUITE)


def test_a_whole_recipe_survives_json(monkeypatch):
    monkeypatch.syspath_prepend(str(STUDIES))
    import e99_tiny

    recipe = e99_tiny.arms(0, None)["taught"]
    form = stored(recipe)
    assert revive(form) == recipe
    assert [revive(part) for part in parts_of_class(form, Suite)] == [stage.source.suite for stage in recipe.stages]


def test_another_revision_is_refused():
    form = stored(SUITE) | {"revision": 99}
    with pytest.raises(ValueError, match=r"testbeds\.suites\.Suite was declared at revision 99, and is at 1 today"):
        revive(form)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({".alphabt": 3}, "cannot be made of the fields"),
        ({".world": {"float": "much"}}, "'much' is no hexadecimal float"),
        ({".alphabet": "many"}, "LatentModules"),
        ({"revision": None}, "declared at revision None"),
    ],
)
def test_a_form_that_no_declared_object_has_is_refused_in_words(change, words):
    with pytest.raises(ValueError, match=words):
        revive(stored(SUITE.task) | change)


@pytest.mark.parametrize(
    "name", ["os.system", "subprocess.Popen", "testbeds.nowhere.Thing", "testbeds.suites.ceil", ""]
)
def test_a_name_that_is_no_declared_class_is_refused(name):
    with pytest.raises(ValueError, match="is no declared class of the laboratory"):
        revive({"class": name, "revision": 1})
