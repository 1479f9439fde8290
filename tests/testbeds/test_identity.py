import json
import math
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import Mixture, Splits, fingerprint
from testbeds.identity import canonical, digest
from testbeds.latent_modules import LatentModules


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    revision: ClassVar[int] = 1
    value: float = 0.5
    bound: float | None = None
    either: int | float = 1
    shares: tuple[tuple[str, float], ...] = ()
    pair: tuple[int, float] = (1, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRate:
    revision: ClassVar[int] = 1
    value: float = 0.5
    bound: float | None = None
    either: int | float = 1
    shares: tuple[tuple[str, float], ...] = ()
    pair: tuple[int, float] = (1, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    what: object = None


def test_equal_objects_have_equal_fingerprints_of_32_digits():
    assert fingerprint(Rate(value=0.25)) == fingerprint(Rate(value=0.25))
    assert len(fingerprint(Rate())) == 32
    assert int(fingerprint(Rate()), 16) >= 0


def test_a_default_and_its_value_written_out_are_the_same():
    assert fingerprint(Rate()) == fingerprint(Rate(value=0.5, bound=None))


def test_classes_with_equal_fields_differ():
    assert fingerprint(Rate()) != fingerprint(OtherRate())


def test_another_revision_is_another_object(monkeypatch):
    before = fingerprint(Rate())
    monkeypatch.setattr(Rate, "revision", 2)
    assert fingerprint(Rate()) != before


def test_whole_numbers_count_as_floats_where_the_annotation_says_float():
    assert fingerprint(Rate(value=1)) == fingerprint(Rate(value=1.0))
    assert fingerprint(Rate(bound=1)) == fingerprint(Rate(bound=1.0))
    assert fingerprint(Rate(shares=(("a", 1),))) == fingerprint(Rate(shares=(("a", 1.0),)))
    assert fingerprint(Rate(pair=(1, 2))) == fingerprint(Rate(pair=(1, 2.0)))
    assert fingerprint(Splits(fractions=(("all", 1),))) == fingerprint(Splits(fractions=(("all", 1.0),)))
    task = LatentModules(world=0)
    assert fingerprint(Mixture(tasks=(task,), weights=(2,))) == fingerprint(Mixture(tasks=(task,), weights=(2.0,)))


def test_whole_numbers_and_floats_differ_where_both_are_allowed():
    assert fingerprint(Rate(either=1)) != fingerprint(Rate(either=1.0))
    assert fingerprint(Holder(what=1)) != fingerprint(Holder(what=True))
    assert fingerprint(Holder(what=1)) != fingerprint(Holder(what="1"))


def test_a_tuple_of_the_wrong_length_loses_nothing():
    assert fingerprint(Rate(pair=(1, 2, 3))) != fingerprint(Rate(pair=(1, 2)))


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_told_apart_to_the_last_bit(value):
    neighbour = math.nextafter(value, math.inf)
    if math.isfinite(neighbour):
        assert fingerprint(Rate(value=value)) != fingerprint(Rate(value=neighbour))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_without_an_identity_are_refused(number):
    with pytest.raises(ValueError, match=r"value\.value is (nan|inf|-inf)"):
        fingerprint(Rate(value=number))


@pytest.mark.parametrize(
    ("what", "remedy"),
    [
        ({1, 2}, "sorted tuple"),
        ([1], "use a tuple"),
        ({"a": 1}, "tuple of \\(name, value\\) pairs"),
        (len, "frozen dataclass with __call__"),
        (Rate, "frozen dataclass with __call__"),
        (object(), "use None, bool, int"),
        (b"a", "use None, bool, int"),
    ],
)
def test_what_has_no_stable_identity_is_refused_with_its_place_and_a_remedy(what, remedy):
    with pytest.raises(TypeError, match=f"value.what\\[1\\] is .*{remedy}"):
        fingerprint(Holder(what=(0, what)))


def test_the_canonical_form_survives_json():
    form = canonical(LatentModules(world=3, depth=2))
    assert json.loads(json.dumps(form)) == form
    assert form["class"] == "testbeds.latent_modules.LatentModules"
    assert form[".depth"] == 2


def test_a_fingerprint_is_the_digest_of_the_canonical_form_in_compact_json():
    written = json.dumps(canonical(Rate()), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    assert fingerprint(Rate()) == digest(written.encode())


def test_another_process_computes_the_same_fingerprint():
    code = "from testbeds import fingerprint, Splits; print(fingerprint(Splits(salt=5)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == fingerprint(Splits(salt=5))
