"""Cryptarithms: one assignment by trying all, exact keys, strict answers, sums that add up column by column."""

import re
from itertools import permutations

import numpy as np
import pytest

from testbeds.core import EXPLICIT, Problem, TraceStyle, Unrealisable
from testbeds.smt import cryptarithm_kernels as kernels
from testbeds.smt import oracle, search
from testbeds.smt.cryptarithm import LEVELS, Cryptarithm, CryptarithmCertificate, canonical, puzzle
from testbeds.smt.working import dead_ends
from testbeds.streams import stream


def fitting(words, base=10):
    """Every assignment that fits a sum, by trying all."""
    letters = sorted(set("".join(words)))
    found = []
    for digits in permutations(range(base), len(letters)):
        known = dict(zip(letters, digits, strict=True))
        if any(known[word[0]] == 0 for word in words):
            continue
        *addends, total = (sum(known[c] * base**i for i, c in enumerate(reversed(word))) for word in words)
        if sum(addends) == total:
            found.append(known)
    return found


def words_of(prompt):
    return re.findall("[A-Z]+", prompt)


MONEY = Problem(
    prompt="SEND + MORE = MONEY ?",
    key="by hand",
    certificate=CryptarithmCertificate(
        words=("SEND", "MORE", "MONEY"),
        base=10,
        # The classic (Dudeney 1924): 9567 + 1085 = 10652.
        digits=(("D", 7), ("E", 5), ("M", 1), ("N", 6), ("O", 0), ("R", 8), ("S", 9), ("Y", 2)),
    ),
)
RIGHT = "D=7,E=5,M=1,N=6,O=0,R=8,S=9,Y=2"
TASK = Cryptarithm()


def as_rows(words):
    letters = sorted(set("".join(words)))
    rows = np.full((len(words), kernels.COLUMNS), -1)
    for r, word in enumerate(words):
        for c, letter in enumerate(reversed(word)):
            rows[r, c] = letters.index(letter)
    leading = 0
    for word in words:
        leading |= 1 << letters.index(word[0])
    return rows, leading


def test_send_more_money_has_its_one_solution_by_search_and_by_z3():
    rows, leading = as_rows(("SEND", "MORE", "MONEY"))
    assert kernels.count_assignments(rows, 2, 5, 10, leading, 100)[0] == 1
    declared = puzzle(("SEND", "MORE", "MONEY"), 10)
    assert oracle.solutions(declared, 2) == [(7, 5, 1, 6, 0, 8, 9, 2)]
    assert TASK.verify(MONEY, RIGHT).correct


@pytest.mark.parametrize(
    "words", [("AB", "BA", "CDC"), ("ABC", "ABC", "BCA"), ("AA", "BB", "CCD"), ("TO", "GO", "OUT")]
)
def test_the_search_counts_as_trying_all_does(words):
    rows, leading = as_rows(words)
    expected = len(fitting(words))
    assert kernels.count_assignments(rows, 2, len(words[-1]), 10, leading, 10**6)[0] == expected


@pytest.mark.parametrize(
    ("base", "digits", "addends"), [(4, (2, 4), 2), (7, (2, 4), 2), (5, (2, 3), 3), (2, (2, 5), 4)]
)
def test_prompts_in_small_bases_have_one_assignment_and_it_is_the_answer(base, digits, addends):
    task = Cryptarithm(base=base, digits=digits, addends=addends)
    for problem in task.generate(stream("small", base), 8):
        assert problem.prompt.startswith(f"base {base} : ")
        (known,) = fitting(words_of(problem.prompt), base)
        assert task.verify(problem, ",".join(f"{letter}={digit}" for letter, digit in known.items())).correct


def test_prompts_with_few_letters_have_one_assignment_in_base_ten():
    problems = [p for p in LEVELS["easy"].generate(stream("ten"), 30) if p.features["letters"] <= 5]
    for problem in problems[:6]:
        (known,) = fitting(words_of(problem.prompt))
        assert tuple(sorted(known.items())) == problem.certificate.digits


@pytest.mark.parametrize("level", ["medium", "octal"])
def test_z3_and_the_general_search_agree(level):
    task = LEVELS[level]
    for problem in task.generate(stream("oracle", level), 2):
        declared = puzzle(problem.certificate.words, task.base)
        solution = tuple(digit for _, digit in problem.certificate.digits)
        assert oracle.solutions(declared, 2) == [solution]
        assert search.solutions(declared, 2) == [solution]


@pytest.mark.parametrize(
    "text", [RIGHT, "Y=2,S=9,R=8,O=0,N=6,M=1,E=5,D=7", RIGHT.replace(",", " , ").replace("=", " = "), f"so # {RIGHT}"]
)
def test_every_way_to_write_the_right_digits_is_accepted(text):
    assert TASK.verify(MONEY, text).correct


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("B14 inside other words", f"blah {RIGHT} blah"),
        ("a letter twice", f"{RIGHT},Y=2"),
        ("a hedge", f"{RIGHT},Y=3"),
        ("a letter missing", RIGHT.removesuffix(",Y=2")),
        ("a letter too many", f"{RIGHT},Z=3"),
        ("leading zero", RIGHT.replace("D=7", "D=07")),
        ("full-width digit", RIGHT.replace("7", "\uff17")),
        ("no digit", RIGHT.replace("D=7", "D=seven")),
        ("lower case", RIGHT.lower()),
        ("the equation", "9567+1085=10652"),
        ("A22 a number", "10652"),
        ("two marks", f"#{RIGHT}#{RIGHT}"),
        ("B4 code", "__import__('os').system('true')"),
        ("the prompt", MONEY.prompt),
    ],
)
def test_what_gives_no_digits_is_malformed(fault, text):
    verdict = TASK.verify(MONEY, text)
    assert not verdict.correct, fault
    assert not verdict.well_formed, fault


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (RIGHT.replace("D=7", "D=5"), "a digit of its own for each letter is violated"),
        ("D=7,E=5,M=0,N=6,O=1,R=8,S=9,Y=2", "M is not 0 is violated"),
        (RIGHT.replace("D=7", "D=3"), "SEND+MORE=MONEY is violated"),
    ],
)
def test_wrong_digits_name_the_first_rule_that_they_break(text, reason):
    verdict = TASK.verify(MONEY, text)
    assert verdict.well_formed
    assert verdict.reason == reason
    assert 0 < verdict.progress < 1


def lettered(addends, letters="QWERTYUIOP", base=10):
    """The certificate of a sum whose digit d is written as letters[d]."""
    numbers = [*addends, sum(addends)]
    used = sorted({int(digit) for number in numbers for digit in str(number)}, key=letters.__getitem__)
    words = tuple("".join(letters[int(digit)] for digit in str(number)) for number in numbers)
    return CryptarithmCertificate(words=words, base=base, digits=tuple((letters[d], d) for d in used))


def test_keys_forget_letters_order_and_exchanges_within_a_column_and_nothing_else():
    key = canonical(lettered((9567, 1085)))
    assert canonical(lettered((9567, 1085), "ABCDEFGHIJ")) == key
    assert canonical(lettered((1085, 9567))) == key
    assert canonical(lettered((9587, 1065))) == key  # tens exchanged: the same columns
    assert canonical(lettered((9567, 1086))) != key
    # 1234 + 56 and 1256 + 34 have the same columns, but in the one 5 begins a word, in the other 3.
    assert canonical(lettered((1234, 56))) != canonical(lettered((1254, 36)))
    assert canonical(MONEY.certificate) == key


def test_what_has_one_key_has_the_same_solutions():
    one, other = lettered((9567, 1085)), lettered((9587, 1065))
    assert search.solutions(puzzle(one.words, 10), 3) == search.solutions(puzzle(other.words, 10), 3)


def test_each_column_adds_up_and_hands_on_its_carry():
    task = Cryptarithm(addends=3, digits=(3, 4))
    for problem in task.generate(stream("columns"), 5):
        *addends, total = problem.certificate.words
        digits = dict(problem.certificate.digits)
        carry = 0
        steps = task.demonstrate(problem, EXPLICIT, stream("rng")).steps
        assert len(steps) == len(total)
        for c, step in enumerate(steps):
            told, values = re.fullmatch(r"(.*) : (.*)", step.operation).groups()
            summands, summed = values.split("=")
            assert sum(map(int, summands.split("+"))) == int(summed)
            letters = [word[-1 - c] for word in addends if c < len(word)]
            assert told == ("+".join([*letters, *([str(carry)] if carry else [])]) or "0")
            assert sum(digits[letter] for letter in letters) + carry == int(summed)
            carry = int(summed) // 10
            assert step.result == f"{total[-1 - c]}={int(summed) % 10} carry {carry}"
        assert carry == 0


@pytest.mark.parametrize("backtracks", [0, 1, 4, 15])
def test_a_search_shows_exactly_as_many_dead_ends_as_asked_each_another_branch(backtracks):
    task = LEVELS["easy"]
    style = TraceStyle(search="depth_first", backtracks=backtracks)
    for problem in task.generate(stream("search"), 4):
        trace = task.demonstrate(problem, style, stream("rng", problem.key))
        assert dead_ends(trace.steps) == backtracks
        assert task.verify(problem, trace.text).correct
        path, dead = {}, set()
        solution = dict(problem.certificate.digits)
        for step in trace.steps:
            letter, digit = re.match(r"try (\w)=(\d)", step.text).groups()
            if letter in path:
                path = dict(list(path.items())[: list(path).index(letter)])
            path[letter] = int(digit)
            if step.result.endswith("fails"):
                dead.add(tuple(path.items()))
                assert any(solution[known] != value for known, value in path.items())
        assert len(dead) == backtracks


def test_more_dead_ends_than_there_are_is_unrealisable():
    task = Cryptarithm(base=2, digits=(2, 5), addends=4)
    problem = task.generate(stream("few"), 1)[0]
    with pytest.raises(Unrealisable):
        task.demonstrate(problem, TraceStyle(search="depth_first", backtracks=300), stream("rng"))


def test_one_digit_sums_leave_one_puzzle():
    # A + B = BC is 9 + 1 = 10; every other sum of one-digit numbers can be lettered otherwise.
    problems = Cryptarithm(digits=(1, 1)).generate(stream("one"), 20)
    assert {problem.key for problem in problems} == {"cryptarithm:10:19|;19"}


def test_sums_that_are_left_out_unsearched_have_more_than_one_solution():
    # Two letters that stand once each, in one column: exchanging their digits is another solution.
    rows, leading = as_rows(("AB", "AC", "DA"))
    assert len(fitting(("AB", "AC", "DA"))) > 1
    assert kernels.count_assignments(rows, 2, 2, 10, leading, 2)[0] == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"addends": 1}, "2 to 4"),
        ({"base": 11}, "2 to 10"),
        ({"base": True}, "2 to 10"),
        ({"digits": (0, 2)}, "tuple"),
        ({"digits": [3, 4]}, "tuple"),
        ({"digits": (True, 3)}, "tuple"),
        ({"digits": (3, 7)}, "tuple"),
    ],
)
def test_what_cannot_be_drawn_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Cryptarithm(**fields)
