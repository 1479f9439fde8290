"""An adapter to the reasoning-gym package: its tasks under our keyed randomness, splits and verifier contract.

The package is optional: ``pip install "stagecraft[reasoning-gym]"``. Without it this module can be imported, and making
a task says what to install.

Texts. The prompt is the package's question, the answer is what its scorer reads, in one of two spellings:

=========  ===========================================  ==============================================================
field      prompt and answer                            for
=========  ===========================================  ==============================================================
marked     a visible symbol for each white space:       the laboratory's own policies: their tokenizers skip white
           ``␣`` space, ``⏎`` line end, ``⇥`` tab;      space, which often carries meaning here (grids, lists)
           real white space means nothing
plain      as the package has them; white space         other people's trainers
           around the answer means nothing
=========  ===========================================  ==============================================================

``WORKING "#" ANSWER``: one mark; only what follows it is read. Where the package's answers themselves contain ``#``
(``reasoning_gym_tasks.MARKED_ANSWERS``) the whole completion is the answer.

What the scorers accept is theirs, not ours: an answer is right if it scores exactly 1. Tasks whose scorers are known to
accept wrong answers, to run text as code, to reject their own answers or to have none are refused with the reason; see
``survey``. An answer is refused unread where it is longer than LONGEST_ANSWER, or has a character outside the lexicon;
an exception of the scorer is a wrong answer. None of the scorers of tasks that are not refused runs text as code.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from io import StringIO
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.random import Generator

from testbeds.arithmetic import Flaw, shown
from testbeds.core import ANSWER_MARK, Problem, Task, Trace, TraceStyle, Verdict
from testbeds.reasoning_gym_tasks import EXTRA_CHARACTERS, FRESH, MARKED_ANSWERS, NEVER, NOTES, SEED_BITS, UNSOUND
from testbeds.streams import stream

WhiteSpace = Literal["marked", "plain"]
Setting = int | float | str | bool | tuple["Setting", ...]
Settings = tuple[tuple[str, Setting], ...]

MARKS: Final = {" ": "␣", "\n": "⏎", "\t": "⇥"}
INSTALL: Final = 'pip install "stagecraft[reasoning-gym]"'
LONGEST_TEXT = 100_000  # characters of a completion, working included; longer ones are malformed unread
LONGEST_ANSWER = 10_000  # the longest of the package's own answers that was seen has 4,152
MOST_REJECTED = 200  # questions in a row; the worst task that is not refused rejects 1 in 50
FLOOR_PROBLEMS = 200
CACHED_ITEMS = 2_048
WORDS = 624  # of 32 bits: the state of a Mersenne twister, which both global generators are


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningGymCertificate:
    """From what the package makes the problem again, and its own answer."""

    seed: int
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningGym:
    """One task of the reasoning-gym package.

    Every problem has a seed of its own, drawn from the stream. The package's tasks may draw from the global generators,
    too: these are seeded for each problem and put back. A question is drawn again where the package's own answer is no
    text or does not score 1, or where it has a character outside the lexicon.

    The key is the text of the question: two wordings of one puzzle are two problems here.

    The floor is the share of the most frequent of the package's own answers among 200 fixed problems, blind to the
    question: a measured estimate of what the best constant answer gets at least.
    """

    revision: ClassVar[int] = 1
    key_note: ClassVar[str] = "the text of the question; rewordings and symmetries of a puzzle count as other problems"

    dataset: str
    """The package's name of the task, such as ``chain_sum``."""
    settings: Settings = ()
    """Fields of the task's own configuration as (name, value), in alphabetical order; tuples for lists."""
    allow_unsound: bool = False
    """Whether a task is made whose scorer is known to accept wrong answers. Never one that runs answers as code."""
    white_space: WhiteSpace = "marked"
    """How white space in questions and answers is written."""

    def __post_init__(self) -> None:
        _check_fields(self)
        _check_dataset(self)
        _check_settings(self)
        try:
            _scorer(self.dataset, self.settings)
        except Exception as failure:
            raise ValueError(
                f"reasoning_gym makes no {self.dataset!r} with settings={self.settings}: {failure!r}"
            ) from failure

    @property
    def symbols(self) -> tuple[str, ...]:
        marks = tuple(MARKS.values()) if self.white_space == "marked" else ()
        return (*map(chr, range(33, 127)), *marks, *EXTRA_CHARACTERS.get(self.dataset, ""))

    @property
    def instructions(self) -> str:
        marked = (
            f' Spaces are written as "{MARKS[" "]}", line ends as "{MARKS[chr(10)]}" and tabs as "{MARKS[chr(9)]}", in'
            f" the question and in your answer; other white space means nothing."
            if self.white_space == "marked"
            else ""
        )
        working = (
            " Write nothing but the answer, in the form that the question asks for."
            if self.dataset in MARKED_ANSWERS
            else f" Write the answer alone, in the form that the question asks for. You may work first: then write one"
            f' "{ANSWER_MARK}" and the answer after it.'
        )
        return f"Answer the question.{marked}{working}"

    @property
    def capacity(self) -> int | None:
        return None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        return [self._draw(rng) for _ in range(count)]

    def enumerate(self) -> Iterable[Problem] | None:
        return None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """The package's own answer. It knows no working, so an explicit trace is the answer, too."""
        if style.granularity == "composed" or style.order != "forward" or style.search != "optimal":
            raise ValueError(
                f"ReasoningGym writes the answer alone (explicit or implicit, forward, without a search), got the style"
                f" {style.name!r}"
            )
        answer = self._written(_certificate(problem).answer)
        return Trace.worked((), answer)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict of the package's scorer, made total.

        ``progress`` is the score, cut to [0, 1]; below 1 unless correct. As the package has no grammar of answers, a
        wrong answer counts as well-formed if its characters are of the kinds that its own answer has: letters, digits,
        white space, and each other character by itself.
        """
        own = _certificate(problem)
        answer = self._read(completion)
        if isinstance(answer, Flaw):
            return Verdict(correct=False, well_formed=False, progress=0.0, reason=answer.reason)
        score = _score(self.dataset, self.settings, own.seed, answer)
        if score == 1.0:
            return Verdict(correct=True, well_formed=True, progress=1.0, reason="the scorer of reasoning_gym gives 1")
        is_formed = _kinds(answer) <= _kinds(own.answer)
        if isinstance(score, Flaw):
            return Verdict(correct=False, well_formed=is_formed, progress=0.0, reason=score.reason)
        progress = min(max(score, 0.0), math.nextafter(1, 0)) if math.isfinite(score) else 0.0
        reason = f"the scorer of reasoning_gym gives {score:.6g} for {shown(answer)}, not 1"
        return Verdict(correct=False, well_formed=is_formed, progress=progress, reason=reason)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        return None

    def floor(self, problem: Problem) -> float:
        return _floor(self)

    def _draw(self, rng: Generator) -> Problem:
        flaw = ""
        for _ in range(MOST_REJECTED):
            seed = int(rng.integers(2 ** SEED_BITS.get(self.dataset, 63)))
            problem = self._problem(seed)
            if isinstance(problem, Problem):
                return problem
            flaw = problem.reason
        raise ValueError(
            f"{MOST_REJECTED} questions of reasoning_gym's {self.dataset!r} in a row were rejected, the last one"
            f" because {flaw}; change settings={self.settings}"
        )

    def _problem(self, seed: int) -> Problem | Flaw:
        """The problem of a seed, or why it is rejected."""
        try:
            question, answer = _item(self.dataset, self.settings, seed)
        except Exception as failure:  # noqa: BLE001  # another package's code may raise anything
            return Flaw(reason=f"its generator raised {failure!r}")
        if not isinstance(question, str) or not isinstance(answer, str) or not answer.strip():
            return Flaw(reason="it has no answer of its own")
        answer = answer.strip()
        alien = self._alien(question + answer)
        if alien:
            return Flaw(reason=f"it has the character {alien!r}, which is not in the lexicon")
        if self._read(self._written(answer)) != answer:
            return Flaw(reason="its own answer is no answer in the grammar")
        if _score(self.dataset, self.settings, seed, answer) != 1.0:
            return Flaw(reason="its own answer does not score 1")
        return Problem(
            prompt=self._written(question),
            key=f"reasoning_gym:{self.dataset};{question}",
            certificate=ReasoningGymCertificate(seed=seed, answer=answer),
            features={"question_characters": len(question), "answer_characters": len(answer)},
        )

    def _written(self, text: str) -> str:
        if self.white_space == "plain":
            return text
        return "".join([MARKS.get(character, character) for character in text])

    def _alien(self, text: str) -> str:
        """The first character that cannot be written; empty if there is none."""
        known = _known(self.dataset)
        return next((character for character in text if character not in known), "")

    def _read(self, completion: str) -> str | Flaw:
        if len(completion) > LONGEST_TEXT:
            return Flaw(reason=f"the completion has {len(completion)} characters, at most {LONGEST_TEXT} are read")
        marks = 0 if self.dataset in MARKED_ANSWERS else completion.count(ANSWER_MARK)
        if marks > 1:
            return Flaw(reason=f"the mark {ANSWER_MARK!r} stands {marks} times, at most once is allowed")
        answer = completion.rpartition(ANSWER_MARK)[2] if marks else completion
        if self.white_space == "marked":
            answer = "".join(answer.split())
            for character, mark in MARKS.items():
                answer = answer.replace(mark, character)
        answer = answer.strip()
        if not answer:
            return Flaw(reason="the answer is empty")
        if len(answer) > LONGEST_ANSWER:
            return Flaw(reason=f"the answer has {len(answer)} characters, at most {LONGEST_ANSWER} are read")
        alien = self._alien(answer)
        return Flaw(reason=f"{alien!r} is not in the lexicon") if alien else answer


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRow:
    """What is known of one task of the package."""

    dataset: str
    status: Literal["usable", "unsound", "refused"]
    """``unsound`` ones need allow_unsound=True; ``refused`` ones are never made."""
    note: str
    """Why not, or what to know."""


def survey() -> list[SurveyRow]:
    """Every task of the installed package, in alphabetical order."""
    rows = []
    for dataset in sorted(_package().factory.DATASETS):
        status: Literal["usable", "unsound", "refused"] = (
            "refused" if dataset in NEVER else "unsound" if dataset in UNSOUND else "usable"
        )
        note = NEVER.get(dataset) or UNSOUND.get(dataset) or NOTES.get(dataset, "")
        rows.append(SurveyRow(dataset=dataset, status=status, note=note))
    return rows


def is_installed() -> bool:
    """Whether the package is there."""
    return importlib.util.find_spec("reasoning_gym") is not None


# ------------------------------------------------------------------------------------------------- the package


def _package() -> Any:  # noqa: ANN401  # an untyped module
    if not is_installed():
        raise ValueError(f"ReasoningGym needs the package reasoning-gym, which is not installed: {INSTALL}")
    return importlib.import_module("reasoning_gym")


@contextmanager
def _isolated(*key: str | int) -> Iterator[None]:
    """The global generators, seeded by a key for the time being and put back afterwards."""
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002  # to put it back
    words = stream("reasoning_gym", *key).integers(2**32, size=(2, WORDS), dtype=np.uint32)
    random.setstate((3, (*words[0].tolist(), WORDS), None))
    np.random.set_state(("MT19937", words[1], WORDS, 0, 0.0))  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002


def _made(dataset: str, settings: Settings, seed: int) -> Any:  # noqa: ANN401  # an untyped object
    return _package().create_dataset(dataset, size=1, seed=seed, **dict(settings))


@lru_cache(maxsize=64)
def _scorer(dataset: str, settings: Settings) -> Any:  # noqa: ANN401  # an untyped object
    """The package's object for a task; it also makes the questions of tasks whose objects take long to make."""
    with _isolated(dataset):
        return _made(dataset, settings, 0)


@lru_cache(maxsize=CACHED_ITEMS)
def _entry(dataset: str, settings: Settings, seed: int) -> Any:  # noqa: ANN401  # an untyped dict
    with _isolated(dataset, seed):
        if dataset in FRESH:
            return _made(dataset, settings, seed)[0]
        return _scorer(dataset, settings)[seed]  # the package seeds an item with the sum of seed and place


def _item(dataset: str, settings: Settings, seed: int) -> tuple[object, object]:
    """Question and answer."""
    entry = _entry(dataset, settings, seed)
    return entry["question"], entry["answer"]


def _score(dataset: str, settings: Settings, seed: int, answer: str) -> float | Flaw:
    """What the package's scorer gives, or the exception it raises."""
    entry = deepcopy(_entry(dataset, settings, seed))
    try:
        with redirect_stdout(StringIO()):  # some scorers print
            return float(_scorer(dataset, settings).score_answer(answer, entry))
    except Exception as failure:  # noqa: BLE001  # another package's code may raise anything
        return Flaw(reason=f"the scorer of reasoning_gym raised {type(failure).__name__} for {shown(answer)}")


@lru_cache(maxsize=128)
def _known(dataset: str) -> frozenset[str]:
    """The characters that questions and answers may have."""
    return frozenset((*map(chr, range(33, 127)), *MARKS, *EXTRA_CHARACTERS.get(dataset, "")))


def _kinds(text: str) -> frozenset[str]:
    """The kinds of characters in a text."""
    kinds = ["1" if c.isdigit() else "a" if c.isalpha() else " " if c.isspace() else c for c in text]
    return frozenset(kinds)


def _certificate(problem: Problem) -> ReasoningGymCertificate:
    if not isinstance(problem.certificate, ReasoningGymCertificate):
        raise TypeError(
            f"ReasoningGym reads problems with a ReasoningGymCertificate, got {type(problem.certificate).__name__}; ask"
            f" the task that made the problem"
        )
    return problem.certificate


@lru_cache(maxsize=64)
def _floor(task: ReasoningGym) -> float:
    answers = [_certificate(problem).answer for problem in task.generate(stream("best answer"), FLOOR_PROBLEMS)]
    return Counter(answers).most_common(1)[0][1] / len(answers)


# -------------------------------------------------------------------------------------------------- validation


def _check_fields(task: ReasoningGym) -> None:
    if type(task.allow_unsound) is not bool:
        raise ValueError(f"ReasoningGym.allow_unsound must be True or False, got {task.allow_unsound!r}")
    if task.white_space not in ("marked", "plain"):
        raise ValueError(f"ReasoningGym.white_space must be 'marked' or 'plain', got {task.white_space!r}")


def _check_dataset(task: ReasoningGym) -> None:
    names = sorted(_package().factory.DATASETS)
    if task.dataset not in names:
        close = ", ".join(map(repr, get_close_matches(str(task.dataset), names, n=3)))
        raise ValueError(
            f"reasoning_gym has no task {task.dataset!r}{f'; did you mean {close}' if close else ''}? survey() lists"
            f" them"
        )
    if task.dataset in NEVER:
        raise ValueError(f"reasoning_gym's {task.dataset!r} is refused: {NEVER[task.dataset]}")
    if task.dataset in UNSOUND and not task.allow_unsound:
        raise ValueError(
            f"reasoning_gym's {task.dataset!r} is refused: {UNSOUND[task.dataset]}; allow_unsound=True makes it all the"
            f" same"
        )


def _check_settings(task: ReasoningGym) -> None:
    settings: object = task.settings
    if not isinstance(settings, tuple) or not all(isinstance(entry, tuple) and len(entry) == 2 for entry in settings):
        raise ValueError(f"ReasoningGym.settings must be a tuple of (name, value) pairs, got {settings!r}")
    names = [name for name, _ in task.settings]
    if names != sorted(set(map(str, names))):
        raise ValueError(f"ReasoningGym.settings must be in alphabetical order, each name once, got {names}")
    config = _package().factory.DATASETS[task.dataset][1]
    known = sorted(set(config.__dataclass_fields__) - {"seed", "size"})
    for name, value in task.settings:
        if name not in known:
            raise ValueError(f"reasoning_gym's {task.dataset!r} has no setting {name!r}; it has {', '.join(known)}")
        if not _is_setting(value):
            raise ValueError(f"the setting {name!r} must be a number, a str, a bool or a tuple of these, got {value!r}")


def _is_setting(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_setting, value))
    return isinstance(value, int | float | str) and not (isinstance(value, float) and not math.isfinite(value))


TESTBED: Final[type[Task]] = ReasoningGym
LEVELS: dict[str, Task]


def __getattr__(name: str) -> dict[str, Task]:
    """``LEVELS``, made when it is first asked for, as it imports the package; empty where that is not installed."""
    if name != "LEVELS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _levels() if is_installed() else {}


@lru_cache(maxsize=1)
def _levels() -> dict[str, Task]:
    return {
        "chain_sum": ReasoningGym(dataset="chain_sum", settings=(("max_terms", 4), ("min_terms", 2))),
        "leg_counting": ReasoningGym(dataset="leg_counting"),
        "basic_arithmetic": ReasoningGym(
            dataset="basic_arithmetic", settings=(("allow_negation", False), ("max_terms", 3))
        ),
        "products": ReasoningGym(dataset="products", white_space="plain"),
    }
