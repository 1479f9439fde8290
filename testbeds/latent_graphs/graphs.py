"""Graphs of modules: the certificate of a problem, and how one is drawn.

The modules of a shape (see shapes.py) are drawn from the asked application downwards, each uniformly among all
(module, slots for the results) that fit: whose result has the type that the takers demand, and whose slots agree with
types that others have demanded already. Where none fits, the whole graph is drawn anew. Slots that no result fills take
an input of their own, drawn uniformly. So a chain, for example, is a Markov chain of modules, read backwards.

Applications and inputs are numbered as the asked one is computed, arguments from left to right, each where it is first
needed. So the same graph is written in one way only, whatever the order in which it was drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat

from numpy.random import Generator

from testbeds.latent_graphs.shapes import Below, Knobs, Links, draw_links
from testbeds.latent_graphs.sorts import Apply, Value
from testbeds.latent_graphs.worlds import PAIR, WRITERS, Choice, GraphModule, GraphWorld, choices_of, drawn_world
from testbeds.latent_structure import Composition, Pair, Triple
from testbeds.latent_world import LETTERS

UNIFORMS_AT_ONCE = 1024  # a graph takes some dozens


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph(Composition):
    """Certificate: the applications in the order of the prompt, with the values that come out."""

    nodes: tuple[tuple[str, tuple[int, ...]], ...]
    """Module and arguments of each application: k for the result of application k, -1 - k for input k."""
    inputs: tuple[str, ...]
    """The inputs, as written."""
    values: tuple[str, ...]
    """What each application gives, as written; the last is the answer."""

    @property
    def applied(self) -> tuple[str, ...]:
        return tuple([name for name, _ in self.nodes])

    @property
    def pairs(self) -> tuple[Pair, ...]:
        nodes = self.nodes
        return tuple([(nodes[argument][0], name) for name, taken in nodes for argument in taken if argument >= 0])

    @property
    def triples(self) -> tuple[Triple, ...]:
        nodes = self.nodes
        return tuple(
            [
                (nodes[first][0], nodes[second][0], name)
                for name, taken in nodes
                for second in taken
                if second >= 0
                for first in nodes[second][1]
                if first >= 0
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workshop:
    """What graphs of a world are made with."""

    modules: tuple[GraphModule, ...]
    functions: tuple[Apply, ...]
    writers: tuple[Callable[[Value], str], ...]
    """How the result of each module is written."""
    routes: frozenset[str]
    """Names of the routings."""


@lru_cache(maxsize=64)
def workshop(world: GraphWorld) -> Workshop:
    """The tools of a world."""
    drawn = drawn_world(world)
    return Workshop(
        modules=drawn.modules,
        functions=drawn.functions,
        writers=tuple(WRITERS[module.gives] for module in drawn.modules),
        routes=frozenset(module.name for module in drawn.modules if module.kind == "routing"),
    )


def uniforms(rng: Generator) -> Below:
    """A function that gives a uniform whole number below its argument; takes its draws from ``rng`` in blocks."""
    blocks = iter(lambda: rng.random(UNIFORMS_AT_ONCE).tolist(), None)  # no block is None: they never end
    draw = chain.from_iterable(blocks).__next__
    return lambda limit: int(draw() * limit)


def draw_graph(world: GraphWorld, knobs: Knobs, routed: int | None, below: Below) -> Graph | None:
    """A graph, or None where the draw came out otherwise than asked and another one is due."""
    links = draw_links(knobs, below)
    choices = None if links is None else _draw_modules(world, links, below)
    if links is None or choices is None:
        return None
    made = workshop(world)
    if routed is not None and routed != sum(made.modules[index].kind == "routing" for index, _ in choices):
        return None
    return _Computation(world, made, links, choices, below).graph()


def _draw_modules(world: GraphWorld, links: Links, below: Below) -> list[Choice] | None:
    """A module and its results' slots for each application, the asked one first; None where none fits."""
    modules = drawn_world(world).modules
    fitting = choices_of(world)
    demanded = [""] * len(links)
    arguments = [len(taken) for taken in links]
    chosen = []
    for number, taken in enumerate(links):
        options = fitting.at(demanded[number], tuple([(arguments[result], demanded[result]) for result in taken]))
        if not options:
            return None
        choice = options[below(len(options))]
        takes = modules[choice[0]].takes
        for result, slot in zip(taken, choice[1], strict=True):
            demanded[result] = takes[slot]
        chosen.append(choice)
    return chosen


class _Computation:
    """Computes the applications below the asked one, numbering them and drawing the inputs on the way."""

    def __init__(self, world: GraphWorld, made: Workshop, links: Links, choices: list[Choice], below: Below) -> None:
        self._world = world
        self._made = made
        self._links = links
        self._choices = choices
        self._below = below
        self._number: dict[int, int] = {}
        self._results: list[Value] = []
        self._nodes: list[tuple[str, tuple[int, ...]]] = []
        self._values: list[str] = []
        self._inputs: list[str] = []

    def graph(self) -> Graph:
        self._compute(0)
        return Graph(nodes=tuple(self._nodes), inputs=tuple(self._inputs), values=tuple(self._values))

    def _compute(self, place: int) -> int:
        """The number of the application at a place of the shape; recursion goes as deep as the graph."""
        index, slots = self._choices[place]
        module = self._made.modules[index]
        filled: list[int | None] = [None] * len(module.takes)
        for under, slot in zip(self._links[place], slots, strict=True):
            filled[slot] = under
        arguments: list[int] = []
        values: list[Value] = []
        for of, result in zip(module.takes, filled, strict=True):
            if result is None:
                value = draw_value(self._world, of, self._below)
                self._inputs.append(WRITERS[of](value))
                arguments.append(-len(self._inputs))
            else:
                known = self._number.get(result)
                at = self._compute(result) if known is None else known
                value = self._results[at]
                arguments.append(at)
            values.append(value)
        made = self._made.functions[index](*values)
        self._results.append(made)
        self._values.append(self._made.writers[index](made))
        self._nodes.append((module.name, tuple(arguments)))
        self._number[place] = len(self._nodes) - 1
        return len(self._nodes) - 1


def draw_value(world: GraphWorld, of: str, below: Below) -> Value:
    """A uniform value of a type; of lists and strings, the length from 1 on is uniform, then each letter."""
    if of == "symbol":
        return LETTERS[below(world.alphabet)]
    if of == "residue":
        return below(world.modulus)
    if of.endswith(PAIR):
        part = of.removesuffix(PAIR)
        return draw_value(world, part, below), draw_value(world, part, below)
    alphabet = world.alphabet
    return "".join([LETTERS[below(alphabet)] for _ in repeat(None, 1 + below(world.longest))])


def measured(graph: Graph, routes: frozenset[str]) -> dict[str, int | float]:
    """Size and shape of a graph, counted on the graph itself."""
    levels: list[int] = []
    on_level: dict[int, int] = {}
    uses = [0] * len(graph.nodes)
    for _, taken in graph.nodes:
        level = 1
        for argument in taken:
            if argument >= 0:
                uses[argument] += 1
                level = max(level, levels[argument] + 1)
        levels.append(level)
        on_level[level] = on_level.get(level, 0) + 1
    names = graph.applied
    return {
        "modules": len(names),
        "depth": levels[-1],
        "width": max(on_level.values()),
        "reused": sum([number > 1 for number in uses]),
        "routing_modules": sum([name in routes for name in names]),
        "distinct_modules": len(set(names)),
        "inputs": len(graph.inputs),
    }


def merged(graph: Graph) -> str:
    """The graph with equal computations counted once: the same for graphs that compute the same term."""
    numbers: dict[str, str] = {}
    terms: list[str] = []
    for name, taken in graph.nodes:
        parts = [terms[argument] if argument >= 0 else graph.inputs[-1 - argument] for argument in taken]
        term = f"{name} {' '.join(parts)}"
        terms.append(numbers.setdefault(term, f"y{len(numbers) + 1}"))
    return ";".join(numbers)
