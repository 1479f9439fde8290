"""The engine of Countdown against published counts, plain recursion, z3 and itself by another way."""

import ast
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
import z3

from testbeds.core import EXPLICIT
from testbeds.countdown import LEVELS, Countdown
from testbeds.countdown_draws import draw_one
from testbeds.countdown_forms import MINUS, PLUS, forms
from testbeds.countdown_kernels import whole_between
from testbeds.countdown_many import listing, reached, solution_from
from testbeds.countdown_search import Rules, lettered, outline_at, positions, reachable, worked_at
from testbeds.countdown_trees import spelled, written_out
from testbeds.streams import stream

ALL = ("+", "-", "*", "/")
FREE = Rules(operators=ALL, positive=False, largest=None, exact_use=True)


def signed_forms(program):
    """How many expressions the whole forms stand for: two each where a sign can be turned, else one.

    The negative of a sum can be written if it has a term with minus or a term that can be turned; that of a product if
    a factor can be turned.
    """
    turns = [False] * program.letters
    for operator, left, right in program.table:
        turns.append(operator == MINUS or turns[left] or turns[right])
    whole = turns[program.whole :]
    return len(whole) + sum(whole)


# OEIS A140606, inequivalent expressions over n different operands: 1, 6, 68, 1170, 27142, 793002.
@pytest.mark.parametrize(("letters", "published"), [(2, 6), (3, 68), (4, 1170), (5, 27142), (6, 793002)])
def test_forms_stand_for_the_published_number_of_expressions(letters, published):
    assert signed_forms(forms((1,) * letters, ALL)) == published


def test_the_rows_of_a_program_name_no_form_twice_and_only_forms_before_them():
    program = forms((2, 1, 1), ALL)
    rows = [tuple(row) for row in program.table]
    assert len(set(rows)) == len(rows)
    for place, (_, left, right) in enumerate(rows):
        assert max(left, right) < program.letters + place


def test_without_division_and_subtraction_there_is_one_sum_and_one_product_of_two_letters():
    assert [tuple(row) for row in forms((1, 1), ("+", "*")).table] == [(PLUS, 0, 1), (2, 0, 1)]


# ------------------------------------------------------------------------------------ another way to count


def values_by_subsets(numbers, rules):
    """Every value over all numbers, by joining the values of two parts: sets of Fractions, no forms, no kernels."""

    def allowed(value):
        return not rules.positive or (value.denominator == 1 and value > 0)

    known = {}

    def values(part):
        if len(part) == 1:
            return {Fraction(part[0])}
        if part not in known:
            found = set()
            for inside in range(1, 2 ** len(part) - 1):
                left = tuple(value for place, value in enumerate(part) if inside >> place & 1)
                right = tuple(value for place, value in enumerate(part) if not inside >> place & 1)
                for a, b in product(values(left), values(right)):
                    found |= {a + b, a - b, a * b} | ({a / b} if b else set())
            known[part] = {value for value in found if allowed(value)}
        return known[part]

    return values(tuple(sorted(numbers)))


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("numbers", [(1, 2, 3, 4), (3, 3, 8, 8), (1, 5, 5, 5), (2, 2, 2, 9)])
def test_both_engines_find_the_targets_that_sets_of_fractions_hold(numbers, positive):
    rules = replace(FREE, positive=positive)
    expected = sorted(int(value) for value in values_by_subsets(numbers, rules) if value.denominator == 1 and value > 0)
    expected = [value for value in expected if value <= 500]
    assert [target for target, _ in reachable(numbers, rules, 1, 500)] == expected
    assert reached(numbers, rules, 1, 500).tolist() == expected


@pytest.mark.parametrize(
    "rules",
    [
        FREE,
        replace(FREE, positive=True),
        replace(FREE, exact_use=False),
        replace(FREE, operators=("+", "-")),
        replace(FREE, largest=60),
    ],
    ids=["free", "positive", "some", "no products", "bounded"],
)
def test_values_met_in_the_middle_agree_with_forms(rules):
    rng = stream("two engines")
    for size in (5, 6):
        if size > rules.most_counted:
            continue
        for _ in range(3):
            numbers = tuple(rng.integers(1, 8, size).tolist())
            expected = [target for target, _ in reachable(numbers, rules, 1, 60)]
            assert reached(numbers, rules, 1, 60).tolist() == expected
            listed = listing(tuple(sorted(numbers)), rules)
            for target in expected[:: max(len(expected) // 4, 1)]:
                assert solution_from(listed, target, rng)[-1][3:] == [target, 1]


def test_what_seven_numbers_do_not_reach_is_not_reached():
    # Seven ones make at most (1+1)*(1+1)*(1+1+1) = 12. 11 needs eight ones (its integer complexity, OEIS A005245, and
    # 12-1 takes eight, too); 10 is (1+1+1)*(1+1+1)+1.
    found = reached((1,) * 7, FREE, 1, 40).tolist()
    assert found == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12]
    # Seven twos without division: 2^7 = 128 and sums and differences of even numbers, so never an odd one.
    evens = reached((2,) * 7, replace(FREE, operators=("+", "-", "*")), 1, 140).tolist()
    assert all(target % 2 == 0 for target in evens)
    assert 128 in evens
    assert 130 not in evens


def solvable_by_z3(numbers, target):
    """z3 chooses the order of the numbers, both operators and one of the two shapes of a tree over three numbers."""
    solver = z3.Solver()
    slots, codes = [z3.Int(f"slot{i}") for i in range(3)], [z3.Int(f"operator{i}") for i in range(2)]
    solver.add(z3.Distinct(*slots), *[z3.And(slot >= 0, slot < 3) for slot in slots])
    solver.add(*[z3.And(code >= 0, code < 4) for code in codes])
    x, y, w = (z3.Sum([z3.If(slot == i, z3.RealVal(number), 0) for i, number in enumerate(numbers)]) for slot in slots)
    inner, outer = z3.Real("inner"), z3.Real("outer")

    def applied(code, left, right, result):
        return z3.Or(
            z3.And(code == 0, result == left + right),
            z3.And(code == 1, result == left - right),
            z3.And(code == 2, result == left * right),
            z3.And(code == 3, right != 0, result * right == left),
        )

    solver.add(applied(codes[0], x, y, inner), outer == target)
    solver.add(z3.Or(applied(codes[1], inner, w, outer), applied(codes[1], w, inner, outer)))
    return solver.check() == z3.sat


@pytest.mark.parametrize("numbers", [(3, 5, 7), (2, 2, 9)])
def test_z3_agrees_on_what_three_numbers_reach(numbers):
    targets = {target for target, _ in reachable(numbers, FREE, 1, 100)}
    for target in (1, 4, 7, 8, 11, 13, 20, 22, 24, 31, 36, 50):
        assert (target in targets) == solvable_by_z3(numbers, target)


# ---------------------------------------------------------------------------------------- seven and eight


@pytest.mark.parametrize(
    "task",
    [
        LEVELS["many"],
        Countdown(numbers=8, values=(1, 12), target=(1, 100), intermediates="positive"),
        Countdown(numbers=7, values=(1, 20), target=(1, 100)),
        Countdown(numbers=8, values=(1, 9), target=(1, 60), exact_use=False),
        Countdown(numbers=6, values=(1, 9), target=(1, 60), largest=100),
    ],
    ids=["seven", "eight", "seven, free", "eight, some", "six, bounded"],
)
def test_many_numbers_get_targets_witnesses_and_demonstrations(task):
    rng = stream("many")
    for posed in task.generate(rng, 8):
        assert "solutions" not in posed.features
        assert task.verify(posed, posed.certificate.witness).correct
        texts = {task.demonstrate(posed, EXPLICIT, rng).text for _ in range(6)}
        assert all(task.verify(posed, text).correct for text in texts)
        assert task.floor(posed) == 1 / len(reached(posed.certificate.numbers, task.rules, *task.target))
    with pytest.raises(ValueError, match="not listed"):
        next(task.expressions(posed))


# ------------------------------------------------------------------------------------ targets and features


def test_stratified_targets_are_uniform_over_strata_and_the_floor_is_the_best_guess():
    # {1,2,3,4} with all operators: the reference is computed from the counts alone.
    task = Countdown(numbers=4, values=(1, 4), target=(1, 30), targets="stratified")
    counts = dict(reachable((1, 2, 3, 4), task.rules, 1, 30))
    strata = Counter(int(np.log2(count)) for count in counts.values())
    expected = {t: 1 / (len(strata) * strata[int(np.log2(count))]) for t, count in counts.items()}
    assert sum(expected.values()) == pytest.approx(1)
    posed = [one for one in task.generate(stream("strata"), 20_000) if one.certificate.numbers == (1, 2, 3, 4)]
    drawn = Counter(one.certificate.target for one in posed)
    assert len(posed) > 1500  # 24/256 of the rows
    for target, share in expected.items():
        deviation = (len(posed) * share * (1 - share)) ** 0.5
        assert abs(drawn[target] - len(posed) * share) < 5 * deviation
    assert task.floor(posed[0]) == pytest.approx(max(expected.values()))
    assert (
        posed[0].key
        == replace(task, targets="uniform")._problem(draw_one(task, (1, 2, 3, 4), posed[0].certificate.target, 1)).key
    )


def test_what_a_problem_carries_is_what_a_search_finds_again():
    for name in ("easy", "hard", "chain", "classic", "stratified"):
        task = LEVELS[name]
        for posed in task.generate(stream("carried", name), 15):
            facts = posed.certificate
            again = draw_one(task, facts.numbers, facts.target, posed.features["solutions"])
            assert dict(reachable(facts.numbers, task.rules, *task.target))[facts.target] == again.solutions
            assert (again.witness, again.places) == (facts.witness, facts.places)
            assert again.chains == posed.features.get("chains", 0)


def test_the_letters_of_numbers_are_their_ties_and_values_in_one_order():
    assert lettered((8, 3, 8, 3)) == ((2, 2), (3, 8))
    assert lettered((1, 9, 9, 2)) == ((2, 1, 1), (9, 1, 2))
    assert all(lettered(order) == ((1, 1, 1), (2, 5, 7)) for order in permutations((2, 5, 7)))


def test_a_solution_is_written_without_a_negative_result():
    for numbers in ((3, 5, 7, 11), (1, 1, 6, 9), (2, 4, 4, 10)):
        task = Countdown(numbers=4)
        for target, _ in reachable(numbers, FREE, 1, 40):
            for text in task.expressions(task._problem(draw_one(task, numbers, target, 1))):
                results = []
                assert value_by_python(text, results) == target
                assert min(results) >= 0


@pytest.mark.parametrize(
    "numbers", [(7, 7), (3, 3, 8, 8), (99, 100, 100, 98), (1, 5, 9, 12), (90, 91, 92, 93, 94), (1, 1, 2, 2, 3, 3)]
)
def test_the_compiled_text_of_a_solution_is_that_of_its_outline(numbers):
    rules = replace(FREE, exact_use=False)
    for target in (1, 2, 3, 10, 24, 88, 189, 199, 9900):
        for place in positions(numbers, rules, target)[::7]:
            expression, steps = worked_at(numbers, rules, place)
            assert (expression, steps) == written_out(outline_at(numbers, rules, place))
            assert value_by_python(expression, []) == target
            assert [step.rpartition("=")[2] for step in steps][-1] == str(target)


def test_a_whole_value_in_range_is_told_from_its_neighbours_up_to_the_highest_target():
    highest = 2**50
    for bottom in (1, 2, 3, 1000):
        assert whole_between(highest * bottom, bottom, highest - 1, highest) == highest
        assert whole_between((highest - 1) * bottom, bottom, highest - 1, highest) == highest - 1
        assert whole_between((highest + 1) * bottom, bottom, highest - 1, highest) == 0
        assert whole_between((highest - 2) * bottom, bottom, highest - 1, highest) == 0
    assert whole_between(highest * 1000 - 1, 1000, highest - 1, highest) == 0
    assert whole_between(highest, 0, 1, highest) == 0


def value_by_python(text, results):
    """Value of an expression with Python's own parser; every result on the way is added to ``results``."""

    def walk(node):
        if isinstance(node, ast.Constant):
            return Fraction(node.value)
        left, right = walk(node.left), walk(node.right)
        name = type(node.op).__name__
        value = {"Add": left + right, "Sub": left - right, "Mult": left * right}.get(name)
        value = left / right if value is None else value
        results.append(value)
        return value

    return walk(ast.parse(text, mode="eval").body)


def test_an_outline_is_spelled_with_the_parentheses_that_it_needs():
    rows = [[-1, 0, 0, 8, 1], [-1, 0, 0, 3, 1], [2, 0, 1, 24, 1], [-1, 0, 0, 5, 1], [1, 2, 3, 19, 1]]
    lines = []
    assert spelled(rows, lines) == "8*3-5"
    assert lines == [("8*3", "24"), ("24-5", "19")]
