"""Arithmetic graphs: what is drawn, how it is told and worked out, and what counts as an answer."""

import math
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbeds import EXPLICIT, IMPLICIT, TraceStyle, fingerprint, stream
from testbeds.arithmetic_graphs import LEVELS, ArithmeticGraphs
from testbeds.arithmetic_graphs.contexts import CONTEXTS
from testbeds.arithmetic_graphs.graph import Graph, canonical_text
from testbeds.core import Problem

PLAIN = ArithmeticGraphs(operations=5, distractors=3, width=3)
STYLES = (
    EXPLICIT,
    TraceStyle(order="backward"),
    TraceStyle(order="shuffled"),
    *(TraceStyle(granularity="composed", group=group) for group in (2, 3, 4, 30)),
    TraceStyle(granularity="composed", group=2, order="backward"),
    TraceStyle(granularity="composed", group=2, order="shuffled"),
)

# a=3, b=a+2=5, c=a*b=15=4 mod 11; d=7-b=2 is a distractor.
SMALL = Graph(
    modulus=11,
    names=("a", "b", "c", "d"),
    definitions=((0, -4, 0), (1, 0, -3), (3, 0, 1), (2, -8, 1)),
    values=(3, 5, 4, 2),
    needed=3,
)
PROBLEM = Problem(prompt="c=a*b;a=3;b=a+2;d=7-b;?c", key="k", certificate=SMALL)


def problems(task, count=60, key="problems"):
    return task.generate(stream("test arithmetic graphs", key), count)


def solved_from_the_prompt(prompt, modulus):
    """(answer, needed nodes, all nodes) by a reading of an abstract prompt that shares no code with the testbed."""
    *sentences, question = prompt.split(";")
    definitions = dict(sentence.split("=") for sentence in sentences)
    needed = set()

    def value(name):
        needed.add(name)
        match = re.fullmatch(r"(\w+)([-+*])(\w+)", definitions[name])
        if match is None:
            return int(definitions[name])
        left, right = (int(side) if side.isdigit() else value(side) for side in match.group(1, 3))
        return {"+": left + right, "-": left - right, "*": left * right}[match[2]] % modulus

    return value(question.removeprefix("?")), needed, set(definitions)


def true_modulo(expression, value, values, modulus):
    """Whether an equation of a trace holds, by arithmetic on its text alone."""
    numeric = re.sub(r"[A-Za-z]+", lambda name: str(values[name[0]]), expression)
    assert re.fullmatch(r"[-+*()0-9]+", numeric)
    return (evaluated(numeric) - int(value)) % modulus == 0


def evaluated(text):
    """The value of sums and products in parentheses, innermost first."""
    while "(" in text:
        text = re.sub(r"\(([^()]*)\)", lambda inner: str(evaluated(inner[1])), text)
    match = re.fullmatch(r"(-?\d+)([-+*])(-?\d+)", text)
    if match is None:
        return int(text)
    left, right = int(match[1]), int(match[3])
    return {"+": left + right, "-": left - right, "*": left * right}[match[2]]


# --------------------------------------------------------------------------------------------------- generation


@pytest.mark.parametrize(
    "task",
    [
        PLAIN,
        ArithmeticGraphs(operations=1, width=1, modulus=3),
        ArithmeticGraphs(operations=7, width=1, distractors=6),
        ArithmeticGraphs(operations=12, width=6, distractors=2, modulus=97),
        ArithmeticGraphs(operations=4, operators=("*",), modulus=5, distractors=1),
        ArithmeticGraphs(operations=30, width=4, distractors=6),
    ],
)
def test_counts_are_exact_and_the_answer_is_what_the_prompt_says(task):
    for problem in problems(task):
        answer, needed, told = solved_from_the_prompt(problem.prompt, task.modulus)
        assert answer == problem.certificate.answer == problem.features["answer"]
        assert len(told) - len(needed) == task.distractors == problem.features["distractors"]
        operations = [node for node in needed if not re.search(rf"(^|;){node}=\d+;", problem.prompt)]
        assert len(operations) == task.operations == problem.features["operations"]
        assert 1 <= problem.features["constants"] == len(needed) - task.operations <= task.width
        assert problem.features["nodes"] == len(told)


def test_depth_and_reuse_are_measured_on_a_known_graph():
    # b is used by c alone, a by b and c; the longest path to c is a, b, c: two operations.
    from testbeds.arithmetic_graphs import kernels

    row_KPN = np.zeros((4, 1, 4), dtype=np.int64)
    row_KPN[:3, 0] = np.array(SMALL.definitions).T
    row_KPN[3, 0] = SMALL.values
    measure_PF = np.zeros((1, 4), dtype=np.int64)
    kernels.measure(row_KPN, np.array([3]), measure_PF)
    assert measure_PF.tolist() == [[2, 1, 1, 0]]


def test_a_chain_has_one_constant_and_is_as_deep_as_it_has_operations():
    for problem in problems(ArithmeticGraphs(operations=6, width=1)):
        assert problem.features["constants"] == 1
        assert problem.features["depth"] == 6


@pytest.mark.parametrize("operators", [("+", "-", "*"), ("*",), ("+",)])
def test_answers_are_uniform_so_the_floor_is_exact(operators):
    task = ArithmeticGraphs(operations=4, width=3, modulus=7, operators=operators)
    counts = Counter(problem.certificate.answer for problem in problems(task, 7000))
    # chi-square with 6 degrees of freedom exceeds 22.5 with probability 0.001; products alone are 0 far more often
    assert sum((counts[value] - 1000) ** 2 / 1000 for value in range(7)) < 22.5
    assert task.floor(problems(task, 1)[0]) == 1 / 7
    assert task.answer_entropy_nats() == pytest.approx(math.log(7))


def test_given_its_answer_a_graph_has_the_distribution_of_unconditioned_draws():
    # One operation on one constant c: c+n, c-n, n-c or c*n. With n from 1 to p-1 (2 to p-1 for *) all operators are
    # equally likely for every answer: each of +, -, * is a bijection of the uniform constant.
    task = ArithmeticGraphs(operations=1, width=1, modulus=5)
    counts = Counter(problem.certificate.definitions[1][0] for problem in problems(task, 6000))
    assert all(abs(counts[kind] - 2000) < 5 * math.sqrt(6000 * 2 / 9) for kind in (1, 2, 3))


def test_the_asked_node_stands_anywhere_and_no_sentence_uses_it():
    places = Counter()
    for problem in problems(PLAIN, 300):
        *sentences, question = problem.prompt.split(";")
        asked = question[1:]
        places[next(i for i, sentence in enumerate(sentences) if sentence[0] == asked) * 3 // len(sentences)] += 1
        assert not any(asked in sentence.split("=")[1] for sentence in sentences)
    assert min(places[third] for third in range(3)) > 60


def test_the_same_stream_tells_the_same_graph_in_other_words():
    told = {context: problems(replace(PLAIN, context=context)) for context in CONTEXTS}
    for one, *others in zip(*told.values(), strict=True):
        for name, other in zip(list(CONTEXTS)[1:], others, strict=True):
            assert (one.key, one.family) == (other.key, other.family)
            assert one.certificate.definitions == other.certificate.definitions
            assert one.prompt != other.prompt
            assert retold(other.prompt, CONTEXTS[name]) == one.prompt


def retold(prompt, context):
    """A story in the letters and signs of the abstract context, by replacing words alone."""
    nouns = dict(zip(context.nouns, CONTEXTS["abstract"].nouns, strict=True))
    *sentences, question = prompt.split(context.stop)
    lines = []
    for sentence in sentences:
        name, definition = sentence.removeprefix(context.subject).split(context.verb, 1)
        for sign, word in zip("+-*", context.signs, strict=True):
            definition = definition.replace(word, sign)
        definition = definition.replace(context.operand, "") if context.operand else definition
        lines.append(f"{nouns[name]}={re.sub('[a-z]+', lambda noun: nouns[noun[0]], definition)}")
    asked = question.removeprefix(context.question).removesuffix(context.end)
    return ";".join([*lines, f"?{nouns[asked]}"])


def test_every_context_has_forty_names_that_are_no_other_word_of_it():
    for context in CONTEXTS.values():
        assert len(set(context.nouns)) == 40
        assert not set(context.nouns) & set(context.words)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"operations": 0}, "operations must be a whole number from 1 to 30, got 0"),
        ({"operations": True}, "got True"),
        ({"operations": 3.0}, "got 3.0"),
        ({"operations": 3, "distractors": -1}, "got -1"),
        ({"operations": 3, "width": 0}, "width must be"),
        ({"operations": 3, "modulus": 9}, "prime from 3 to 97, got 9; try 7"),
        ({"operations": 3, "modulus": 2}, "try 3"),
        ({"operations": 3, "modulus": 101}, "try 97"),
        ({"operations": 3, "modulus": "11"}, "got '11'"),
        ({"operations": 3, "operators": ["+"]}, r"got \['\+'\]; write"),
        ({"operations": 3, "operators": ("*", "+")}, "in this order"),
        ({"operations": 3, "operators": ()}, "one or more"),
        ({"operations": 3, "context": "moon"}, "got 'moon'"),
        ({"operations": 3, "numerals": "roman"}, "got 'roman'"),
        ({"operations": 3, "working": "maybe"}, "got 'maybe'"),
        ({"operations": 30, "distractors": 9, "width": 2}, "at most 40 nodes"),
    ],
)
def test_impossible_tasks_are_refused_with_the_value(fields, message):
    with pytest.raises(ValueError, match=message):
        ArithmeticGraphs(**fields)


# ---------------------------------------------------------------------------------------------------------- key


def renamed(definitions, asked, rng):
    """The same graph with its nodes in another order, and operands of + and * exchanged at random."""
    place = rng.permutation(len(definitions)).tolist()
    moved = [(0, 0, 0)] * len(definitions)
    for v, (kind, left, right) in enumerate(definitions):
        one, other = (place[side] if side >= 0 else side for side in (left, right))
        if kind == 0:
            one, other = left, 0
        elif kind != 2 and rng.integers(2):
            one, other = other, one
        moved[place[v]] = (kind, one, other)
    return tuple(moved), place[asked]


def anywhere(definitions, asked):
    """``canonical_text`` of nodes in any order: the asked one is put last, as if all were needed."""
    size = len(definitions)
    order = [v for v in range(size) if v != asked] + [asked]
    place = {v: i for i, v in enumerate(order)}
    moved = [
        (kind, *(place[side] if side >= 0 and kind else side for side in (left, right)))
        for kind, left, right in (definitions[v] for v in order)
    ]
    return canonical_text(moved, size - 1)


@pytest.mark.parametrize("modulus", [3, 11])
def test_renamings_have_one_key(modulus):
    rng = stream("renamings", modulus)
    task = ArithmeticGraphs(operations=5, width=4, distractors=6, modulus=modulus)  # modulo 3 nodes are often alike
    for problem in problems(task, 80):
        graph = problem.certificate
        text = canonical_text(graph.definitions, graph.needed - 1)
        assert problem.key == f"arithmetic_graphs:mod{modulus}:{text}"
        for _ in range(5):
            moved, asked = renamed(graph.definitions, graph.needed - 1, rng)
            assert anywhere(moved, asked) == text


def isomorphic(one, other):
    """By trying every assignment of nodes to nodes, asked to asked: shares no code with the canonical form."""
    if len(one[0]) != len(other[0]):
        return False

    def extend(image, v):
        if v == len(one[0]):
            return image[one[1]] == other[1]
        return any(
            fits(one[0], other[0], [*image, w], v) and extend([*image, w], v + 1)
            for w in range(len(other[0]))
            if w not in image
        )

    return extend([], 0)


def fits(one, other, image, v):
    kind, left, right = one[v]  # nodes stand after their operands, so these have an image by now
    sides = tuple(image[side] if side >= 0 and kind else side for side in (left, right))
    there = other[image[v]]
    return there[0] == kind and (sides == there[1:] or (kind not in (0, 2) and sides[::-1] == there[1:]))


def test_keys_are_equal_exactly_for_isomorphic_graphs():
    task = ArithmeticGraphs(operations=1, width=2, distractors=2, modulus=3)
    drawn = [(p.key, p.certificate.definitions, p.certificate.needed - 1) for p in problems(task, 400)]
    equal = 0
    for i, (key, *graph) in enumerate(drawn):
        for other_key, *other in drawn[:i]:
            assert (key == other_key) == isomorphic(graph, other)
            equal += key == other_key
    assert equal > 5  # some pairs are equal, or nothing was tested


def test_sharing_a_constant_is_another_problem_than_two_equal_constants():
    # x=3; u=x+1; v=x*2; w=u-v   against   x=3; y=3; u=x+1; v=y*2; w=u-v: the same unfolded expression
    shared = ((0, -4, 0), (1, 0, -2), (3, 0, -3), (2, 1, 2))
    apart = ((0, -4, 0), (0, -4, 0), (1, 0, -2), (3, 1, -3), (2, 2, 3))
    assert canonical_text(shared, 3) != canonical_text(apart, 4)


def test_what_changes_the_graph_changes_the_key():
    base = canonical_text(((0, -4, 0), (2, 0, -3)), 1)  # a=3; b=a-2
    assert base == canonical_text(((0, -4, 0), (2, 0, -3)), 1)
    for other in (
        ((0, -5, 0), (2, 0, -3)),  # a=4
        ((0, -4, 0), (2, 0, -4)),  # b=a-3
        ((0, -4, 0), (2, -3, 0)),  # b=2-a
        ((0, -4, 0), (1, 0, -3)),  # b=a+2
    ):
        assert canonical_text(other, 1) != base


def test_distractors_and_modulus_are_in_the_key_and_not_in_the_family():
    problem = problems(PLAIN, 1)[0]
    graph = problem.certificate
    needed = canonical_text(graph.definitions[: graph.needed], graph.needed - 1)
    assert problem.family == f"arithmetic_graphs:{needed}"
    assert problem.key.startswith("arithmetic_graphs:mod11:")
    bare = problems(replace(PLAIN, distractors=0), 1)[0]
    assert bare.key == bare.family.replace(":", ":mod11:", 1)


# ------------------------------------------------------------------------------------------------------- traces


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize("level", ["easy", "medium", "hard", "zoo"])
def test_every_written_equation_is_true_and_every_trace_is_right(style, level):
    task = LEVELS[level]
    for problem in problems(task, 15):
        graph = problem.certificate
        values = dict(zip(graph.names, graph.values, strict=True))
        trace = task.demonstrate(problem, style, stream("t", problem.key))
        assert task.verify(problem, trace.text).correct
        assert len(trace.steps) == graph.needed
        operations = 0
        for step in trace.steps:
            name, *expression, value = step.text.split("=") if step.text else ("", "")
            assert not step.text or values[name] == int(value)
            assert not expression or true_modulo(expression[0], value, values, task.modulus)
            operations += sum(map(step.text.count, "+-*"))
        assert operations == task.operations  # each operation stands once, inlined or not


def test_traces_of_a_small_graph_are_as_documented():
    rng = stream("unused")
    written = {
        style.name: PLAIN.demonstrate(PROBLEM, style, rng).text
        for style in (EXPLICIT, IMPLICIT, TraceStyle(order="backward"), TraceStyle(granularity="composed", group=2))
    }
    assert written == {
        "explicit": "a=3;b=a+2=5;c=a*b=4#4",
        "implicit": "4",
        "explicit backward": "c=a*b=4;b=a+2=5;a=3#4",
        "composed/2": "a=3;c=a*(a+2)=4#4",
    }


def test_composed_steps_hold_at_most_group_operations_and_chains_exactly_so_many():
    for group in (2, 4):
        style = TraceStyle(granularity="composed", group=group)
        for problem in problems(LEVELS["hard"], 20):
            for step in LEVELS["hard"].demonstrate(problem, style, stream("t")).steps:
                assert sum(map(step.text.count, "+-*")) <= group
        chain = ArithmeticGraphs(operations=8, width=1)
        steps = chain.demonstrate(problems(chain, 1)[0], style, stream("t")).steps
        # A chain uses each node once: 8 operations are 8 / group equations, and one line for the constant.
        assert sum(bool(step.text) for step in steps) == 8 // group + 1


def test_forward_and_shuffled_orders_put_operands_first_and_backward_is_forward_reversed():
    seen = set()
    for problem in problems(PLAIN, 30):
        graph = problem.certificate
        orders = {}
        for order in ("forward", "backward", "shuffled"):
            trace = PLAIN.demonstrate(problem, TraceStyle(order=order), stream("o", problem.key))
            orders[order] = [step.text.split("=")[0] for step in trace.steps]
        for order in ("forward", "shuffled"):
            where = {name: place for place, name in enumerate(orders[order])}
            for node in range(graph.needed):
                assert all(where[graph.names[p]] < where[graph.names[node]] for p in graph.parents(node))
        assert orders["backward"] == orders["forward"][::-1]
        assert orders["backward"][0] == graph.names[graph.needed - 1]
        seen.add(orders["shuffled"] == orders["forward"])
    assert False in seen


def test_forward_order_does_not_depend_on_the_order_of_the_sentences():
    # c = d - b with d and b constants: the left operand's constant comes first, whatever its place in the certificate.
    for names, definitions in (
        (("b", "d", "c"), ((0, -2, 0), (0, -3, 0), (2, 1, 0))),
        (("d", "b", "c"), ((0, -3, 0), (0, -2, 0), (2, 0, 1))),
    ):
        values = tuple(-1 - left for _, left, _ in definitions[:2])
        graph = Graph(modulus=11, names=names, definitions=definitions, values=(*values, 1), needed=3)
        trace = PLAIN.demonstrate(Problem(prompt="", key="k", certificate=graph), EXPLICIT, stream("t"))
        assert trace.text == "d=2;b=1;c=d-b=1#1"


def test_styles_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="nothing to search for"):
        PLAIN.demonstrate(PROBLEM, TraceStyle(search="depth_first"), stream("t"))
    for style in (IMPLICIT, TraceStyle(granularity="composed", group=2)):
        with pytest.raises(ValueError, match="'checked' demands an equation for each node"):
            LEVELS["checked"].demonstrate(problems(LEVELS["checked"], 1)[0], style, stream("t"))


# ------------------------------------------------------------------------------------------------------ answers


@pytest.mark.parametrize(
    ("completion", "correct", "well_formed"),
    [
        ("4", True, True),
        (" \n4\t", True, True),
        ("#4", True, True),
        ("any words at all # 4", True, True),
        ("c=9#4", True, True),  # working is free
        ("4#", False, False),
        ("", False, False),
        ("#", False, False),
        ("15", False, True),  # 4 is 15 modulo 11, but the answer is the remainder
        ("5", False, True),
        ("04", False, False),
        ("+4", False, False),
        ("-7", False, False),
        ("4.0", False, False),
        ("4 or 5", False, False),
        ("c=4", False, False),  # no mark: all of it is the answer
        ("4#4", True, True),
        ("4#5", False, True),
        ("#4#4", False, False),  # two answers
        ("\uff14", False, False),  # a full-width 4
        ("\u0664", False, False),  # an Arabic-Indic 4
        ("4\x00", False, False),
        ("a=3;b=a+2=5;c=a*b=4#5", False, True),
    ],
)
def test_answers_by_the_grammar(completion, correct, well_formed):
    verdict = PLAIN.verify(PROBLEM, completion)
    assert (verdict.correct, verdict.well_formed) == (correct, well_formed)


def test_digits_may_stand_apart_and_whole_numbers_may_not():
    graph = replace(SMALL, modulus=23, values=(3, 5, 15, 2))
    problem = replace(PROBLEM, certificate=graph)
    assert replace(PLAIN, modulus=23).verify(problem, "1 5").correct
    assert not replace(PLAIN, modulus=23, numerals="whole").verify(problem, "1 5").well_formed
    assert replace(PLAIN, modulus=23, numerals="whole").verify(problem, " 15 ").correct


def test_only_one_answer_is_accepted():
    for problem in problems(PLAIN, 20):
        accepted = [str(n) for n in range(200) if PLAIN.verify(problem, str(n)).correct]
        assert tuple(accepted) == PLAIN.answers(problem)


def test_much_white_space_is_free_and_megabytes_are_refused():
    assert PLAIN.verify(PROBLEM, " " * 50_000 + "4" + "\n" * 40_000).correct
    assert not PLAIN.verify(PROBLEM, "4" + " " * 1_000_000).well_formed
    assert not PLAIN.verify(PROBLEM, "9" * 90_000).well_formed


def test_the_testbed_says_whose_problem_it_cannot_read():
    with pytest.raises(TypeError, match="ask the task that made the problem"):
        PLAIN.verify(Problem(prompt="x", key="k", certificate=SMALL.names), "4")


@given(choices=st.lists(st.integers(0, 10_000), max_size=60), place=st.integers(0, 5), mark=st.integers(0, 60))
def test_the_answer_alone_decides_and_progress_stays_below_one(choices, place, mark):
    task = LEVELS["medium"]
    problem = problems(task, 6)[place]
    words = [task.symbols[choice % len(task.symbols)] for choice in choices]
    words[mark:mark] = ["#"]
    text = " ".join(words)
    verdict = task.verify(problem, text)
    answer = "".join(text.rpartition("#")[2].split())
    assert verdict.correct == (text.count("#") == 1 and answer == str(problem.certificate.answer))
    assert verdict.correct or verdict.progress <= 0.9


def test_levels_have_fingerprints_of_their_own():
    assert len({fingerprint(task) for task in LEVELS.values()}) == len(LEVELS)
