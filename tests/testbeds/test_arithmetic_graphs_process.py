"""The process verdict: which nodes a working defines and evaluates as the graph does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import EXPLICIT, IMPLICIT, Problem, TraceStyle, stream
from testbeds.arithmetic_graphs import LEVELS, ArithmeticGraphs
from testbeds.arithmetic_graphs.graph import Graph
from testbeds.arithmetic_graphs.process import Process

# a=3, b=a+2=5, c=a*b=15=4 mod 11; d=7-b=2 is a distractor.
SMALL = Graph(
    modulus=11,
    names=("a", "b", "c", "d"),
    definitions=((0, -4, 0), (1, 0, -3), (3, 0, 1), (2, -8, 1)),
    values=(3, 5, 4, 2),
    needed=3,
)
PROBLEM = Problem(prompt="c=a*b;a=3;b=a+2;d=7-b;?c", key="k", certificate=SMALL)
FREE = ArithmeticGraphs(operations=2, distractors=1)
CHECKED = ArithmeticGraphs(operations=2, distractors=1, working="checked")


def count(right, inlined=0, wrong=0):
    return Process(nodes=3, right=right, inlined=inlined, wrong=wrong)


@pytest.mark.parametrize(
    ("working", "expected"),
    [
        ("a=3;b=a+2=5;c=a*b=4", count(3)),
        ("c=b*a=4;a=3;b=2+a=5", count(3)),  # any order of equations, and of commuting operands
        (" a = 3 ; b = ( a + 2 ) = 5 ; c = a * b = 4 ", count(3)),
        ("a=3;c=a*(a+2)=4", count(2, inlined=1)),
        ("a=3;c=(2+a)*a=4", count(2, inlined=1)),
        ("a=3;b=a+2=5;c=a*(a+2)=4", count(3)),  # b is inlined, and has its own equation besides
        ("a=3;c=3*(3+2)=4", count(1, wrong=1)),  # the value of a in place of a: not its parent
        ("", count(0)),
        ("a=3", count(1)),
        ("a=3=3", count(1)),
        ("a=4", count(0, wrong=1)),
        ("a=3;a=4", count(0, wrong=1)),  # one right and one wrong
        ("a=3;a=3", count(1)),
        ("b=5", count(0)),  # true, but without parents
        ("b=6", count(0, wrong=1)),
        ("b=a+2=6", count(0, wrong=1)),  # right parents, wrong value
        ("b=a+3=5", count(0, wrong=1)),  # wrong number
        ("b=a-2=5", count(0, wrong=1)),  # wrong operation
        ("b=d+3=5", count(0, wrong=1)),  # true, but not its parents
        ("c=a*b=15", count(0, wrong=1)),  # not modulo 11
        ("c=b=4", count(0, wrong=1)),
        ("d=7-b=2", count(0)),  # a distractor is no gold node
        ("d=7-b=9", count(0)),
        ("hello;b=a+2=5;world", count(1)),  # other text says nothing
        ("b=a+2=5 c=a*b=4", count(0)),  # no ; between them: no equation
        ("b=a+2==5;b=;=b;b==;b=a+=5;b=(a+2=5;b=a+2)=5", count(0)),
        (
            "b=a+2=05;b=a+2=\uff15;b=a+2=-6",
            count(0),
        ),  # a leading zero, a full-width 5, a sign: no numbers, so no equations
        ("b=a+2=99999", count(0, wrong=1)),
        ("B=a+2=5", count(0)),
    ],
)
def test_workings_by_the_grammar(working, expected):
    assert FREE.process(PROBLEM, f"{working}#9") == expected
    verdict = FREE.verify(PROBLEM, f"{working}#9")
    assert not verdict.correct
    assert verdict.progress == pytest.approx(0.9 * expected.right / 3)


def test_differences_keep_their_sides():
    # b = 7-a = 4, c = b-a = 1 modulo 11 with a = 3
    graph = Graph(
        modulus=11,
        names=("a", "b", "c"),
        definitions=((0, -4, 0), (2, -8, 0), (2, 1, 0)),
        values=(3, 4, 1),
        needed=3,
    )
    problem = Problem(prompt="", key="k", certificate=graph)
    assert FREE.process(problem, "a=3;b=7-a=4;c=b-a=1#1") == count(3)
    assert FREE.process(problem, "a=3;b=a-7=4;c=a-b=1#1") == count(1, wrong=2)
    assert FREE.process(problem, "c=(7-a)-a=1#1") == count(1, inlined=1)
    assert FREE.process(problem, "c=7-a-a=1#1") == count(1, inlined=1)  # from left to right
    assert FREE.process(problem, "c=7-(a-a)=1#1") == count(0, wrong=1)


def test_products_bind_before_sums():
    # c = a+b with b = a*2 = 6: a+a*2 is a+(a*2), and (a+a)*2 is something else
    graph = Graph(
        modulus=11,
        names=("a", "b", "c"),
        definitions=((0, -4, 0), (3, 0, -3), (1, 0, 1)),
        values=(3, 6, 9),
        needed=3,
    )
    problem = Problem(prompt="", key="k", certificate=graph)
    assert FREE.process(problem, "c=a+a*2=9#9") == count(1, inlined=1)
    assert FREE.process(problem, "c=(a+a)*2=9#9") == count(0, wrong=1)


def test_equal_definitions_are_each_others_stand_in_only_where_they_are_equal():
    # x=3, y=3, u=x+1=4, v=y+1=4, w=u*v=16=5: u and v are alike and have different parents
    graph = Graph(
        modulus=11,
        names=("x", "y", "u", "v", "w"),
        definitions=((0, -4, 0), (0, -4, 0), (1, 0, -2), (1, 1, -2), (3, 2, 3)),
        values=(3, 3, 4, 4, 5),
        needed=5,
    )
    problem = Problem(prompt="", key="k", certificate=graph)
    assert FREE.process(problem, "u=y+1=4#5").wrong == 1
    assert FREE.process(problem, "w=(x+1)*(y+1)=5#5").inlined == 2
    assert FREE.process(problem, "w=(y+1)*(x+1)=5#5").inlined == 2
    assert FREE.process(problem, "w=(x+1)*(x+1)=5#5").wrong == 1


@pytest.mark.parametrize("level", [name for name in LEVELS if name != "checked"])
def test_explicit_workings_are_wholly_right_and_composed_ones_covered(level):
    task = LEVELS[level]
    for problem in task.generate(stream("process", level), 20):
        for order in ("forward", "backward", "shuffled"):
            trace = task.demonstrate(problem, TraceStyle(order=order), stream("t"))
            process = task.process(problem, trace.text)
            assert process.share == process.covered == 1
        for group in (2, 4):
            style = TraceStyle(granularity="composed", group=group)
            process = task.process(problem, task.demonstrate(problem, style, stream("t")).text)
            assert process.covered == 1
            assert process.wrong == 0
            assert process.right + process.inlined == process.nodes
        assert task.process(problem, task.demonstrate(problem, IMPLICIT, stream("t")).text).right == 0


def test_changing_one_value_of_an_explicit_working_costs_exactly_that_node():
    task = LEVELS["medium"]
    for problem in task.generate(stream("process", "one"), 20):
        trace = task.demonstrate(problem, EXPLICIT, stream("t"))
        lines = [step.text for step in trace.steps]
        for place in range(len(lines)):
            head, _, value = lines[place].rpartition("=")
            spoiled = [*lines[:place], f"{head}={(int(value) + 1) % 11}", *lines[place + 1 :]]
            process = task.process(problem, ";".join(spoiled) + "#0")
            assert (process.right, process.wrong) == (process.nodes - 1, 1)


@pytest.mark.parametrize(
    ("completion", "correct", "progress"),
    [
        ("a=3;b=a+2=5;c=a*b=4#4", True, 1.0),
        ("d=9;a=3;so b=;b=a+2=5;c=a*b=4#4", True, 1.0),  # what says nothing of needed nodes does no harm
        ("4", False, 0.0),
        ("#4", False, 0.0),
        ("a=3;c=a*(a+2)=4#4", False, 0.6),
        ("a=3;b=a+2=5#4", False, 0.6),
        ("a=3;b=a+2=5;c=a*b=4#5", False, 0.9),
        ("a=3;b=a+2=5;c=a*b=4;b=7#4", False, 0.6),
    ],
)
def test_checked_working_demands_a_right_equation_for_each_node(completion, correct, progress):
    verdict = CHECKED.verify(PROBLEM, completion)
    assert (verdict.correct, verdict.well_formed) == (correct, True)
    assert verdict.progress == pytest.approx(progress)


def test_a_working_with_two_marks_or_none_has_no_process():
    assert FREE.process(PROBLEM, "a=3;b=a+2=5#4#4") == count(0)
    assert FREE.process(PROBLEM, "a=3;b=a+2=5") == count(0)


@given(working=st.text())
def test_any_text_has_a_process(working):
    check(FREE.process(PROBLEM, working + "#4"))
    check(FREE.process(PROBLEM, working))


@given(choices=st.lists(st.integers(0, 10_000), max_size=80))
def test_any_string_of_symbols_has_a_process(choices):
    text = " ".join(FREE.symbols[choice % len(FREE.symbols)] for choice in choices)
    check(FREE.process(PROBLEM, text + "#4"))


@pytest.mark.parametrize(
    "working",
    [
        "b=" + "(" * 100_000,
        "b=" + "(" * 250 + "a+2" + ")" * 250 + "=5",
        "b=" + "a+" * 250 + "2=5",
        "b=" + "9" * 5000,
        "b=a+2=" + "5" * 7000,
        ";" * 90_000,
        "b=a+2=5;" * 900,
        "\ud800=\x00;b=\ud800=5",
        "b=a**2=5;b=9**9**9=5;b=__import__('os')=5",
    ],
)
def test_hostile_workings_have_a_process(working):
    check(FREE.process(PROBLEM, working + "#4"))
    check(FREE.process(PROBLEM, working))


def test_deep_redundant_parentheses_are_read():
    assert FREE.process(PROBLEM, "b=" + "(" * 250 + "a+2" + ")" * 250 + "=5#4") == count(1)


def check(process):
    assert process.nodes == 3
    assert 0 <= process.right + process.inlined + process.wrong <= 3
    assert 0 <= process.share <= process.covered <= 1
