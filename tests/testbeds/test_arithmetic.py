"""The parser against Python's own grammar, and its bounds."""

import ast
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbeds.arithmetic import LONGEST_ANSWER, Flaw, Postfix, apply, evaluate, parse, shown, tighten, write

HONEST = settings(derandomize=True, max_examples=300, deadline=None)


def value_by_python(text: str) -> Fraction | None:
    """An independent reading: Python's parser with an allow-list of nodes, and Fraction. None where it has no value."""
    try:
        return walk(ast.parse(text, mode="eval").body)
    except (SyntaxError, ZeroDivisionError, ValueError):
        return None


def walk(node: ast.AST) -> Fraction:
    match node:
        case ast.Constant(value=int(number)):
            return Fraction(number)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return walk(left) + walk(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return walk(left) - walk(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return walk(left) * walk(right)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return walk(left) / walk(right)
    raise ValueError(f"no node of the grammar: {ast.dump(node)}")


def value(text: str) -> Fraction | None:
    expression = parse(text)
    if isinstance(expression, Flaw):
        return None
    result = evaluate(expression, lambda _: True)
    return None if isinstance(result, Flaw) else result


@HONEST
@given(st.text("0123456789+-*/()", max_size=12))
def test_any_text_over_the_grammars_symbols_reads_as_python_reads_it(text):
    # Python also takes "00" and unary signs apart from ours: ast.UnaryOp is outside the allow-list, "00" is excluded.
    # What is wrapped in parentheses twice, as in "3(4)", is a Call for Python and a flaw here.
    if "00" in text:
        return
    assert value(text) == value_by_python(text)


trees = st.recursive(
    st.integers(0, 12).map(str),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda parts: f"({''.join(parts)})"),
    max_leaves=8,
)


@HONEST
@given(trees)
def test_every_expression_has_the_value_that_python_gives_it(text):
    assert isinstance(parse(text), Postfix)
    assert value(text) == value_by_python(text)


@pytest.mark.parametrize(
    ("text", "postfix"),
    [
        ("7", "7"),
        ("3+4*5", "3 4 5 * +"),
        ("(3+4)*5", "3 4 + 5 *"),
        ("8-3-2", "8 3 - 2 -"),  # from left to right: (8-3)-2
        ("8-(3-2)", "8 3 2 - -"),
        ("8/2/2", "8 2 / 2 /"),
        ("((7))", "7"),
    ],
)
def test_precedence_and_grouping_are_the_usual_ones(text, postfix):
    assert parse(text) == Postfix(tokens=tuple(postfix.split()))


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("", "ends where a number is due"),
        ("3+", "ends where a number is due"),
        ("-3", "a number is due"),
        ("--3", "a number is due"),
        ("3+-4", "a number is due"),
        ("3**4", "a number is due"),
        ("7//2", "a number is due"),
        ("()", "a number is due"),
        ("3(4)", "an operator is due"),
        ("(3)4", "an operator is due"),
        ("(3)(4)", "an operator is due"),
        ("(3+4", "has no partner"),
        ("3+4)", "has no partner"),
        (")3+4(", "a number is due"),
        ("03+4", "leading zero"),
        ("00", "leading zero"),
        ("2.5*4", "not a symbol"),
        ("1e2", "not a symbol"),
        ("0x64", "not a symbol"),
        ("9_3", "not a symbol"),
        ("4!", "not a symbol"),
        ("3\x00+4", "not a symbol"),
        ("３+４", "not a symbol"),  # noqa: RUF001 (full-width digits)
        ("3×4", "not a symbol"),  # noqa: RUF001
        ("3−4", "not a symbol"),  # noqa: RUF001
        ("3²", "not a symbol"),
        ("٣+4", "not a symbol"),
        ("sqrt(9)", "not a symbol"),
    ],
)
def test_what_is_not_in_the_grammar_is_a_flaw_with_its_reason(text, because):
    flaw = parse(text)
    assert isinstance(flaw, Flaw)
    assert because in flaw.reason


def test_an_operator_that_the_task_lacks_is_a_flaw():
    assert isinstance(parse("3*4", ("+", "-")), Flaw)
    assert isinstance(parse("3+4", ("+", "-")), Postfix)


def test_nesting_up_to_the_bound_is_read_and_beyond_it_refused():
    deep = "(" * 2000 + "7" + ")" * 2000
    assert parse(deep) == Postfix(tokens=("7",))
    assert isinstance(tighten("(" * 100_000 + "7" + ")" * 100_000, "digits"), Flaw)
    assert tighten("7" * LONGEST_ANSWER, "digits") == "7" * LONGEST_ANSWER
    assert isinstance(tighten("7" * (LONGEST_ANSWER + 1), "digits"), Flaw)


def test_white_space_joins_digits_but_not_whole_numbers():
    assert tighten(" 1 5\t+\n3 ", "digits") == "15+3"
    assert tighten(" 15 + 3 ", "whole") == "15+3"
    assert isinstance(tighten("1 5+3", "whole"), Flaw)
    assert isinstance(tighten(" \n", "digits"), Flaw)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(8), "8"),
        (Fraction(0), "0"),
        (Fraction(-2), "(-2)"),
        (Fraction(16, 6), "(8/3)"),
        (Fraction(8, -3), "(-8/3)"),
    ],
)
def test_a_value_is_written_in_lowest_terms_and_in_parentheses_unless_natural(number, text):
    assert write(number) == text


def test_division_is_exact_and_by_zero_has_no_value():
    assert apply("/", Fraction(8), Fraction(3)) == Fraction(8, 3)
    assert apply("/", Fraction(8), Fraction(0)) is None
    assert value("8/(3-3)") is None
    assert value("0/5") == 0


def test_an_unknown_operator_is_an_error_that_names_it():
    with pytest.raises(ValueError, match=r"'\^'"):
        apply("^", Fraction(1), Fraction(2))


def test_evaluation_stops_at_the_first_result_that_is_not_permitted():
    expression = parse("(3-5)*2+9")
    assert isinstance(expression, Postfix)
    flaw = evaluate(expression, lambda result: result > 0)
    assert isinstance(flaw, Flaw)
    assert "3-5=(-2)" in flaw.reason


def test_a_quoted_text_is_short_and_escaped():
    assert shown("\x00") == r"'\x00'"
    assert len(shown("x" * 10**6)) < 40
