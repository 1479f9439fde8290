"""What every testbed of the catalogue promises, at each of its levels."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import FrozenInstanceError, fields
from functools import cache
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import (
    EXPLICIT,
    IMPLICIT,
    Problem,
    Splits,
    Suite,
    Task,
    Trace,
    TraceStyle,
    Unrealisable,
    demonstration,
    fingerprint,
    stream,
)
from testbeds.catalogue import catalogue, levels
from testbeds.census import content_digest
from testbeds.lexicon import spaced
from testbeds.noise import DroppedSteps, ShuffledSteps, UnrelatedWorking, WrongResult

TASKS = {f"{name}/{level}": task for name in catalogue() for level, task in levels(name).items()}
STYLES = (
    EXPLICIT,
    IMPLICIT,
    *(TraceStyle(granularity="composed", group=group) for group in (2, 3)),
    *(TraceStyle(order=order) for order in ("backward", "shuffled")),
    TraceStyle(granularity="composed", group=2, order="backward"),
    *(TraceStyle(search="depth_first", backtracks=backtracks) for backtracks in (None, 0, 1, 3)),
    TraceStyle(search="breadth_first"),
)
HALVES = Splits(fractions=(("train", 0.5), ("test", 0.5)))

DESCRIBE = """
import json
from testbeds import fingerprint, stream, EXPLICIT, IMPLICIT, TraceStyle
from testbeds.catalogue import catalogue, levels
from testbeds.census import content_digest
seen = {}
for name in catalogue():
    for level, task in levels(name).items():
        problems = task.generate(stream("contract", name, level), 20)
        traces = []
        for problem in problems[:3]:
            for style in (EXPLICIT, IMPLICIT, TraceStyle(search="depth_first", backtracks=1)):
                try:
                    traces.append(task.demonstrate(problem, style, stream("trace", problem.key)).text)
                except ValueError as refusal:
                    traces.append(str(refusal))
        seen[f"{name}/{level}"] = [fingerprint(task), content_digest(problems), traces, list(task.symbols)]
print(json.dumps(seen))
"""


@cache
def problems_of(name: str) -> tuple[Problem, ...]:
    return tuple(TASKS[name].generate(stream("contract", *name.split("/")), 20))


def demonstrations(task: Task, problem: Problem) -> Iterator[tuple[TraceStyle, Trace]]:
    """The demonstrations in the styles that the task can write."""
    for style in STYLES:
        with suppress(ValueError):
            yield style, task.demonstrate(problem, style, stream("trace", problem.key))


@cache
def demonstrations_of(name: str, place: int) -> tuple[tuple[TraceStyle, Trace], ...]:
    """All demonstrations of one of ``problems_of``: many tests look at them."""
    return tuple(demonstrations(TASKS[name], problems_of(name)[place]))


def solved(task: Task, problem: Problem) -> str:
    """A text that solves the problem, in the first style that the task can write."""
    return next(demonstrations(task, problem))[1].text


def unknown_pieces(text: str, symbols: tuple[str, ...]) -> str:
    """What is left of a text after reading the longest symbol at each place and skipping white space."""
    by_length = sorted(symbols, key=len, reverse=True)
    left = ""
    while text := text.lstrip():
        symbol = next((symbol for symbol in by_length if text.startswith(symbol)), "")
        left += "" if symbol else text[0]
        text = text[len(symbol) or 1 :]
    return left


def at_any_level(test):
    return pytest.mark.parametrize("name", TASKS)(test)


def test_the_catalogue_names_testbeds_by_their_modules_and_each_has_levels():
    assert {"countdown", "latent_modules"} <= set(catalogue())
    assert [name for name in catalogue() if not levels(name)] in ([], ["reasoning_gym"])  # an optional extra


@pytest.fixture(scope="module")
def seen_under_hash_seeds():
    """What two processes with different hash seeds see of every testbed."""
    seen = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", DESCRIBE], env=environment, capture_output=True, text=True, check=True
        )
        seen.append(json.loads(done.stdout))
    return seen


@at_any_level
def test_the_same_stream_gives_the_same_problems_and_traces_in_other_processes(name, seen_under_hash_seeds):
    here = [fingerprint(TASKS[name]), content_digest(problems_of(name))]
    first = seen_under_hash_seeds[0][name]
    assert first[:2] == here
    assert all(seen[name] == first for seen in seen_under_hash_seeds)


@at_any_level
def test_problem_i_of_a_stream_does_not_depend_on_what_was_asked_before(name):
    suite = Suite(task=TASKS[name], splits=HALVES)
    late = pickle.loads(pickle.dumps(suite)).stream("test", "later")[80]
    assert suite.stream("test", "later").take(79, 3)[1] == late


@at_any_level
def test_every_demonstration_is_accepted_and_ends_as_its_verdict_says(name):
    task = TASKS[name]
    for place, problem in enumerate(problems_of(name)):
        written = demonstrations_of(name, place)
        assert written, "a task that can write no style teaches nothing"
        for style, trace in written:
            verdict = task.verify(problem, trace.text)
            assert verdict.correct, (style, trace.text, verdict.reason)
            assert verdict.well_formed
            assert verdict.progress == 1.0


@at_any_level
def test_a_demonstration_is_laid_out_as_it_says(name):
    for place in range(5):
        for style, trace in demonstrations_of(name, place):
            written = [step for step in trace.steps if step.text]
            assert all(step.text.endswith(step.result) for step in written), (style, trace)
            if trace.mark is None:
                assert trace.text == trace.separator.join(step.text for step in written), style
                assert trace.text.endswith(trace.answer)
            else:
                assert trace == Trace.worked(trace.steps, trace.answer, separator=trace.separator)
            if style == IMPLICIT:
                assert tight(trace.text) == tight(trace.answer)


@at_any_level
def test_a_style_is_refused_for_good_or_for_a_problem_but_never_for_all_problems_one_by_one(name):
    task = TASKS[name]
    for style in STYLES:
        seen = set()
        for problem in problems_of(name):
            try:
                task.demonstrate(problem, style, stream("trace", problem.key))
                seen.add("written")
            except Unrealisable:
                seen.add("unrealisable")
            except ValueError:
                seen.add("refused")
        assert seen in ({"written"}, {"refused"}, {"written", "unrealisable"}, {"unrealisable"}), style


@at_any_level
def test_spoiled_working_leaves_the_answer_right_and_hits_its_rate(name):
    task = TASKS[name]
    for noise in (WrongResult(rate=0.5), DroppedSteps(rate=0.5), ShuffledSteps(rate=0.5), UnrelatedWorking(rate=0.5)):
        for problem in problems_of(name)[:6]:
            try:
                spoiled = demonstration(task, problem, TraceStyle(noise=noise))
            except ValueError:
                continue
            clean = demonstration(task, problem, EXPLICIT)
            assert spoiled.answer == clean.answer
            assert tight(spoiled.text).endswith(tight(clean.answer))
            assert unknown_pieces(spoiled.text, task.symbols) == ""


@at_any_level
def test_a_reader_is_told_what_is_asked(name):
    assert len(TASKS[name].instructions.split()) >= 10


@at_any_level
def test_a_verdict_without_an_answer_is_wrong_and_malformed(name):
    problem = problems_of(name)[0]
    for nothing in ("", " ", "\n\t", "I do not know", "\x00", "None"):
        verdict = TASKS[name].verify(problem, nothing)
        assert not verdict.correct
        assert not verdict.well_formed


@at_any_level
@given(text=st.text())
def test_any_text_gets_a_verdict(name, text):
    check_verdict(name, problems_of(name)[0], text)


@at_any_level
@given(choices=st.lists(st.integers(min_value=0, max_value=10_000), max_size=30), place=st.integers(0, 19))
def test_any_string_of_symbols_gets_a_verdict_that_agrees_with_the_listed_solutions(name, choices, place):
    task, problem = TASKS[name], problems_of(name)[place]
    text = " ".join(task.symbols[choice % len(task.symbols)] for choice in choices)
    agree_with_solutions(name, problem, text)


@at_any_level
@given(draw=st.data(), place=st.integers(0, 19))
def test_a_changed_demonstration_gets_a_verdict_that_agrees_with_the_listed_solutions(name, draw, place):
    task, problem = TASKS[name], problems_of(name)[place]
    _, trace = draw.draw(st.sampled_from(demonstrations_of(name, place)))
    where = draw.draw(st.integers(0, len(trace.text)))
    dropped = draw.draw(st.integers(0, 2))
    put = draw.draw(st.sampled_from(["", *task.symbols, "²", "\u0663", "é", " ", "\x00"]))
    agree_with_solutions(name, problem, trace.text[:where] + put + trace.text[where + dropped :])


@at_any_level
def test_hostile_strings_get_a_verdict(name):
    problem = problems_of(name)[0]
    symbols = TASKS[name].symbols
    hostile = [
        "9**9**9**9",
        "__import__('os').system('true')",
        "(" * 100_000,
        "-" * 100_000,
        "1" * 100_000,
        "\uff13+\uff14",  # full-width digits
        "3\u00d74\u22122",  # multiplication and minus signs
        "\ud800",  # half a character
        "\x00" * 1000,
        "=" * 1000,
        symbols[0] * 100_000,
        f"{symbols[-1]} " * 300_000,
        "\ud800 " * 300_000,
        " " * 1_000_000,
        "#" * 1_000_000,
        " ".join(symbols) * 1000,
        problem.prompt,
        problem.prompt + solved(TASKS[name], problem),
    ]
    for text in hostile:
        check_verdict(name, problem, text)


@at_any_level
def test_listed_solutions_are_accepted_and_differ(name):
    task = TASKS[name]
    for problem in problems_of(name)[:5]:
        listed = task.solutions(problem)
        if listed is None:
            continue
        some = list(islice(listed, 200))
        assert some
        assert len(set(map(tight, some))) == len(some)
        assert all(task.verify(problem, solution).correct for solution in some)


@at_any_level
def test_texts_are_made_of_the_tasks_symbols_alone(name):
    task = TASKS[name]
    assert len(set(task.symbols)) == len(task.symbols)
    assert all(symbol and symbol == tight(symbol) for symbol in task.symbols)
    for place, problem in enumerate(problems_of(name)):
        texts = [problem.prompt, *(trace.text for _, trace in demonstrations_of(name, place))]
        assert [unknown_pieces(text, task.symbols) for text in texts] == [""] * len(texts)


@at_any_level
def test_white_space_between_symbols_means_nothing(name):
    task, problem = TASKS[name], problems_of(name)[1]
    for _, trace in demonstrations_of(name, 1):
        spread = trace.text.replace(" ", " \n ")
        assert task.verify(problem, f"\t{spread}\n ").correct


@at_any_level
def test_white_space_between_all_symbols_means_nothing_so_that_any_lexicons_mix(name):
    task, problem = TASKS[name], problems_of(name)[1]
    if getattr(task, "white_space", "marked") == "plain":
        pytest.skip("white space means something in its texts, which are for other people's trainers")
    for _, trace in demonstrations_of(name, 1):
        assert task.verify(problem, spaced(trace.text, task.symbols)).correct


@at_any_level
def test_equal_keys_mean_equal_problems(name):
    task = TASKS[name]
    if not getattr(task, "answers_are_shared", True):
        pytest.skip("its key merges images whose answers differ; the testbed's own tests say that it is canonical")
    by_key: dict[str, str] = {}
    many = task.generate(stream("collisions", name), 200)
    for problem in many:
        solution = solved(task, problem)
        other = by_key.setdefault(problem.key, solution)
        assert task.verify(problem, other).correct, "a solution of a problem solves each problem with its key"


@at_any_level
def test_splits_are_disjoint_for_neighbouring_seeds_too(name):
    keys: dict[str, set[str]] = {split: set() for split in HALVES.names}
    for seed in (0, 1):
        suite = Suite(task=TASKS[name], splits=HALVES, seed=seed)
        for split in HALVES.names:
            keys[split] |= {problem.key for problem in suite.stream(split)[:128]}
    assert not keys["train"] & keys["test"]


@at_any_level
def test_neighbouring_seeds_give_unrelated_sequences(name):
    task = TASKS[name]
    one, other = (Suite(task=task, seed=seed).stream("train")[:192] for seed in (42, 43))
    in_place = sum(a.key == b.key for a, b in zip(one, other, strict=True))
    shifted = sum(a.key == b.key for a, b in zip(one[1:], other, strict=False))
    # Of 192 independent pairs from 300 or more keys, less than 1 agrees on average; 12 never do.
    assert in_place < 12
    assert shifted < 12


@at_any_level
def test_the_floor_is_a_probability(name):
    assert all(0 <= TASKS[name].floor(problem) <= 1 for problem in problems_of(name))


@at_any_level
def test_features_are_numbers_under_the_same_names(name):
    names = {tuple(problem.features) for problem in problems_of(name)}
    assert len(names) == 1
    assert all(type(value) in (int, float) for problem in problems_of(name) for value in problem.features.values())


@at_any_level
def test_capacity_counts_the_problems_that_are_enumerated(name):
    task = TASKS[name]
    space = task.enumerate()
    if space is None or task.capacity is None or task.capacity > 20_000:
        pytest.skip("the space is too large to walk in a test")
    keys = [problem.key for problem in space]
    assert len(set(keys)) == len(keys) == task.capacity
    assert {problem.key for problem in problems_of(name)} <= set(keys)


@at_any_level
def test_a_task_is_a_frozen_value(name):
    task = TASKS[name]
    copy = pickle.loads(pickle.dumps(task))
    assert copy == task
    assert hash(copy) == hash(task)
    assert fingerprint(copy) == fingerprint(task)
    with pytest.raises(FrozenInstanceError):
        setattr(task, fields(task)[0].name, 1)
    certificate = problems_of(name)[0].certificate
    with pytest.raises(FrozenInstanceError):
        setattr(certificate, fields(certificate)[0].name, 1)


def test_every_level_has_a_fingerprint_of_its_own():
    assert len({fingerprint(task) for task in TASKS.values()}) == len(TASKS)


def check_verdict(name, problem, text):
    verdict = TASKS[name].verify(problem, text)
    assert verdict == TASKS[name].verify(problem, text)
    assert verdict.reason.strip()
    assert 0 <= verdict.progress <= 1
    assert verdict.well_formed or not verdict.correct
    return verdict


def agree_with_solutions(name, problem, text):
    verdict = check_verdict(name, problem, text)
    listed = TASKS[name].solutions(problem)
    if listed is not None:
        assert verdict.correct == (tight(text) in set(map(tight, listed)))


def tight(text):
    return "".join(text.split())
