"""Countdown against independent enumerators, its own grammar, and the contract of a testbed."""

import ast
import pickle
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, islice, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbeds.core import EXPLICIT, IMPLICIT, Problem, Task, TraceStyle
from testbeds.countdown import LEVELS, TESTBED, Countdown, CountdownCertificate
from testbeds.countdown_chains import chain_counts, chains
from testbeds.countdown_draws import draw_one
from testbeds.countdown_search import Rules, expressions, reachable
from testbeds.identity import fingerprint
from testbeds.streams import stream

HONEST = settings(derandomize=True, max_examples=200, deadline=None)
ALL = ("+", "-", "*", "/")
FREE = Rules(operators=ALL, positive=False, largest=None, exact_use=True)
RULES = {
    "free": FREE,
    "positive": replace(FREE, positive=True),
    "bounded": replace(FREE, largest=12),
    "some": replace(FREE, exact_use=False),
    "positive, some, no division": Rules(operators=("+", "-", "*"), positive=True, largest=20, exact_use=False),
}
TASKS = {
    **LEVELS,
    "chain": Countdown(form="chain"),
    "whole": Countdown(numerals="whole", values=(1, 6), target=(1, 30), intermediates="positive", largest=40),
    "whole chain": Countdown(form="chain", numerals="whole", values=(1, 5), target=(1, 30), largest=60),
    "some": Countdown(exact_use=False, values=(1, 6)),
    "some chain": Countdown(exact_use=False, form="chain", intermediates="positive"),
    "two operators": Countdown(operators=("-", "/"), values=(1, 30), target=(1, 9)),
    "five": Countdown(numbers=5, operators=("+", "-"), values=(1, 9), target=(1, 20)),
}


def posed(task, numbers, target, solutions):
    return task._problem(draw_one(task, numbers, target, solutions))


def problem(numbers, target):
    return Problem(
        prompt=f"{target}:{','.join(map(str, numbers))}>",
        key="by hand",
        certificate=CountdownCertificate(numbers=tuple(sorted(numbers)), target=target, witness=""),
    )


# ------------------------------------------------------------------------------- independent enumerators


def compute(operator, left, right):
    if operator == "/":
        return left / right if right else None
    return {"+": left + right, "-": left - right, "*": left * right}[operator]


def allowed(rules, result):
    if result is None or (rules.positive and (result <= 0 or result.denominator > 1)):
        return False
    return rules.largest is None or max(abs(result.numerator), result.denominator) <= rules.largest


def naive_values(numbers, rules):
    """Every value that some order of joining two numbers at a time makes, by plain recursion."""
    found = set()

    def join(values):
        for i, j in permutations(range(len(values)), 2):
            rest = [values[k] for k in range(len(values)) if k not in (i, j)]
            for operator in rules.operators:
                result = compute(operator, values[i], values[j])
                if allowed(rules, result):
                    if rest:
                        join([result, *rest])
                    else:
                        found.add(result)

    sizes = [len(numbers)] if rules.exact_use else range(2, len(numbers) + 1)
    for size in sizes:
        for chosen in set(combinations(sorted(numbers), size)):
            join([Fraction(number) for number in chosen])
    return found


def trees(numbers):
    """Every binary tree over every order of the numbers, as nested tuples."""
    if len(numbers) == 1:
        yield numbers[0]
    for cut in range(1, len(numbers)):
        for left, right, operator in product(trees(numbers[:cut]), trees(numbers[cut:]), ALL):
            yield operator, left, right


PRIME = 2**61 - 1


def footprint(tree):
    """A hash that is equal for equivalent expressions: (sign, sum side +, sum side -, product side *, product side /).

    Sums are added and products multiplied modulo a prime, the inverse side apart so that nothing cancels; a node of one
    kind enters the other kind as a random atom. No sorting, no trees: independent of the code under test.
    """
    if not isinstance(tree, tuple):
        return 1, atom("leaf+", tree), 0, atom("leaf*", tree), 1
    operator, left, right = tree
    a, b = footprint(left), footprint(right)
    if operator in "+-":
        (u1, l1), (u2, l2) = ((x[1:3] if x[0] > 0 else (x[2], x[1])) for x in (a, b))
        upper, lower = (u1 + u2, l1 + l2) if operator == "+" else (u1 + l2, l1 + u2)
        upper, lower = upper % PRIME, lower % PRIME
        sign = 1 if upper >= lower else -1
        upper, lower = max(upper, lower), min(upper, lower)
        return sign, upper, lower, atom("sum", upper, lower), 1
    (n1, d1), (n2, d2) = a[3:], b[3:]
    over, under = (n1 * n2, d1 * d2) if operator == "*" else (n1 * d2, d1 * n2)
    over, under = over % PRIME, under % PRIME
    return a[0] * b[0], atom("product", over, under), 0, over, under


@cache
def atom(*parts):
    return int(stream("footprint", *parts).integers(1, PRIME))


def naive_chain_is_right(text, numbers, target, rules):
    """Lists and Fractions: every way to take written values as given numbers or as results is tried."""

    def follow(lines, given, results):
        if not lines:
            return results == [Fraction(target)] and not (given and rules.exact_use)
        left, operator, right, result = lines[0]
        if not allowed(rules, result) or compute(operator, left, right) != result:
            return False
        on_paper = [(True, value) for value in results] + [(False, value) for value in given]
        for i, j in permutations(range(len(on_paper)), 2):
            rest = [item for k, item in enumerate(on_paper) if k not in (i, j)]
            new_results = [value for made, value in rest if made] + [result]
            new_given = [value for made, value in rest if not made]
            if (on_paper[i][1], on_paper[j][1]) == (left, right) and follow(lines[1:], new_given, new_results):
                return True
        return False

    lines = [read_line(line) for line in text.split(",")]
    return lines[-1][3] == target and follow(lines, [Fraction(number) for number in numbers], [])


def read_line(line):
    """(left, operator, right, result) of a line; the operator is the first one outside parentheses."""
    operation, result = line.split("=")
    depth = [operation[:i].count("(") - operation[:i].count(")") for i in range(len(operation))]
    place = next(i for i in range(1, len(operation)) if operation[i] in ALL and not depth[i])
    left, right, outcome = (Fraction(part.strip("()")) for part in (operation[:place], operation[place + 1 :], result))
    return left, operation[place], right, outcome


def value_by_python(text):
    """Python's parser with an allow-list of nodes: (value, numbers used), or None."""
    used = Counter()

    def walk(node):
        match node:
            case ast.Constant(value=int(number)):
                used[number] += 1
                return Fraction(number)
            case ast.BinOp(left=left, op=op, right=right):
                symbol = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}.get(type(op))
                if symbol is None:
                    raise ValueError("not an operator of the grammar")
                result = compute(symbol, walk(left), walk(right))
                if result is None:
                    raise ZeroDivisionError
                return result
        raise ValueError("not a node of the grammar")

    try:
        return walk(ast.parse(text, mode="eval").body), used
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None


def expression_is_right(text, certificate):
    read = value_by_python(text)
    return read == (Fraction(certificate.target), Counter(certificate.numbers))


# ------------------------------------------------------------------------------------- what is reachable


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize(
    "numbers", [(1, 2), (2, 2), (1, 2, 3), (3, 3, 3), (2, 4, 8), (5, 7, 10), (1, 1, 6), (3, 3, 8, 8)]
)
def test_reachable_targets_are_those_of_plain_recursion(numbers, rules):
    expected = {int(value) for value in naive_values(numbers, rules) if value.denominator == 1 and 1 <= value <= 200}
    if not rules.exact_use:
        expected -= set(numbers)
    assert {target for target, _ in reachable(numbers, rules, 1, 200)} == expected
    counted = set(chain_counts(tuple(sorted(numbers)), rules, 1, 200))
    assert counted - (set() if rules.exact_use else set(numbers)) == expected


# OEIS A140606, inequivalent expressions over n different operands: 1, 6, 68, 1170. This holds the footprint, which the
# next test relies on, against a published count.
@pytest.mark.parametrize(("letters", "published"), [((2, 3), 6), ((2, 3, 5), 68), ((2, 3, 5, 7), 1170)])
def test_the_count_of_inequivalent_expressions_is_the_published_one(letters, published):
    assert len({footprint(tree) for order in permutations(letters) for tree in trees(order)}) == published


@pytest.mark.parametrize(
    "numbers", [(2, 2), (2, 3), (2, 3, 5), (2, 2, 5), (3, 3, 3), (1, 1, 4), (2, 3, 5, 7), (3, 3, 8, 8), (1, 1, 1, 1)]
)
def test_the_number_of_solutions_of_every_target_is_that_of_naive_trees_merged_by_footprint(numbers):
    def value(tree):
        if not isinstance(tree, tuple):
            return Fraction(tree)
        left, right = value(tree[1]), value(tree[2])
        return None if left is None or right is None else compute(tree[0], left, right)

    merged = {}
    for order in set(permutations(numbers)):
        for tree in trees(order):
            result = value(tree)
            if result is not None:
                merged[footprint(tree)] = result
    expected = Counter(int(result) for result in merged.values() if result.denominator == 1 and 1 <= result <= 3000)
    assert dict(reachable(numbers, FREE, 1, 3000)) == dict(expected)


def test_equivalent_expressions_count_once():
    # {1,2,3} -> 6: the sum 1+2+3, the product 1*2*3, and 2*3/1, each in any order; 2/(1/3) and 3/(1/2) are 2*3/1 too.
    solutions = [tree.text() for tree in expressions((1, 2, 3), FREE, 6)]
    assert len(solutions) == 3
    assert dict(reachable((1, 2, 3), FREE, 6, 6)) == {6: 3}


def test_the_only_solution_of_3_3_8_8_is_found():
    assert list(Countdown().expressions(problem((8, 3, 8, 3), 24))) == ["8/(3-8/3)"]


def test_a_solution_counts_if_any_of_its_orders_obeys_the_rule():
    # 3-5+10 = 8 passes through -2 one way and through 13 or 5 others: one solution, written with positive results.
    rules = replace(FREE, operators=("+", "-"), positive=True)
    texts = [tree.text() for tree in expressions((3, 5, 10), rules, 8)]
    assert len(texts) == 1
    task = Countdown(operators=("+", "-"), intermediates="positive")
    assert task.verify(problem((3, 5, 10), 8), texts[0]).correct
    assert task.verify(problem((3, 5, 10), 8), "3+10-5").correct
    assert task.verify(problem((3, 5, 10), 8), "3+(10-5)").correct
    assert not task.verify(problem((3, 5, 10), 8), "3-5+10").correct


# --------------------------------------------------------------------------------------------------- chains


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("numbers", [(2, 3), (1, 2, 3), (2, 2, 4), (3, 3, 3), (1, 1, 2, 4)])
def test_listed_chains_are_distinct_and_as_many_as_counted(numbers, rules):
    for target, count in chain_counts(numbers, rules, 1, 9).items():
        listed = list(chains(numbers, rules, target))
        assert len(set(listed)) == len(listed) == count


@pytest.mark.parametrize("exact_use", [True, False])
@pytest.mark.parametrize("numbers", [(1, 2, 3), (2, 2, 1), (1, 1, 2)])
def test_listed_chains_are_exactly_the_line_sequences_that_verify_and_that_a_naive_book_keeper_accepts(
    numbers, exact_use
):
    rules = Rules(operators=("+", "-", "*"), positive=True, largest=5, exact_use=exact_use)
    task = Countdown(
        operators=rules.operators,
        form="chain",
        values=(1, 3),
        target=(1, 5),
        intermediates="positive",
        largest=5,
        exact_use=exact_use,
    )
    # All lines over the numerals 0 to 5 whose result is right or off by one; all sequences of one and two of them.
    lines = [
        f"{a}{operator}{b}={c}"
        for a, operator, b, c in product(range(6), rules.operators, range(6), range(6))
        if abs(compute(operator, a, b) - c) <= 1
    ]
    texts = [*lines, *(f"{first},{second}" for first, second in product(lines, lines) if first[0] in "123")]
    for target in (3, 5):
        posed = problem(numbers, target)
        accepted = {text for text in texts if text.endswith(f"={target}") and task.verify(posed, text).correct}
        assert accepted == set(task.solutions(posed))
        ending = [text for text in texts[:: 1 if len(texts) < 9000 else 7] if text.endswith(f"={target}")]
        assert {text for text in ending if naive_chain_is_right(text, numbers, target, rules)} == accepted & set(ending)


def test_listed_chains_of_two_numbers_are_the_only_texts_of_five_symbols_that_verify():
    task = Countdown(
        numbers=2,
        operators=("+",),
        values=(1, 2),
        target=(2, 4),
        form="chain",
        numerals="whole",
        intermediates="positive",
        largest=4,
    )
    posed = problem((2, 1), 3)
    symbols = task.symbols
    assert len(symbols) == 10
    accepted = {text for text in map(" ".join, product(symbols, repeat=5)) if task.verify(posed, text).correct}
    assert {text.replace(" ", "") for text in accepted} == {"1+2=3", "2+1=3"} == set(task.solutions(posed))


@pytest.mark.parametrize("numbers", [(1, 2, 3), (2, 3, 6), (4, 4, 2)])
def test_chains_through_fractions_and_negative_numbers_are_listed_as_a_naive_book_keeper_accepts_them(numbers):
    for target in (1, 2, 4):
        listed = list(chains(numbers, FREE, target))
        assert all(naive_chain_is_right(text, numbers, target, FREE) for text in listed)
        task = Countdown(form="chain")
        assert all(task.verify(problem(numbers, target), text).correct for text in listed)
    assert any("(" in text for target in (1, 2, 4) for text in chains(numbers, FREE, target))


def test_a_number_may_be_left_over_where_the_task_says_so_but_no_result():
    task = Countdown(exact_use=False, form="chain")
    posed = problem((3, 5, 7, 15), 22)
    assert task.verify(posed, "3*5=15,15+7=22").correct  # a 15 stays behind, and may be read as the given one
    assert task.verify(posed, "15+7=22").correct
    assert not task.verify(posed, "3+5=8,15+7=22").correct  # 8 is a result that nothing uses
    assert not Countdown(form="chain").verify(posed, "15+7=22").correct


def test_a_chain_takes_operands_in_either_order_and_white_space_anywhere():
    task = Countdown(form="chain")
    for chain in ("3*5=15,15+7=22", "5*3=15,7+15=22", " 3 * 5 = 1 5 ,\n15 + 7 = 22 "):
        assert task.verify(problem((3, 5, 7), 22), chain).correct


def test_progress_of_a_chain_counts_right_lines():
    verify = Countdown(form="chain").verify
    posed = problem((3, 5, 7), 22)
    assert verify(posed, "3*5=15,15+7=22").progress == 1
    assert verify(posed, "3*5=15,15+7=23").progress == pytest.approx(1 / 3)
    assert verify(posed, "3*5=15,15-7=8").progress == pytest.approx(2 / 3)
    assert verify(posed, "3*5=16").progress == 0
    assert verify(posed, "rubbish").progress == 0


# ----------------------------------------------------------------------------------------------- verification


@HONEST
@given(st.text() | st.text("0123456789+-*/()=,#:> ", max_size=40))
def test_any_text_gets_a_verdict_from_every_task(text):
    for task in TASKS.values():
        posed = problem((2, 3, 4), 24)
        verdict = task.verify(posed, text)
        assert verdict.reason
        assert 0 <= verdict.progress <= 1
        assert verdict.well_formed or not verdict.correct
        assert (verdict.progress == 1) == verdict.correct


@HONEST
@given(st.permutations([2, 3, 4]), st.lists(st.sampled_from(ALL), min_size=2, max_size=2), st.sampled_from(range(6)))
def test_an_expression_is_accepted_exactly_if_python_and_fractions_agree(order, operators, shape):
    a, b, c = order
    p, q = operators
    text = [
        f"{a}{p}{b}{q}{c}",
        f"({a}{p}{b}){q}{c}",
        f"{a}{p}({b}{q}{c})",
        f"{a}{p}{b}",
        f"(({a})){p}{b}{q}{c}",
        f"{a}{p}{b}{q}{a}",
    ][shape]
    for target in (1, 2, 5, 6, 9, 10, 14, 20, 24):
        posed = problem((2, 3, 4), target)
        assert Countdown().verify(posed, text).correct == expression_is_right(text, posed.certificate)


def test_only_what_follows_the_answer_mark_counts():
    verify = Countdown().verify
    posed = problem((3, 5, 7), 22)
    assert verify(posed, "3*5+7").correct
    assert verify(posed, "3*5=15,15+7=22#3*5+7").correct
    assert verify(posed, "3*5=99 and so on#3*5+7").correct
    assert not verify(posed, "3*5+7#3*5").correct
    assert not verify(posed, "3*5+7#").well_formed
    assert not verify(posed, "#3*5+7#3*5+7").well_formed
    assert not verify(posed, "3*5=15,15+7=22").well_formed


def test_well_formed_is_apart_from_correct():
    verify = Countdown().verify
    posed = problem((3, 5, 7), 22)
    for text, progress in (("3+5+7", 0.5), ("3*5", 0.0), ("3/(5-5)", 0.0), ("22", 0.0)):
        verdict = verify(posed, text)
        assert (verdict.correct, verdict.well_formed, verdict.progress) == (False, True, progress)


def test_digits_join_over_white_space_and_whole_numbers_do_not():
    posed = problem((12, 3), 15)
    assert Countdown().verify(posed, "1 2 + 3").correct
    whole = Countdown(numerals="whole", largest=100)
    assert whole.verify(posed, "12 + 3").correct
    assert not whole.verify(posed, "1 2 + 3").well_formed


def test_a_number_may_be_used_once_or_not_at_all_where_the_task_says_so():
    task = Countdown(exact_use=False)
    posed = problem((3, 5, 7), 15)
    assert task.verify(posed, "3*5").correct
    assert task.verify(posed, "3+5+7").correct
    assert not task.verify(posed, "5+5+5").correct


def test_a_foreign_problem_is_a_type_error_that_names_it():
    foreign = Problem(prompt="what?", key="x", certificate=None)
    with pytest.raises(TypeError, match="CountdownCertificate"):
        Countdown().verify(foreign, "1+1")


# ------------------------------------------------------------------------------- problems and demonstrations


@pytest.mark.parametrize("name", TASKS)
def test_every_clean_trace_verifies_and_is_written_in_the_lexicon(name):
    task = TASKS[name]
    rng = stream("traces", name)
    symbols = sorted(task.symbols, key=len, reverse=True)
    for posed in task.generate(rng, 40):
        for style in (EXPLICIT, IMPLICIT):
            trace = task.demonstrate(posed, style, rng)
            assert task.verify(posed, trace.text).correct
            assert task.verify(posed, trace.answer).correct
            assert trace.steps[-1].result == str(posed.certificate.target)
            rest = posed.prompt + trace.text
            while rest:  # longest match, as the tokenizer reads it
                rest = rest[len(next(symbol for symbol in symbols if rest.startswith(symbol))) :]


@pytest.mark.parametrize("name", TASKS)
def test_problems_are_solvable_in_range_and_measured(name):
    task = TASKS[name]
    for posed in task.generate(stream("problems", name), 40):
        facts = posed.certificate
        assert task.target[0] <= facts.target <= task.target[1]
        assert all(task.values[0] <= number <= task.values[1] for number in facts.numbers)
        target, _, numbers = posed.prompt.removesuffix(">").partition(":")
        assert (int(target), sorted(map(int, numbers.split(",")))) == (facts.target, sorted(facts.numbers))
        expressing = replace(task, form="expression")
        assert expressing.verify(posed, facts.witness).correct
        if "solutions" in posed.features:
            solutions = list(islice(task.expressions(posed), 400))
            assert len(set(solutions)) == min(posed.features["solutions"], 400) >= 1
            assert all(expressing.verify(posed, text).correct for text in solutions[:20])
        assert 0 < task.floor(posed) <= 1
        if task.form == "chain":
            assert sum(1 for _ in task.solutions(posed)) == posed.features["chains"]
        else:
            assert task.solutions(posed) is None


def test_an_explicit_trace_is_the_steps_the_mark_and_the_expression():
    task = Countdown(operators=("+", "*"))
    posed = problem((3, 5, 7), 22)
    assert task.demonstrate(posed, EXPLICIT, stream("x")).text == "3*5=15,15+7=22#3*5+7"
    assert task.demonstrate(posed, IMPLICIT, stream("x")).text == "3*5+7"
    assert [step.text for step in task.demonstrate(posed, IMPLICIT, stream("x")).steps] == ["", ""]
    chain = replace(task, form="chain").demonstrate(posed, EXPLICIT, stream("x"))
    assert chain.text == chain.answer == "3*5=15,15+7=22"
    assert [(step.operation, step.result) for step in chain.steps] == [("3*5", "15"), ("15+7", "22")]


@pytest.mark.parametrize(
    "style",
    [TraceStyle(granularity="composed", group=2), TraceStyle(order="backward"), TraceStyle(search="depth_first")],
    ids=lambda style: style.name,
)
def test_a_chain_is_its_own_answer_and_has_no_other_working(style):
    task = Countdown(form="chain")
    with pytest.raises(ValueError, match="ask for form='expression'"):
        task.demonstrate(problem((3, 5, 7), 22), style, stream("x"))


def test_demonstrations_are_drawn_uniformly_from_the_distinct_solutions():
    # {1,2,3} -> 6 has 3 solutions: 3,000 draws give 1,000 each, standard deviation sqrt(3000 * 1/3 * 2/3) = 26.
    task, rng = Countdown(), stream("uniform")
    drawn = Counter(task.demonstrate(problem((1, 2, 3), 6), IMPLICIT, rng).answer for _ in range(3000))
    assert set(drawn) == set(task.expressions(problem((1, 2, 3), 6)))
    assert all(abs(count - 1000) < 5 * 26 for count in drawn.values())


def test_targets_are_drawn_uniformly_from_the_reachable_ones_and_the_floor_says_so():
    # Only the numbers 2 and 3 (values (2, 3)) with + and *: {2,2} -> 4; {2,3} -> 5, 6; {3,3} -> 6, 9.
    task = Countdown(numbers=2, operators=("+", "*"), values=(2, 3), target=(1, 20))
    drawn = Counter(posed.key for posed in task.generate(stream("targets"), 4000))
    # P({2,3}) = 1/2, then 1/2 for each target: 1,000 expected, standard deviation sqrt(4000 * 1/4 * 3/4) = 27.
    assert abs(drawn["countdown:ops=+*;5<-2,3"] - 1000) < 5 * 27
    assert abs(drawn["countdown:ops=+*;4<-2,2"] - 1000) < 5 * 27
    assert task.floor(problem((2, 3), 5)) == 1 / 2
    assert task.floor(problem((2, 2), 4)) == 1.0
    assert task.capacity == 5 == len(drawn)


@pytest.mark.parametrize("name", ["medium", "chain"])
def test_a_demonstration_with_one_symbol_changed_is_right_only_if_an_independent_checker_says_so(name):
    task = TASKS[name]
    rng = stream("changed", name)
    for posed in task.generate(rng, 6):
        answer = task.demonstrate(posed, EXPLICIT, rng).answer
        right_chains = set(task.solutions(posed) or ())
        for place, symbol in product(range(len(answer)), task.symbols):
            changed = answer[:place] + symbol + answer[place + 1 :]
            if changed == answer or "#" in changed:
                continue
            is_right = changed in right_chains if right_chains else expression_is_right(changed, posed.certificate)
            assert task.verify(posed, changed).correct == is_right


@HONEST
@given(st.lists(st.integers(1, 10), min_size=3, max_size=3), st.randoms(use_true_random=False))
def test_the_key_forgets_the_order_of_the_numbers_and_nothing_else(numbers, shuffler):
    task = Countdown()
    mixed = list(numbers)
    shuffler.shuffle(mixed)
    reached = reachable(tuple(numbers), task.rules, 1, 100)
    for target, count in reached[:3]:
        one, other = (posed(task, tuple(order), target, count) for order in (numbers, mixed))
        assert one.key == other.key
        assert one.certificate == other.certificate
    assert len({posed(task, tuple(numbers), target, count).key for target, count in reached}) == len(reached)


def test_the_key_names_the_rules_that_change_the_problem_but_not_how_it_is_written():
    def key(**fields):
        task = Countdown(values=(5, 5), target=(10, 10), numbers=2, **fields)
        return task.generate(stream("key"), 1)[0].key

    assert key() == "countdown:ops=+-*/;10<-5,5"
    assert key(form="chain") == key(numerals="whole") == key()
    assert key(operators=("+",)) == "countdown:ops=+;10<-5,5"
    assert (
        key(exact_use=False, intermediates="positive", largest=30)
        == "countdown:ops=+-*/;use=some;positive;largest=30;10<-5,5"
    )


# ------------------------------------------------------------------------------------- capacity, identity


@pytest.mark.parametrize(
    "task",
    [
        Countdown(numbers=2, values=(1, 9), target=(1, 20)),
        Countdown(numbers=3, values=(1, 4), target=(1, 30), intermediates="positive"),
        Countdown(numbers=3, values=(1, 4), target=(1, 30), exact_use=False),
    ],
)
def test_capacity_is_the_number_of_pairs_that_a_naive_count_finds_and_enumerate_lists_them(task):
    expected = 0
    numbers = range(task.values[0], task.values[1] + 1)
    for chosen in {tuple(sorted(row)) for row in product(numbers, repeat=task.numbers)}:
        values = {value for value in naive_values(chosen, task.rules) if value.denominator == 1}
        values -= set() if task.exact_use else {Fraction(number) for number in chosen}
        expected += sum(task.target[0] <= value <= task.target[1] for value in values)
    listed = list(task.enumerate())
    assert task.capacity == len(listed) == len({posed.key for posed in listed}) == expected
    assert {posed.key for posed in task.generate(stream("inside"), 200)} <= {posed.key for posed in listed}


def test_a_space_that_is_too_large_to_walk_has_neither_capacity_nor_enumeration():
    task = Countdown(numbers=4, values=(1, 100))
    assert task.capacity is None
    assert task.enumerate() is None


def test_the_declared_task_fulfils_the_protocol_and_has_an_identity():
    assert TESTBED is Countdown
    assert list(LEVELS) == ["easy", "medium", "hard", "chain", "classic", "many", "stratified"]
    assert isinstance(LEVELS["easy"], Task)  # asks for every property once, capacity included
    for task in TASKS.values():
        assert pickle.loads(pickle.dumps(task)) == task
        assert len(set(task.symbols)) == len(task.symbols)
        assert not any(any(character.isspace() for character in symbol) or not symbol for symbol in task.symbols)
    assert len({fingerprint(task) for task in TASKS.values()}) == len(TASKS)


def test_whole_number_symbols_reach_the_stated_bound():
    # Three numbers up to 4, positive results: at most 4*4*4 = 64. With fractions: 2^2 * 4^3 = 256.
    assert Countdown(values=(1, 4), numerals="whole", intermediates="positive", target=(1, 9)).magnitude == 64
    assert Countdown(values=(1, 4), numerals="whole", target=(1, 9)).magnitude == 256
    assert "100" in Countdown(values=(1, 4), numerals="whole", largest=100).symbols
    assert "101" not in Countdown(values=(1, 4), numerals="whole", largest=100).symbols


@pytest.mark.parametrize(
    ("operators", "positive"), [(ALL, False), (("+", "-", "*"), False), (ALL, True), (("+", "-"), False)]
)
def test_no_result_exceeds_the_stated_bound(operators, positive):
    rules = Rules(operators=operators, positive=positive, largest=None, exact_use=False)
    for numbers in ((1, 1, 1), (2, 2, 2), (3, 4, 4), (1, 2, 2)):
        bound = rules.magnitude(3, max(numbers))
        values = naive_values(numbers, rules)
        assert max(max(abs(value.numerator), value.denominator) for value in values) <= bound


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"numbers": 1}, "from 2 to 8, got 1"),
        ({"numbers": 9}, "from 2 to 8, got 9"),
        ({"numbers": True}, "from 2 to 8"),
        ({"operators": ()}, "one or more"),
        ({"operators": ("+", "^")}, r"write \('\+',\)"),
        ({"operators": ("*", "+")}, r"write \('\+', '\*'\)"),
        ({"operators": "+-"}, r"write \('\+', '-'\)"),
        ({"operators": None}, "one or more"),
        ({"values": (0, 9)}, r"values must be .* got \(0, 9\)"),
        ({"values": (9, 1)}, "low <= high"),
        ({"values": [1, 9]}, "must be a tuple"),
        ({"values": (1.0, 9.0)}, "whole numbers"),
        ({"values": (True, 9)}, "whole numbers"),
        ({"target": (1, True)}, "whole numbers"),
        ({"values": (1, 100_000), "numbers": 5}, "64 bits"),
        ({"target": (5, 1)}, "target must be"),
        ({"target": 24}, "target must be"),
        ({"form": "tree"}, "'expression', 'chain', got 'tree'"),
        ({"numerals": "words"}, "'digits', 'whole', got 'words'"),
        ({"intermediates": "negative"}, "'any', 'positive'"),
        ({"exact_use": 1}, "True or False"),
        ({"largest": 50}, "at least the highest target 100"),
        ({"largest": 2**63}, "at most 4611686018427387904"),
        ({"largest": 10**30}, "64-bit"),
        ({"numerals": "whole", "values": (1, 100)}, "numerals='digits'"),
        ({"target": (5000, 6000)}, "0 of 500 draws"),
        ({"target": (1, 2**20 + 1)}, "spans at most 1048576"),
        ({"target": (2**50, 2**50 + 1)}, "ends at 1125899906842624"),
        ({"targets": "hard"}, "'uniform', 'stratified', got 'hard'"),
        ({"numbers": 7, "targets": "stratified"}, "set targets='uniform'"),
        ({"numbers": 6, "largest": 200, "targets": "stratified"}, "at most 5"),
        ({"numbers": 7, "operators": ("-", "*")}, "needs"),
        ({"numbers": 8, "values": (1, 100)}, "64 bits"),
        ({"numbers": 7, "target": (1, 1000)}, "more than 262144 steps"),
        ({"numbers": 7, "target": (1, 2**20)}, "narrow or lower target"),
        ({"numbers": 8, "operators": ("-",), "intermediates": "positive"}, "more than 262144 steps"),
        ({"numbers": 7, "operators": ("+",), "values": (1, 9), "target": (90, 99)}, "0 of 10 draws .* in bounded work"),
    ],
)
def test_a_bad_declaration_is_refused_with_the_value_and_what_would_be_right(fields, message):
    with pytest.raises(ValueError, match=message):
        Countdown(**fields)
