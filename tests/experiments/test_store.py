"""The store serves finished work, intact, and nothing else."""

from __future__ import annotations

import errno
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.store import BusyArtifactError, DamagedArtifact, Store, StoreError

ID = "ab" * 16
RECORD = {"kind": "stage", "description": "Fake", "parents": []}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def make(store, artifact_id=ID, text="weights"):
    with store.open(artifact_id) as workspace:
        (workspace / "artifact" / "inner").mkdir(parents=True)
        (workspace / "artifact" / "model.bin").write_text(text)
        (workspace / "artifact" / "inner" / "vocabulary.txt").write_text("a b")
        return store.seal(artifact_id, workspace, RECORD)


def test_a_sealed_artifact_is_served_with_a_record_of_its_files(store):
    made = make(store)
    assert store.has(ID)
    assert store.path(ID) == made == store.root / "artifacts" / "ab" / ID
    record = json.loads((made / "record.json").read_text())
    assert set(record["files"]) == {"model.bin", "inner/vocabulary.txt"}
    assert record["files"]["model.bin"]["bytes"] == 7
    assert {"python", "torch", "numpy", "lightning", "stagecraft"} == set(record["versions"])
    assert store.ids() == [ID]


def test_the_record_names_neither_host_nor_path(store):
    text = (make(store) / "record.json").read_text()
    assert os.uname().nodename not in text
    assert str(store.root) not in text


def test_creating_and_asking_a_store_touches_no_disk(store):
    assert not store.has(ID)
    assert store.ids() == []
    assert not store.root.exists()


def test_a_directory_without_record_is_no_artifact_and_gives_way_to_one(store):
    fake = store.location(ID)
    fake.mkdir(parents=True)
    (fake / "left_over.bin").write_text("half")
    assert not store.has(ID)
    with pytest.raises(StoreError, match="no finished artifact"):
        store.path(ID)
    make(store)
    assert not (fake / "left_over.bin").exists()
    assert store.path(ID, verify=True) == fake


def test_the_workspace_is_found_again_and_goes_with_the_seal(store):
    with store.open(ID) as workspace:
        (workspace / "checkpoint").write_text("step 7")
    with store.open(ID) as workspace:
        assert (workspace / "checkpoint").read_text() == "step 7"
    make(store)
    assert not store.workspace(ID).exists()


def test_a_missing_file_is_named_with_the_remedy(store):
    (make(store) / "model.bin").unlink()
    with pytest.raises(DamagedArtifact, match=r"lacks the file model\.bin; delete the directory .* and run again"):
        store.path(ID)


def test_a_cut_file_is_found_by_its_size(store):
    (make(store) / "model.bin").write_text("wei")
    with pytest.raises(DamagedArtifact, match=r"3 bytes in model\.bin where its record says 7"):
        store.check(ID)


def test_changed_content_of_the_same_size_is_found_on_first_use_in_a_process(store):
    (make(store) / "model.bin").write_text("weightz")
    store.check(ID)  # sizes agree
    with pytest.raises(DamagedArtifact, match=r"model\.bin whose content is not"):
        store.path(ID)


def test_a_later_change_of_content_is_found_when_asked_for_and_in_another_process(store):
    made = make(store)
    store.path(ID)
    (made / "model.bin").write_text("weightz")
    assert store.path(ID) == made  # verified before, in this process
    with pytest.raises(DamagedArtifact):
        store.path(ID, verify=True)
    with pytest.raises(DamagedArtifact):
        pickle.loads(pickle.dumps(store)).path(ID)


@pytest.mark.parametrize("text", ["{", "[]", '{"id": "x"}'])
def test_an_unreadable_record_is_damage(store, text):
    (make(store) / "record.json").write_text(text)
    with pytest.raises(DamagedArtifact, match="delete the directory"):
        store.path(ID)


def test_an_artifact_under_a_foreign_name_is_damage(store):
    other = "cd" * 16
    store.location(other).parent.mkdir(parents=True)
    make(store).rename(store.location(other))
    with pytest.raises(DamagedArtifact, match=f"belongs to the artifact '{ID}'"):
        store.path(other)


def test_a_second_writer_waits_no_longer_than_it_wants_to(store):
    with store.open(ID), pytest.raises(BusyArtifactError, match="another process"), store.open(ID, timeout_s=0):
        pytest.fail("two writers in one workspace")


def test_the_lock_of_a_killed_process_is_free(store):
    script = (
        "import sys, os, signal; from pathlib import Path; from experiments.store import Store\n"
        "with Store(Path(sys.argv[1])).open(sys.argv[2]): os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(store.root), ID], check=False)
    assert done.returncode == -9
    with store.open(ID, timeout_s=0):
        pass


def test_sealing_nothing_is_refused(store):
    with store.open(ID) as workspace, pytest.raises(ValueError, match="left no file"):
        store.seal(ID, workspace, RECORD)
    with store.open(ID) as workspace, pytest.raises(ValueError, match="kind"):
        store.seal(ID, workspace, {**RECORD, "kind": "thing"})


def test_a_store_whose_root_is_a_file_is_one_clear_message(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"is not a directory .* choose another --store"):
        Store(tmp_path / "file").preflight()


@pytest.mark.parametrize(
    ("code", "words"), [(errno.ENOSPC, "full disk"), (errno.EROFS, "read-only"), (errno.EACCES, "may not be written")]
)
def test_a_store_that_cannot_be_written_is_one_clear_message(store, monkeypatch, code, words):
    def refuse(_descriptor):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StoreError, match=words):
        store.preflight()


def test_a_disk_that_fills_up_while_sealing_leaves_no_artifact(store, monkeypatch):
    def refuse(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(StoreError, match="full disk"):
            make(store)
    assert not store.has(ID)
    assert not store.location(ID).exists()
    with store.open(ID) as workspace:  # and the work is still there
        store.seal(ID, workspace, RECORD)
    assert store.path(ID, verify=True)


def test_a_preflight_leaves_no_file(store):
    store.preflight()
    assert [path for path in store.root.rglob("*") if path.is_file()] == []


def test_an_id_is_found_by_its_first_digits(store):
    make(store)
    make(store, "ac" * 16)
    assert store.resolve("ab") == ID
    with pytest.raises(StoreError, match="2 artifacts start with 'a'"):
        store.resolve("a")
    with pytest.raises(StoreError, match="no artifact"):
        store.resolve("f")


def test_sealing_twice_keeps_the_first(store):
    first = make(store).stat().st_ino
    assert make(store).stat().st_ino == first
    assert Path(store.path(ID, verify=True)).exists()


def test_a_workspace_that_outlived_its_artifact_is_cleared_and_no_other(store):
    make(store)
    other = "cd" * 16
    for left in (ID, other):
        store.workspace(left).mkdir(parents=True)
        store.tidy(left)
    assert not store.workspace(ID).exists()
    assert store.workspace(other).exists()  # unfinished work
