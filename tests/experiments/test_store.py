"""The store serves finished work, intact, and nothing else."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.provenance import code_identity
from experiments.store import BusyArtifactError, DamagedArtifact, Store, StoreError, disk_trouble, verified

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


FILE = {"bytes": 7, "blake2b": "0" * 32}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"files": {}}, "lists no file"),
        ({"files": {"model.bin": 7}}, "entry for the file 'model.bin'"),
        ({"files": {"model.bin": {}}}, "entry for the file 'model.bin'"),
        ({"files": {"model.bin": FILE | {"bytes": "7"}}}, "entry for the file 'model.bin'"),
        ({"files": {"model.bin": FILE | {"bytes": True}}}, "entry for the file 'model.bin'"),
        ({"files": {"model.bin": FILE | {"blake2b": 0}}}, "entry for the file 'model.bin'"),
        ({"files": {"../../x": FILE}}, "entry for the file '../../x'"),
        ({"files": {"/etc/passwd": FILE}}, "entry for the file '/etc/passwd'"),
        ({"id": 3}, "'id'"),
        ({"versions": ["torch"]}, "'versions'"),
        ({"parents": "none"}, "'parents'"),
        ({"created": None}, "'created'"),
    ],
)
@pytest.mark.parametrize("use", ["check", "path", "record"])
def test_a_record_with_odd_entries_is_damage_that_is_named_with_the_remedy(store, change, words, use):
    file = make(store) / "record.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(DamagedArtifact, match="record.json .*; delete the directory .* and run again") as caught:
        getattr(store, use)(ID)
    assert words in str(caught.value)


def test_one_file_is_read_verified_and_without_the_others(store):
    made = make(store)
    (made / "inner" / "vocabulary.txt").write_text("cut")
    assert store.read(ID, "model.bin") == b"weights"
    assert store.read(ID, "ledger.json") is None
    (made / "model.bin").write_text("weightz")
    with pytest.raises(DamagedArtifact, match="model.bin whose content is not"):
        store.read(ID, "model.bin")


def test_an_artifact_that_was_copied_elsewhere_is_verified_by_its_own_record(store, tmp_path):
    copy = make(store).rename(tmp_path / "elsewhere")
    assert verified(copy) == copy
    (copy / "model.bin").write_text("weightz")
    with pytest.raises(DamagedArtifact, match="elsewhere has a file model.bin whose content"):
        verified(copy)


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


def test_a_place_where_nothing_can_be_made_is_one_clear_message(tmp_path):
    if not Path("/proc/self").exists():
        pytest.skip("needs a file system in which nothing can be made")
    with pytest.raises(StoreError, match=r"the store /proc/x cannot be made there \(.*\); choose another --store"):
        Store(Path("/proc/x")).preflight()
    with pytest.raises(StoreError, match=r"a name that is too long .* choose another --store"):
        Store(tmp_path / ("x" * 300)).preflight()


def test_a_directory_that_holds_other_things_is_not_made_a_store(tmp_path):
    checkout = tmp_path / "checkout"
    (checkout / "experiments").mkdir(parents=True)  # a package of this name must not get claims and reports
    (checkout / "README.md").write_text("kept")
    with pytest.raises(StoreError, match=r"checkout is not a store, and holds other things \(README\.md\)"):
        Store(checkout).preflight()
    assert sorted(path.name for path in checkout.iterdir()) == ["README.md", "experiments"]


@pytest.mark.parametrize("harmless", [(), ("lost+found",), (".gitignore",)])
def test_an_empty_directory_becomes_a_store_and_stays_one_whatever_is_put_beside(tmp_path, harmless):
    for name in harmless:
        (tmp_path / name).touch()
    store = Store(tmp_path)
    store.preflight()
    (tmp_path / "notes.txt").touch()
    store.preflight()
    store.require()


def test_what_was_never_made_is_no_store(tmp_path):
    with pytest.raises(StoreError, match=r"no store at .*nowhere; `stagecraft run` makes one"):
        Store(tmp_path / "nowhere").require()
    assert not (tmp_path / "nowhere").exists()


def _caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "full disk"),
        (OSError(errno.EROFS, "Read-only file system"), "read-only"),
        (RuntimeError(f"I/O error: {os.strerror(errno.ENOSPC)} (os error 28)"), "full disk"),
        (_caused(RuntimeError("writer failed"), OSError(errno.EDQUOT, "Disk quota exceeded")), "disk quota"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), None),
        (RuntimeError("a fault of the program"), None),
    ],
)
def test_an_error_that_speaks_of_the_disk_is_known_whatever_a_library_made_of_it(error, words):
    trouble = disk_trouble(error, Path("store"))
    assert (trouble is None) == (words is None)
    assert words is None or words in str(trouble)


def git(root, *arguments):
    identity = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")
    done = subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_code_of_a_checkout_is_named_by_its_commit_and_whether_it_was_changed(tmp_path, monkeypatch):
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "run.py").write_text("1")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    look = code_identity.__wrapped__  # a process looks once; this test looks again
    assert look(tmp_path) | {"version": ""} == {"version": "", "commit": commit, "dirty": False}
    (tmp_path / "notes.txt").touch()  # outside of the packages
    assert look(tmp_path)["dirty"] is False
    (tmp_path / "training" / "run.py").write_text("2")
    assert look(tmp_path)["dirty"] is True
    git(tmp_path, "checkout", "training/run.py")
    (tmp_path / "training" / "new.py").touch()  # not in the commit either
    assert look(tmp_path)["dirty"] is True


def test_code_that_is_no_checkout_is_named_by_its_version_alone(tmp_path):
    assert list(code_identity.__wrapped__(tmp_path)) == ["version"]
    (tmp_path / ".git").mkdir()  # git refuses it
    assert list(code_identity.__wrapped__(tmp_path)) == ["version"]


def test_the_record_says_which_code_made_the_artifact(store):
    assert json.loads((make(store) / "record.json").read_text())["code"] == code_identity()


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
