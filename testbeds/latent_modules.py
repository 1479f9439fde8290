"""Latent modules: follow a program of hidden functions whose names carry no meaning.

A prompt is an input state, ``depth`` module names and ``>``; what the modules do is known only through examples. The
design follows "From Reasoning Traces to Reusable Modules" (arXiv:2606.18089), with lookup-table skills.

    c m3 m1 m5 >        input c, then m3, then m1, then m5
    d a f               explicit trace: the state after each module; the last is the answer

Completion grammar: one or more states, each written as exactly ``width`` value symbols; the last is the answer. There
is no mark between working and answer, since both are states.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import ClassVar, Final, Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from testbeds.core import Problem, Step, Task, Trace, TraceStyle, Verdict
from testbeds.latent_heldout import heldout_pairs, heldout_routing_pairs, heldout_routings, heldout_triples
from testbeds.latent_structure import (
    Composition,
    Coverage,
    HoldsRouting,
    HoldsTriple,
    Pair,
    Triple,
    check_tuples,
    coverage,
)
from testbeds.latent_world import LETTERS, Module, Tables, World, rows, tables, trace_of
from testbeds.mixture import innermost

__all__ = [
    "LEVELS",
    "TESTBED",
    "Chain",
    "Coverage",
    "HoldsPair",
    "HoldsRouting",
    "HoldsTriple",
    "LatentModules",
    "coverage",
    "heldout_pairs",
    "heldout_routing_pairs",
    "heldout_routings",
    "heldout_triples",
]

Working = Literal["free", "checked", "none"]

WALKED_SPACE = 1 << 20  # problems that enumerate() walks in a few seconds
WALKED_AT_ONCE = 4096  # problems built per step of enumerate()
DEEPEST = 1000  # modules: prompts beyond this are no exercise for a small context
DEEPEST_CHECKED = 16  # modules: 2**15 completions at most are listed by solutions()
LONGEST_SPACED = 100_000  # characters: looking for non-ASCII white space in a megabyte would take a tenth of a second
WHITE = bytes(range(9, 14)) + bytes(range(28, 33))  # the ASCII characters that str.isspace calls white


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain(Composition):
    """Certificate: the program and the states that it goes through."""

    program: tuple[str, ...]
    """Names of the modules, first applied first."""
    states: tuple[str, ...]
    """The input and the state after each module, as written; one more than the program has modules."""

    @property
    def applied(self) -> tuple[str, ...]:
        return self.program

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return tuple(pairwise(self.program))

    @property
    def triples(self) -> tuple[Triple, ...]:
        return tuple(zip(self.program, self.program[1:], self.program[2:], strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentModules:
    """Compositions of hidden modules. Difficulty: ``depth``, then ``width`` with ``routings``.

    The floor is the success probability of the best constant answer, blind to the whole prompt: inputs and programs
    are uniform. The key is the prompt with the identity of its world; no two different prompts count as the same.
    Worlds of one seed, alphabet and width may share modules, so a prompt's family spans them all.
    """

    revision: ClassVar[int] = 1
    key_note: ClassVar[str] = "latent modules: the world's identity, the input and the program, with no symmetry merged"

    world: int
    """Seed of the hidden modules. Depth, working and the number of registers in use leave them as they are."""
    alphabet: int = 12
    """Value symbols: a, b, c, ... (without m)."""
    skills: int = 6
    """Functions on register 0: random permutations, but for ``noninvertible``."""
    noninvertible: int = 0
    """How many of the skills are random non-injective maps."""
    binary: int = 0
    """How many more skills permute register 0 by a permutation that register 1 picks; needs ``width`` 2."""
    routings: int = 0
    """Modules that swap, duplicate or rotate registers, or swap them on a condition; needs ``width`` 2."""
    width: int = 1
    """Registers of a state."""
    depth: int = 3
    """Modules of a program, drawn with replacement."""
    working: Working = "free"
    """What may stand before the answer. ``free``: any states whatever, only the outcome counts. ``checked``: true
    states of this program, in their order, any of them left out. ``none``: nothing."""

    def __post_init__(self) -> None:
        for name in ("world", "alphabet", "skills", "noninvertible", "binary", "routings", "width", "depth"):
            if type(value := getattr(self, name)) is not int:
                raise ValueError(f"LatentModules.{name} must be a whole number, got {value!r}")
        if self.skills < 1 or not 0 <= self.noninvertible <= self.skills:
            raise ValueError(
                f"LatentModules.noninvertible ({self.noninvertible}) counts some of the skills ({self.skills}):"
                " it must be between 0 and skills, and skills at least 1"
            )
        if self.working not in get_args(Working):
            raise ValueError(f"LatentModules.working must be free, checked or none, got {self.working!r}")
        deepest = DEEPEST_CHECKED if self.working == "checked" else DEEPEST
        if not 1 <= self.depth <= deepest:
            raise ValueError(
                f"LatentModules.depth must be between 1 and {deepest} with working={self.working!r}, got {self.depth}"
            )
        tables(self._world)  # refuses an impossible world here, not at the first problem

    @property
    def symbols(self) -> tuple[str, ...]:
        """The value symbols, the modules' names and ``>``: the same for every depth and way of working."""
        return (*LETTERS[: self.alphabet], *self.names, ">")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the modules, m1, m2, ..."""
        return tuple(module.name for module in self.modules)

    @property
    def modules(self) -> tuple[Module, ...]:
        """The hidden modules, with what they do."""
        return self._tables.modules

    @property
    def capacity(self) -> int:
        """Number of prompts, ``alphabet**width * modules**depth``."""
        return int(self._world.states * self._world.modules**self.depth)

    @property
    def instructions(self) -> str:
        values = LETTERS[: self.alphabet]
        state = "one symbol" if self.width == 1 else f"{self.width} symbols, the first for register 0"
        working = {
            "free": "You may write the states after each module on the way, separated by spaces; the state that you"
            " write last is your answer, and only it counts.",
            "checked": "Before it you may write states that the program passes through, in their order and separated by"
            " spaces, leaving out any; a wrong one makes the answer wrong.",
            "none": "Write nothing else.",
        }[self.working]
        return (
            f"A prompt is a state, a program and the mark >. A state is {state} out of {values[0]} to {values[-1]}."
            f" The program names {self.depth} of the modules {self.names[0]} to {self.names[-1]}, to be applied to the"
            " state from left to right. A module is a fixed function from states to states; what it does is hidden and"
            " follows only from examples, and its name carries no meaning. Answer with the state after the last"
            f" module. {working}"
        )

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        input_P = rng.integers(self._world.states, size=count)
        program_PL = rng.integers(self._world.modules, size=(count, self.depth))
        return self._problems(input_P, program_PL)

    def enumerate(self) -> Iterable[Problem] | None:
        return self._walk() if self.capacity <= WALKED_SPACE else None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """The state after each module, after every ``group`` modules and the last, or after the last alone.

        Only free working can be written ``backward`` or ``shuffled``: the answer stands last all the same.
        """
        self._check_style(style)
        chain = _chain(problem)
        results = chain.states[1:]
        if style.granularity == "explicit" and style.order == "forward":
            return trace_of(tuple(map(_step, chain.program, results, results)), " ".join(results), results[-1])
        if style.granularity == "implicit" and style.order == "forward":
            texts = ("",) * (len(results) - 1) + results[-1:]
            return trace_of(tuple(map(_step, chain.program, results, texts)), results[-1], results[-1])
        every = {"explicit": 1, "composed": style.group, "implicit": self.depth}[style.granularity]
        written = [state if number % every == 0 else "" for number, state in enumerate(results, start=1)]
        written[-1] = results[-1]
        steps = list(map(_step, chain.program, results, written))
        if style.order != "forward":
            steps[:-1] = _reordered(steps[:-1], style, rng)
        return trace_of(tuple(steps), " ".join([step.text for step in steps if step.text]), results[-1])

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """Linear in the completion's length. ``progress`` is the share of the explicit trace that it begins with.

        White space may be anywhere; beyond ASCII it is looked for in up to ``LONGEST_SPACED`` characters.
        """
        chain = _chain(problem)
        text, fault = self._written_values(completion)
        if fault:
            return Verdict(correct=False, well_formed=False, progress=0.0, reason=fault)
        fault = self._fault(chain, text)
        if not fault:
            return Verdict(
                correct=True, well_formed=True, progress=1.0, reason=f"the answer {chain.states[-1]} is right"
            )
        begun = _common_prefix(text, "".join(chain.states[1:])) // self.width
        return Verdict(correct=False, well_formed=True, progress=min(begun, self.depth - 1) / self.depth, reason=fault)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """Shortest first; None where working is free, since any states may then precede the answer."""
        if self.working == "free":
            return None
        *working, answer = _chain(problem).states[1:]
        if self.working == "none":
            return (answer,)
        chosen = (kept for size in range(len(working) + 1) for kept in combinations(working, size))
        return tuple(dict.fromkeys(" ".join((*kept, answer)) for kept in chosen))

    def floor(self, problem: Problem) -> float:
        """Success probability of the best constant answer, blind to the prompt; the same for every problem."""
        return _best_constant(self._world, self.depth)

    def prompt_entropy_nats(self) -> float:
        """Entropy of a prompt in nats: ``ln(alphabet**width) + depth * ln(modules)``, as all draws are uniform.

        A trace of a given style follows from its prompt and adds nothing: this is also the entropy of the whole text.
        """
        return math.log(self._world.states) + self.depth * math.log(self._world.modules)

    @property
    def _world(self) -> World:
        return World(
            seed=self.world,
            alphabet=self.alphabet,
            permutations=self.skills - self.noninvertible,
            maps=self.noninvertible,
            binaries=self.binary,
            routings=self.routings,
            width=self.width,
        )

    @property
    def _tables(self) -> Tables:
        return tables(self._world)

    def _walk(self) -> Iterator[Problem]:
        shape = (self._world.states, *(self._world.modules for _ in range(self.depth)))
        for start in range(0, self.capacity, WALKED_AT_ONCE):
            number_P = np.arange(start, min(start + WALKED_AT_ONCE, self.capacity))
            input_P, *program = np.unravel_index(number_P, shape)
            yield from self._problems(input_P, np.stack(program, axis=1))

    def _problems(self, input_P: NDArray[np.int64], program_PL: NDArray[np.int64]) -> list[Problem]:
        """The problems with these inputs and programs, all run at once."""
        drawn = _drawn(self)
        state_PL = np.empty((len(input_P), self.depth + 1), dtype=np.int64)
        state_PL[:, 0] = input_P
        for step in range(self.depth):
            state_PL[:, step + 1] = drawn.next_NS[program_PL[:, step], state_PL[:, step]]
        programs = list(map(tuple, drawn.names_N[program_PL].tolist()))
        states = list(map(tuple, drawn.texts_S[state_PL].tolist()))
        questions = [f"{passed[0]} {' '.join(program)}" for passed, program in zip(states, programs, strict=True)]
        counts = zip(
            map(len, map(set, programs)),
            drawn.routes_N[program_PL].sum(axis=1).tolist(),
            (state_PL[:, 1:] == state_PL[:, :-1]).sum(axis=1).tolist(),
            strict=True,
        )
        depth = self.depth
        world, relatives = f"latent:{self._world.identity}:", f"latent:{self._world.family}:"
        return rows(
            Problem,
            len(questions),
            prompt=[question + " >" for question in questions],
            key=[world + question for question in questions],
            family=[relatives + question for question in questions],
            certificate=rows(Chain, len(questions), program=programs, states=states),
            features=[
                {"depth": depth, "distinct_modules": distinct, "routing_modules": routed, "idle_steps": idle}
                for distinct, routed, idle in counts
            ],
        )

    def _check_style(self, style: TraceStyle) -> None:
        if style.search != "optimal":
            raise ValueError(
                f"a program is followed, not searched for: search={style.search!r} cannot be written, take 'optimal'"
            )
        if self.working == "none" and style.granularity != "implicit":
            raise ValueError(f"working='none' has no room for a trace, got granularity={style.granularity!r}")
        if style.order != "forward" and self.working != "free":
            raise ValueError(
                f"only working='free' may stand in another order, got order={style.order!r} with"
                f" working={self.working!r}"
            )

    def _written_values(self, completion: str) -> tuple[str, str]:
        """The value symbols of a completion without white space, or what is wrong with its form."""
        if not completion.isascii():
            if len(completion) > LONGEST_SPACED:
                return "", f"a completion of {len(completion)} characters is read only if all are ASCII"
            completion = "".join(completion.split())
            if not completion.isascii():
                stray = next(character for character in completion if not character.isascii())
                return "", f"{stray!a} is not a value symbol"
        values = LETTERS[: self.alphabet]
        raw = completion.encode().translate(None, WHITE)
        strays = raw.translate(None, values.encode())
        if strays:
            return "", f"{chr(strays[0])!r} is not one of the value symbols {values[0]} to {values[-1]}"
        if not raw:
            return "", "the completion has no answer: it is empty"
        if len(raw) % self.width:
            return "", f"{len(raw)} symbols are not a whole number of states of {self.width}"
        return raw.decode(), ""

    def _fault(self, chain: Chain, text: str) -> str:
        """What makes a well-formed completion wrong; empty if it is right."""
        written, answer = len(text) // self.width, text[-self.width :]
        if self.working == "none" and written > 1:
            return f"{written} states are written where only the answer may stand"
        if answer != chain.states[-1]:
            return f"the answer {answer} is wrong; it is {chain.states[-1]}"
        if self.working == "checked":
            return self._working_fault(chain, text[: -self.width])
        return ""

    def _working_fault(self, chain: Chain, text: str) -> str:
        """What is wrong with the states before the answer: each must be a later state of the program than the last."""
        ahead = iter(chain.states[1:-1])
        for number, start in enumerate(range(0, len(text), self.width), start=1):
            state = text[start : start + self.width]
            if state not in ahead:  # looks on from where the state before was found
                return f"state {number} of the working, {state}, is not a state of the program at or after its place"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldsPair:
    """Holds for problems, chains or DAGs, in which one of the ordered ``pairs`` of modules follow each other."""

    revision: ClassVar[int] = 1

    pairs: tuple[Pair, ...]
    """Pairs (first applied, next applied), such as ``(("m1", "m3"),)``."""

    def __post_init__(self) -> None:
        check_tuples("HoldsPair.pairs", self.pairs, 2)

    def __call__(self, problem: Problem) -> bool:
        composition = innermost(problem.certificate)
        return isinstance(composition, Composition) and any(pair in self.pairs for pair in composition.pairs)


def _chain(problem: Problem) -> Chain:
    if not isinstance(problem.certificate, Chain):
        raise TypeError(f"the problem {problem.prompt!r} is not of latent modules: it has {problem.certificate!r}")
    return problem.certificate


@lru_cache(maxsize=1 << 14)  # steps are values, and a stream writes the same ones over and over
def _step(module: str, state: str, text: str) -> Step:
    return Step(operation=module, result=state, text=text)


def _reordered(steps: list[Step], style: TraceStyle, rng: Generator) -> list[Step]:
    if style.order == "backward":
        return steps[::-1]
    return [steps[place] for place in rng.permutation(len(steps)).tolist()]


@lru_cache(maxsize=64)  # tasks that one process works in
def _drawn(task: LatentModules) -> Tables:
    return task._tables  # spares the world's checks for each block of problems


def _common_prefix(text: str, explicit: str) -> int:
    """Characters that two texts begin with alike."""
    unlike = (place for place, (one, other) in enumerate(zip(text, explicit, strict=False)) if one != other)
    return next(unlike, min(len(text), len(explicit)))


@lru_cache(maxsize=256)  # (world, depth) pairs of one process
def _best_constant(world: World, depth: int) -> float:
    """Largest probability of any last state, under uniform inputs and programs; exact up to float64 rounding."""
    next_NS = tables(world).next_NS
    weight_S = np.ones(world.states)  # times 1 / states: permutations then keep it at exactly 1
    for _ in range(depth):
        moved = [np.bincount(next_S, weights=weight_S, minlength=world.states) for next_S in next_NS]
        weight_S = np.sum(moved, axis=0) / world.modules
    return float(weight_S.max()) / world.states


TESTBED: Final[type[Task]] = LatentModules
LEVELS: Final[dict[str, Task]] = {
    "easy": LatentModules(world=0, depth=2),
    "medium": LatentModules(world=0, depth=3),
    "hard": LatentModules(world=0, depth=5),
    "lossy": LatentModules(world=0, noninvertible=3, depth=3, working="checked"),
    "routed": LatentModules(world=0, alphabet=6, skills=4, binary=1, routings=4, width=2, depth=3),
    "direct": LatentModules(world=0, depth=2, working="none"),
}
