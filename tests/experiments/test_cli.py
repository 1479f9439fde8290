"""The command line does what its help says, and refuses with one message, exit code 2, and nothing half-written."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import experiments
from experiments import cli

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _studies(monkeypatch, tmp_path):
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(HERE)])  # e99_tiny
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def stagecraft(monkeypatch, capsys):
    """Calls the command and gives (exit code, standard output, standard error)."""

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


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A store in which e99 has run on real worker processes; tests leave it as it is, or copy it."""
    root = tmp_path_factory.mktemp("finished") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "__path__", [*experiments.__path__, str(HERE)])
        patch.setattr(sys, "argv", ["stagecraft", "run", "e99", "--workers", "1", "--store", str(root)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert not ended.value.code
    return root


def policies(root):
    return sorted(file.parent for file in root.glob("artifacts/*/*/model.safetensors"))


def test_list_shows_testbeds_levels_and_experiments_without_importing_torch():
    script = (
        "import sys; sys.argv = ['stagecraft', 'list']; from experiments.cli import main\n"
        "try: main()\n"
        "finally: sys.exit('torch was imported' if 'torch' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "countdown" in done.stdout
    assert "easy" in done.stdout


def test_list_reads_a_study_headline_from_its_file(stagecraft):
    _, out, _ = stagecraft("list")
    assert re.search(r"e99 .* e99_tiny .* How little must a study be", out)


def test_show_prints_problem_trace_verdict_features_and_floor(stagecraft):
    code, out, _ = stagecraft("show countdown --level easy --count 2")
    assert code == 0
    assert "problem 2 of 2" in out
    assert out.count("correct:") == 2
    for name in ("problem", "step", "completion", "answer", "features", "floor", "key"):
        assert re.search(rf"│ {name} ", out), name


def test_show_with_another_seed_shows_other_problems(stagecraft):
    shown = [stagecraft(f"show countdown --count 1 --seed {seed}")[1] for seed in (0, 0, 1)]
    assert shown[0] == shown[1] != shown[2]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("show countdwn", "no testbed 'countdwn'; did you mean 'countdown'?"),
        ("show countdown --level eazy", "no level of countdown 'eazy'; did you mean 'easy'? (known: easy, hard"),
        ("run e9", "no experiment 'e9'; did you mean 'e99'?"),
        ("plan e99 --scale smok", "no scale of e99 'smok'; did you mean 'smoke'? (known: full, smoke)"),
        ("plan e99 --only tought", "no arm 'tought'; did you mean 'taught'?"),
        ("plan e99 --seeds 7", "asks for 7 seeds"),
        ("generate countdown --split train", "must be a split and a count of at least 1, such as train=1000"),
        ("generate countdown --split train=0", "must be a split and a count of at least 1"),
        ("generate countdown --split trian=5", "no split 'trian'"),
        ("generate countdown --level easy --split train=99999999", "99999999 distinct problems asked"),
        ("generate countdown --split train=5 --out no/such/place.jsonl", "cannot write no/such/place.jsonl"),
        ("sample 12ab", "no artifact in store has an id that starts with '12ab'"),
        ("sample 12ab --level easy", "goes with --task"),
    ],
)
def test_what_cannot_be_done_is_one_message_and_leaves_nothing(stagecraft, tmp_path, line, words):
    code, out, err = stagecraft(line)
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_every_command_has_help_with_an_example_that_parses():
    import typer

    group = typer.main.get_command(cli.app)
    assert set(group.commands) == {"list", "show", "generate", "plan", "run", "report", "sample"}
    for name, command in group.commands.items():
        example = shlex.split(command.epilog.removeprefix("Example:"))
        assert example[:2] == ["stagecraft", name]
        command.make_context(name, example[2:])  # raises for an unknown option or a bad value


def test_generate_writes_the_asked_splits_in_either_format(stagecraft, tmp_path):
    code, _, _ = stagecraft("generate countdown --level easy --split train=30 --split test=5 --out c.jsonl")
    assert code == 0
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [row["split"] for row in rows] == ["train"] * 30 + ["test"] * 5
    assert len({row["key"] for row in rows}) == 35
    code, _, _ = stagecraft("generate countdown --level easy --split test=5 --format parquet --style implicit")
    assert code == 0
    assert (tmp_path / "countdown-easy.parquet").exists()


@pytest.mark.smoke
def test_a_second_run_reuses_everything_and_writes_the_report_again(stagecraft, finished):
    before = {file: file.stat().st_mtime_ns for file in finished.glob("artifacts/*/*/*")}
    report = finished / "experiments" / "e99" / "smoke" / "report.html"
    report.unlink()
    code, out, _ = stagecraft(f"run e99 --store {finished}")
    assert code == 0
    assert "4 stages and evaluations, 4 reused, 0 to run" in out
    assert "inconclusive: Demonstrations help." in out  # one seed shows nothing
    assert report.exists()
    assert {file: file.stat().st_mtime_ns for file in finished.glob("artifacts/*/*/*")} == before


@pytest.mark.smoke
def test_plan_tells_reused_from_missing_with_cost_and_time(stagecraft, finished):
    _, out, _ = stagecraft(f"plan e99 --store {finished}")
    assert "4 reused, 0 to run" in out
    code, out, _ = stagecraft(f"plan e99 --scale full --store {finished}")
    assert code == 0
    assert "12 stages and evaluations: 4 reused, 8 to run" in out
    assert re.search(r"FLOPs to do: about \d+\.\d minutes on \d+ workers", out)
    assert "a timed training step" in out  # the store's ledgers are too short to judge by


def test_plan_writes_nothing(stagecraft, tmp_path):
    code, _, _ = stagecraft("plan e99")
    assert code == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.smoke
def test_report_goes_where_it_is_asked_to(stagecraft, finished, tmp_path):
    code, out, _ = stagecraft(f"report e99 --store {finished} --out here.html")
    assert code == 0
    assert "report: here.html" in out
    assert "<html" in (tmp_path / "here.html").read_text()


@pytest.mark.smoke
def test_sample_shows_completions_with_verdicts_by_id_prefix_and_directory(stagecraft, finished):
    policy = policies(finished)[0]
    code, by_id, _ = stagecraft(f"sample {policy.name[:6]} --count 2 --store {finished}")
    assert code == 0
    assert "problem 2 of 2" in by_id
    assert by_id.count("wrong:") + by_id.count("correct:") == 8  # 2 problems x 4 samples
    _, by_directory, _ = stagecraft(f"sample {policy} --count 2")
    assert by_directory == by_id
    _, greedy, _ = stagecraft(f"sample {policy} --count 2 --temperature 0")
    assert greedy.count("wrong:") + greedy.count("correct:") == 2


@pytest.mark.smoke
def test_sample_of_an_evaluation_is_refused(stagecraft, finished):
    evaluation = next(finished.glob("artifacts/*/*/results.json")).parent
    code, _, err = stagecraft(f"sample {evaluation.name} --store {finished}")
    assert code == 2
    assert "give a stage, not an evaluation" in err


@pytest.mark.smoke
@pytest.mark.parametrize("command", ["run e99", "plan e99", "report e99"])
def test_a_damaged_artifact_is_named_with_its_remedy(stagecraft, finished, command):
    file = policies(finished)[0] / "metrics.jsonl"
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    try:
        code, _, err = stagecraft(f"{command} --store {finished}")
    finally:
        file.write_bytes(content)
    assert code == 2
    assert err.count("\n") == 1
    assert re.search(rf"damaged artifact: .*metrics\.jsonl .* delete the directory {file.parent} and run again", err)


@pytest.mark.parametrize("command", ["run e99 --store file", "run e99 --store file/below"])
def test_a_store_that_cannot_be_is_one_message(stagecraft, tmp_path, command):
    (tmp_path / "file").write_text("kept")
    code, _, err = stagecraft(command)
    assert code == 2
    assert "is not a directory" in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "kept"


def test_cuda_without_a_device_is_refused_before_anything_is_written(stagecraft, tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, _, err = stagecraft("run e99 --device cuda")
    assert code == 2
    assert "no CUDA device" in err
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_says_how_to_go_on(stagecraft, monkeypatch):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.runner.run", interrupt)
    code, _, err = stagecraft("run e99 --scale smoke")
    assert code == 130
    assert "stagecraft run e99 --scale smoke" in err


@pytest.mark.parametrize(("declared", "expected"), [(True, 2), (False, 1)])
def test_a_failed_node_shows_its_traceback_only_where_the_message_is_not_enough(
    stagecraft, monkeypatch, declared, expected
):
    from experiments.runner import NodeFailedError

    def fail(*_arguments, **_options):
        raise NodeFailedError("RL (arm a, seed 0) failed: why", declared=declared, details="Traceback of the worker")

    monkeypatch.setattr("experiments.runner.run", fail)
    code, _, err = stagecraft("run e99")
    assert code == expected
    assert "error: RL (arm a, seed 0) failed: why" in err
    assert ("Traceback of the worker" in err) is not declared


def test_a_fault_of_the_program_keeps_its_traceback(stagecraft, monkeypatch):
    def fault(*_arguments, **_options):
        int("three")  # a ValueError that no declaration raised

    monkeypatch.setattr("experiments.planning.plan", fault)
    with pytest.raises(ValueError, match="three"):
        stagecraft("plan e99")
