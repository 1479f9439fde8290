"""GeneralPoints: hands of cards under rules that shift, without a hand that leaks from one rule to another."""

import re
from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from testbeds import EXPLICIT, IMPLICIT, Mixture, Problem, Splits, Suite, TraceStyle, stream
from testbeds.countdown import Countdown
from testbeds.countdown_traces import backtracks_in
from testbeds.game24 import Game24
from testbeds.general_points import GeneralPoints, GeneralPointsCertificate, HasFace, RuleIs, _hands

TEN = GeneralPoints()
ASCENDING = GeneralPoints(faces="ascending")
SPLITS = Splits(fractions=(("train", 0.7), ("test", 0.3)))
FACE = {"ten": "10 10 10", "ascending": "11 12 13", "descending": "13 12 11"}


def count(card, rule):
    """What a card counts, by its own table."""
    rank = card[:-1]
    return {"A": 1, **dict(zip("JQK", map(int, FACE[rule].split()), strict=True))}.get(rank) or int(rank)


def hand(*cards, rule="ten", target=24):
    return Problem(
        prompt=f"{target}:{','.join(cards)}>",
        key="by hand",
        certificate=GeneralPointsCertificate(
            cards=cards,
            numbers=tuple(sorted(count(card, rule) for card in cards)),
            target=target,
            faces=rule,
            witness="0",
        ),
    )


# ----------------------------------------------------------------------------------------------------- the rules


def test_the_rule_decides_what_an_answer_is():
    cards = ("Jd", "Ah", "2s", "Kc")
    # J and K are 11 and 13 ascending, 13 and 11 descending, and 13 + 11 * (2 - 1) = 24. Under ten there is neither.
    assert ASCENDING.verify(hand(*cards, rule="ascending"), "13+11*(2-1)").correct
    assert not ASCENDING.verify(hand(*cards, rule="ten"), "13+11*(2-1)").correct
    assert GeneralPoints(faces="descending").verify(hand(*cards, rule="descending"), "13+11*(2-1)").correct
    assert not TEN.verify(hand("Js", "Qs", "Ks", "4s"), "J+Q+4").correct


@pytest.mark.parametrize("rule", FACE)
def test_the_prompt_states_the_rule_or_hides_it(rule):
    shown, hidden = GeneralPoints(faces=rule), GeneralPoints(faces=rule, rule_shown=False)
    first, second = (task.generate(stream("rule"), 1)[0] for task in (shown, hidden))
    jack, queen, king = FACE[rule].split()
    assert first.prompt == f"J={jack},Q={queen},K={king};{second.prompt}"
    assert re.fullmatch(r"24:((10|[2-9AJQK])[shdc],){3}(10|[2-9AJQK])[shdc]>", second.prompt)
    assert first.key == second.key
    assert first.certificate == second.certificate
    assert set(hidden.symbols) == set(shown.symbols)
    assert f"J counts {jack}" in shown.instructions
    assert f"J counts {jack}" not in hidden.instructions


def test_numbers_are_what_the_cards_count():
    for rule in FACE:
        for problem in GeneralPoints(faces=rule).generate(stream("numbers"), 50):
            certificate = problem.certificate
            assert certificate.numbers == tuple(sorted(count(card, rule) for card in certificate.cards))
            assert ",".join(certificate.cards) in problem.prompt


# ------------------------------------------------------------------------------------------------------- counts


def test_the_known_counts_of_solvable_hands():
    # Ascending is the 24 game from 1 to 13. Ten: the 566 hands from 1 to 10, each as often as its 10s can be chosen
    # among 10, J, Q, K: a hand with t tens stands for C(t+3, 3) hands of ranks.
    assert ASCENDING.capacity == GeneralPoints(faces="descending").capacity == 1362
    solvable = [p.certificate.numbers for p in Game24(values=(1, 10)).enumerate()]
    assert len(solvable) == 566
    assert TEN.capacity == sum(comb(numbers.count(10) + 3, 3) for numbers in solvable)


def test_a_pack_has_four_cards_of_a_rank():
    five = GeneralPoints(cards=5, target=40)
    most = max(np.unique(row, return_counts=True)[1].max() for row in _hands(five).ranks)
    assert most == 4  # such as 10 10 10 10 A; 8 8 8 8 8 would make 40, too


def test_hands_with_a_face_are_those_without_the_others():
    faced = GeneralPoints(faces="ascending", must_have_face=True)
    expected = {p.key for p in ASCENDING.enumerate() if re.search("[JQK]", p.key.partition("<-")[2])}
    assert {p.key for p in faced.enumerate()} == expected
    assert faced.capacity == 1362 - 566  # the hands without a face are those of the 24 game from 1 to 10
    assert all(HasFace()(p) and p.features["faces"] >= 1 for p in faced.generate(stream("faces"), 200))


# --------------------------------------------------------------------------------------------------------- draws


def test_hands_are_sets_of_different_cards_each_equally_likely():
    task = GeneralPoints(cards=3, must_have_face=True)
    problems = task.generate(stream("uniform"), 10_000)
    assert all(len(set(p.certificate.cards)) == 3 for p in problems)
    drawn = Counter(p.key for p in problems)
    sets = {
        p.key: prod(comb(4, times) for times in Counter(p.key.partition("<-")[2].split(",")).values())
        for p in task.enumerate()
    }
    total = sum(sets.values())
    assert set(drawn) <= set(sets)
    expected = [10_000 * sets[key] / total for key in sets]
    assert min(expected) > 5
    assert chisquare([drawn[key] for key in sets], expected).pvalue > 0.001


def test_suits_are_drawn_alike_for_equal_ranks_too():
    problems = TEN.generate(stream("suits"), 8000)
    suits = Counter(card[-1] for p in problems for card in p.certificate.cards)
    assert chisquare(list(suits.values())).pvalue > 0.001
    pairs = Counter(
        "".join(sorted(a[-1] + b[-1]))
        for p in problems
        for a, b in combinations(p.certificate.cards, 2)
        if a[:-1] == b[:-1]
    )
    assert len(pairs) == 6  # never the same card twice
    assert chisquare(list(pairs.values())).pvalue > 0.001
    first = Counter(p.certificate.cards[0][:-1] <= p.certificate.cards[1][:-1] for p in problems)
    assert 0.45 < first[True] / 8000 < 0.65  # in no particular order; equal ranks count as ascending


def test_suits_and_order_are_no_part_of_the_key():
    by_key = {}
    for problem in TEN.generate(stream("keys"), 4000):
        by_key.setdefault(problem.key, []).append(problem)
    again = [problems for problems in by_key.values() if len(problems) > 1]
    assert again
    assert any(len({p.prompt for p in problems}) > 1 for problems in again)
    for problems in again:
        assert len({tuple(sorted(card[:-1] for card in p.certificate.cards)) for p in problems}) == 1


def test_the_floor_is_the_best_constant_answer():
    # Under ten all hands with the same numbers take the same answer: their probabilities add up.
    by_numbers = Counter()
    for problem in TEN.enumerate():
        ranks = Counter(problem.key.partition("<-")[2].split(","))
        by_numbers[problem.certificate.numbers] += prod(comb(4, times) for times in ranks.values())
    best, sets = by_numbers.most_common(1)[0]
    assert TEN.floor(hand("As", "2s", "3s", "4s")) == pytest.approx(sets / by_numbers.total())
    # And that answer does as well on drawn hands: 8,000 draws at 1.1 % are 89 hits, standard deviation 9.4.
    answer = next(p.certificate.witness for p in TEN.enumerate() if p.certificate.numbers == best)
    hits = sum(TEN.verify(p, answer).correct for p in TEN.generate(stream("constant"), 8000))
    assert abs(hits - 8000 * TEN.floor(hand("As", "2s", "3s", "4s"))) < 40


# ------------------------------------------------------------------------------------------------------ the shift


def ranks_of(problem):
    return tuple(sorted(card[:-1] for card in problem.certificate.cards))


def test_the_same_hand_under_another_rule_is_another_problem_of_the_same_family():
    families, keys = {}, {}
    for task in (TEN, ASCENDING, GeneralPoints(faces="descending"), GeneralPoints(target=36)):
        for problem in task.enumerate():
            families.setdefault(ranks_of(problem), set()).add(problem.family)
            keys.setdefault(problem.key, []).append(problem)
    assert all(len(family) == 1 for family in families.values())
    assert all(len(problems) == 1 for problems in keys.values())


@pytest.mark.parametrize("shifted", [{"faces": "ascending"}, {"faces": "descending"}, {"target": 36}])
def test_no_hand_that_was_trained_on_is_tested_under_a_shift(shifted):
    trained = Suite(task=TEN, splits=SPLITS, seed=1).stream("train")[:2000]
    tested = Suite(task=GeneralPoints(must_have_face=True, **shifted), splits=SPLITS, seed=2).distinct("test", 150)
    assert not set(map(ranks_of, trained)) & set(map(ranks_of, tested))
    # Nor the same sum in other clothes: J 3 4 5 under ten is 10 3 4 5.
    assert not {p.certificate.numbers for p in trained} & {
        tuple(sorted(count(card, "ten") for card in p.certificate.cards)) for p in tested
    }


def test_a_space_that_is_too_small_is_refused_with_both_numbers():
    # The fault's example: 10,000 and 1,000 distinct hands do not exist; 1,236 do.
    suite = Suite(task=TEN, splits=SPLITS)
    sizes = [suite.capacity(split) for split in ("train", "test")]
    assert sum(sizes) == TEN.capacity == 1236
    with pytest.raises(ValueError, match=f"1000 distinct problems .* {sizes[1]}"):
        suite.distinct("test", 1000)


def test_predicates_hold_a_rule_or_its_hands_out_of_training_in_a_mixture_too():
    mixture = Mixture(tasks=(TEN, ASCENDING), weights=(1.0, 1.0), names=("ten", "ascending"))
    splits = Splits(held_out=(("rule", RuleIs(faces="ascending")), ("face", HasFace())))
    suite = Suite(task=mixture, splits=splits)
    for problem in suite.stream("train")[:64]:
        assert problem.prompt.startswith("J=10")
        assert not re.search("[JQK]", problem.prompt.partition(";")[2])
    assert all(p.prompt.startswith("J=11") for p in suite.stream("rule")[:64])
    assert all(re.search("[JQK]", p.prompt.partition(";")[2]) for p in suite.stream("face")[:64])
    assert not HasFace()(Countdown().generate(stream("other"), 1)[0])
    with pytest.raises(ValueError, match="ten, ascending, descending"):
        RuleIs(faces="eleven")


# ------------------------------------------------------------------------------------------------------ verdicts


def test_the_faults_of_public_graders_are_not_here():
    threes = hand("3s", "3h", "8d", "8c")
    # B32: reward 0 for 23.99999999999999.
    assert TEN.verify(threes, "8/(3-8/3)").correct
    # A15: target never checked. B6: a constant answer.
    assert not TEN.verify(threes, "3+3+8+8").correct
    assert not TEN.verify(threes, "6*4*1*1").correct
    # A14: only what follows the mark counts.
    assert not TEN.verify(threes, "8/(3-8/3)#3*8").correct
    assert TEN.verify(threes, "3s=3,3h=3,8d=8,8c=8#8/(3-8/3)").correct
    assert not TEN.verify(threes, "8d/(3s-8c/3h)").correct


@given(st.text(alphabet="0123456789+-*/()#=JQKA shdc,", max_size=40))
def test_a_verdict_agrees_with_exact_evaluation(text):
    verdict = TEN.verify(hand("As", "2s", "3s", "4s"), text)
    answer = text.rpartition("#")[2]
    assert not verdict.correct or (
        sorted(re.findall(r"\d+", answer)) == ["1", "2", "3", "4"]
        and eval(re.sub(r"(\d+)", r"Fraction(\1)", answer), {"Fraction": Fraction}) == 24
    )


# ------------------------------------------------------------------------------------------------ demonstrations


def test_a_worked_answer_first_says_what_the_cards_count():
    problem = hand("3s", "8h", "3d", "8c")
    text = TEN.demonstrate(problem, EXPLICIT, stream("worked")).text
    assert text == "3s=3,8h=8,3d=3,8c=8,8/3=(8/3),3-(8/3)=(1/3),8/(1/3)=24#8/(3-8/3)"
    assert TEN.demonstrate(problem, IMPLICIT, stream("worked")).text == "8/(3-8/3)"
    queen = GeneralPoints(faces="ascending", must_have_face=True).generate(stream("queen"), 20)
    for problem in queen:
        trace = ASCENDING.demonstrate(problem, EXPLICIT, stream("queen"))
        lines = trace.text.partition("#")[0].split(",")
        assert lines[:4] == [f"{card}={count(card, 'ascending')}" for card in problem.certificate.cards]
        assert lines[-1].endswith("=24")


def test_searches_come_after_what_the_cards_count():
    for problem in ASCENDING.generate(stream("search"), 10):
        for k in (0, 2, 5):
            trace = ASCENDING.demonstrate(
                problem, TraceStyle(search="depth_first", backtracks=k), stream("search", problem.key)
            )
            assert backtracks_in(trace) == k
            assert ASCENDING.verify(problem, trace.text).correct
            opening = [f"{card}={count(card, 'ascending')}" for card in problem.certificate.cards]
            assert trace.text.split(";")[:4] == opening


# -------------------------------------------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cards": 2}, "3 to 6"),
        ({"cards": True}, "3 to 6"),
        ({"faces": "eleven"}, "ten, ascending, descending"),
        ({"faces": ["ten"]}, "ten, ascending, descending"),
        ({"rule_shown": 1}, "True or False"),
        ({"must_have_face": None}, "True or False"),
        ({"target": 0}, "at least 1"),
        ({"target": 24.0}, "at least 1"),
        ({"target": 10**25}, "no hand"),
        ({"cards": 3, "target": 1331}, "no hand"),  # 11*11*11, but 10*10*10 is the largest product
    ],
)
def test_what_cannot_be_is_refused_at_once(changes, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        GeneralPoints(**changes)


def test_another_testbeds_problem_is_refused_with_a_reason():
    other = Countdown().generate(stream("other"), 1)[0]
    with pytest.raises(TypeError, match="GeneralPointsCertificate"):
        TEN.verify(other, "1")


def test_all_hands_of_the_pack_are_looked_at():
    # 1,820 multisets of ranks; those that are left out make 24 under no order of operations (see test_game24).
    left_out = 1820 - ASCENDING.capacity
    assert len(list(combinations_with_replacement(range(13), 4))) - 1362 == left_out


def test_a_target_that_hardly_any_large_hand_makes_is_refused_in_bounded_time(monkeypatch):
    # The tree of one hand of six numbers has millions of states; nearly all of thousands of hands would exhaust theirs.
    monkeypatch.setattr("testbeds.game24_hands.MOST_STATES", 5_000_000)
    with pytest.raises(ValueError, match="hands of 6 numbers do not make .* take a target that more hands make"):
        GeneralPoints(cards=6, faces="ascending", target=9_973)
