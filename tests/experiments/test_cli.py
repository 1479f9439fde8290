"""The command line does what its help says, and refuses with one message, exit code 2, and nothing half-written."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import shutil
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


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A store in which e99 has run on real worker processes; tests leave it as it is, or copy it."""
    root = tmp_path_factory.mktemp("finished") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "__path__", [*experiments.__path__, str(HERE)])
        command = f"stagecraft run e99 --workers 1 --no-report --store {root}"
        patch.setattr(sys, "argv", shlex.split(command))
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
    assert "train 80%, validation 10%, test 10%" in done.stdout  # the splits that --split may name


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


def test_show_tells_what_a_study_must_fit_of_every_level_without_importing_torch():
    script = (
        "import sys; sys.argv = ['stagecraft', 'show', 'latent_modules']; from experiments.cli import main\n"
        "try: main()\n"
        "finally: sys.exit('torch was imported' if 'torch' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "of 64 problems" in done.stdout
    # depth 5: <bos> input, 5 modules, >; 5 states <eos>
    assert re.search(r"^hard +7 +6 +depth, .*routing_modules", done.stdout, re.MULTILINE)


def test_show_with_another_seed_shows_other_problems(stagecraft):
    shown = [stagecraft(f"show countdown --count 1 --seed {seed}")[1] for seed in (0, 0, 1)]
    assert shown[0] == shown[1] != shown[2]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("show countdwn", "no testbed 'countdwn'; did you mean 'countdown'?"),
        (
            "show countdown --level eazy",
            "no level of countdown 'eazy'; did you mean 'easy'? (known: chain, classic, easy",
        ),
        ("run e9", "no experiment 'e9'; did you mean 'e99'?"),
        ("plan e99 --scale smok", "no scale of e99 'smok'; did you mean 'smoke'? (known: full, smoke)"),
        ("plan e99 --only tought", "no arm 'tought'; did you mean 'taught'?"),
        ("plan e99 --seeds 7", "asks for 7 seeds"),
        ("generate countdown --split train", "must be a split and a count of at least 1, such as train=1000"),
        ("generate countdown --split train=0", "must be a split and a count of at least 1"),
        ("generate countdown --split train=١٢", "must be a split and a count of at least 1"),
        (f"generate countdown --split train={'9' * 5000}", "must be a split and a count of at least 1"),
        ("generate countdown --split train=5 --split train=7", "--split has 'train' more than once (5 and 7)"),
        ("generate countdown --split trian=5", "no split 'trian'"),
        ("generate countdown --level easy --split train=99999999", "99999999 distinct problems asked"),
        ("generate countdown --split train=5 --out no/such/place.jsonl", "cannot write no/such/place.jsonl"),
        ("sample 12ab", "no artifact in store has an id that starts with '12ab'"),
        ("sample 12ab --level easy", "goes with --task"),
        ("sample 12ab --task countdwn", "no testbed 'countdwn'"),
        ("report e99", "no store at store; `stagecraft run` makes one"),
        ("report e99 --store no/such", "no store at no/such"),
        ("plan e99 --store /usr", "/usr is not a store, and holds other things"),
        ("run e99 --store /usr", "/usr is not a store, and holds other things"),
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
    assert set(group.commands) == {"list", "show", "generate", "plan", "run", "report", "sample", "corpus"}
    assert set(group.commands["corpus"].commands) == {"games", "puzzles", "list", "verify"}
    single = {("stagecraft", name): command for name, command in group.commands.items() if name != "corpus"}
    grouped = {("stagecraft", "corpus", name): each for name, each in group.commands["corpus"].commands.items()}
    for words, command in (single | grouped).items():
        example = shlex.split(command.epilog.removeprefix("Example:"))
        assert example[: len(words)] == list(words)
        command.make_context(words[-1], example[len(words) :])  # raises for an unknown option or a bad value


def test_generate_writes_the_asked_splits_in_either_format(stagecraft, tmp_path):
    code, _, _ = stagecraft("generate countdown --level easy --split train=30 --split test=5 --out c.jsonl")
    assert code == 0
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [row["split"] for row in rows] == ["train"] * 30 + ["test"] * 5
    assert len({row["key"] for row in rows}) == 35
    code, _, _ = stagecraft("generate countdown --level easy --split test=5 --format parquet --style implicit")
    assert code == 0
    assert (tmp_path / "countdown-easy.parquet").exists()


def test_generate_keeps_what_is_there_unless_forced(stagecraft, tmp_path):
    make = "generate countdown --level easy --split test=5 --out [b]c:x:.jsonl"
    code, out, _ = stagecraft(make)
    assert code == 0
    assert out.startswith("[b]c:x:.jsonl: 5 test problems")  # as it is, not as Rich's bold and a cross
    first = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    code, _, err = stagecraft(f"{make} --seed 1")
    assert code == 2
    assert err == "error: [b]c:x:.jsonl exists; give --force to replace it, or --out with another name\n"
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == first
    assert stagecraft(f"{make} --seed 1 --force")[0] == 0
    assert {file.name for file in tmp_path.iterdir()} == set(first)
    assert (tmp_path / "[b]c:x:.jsonl").read_bytes() != first["[b]c:x:.jsonl"]


def test_a_task_without_room_for_steps_is_shown_and_written_with_its_answers(stagecraft, tmp_path):
    code, out, err = stagecraft("show latent_modules --level direct --count 1")
    assert (code, err) == (0, "")
    assert "correct" in out
    assert stagecraft("generate latent_modules --level direct --split train=5 --out direct.jsonl")[0] == 0
    rows = [json.loads(line) for line in (tmp_path / "direct.jsonl").read_text().splitlines()]
    assert [(row["style"], row["trace"] == row["answer"]) for row in rows] == [("implicit", True)] * 5
    code, _, err = stagecraft("show latent_modules --level direct --style explicit")
    assert code == 2
    assert "has no room for a trace" in err


@pytest.mark.parametrize("taken", ["c.jsonl", "c.jsonl.manifest.json"])
def test_generate_never_replaces_a_directory_or_leaves_one_file_of_two(stagecraft, tmp_path, taken):
    (tmp_path / taken).mkdir()
    code, _, err = stagecraft("generate countdown --level easy --split test=5 --out c.jsonl --force")
    assert code == 2
    assert err.startswith(f"error: {taken} is not a file that can be replaced")
    assert [path.name for path in tmp_path.iterdir()] == [taken]


STUDY = (HERE / "e99_tiny.py").read_text()


@pytest.fixture
def study_file(monkeypatch, tmp_path_factory):
    """Writes a study's file into a folder of its own where studies are looked for, and forgets its module again."""
    folder = tmp_path_factory.mktemp("studies")
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(folder)])

    def write(name, text):
        (folder / f"{name}.py").write_bytes(text if isinstance(text, bytes) else text.encode())
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, f"experiments.{name}", raising=False)
        monkeypatch.delattr(experiments, name, raising=False)
        return folder / f"{name}.py"

    return write


def test_a_study_under_the_name_of_another_is_refused(stagecraft, study_file):
    study_file("e98_copy", STUDY)  # and declares name="e99", as a copy does
    code, _, err = stagecraft("plan e98")
    assert code == 2
    assert "experiments.e98_copy declares an experiment named 'e99'" in err
    assert "name='e98'" in err
    assert stagecraft("plan e99")[0] == 0


@pytest.mark.parametrize("name", ["e99", "e99_tiny", "e99_other"])
def test_two_files_with_one_short_name_are_refused_by_any_name(stagecraft, study_file, name):
    study_file("e99_other", STUDY)
    code, _, err = stagecraft(f"plan {name}")
    assert code == 2
    assert "the name 'e99' belongs to 2 files (e99_other, e99_tiny)" in err
    _, out, _ = stagecraft("list")
    assert out.count("e99 (two files)") == 2


@pytest.mark.parametrize(
    ("text", "listed", "words"),
    [
        ('"""A study."""\nx = 1\ndef arms(:\n', "cannot be read: line 3", "line 3: invalid syntax"),
        (b'"""A study."""\nx = "\xff"\n', "cannot be read", "utf-8"),
        (b'"""A study."""\n\x00\n', "cannot be read", "null bytes"),
        ('"""A study."""\nimport nowhere_to_be_found\n', "A study.", "line 2: ModuleNotFoundError"),
        ('"""A study."""\n\nx = undefined\n', "A study.", "line 3: NameError: name 'undefined' is not defined"),
        (STUDY.replace('name="help"', 'name=""'), "How little", "ValueError: a Claim"),
        ('"""A study."""\nEXPERIMENT = 3\n', "A study.", "declares no experiment"),
    ],
)
def test_a_broken_study_is_named_with_its_line_and_stops_no_other(stagecraft, study_file, text, listed, words):
    file = study_file("e97_broken", text)
    code, out, _ = stagecraft("list")
    assert code == 0
    assert re.search(rf"e97 .* e97_broken .*{listed}", out)
    assert stagecraft("plan e99")[0] == 0
    code, _, err = stagecraft("plan e97")
    assert code == 2
    assert err.count("\n") == 1
    assert words in err
    assert str(file) in err or "experiments.e97_broken" in err


@pytest.mark.smoke
def test_a_second_run_reuses_everything_and_writes_the_report_again(stagecraft, finished):
    before = {file: file.stat().st_mtime_ns for file in finished.glob("artifacts/*/*/*")}
    report = finished / "experiments" / "e99" / "smoke" / "report.html"
    report.unlink(missing_ok=True)
    code, out, _ = stagecraft(f"run e99 --store {finished}")
    assert code == 0
    assert "4 stages and evaluations, 4 reused, 0 to run" in out
    (digits,) = re.findall(r"ask a policy: stagecraft sample (\w+) --count 3 --store", out)
    assert any(policy.name.startswith(digits) for policy in policies(finished))
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
    assert re.search(r"FLOPs to do: under a minute on \d+ workers?, their start included", out)
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
    page = (tmp_path / "here.html").read_text()
    assert "<html" in page
    code, _, err = stagecraft(f"report e99 --store {finished} --out here.html")
    assert code == 2
    assert "here.html exists; give --force" in err
    assert stagecraft(f"report e99 --store {finished} --out here.html --force")[0] == 0
    assert (tmp_path / "here.html").read_text() == page


@pytest.mark.smoke
def test_a_report_never_replaces_a_directory(stagecraft, finished, tmp_path):
    (tmp_path / "here").mkdir()
    code, _, err = stagecraft(f"report e99 --store {finished} --out here --force")
    assert code == 2
    assert err == "error: here is not a file that can be replaced; give --out the name of a file\n"
    assert list((tmp_path / "here").iterdir()) == []


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
    assert "latent_modules/easy (test), problem 2 of 2" in greedy  # e99's task is that level


@pytest.mark.smoke
def test_sample_warns_of_a_task_that_no_stage_had(stagecraft, finished):
    policy = policies(finished)[0]
    code, out, err = stagecraft(f"sample {policy} --task latent_modules --level medium --count 1 --samples 1")
    assert code == 0
    assert "latent_modules/medium (test), problem 1 of 1" in out
    assert "warning: no stage of this artifact had problems of latent_modules/medium" in err
    assert "it had those of latent_modules/easy; without --task they are asked" in err
    _, _, err = stagecraft(f"sample {policy} --task latent_modules --level easy --count 1 --samples 1")
    assert err == ""


def test_a_mixture_is_named_by_its_components():
    from experiments.sampling import component_of, components, task_title
    from testbeds.latent_modules import LatentModules
    from testbeds.mixture import Mixture
    from testbeds.streams import stream

    shallow, deep = LatentModules(world=7, depth=2), LatentModules(world=7)
    mixture = Mixture(tasks=(shallow, Mixture(tasks=(deep,), weights=(1.0,))), weights=(1.0, 1.0))
    titles = {2: "latent_modules(world=7, depth=2)", 3: "latent_modules(world=7)"}  # 3 is the default depth
    assert [task_title(task) for task in components(mixture)] == list(titles.values())
    problems = mixture.generate(stream("mixture"), 20)
    found = [task_title(component_of(mixture, problem)[1]) for problem in problems]
    assert found == [titles[problem.features["depth"]] for problem in problems]
    assert set(found) == set(titles.values())


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of a finished stage outside of any store."""
    return Path(shutil.copytree(policies(finished)[0], tmp_path / "copy"))


def truncate(file):
    file.write_bytes(file.read_bytes()[:-1])


def flip(file):
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


@pytest.mark.smoke
@pytest.mark.parametrize("harm", [truncate, flip])
@pytest.mark.parametrize("name", ["model.safetensors", "recipe.json", "record.json", "tokenizer.json"])
def test_sample_of_a_damaged_directory_names_file_and_remedy(stagecraft, copied, harm, name):
    harm(copied / name)
    code, out, err = stagecraft(f"sample {copied}")
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert name in err
    assert f"delete the directory {copied} and run again" in err


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_sample_of_a_directory_without_record_says_that_it_cannot_be_loaded(stagecraft, copied, name):
    (copied / "record.json").unlink()
    assert stagecraft(f"sample {copied} --count 1")[0] == 0
    (copied / name).write_text('{"a')
    code, _, err = stagecraft(f"sample {copied}")
    assert code == 2
    assert err.count("\n") == 1
    assert f"{copied} holds no policy that can be loaded" in err


@pytest.mark.smoke
@pytest.mark.parametrize("text", ["{", "[]", "3", '{"class": "testbeds.suites.Suite", "revision": 1, ".task": 3}'])
def test_a_malformed_recipe_is_named_and_another_task_can_still_be_asked(stagecraft, copied, text):
    (copied / "record.json").unlink()
    (copied / "recipe.json").write_text(text)
    code, _, err = stagecraft(f"sample {copied}")
    assert code == 2
    assert err.count("\n") == 1
    assert "recipe.json" in err
    assert err.endswith("give --task\n")
    assert stagecraft(f"sample {copied} --task latent_modules --level easy --count 1")[0] == 0


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


def test_a_task_of_a_sub_package_is_called_by_its_testbed():
    from experiments.sampling import task_title
    from testbeds.smt.zebra import Zebra

    assert task_title(Zebra(houses=2)) == "zebra(houses=2)"
