"""What the tests of this folder share: a call of the command line, and a study with results written by hand."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest


@pytest.fixture
def stagecraft(monkeypatch, capsys):
    """Calls the command and gives (exit code, standard output, standard error)."""

    from experiments import cli

    def call(line):
        monkeypatch.setattr(sys, "argv", ["stagecraft", *shlex.split(line)])
        try:
            cli.main()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture(scope="session")
def fake():
    """The module ``fake_study`` of this folder."""
    spec = spec_from_file_location("fake_study", Path(__file__).with_name("fake_study.py"))
    module = module_from_spec(spec)
    sys.modules["fake_study"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def quick_holm(monkeypatch):
    """statsmodels collects garbage at every Holm correction: with torch loaded, longer than any test here."""
    monkeypatch.setattr("gc.collect", lambda: 0)


@pytest.fixture(scope="session")
def filled(fake, tmp_path_factory):
    """A store that holds everything of the fake study at its demo scale. Read only: make another one to change it."""
    from experiments.claims import register
    from experiments.store import Store

    store = Store(tmp_path_factory.mktemp("filled"))
    study = fake.experiment()
    register(study, fake.SCALE, store.root, now=datetime(2020, 1, 2, tzinfo=UTC))
    fake.fill(store, study)
    return store
