"""GeneralPoints: make a target from a hand of playing cards, under one of several rules for J, Q and K.

After Chu et al. 2025, "SFT memorizes, RL generalizes". Texts (white space between symbols is free, and means nothing):

==================  ======================================  =========================================================
what                example                                 grammar
==================  ======================================  =========================================================
prompt              ``J=10,Q=10,K=10;24:10s,Jd,4c,Ah>``     ``RULE ";" TARGET ":" CARD ("," CARD)* ">"``
.. rule hidden      ``24:10s,Jd,4c,Ah>``                    a card is its rank, A 2 to 10 J Q K, and its suit, s h d c
answer              ``10+10+4*1``                           ``EXPR`` of arithmetic.py over the numbers of the cards
.. with working     ``10s=10,Jd=10,4c=4,Ah=1,10+10=20,      ``WORKING "#" EXPR``: one mark; only what follows it is
                    4*1=4,20+4=24#10+10+4*1``               read, and the working is free text
.. with a search    the cards' numbers, then a search as    see countdown_traces.py
                    in ``10s=10;Jd=10;4c=4;Ah=1;10+10=...``
==================  ======================================  =========================================================

An answer is right if its exact value is the target and it uses the number of each card exactly once.

A study that trains under one rule and tests under another gives both suites the same splits. Hands are dealt to splits
by their ranks with J, Q, K and 10 taken for one, whatever the rule and the target, so that no hand that was trained on
is tested, nor one that asks for the same sum under any rule::

    trained = Suite(task=GeneralPoints(faces="ten"), splits=SPLITS).stream("train")
    same_rule = Suite(task=GeneralPoints(faces="ten"), splits=SPLITS).distinct("test", 100)
    other_rule = Suite(task=GeneralPoints(faces="ascending", must_have_face=True), splits=SPLITS).distinct("test", 100)

Within one suite of a mixture of rules, ``Splits(held_out=(("ascending", RuleIs(faces="ascending")),))`` keeps a rule
out of training, and ``HasFace()`` the hands that a rule is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final, get_args

from numpy.random import Generator

from testbeds import countdown_search
from testbeds.arithmetic import OPERATORS, shown
from testbeds.core import ANSWER_MARK, Problem, Step, Task, Trace, TraceStyle, Verdict
from testbeds.countdown_traces import SEARCH_SYMBOLS
from testbeds.countdown_traces_states import Puzzle
from testbeds.countdown_verify import Question, verify_expression
from testbeds.game24_hands import facts, has_lucky_play, worked
from testbeds.general_points_deck import (
    FACE_VALUES,
    FACES,
    RANKS,
    RULES,
    SUITS,
    FaceRule,
    Hands,
    deal,
    rank_of,
    rank_values,
    solvable_hands,
    with_suits,
)
from testbeds.mixture import innermost
from testbeds.streams import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralPointsCertificate:
    """What the verifier needs, and one right answer."""

    cards: tuple[str, ...]
    """In the order of the prompt, such as ``10s``."""
    numbers: tuple[int, ...]
    """What they count, in ascending order."""
    target: int
    faces: FaceRule
    """The rule under which the cards count that."""
    witness: str
    """A right expression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralPoints:
    """A hand of cards that makes the target.

    Hands are drawn uniformly from the solvable sets of different cards of one pack of 52, in any order. The key sorts
    the ranks and names rule and target; suits and whether the rule is shown are no part of it.

    Floor: the best constant answer, blind to the prompt: the probability of the likeliest numbers, exactly.
    """

    revision: ClassVar[int] = 1
    key_note: ClassVar[str] = (
        "a problem is its multiset of ranks, the rule for J, Q, K and the target; splits are dealt by the ranks alone,"
        " with J, Q, K and 10 taken for one, so a hand stands on one side under every rule and target"
    )

    cards: int = 4
    """How many cards a hand has, 3 to 6."""
    faces: FaceRule = "ten"
    """What J, Q, K count: ``ten``: 10 each; ``ascending``: 11, 12, 13; ``descending``: 13, 12, 11."""
    rule_shown: bool = True
    """Whether the prompt states what J, Q and K count."""
    target: int = 24
    """What is to be made."""
    must_have_face: bool = False
    """Whether every hand has at least one of J, Q, K, so that the rule matters."""

    def __post_init__(self) -> None:
        _check_fields(self)
        if not _is_solvable(self):
            raise ValueError(
                f"GeneralPoints: no hand of {self.cards} cards makes {self.target} with J, Q, K as"
                f" {FACE_VALUES[self.faces]}; change target, cards or faces"
            )

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*"0123456789", *OPERATORS, *"()=,:>", ANSWER_MARK, *SEARCH_SYMBOLS, "A", *FACES, *SUITS)

    @property
    def instructions(self) -> str:
        jack, queen, king = FACE_VALUES[self.faces]
        rule = (
            f"J counts {jack}, Q {queen} and K {king}, as the prompt says before its semicolon"
            if self.rule_shown
            else "J, Q and K each count a number from 10 to 13 that the prompt does not tell"
        )
        return (
            f"You are dealt {self.cards} playing cards and must make exactly {self.target} from their numbers. The"
            f" prompt shows the target, a colon, and the cards separated by commas; it ends with >. A card is its rank"
            f" (A, 2 to 10, J, Q, K) and its suit (s, h, d or c), which does not matter. A counts 1, number cards count"
            f" their number; {rule}. Use the number of each card exactly once, the operators {' '.join(OPERATORS)} and"
            f" parentheses, and nothing else; numbers must not be joined to longer ones and nothing is rounded. Answer"
            f" with one expression over the numbers, such as 8/(3-8/3) for 8s,3d,3h,8c and the target 24. You may"
            f" write your working before it; then put a single {ANSWER_MARK} between the working and the expression."
        )

    @property
    def capacity(self) -> int | None:
        return len(_hands(self).ranks)

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        return [self._problem(cards) for cards in deal(_hands(self), rng, count)]

    def enumerate(self) -> Iterable[Problem] | None:
        return self._walk()

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """What each card counts, then a solution drawn uniformly from the distinct ones, or a search for one."""
        hand = _hand(problem)
        numbers = _numbers(hand.cards, hand.faces)
        opening = tuple(
            Step(operation=card, result=str(number), text=f"{card}={number}")
            for card, number in zip(hand.cards, numbers, strict=True)
        )
        puzzle = Puzzle(numbers=numbers, target=hand.target, rules=RULES, witness=hand.witness)
        return worked(puzzle, opening, style, rng)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the grammar at the top; progress is 1/2 for the right numbers with a wrong value."""
        hand = _hand(problem)
        question = Question(numbers=hand.numbers, target=hand.target, rules=RULES, numerals="digits")
        return verify_expression(question, completion)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """None: working and redundant parentheses make them countless (see ``answers``)."""
        return None

    def answers(self, problem: Problem) -> Iterator[str]:
        """One right expression for each distinct solution, under the equivalence of countdown_search.py."""
        hand = _hand(problem)
        return (tree.text() for tree in countdown_search.expressions(hand.numbers, RULES, hand.target))

    def floor(self, problem: Problem) -> float:
        """Success probability of the best answer that does not look at the prompt."""
        return _hands(self).likeliest_numbers

    def _walk(self) -> Iterator[Problem]:
        for ranks in _hands(self).ranks.tolist():
            # In an order of its own, as dealt hands are: sorted prompts would be another distribution.
            rng = stream("general points deal", self.target, *ranks)
            yield self._problem(with_suits(rng.permutation(ranks).tolist(), rng))

    def _problem(self, cards: tuple[str, ...]) -> Problem:
        numbers = tuple(sorted(_numbers(cards, self.faces)))
        known = facts(numbers, self.target, RULES)
        ranks = sorted(map(rank_of, cards), key=RANKS.index)
        family = ["10" if rank in FACES else rank for rank in ranks]
        rule = ",".join(f"{face}={value}" for face, value in zip(FACES, FACE_VALUES[self.faces], strict=True))
        return Problem(
            prompt=f"{f'{rule};' if self.rule_shown else ''}{self.target}:{','.join(cards)}>",
            key=f"general_points:{self.faces};{self.target}<-{','.join(ranks)}",
            family=f"general_points:{','.join(family)}",
            certificate=GeneralPointsCertificate(
                cards=cards, numbers=numbers, target=self.target, faces=self.faces, witness=known.witness
            ),
            features={"faces": sum(rank in FACES for rank in ranks), **known.features},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HasFace:
    """Holds for hands with a J, Q or K: those on which the rules differ."""

    revision: ClassVar[int] = 1

    def __call__(self, problem: Problem) -> bool:
        certificate = innermost(problem.certificate)
        return isinstance(certificate, GeneralPointsCertificate) and any(
            rank_of(card) in FACES for card in certificate.cards
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleIs:
    """Holds for hands that are played under a rule."""

    revision: ClassVar[int] = 1

    faces: FaceRule
    """The rule that is held out."""

    def __post_init__(self) -> None:
        if self.faces not in get_args(FaceRule):
            raise ValueError(f"RuleIs.faces must be one of {', '.join(get_args(FaceRule))}, got {self.faces!r}")

    def __call__(self, problem: Problem) -> bool:
        certificate = innermost(problem.certificate)
        return isinstance(certificate, GeneralPointsCertificate) and certificate.faces == self.faces


def _numbers(cards: tuple[str, ...], faces: FaceRule) -> tuple[int, ...]:
    """What the cards count, in their order."""
    counts = _counts(faces)
    return tuple([counts[rank_of(card)] for card in cards])


@lru_cache(maxsize=len(FACE_VALUES))
def _counts(faces: FaceRule) -> dict[str, int]:
    return dict(zip(RANKS, rank_values(faces).tolist(), strict=True))


def _hand(problem: Problem) -> GeneralPointsCertificate:
    certificate = problem.certificate
    if not isinstance(certificate, GeneralPointsCertificate):
        raise TypeError(
            f"GeneralPoints reads problems with a GeneralPointsCertificate, got {type(certificate).__name__} for the"
            f" prompt {shown(problem.prompt)}; ask the task that made the problem"
        )
    return certificate


@lru_cache(maxsize=16)  # the rules and targets that one study works with
def _hands(task: GeneralPoints) -> Hands:
    return solvable_hands(task.cards, task.target, task.faces, needs_face=task.must_have_face)


# -------------------------------------------------------------------------------------------------- validation


def _check_fields(task: GeneralPoints) -> None:
    if type(task.cards) is not int or not 3 <= task.cards <= 6:
        raise ValueError(f"GeneralPoints.cards must be a whole number from 3 to 6, got {task.cards!r}")
    if task.faces not in get_args(FaceRule):
        raise ValueError(f"GeneralPoints.faces must be one of {', '.join(get_args(FaceRule))}, got {task.faces!r}")
    for name, value in (("rule_shown", task.rule_shown), ("must_have_face", task.must_have_face)):
        if type(value) is not bool:
            raise ValueError(f"GeneralPoints.{name} must be True or False, got {value!r}")
    if type(task.target) is not int or task.target < 1:
        raise ValueError(f"GeneralPoints.target must be a whole number of at least 1, got {task.target!r}")


@lru_cache(maxsize=256)
def _is_solvable(task: GeneralPoints) -> bool:
    """Whether there is a solvable hand: a lucky play says so at once, else all hands are tried."""
    if task.target > RULES.magnitude(task.cards, len(RANKS)):
        return False
    rng = stream("general points", "pilot")
    pack = [(rank, suit) for rank in range(len(RANKS)) for suit in SUITS]
    values = rank_values(task.faces).tolist()

    def draw() -> tuple[int, ...]:
        ranks = [pack[card][0] for card in rng.choice(len(pack), size=task.cards, replace=False).tolist()]
        if task.must_have_face and max(ranks) < RANKS.index(FACES[0]):
            ranks[0] = RANKS.index(FACES[int(rng.integers(len(FACES)))])
        return tuple([values[rank] for rank in ranks])

    return has_lucky_play(draw, task.target, RULES, rng) or bool(len(_hands(task).ranks))


TESTBED: Final[type[Task]] = GeneralPoints
LEVELS: Final[dict[str, Task]] = {
    "ten": GeneralPoints(),
    "ascending": GeneralPoints(faces="ascending", must_have_face=True),
    "descending": GeneralPoints(faces="descending", must_have_face=True),
    "hidden": GeneralPoints(faces="ascending", rule_shown=False),
    "target_36": GeneralPoints(target=36),
}
