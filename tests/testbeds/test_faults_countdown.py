"""Public faults of Countdown graders and generators: the right value of each trigger."""

import pytest

from testbeds.core import EXPLICIT, Problem
from testbeds.countdown import Countdown, CountdownCertificate
from testbeds.streams import stream


def problem(numbers, target):
    """A problem with these numbers, whatever the task: verifiers look at numbers and target alone."""
    return Problem(
        prompt=f"{target}:{','.join(map(str, numbers))}>",
        key="by hand",
        certificate=CountdownCertificate(numbers=tuple(sorted(numbers)), target=target, witness=""),
    )


# (fault, numbers, target, completion): every one was paid in full by some public grader.
WRONGLY_PAID = [
    ("A1 wrong multiset", (1, 81, 1, 1), 81, "81*1"),
    ("A1 truncated value", (819, 10), 81, "819/10"),
    ("A15 target never checked", (3, 3, 8, 8), 24, "3+3+8+8"),
    ("A17 off by one in a big integer", (99999999998, 1), 100000000000, "99999999998+1"),
    ("B1 scientific notation", (3, 4), 100, "1e2+(3-4)*0e0"),
    ("B1 hexadecimal", (3, 4), 100, "0x64+(3-4)*0x0"),
    ("B1 underscore", (3, 4), 100, "3 + 4 + 9_3"),
    ("B2 power", (3, 4), 81, "3**4"),
    ("B2 factorial", (3, 4), 24, "4! + 0e0*3"),
    ("B2 root", (2, 9), 3, "sqrt(9)+2*0e0"),
    ("B2 constructor", (3, 4), 7, "Integer(3)+4"),
    ("B2 lambda", (3, 4), 7, "(lambda: 3+4)()"),
    ("B2 free symbol", (3, 4), 12, "3*4 + x - x"),
    ("B6 the constant answer", (5, 5, 5, 1), 24, "6*4*1*1"),
    ("B21 power", (2, 3), 8, "2**3"),
    ("B21 floor division", (7, 2), 3, "7//2"),
    ("B21 decimal point", (2, 5, 4), 10, "2.5*4"),
    ("B21 near miss", (1, 300000, 2), 2, "2+1/300000"),
    ("B29 a number dropped", (3, 4, 2, 50), 24, "3*4*2"),
    ("B29 a number used twice", (4, 2, 5), 16, "4*4+2-2"),
]


@pytest.mark.parametrize(
    ("numbers", "target", "completion"), [pytest.param(*row, id=fault) for fault, *row in WRONGLY_PAID]
)
def test_an_answer_that_was_wrongly_paid_is_not_right(numbers, target, completion):
    verdict = Countdown().verify(problem(numbers, target), completion)
    assert not verdict.correct
    assert verdict.progress < 1
    assert verdict.reason


# Texts that hung, crashed or ran on public graders, or were paid for being text at all. Numbers {3, 4}, target 12.
HOSTILE = {
    "A14 inside the working": "3*4#3+4",
    "A14 two answers": "3*4#3+4#3*4",
    "A16 code": "__import__('os').system('touch /tmp/countdown-was-here')",
    "A16 B22 tower": "9**9**9**9",
    "A18 tower": "5^(5^(5^(5^5)))",
    "B3 tower": "9**9**9",
    "B4 code": '__import__("os").system("echo hi > FILE")',
    "B5 empty": "",
    "B5 space": " ",
    "B5 junk": "I do not know",
    "B5 None": "None",
    "B14 wrapped": "the answer is 3*4 or maybe not",
    "full-width digits": "３*４",  # noqa: RUF001
    "multiplication sign": "3×4",  # noqa: RUF001
    "minus sign": "3−4",  # noqa: RUF001
    "arabic digits": "٣*٤",
    "superscript": "3*4²",
    "leading zeros": "03*04",
    "unary chain": "--3*4",
    "unary plus": "+3*4",
    "division by zero": "3/(4-4)",
    "hidden division by zero": "3*4/(3-3)",
    "100,000 parentheses": "(" * 100_000 + "3*4" + ")" * 100_000,
    "100,000 open parentheses": "(" * 100_000,
    "a million letters": "x" * 1_000_000,
    "a million digits": "9" * 1_000_000,
    "a million terms": "1+" * 500_000 + "1",
    "a million marks": "#" * 1_000_000,
    "a long working": "3*4" * 300_000 + "#3+4",
    "NUL after": "3*4\x00",
    "NUL inside": "3\x00*4",
    "the prompt": "12:3,4>",
    "the prompt and the answer": "12:3,4>3*4",
    "concatenated digits": "34-22",
    "the target": "12",
    "the target with its numbers": "12+3*4-3*4",
    "implicit multiplication": "3(4)",
    "juxtaposed parentheses": "(3)(4)",
    "more than 64 bits": "18446744073709551628-18446744073709551616",
    "an equation": "3*4=12",
    "a second line": "3*4\n12",
    "brackets": "[3*4]",
    "a surrogate": "3*4\ud800",
}


@pytest.mark.parametrize("form", ["expression", "chain"])
@pytest.mark.parametrize("numerals", ["digits", "whole"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_gets_a_verdict_and_no_reward(name, form, numerals):
    task = Countdown(form=form, numerals=numerals)
    verdict = task.verify(problem((3, 4), 12), HOSTILE[name])
    is_a_chain = name == "an equation" and form == "chain"  # there 3*4=12 is the right answer
    assert verdict.correct == is_a_chain
    assert len(verdict.reason) < 200


# {3, 3, 8, 8} -> 24 has one solution. In floats it is 23.99999999999999 (B32).
@pytest.mark.parametrize(
    "completion", ["8/(3-8/3)", " ( 8 / ( 3 - ( 8 / 3 ) ) ) ", "8/3=(8/3),3-(8/3)=(1/3)#8/(3-8/3)"]
)
def test_b32_a_right_answer_by_way_of_a_fraction_is_right(completion):
    assert Countdown().verify(problem((3, 3, 8, 8), 24), completion).correct


def test_b32_the_same_answer_as_a_chain_is_right():
    task = Countdown(form="chain")
    assert task.verify(problem((3, 3, 8, 8), 24), "8/3=(8/3),3-(8/3)=(1/3),8/(1/3)=24").correct


@pytest.mark.parametrize(
    ("numbers", "target", "chain"),
    [
        ((3, 4, 2, 50), 24, "3*4=12,12*2=24"),  # B29: 50 dropped
        ((4, 2, 5), 16, "4*4=16"),  # B29: 4 used twice
        ((4, 2, 5), 16, "4*2=8,8*2=16"),  # B29: 2 used twice
        ((4, 2, 5), 16, "4-2=2,16*1=16"),  # the goal taken before it is made
        ((3, 3, 8), 33, "3+8=11,11*3=33,11*3=33"),  # B30: the goal reached twice
        ((3, 3, 8), 33, "3+8=11,3+8=11,11*3=33"),  # B30: a step repeated
        ((3, 3, 8), 33, "3+8=12,11*3=33"),  # a wrong result
        ((2, 3), 8, "2**3=8"),
        ((1, 2), 12, "12=12"),
        ((6, 4, 3), 2, "6/4=3/2,3-(3/2)=(3/2)"),  # a fraction without parentheses
        ((6, 4, 3), 2, "6/4=(6/4),3/(6/4)=2"),  # not in lowest terms
        ((3, 4), 12, "3*4=012"),
        ((3, 4), 12, "3*4=12,"),
        ((3, 4), 12, ",3*4=12"),
        ((3, 4), 12, "3*4=12#3*4=12"),
        ((3, 4), 12, "3*4=" + "9" * 5000),
    ],
)
def test_a_chain_that_breaks_its_own_books_is_wrong(numbers, target, chain):
    assert not Countdown(form="chain").verify(problem(numbers, target), chain).correct


def test_b30_each_of_two_equal_numbers_can_be_used_once():
    task = Countdown(form="chain")
    assert task.verify(problem((3, 3, 8), 33), "3+8=11,11*3=33").correct
    assert task.verify(problem((3, 3, 8), 33), "8+3=11,3*11=33").correct


def test_a17_big_integers_are_compared_exactly():
    task = Countdown()
    assert task.verify(problem((99999999999, 1), 100000000000), "99999999999+1").correct
    assert not task.verify(problem((99999999998, 1), 100000000000), "99999999998+1").correct


def test_a7_numbers_with_common_prefixes_are_not_confused():
    task = Countdown()
    assert task.verify(problem((1, 10, 11, 111, 1), 134), "1+10+11+111+1").correct
    assert not task.verify(problem((1, 10, 11, 111, 1), 134), "1+1+1+1+130").correct
    assert not task.verify(problem((1, 2), 12), "12").correct


@pytest.mark.parametrize(
    "infeasible",
    [
        {"numbers": 4, "operators": ("+",), "values": (1, 5), "target": (24, 24)},  # B8: at most 20
        {"numbers": 4, "values": (1, 2), "target": (24, 24)},  # B8: at most 2*2*2*2 = 16
        {"numbers": 3, "values": (1, 9), "target": (900, 999)},  # B16: at most 9*9*9 = 729
        {"numbers": 2, "operators": ("-",), "values": (7, 7), "target": (1, 9)},  # 7-7 = 0 always
    ],
)
def test_b8_b16_an_infeasible_task_is_refused_and_the_message_says_what_to_change(infeasible):
    with pytest.raises(ValueError, match="move or widen target"):
        Countdown(**infeasible)


def test_a13_b16_every_problem_is_solvable_even_where_few_draws_are():
    # Three numbers from 1 to 10 reach 700 to 1000 only as products such as 9*9*9, 8*9*10, 10*10*10 or near ones.
    task = Countdown(numbers=3, values=(1, 10), target=(600, 999))
    problems = task.generate(stream("rare"), 200)
    assert len(problems) == 200
    for made in problems:
        assert 600 <= made.certificate.target <= 999
        assert task.verify(made, made.certificate.witness).correct


def test_b18_neighbouring_streams_share_no_more_problems_than_chance():
    # 54,000 ordered prompts and more; two independent lists of 60 share about 60*60/54,000 < 0.1 prompts.
    task = Countdown(numbers=4, values=(1, 20))
    first, second = (task.generate(stream("suite", seed), 60) for seed in (42, 43))
    assert len({made.prompt for made in first} & {made.prompt for made in second}) <= 2


def test_a11_generation_depends_on_the_stream_alone():
    task = Countdown()
    assert task.generate(stream("a"), 20) == task.generate(stream("a"), 20)
    made = task.generate(stream("a"), 1)[0]
    assert task.demonstrate(made, EXPLICIT, stream("b")) == task.demonstrate(made, EXPLICIT, stream("b"))
