"""Chains of latent modules: worlds, drawing, traces and verdicts."""

import itertools
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import EXPLICIT, IMPLICIT, Problem, Trace, TraceStyle, stream
from testbeds.latent_modules import Chain, HoldsPair, LatentModules, coverage, heldout_pairs
from testbeds.latent_world import LETTERS, World, rows, tables

COMPOSED = TraceStyle(granularity="composed", group=2)


def problem(*, states: str, program: str = "", **fields) -> tuple[LatentModules, Problem]:
    """A problem with these states, input first, whatever its modules are."""
    written = tuple(states.split())
    names = tuple(program.split()) or ("m1",) * (len(written) - 1)
    task = LatentModules(world=0, width=len(written[0]), depth=len(names), **fields)
    return task, Problem(prompt="", key="", certificate=Chain(program=names, states=written))


def apply_by_hand(meaning: str, kind: str, registers: list[str]) -> list[str]:
    """What a module does according to its description for readers: an independent reading of the tables."""
    after = list(registers)
    words = meaning.split()
    if kind in ("permutation", "map"):
        after[0] = dict(pair.split(">") for pair in words)[registers[0]]
    elif kind == "binary":
        row = dict(pair.split(":") for pair in words)[registers[1]]
        after[0] = row[LETTERS.index(registers[0])]
    elif words[0] == "duplicate":
        after[int(words[4])] = registers[int(words[2])]
    elif words[0] == "rotate":
        turn = int(words[3])
        after = registers[-turn:] + registers[:-turn]
    elif "if" not in words or registers[0] in words[-1]:
        one, other = int(words[2]), int(words[4])
        after[one], after[other] = registers[other], registers[one]
    return after


WORLDS = [
    LatentModules(world=0, depth=4),
    LatentModules(world=1, alphabet=5, skills=4, noninvertible=2, depth=4),
    LatentModules(world=2, alphabet=4, skills=3, binary=2, routings=5, width=2, depth=5),
    LatentModules(world=3, alphabet=3, skills=2, routings=6, width=3, depth=4),
]


@pytest.mark.parametrize("task", WORLDS)
def test_states_follow_from_what_the_modules_say_they_do(task):
    modules = {module.name: module for module in task.modules}
    for instance in task.generate(stream("by-hand"), 60):
        registers = list(instance.certificate.states[0])
        for name, state in zip(instance.certificate.program, instance.certificate.states[1:], strict=True):
            registers = apply_by_hand(modules[name].meaning, modules[name].kind, registers)
            assert "".join(registers) == state


@pytest.mark.parametrize("task", WORLDS)
def test_features_are_counts_over_the_program(task):
    kinds = {module.name: module.kind for module in task.modules}
    for instance in task.generate(stream("features"), 60):
        chain = instance.certificate
        assert instance.features == {
            "depth": len(chain.program),
            "distinct_modules": len(set(chain.program)),
            "routing_modules": sum(kinds[name] == "routing" for name in chain.program),
            "idle_steps": sum(a == b for a, b in itertools.pairwise(chain.states)),
        }


@pytest.mark.parametrize("task", WORLDS)
def test_modules_are_of_the_kinds_that_were_asked_for_and_differ(task):
    counted = Counter(module.kind for module in task.modules)
    assert counted["permutation"] == task.skills - task.noninvertible
    assert counted["map"] == task.noninvertible
    assert counted["binary"] == task.binary
    assert counted["routing"] == task.routings
    assert len({module.meaning for module in task.modules}) == len(task.modules)
    for module in task.modules:
        if module.kind in ("permutation", "map"):
            images = {pair.split(">")[1] for pair in module.meaning.split()}
            assert (len(images) == task.alphabet) == (module.kind == "permutation")


def test_a_few_routings_cover_all_sorts():
    task = LatentModules(world=5, alphabet=4, skills=1, routings=4, width=3)
    words = sorted(module.meaning.split()[0] for module in task.modules if module.kind == "routing")
    conditional = [module for module in task.modules if " if " in module.meaning]
    assert words == ["duplicate", "rotate", "swap", "swap"]
    assert len(conditional) == 1


def test_a_world_does_not_depend_on_depth_or_working():
    one = LatentModules(world=4, depth=2)
    other = LatentModules(world=4, depth=5, working="none")
    assert one.modules == other.modules
    assert one.symbols == other.symbols


def test_worlds_of_permutations_nest_with_their_names_and_keys():
    small, large = LatentModules(world=4, skills=6, depth=2), LatentModules(world=4, skills=8, depth=2)
    assert large.modules[:6] == small.modules
    keys = {instance.key: instance for instance in large.enumerate()}
    assert all(keys[instance.key] == instance for instance in small.enumerate())


def test_adding_routings_leaves_the_skills_as_they_are():
    plain = LatentModules(world=4, alphabet=5, skills=3, width=2)
    routed = LatentModules(world=4, alphabet=5, skills=3, width=2, routings=2)
    skills = [module.meaning for module in routed.modules if module.kind == "permutation"]
    assert skills == [module.meaning for module in plain.modules]


def test_different_worlds_have_different_modules_and_keys():
    first, second = LatentModules(world=1, depth=1), LatentModules(world=2, depth=1)
    assert first.modules != second.modules
    assert not {p.key for p in first.enumerate()} & {p.key for p in second.enumerate()}


def test_names_do_not_give_kinds_away():
    # Over 60 worlds of 3 permutations and 3 maps, m1 is a permutation about 30 times (standard deviation 3.9).
    firsts = [LatentModules(world=seed, noninvertible=3).modules[0].kind for seed in range(60)]
    assert 15 < firsts.count("permutation") < 45


def test_prompt_and_key_are_written_as_documented():
    task = LatentModules(world=3, alphabet=3, skills=2, depth=2)
    first, *_, last = task.enumerate()
    assert first.prompt == "a m1 m1 >"
    assert last.prompt == "c m2 m2 >"
    assert first.key == "latent:3/3^1:a m1 m1"
    assert task.symbols == ("a", "b", "c", "m1", "m2", ">")


def test_values_leave_out_the_letter_that_begins_modules():
    assert LatentModules(world=0, alphabet=14).symbols[10:14] == ("k", "l", "n", "o")


@pytest.mark.parametrize(
    ("style", "text"),
    [
        (EXPLICIT, "b c d e f"),
        (COMPOSED, "c e f"),
        (TraceStyle(granularity="composed", group=3), "d f"),
        (TraceStyle(granularity="composed", group=9), "f"),
        (IMPLICIT, "f"),
    ],
)
def test_a_trace_writes_the_states_that_its_style_says(style, text):
    task, instance = problem(states="a b c d e f", program="m3 m1 m2 m2 m5")
    trace = task.demonstrate(instance, style, stream("unused"))
    assert trace.text == text
    assert trace.answer == "f"
    assert [step.operation for step in trace.steps] == ["m3", "m1", "m2", "m2", "m5"]
    assert [step.result for step in trace.steps] == ["b", "c", "d", "e", "f"]
    assert " ".join(step.text for step in trace.steps if step.text) == text


def test_without_room_for_working_only_the_answer_can_be_demonstrated():
    task, instance = problem(states="a b c", working="none")
    assert task.demonstrate(instance, IMPLICIT, stream("unused")).text == "c"
    for style in (EXPLICIT, COMPOSED):
        with pytest.raises(ValueError, match="no room for a trace"):
            task.demonstrate(instance, style, stream("unused"))


@pytest.mark.parametrize(
    ("working", "text", "correct", "reason"),
    [
        ("free", "d", True, "right"),
        ("free", "b c d", True, "right"),
        ("free", "  bcd\n", True, "right"),
        ("free", "l l l l l l l d", True, "right"),
        ("free", "d c", False, "the answer c is wrong; it is d"),
        ("none", "d", True, "right"),
        ("none", "b c d", False, "3 states are written where only the answer may stand"),
        ("none", "c", False, "the answer c is wrong"),
        ("checked", "d", True, "right"),
        ("checked", "b c d", True, "right"),
        ("checked", "b d", True, "right"),
        ("checked", "c d", True, "right"),
        ("checked", "c b d", False, "state 2 of the working, b, is not"),
        ("checked", "b b d", False, "state 2 of the working, b, is not"),
        ("checked", "a b c d", False, "state 1 of the working, a, is not"),
        ("checked", "b c d d", False, "state 3 of the working, d, is not"),
        ("checked", "b c", False, "the answer c is wrong"),
    ],
)
def test_working_is_free_checked_or_refused(working, text, correct, reason):
    task, instance = problem(states="a b c d", working=working)
    verdict = task.verify(instance, text)
    assert verdict.correct == correct
    assert verdict.well_formed
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("\u2003 \n", "it is empty"),
        ("b c z", "'z' is not one of the value symbols a to l"),
        ("b m c", "'m' is not one of"),
        ("b m1 c", "'m' is not one of"),
        ("b>d", "'>' is not one of"),
        ("b \x00 d", "'\\x00' is not one of"),
        ("b é d", "is not a value symbol"),
        ("\ud800", "is not a value symbol"),
        ("D", "'D' is not one of"),
    ],
)
def test_what_is_not_a_row_of_values_is_malformed(text, reason):
    task, instance = problem(states="a b c d")
    verdict = task.verify(instance, text)
    assert not verdict.well_formed
    assert not verdict.correct
    assert verdict.progress == 0
    assert reason in verdict.reason


def test_states_of_two_registers_are_written_whole():
    task, instance = problem(states="ab ba bb")
    assert task.verify(instance, "ba bb").correct
    assert task.verify(instance, "b a b b").correct
    assert task.verify(instance, "bb").correct
    assert not task.verify(instance, "ab").correct
    odd = task.verify(instance, "b ab")
    assert not odd.well_formed
    assert "3 symbols are not a whole number of states of 2" in odd.reason


@pytest.mark.parametrize(
    ("text", "progress"), [("b c e", 2 / 3), ("b e", 1 / 3), ("e", 0), ("b c d e", 2 / 3), ("d", 1), ("b c d", 1)]
)
def test_progress_is_the_share_of_the_explicit_trace_that_a_completion_begins_with(text, progress):
    task, instance = problem(states="a b c d")
    assert task.verify(instance, text).progress == pytest.approx(progress)


def test_checked_solutions_are_the_answer_after_any_true_states_in_order():
    task, instance = problem(states="a b c d", working="checked")
    assert task.solutions(instance) == ("d", "b d", "c d", "b c d")
    task, instance = problem(states="a b b d", working="checked")
    assert task.solutions(instance) == ("d", "b d", "b b d")


@given(text=st.text(alphabet="abcd ", max_size=8))
def test_checked_solutions_are_all_that_the_verifier_accepts(text):
    task, instance = problem(states="a b c b d", working="checked")
    listed = {solution.replace(" ", "") for solution in task.solutions(instance)}
    assert task.verify(instance, text).correct == ("".join(text.split()) in listed)


def test_solutions_without_working_are_the_answer_and_with_free_working_countless():
    task, instance = problem(states="a b c", working="none")
    assert task.solutions(instance) == ("c",)
    task, instance = problem(states="a b c")
    assert task.solutions(instance) is None


def test_the_floor_of_permutations_is_one_over_the_alphabet():
    # Each permutation sends the uniform distribution to itself.
    for depth in (1, 5, 40):
        assert LatentModules(world=0, depth=depth).floor(None) == 1 / 12


@pytest.mark.parametrize(
    "task",
    [
        LatentModules(world=1, alphabet=4, skills=3, noninvertible=2, depth=3),
        LatentModules(world=2, alphabet=3, skills=2, binary=1, routings=3, width=2, depth=2),
    ],
)
def test_the_floor_is_the_frequency_of_the_commonest_answer(task):
    answers = Counter(instance.certificate.states[-1] for instance in task.enumerate())
    assert task.floor(next(iter(task.enumerate()))) == pytest.approx(max(answers.values()) / task.capacity, rel=1e-12)
    assert answers.total() == task.capacity


def test_capacity_and_entropy_follow_from_uniform_draws():
    task = LatentModules(world=0, alphabet=3, skills=2, routings=1, width=2, depth=4)
    # 3**2 states, 3 modules, 4 places: 9 * 81 prompts, all equally likely.
    assert task.capacity == 729
    assert task.prompt_entropy_nats() == pytest.approx(math.log(729))


def test_draws_are_uniform_over_inputs_and_modules():
    instances = LatentModules(world=0, alphabet=4, skills=4, depth=2).generate(stream("uniform"), 6400)
    counted = Counter(instance.key for instance in instances)
    # 64 cells of expected count 100: chi-square with 63 degrees of freedom has mean 63, standard deviation 11.2.
    chi_square = sum((counted[key] - 100) ** 2 / 100 for key in counted)
    assert len(counted) == 64
    assert chi_square < 63 + 5 * 11.2


def test_large_spaces_are_not_walked():
    assert LatentModules(world=0, depth=6).enumerate() is not None  # 559,872
    assert LatentModules(world=0, depth=7).enumerate() is None  # 3,359,232


def test_a_pair_is_held_by_programs_in_which_it_stands_side_by_side_and_in_order():
    holds = HoldsPair(pairs=(("m1", "m3"), ("m2", "m2")))
    programs = {"m1 m3": True, "m3 m1": False, "m1 m2 m3": False, "m4 m1 m3": True, "m2 m2 m1": True, "m2": False}
    for program, held in programs.items():
        states = " ".join("a" * (len(program.split()) + 1))
        assert holds(problem(states=states, program=program)[1]) == held


def test_held_out_pairs_leave_each_module_a_seen_pair_on_both_sides():
    task = LatentModules(world=0, skills=5)
    for salt, count in itertools.product(range(3), (1, 8, 17)):  # 25 pairs less 2 * 5 - 2: 17 can always be held out
        held = heldout_pairs(task, count, salt)
        assert len(set(held)) == count
        seen = set(itertools.product(task.names, task.names)) - set(held)
        assert {first for first, _ in seen} == {second for _, second in seen} == set(task.names)
    assert heldout_pairs(task, 3) == heldout_pairs(task, 17)[:3]
    assert heldout_pairs(task, 8, 0) != heldout_pairs(task, 8, 1)
    for count in (0, 18):
        with pytest.raises(ValueError, match=f"between 1 and 17 pairs of 5 modules can be held out, got count={count}"):
            heldout_pairs(task, count)


def test_coverage_counts_applications_and_neighbours():
    instances = [
        problem(states="a a a a", program="m1 m2 m1")[1],
        problem(states="a a a", program="m1 m2")[1],
        problem(states="a a", program="m3")[1],
        Problem(prompt="", key="", certificate=None),
    ]
    covered = coverage(instances)
    assert covered.modules == (("m1", 3), ("m2", 2), ("m3", 1))
    assert covered.pairs == ((("m1", "m2"), 2), (("m2", "m1"), 1))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"depth": 0}, "depth must be between 1 and 1000"),
        ({"depth": 17, "working": "checked"}, "between 1 and 16 with working='checked'"),
        ({"working": "some"}, "free, checked or none, got 'some'"),
        ({"skills": 0}, "skills at least 1"),
        ({"noninvertible": 7}, r"noninvertible \(7\) counts some of the skills \(6\)"),
        ({"noninvertible": -1}, "between 0 and skills"),
        ({"alphabet": 1}, "alphabet must be between 2 and 51"),
        ({"alphabet": 52}, "alphabet must be between 2 and 51"),
        ({"width": 0}, "width must be between 1"),
        ({"width": 5}, "248832 states, above 65536"),
        ({"routings": 1}, "routings must be between 0 and 0, got 1 .*raise width"),
        ({"binary": 1}, "binary must be between 0 and 0, got 1 .*raise width"),
        ({"alphabet": 2, "skills": 2}, "skills - noninvertible must be between 0 and 1, got 2"),
        ({"alphabet": 2, "skills": 4, "noninvertible": 3}, "noninvertible must be between 0 and 2, got 3"),
        ({"skills": 10**8}, "skills - noninvertible must be between 0 and 4096, got 100000000"),
        ({"alphabet": 16, "width": 4, "skills": 300}, "300 modules on 65536 states make a table of more than"),
        ({"alphabet": 2, "skills": 1, "width": 2, "routings": 9}, "routings must be between 0 and|of kind 'routing'"),
    ],
)
def test_impossible_configurations_are_refused_when_they_are_declared(fields, message):
    with pytest.raises(ValueError, match=message):
        LatentModules(world=0, **fields)


@pytest.mark.parametrize(
    "name", ["world", "alphabet", "skills", "noninvertible", "binary", "routings", "width", "depth"]
)
@pytest.mark.parametrize("value", [True, 2.0, "2", None, (2,), [2], np.int64(2)])
def test_numbers_that_are_no_whole_numbers_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"LatentModules.{name} must be a whole number, got") as refusal:
        LatentModules(**({"world": 0} | {name: value}))
    assert repr(value) in str(refusal.value)


def test_the_smallest_world_is_possible():
    # Two letters have one permutation besides the identity, and two maps that lose something: the constants.
    task = LatentModules(world=0, alphabet=2, skills=3, noninvertible=2, depth=1)
    assert sorted(module.meaning for module in task.modules) == ["a>a b>a", "a>b b>a", "a>b b>b"]


def test_drawn_tables_cannot_be_written_to():
    world = World(seed=0, alphabet=3, permutations=2, maps=0, binaries=0, routings=0, width=1)
    with pytest.raises(ValueError, match="read-only"):
        tables(world).next_NS[0, 0] = 1
    assert tables(world).next_NS.dtype == np.int64


def test_a_problem_of_another_task_is_refused():
    with pytest.raises(TypeError, match="not of latent modules"):
        LatentModules(world=0).verify(Problem(prompt="1+1", key="stranger", certificate=None), "a")


def test_free_working_may_stand_in_any_order_before_the_answer():
    task, instance = problem(states="a b c d e f", program="m3 m1 m2 m2 m5")
    backward = task.demonstrate(instance, TraceStyle(order="backward"), stream("unused"))
    assert backward.text == "e d c b f"
    assert [step.operation for step in backward.steps] == ["m2", "m2", "m1", "m3", "m5"]
    folded = TraceStyle(granularity="composed", group=2, order="backward")
    assert task.demonstrate(instance, folded, stream("unused")).text == "e c f"
    seen = set()
    for number in range(60):
        trace = task.demonstrate(instance, TraceStyle(order="shuffled"), stream("shuffled", number))
        assert sorted(trace.text.split()[:-1]) == ["b", "c", "d", "e"]
        assert trace.answer == trace.text.split()[-1] == "f"
        assert task.verify(instance, trace.text).correct
        seen.add(trace.text)
    assert len(seen) > 15  # of 24 orders


@pytest.mark.parametrize("working", ["checked", "none"])
def test_only_free_working_may_stand_in_another_order(working):
    task, instance = problem(states="a b c", working=working)
    for order in ("backward", "shuffled"):
        with pytest.raises(ValueError, match="only working='free' may stand in another order"):
            task.demonstrate(instance, TraceStyle(granularity="implicit", order=order), stream("unused"))


def test_a_program_is_not_searched():
    task, instance = problem(states="a b c")
    for search in ("depth_first", "breadth_first"):
        with pytest.raises(ValueError, match=f"followed, not searched for: search='{search}'"):
            task.demonstrate(instance, TraceStyle(search=search), stream("unused"))


def test_instructions_say_what_counts():
    told = {working: LatentModules(world=0, working=working).instructions for working in ("free", "checked", "none")}
    assert all("m1 to m6" in text and "a to l" in text for text in told.values())
    assert "a wrong one makes the answer wrong" in told["checked"]
    assert "Write nothing else." in told["none"]
    assert "2 symbols, the first for register 0" in LatentModules(world=0, alphabet=4, skills=2, width=2).instructions


def test_a_megabyte_of_garbage_is_refused_by_what_it_is():
    task, instance = problem(states="a b c d")
    for piece, reason in [("m1 ", "'m' is not"), ("é ", "only if all are ASCII"), ("d\u2003", "only if all are ASCII")]:
        verdict = task.verify(instance, piece * (1_000_000 // len(piece)))
        assert not verdict.well_formed
        assert reason in verdict.reason
    assert task.verify(instance, "d" + " " * 1_000_000).correct
    assert task.verify(instance, "d" + "\u2003" * 90_000).correct


def test_problems_made_by_columns_are_those_made_one_by_one():
    task = LatentModules(world=2, alphabet=4, skills=3, binary=2, routings=5, width=2, depth=5)
    for made in task.generate(stream("columns"), 20):
        chain = made.certificate
        assert made == Problem(
            prompt=made.prompt,
            key=made.key,
            certificate=Chain(program=chain.program, states=chain.states),
            features=made.features,
            family=made.family,
        )
        assert pickle.loads(pickle.dumps(made)) == made
        trace = task.demonstrate(made, EXPLICIT, stream("unused"))
        assert trace == Trace(steps=trace.steps, text=trace.text, answer=trace.answer)
    with pytest.raises(TypeError, match="missing or unknown: \\['states'\\]"):
        rows(Chain, 1, program=[()])
