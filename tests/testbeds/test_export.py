import errno
import json
import os
import resource
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from testbeds import IMPLICIT, Mixture, Splits, Suite, TraceStyle
from testbeds.catalogue import catalogue, levels
from testbeds.export import Row, write_suite
from testbeds.latent_modules import LatentModules

TASK = LatentModules(world=2, depth=3)
SUITE = Suite(task=TASK, seed=7)
COUNTS = {"train": 30, "test": 10}


def rows_of(path: Path) -> list[dict]:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_file_has_the_distinct_problems_of_each_split_in_order(tmp_path, ending):
    path = tmp_path / f"suite.{ending}"
    write_suite(SUITE, COUNTS, path)
    rows = rows_of(path)
    expected = [
        (split, i, p.key, p.prompt) for split in COUNTS for i, p in enumerate(SUITE.distinct(split, COUNTS[split]))
    ]
    assert [(row["split"], row["index"], row["key"], row["prompt"]) for row in rows] == expected
    assert all(list(row) == list(Row.__annotations__) for row in rows)


def test_both_formats_hold_the_same(tmp_path):
    write_suite(SUITE, COUNTS, tmp_path / "suite.jsonl")
    write_suite(SUITE, COUNTS, tmp_path / "suite.parquet")
    assert rows_of(tmp_path / "suite.jsonl") == rows_of(tmp_path / "suite.parquet")


def test_traces_answers_and_certificates_are_those_of_the_problems(tmp_path):
    write_suite(SUITE, COUNTS, tmp_path / "suite.jsonl", TraceStyle(granularity="composed", group=2))
    problems = SUITE.distinct("train", 30)
    for row, problem in zip(rows_of(tmp_path / "suite.jsonl"), problems, strict=False):
        # Depth 3 in groups of 2: the state after two modules and the last.
        states = problem.certificate.states
        assert row["trace"] == f"{states[2]} {states[3]}"
        assert row["answer"] == states[3]
        assert row["style"] == "composed/2"
        assert json.loads(row["certificate"])[".states"] == list(states)
        assert json.loads(row["features"]) == problem.features
        assert json.loads(row["task"])[".world"] == 2
        assert row["data_source"] == "stagecraft/latent_modules"


def test_rows_of_a_mixture_name_their_component(tmp_path):
    tasks = tuple(next(iter(levels(name).values())) for name in catalogue())
    write_suite(Suite(task=Mixture(tasks=tasks, weights=(1,) * len(tasks))), {"train": 60}, tmp_path / "suite.parquet")
    rows = rows_of(tmp_path / "suite.parquet")
    assert {row["data_source"] for row in rows} == {f"stagecraft/{name}" for name in catalogue()}
    assert not any("Component" in row["certificate"] for row in rows)


def test_the_manifest_stands_beside_the_file_and_is_what_was_returned(tmp_path):
    manifest = write_suite(SUITE, COUNTS, tmp_path / "suite.jsonl", IMPLICIT)
    assert json.loads((tmp_path / "suite.jsonl.manifest.json").read_text()) == manifest
    measured = SUITE.manifest(COUNTS)
    assert {name: manifest[name] for name in measured} == measured
    assert manifest["shared_keys"] == {"train": {"test": 0}, "test": {"train": 0}}
    assert manifest["style"][".granularity"] == "implicit"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["suite.jsonl", "suite.jsonl.manifest.json"]


def test_writing_again_gives_the_same_bytes(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        write_suite(SUITE, COUNTS, tmp_path / name / "suite.jsonl")
    for file in ("suite.jsonl", "suite.jsonl.manifest.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_too_large_a_request_names_both_numbers_and_leaves_nothing(tmp_path, ending):
    size = SUITE.capacity("test")
    with pytest.raises(ValueError, match=f"{size + 1} distinct problems .* holds {size};"):
        write_suite(SUITE, {"train": 5, "test": size + 1}, tmp_path / f"suite.{ending}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_full_disk_is_an_error_that_names_the_file_and_leaves_nothing(tmp_path, ending):
    # The kernel refuses to let a file grow beyond a kilobyte, as it would on a full disk; 30 rows need several.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
        with pytest.raises(OSError, match=rf"cannot write .*suite.{ending}: File too large") as caught:
            write_suite(SUITE, COUNTS, tmp_path / f"suite.{ending}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.errno == errno.EFBIG
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_the_file_that_was_there_before(tmp_path):
    write_suite(SUITE, COUNTS, tmp_path / "suite.jsonl")
    before = (tmp_path / "suite.jsonl").read_bytes()
    with pytest.raises(ValueError, match="asked of split"):
        write_suite(SUITE, {"train": 100_000}, tmp_path / "suite.jsonl")
    assert (tmp_path / "suite.jsonl").read_bytes() == before


def test_a_missing_directory_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot write .*absent/suite.jsonl: No such file"):
        write_suite(SUITE, COUNTS, tmp_path / "absent" / "suite.jsonl")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser writes to read-only directories")
def test_a_read_only_directory_is_an_error_that_names_the_file(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match=r"cannot write .*suite.jsonl"):
            write_suite(SUITE, COUNTS, tmp_path / "suite.jsonl")
    finally:
        tmp_path.chmod(0o700)


def test_impossible_requests_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match=r"does not end in \.jsonl or \.parquet"):
        write_suite(SUITE, COUNTS, tmp_path / "suite.csv")
    with pytest.raises(ValueError, match="no split 'tset'"):
        write_suite(SUITE, {"tset": 1}, tmp_path / "suite.jsonl")
    with pytest.raises(ValueError, match="counts is empty"):
        write_suite(SUITE, {}, tmp_path / "suite.jsonl")
    with pytest.raises(ValueError, match="no room for a trace"):
        write_suite(Suite(task=LatentModules(world=0, working="none")), COUNTS, tmp_path / "suite.jsonl")
    assert not list(tmp_path.iterdir())


def test_a_held_out_split_is_exported_like_any_other(tmp_path):
    from testbeds.latent_modules import HoldsPair

    splits = Splits(held_out=(("pair", HoldsPair(pairs=(("m1", "m2"),))),))
    write_suite(Suite(task=TASK, splits=splits), {"pair": 20}, tmp_path / "suite.jsonl")
    assert all("m1 m2" in row["prompt"] for row in rows_of(tmp_path / "suite.jsonl"))
