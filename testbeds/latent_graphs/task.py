"""The task: typed graphs of hidden modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, get_args

from numpy.random import Generator

from testbeds.core import ANSWER_MARK, Problem, Step, Trace, TraceStyle, Verdict
from testbeds.latent_graphs.graphs import Graph, draw_graph, measured, merged, uniforms, workshop
from testbeds.latent_graphs.shapes import Knobs, Shape, count_levels
from testbeds.latent_graphs.verify import Reader, right_results
from testbeds.latent_graphs.worlds import (
    BASE_TYPES,
    PAIR,
    PRIMES,
    GraphModule,
    GraphWorld,
    choices_of,
    drawn_world,
)
from testbeds.latent_world import LETTERS, rows
from testbeds.streams import stream

Working = Literal["free", "checked", "none"]

MOST_MODULES = 64  # applications: a prompt of some 400 symbols
LARGEST_ALPHABET = 20  # a to u; x and y name inputs and results
LONGEST_ROW = 12  # symbols of a list or string
MOST_INVENTORY = 200  # modules of a world
PILOT_DRAWS = 400  # a task is refused if fewer than PILOT_HITS of these draws come out as asked, 2 % ...
PILOT_HITS = 8
MOST_DRAWS = 4_000  # ... so that this many all fail with probability below 1e-30 at 2 %
LARGEST_COUNT = 3_000_000  # modules * depth * width * ... of a general graph whose levels are counted in two seconds
COUNTED = 4096  # problems whose answers are counted for the floor: a standard error of at most 0.008


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentGraphs:
    """Typed graphs of hidden modules. Difficulty: ``modules``, ``depth``, ``width``, ``reuse``, the types.

    What is asked is what every problem has: a draw that comes out otherwise is drawn anew (shapes.py and graphs.py say
    from which distribution), and a task whose draws hardly ever come out is refused when it is declared.

    A graph is written in one way only, so the key is the prompt with the identity of its world: graphs that differ in
    names or order of inputs or applications are one problem. The family counts equal computations once, so that a
    graph that computes something twice stands in one split with the one that reuses it, and spans all worlds that may
    share modules. The floor is the success rate of the best constant answer, blind to the prompt: not exact, but
    the share of the commonest answer among 4,096 problems drawn for the purpose, so its standard error is at most
    0.008, and it tends to lie above the truth, as the largest of many counts.
    """

    revision: ClassVar[int] = 1
    key_note: ClassVar[str] = (
        "latent graphs: the world's identity and the graph with its inputs, whatever the names and the order of"
        " inputs and applications"
    )

    world: int
    """Seed of the hidden modules. Shape, size and working leave them as they are."""
    alphabet: int = 8
    """Symbols: a, b, c, ... (without m)."""
    modulus: int = 7
    """Residues are 0 to ``modulus`` - 1; a prime."""
    longest: int = 4
    """Symbols of a list or string, at most; longer results are cut."""
    types: tuple[str, ...] = ("symbol",)
    """Some of symbol, residue, list, string, in this order; one of the first two at least, for branches."""
    skills: int = 6
    """Modules that make a new value: sorts.py lists their sorts, which take turns."""
    routings: int = 0
    """Modules that select, branch on a value, duplicate, swap, or make and take apart pairs, in turn for each type."""
    shape: Shape = "chain"
    """``chain``: each result goes to the next application; ``tree``: each result is taken once; ``general``: results
    may be reused."""
    modules: int = 3
    """Applications in a graph."""
    depth: int = 3
    """Applications on the longest way to the answer."""
    width: int = 1
    """Applications on the widest level; the level of an application is 1 plus the highest that it takes from."""
    reuse: int = 0
    """Results that are taken more than once."""
    routed: int | None = None
    """Applications of routings in each graph; None: as many as are drawn."""
    working: Working = "free"
    """What may stand before the mark and the answer. ``free``: anything. ``checked``: lines ``y1 = VALUE``, each of
    them true, in any order, any of them left out or repeated. ``none``: nothing, and no mark."""

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_ranges(self)
        drawn_world(self.graph_world)  # refuses an impossible world here, not at the first problem
        _check_shape(self)
        _check_drawable(self)

    @property
    def graph_world(self) -> GraphWorld:
        """The world of the hidden modules."""
        return GraphWorld(
            seed=self.world,
            alphabet=self.alphabet,
            modulus=self.modulus,
            longest=self.longest,
            types=self.types,
            skills=self.skills,
            routings=self.routings,
        )

    @property
    def knobs(self) -> Knobs:
        """What a graph must come out with."""
        return Knobs(
            self.shape, self.modules, self.depth, self.width, self.reuse, choices_of(self.graph_world).most_arguments
        )

    @property
    def inventory(self) -> tuple[GraphModule, ...]:
        """The hidden modules, with what they do."""
        return drawn_world(self.graph_world).modules

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the modules, m1, m2, ..."""
        return tuple(module.name for module in self.inventory)

    @property
    def definitions(self) -> str:
        """What each module does, one a line, for studies in which the definitions are visible."""
        return "\n".join(
            f"{module.name}: {', '.join(module.takes)} -> {module.gives}: {module.sort}: {module.meaning}"
            for module in self.inventory
        )

    @property
    def symbols(self) -> tuple[str, ...]:
        """Letters, digits, brackets, the modules' names, x1, ..., y1, ..., and the words of prompts and completions."""
        given = {name for module in self.inventory for name in (*module.takes, module.gives)}
        slots = self.knobs.slots
        inputs = self.modules * slots - (self.modules - 1)
        return (
            *LETTERS[: self.alphabet],
            *("0123456789"[: self.modulus] if "residue" in self.types else ""),
            *("[]" if "list" in self.types else ""),
            *("()" if "string" in self.types else ""),
            *("{,}" if any(name.endswith(PAIR) for name in given) else ""),
            *self.names,
            *(f"x{number}" for number in range(1, inputs + 1)),
            *(f"y{number}" for number in range(1, self.modules + 1)),
            *("=", ";", "?", ">"),
            *((ANSWER_MARK,) if self.working != "none" else ()),
        )

    @property
    def instructions(self) -> str:
        values = {
            "symbol": f"a letter from {LETTERS[0]} to {LETTERS[self.alphabet - 1]}",
            "residue": f"a whole number from 0 to {self.modulus - 1}",
            "list": f"a list of up to {self.longest} letters such as [ab]",
            "string": f"a string of up to {self.longest} letters such as (ab)",
        }
        working = {
            "free": "You may write any working first, such as y1 = VALUE ; y2 = VALUE, then one # and the answer.",
            "checked": "You may first write values of results as y1 = VALUE ; y2 = VALUE, any of them and in any order,"
            " then one # and the answer; a wrong value makes the answer wrong.",
            "none": "Write the answer alone.",
        }[self.working]
        return (
            "A prompt lists inputs, such as x1 = a, then results, such as y1 = m3 x1, what the module m3 makes of x1,"
            " and asks for the last one: ? y2 >. A value is "
            + ", or ".join(values[of] for of in self.types)
            + f", or a pair of two such values of one kind in braces, parted by a comma. The modules {self.names[0]} to"
            f" {self.names[-1]} are fixed functions of one to three values. What they do is hidden and follows only"
            f" from examples; their names carry no meaning. Answer with the value that is asked for. {working}"
        )

    @property
    def capacity(self) -> int | None:
        return None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        return _problems(self, draw_graphs(self, rng, count))

    def enumerate(self) -> Iterable[Problem] | None:
        return None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """``y1 = VALUE ; ... # ANSWER`` with each result, each ``group``-th and the last, or the answer alone.

        ``forward``: in the order of the prompt; ``backward``: from the asked result down; ``shuffled``: drawn.
        """
        _check_style(self, style)
        graph = _graph(problem)
        last = len(graph.nodes)
        every = {"explicit": 1, "composed": style.group, "implicit": 0}[style.granularity]
        steps = []
        for number, (node, value) in enumerate(zip(graph.nodes, graph.values, strict=True), start=1):
            written = every and (number % every == 0 or number == last)
            steps.append(Step(operation=_operation(node), result=value, text=f"y{number} = {value}" if written else ""))
        if style.order == "backward":
            steps.reverse()
        elif style.order == "shuffled":
            steps = [steps[place] for place in rng.permutation(last).tolist()]
        return Trace.worked(tuple(steps), graph.values[-1], separator=" ; ")

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the grammar of the package's docstring.

        ``progress`` of a wrong answer is the number of results that are written right in the working, and never wrong,
        divided by one more than there are.
        """
        return Reader(world=self.graph_world, working=self.working).verdict(_graph(problem), completion)

    def process_score(self, problem: Problem, completion: str) -> float:
        """Share of the results that are written right in the working, and never wrong, whatever the answer."""
        graph = _graph(problem)
        working, _, _ = completion.rpartition(ANSWER_MARK)
        return right_results(graph, working) / len(graph.nodes)

    def solutions(self, problem: Problem) -> Iterable[str] | None:
        """The answer alone where no working may stand; else None: working may be anything, or repeated."""
        return (_graph(problem).values[-1],) if self.working == "none" else None

    def answers(self, problem: Problem) -> tuple[str, ...]:
        """The distinct answers without working: one."""
        return (_graph(problem).values[-1],)

    def floor(self, problem: Problem) -> float:
        """Share of the commonest answer among 4,096 problems drawn for the purpose; the same for every problem."""
        return _commonest(self)


def _problems(task: LatentGraphs, graphs: list[Graph]) -> list[Problem]:
    world = task.graph_world
    routes = workshop(world).routes
    identity, family = f"latent-graphs:{world.identity}:", f"latent-graphs:{world.family}:"
    texts = [_question(graph) for graph in graphs]
    return rows(
        Problem,
        len(graphs),
        prompt=[f"{text} ; ? y{len(graph.nodes)} >" for text, graph in zip(texts, graphs, strict=True)],
        key=[identity + text for text in texts],
        certificate=graphs,
        features=[measured(graph, routes) for graph in graphs],
        family=[family + merged(graph) for graph in graphs],
    )


def _question(graph: Graph) -> str:
    lines = [f"x{number} = {value}" for number, value in enumerate(graph.inputs, start=1)]
    lines += [f"y{number} = {_operation(node)}" for number, node in enumerate(graph.nodes, start=1)]
    return " ; ".join(lines)


def _operation(node: tuple[str, tuple[int, ...]]) -> str:
    taken = [f"y{argument + 1}" if argument >= 0 else f"x{-argument}" for argument in node[1]]
    return f"{node[0]} {' '.join(taken)}"


def _graph(problem: Problem) -> Graph:
    if not isinstance(problem.certificate, Graph):
        raise TypeError(f"the problem {problem.prompt!r} is not of latent graphs: it has {problem.certificate!r}")
    return problem.certificate


def draw_graphs(task: LatentGraphs, rng: Generator, count: int) -> list[Graph]:
    """``count`` graphs of a task, drawn independently."""
    world, knobs, routed = task.graph_world, task.knobs, task.routed
    below = uniforms(rng)
    graphs: list[Graph] = []
    failed = 0
    while len(graphs) < count:
        graph = draw_graph(world, knobs, routed, below)
        if graph is not None:
            graphs.append(graph)
            failed = 0
        else:
            failed += 1
            if failed == MOST_DRAWS:
                raise ValueError(_undrawable(task, 0, MOST_DRAWS))
    return graphs


@lru_cache(maxsize=64)
def _commonest(task: LatentGraphs) -> float:
    graphs = draw_graphs(task, stream("latent-graphs", "floor", task.world), COUNTED)
    return Counter(graph.values[-1] for graph in graphs).most_common(1)[0][1] / COUNTED


def _check_style(task: LatentGraphs, style: TraceStyle) -> None:
    if style.search != "optimal":
        raise ValueError(
            f"a graph is computed, not searched for: search={style.search!r} cannot be written, take 'optimal'"
        )
    if task.working == "none" and style.granularity != "implicit":
        raise ValueError(f"working='none' has no room for a trace, got granularity={style.granularity!r}")


# -------------------------------------------------------------------------------------------------- validation


def _check_choices(task: LatentGraphs) -> None:
    for name, value, choices in (("shape", task.shape, get_args(Shape)), ("working", task.working, get_args(Working))):
        if value not in choices:
            raise ValueError(f"LatentGraphs.{name} must be one of {', '.join(choices)}, got {value!r}")
    ordered = tuple(of for of in BASE_TYPES if type(task.types) is tuple and of in task.types)
    if not ordered or task.types != ordered or ordered[0] not in BASE_TYPES[:2]:
        raise ValueError(
            f"LatentGraphs.types must be a tuple of some of {', '.join(BASE_TYPES)}, each once and in this order, with"
            f" symbol or residue among them, got {task.types!r}"
        )


def _check_ranges(task: LatentGraphs) -> None:
    most = task.modules if type(task.modules) is int else 1  # what else it is will be refused below
    for name, low, high in (
        ("modules", 1, MOST_MODULES),
        ("alphabet", 2, LARGEST_ALPHABET),
        ("longest", 1, LONGEST_ROW),
        ("skills", 1, MOST_INVENTORY),
        ("routings", 0, MOST_INVENTORY),
        ("depth", 1, most),
        ("width", 1, most),
        ("reuse", 0, max(0, most - 2)),
        ("routed", 0, most),
    ):
        value = getattr(task, name)
        if name == "routed" and value is None:
            continue
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"LatentGraphs.{name} must be a whole number from {low} to {high}, got {value!r}")
    if type(task.world) is not int:
        raise ValueError(f"LatentGraphs.world must be a whole number, got {task.world!r}")
    if task.modulus not in PRIMES or type(task.modulus) is not int:
        raise ValueError(f"LatentGraphs.modulus must be a prime from 3 to {PRIMES[-1]}, got {task.modulus!r}")


def _check_shape(task: LatentGraphs) -> None:
    if task.shape == "chain" and (task.depth, task.width, task.reuse) != (task.modules, 1, 0):
        raise ValueError(
            f"a chain of {task.modules} modules has depth={task.modules}, width=1 and reuse=0, got depth={task.depth},"
            f" width={task.width} and reuse={task.reuse}"
        )
    if task.shape == "tree" and task.reuse:
        raise ValueError(f"a tree takes each result once, got reuse={task.reuse}; take shape='general' or reuse=0")
    if task.shape == "general" and not task.reuse:
        raise ValueError("a general graph with reuse=0 is a tree; take shape='tree' or a reuse of at least 1")
    effort = task.modules * task.depth * task.width * (task.modules + task.reuse) * (task.reuse + 1)
    if task.shape == "general" and effort > LARGEST_COUNT:
        raise ValueError(
            f"general graphs with modules={task.modules}, depth={task.depth}, width={task.width} and reuse={task.reuse}"
            f" are too many to count: modules * depth * width * (modules + reuse) * (reuse + 1) is {effort}, above"
            f" {LARGEST_COUNT}; take smaller numbers"
        )
    if task.shape != "chain" and not count_levels(task.knobs):
        raise ValueError(
            f"no {task.shape} graph has modules={task.modules}, depth={task.depth}, width={task.width} and"
            f" reuse={task.reuse}, with modules of up to {task.knobs.slots} arguments; there is one asked result, and"
            " every other one is taken"
        )


@lru_cache(maxsize=256)
def _check_drawable(task: LatentGraphs) -> None:
    world, knobs = task.graph_world, task.knobs
    below = uniforms(stream("latent-graphs", "pilot", task.world))
    hits = 0
    for _ in range(PILOT_DRAWS):
        hits += draw_graph(world, knobs, task.routed, below) is not None
        if hits == PILOT_HITS:
            return
    raise ValueError(_undrawable(task, hits, PILOT_DRAWS))


def _undrawable(task: LatentGraphs, hits: int, draws: int) -> str:
    return (
        f"{hits} of {draws} graphs drawn for {task} came out as asked: few modules of this world fit together so, or"
        f" rarely with these numbers; take more skills, other types, or less reuse, and routed=None or nearer to the"
        " share of the routings"
    )
