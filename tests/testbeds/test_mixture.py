from dataclasses import replace

import pytest

from models import Tokenizer
from testbeds import (
    EXPLICIT,
    IMPLICIT,
    FeatureAtLeast,
    Mixture,
    Problem,
    Splits,
    Suite,
    TraceStyle,
    demonstration,
    stream,
)
from testbeds.catalogue import catalogue, levels
from testbeds.countdown import Countdown
from testbeds.latent_modules import HoldsPair, LatentModules
from testbeds.lexicon import read
from testbeds.mixture import component_of, innermost
from testbeds.noise import WrongResult

SHALLOW = LatentModules(world=0, depth=1)  # 72 problems
DEEP = LatentModules(world=0, depth=2)  # 432 problems
MIXTURE = Mixture(tasks=(SHALLOW, DEEP), weights=(1, 3))
EVERYTHING = Mixture(
    tasks=tuple(next(iter(levels(name).values())) for name in catalogue()), weights=(1.0,) * len(catalogue())
)


def test_components_come_in_proportion_to_their_weights():
    depths = [problem.features["depth"] for problem in MIXTURE.generate(stream("shares"), 4000)]
    # Share 0.75 of 4000 is 3000, standard deviation sqrt(4000 * 0.75 * 0.25) = 27.4; five of them are 137.
    assert abs(depths.count(2) - 3000) < 137
    assert MIXTURE.shares == (0.25, 0.75)


def test_only_ratios_of_weights_count():
    scaled = Mixture(tasks=MIXTURE.tasks, weights=(10, 30))
    assert scaled.generate(stream(1), 50) == MIXTURE.generate(stream(1), 50)


def test_a_problem_keeps_the_key_prompt_and_features_of_its_component():
    alone = {p.key: p for p in (*SHALLOW.enumerate(), *DEEP.enumerate())}
    for problem in MIXTURE.generate(stream(2), 50):
        twin = alone[problem.key]
        assert (problem.prompt, problem.features) == (twin.prompt, twin.features)
        assert innermost(problem.certificate) == twin.certificate


def test_symbols_are_the_ordered_union():
    assert MIXTURE.symbols == SHALLOW.symbols
    wide = LatentModules(world=0, alphabet=13, depth=1)
    # Twelve letters, m1 to m6 and > of the first task, then the thirteenth letter, n: m is left out.
    assert Mixture(tasks=(SHALLOW, wide), weights=(1, 1)).symbols == (*SHALLOW.symbols, "n")


def test_demonstrations_of_every_component_are_accepted():
    for problem in EVERYTHING.generate(stream(3), 50):
        trace = EVERYTHING.demonstrate(problem, EXPLICIT, stream(4))
        assert EVERYTHING.verify(problem, trace.text).correct
        assert 0 <= EVERYTHING.floor(problem) <= 1
        assert not EVERYTHING.verify(problem, "nonsense").correct


def test_solutions_are_those_of_the_component():
    direct = LatentModules(world=0, depth=2, working="none")
    mixture = Mixture(tasks=(SHALLOW, direct), weights=(1, 1))
    for problem in mixture.generate(stream(5), 20):
        task, inner = mixture.component(problem)
        assert mixture.solutions(problem) == task.solutions(inner)


def test_the_size_of_a_union_is_counted():
    assert MIXTURE.capacity == 72 + 432
    assert len({p.key for p in MIXTURE.enumerate()}) == 504
    overlapping = Mixture(tasks=(DEEP, LatentModules(world=0, depth=2, working="none")), weights=(1, 1))
    assert overlapping.capacity == 432


def test_a_union_with_a_part_of_unknown_size_has_no_known_size():
    large = LatentModules(world=0, depth=9)
    mixture = Mixture(tasks=(SHALLOW, large), weights=(1, 1))
    assert mixture.capacity is None
    assert mixture.enumerate() is None


def test_mixtures_nest():
    nested = Mixture(tasks=(MIXTURE, LatentModules(world=0, depth=3)), weights=(1, 1))
    for problem in nested.generate(stream(6), 30):
        assert nested.verify(problem, nested.demonstrate(problem, EXPLICIT, stream(7)).text).correct


def test_predicates_hold_in_a_mixture_as_outside():
    splits = Splits(
        held_out=(("pair", HoldsPair(pairs=(("m1", "m2"),))), ("deep", FeatureAtLeast(name="depth", value=2)))
    )
    suite = Suite(task=MIXTURE, splits=splits)
    assert suite.capacity("pair") == 12  # one program, twelve inputs
    assert suite.capacity("deep") == 432 - 12
    assert all(p.features["depth"] == 1 for p in suite.distinct("train", 40))


@pytest.mark.parametrize(
    ("tasks", "weights", "message"),
    [
        ((), (), "tasks is empty"),
        ((SHALLOW,), (1, 2), "1 tasks and 2 weights"),
        ((SHALLOW,), (0,), "positive and finite"),
        ((SHALLOW,), (float("inf"),), "positive and finite"),
        ((SHALLOW,), (float("nan"),), "positive and finite"),
    ],
)
def test_impossible_mixtures_are_refused(tasks, weights, message):
    with pytest.raises(ValueError, match=message):
        Mixture(tasks=tasks, weights=weights)


def test_a_problem_of_another_task_is_refused():
    stranger = Problem(prompt="1+1", key="stranger", certificate=None)
    with pytest.raises(TypeError, match="not of a mixture"):
        MIXTURE.verify(stranger, "a")


WHOLE = Countdown(numbers=3, operators=("+", "-"), values=(1, 30), target=(1, 40), numerals="whole")
DIGITS = replace(WHOLE, numerals="digits")
CLASH = Mixture(tasks=(WHOLE, DIGITS), weights=(1, 1))


def test_texts_that_would_be_misread_are_written_apart():
    # Beside the symbol "12" of the one task, the digits "1" and "2" of the other would be read as that symbol.
    tokenizer, alone = Tokenizer.of(CLASH.symbols), Tokenizer.of(DIGITS.symbols)
    seen = set()
    for problem in CLASH.generate(stream("clash"), 60):
        name, task, inner = component_of(CLASH, problem)
        seen.add(name)
        for style in (EXPLICIT, IMPLICIT, TraceStyle(noise=WrongResult(rate=1.0))):
            trace, plain = demonstration(CLASH, problem, style), demonstration(task, inner, style)
            assert trace.text.replace(" ", "") == plain.text.replace(" ", "")
            assert CLASH.verify(problem, trace.text) == task.verify(inner, plain.text)
            for text, own in ((problem.prompt, inner.prompt), (trace.text, plain.text), (trace.answer, plain.answer)):
                ids = tokenizer.encode(text)
                assert [tokenizer.vocabulary[index] for index in ids] == read(own, task.symbols)
                assert tokenizer.encode(tokenizer.decode(ids)) == ids
        if task == DIGITS:
            assert len(tokenizer.encode(problem.prompt)) == len(alone.encode(inner.prompt))
    assert seen == {"countdown 1", "countdown 2"}


def test_every_level_of_every_testbed_mixes_and_every_text_is_read_as_its_own_task_reads_it():
    tasks = tuple(task for name in catalogue() for task in levels(name).values())
    mixture = Mixture(tasks=tasks, weights=(1.0,) * len(tasks))
    tokenizer = Tokenizer.of(mixture.symbols)
    for problem in mixture.generate(stream("all levels"), 2 * len(tasks)):
        _, task, inner = component_of(mixture, problem)
        assert (inner.key, inner.family) == (problem.key, problem.family)
        try:
            trace, plain = (demonstration(*of, EXPLICIT).text for of in ((mixture, problem), (task, inner)))
        except ValueError:  # a task without room for steps
            trace, plain = (demonstration(*of, IMPLICIT).text for of in ((mixture, problem), (task, inner)))
        for text, own in ((problem.prompt, inner.prompt), (trace, plain)):
            assert [tokenizer.vocabulary[index] for index in tokenizer.encode(text)] == read(own, task.symbols)


def test_noise_in_a_mixture_is_that_of_the_component_alone():
    tasks = (levels("countdown")["easy"], LatentModules(world=2, depth=4))
    mixture, style = Mixture(tasks=tasks, weights=(1, 1)), TraceStyle(noise=WrongResult(rate=0.5))
    problems = mixture.generate(stream("noise in a mixture"), 60)
    spoiled = [demonstration(mixture, problem, style) for problem in problems]
    assert spoiled == [demonstration(*component_of(mixture, problem)[1:], style) for problem in problems]
    assert spoiled != [demonstration(mixture, problem, EXPLICIT) for problem in problems]
