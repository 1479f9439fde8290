"""Traces and verdicts of latent graphs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import EXPLICIT, IMPLICIT, Problem, TraceStyle, stream
from testbeds.latent_graphs import Graph, LatentGraphs

GRAPH = Graph(
    nodes=(("m1", (-1,)), ("m2", (0, -2)), ("m3", (0,)), ("m1", (1, 2))), inputs=("a", "b"), values=("b", "c", "d", "e")
)
SHAPE = {"shape": "tree", "modules": 4, "depth": 3, "width": 2}


def task(**fields):
    return LatentGraphs(
        **({"world": 0, "skills": 12, "types": ("symbol", "residue", "list", "string")} | SHAPE | fields)
    )


def problem(*values):
    nodes = GRAPH.nodes
    return Problem(prompt="", key="", certificate=Graph(nodes=nodes, inputs=("a", "b"), values=values or GRAPH.values))


@pytest.mark.parametrize(
    ("style", "text"),
    [
        (EXPLICIT, "y1 = b ; y2 = c ; y3 = d ; y4 = e#e"),
        (TraceStyle(order="backward"), "y4 = e ; y3 = d ; y2 = c ; y1 = b#e"),
        (TraceStyle(granularity="composed", group=2), "y2 = c ; y4 = e#e"),
        (TraceStyle(granularity="composed", group=3), "y3 = d ; y4 = e#e"),
        (TraceStyle(granularity="composed", group=3, order="backward"), "y4 = e ; y3 = d#e"),
        (TraceStyle(granularity="composed", group=9), "y4 = e#e"),
        (IMPLICIT, "e"),
        (TraceStyle(granularity="implicit", order="backward"), "e"),
    ],
)
def test_a_trace_writes_the_results_that_its_style_says(style, text):
    trace = task().demonstrate(problem(), style, stream("unused"))
    assert trace.text == text
    assert trace.answer == "e"
    operations = ["m1 x1", "m2 y1 x2", "m3 y1", "m1 y2 y3"]
    assert [step.operation for step in trace.steps] == (operations[::-1] if style.order == "backward" else operations)
    assert task(working="checked").verify(problem(), trace.text).correct


def test_shuffled_lines_are_the_same_in_an_order_of_their_own():
    seen = set()
    for number in range(60):
        text = task().demonstrate(problem(), TraceStyle(order="shuffled"), stream("shuffled", number)).text
        lines, answer = text.split("#")
        assert sorted(lines.split(" ; ")) == ["y1 = b", "y2 = c", "y3 = d", "y4 = e"]
        assert answer == "e"
        seen.add(lines)
    assert len(seen) > 15  # of 24 orders


def test_what_cannot_be_written_is_refused():
    for search in ("depth_first", "breadth_first"):
        with pytest.raises(ValueError, match="computed, not searched for"):
            task().demonstrate(problem(), TraceStyle(search=search), stream("unused"))
    with pytest.raises(ValueError, match="no room for a trace"):
        task(working="none").demonstrate(problem(), EXPLICIT, stream("unused"))
    with pytest.raises(TypeError, match="not of latent graphs"):
        task().verify(Problem(prompt="1+1", key="stranger", certificate=None), "a")


@pytest.mark.parametrize(
    ("working", "text", "correct", "reason"),
    [
        ("free", "e", True, "right"),
        ("free", " \n e\u2003", True, "right"),
        ("free", "I think so # e", True, "right"),
        ("free", "y1 = z ; ; # e", True, "right"),
        ("free", "#e", True, "right"),
        ("free", "e # d", False, "the answer 'd' is wrong; it is e"),
        ("checked", "y4=e;y1=b;y1=b#e", True, "right"),
        ("checked", "#e", True, "right"),
        ("checked", "y1 = b ; y2 = d # e", False, "line 2 of the working, 'y2 = d', is wrong; it is c"),
        ("checked", "y5 = b # e", False, "there is no such result"),
        ("none", "e", True, "right"),
    ],
)
def test_working_is_free_checked_or_refused(working, text, correct, reason):
    verdict = task(working=working).verify(problem(), text)
    assert (verdict.correct, verdict.well_formed) == (correct, True)
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("working", "text", "reason"),
    [
        ("free", "", "empty"),
        ("free", "y1 = b #", "empty"),
        ("free", "e # e # e", "more than one #"),
        ("free", "ee", "'ee' is not a value"),
        ("free", "[e", "is not a value"),
        ("free", "[abcde]", "is not a value"),
        ("free", "07", "is not a value"),
        ("free", "7", "is not a value"),
        ("free", "\uff13", "is not a value"),
        ("free", "\u0663", "is not a value"),
        ("free", "e\x00", "is not a value"),
        ("free", "\ud800", "is not a value"),
        ("free", "{e,3}", "is not a value"),
        ("none", "y1 = b # e", "only the answer may stand"),
        ("none", "# e", "only the answer may stand"),
        ("checked", "y1 = b ; # e", "line 2 of the working, '', is not NAME = VALUE"),
        ("checked", "so # e", "line 1 of the working, 'so', is not NAME = VALUE"),
        ("checked", "y01 = b # e", "is not NAME = VALUE"),
        ("checked", "y1 = bb # e", "is not NAME = VALUE"),
        ("checked", "x1 = a # e", "is not NAME = VALUE"),
        ("checked", " " * 20_001 + "# e", "at most 20000 are read"),
        ("free", " " * 100_001, "at most 100000 are read"),
    ],
)
def test_what_is_not_in_the_grammar_is_malformed(working, text, reason):
    verdict = task(working=working).verify(problem(), text)
    assert (verdict.correct, verdict.well_formed, verdict.progress) == (False, False, 0)
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("value", "texts", "others"),
    [
        ("5", ["5", " 5 "], ["4", "05", "5 5", "+5", "5.0"]),
        ("[ab]", ["[ab]", "[ a b ]"], ["ab", "(ab)", "[ba]", "[a,b]", "[ab", "[abb]"]),
        ("[]", ["[]", "[ ]"], ["()", "", "[a]"]),
        ("(ab)", ["(ab)"], ["[ab]", "((ab))"]),
    ],
)
def test_each_kind_of_value_is_written_in_one_way(value, texts, others):
    asked = problem("b", "c", "d", value)
    assert all(task().verify(asked, text).correct for text in texts)
    assert not any(task().verify(asked, text).correct for text in others)


def test_pairs_are_written_in_braces():
    asked = problem("b", "c", "d", "{[a],[]}")
    assert task(routings=3).verify(asked, "{ [a] , [ ] }").correct
    assert not task(routings=3).verify(asked, "{[],[a]}").correct
    assert not task(routings=3).verify(asked, "{[a][]}").well_formed


@pytest.mark.parametrize(
    ("text", "score", "progress"),
    [
        ("y1 = b ; y2 = c ; y3 = d ; y4 = e # e", 1, 1),
        ("e", 0, 1),
        ("y1 = b ; y2 = c ; y3 = d ; y4 = e # d", 1, 4 / 5),
        ("y1 = b ; y2 = d # d", 1 / 4, 1 / 5),
        ("y1 = b ; y1 = c ; y2 = c # d", 1 / 4, 1 / 5),
        ("y1 = b ; y1 = b # d", 1 / 4, 1 / 5),
        ("well y1 = b ; y3 = d, # d", 0, 0),
        ("y9 = b # d", 0, 0),
        ("y1 = b", 0, 0),
    ],
)
def test_progress_counts_results_that_are_written_right_and_never_wrong(text, score, progress):
    assert task().process_score(problem(), text) == pytest.approx(score)
    assert task().verify(problem(), text).progress == pytest.approx(progress)


def test_solutions_are_the_answer_where_nothing_else_may_stand_and_else_countless():
    assert task(working="none").solutions(problem()) == ("e",)
    assert task(working="checked").solutions(problem()) is None
    assert task().solutions(problem()) is None
    assert task().answers(problem()) == ("e",)


@given(text=st.text() | st.text(alphabet="y1234=;# abcdeg[](){},0357"))
def test_any_text_gets_a_verdict(text):
    for working in ("free", "checked", "none"):
        verdict = task(working=working).verify(problem(), text)
        assert verdict.reason.strip()
        assert 0 <= verdict.progress <= 1
        assert (verdict.progress == 1) == verdict.correct
        assert verdict.well_formed or not verdict.correct
        if verdict.correct:
            assert "".join(text.rpartition("#")[2].split()) == "e"


@given(place=st.integers(0, 30), put=st.sampled_from("abcdefgh0123456[](){},;=# y"))
def test_a_changed_trace_is_right_only_if_each_line_and_the_answer_still_are(place, put):
    text = "y1=b;y2=c;y3=d;y4=e#e"
    changed = text[:place] + put + text[place + 1 :]
    lines, mark, answer = changed.rpartition("#")
    true = {"y1=b", "y2=c", "y3=d", "y4=e"}
    right = "".join(answer.split()) == "e" and "#" not in lines
    if mark and lines.strip():
        right &= all("".join(line.split()) in true and "y " not in line for line in lines.split(";"))
    assert task(working="checked").verify(problem(), changed).correct == right


GARBAGE = ["m1 ", "e ", "y1 = b ; ", ";", "y1=", "#", "# ", "é ", "\u2003", "[", "{a,", "\ud800", "\x00", "9", "e#"]


@pytest.mark.parametrize("working", ["free", "checked", "none"])
def test_a_megabyte_of_garbage_gets_a_verdict_by_its_length(working):
    judged = task(working=working)
    for piece in GARBAGE:
        verdict = judged.verify(problem(), piece * (1_000_000 // len(piece)))
        assert not verdict.well_formed
        assert "at most" in verdict.reason or "more than one" in verdict.reason or "empty" in verdict.reason
    long_working = judged.verify(problem(), "y1 = b ; " * 100_000 + "# e")
    assert long_working.correct == (working == "free")
    assert judged.verify(problem(), "y1 = b ; " * 100_000 + "# d").progress == 0


def test_instructions_say_what_is_asked_and_definitions_what_modules_do():
    told = task(working="checked").instructions
    assert "a wrong value makes the answer wrong" in told
    assert "m1 to m12" in told
    assert task().definitions.splitlines()[0].startswith("m1: ")
    assert len(task().definitions.splitlines()) == 12


def test_the_floor_is_the_share_of_the_commonest_answer():
    # One permutation of 8 symbols: each answer has 1/8, and the commonest of 4,096 draws a little more.
    uniform = LatentGraphs(world=0, skills=1, modules=1, depth=1)
    assert 0.125 <= uniform.floor(None) < 0.125 + 5 * 0.0052
    assert task().floor(problem()) == task().floor(None)
