"""Trace styles in the words of the command line."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.styles import HELP, NOISES, style_named
from testbeds import EXPLICIT, IMPLICIT, TraceStyle, fingerprint
from testbeds.chess.lines_style import MOST_MOVES, ORDERINGS, CandidateStyle
from testbeds.noise import DroppedSteps, WrongResult

candidate_styles = st.builds(
    CandidateStyle,
    candidates=st.integers(1, MOST_MOVES),
    depth=st.integers(1, 99),
    ordering=st.sampled_from(ORDERINGS),
    wrong_first=st.sampled_from([0.0, 1e-05, 0.25, 1 / 3, 0.5, 0.999, 1.0]),
)


@pytest.mark.parametrize(
    ("words", "style"),
    [
        ("explicit", EXPLICIT),
        ("implicit", IMPLICIT),
        ("composed", TraceStyle(granularity="composed", group=2)),
        ("composed/3 backward", TraceStyle(granularity="composed", group=3, order="backward")),
        ("shuffled", TraceStyle(order="shuffled")),
        ("depth_first backtracks=3", TraceStyle(search="depth_first", backtracks=3)),
        ("breadth_first heuristic=near", TraceStyle(search="breadth_first", heuristic="near")),
        ("wrong_result=0.5", TraceStyle(noise=WrongResult(rate=0.5))),
        ("candidates=3", CandidateStyle()),
        ("depth=4", CandidateStyle(depth=4)),
        (
            "candidates=4 depth=2 wrong_first=0.5 ordering=random",
            CandidateStyle(candidates=4, depth=2, wrong_first=0.5),
        ),
        ("explicit ordering=best_last wrong_first=0", CandidateStyle(ordering="best_last", wrong_first=0.0)),
        ("candidates=2 dropped_steps=.1", CandidateStyle(candidates=2, noise=DroppedSteps(rate=0.1))),
    ],
)
def test_words_name_a_style(words, style):
    named = style_named(words)
    assert named == style
    assert fingerprint(named) == fingerprint(style)


@given(style=candidate_styles)
def test_the_name_of_a_candidate_style_names_it(style):
    assert style_named(style.name) == style


@pytest.mark.parametrize("style", [EXPLICIT, IMPLICIT, TraceStyle(search="depth_first", backtracks=2)])
def test_the_name_of_a_plain_style_names_it(style):
    assert style_named(style.name) == style


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("verbose", "means nothing here"),
        ("candidates=many", "'candidates=many' means nothing here"),
        ("candidates=", "means nothing here"),
        ("candidates=-1", "means nothing here"),
        ("wrong_first=2", "means nothing here"),
        ("wrong_first=1.5", "share between 0 and 1, got 1.5"),
        ("candidates=0", "candidates must be a whole number between 1 and 218, got 0"),
        ("depth=0", "depth must be a whole number between 1 and 200, got 0"),
        ("ordering=worst_first", "ordering must be one of random, best_last, best_first, checks_first"),
        ("candidates=3 candidates=4", "says twice what candidates is"),
        ("candidates=3 implicit", "explicitly and forward, got .*'implicit'"),
        ("candidates=3 composed/2", "explicitly and forward, got .*'composed'"),
        ("candidates=3 shuffled", "explicitly and forward, got .*'shuffled'"),
        ("candidates=3 breadth_first", "has search='depth_first', got 'breadth_first'"),
        ("candidates=3 backtracks=2", "has backtracks=None, got 2; say the number of its lines by candidates"),
        ("candidates=3 heuristic=near", "has heuristic='candidates', got 'near'"),
    ],
)
def test_words_that_name_no_style_are_refused_with_what_is_possible(words, complaint):
    with pytest.raises(ValueError, match=complaint):
        style_named(words)


@pytest.mark.parametrize("word", ["candidates=", "depth=", "wrong_first=", "ordering=", *ORDERINGS, *NOISES])
def test_the_help_names_what_can_be_said(word):
    assert word in HELP


def test_naming_styles_does_not_load_the_rules_of_chess():
    code = "import sys, experiments.styles; print(sorted({'chess', 'numba'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
