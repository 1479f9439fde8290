"""The adapter to reasoning-gym: keyed randomness, refusals, a total verifier, white space, the package's absence."""

import importlib.util
import json
import os
import random
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import EXPLICIT, IMPLICIT, Problem, Suite, TraceStyle, stream
from testbeds import reasoning_gym as adapter
from testbeds.reasoning_gym import MARKS, ReasoningGym, survey
from testbeds.reasoning_gym_tasks import EXTRA_CHARACTERS, MARKED_ANSWERS, NEVER, UNSOUND

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("reasoning_gym") is None, reason='needs pip install "stagecraft[reasoning-gym]"'
)
QUICK = ("chain_sum", "family_relationships", "leg_counting", "list_functions", "pool_matrix", "spell_backward")


def task_of(dataset, **fields):
    return ReasoningGym(dataset=dataset, allow_unsound=dataset in UNSOUND, **fields)


@cache
def problems_of(task, count=4):
    return task.generate(stream("adapter", task.dataset), count)


# ----------------------------------------------------------------------------------------- without the package


def test_without_the_package_the_module_imports_and_a_task_says_what_to_install(monkeypatch):
    monkeypatch.setattr(adapter, "is_installed", lambda: False)
    assert adapter.LEVELS == {}
    with pytest.raises(ValueError, match=r'pip install "stagecraft\[reasoning-gym\]"'):
        ReasoningGym(dataset="chain_sum")


def test_importing_the_adapter_does_not_import_the_package():
    code = "import sys, testbeds.reasoning_gym; print('reasoning_gym' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# -------------------------------------------------------------------------------------------------- refusals


@needs_package
@pytest.mark.parametrize("dataset", sorted(NEVER))
def test_a_task_that_runs_answers_or_cannot_be_repeated_is_never_made(dataset):
    for allowed in (False, True):
        with pytest.raises(ValueError, match="is refused"):
            ReasoningGym(dataset=dataset, allow_unsound=allowed)


@needs_package
@pytest.mark.parametrize("dataset", sorted(UNSOUND))
def test_a_task_known_to_be_unsound_is_made_only_where_that_is_allowed(dataset):
    with pytest.raises(ValueError, match="allow_unsound=True"):
        ReasoningGym(dataset=dataset)


@pytest.mark.parametrize(
    "dataset",
    # Named in the list of public faults: code execution, containment, prefixes, wrong labels, nondeterminism.
    [
        "countdown",
        "puzzle24",
        "n_queens",
        "string_insertion",
        "spiral_matrix",
        "binary_matrix",
        "polynomial_multiplication",
        "simple_integration",
        "intermediate_integration",
        "syllogism",
        "game_of_life_halting",
        "coin_flip",
        "polynomial_equations",
        "codeio",
        "knights_knaves",
        "sokoban",
        "survo",
        "kakurasu",
        "gsm_symbolic",
        "boxnet",
    ],
)
def test_every_task_with_a_public_fault_is_refused(dataset):
    assert dataset in NEVER or dataset in UNSOUND


@needs_package
def test_the_survey_names_every_task_of_the_package_once_with_a_reason_for_each_refusal():
    from reasoning_gym.factory import DATASETS

    rows = survey()
    assert [row.dataset for row in rows] == sorted(DATASETS)
    assert all(row.note for row in rows if row.status != "usable")
    assert {row.dataset for row in rows if row.status == "refused"} == set(NEVER)
    assert {row.dataset for row in rows if row.status == "unsound"} == set(UNSOUND)
    assert not set(NEVER) & set(UNSOUND)
    assert set(EXTRA_CHARACTERS) | MARKED_ANSWERS <= set(DATASETS)


@needs_package
@pytest.mark.parametrize(
    ("dataset", "spoil"),
    [
        ("game_of_life_halting", lambda answer: f"not {answer}"),
        ("game_of_life", lambda answer: f"{answer[:-1]},[7]]"),
        ("time_intervals", lambda answer: f"{answer},x"),
        ("word_sorting", lambda answer: f"{answer},x"),
    ],
)
def test_answers_of_unsound_tasks_are_still_judged_by_their_scorer(dataset, spoil):
    # Recorded, not wished for: this is why they are refused.
    task = task_of(dataset, white_space="plain")
    answers = [(problem, problem.certificate.answer) for problem in problems_of(task, 12)]
    assert any(task.verify(problem, spoil(answer)).correct for problem, answer in answers)


@needs_package
def test_making_and_judging_problems_leaves_no_file_in_the_working_directory(tmp_path, monkeypatch):
    # codeio, which runs programs, left planet.com there: it is never made.
    monkeypatch.chdir(tmp_path)
    for dataset in QUICK:
        task = task_of(dataset)
        problem = task.generate(stream("files", dataset), 1)[0]
        task.verify(problem, "open('left','w')")
    assert "leave files" in NEVER["codeio"]
    assert list(tmp_path.iterdir()) == []


@needs_package
def test_no_answer_is_run_as_code(tmp_path):
    # The scorers of tasks that can be made, sound or not, are given text that would leave a file.
    leaves = tmp_path / "ran"
    text = f'__import__("os").system("touch␣{leaves}")'
    for dataset in (*QUICK, "number_sorting", "bitwise_arithmetic", "game_of_life", "complex_arithmetic", "dice"):
        task = task_of(dataset)
        assert not task.verify(problems_of(task)[0], text).correct
    assert not leaves.exists()


@needs_package
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dataset": "chain_sums"}, "did you mean 'chain_sum'"),
        ({"dataset": 7}, "has no task 7"),
        ({"settings": [("min_terms", 2)]}, "must be a tuple of"),
        ({"settings": (("min_terms",),)}, "must be a tuple of"),
        ({"settings": (("min_terms", 2), ("max_terms", 3))}, "alphabetical order"),
        ({"settings": (("max_terms", 3), ("max_terms", 3))}, "each name once"),
        ({"settings": (("terms", 3),)}, "has no setting 'terms'; it has .*max_terms"),
        ({"settings": (("seed", 3),)}, "has no setting 'seed'"),
        ({"settings": (("size", 3),)}, "has no setting 'size'"),
        ({"settings": (("max_terms", None),)}, "must be a number"),
        ({"settings": (("max_terms", 2), ("min_terms", 5))}, "makes no 'chain_sum' with settings"),
        ({"allow_unsound": 1}, "must be True or False"),
        ({"white_space": "kept"}, "must be 'marked' or 'plain'"),
    ],
)
def test_what_cannot_be_is_refused_at_construction(fields, message):
    with pytest.raises(ValueError, match=message):
        ReasoningGym(**{"dataset": "chain_sum", **fields})


# ------------------------------------------------------------------------------------------------ randomness


@needs_package
@pytest.mark.parametrize("dataset", QUICK)
def test_the_global_generators_neither_matter_nor_change(dataset):
    task = task_of(dataset)
    random.seed(1)
    first = problems_of(task)
    random.seed(2)
    np.random.seed(2)  # noqa: NPY002  # the global generator is what is tested
    states = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    adapter._entry.cache_clear()
    problems_of.cache_clear()
    assert problems_of(task) == first
    task.verify(first[0], "1")
    assert (random.getstate(), np.random.get_state()[1].tolist()) == states  # noqa: NPY002


@needs_package
def test_other_processes_make_the_same_problems_under_any_hash_seed():
    code = (
        "import json; from testbeds import stream; from testbeds.reasoning_gym import ReasoningGym\n"
        f"print(json.dumps([p.prompt for d in {QUICK!r} for p in ReasoningGym(dataset=d, allow_unsound=True)"
        ".generate(stream('adapter', d), 4)]))"
    )
    here = [problem.prompt for dataset in QUICK for problem in problems_of(task_of(dataset))]
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == here


@needs_package
def test_neighbouring_seeds_share_no_problems():
    # The package itself seeds with seed + place, so its seeds 42 and 43 share all but one problem.
    one, other = (
        {p.key for p in Suite(task=ReasoningGym(dataset="chain_sum"), seed=s).stream("train")[:200]} for s in (42, 43)
    )
    assert len(one & other) <= 2


@needs_package
def test_the_package_makes_the_same_question_from_the_certificate_seed():
    import reasoning_gym

    task = ReasoningGym(dataset="leg_counting", white_space="plain")
    for problem in problems_of(task):
        item = reasoning_gym.create_dataset("leg_counting", size=1, seed=problem.certificate.seed)[0]
        assert (item["question"], item["answer"]) == (problem.prompt, problem.certificate.answer)


# -------------------------------------------------------------------------------------------------- verdicts


@needs_package
def test_the_verdict_is_right_exactly_where_the_package_gives_one():
    task = ReasoningGym(dataset="leg_counting")
    for problem in problems_of(task):
        answer = problem.certificate.answer
        assert task.verify(problem, answer).correct
        assert task.verify(problem, f"2 cats have 8 # {answer}").correct
        for wrong in (str(int(answer) + 1), f"{answer}0", f"{answer}.5", f"{answer} legs", f"x{answer}", "-1"):
            verdict = task.verify(problem, wrong)
            assert not verdict.correct
            assert verdict.progress < 1


@needs_package
def test_partial_credit_is_progress_and_never_correct():
    task = ReasoningGym(dataset="rectangle_count")
    problem = problems_of(task)[0]
    verdict = task.verify(problem, str(int(problem.certificate.answer) + 1))
    assert not verdict.correct
    assert 0 < verdict.progress < 1


@needs_package
def test_an_exception_of_the_scorer_is_a_wrong_answer():
    task = ReasoningGym(dataset="prime_factorization")
    verdict = task.verify(problems_of(task)[0], "junk")
    assert not verdict.correct
    assert "raised ValueError" in verdict.reason


@needs_package
@pytest.mark.parametrize(
    "text",
    ["", " ", "#", "1 # 2 # 3", "\x00", "\ud800", "\u0663", "\uff13", "1" * 10_001, "1" * 1_000_000, "#" * 1_000_000],
)
def test_what_no_answer_can_be_is_malformed(text):
    task = ReasoningGym(dataset="chain_sum")
    verdict = task.verify(problems_of(task)[0], text)
    assert (verdict.correct, verdict.well_formed, verdict.progress) == (False, False, 0.0)


@needs_package
@given(text=st.text(alphabet=st.sampled_from("0123456789-+.e_x#[]() \n\x00\u0663\ud800,*/'\"ab"), max_size=40))
def test_any_text_gets_a_verdict_for_any_task(text):
    for dataset in QUICK:
        task = task_of(dataset)
        verdict = task.verify(problems_of(task)[0], text)
        assert 0 <= verdict.progress <= 1
        assert verdict.reason
        assert verdict.well_formed or not verdict.correct


@needs_package
def test_answers_with_the_mark_in_them_are_read_whole():
    task = ReasoningGym(dataset="ab")
    for problem in problems_of(task):
        written = task.demonstrate(problem, IMPLICIT, stream("x")).text
        assert "#" in written
        assert task.verify(problem, written).correct
        assert not task.verify(problem, f"working # {written}").correct


# ---------------------------------------------------------------------------------------- texts, traces, floor


@needs_package
@pytest.mark.parametrize("dataset", ["spell_backward", "rotate_matrix", "word_sequence_reversal"])
def test_marked_white_space_survives_a_tokenizer_that_skips_white_space(dataset):
    marked, plain = ReasoningGym(dataset=dataset), ReasoningGym(dataset=dataset, white_space="plain")
    for one, other in zip(problems_of(marked), problems_of(plain), strict=True):
        assert not any(character.isspace() for character in one.prompt)
        text = one.prompt
        for character, mark in MARKS.items():
            text = text.replace(mark, character)
        assert text == other.prompt
        assert (one.key, one.certificate) == (other.key, other.certificate)
        answer = marked.demonstrate(one, IMPLICIT, stream("x")).text
        assert marked.verify(one, " ".join(answer)).correct
        assert plain.verify(other, plain.demonstrate(other, IMPLICIT, stream("x")).text).correct


@needs_package
def test_white_space_that_matters_is_told_apart():
    task = ReasoningGym(dataset="rotate_matrix")
    problem = problems_of(task)[0]
    answer = task.demonstrate(problem, IMPLICIT, stream("x")).text
    assert not task.verify(problem, answer.replace(MARKS[" "], "")).correct


@needs_package
@pytest.mark.parametrize("dataset", QUICK)
def test_every_own_answer_is_accepted_and_written_in_the_lexicon(dataset):
    task = task_of(dataset)
    for problem in problems_of(task, 20):
        for style in (EXPLICIT, IMPLICIT):
            trace = task.demonstrate(problem, style, stream("x"))
            assert task.verify(problem, trace.text).correct
            assert trace.steps == ()
            assert set(trace.text) | set(problem.prompt) <= set(task.symbols)


@needs_package
@pytest.mark.parametrize(
    "style",
    [TraceStyle(granularity="composed", group=2), TraceStyle(order="backward"), TraceStyle(search="depth_first")],
)
def test_a_style_with_working_is_refused(style):
    task = ReasoningGym(dataset="chain_sum")
    with pytest.raises(ValueError, match="writes the answer alone"):
        task.demonstrate(problems_of(task)[0], style, stream("x"))


@needs_package
def test_questions_whose_own_answer_does_not_score_one_are_drawn_again():
    # 1 of 100 answers of base_conversion is empty; without the check 300 problems would have about three.
    task = ReasoningGym(dataset="base_conversion")
    assert all(problem.certificate.answer for problem in problems_of(task, 300))


@needs_package
def test_a_task_that_rejects_everything_ends_with_an_error(monkeypatch):
    monkeypatch.setattr(adapter, "_score", lambda *_: 0.5)
    with pytest.raises(
        ValueError, match="in a row were rejected, the last one because its own answer does not score 1"
    ):
        ReasoningGym(dataset="chain_sum").generate(stream("rejected"), 1)


@needs_package
def test_the_floor_is_the_share_of_the_most_frequent_answer():
    task = ReasoningGym(dataset="course_schedule")  # True or False, about 0.5 each
    floor = task.floor(problems_of(task)[0])
    assert 0.5 <= floor < 0.65
    long = ReasoningGym(dataset="chain_sum", settings=(("max_digits", 6), ("min_digits", 6)))
    assert long.floor(problems_of(long)[0]) <= 0.02


@needs_package
def test_a_problem_of_another_testbed_is_refused_by_name():
    with pytest.raises(TypeError, match="ReasoningGymCertificate, got str"):
        ReasoningGym(dataset="chain_sum").verify(Problem(prompt="", key="", certificate="x"), "1")
