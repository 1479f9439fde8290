"""How Countdown's demonstrations are written: folded, reordered, searched; and what a reader is told."""

import ast
import operator
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

from testbeds.core import ANSWER_MARK, EXPLICIT, IMPLICIT, Problem, TraceStyle
from testbeds.countdown import LEVELS, Countdown, CountdownCertificate
from testbeds.countdown_trees import folded
from testbeds.streams import stream

OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
TASKS = {name: task for name, task in LEVELS.items() if task.form == "expression"}


def problem(numbers, target):
    return Problem(
        prompt=f"{target}:{','.join(map(str, numbers))}>",
        key="by hand",
        certificate=CountdownCertificate(numbers=tuple(sorted(numbers)), target=target, witness=""),
    )


def value(text):
    """Value of an expression over positive, negative and fractional values, by Python's own parser."""

    def walk(node):
        match node:
            case ast.Constant(value=int(number)):
                return Fraction(number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -walk(operand)
            case ast.BinOp(left=left, op=operation, right=right):
                return OPERATIONS[type(operation)](walk(left), walk(right))
        raise ValueError(ast.dump(node))

    return walk(ast.parse(text, mode="eval").body)


def is_true(equation):
    left, right = equation.split("=")
    return value(left) == value(right)


def numerals(text):
    return Counter("".join(c if c.isdigit() else " " for c in text).split())


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("group", [2, 3, 9])
def test_every_equation_of_a_folded_trace_is_true_and_ends_with_its_result(name, group):
    task, rng = TASKS[name], stream("folded", name, group)
    for posed in task.generate(rng, 12):
        trace = task.demonstrate(posed, TraceStyle(granularity="composed", group=group), rng)
        plain = task.demonstrate(posed, EXPLICIT, rng)
        equations = [equation for step in trace.steps for equation in step.text.split(",")]
        assert all(map(is_true, equations))
        assert all(step.text.endswith(f"={step.result}") for step in trace.steps)
        assert trace.steps[-1].result == str(posed.certificate.target)
        assert task.verify(posed, trace.text).correct
        if len(plain.steps) == len(posed.certificate.numbers) - 1 and task.exact_use:
            assert len(trace.steps) == -(-len(plain.steps) // group)


def test_a_fold_inlines_what_it_uses_and_writes_apart_what_it_does_not():
    # 2*3=6, 6+7=13 | 4*5=20, 13+20=33 by twos: the second fold takes 13 from the first.
    rows = [
        [-1, 0, 0, 2, 1],
        [-1, 0, 0, 3, 1],
        [2, 0, 1, 6, 1],
        [-1, 0, 0, 7, 1],
        [0, 2, 3, 13, 1],
        [-1, 0, 0, 4, 1],
        [-1, 0, 0, 5, 1],
        [2, 5, 6, 20, 1],
        [0, 4, 7, 33, 1],
    ]
    assert folded(rows, 2) == [("2*3+7", "13"), ("13+4*5", "33")]
    assert folded(rows, 3) == [("2*3+7=13,4*5", "20"), ("13+20", "33")]
    assert folded(rows, 4) == [("2*3+7+4*5", "33")]


def test_a_fold_keeps_the_parentheses_of_what_it_inlines():
    task = Countdown(numbers=4)
    trace = task.demonstrate(problem((3, 3, 8, 8), 24), TraceStyle(granularity="composed", group=2), stream("x"))
    assert trace.text == "3-8/3=(1/3),8/(1/3)=24#8/(3-8/3)"


@pytest.mark.parametrize("name", TASKS)
def test_the_order_of_the_steps_is_the_asked_one_and_the_answer_the_same(name):
    task = TASKS[name]
    for posed in task.generate(stream("orders", name), 10):
        forward, backward, shuffled = (
            task.demonstrate(posed, TraceStyle(order=order), stream("same"))
            for order in ("forward", "backward", "shuffled")
        )
        assert backward.steps == forward.steps[::-1]
        assert Counter(shuffled.steps) == Counter(forward.steps)
        assert forward.answer == backward.answer == shuffled.answer
        assert all(task.verify(posed, trace.text).correct for trace in (forward, backward, shuffled))


def test_shuffled_steps_stand_in_every_order_alike_often():
    task = Countdown(operators=("+", "*"))
    posed = problem((3, 5, 7), 22)
    rng = stream("shuffled")
    drawn = Counter(task.demonstrate(posed, TraceStyle(order="shuffled"), rng).text for _ in range(1000))
    # Two orders, 500 each: standard deviation sqrt(1000/4) = 16.
    assert set(drawn) == {"3*5=15,15+7=22#3*5+7", "15+7=22,3*5=15#3*5+7"}
    assert all(abs(count - 500) < 5 * 16 for count in drawn.values())


def test_traces_say_how_their_steps_are_joined():
    task, chain = Countdown(), Countdown(form="chain")
    posed = problem((3, 5, 7), 22)
    explicit, written = (one.demonstrate(posed, EXPLICIT, stream("x")) for one in (task, chain))
    assert (explicit.separator, explicit.mark) == (",", ANSWER_MARK)
    assert (written.separator, written.mark) == (",", None)
    implicit = task.demonstrate(posed, IMPLICIT, stream("x"))
    assert implicit.text == implicit.answer
    for trace in (explicit, written):
        working = trace.separator.join(step.text for step in trace.steps)
        assert trace.text == (working if trace.mark is None else working + trace.mark + trace.answer)


def test_a_depth_first_search_is_written_with_the_lexicon_of_the_task():
    task = Countdown()
    posed = problem((3, 5, 7), 22)
    trace = task.demonstrate(posed, TraceStyle(search="depth_first"), stream("x"))
    assert task.verify(posed, trace.text).correct
    assert set("".join(trace.text.split())) <= set("".join(task.symbols))


def test_places_of_other_rules_are_not_taken_for_ones_own():
    # The same puzzle under another rule set: places of the first problem mean other expressions there.
    made = Countdown(values=(2, 9), target=(10, 30)).generate(stream("foreign"), 40)
    for rules in ({"operators": ("+", "-", "*")}, {"intermediates": "positive"}, {"exact_use": False}):
        task = Countdown(values=(2, 9), target=(10, 30), **rules)
        for posed in made:
            try:
                trace = task.demonstrate(posed, EXPLICIT, stream("x"))
            except ValueError as refusal:
                assert "has no solution" in str(refusal)  # noqa: PT017 (a refusal is one of two right outcomes)
                continue
            assert task.verify(posed, trace.text).correct


@pytest.mark.parametrize("name", LEVELS)
def test_the_instructions_name_the_rules_and_the_format(name):
    task = LEVELS[name]
    text = task.instructions
    assert ("exactly once" in text) == task.exact_use
    assert ("positive whole number" in text) == (task.intermediates == "positive")
    assert ("chain of equations" in text) == (task.form == "chain")
    assert (f"single {ANSWER_MARK}" in text) == (task.form == "expression")
    assert all((f"{symbol} (" in text) == (symbol in task.operators) for symbol in "+-*/")


def test_a_rule_that_changes_answers_changes_the_instructions():
    plain = Countdown()
    relatives = [
        replace(plain, operators=("+", "*")),
        replace(plain, intermediates="positive"),
        replace(plain, largest=500),
        replace(plain, exact_use=False),
        replace(plain, form="chain"),
        replace(plain, numerals="whole", largest=100),
    ]
    assert len({task.instructions for task in (plain, *relatives)}) == len(relatives) + 1
