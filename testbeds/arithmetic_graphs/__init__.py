"""Arithmetic graphs: values modulo a prime on a dependency graph that is told in shuffled sentences.

The design follows GSM-Infinite (arXiv:2502.05252) and the miniature worlds of "Zipping the Thought" (arXiv:2605.28008).

Texts (white space between symbols is free, and means nothing):

==================  =====================================  ==========================================================
what                example                                grammar
==================  =====================================  ==========================================================
prompt              ``c=a*b;a=3;b=a+2;d=7;?c``             one sentence per node, in random order, then the question;
                                                           contexts.py has the other wordings
answer              ``1``                                  ``NUMBER := "0" | one of 1-9, then digits``
.. with working     ``a=3;b=a+2=5;c=a*b=1#1``              ``WORKING "#" NUMBER``: one mark; only what follows it is
                                                           the answer
composed working    ``a=3;c=a*(a+2)=1#1``                  operations inlined, each written once
==================  =====================================  ==========================================================

WORKING is free text; what process.py reads in it is the *process*. The graph is drawn from the asked node back (see
``kernels._needed``), so each node that is not a distractor is needed, and there are exactly ``operations`` of them
beside the constants. Answers are uniform: a problem's answer is drawn first, and it takes the next graph that has it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, get_args

import numpy as np
from numpy.random import Generator

from testbeds.arithmetic import Flaw, Numerals, shown, tighten
from testbeds.arithmetic_graphs import kernels
from testbeds.arithmetic_graphs.contexts import CONTEXTS
from testbeds.arithmetic_graphs.graph import LARGEST_MODULUS, MOST_NODES, SIGNS, Graph, stable_cells, text_of_cells
from testbeds.arithmetic_graphs.process import Process, read_process
from testbeds.arithmetic_graphs.traces import SEPARATOR, check_style, worked
from testbeds.core import ANSWER_MARK, Problem, Task, Trace, TraceStyle, Verdict

ContextName = Literal["abstract", "zoo", "school", "film"]
Working = Literal["free", "checked"]

PROCESS_PROGRESS = 0.9  # progress of a fully right working with a wrong answer: below 1, which only right answers get
MOST_OPERATIONS = 30
MOST_WIDTH = 8
MOST_TEXT = 100_000  # characters that a completion may have; a thousand times what it needs
MOST_ROUNDS = 1_000  # rounds of draws after which an answer is called unreachable; each has at least 64 graphs
FEWEST_DRAWN = 64
_NUMBER = re.compile(r"0|[1-9][0-9]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticGraphs:
    """Evaluate the asked node of a dependency graph. Difficulty: ``operations``, ``distractors``, ``width``.

    The floor is ``1 / modulus``, exactly: answers are uniform over the residues, for a guesser who is blind to the
    prompt. The key is the graph up to names, the order of the sentences, the order of commuting operands and the words
    (``context``, ``numerals``), distractors included; the family leaves the distractors and the modulus out. So the
    same graph in other words is the same problem, and never stands on two sides.
    """

    revision: ClassVar[int] = 1
    key_note: ClassVar[str] = (
        "arithmetic graphs: modulus and graph, distractors included, up to names, words, order of sentences and of"
        " commuting operands; split by the graph without distractors and modulus"
    )
    answers_are_shared: ClassVar[bool] = False
    """Problems of one key have one answer; a working speaks of one problem's names, which ``checked`` reads."""

    operations: int
    """Operations that the asked node needs, its own included, exactly: 1 to 30."""
    distractors: int = 0
    """Nodes that the asked one does not need, exactly: constants, or operations on any node but the asked one."""
    width: int = 2
    """Most nodes that are open at once when the graph is drawn from the asked node back; the constants needed are at
    most as many. 1: a chain, each operation of one node and a number; else of one or two nodes."""
    modulus: int = 11
    """A prime from 3 to 97."""
    operators: tuple[str, ...] = ("+", "-", "*")
    """Some of + - * in this order; each operation draws one uniformly."""
    context: ContextName = "abstract"
    """The words. The same stream gives the same graphs in each of them."""
    numerals: Numerals = "digits"
    """A symbol for each digit, or for each whole number."""
    working: Working = "free"
    """``free``: the answer alone decides. ``checked``: a right answer also needs a right equation for each node."""

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_counts(self)
        _check_modulus(self.modulus)
        _check_nodes(self)

    @property
    def symbols(self) -> tuple[str, ...]:
        context = CONTEXTS[self.context]
        numbers = range(10 if self.numerals == "digits" else self.modulus)
        signs = ("+", "-", "*", "=", "(", ")", SEPARATOR, ANSWER_MARK)
        others = [word for word in context.words if word not in signs]
        return (*map(str, numbers), *signs, *others, *context.nouns)

    @property
    def instructions(self) -> str:
        question = {
            "abstract": "Each sentence, such as b=a+2, defines a letter; the question ?b asks for one.",
            "zoo": "Each sentence defines a number of animals; the question asks for one of them.",
            "school": "Each sentence counts things, with 'and' for plus and 'less' for minus; the last one asks.",
            "film": "Each sentence gives the size of a cast, with 'with' for plus and 'without' for minus.",
        }[self.context]
        demand = {
            "free": "Working may stand before one # mark, for example a=3;b=a+2=5#5; only what follows it is read.",
            "checked": (
                "Before one # mark write an equation for every quantity that the answer needs, such as a=3 for a given"
                " number and b=a+2=5 for the others, separated by ;, for example a=3;b=a+2=5#5."
            ),
        }[self.working]
        return (
            f"All numbers are counted modulo {self.modulus}: after each operation only the remainder from 0 to"
            f" {self.modulus - 1} is kept. {question} The sentences stand in no particular order, and some may not be"
            f" needed. Answer with the asked value as one number from 0 to {self.modulus - 1}, without a leading zero."
            f" {demand}"
        )

    @property
    def capacity(self) -> int | None:
        return None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        row_KPN, needed_P = self._rows(rng, count)
        nodes = row_KPN.shape[2]
        noun_PN = rng.permuted(np.tile(np.arange(MOST_NODES), (count, 1)), axis=1)[:, :nodes]
        order_PN = rng.permuted(np.tile(np.arange(nodes), (count, 1)), axis=1)
        needed_PN = stable_cells(row_KPN, needed_P, 0)
        whole_PN = stable_cells(row_KPN, needed_P, self.distractors) if self.distractors else needed_PN
        measure_PF = np.zeros((count, 4), dtype=np.int64)
        kernels.measure(row_KPN, needed_P, measure_PF)
        nouns = CONTEXTS[self.context].nouns
        graphs = [
            Graph(
                modulus=self.modulus,
                names=tuple([nouns[n] for n in chosen[: needed + self.distractors]]),
                definitions=tuple(map(tuple, rows[: needed + self.distractors])),
                values=tuple(values[: needed + self.distractors]),
                needed=needed,
            )
            for rows, values, chosen, needed in zip(
                row_KPN[:3].transpose(1, 2, 0).tolist(),
                row_KPN[3].tolist(),
                noun_PN.tolist(),
                needed_P.tolist(),
                strict=True,
            )
        ]
        drawn = zip(graphs, order_PN.tolist(), whole_PN.tolist(), needed_PN.tolist(), measure_PF.tolist(), strict=True)
        return [
            self._problem(graph, order, (whole, needed), measured) for graph, order, whole, needed, measured in drawn
        ]

    def enumerate(self) -> Iterable[Problem] | None:
        return None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """One equation per written node (see traces.py).

        Forward is the order of a walk from the asked node to its operands, left first, on the way back; backward is
        exactly its reverse, the asked node first; shuffled is a random order in which operands come first.
        """
        check_style(style, checked=self.working == "checked")
        return worked(_graph(problem), style, rng)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the grammar at the top of this file.

        ``progress`` of a well-formed completion that is not correct is 0.9 times the share of needed nodes that are
        right in its working, so at most 0.9.
        """
        graph = _graph(problem)
        answer = self._read(completion)
        if isinstance(answer, Flaw):
            return Verdict(correct=False, well_formed=False, progress=0.0, reason=f"malformed: {answer.reason}")
        is_right = answer == str(graph.answer)
        if is_right and self.working == "free":
            return Verdict(correct=True, well_formed=True, progress=1.0, reason=f"the answer {answer} is right")
        process = self.process(problem, completion)
        if is_right and process.right == process.nodes:
            reason = f"the answer {answer} is right, and so is the working"
            return Verdict(correct=True, well_formed=True, progress=1.0, reason=reason)
        done = f"{process.right} of {process.nodes} nodes are right in the working"
        reason = (
            f"the answer {answer} is right, but {done}" if is_right else f"the answer {shown(answer)} is wrong; {done}"
        )
        return Verdict(correct=False, well_formed=True, progress=PROCESS_PROGRESS * process.share, reason=reason)

    def process(self, problem: Problem, completion: str) -> Process:
        """What is right in the working of any completion: the text before its only mark; without one there is none."""
        working, mark, rest = completion.partition(ANSWER_MARK)
        is_read = mark and ANSWER_MARK not in rest and len(completion) <= MOST_TEXT
        return read_process(_graph(problem), " ".join(working.split()) if is_read else "", self.numerals)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """None: any working may stand before the answer (see ``answers``)."""
        return None

    def answers(self, problem: Problem) -> tuple[str, ...]:
        """The one right answer."""
        return (str(_graph(problem).answer),)

    def floor(self, problem: Problem) -> float:
        """Success probability of the best blind answer: ``1 / modulus``, exact.

        With ``checked`` working it bounds what a guess can reach from above: the working would have to be guessed, too.
        """
        return 1.0 / self.modulus

    def answer_entropy_nats(self) -> float:
        """Entropy of a problem's answer, in nats: ``ln(modulus)``, exact."""
        return math.log(self.modulus)

    def _rows(self, rng: Generator, count: int) -> tuple[kernels.Ints, kernels.Ints]:
        """Graphs whose answers are uniform: each answer is drawn, then taken from the next graph that has it."""
        want_P = rng.integers(self.modulus, size=count)
        kinds = [SIGNS.index(operator) for operator in self.operators]
        setting = np.array([self.modulus, *kinds], dtype=np.int64)
        sizes = (self.operations, self.width, self.distractors)
        row_KPN = np.zeros((4, count, _most_nodes(self)), dtype=np.int64)
        needed_P = np.zeros(count, dtype=np.int64)
        draws = kernels.DRAWS_PER_NODE * (self.operations + self.distractors) + self.width
        for _ in range(MOST_ROUNDS):
            missing = count - int(np.count_nonzero(needed_P))
            if not missing:
                return row_KPN, needed_P
            u_PD = rng.random((max(2 * missing, FEWEST_DRAWN), draws))
            kernels.draw(u_PD, row_KPN, needed_P, want_P, setting, sizes)
        raise ValueError(
            f"{missing} of {count} problems of {self} found no graph with their answer in {MOST_ROUNDS} rounds"
            " of draws; take more operators, a smaller width or a larger modulus"
        )

    def _problem(
        self, graph: Graph, order: list[int], cells: tuple[list[int], list[int]], measured: list[int]
    ) -> Problem:
        size, needed, asked = len(graph.names), graph.needed, graph.needed - 1
        family = text_of_cells(graph.definitions[:needed], asked, cells[1][:needed])
        whole = text_of_cells(graph.definitions, asked, cells[0][:size]) if self.distractors else family
        depth, reused, products, zeros = measured
        return Problem(
            prompt=CONTEXTS[self.context].prompt(graph, order),
            key=f"arithmetic_graphs:mod{self.modulus}:{whole}",
            family=f"arithmetic_graphs:{family}",
            certificate=graph,
            features={
                "operations": self.operations,
                "depth": depth,
                "distractors": self.distractors,
                "nodes": size,
                "constants": needed - self.operations,
                "reused": reused,
                "products": products,
                "zeros": zeros,
                "answer": graph.answer,
            },
        )

    def _read(self, completion: str) -> str | Flaw:
        """The answer of a completion, a number as text, or what is wrong with its form."""
        if len(completion) > MOST_TEXT:
            return Flaw(reason=f"the completion has {len(completion)} characters, at most {MOST_TEXT} are read")
        marks = completion.count(ANSWER_MARK)
        if marks > 1:
            return Flaw(reason=f"{marks} answer marks {ANSWER_MARK}, at most one is allowed")
        answer = tighten(completion.rpartition(ANSWER_MARK)[2], self.numerals)
        if isinstance(answer, str) and not _NUMBER.fullmatch(answer):
            return Flaw(reason=f"{shown(answer)} is not a number such as {self.modulus - 1}")
        return answer


def _graph(problem: Problem) -> Graph:
    if not isinstance(problem.certificate, Graph):
        raise TypeError(
            f"ArithmeticGraphs reads problems with a Graph, got {type(problem.certificate).__name__} for the prompt"
            f" {shown(problem.prompt)}; ask the task that made the problem"
        )
    return problem.certificate


# -------------------------------------------------------------------------------------------------- validation


def _check_choices(task: ArithmeticGraphs) -> None:
    for name, value, choices in (
        ("context", task.context, get_args(ContextName)),
        ("numerals", task.numerals, get_args(Numerals)),
        ("working", task.working, get_args(Working)),
    ):
        if value not in choices:
            raise ValueError(f"ArithmeticGraphs.{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    operators: object = task.operators
    in_order = tuple(sign for sign in SIGNS[1:] if isinstance(operators, tuple | list | str) and sign in operators)
    if not in_order or operators != in_order:
        suggestion = f"; write {in_order}" if in_order else ""
        raise ValueError(
            f"ArithmeticGraphs.operators must be a tuple of one or more of + - *, each once and in this order, got"
            f" {operators!r}{suggestion}"
        )


def _check_counts(task: ArithmeticGraphs) -> None:
    for name, value, least, most in (
        ("operations", task.operations, 1, MOST_OPERATIONS),
        ("distractors", task.distractors, 0, MOST_NODES),
        ("width", task.width, 1, MOST_WIDTH),
    ):
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"ArithmeticGraphs.{name} must be a whole number from {least} to {most}, got {value!r}")


def _check_modulus(modulus: object) -> None:
    if type(modulus) is int and 3 <= modulus <= LARGEST_MODULUS and all(modulus % n for n in range(2, modulus)):
        return
    primes = [n for n in range(3, LARGEST_MODULUS + 1) if all(n % m for m in range(2, n))]
    nearest = min(primes, key=lambda prime: abs(prime - modulus)) if isinstance(modulus, int | float) else 11
    raise ValueError(
        f"ArithmeticGraphs.modulus must be a prime from 3 to {LARGEST_MODULUS}, got {modulus!r}; try {nearest}"
    )


def _check_nodes(task: ArithmeticGraphs) -> None:
    if _most_nodes(task) > MOST_NODES:
        raise ValueError(
            f"ArithmeticGraphs names at most {MOST_NODES} nodes, but operations={task.operations},"
            f" width={task.width} and distractors={task.distractors} may have {_most_nodes(task)}; lower one of them"
        )


def _most_nodes(task: ArithmeticGraphs) -> int:
    return task.operations + min(task.width, task.operations + 1) + task.distractors


TESTBED: Final[type[Task]] = ArithmeticGraphs
LEVELS: Final[dict[str, Task]] = {
    "easy": ArithmeticGraphs(operations=3, distractors=1, modulus=7),
    "medium": ArithmeticGraphs(operations=6, distractors=3, width=3),
    "hard": ArithmeticGraphs(operations=12, distractors=5, width=3, modulus=23),
    "zoo": ArithmeticGraphs(operations=6, distractors=3, width=3, context="zoo", numerals="whole"),
    "film": ArithmeticGraphs(operations=6, distractors=3, width=3, context="film"),
    "checked": ArithmeticGraphs(operations=6, distractors=3, width=3, context="school", working="checked"),
}
