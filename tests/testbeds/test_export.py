import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from multiprocessing import active_children
from pathlib import Path
from typing import ClassVar

import pyarrow.parquet as pq
import pytest
from filelock import FileLock

from testbeds import IMPLICIT, Mixture, Splits, Suite, TraceStyle, Unrealisable, production
from testbeds.catalogue import levels
from testbeds.export import Row, write_suite
from testbeds.latent_modules import LatentModules
from testbeds.noise import DroppedSteps
from testbeds.reward import compute_score
from testbeds.streams import unit_interval

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
        truth = json.loads(row["ground_truth"])
        assert truth["certificate"][".states"] == list(states)
        assert truth["task"][".world"] == 2
        assert row["reward_model"] == {"style": "rule", "ground_truth": row["ground_truth"]}
        assert row["chat"] == [
            {"role": "system", "content": TASK.instructions},
            {"role": "user", "content": problem.prompt},
        ]
        assert row["floor"] == TASK.floor(problem)
        assert json.loads(row["difficulty"]) == problem.features
        assert row["data_source"] == "stagecraft/latent_modules"


def test_rows_of_a_mixture_name_their_component(tmp_path):
    tasks = (levels("countdown")["easy"], TASK)
    write_suite(Suite(task=Mixture(tasks=tasks, weights=(1, 1))), {"train": 60}, tmp_path / "suite.parquet")
    rows = rows_of(tmp_path / "suite.parquet")
    assert {row["data_source"] for row in rows} == {"stagecraft/countdown", "stagecraft/latent_modules"}
    assert {row["chat"][0]["content"] for row in rows} == {task.instructions for task in tasks}
    assert not any("Component" in row["ground_truth"] for row in rows)
    assert all(compute_score(row["data_source"], row["trace"], row["ground_truth"]) == 1.0 for row in rows)


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
def test_a_full_disk_is_an_error_that_names_the_file_and_work_goes_on_afterwards(tmp_path, ending):
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
    assert [path.name for path in tmp_path.iterdir()] == [f".suite.{ending}.parts"]
    write_suite(SUITE, COUNTS, tmp_path / f"suite.{ending}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"suite.{ending}", f"suite.{ending}.manifest.json"]


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


class Stop(BaseException):
    """Stands for a kill: nothing may catch it."""


@pytest.mark.parametrize("workers", [1, 2])
def test_neither_workers_nor_a_stop_change_a_byte(tmp_path, workers, monkeypatch):
    monkeypatch.setattr(production, "PART_BLOCKS", 4)
    counts = {"train": 1000, "test": 150}
    whole, stopped = tmp_path / "whole.jsonl", tmp_path / "stopped.jsonl"
    task = LatentModules(world=2, depth=4)
    write_suite(Suite(task=task), counts, whole)

    def stop_at(rows):
        if rows > limit:
            raise Stop

    reached = []
    for limit in (300, 700, 1020):  # noqa: B007  # stop_at reads it
        with pytest.raises(Stop):
            write_suite(Suite(task=task), counts, stopped, workers=workers, report=stop_at)
        reached.append(len(list((tmp_path / ".stopped.jsonl.parts").glob("*.part"))))
    assert reached == sorted(set(reached)), "each call went on where the last one stopped"
    seen = []
    write_suite(Suite(task=task), counts, stopped, workers=workers, report=seen.append)
    assert seen[0] >= 500, "what was finished was not made again"
    assert seen[-1] == 1150
    assert stopped.read_bytes() == whole.read_bytes()


def test_a_slow_task_is_kept_in_small_parts(tmp_path, monkeypatch):
    # With no time to wait, every block of 64 draws is a part: a stop loses less than one block.
    monkeypatch.setattr(production, "PART_S", 0.0)
    rows = []

    def stop(done):
        rows.append(done)
        if done > 150:
            raise Stop

    with pytest.raises(Stop):
        write_suite(SUITE, {"train": 200}, tmp_path / "suite.jsonl", report=stop)
    resumed = []
    write_suite(SUITE, {"train": 200}, tmp_path / "suite.jsonl", report=resumed.append)
    assert resumed[0] == rows[-2], "it goes on after the last block before the stop"
    assert [row["key"] for row in rows_of(tmp_path / "suite.jsonl")] == [p.key for p in SUITE.distinct("train", 200)]


KILLED = """
import os, signal
from multiprocessing import active_children
from pathlib import Path
from testbeds import Suite
from testbeds.export import write_suite
from testbeds.latent_modules import LatentModules

def report(rows):
    if rows:
        print(*[child.pid for child in active_children()], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    write_suite(Suite(task=LatentModules(world=0, depth=9)), {"train": 5000}, Path("a.jsonl"), workers=2, report=report)
"""


def runs(process):
    """Whether a process exists and is no mere entry that nobody has collected."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux which processes run")
def test_workers_end_when_their_parent_is_killed(tmp_path):
    (tmp_path / "killed.py").write_text(KILLED)
    done = subprocess.run([sys.executable, "killed.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    workers = [int(number) for number in done.stdout.split()]
    assert len(workers) == 2
    deadline = time.monotonic() + 60
    while any(runs(worker) for worker in workers):
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.05)


def test_a_worker_that_dies_is_an_error_that_says_how_to_go_on(tmp_path, monkeypatch):
    # Whenever it dies: rows do not go through a pipe, on which the parent would wait for the rest of them.
    monkeypatch.setattr(production, "PART_S", 0.0)
    suite, path = Suite(task=LatentModules(world=0, depth=9)), tmp_path / "suite.jsonl"

    def kill_the_workers(rows):
        if rows:
            for child in active_children():
                child.kill()

    with pytest.raises(ChildProcessError, match="the same command, with fewer --workers, goes on from there"):
        write_suite(suite, {"train": 6000}, path, workers=2, report=kill_the_workers)
    write_suite(suite, {"train": 600}, path)
    assert [row["key"] for row in rows_of(path)] == [problem.key for problem in suite.distinct("train", 600)]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["suite.jsonl", "suite.jsonl.manifest.json"]


def test_a_chat_and_a_prompt_cannot_be_taken_for_one_another():
    # TRL looks at whichever of these columns a set gives it first and takes the rows for chats, or not.
    assert {"prompt", "chosen", "rejected", "completion", "messages"} & set(Row.__annotations__) == {"prompt"}


def test_parts_of_another_order_are_not_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(production, "PART_BLOCKS", 1)
    path = tmp_path / "suite.jsonl"

    def stop(rows):
        if rows > 100:
            raise Stop

    with pytest.raises(Stop):
        write_suite(SUITE, {"train": 200}, path, report=stop)
    other = Suite(task=TASK, seed=8)
    write_suite(other, {"train": 200}, path)
    assert [row["key"] for row in rows_of(path)] == [problem.key for problem in other.distinct("train", 200)]


def test_two_processes_do_not_write_one_file(tmp_path):
    (tmp_path / ".suite.jsonl.parts").mkdir()
    with (
        FileLock(tmp_path / ".suite.jsonl.parts" / "lock"),
        pytest.raises(ValueError, match=r"another process is writing suite.jsonl"),
    ):
        write_suite(SUITE, COUNTS, tmp_path / "suite.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryOther:
    """Stands for noise that half of the problems leave no room for."""

    revision: ClassVar[int] = 1

    def __call__(self, task, problem, trace, style):
        if unit_interval("every other", problem.key) < 0.5:
            raise Unrealisable("no room")
        return trace


def test_problems_without_such_a_trace_are_passed_over_and_counted(tmp_path):
    style = TraceStyle(noise=EveryOther())
    manifest = write_suite(SUITE, {"train": 40}, tmp_path / "suite.jsonl", style)
    rows = rows_of(tmp_path / "suite.jsonl")
    kept = [p.key for p in SUITE.distinct("train", 200) if unit_interval("every other", p.key) >= 0.5][:40]
    assert [row["key"] for row in rows] == kept
    before_the_last = [problem.key for problem in SUITE.distinct("train", 200)].index(kept[-1]) + 1
    assert manifest["rejected"] == {"train": before_the_last - 40}
    assert manifest["counts"] == {"train": 40}


def test_a_style_that_no_problem_has_is_refused(tmp_path):
    with pytest.raises(ValueError, match="which holds 0 that can be demonstrated in the style .*steps=9"):
        write_suite(SUITE, {"train": 5}, tmp_path / "suite.jsonl", TraceStyle(noise=DroppedSteps(rate=1, steps=9)))
    assert not list(tmp_path.iterdir())


def test_the_best_constant_answer_is_measured(tmp_path):
    # Two letters, one module that maps both to one of them: every answer is the same, and the constant is always right.
    lossy = LatentModules(world=1, alphabet=2, skills=2, noninvertible=2, depth=1)
    manifest = write_suite(
        Suite(task=lossy, splits=Splits(fractions=(("all", 1.0),))), {"all": 4}, tmp_path / "a.jsonl"
    )
    rows = rows_of(tmp_path / "a.jsonl")
    answers = [row["answer"] for row in rows]
    expected = max(answers.count("a"), answers.count("b")) / 4
    assert manifest["best_constant_answer"]["all"]["accuracy"] == expected


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_the_datasets_library_reads_the_rows(tmp_path, ending):
    datasets = pytest.importorskip("datasets")
    write_suite(SUITE, COUNTS, tmp_path / f"suite.{ending}")
    kind = {"jsonl": "json"}.get(ending, ending)
    read = datasets.load_dataset(
        kind, data_files=str(tmp_path / f"suite.{ending}"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert read.to_list() == rows_of(tmp_path / f"suite.{ending}")
