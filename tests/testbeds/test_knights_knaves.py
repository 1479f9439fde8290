"""Knights and knaves: one assignment of roles, by reading the prompt anew; strict answers; exact keys; true steps."""

import re
from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from testbeds.core import EXPLICIT, Problem, TraceStyle, Unrealisable
from testbeds.smt import knights_knaves_engine as engine
from testbeds.smt import oracle, search
from testbeds.smt.knights_knaves import LEVELS, KnightsKnaves, KnightsKnavesCertificate, canonical
from testbeds.smt.knights_knaves_engine import CONNECTIVES, NAMES
from testbeds.smt.working import dead_ends
from testbeds.streams import stream

COMBINED = {
    "and": lambda parts, knights: all(part(knights) for part in parts),
    "or": lambda parts, knights: any(part(knights) for part in parts),
    "iff": lambda parts, knights: parts[0](knights) == parts[1](knights),
    "implies": lambda parts, knights: not parts[0](knights) or parts[1](knights),
}


def parsed(text):
    """A statement in words as a function of the set of knights: a reader of the prompt that shares no code."""
    words = re.findall(r"[(),]|\w+", text)
    whole = statement(words)
    assert not words
    return whole


def operand(words):
    word = words.pop(0)
    if word == "(":
        inner = statement(words)
        assert words.pop(0) == ")"
        return inner
    if word == "not":
        denied = operand(words)
        return lambda knights: not denied(knights)
    verb = words.pop(0)
    if verb == "claims":
        claimed = operand(words)
        return lambda knights: (word in knights) == claimed(knights)
    assert verb == "is"
    role = words.pop(0)
    return lambda knights: (word in knights) == (role == "knight")


def statement(words):
    if words[0] == "exactly":
        _, count, _ = words.pop(0), int(words.pop(0)), words.pop(0)
        listed = joined(words, ",")
        return lambda knights: sum(part(knights) for part in listed) == count
    first = operand(words)
    if not words or words[0] not in COMBINED:
        return first
    combine, parts = COMBINED[words[0]], [first]
    connective = words.pop(0)
    parts += joined(words, connective)
    return lambda knights: combine(parts, knights)


def joined(words, mark):
    parts = [operand(words)]
    while words and words[0] == mark:
        words.pop(0)
        parts.append(operand(words))
    return parts


def said(prompt):
    """(speaker, meaning) of each statement of a prompt."""
    statements = []
    for number, part in enumerate(prompt.removesuffix(" ?").split(" ; "), 1):
        speaker, text = re.fullmatch(rf"{number} : (\w+) says (.*)", part).groups()
        statements.append((speaker, parsed(text)))
    return statements


def consistent(statements, people):
    """Every set of knights under which each speaker is a knight exactly if the statement is true."""
    names = NAMES[:people]
    sets = [{name for name, role in zip(names, roles, strict=True) if role} for roles in product((0, 1), repeat=people)]
    return [knights for knights in sets if all((who in knights) == true(knights) for who, true in statements)]


def answer(knights, people):
    return ",".join(f"{name} is {'knight' if name in knights else 'knave'}" for name in NAMES[:people])


VARIANTS = {
    **LEVELS,
    "A5": KnightsKnaves(people=5, width=5, depth=5),
    "two": KnightsKnaves(people=2),
    "wide": KnightsKnaves(people=8, width=5, depth=1, connectives=("exactly",)),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_prompts_read_anew_have_one_assignment_and_it_is_the_answer(name):
    task = VARIANTS[name]
    for problem in task.generate(stream("prompts", name), 4 if task.people == 8 or task.depth > 2 else 15):
        statements = said(problem.prompt)
        assert len(statements) == task.people * task.statements
        (knights,) = consistent(statements, task.people)
        assert task.verify(problem, answer(knights, task.people)).correct
        wrong = knights ^ {NAMES[0]}
        assert not task.verify(problem, answer(wrong, task.people)).correct


@pytest.mark.parametrize("name", ["medium", "nested", "two_statements", "claims"])
def test_z3_and_the_general_search_find_the_same_one_assignment(name):
    task = LEVELS[name]
    for problem in task.generate(stream("oracle", name), 3):
        puzzle = engine.puzzle(problem.certificate.statements, task.people)
        assert search.solutions(puzzle, 2) == [problem.certificate.knights]
        assert oracle.solutions(puzzle, 2) == [problem.certificate.knights]


@given(seed=st.integers(0, 10**6), depth=st.integers(1, 3), people=st.integers(2, 6))
def test_truth_tables_agree_with_the_declared_constraint_and_with_the_words(seed, depth, people):
    grammar = engine.Grammar(people, CONNECTIVES, 4)
    statement, drawn = grammar.draw(depth, engine.dice(stream("tables", seed)))
    assert engine.table(statement, people) == drawn
    assert engine.depth(statement) == depth
    constraint, meaning = engine.declared(statement), parsed(engine.told(statement))
    for knights in range(2**people):
        values = {name: knights >> person & 1 for person, name in enumerate(NAMES[:people])}
        true = bool(drawn >> knights & 1)
        assert constraint.holds(values) == true
        assert meaning({name for name, role in values.items() if role}) == true


# Ann: "Ben is knave"; Ben: "Ann is knight iff Ben is knight". If Ann is a knight, Ben is a knave, and his statement,
# "a knight iff a knave", is false, as it must be. If Ann is a knave, Ben is a knight, and his statement would be false.
BY_HAND = Problem(
    prompt="1 : Ann says Ben is knave ; 2 : Ben says Ann is knight iff Ben is knight ?",
    key="by hand",
    certificate=KnightsKnavesCertificate(
        people=2, statements=((0, ("is", 1, 0)), (1, ("iff", ("is", 0, 1), ("is", 1, 1)))), knights=(1, 0)
    ),
)
TWO = KnightsKnaves(people=2)
RIGHT = "Ann is knight , Ben is knave"


def test_the_puzzle_by_hand_is_read_as_derived():
    assert consistent(said(BY_HAND.prompt), 2) == [{"Ann"}]
    assert engine.solutions(BY_HAND.certificate.statements, 2) == 1 << 0b01


@pytest.mark.parametrize(
    "text", [RIGHT, "Ben is knave,Ann is knight", "Annisknight,Benisknave", f"who knows # {RIGHT}", f"\n {RIGHT}\t"]
)
def test_every_way_to_write_the_right_roles_is_accepted(text):
    assert TWO.verify(BY_HAND, text).correct


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("B34 a hedge", "Ann is knight or knave , Ben is knave or knight"),
        ("B34 as reported", "Ann: knight or knave? Ben: knave or knight?"),
        ("B14 inside other words", f"blah {RIGHT} blah"),
        ("B14 or maybe not", f"{RIGHT} or maybe not"),
        ("B26 no code block", "I do not know"),
        ("both roles", "Ann is knight , Ann is knave , Ben is knave"),
        ("twice the same", f"{RIGHT} , Ben is knave"),
        ("one missing", "Ann is knight"),
        ("somebody else", f"{RIGHT} , Cleo is knave"),
        ("no comma", "Ann is knight Ben is knave"),
        ("a full stop", f"{RIGHT} ."),
        ("an article", "Ann is a knight , Ben is a knave"),
        ("upper case", RIGHT.upper()),
        ("two marks", f"# {RIGHT} # {RIGHT}"),
        ("before the mark", f"{RIGHT} #"),
        ("A22 a number", "1"),
        ("the prompt", BY_HAND.prompt),
        ("half a character", "\ud800"),
    ],
)
def test_what_is_no_assignment_is_malformed(fault, text):
    verdict = TWO.verify(BY_HAND, text)
    assert not verdict.correct, fault
    assert not verdict.well_formed, fault


def test_a_wrong_assignment_names_the_first_statement_that_does_not_fit():
    # Ann a knave and Ben a knight: her statement is false, as it must be; his is false, as it must not be.
    verdict = TWO.verify(BY_HAND, "Ann is knave , Ben is knight")
    assert verdict.well_formed
    assert verdict.reason == "statement 2 of Ben is violated"
    assert verdict.progress == pytest.approx(1 / 2)


def renamed(certificate, order):
    """The same puzzle with person p called order[p]."""

    def inside(statement):
        if statement[0] == "is":
            return ("is", order[statement[1]], statement[2])
        moved = [inside(part) if isinstance(part, tuple) else part for part in statement[1:]]
        if statement[0] == "claims":
            moved[0] = order[moved[0]]
        if statement[0] in ("and", "or", "iff"):
            moved.reverse()
        return (statement[0], *moved)

    statements = sorted(((order[who], inside(what)) for who, what in certificate.statements), key=lambda pair: pair[0])
    knights = [0] * certificate.people
    for person, role in enumerate(certificate.knights):
        knights[order[person]] = role
    return replace(certificate, statements=tuple(statements), knights=tuple(knights))


@pytest.mark.parametrize("name", LEVELS)
def test_other_names_and_another_order_of_symmetric_parts_leave_the_key(name):
    rng = stream("renaming", name)
    for problem in LEVELS[name].generate(stream("keys", name), 10):
        image = renamed(problem.certificate, rng.permutation(problem.certificate.people).tolist())
        assert f"knights_knaves:{canonical(image.statements, image.knights)}" == problem.key


def test_keys_are_equal_exactly_where_other_names_make_one_puzzle_the_other():
    problems = KnightsKnaves(people=3, connectives=("and", "iff")).generate(stream("iff"), 120)

    def orbit(certificate):
        names = [[str(p) for p in order] for order in permutations(range(3))]
        written = [
            tuple(sorted((name[who], engine.written(what, name)) for who, what in certificate.statements))
            for name in names
        ]
        return min(written)

    by_key = {problem.key: orbit(problem.certificate) for problem in problems}
    assert all(orbit(problem.certificate) == by_key[problem.key] for problem in problems)
    assert len(set(by_key.values())) == len(by_key) > 30


def test_roles_are_uniform():
    counts = [0] * 8
    for problem in KnightsKnaves(people=3).generate(stream("uniform"), 1600):
        counts[int("".join(map(str, problem.certificate.knights)), 2)] += 1
    assert chisquare(counts).pvalue > 0.001  # 200 expected of each; the seed is fixed


@pytest.mark.parametrize("name", ["easy", "medium", "two_statements", "nested"])
def test_each_deduction_follows_from_its_statements_and_none_needs_fewer(name):
    task = LEVELS[name]
    for problem in task.generate(stream("deductions", name), 5):
        statements = said(problem.prompt)
        known, decided, reason = {}, {}, ""
        for step in task.demonstrate(problem, EXPLICIT, stream("rng")).steps:
            who, _, role = step.result.split()
            known |= (
                decided if step.operation != reason else {}
            )  # what one set of statements decides, it decides at once
            reason = step.operation
            used = [int(number) - 1 for number in re.findall(r"\d+", step.operation)]

            def forced(places, known=known, who=who, statements=statements):
                sets = [
                    knights
                    for knights in consistent([statements[place] for place in places], task.people)
                    if all((name in knights) == (role == "knight") for name, role in known.items())
                ]
                return len({who in knights for knights in sets}) == 1

            assert forced(used)
            assert not any(forced([place for place in used if place != left]) for left in used)
            decided[who] = role
        assert len(decided) == task.people


@pytest.mark.parametrize("backtracks", [0, 1, 2, 4])
def test_a_case_analysis_shows_exactly_as_many_contradictions_as_asked(backtracks):
    task = LEVELS["medium"]
    style = TraceStyle(search="depth_first", backtracks=backtracks)
    for problem in task.generate(stream("cases"), 8):
        trace = task.demonstrate(problem, style, stream("rng", problem.key))
        statements = said(problem.prompt)
        assert dead_ends(trace.steps) == backtracks
        assert task.verify(problem, trace.text).correct
        path, dead = {}, set()
        for step in trace.steps:
            who, _, role = step.text.split()[1:4]
            if who in path:
                path = dict(list(path.items())[: list(path).index(who)])
            path[who] = role
            if step.result.endswith("fails"):
                number = int(step.result.split()[0])
                left = consistent([statements[number - 1]], task.people)
                assert not [k for k in left if all((n in k) == (r == "knight") for n, r in path.items())]
                dead.add(tuple(path.items()))
        assert len(dead) == backtracks


def test_more_contradictions_than_a_tree_has_are_unrealisable():
    with pytest.raises(Unrealisable, match="exactly 9 dead ends"):  # two people have at most 3
        TWO.demonstrate(BY_HAND, TraceStyle(search="depth_first", backtracks=9), stream("rng"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"people": 1}, "2 to 8"),
        ({"people": 9}, "2 to 8"),
        ({"depth": 0}, "1 to 5"),
        ({"width": True}, "2 to 5"),
        ({"statements": 3}, "1 to 2"),
        ({"connectives": ()}, "connectives"),
        ({"connectives": ["and"]}, "connectives"),
        ({"connectives": ("or", "and")}, "in this order"),
        # Exchanging all knights and knaves leaves every such statement as it was, so there never is one solution.
        ({"connectives": ("not",)}, "hardly ever"),
        ({"connectives": ("claims",), "depth": 2}, "hardly ever"),
        # Of two knights who say "both are ..", each says "both are knights", which two knaves can say as well.
        ({"people": 2, "connectives": ("and",)}, "hardly ever"),
    ],
)
def test_what_cannot_be_drawn_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        KnightsKnaves(**fields)


@pytest.mark.parametrize("connectives", [("and", "or"), ("iff",), ("exactly",), ("iff", "implies"), CONNECTIVES])
def test_a_configuration_that_is_not_refused_can_be_drawn_from(connectives):
    for people in (3, 6):
        task = KnightsKnaves(people=people, depth=1, connectives=connectives)
        assert len(task.generate(stream("drawn", people, *connectives), 40)) == 40


def test_no_word_begins_another():
    symbols = KnightsKnaves(people=8).symbols
    assert not [(a, b) for a in symbols for b in symbols if a != b and b.startswith(a)]
