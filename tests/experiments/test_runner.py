"""The runner finishes a plan whatever dies, and what it leaves depends on nothing but the plan."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

HERE = Path(__file__).parent
PATIENCE_S = 60  # for what takes a second or two on an idle machine


@pytest.fixture(autouse=True)
def _fakes(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))  # spawned workers get it too
    monkeypatch.setenv("PYTHONPATH", str(HERE))


@pytest.fixture
def store(tmp_path):
    from experiments.store import Store

    made = Store(tmp_path / "store")
    made.preflight()
    return made


@pytest.fixture
def fakes():
    import fake_nodes

    return fake_nodes


def execute(plan, store, *, workers=1, screen=None):
    from experiments.display import Lines
    from experiments.runner import execute

    display = Lines(Console(file=screen or io.StringIO(), width=200))
    execution = SimpleNamespace(device="cpu")  # nodes that train nothing need no torch
    return execute(plan, plan.pending(store), store=store, workers=workers, execution=execution, display=display)


def performed(store):
    """How often each step of each node was done."""
    log = store.root / "performed.log"
    return Counter(log.read_text().splitlines()) if log.exists() else Counter()


def results(store, plan):
    return {node.name: (store.path(node.id) / "result.txt").read_text() for node in plan.nodes}


def until(condition):
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > give_up:
            pytest.fail("waited in vain")
        time.sleep(0.02)


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # a killed child that nobody has waited for yet


def drive(store, *, workers=2, steps=40, step_s=0.05):
    command = [sys.executable, str(HERE / "fake_drive.py"), str(store.root), str(workers), str(steps), str(step_s)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=hear_ctrl_c,  # noqa: PLW1509  # these tests have no threads
    )


def hear_ctrl_c():
    """Undo what a background job inherits: the shell starts it deaf to SIGINT, and its children with it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def diamond(fakes):
    base = fakes.FakeNode(name="base")
    left = fakes.FakeNode(name="left", parents=(base.id,))
    right = fakes.FakeNode(name="right", parents=(base.id,), steps=5)
    top = fakes.FakeNode(name="top", parents=(left.id, right.id))
    return base, left, right, top


def test_every_node_is_made_once_from_its_parents_and_reused_afterwards(store, fakes):
    plan = fakes.plan_of(*diamond(fakes))
    first = execute(plan, store, workers=2)
    assert (first.made, first.reused) == (4, 0)
    base, left, right, top = plan.nodes
    base_text = fakes.result(base)
    left_text, right_text = fakes.result(left, base_text), fakes.result(right, base_text)
    expected = {"base": base_text, "left": left_text, "right": right_text}
    assert results(store, plan) == {**expected, "top": fakes.result(top, left_text, right_text)}
    before = performed(store)
    second = execute(plan, store, workers=2)
    assert (second.made, second.reused) == (0, 4)
    assert performed(store) == before
    assert set(before.values()) == {1}


def test_order_of_nodes_and_number_of_workers_do_not_matter(tmp_path, fakes):
    from experiments.store import Store

    base, left, right, top = diamond(fakes)
    found = []
    for name, nodes, workers in (("a", (base, left, right, top), 1), ("b", (base, right, left, top), 3)):
        store = Store(tmp_path / name)
        plan = fakes.plan_of(*nodes)
        execute(plan, store, workers=workers)
        found.append(results(store, plan))
    assert found[0] == found[1]


def test_workers_compute_on_one_thread(store, fakes, monkeypatch):
    plan = fakes.plan_of(fakes.FakeNode(name="counts threads", mood="counts threads"))
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    execute(plan, store)
    assert (store.path(plan.nodes[0].id) / "threads.txt").read_text() == "1 1"


def test_a_killed_worker_is_replaced_and_its_node_made(store, fakes):
    screen = io.StringIO()
    plan = fakes.plan_of(fakes.FakeNode(name="unlucky", mood="dies once"))
    assert execute(plan, store, screen=screen).made == 1
    assert results(store, plan) == {"unlucky": fakes.result(plan.nodes[0])}
    assert "a worker died" in screen.getvalue()


def test_a_node_that_kills_its_workers_is_given_up_after_three_and_named(store, fakes):
    from experiments.runner import NodeFailedError

    deadly = fakes.FakeNode(name="deadly", mood="dies always")
    good = fakes.FakeNode(name="good", steps=2, step_s=0.1)
    with pytest.raises(NodeFailedError, match=r"Fake deadly \(arm only, seed 0\) failed: its worker process died 3"):
        execute(fakes.plan_of(deadly, good), store, workers=2)
    assert store.has(good.id)  # the other worker was not disturbed
    assert not store.has(deadly.id)


def test_an_exception_names_node_arm_and_cause_and_lets_running_nodes_finish(store, fakes):
    from experiments.graph import User
    from experiments.runner import NodeFailedError

    users = (User(arm="placebo", seed=3),)
    bad = fakes.FakeNode(name="bad", mood="raises", users=users, steps=100)  # dearest, so it starts first
    slow = fakes.FakeNode(name="slow", steps=20, step_s=0.1)
    never = fakes.FakeNode(name="never", parents=(slow.id,), steps=1)
    with pytest.raises(NodeFailedError) as caught:
        execute(fakes.plan_of(bad, slow, never), store, workers=2)
    assert "Fake bad (arm placebo, seed 3) failed: ZeroDivisionError: a fault of the program" in str(caught.value)
    assert "in perform" in caught.value.details
    assert not caught.value.declared
    assert store.has(slow.id)
    assert not store.has(never.id)


def test_a_disk_that_fills_up_is_a_declared_failure(store, fakes):
    from experiments.runner import NodeFailedError

    full = fakes.FakeNode(name="full", mood="fills the disk")
    with pytest.raises(NodeFailedError, match="full disk") as caught:
        execute(fakes.plan_of(full), store)
    assert caught.value.declared
    assert not store.location(full.id).exists()


def test_a_full_disk_is_the_cause_whatever_a_library_says_of_its_failed_write(store, fakes, monkeypatch):
    from experiments.store import TROUBLES, Store, StoreError
    from experiments.worker import work

    node = fakes.FakeNode(name="unlucky", mood="is failed by a library")
    fault = work(node, store, None).failure
    assert not fault.declared  # the disk is fine, so the program is not
    assert "unexpected pos" in fault.traceback

    def full(self):
        raise StoreError(f"the store {self.root} {TROUBLES[errno.ENOSPC][0]}; free some space")

    monkeypatch.setattr(Store, "probe", full)
    trouble = work(node, store, None).failure
    assert trouble.declared
    assert re.search(
        r"is on a full disk.*stopped the job with RuntimeError: .*unexpected pos 64 vs 0$", trouble.message
    )


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("may not mount a file system here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("library", ["safetensors", "torch", "numpy"])
def test_a_disk_that_a_library_fills_is_a_declared_failure_in_one_line(small_disk, fakes, library):
    from experiments.store import Store
    from experiments.worker import work

    store = Store(small_disk / "store")
    store.preflight()
    failure = work(fakes.FakeNode(name="large", mood=f"overfills by {library}"), store, None).failure
    assert failure.declared, failure.traceback
    assert "is on a full disk" in failure.message
    assert "\n" not in failure.message


def test_an_id_that_another_process_computes_differently_is_refused(store, fakes):
    from experiments.runner import NodeFailedError

    with pytest.raises(NodeFailedError, match="depends on the process"):
        execute(fakes.plan_of(fakes.FakeNode(name="forgetful", mood="forgets its name")), store)


def test_a_damaged_parent_stops_the_run_with_the_remedy(store, fakes):
    from experiments.runner import NodeFailedError
    from experiments.store import DamagedArtifact

    base, left, *_ = diamond(fakes)
    execute(fakes.plan_of(base), store)
    file = store.location(base.id) / "result.txt"
    original = file.read_text()
    file.write_text(original[::-1])  # same size: only the digest can tell
    with pytest.raises(NodeFailedError, match=r"result\.txt whose content .* delete the directory") as caught:
        execute(fakes.plan_of(base, left), store)
    assert caught.value.declared
    file.write_text("cut")
    with pytest.raises(DamagedArtifact, match="delete the directory"):
        fakes.plan_of(base, left).pending(store)


def test_a_killed_driver_takes_its_workers_with_it_and_the_next_run_resumes(store, fakes):
    from fake_drive import nodes

    driver = drive(store)
    base, *tips = nodes(40, 0.05)
    until(lambda: performed(store)["base 5"])
    worker = int((store.workspace(base.id) / "pid").read_text())
    driver.kill()
    driver.communicate()
    until(lambda: not alive(worker))
    assert not store.has(base.id)
    plan = fakes.plan_of(*nodes(40, 0.0))
    assert execute(plan, store, workers=2).made == 3
    text = fakes.result(base)
    assert results(store, plan) == {"base": text, **{tip.name: fakes.result(tip, text) for tip in tips}}
    # Each of the 120 steps was done; a kill may repeat the one between checkpoint and log, and no more.
    assert sum(performed(store).values()) <= 121


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_driver_that_is_asked_to_stop_leaves_a_store_that_resumes(store, fakes, number):
    from fake_drive import nodes

    driver = drive(store, workers=1)
    base, *_ = nodes(40, 0.05)
    until(lambda: performed(store)["base 3"])
    worker = int((store.workspace(base.id) / "pid").read_text())
    os.kill(driver.pid, number)
    output, _ = driver.communicate(timeout=PATIENCE_S)
    assert driver.returncode == 130
    assert "Traceback" not in output
    assert not alive(worker)
    plan = fakes.plan_of(*nodes(40, 0.0))
    execute(plan, store)
    assert results(store, plan)["base"] == fakes.result(base)
    assert max(performed(store).values()) <= 2


def test_two_drivers_on_one_store_share_the_work(store, fakes):
    from fake_drive import nodes

    first = drive(store, workers=1, steps=20)
    until(lambda: performed(store)["base 1"])
    plan = fakes.plan_of(*nodes(20, 0.05))
    screen = io.StringIO()
    summary = execute(plan, store, workers=1, screen=screen)
    first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 0
    assert summary.made < 3  # the base, at least, was the first driver's
    assert set(performed(store).values()) == {1}  # nothing was done twice
    assert len(performed(store)) == 60
    waits = Counter(line for line in screen.getvalue().splitlines() if line.startswith("another run is making"))
    assert set(waits.values()) == {1}  # said once, however often the node was looked at


@pytest.mark.parametrize("shown", ["Lines", "Bars"])
def test_that_another_run_makes_a_node_is_said_once(fakes, shown):
    from experiments import display

    screen = io.StringIO()
    node, other = fakes.FakeNode(name="first"), fakes.FakeNode(name="second")
    with getattr(display, shown)(Console(file=screen, width=200)) as seen:
        seen.begin(total=2, reused=0)
        for each in (node, node, other, node):
            seen.started(each)
            seen.busy(each)
    assert screen.getvalue().count("another run is making: Fake first") == 1
    assert screen.getvalue().count("another run is making: Fake second") == 1


def test_a_reward_is_shown_with_the_accuracy_above_the_floor():
    from experiments.display import headline

    assert headline({"reward": 0.25, "accuracy_corrected": 0.1, "loss": 2.0}) == "reward 0.25, above floor 0.10"
    assert headline({"reward": 0.25, "loss": 2.0}) == "reward 0.25"  # where guessing cannot fail
    assert headline({"loss": 2.0}) == "loss 2.000"
    assert headline({"accuracy": 0.25}) == ""  # never a rate alone


def test_workers_below_one_are_refused(store, fakes):
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        execute(fakes.plan_of(fakes.FakeNode(name="a")), store, workers=0)
