"""What the README and docs/chess.md show is what the product does."""

import importlib
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import typer

import experiments
from experiments import cli, discovery
from testbeds.chess import corpus, sources

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CHESS = (ROOT / "docs" / "chess.md").read_text()
COMMANDS = re.findall(r"^stagecraft ([^#\n]+)", README + CHESS, flags=re.MULTILINE)
CHESS_STUDY = "e_chess_pretraining_to_rl"
DATA = sources.SHIPPED.parent


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The README's study, saved where studies are looked for."""
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    (tmp_path / "e02_deviation.py").write_text(code)
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path)])
    return code


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """A directory with corpora of the names that the chess study asks for, made of the shipped samples."""
    root = tmp_path_factory.mktemp("corpora")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(corpus.ROOT_VARIABLE, str(root))
        corpus.build_games("lichess-games", [DATA / "games.pgn.zst"])
        corpus.build_puzzles("lichess-puzzles", DATA / "puzzles.csv.zst")
    return root


def leaf(line):
    """The command that a line of words ends up at, and its arguments."""
    command, words = typer.main.get_command(cli.app), shlex.split(line)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    return command, words


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


def test_the_readme_has_a_line_for_every_command():
    shown = set(re.findall(r"^stagecraft (\w+)", README, flags=re.MULTILINE))
    assert shown == set(typer.main.get_command(cli.app).commands)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_line_of_the_documentation_is_understood(line):
    command, words = leaf(line)
    command.make_context("stagecraft", words)  # refuses an option that there is not


@pytest.mark.parametrize("line", [line for line in COMMANDS if line.split()[0] in ("list", "show", "generate")])
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
def test_every_study_can_be_planned_at_every_scale(name, corpora, monkeypatch):
    monkeypatch.setenv(corpus.ROOT_VARIABLE, str(corpora))
    if name == CHESS_STUDY:  # the sample has puzzles for an evaluation of this size, and not of the declared one
        module = importlib.import_module(f"experiments.{CHESS_STUDY}")
        declared = module.ladder
        monkeypatch.setattr(
            module, "ladder", lambda scale: replace(declared(scale), evaluated=8, demonstrations=50, prompts=4)
        )
    experiment = discovery.experiment_named(name)
    for scale in experiment.scales:
        experiment.validate(replace(scale, seeds=1) if name == CHESS_STUDY else scale)


@pytest.mark.parametrize("scale", ["small", "gpu"])
def test_a_scale_that_needs_a_corpus_says_which_command_makes_it(scale, tmp_path, monkeypatch):
    monkeypatch.setenv(corpus.ROOT_VARIABLE, str(tmp_path))
    experiment = discovery.experiment_named(CHESS_STUDY)
    command = "stagecraft corpus games FILE.pgn.zst --name lichess-games"
    with pytest.raises(ValueError, match=re.escape(command)):
        experiment.validate(experiment.scale(scale))
    leaf(command.removeprefix("stagecraft "))
    corpus.build_games("lichess-games", [DATA / "games.pgn.zst"])
    with pytest.raises(ValueError, match=r"stagecraft corpus puzzles lichess_db_puzzle\.csv\.zst --name lichess-puzzl"):
        experiment.validate(experiment.scale(scale))
