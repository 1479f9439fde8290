"""What the README shows is what the product does."""

import re
import shlex
from pathlib import Path

import pytest

import experiments
from experiments import cli, discovery

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The README's study, saved where studies are looked for."""
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    (tmp_path / "e02_deviation.py").write_text(code)
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path)])
    return code


@pytest.mark.smoke
@pytest.mark.usefixtures("study")
def test_the_study_of_the_readme_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    store = tmp_path / "store"
    monkeypatch.setattr("sys.argv", shlex.split(f"stagecraft run e02 --scale smoke --workers 1 --store {store}"))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code, capsys.readouterr().err
    page = (store / "experiments" / "e02" / "smoke" / "report.html").read_text()
    assert "Does dividing by the group&#39;s deviation matter?" in page


def test_the_study_of_the_readme_is_about_80_lines(study):
    assert len(study.splitlines()) <= 85


def test_every_command_of_the_readme_exists():
    commands = set(re.findall(r"^stagecraft (\w+)", README, flags=re.MULTILINE))
    assert commands == {command.name or command.callback.__name__ for command in cli.app.registered_commands}


@pytest.mark.parametrize(
    "line", [line for line in re.findall(r"^stagecraft ((?:list|show|generate) ?[^#\n]*)", README, re.M)]
)
def test_commands_that_need_no_run_work_as_printed(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["stagecraft", *shlex.split(line)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code, capsys.readouterr().err


def test_every_make_target_of_the_documentation_exists():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    documents = README + (ROOT / "CONTRIBUTING.md").read_text()
    assert (
        set(re.findall(r"`make (\w+)", documents)) | set(re.findall(r"^make (\w+)", documents, re.MULTILINE)) <= targets
    )


@pytest.mark.parametrize("name", [study.name for study in discovery.studies()])
def test_every_study_can_be_planned_at_every_scale(name):
    experiment = discovery.experiment_named(name)
    for scale in experiment.scales:
        experiment.validate(scale)
