"""Problems with demonstrations, and verdicts, per second of processor time, against reasoning-gym in the same run.

Both sides make new problems in every round: nothing is timed that a cache of an earlier round holds. What is compiled
at first use, and what is tabulated once per process, is paid before the first round; the 24 game's tables are cleared.
Ours makes a problem with its canonical key, its features and a worked demonstration; the peer's item has an answer
(Sudoku, zebra) or none (Countdown has one, too). Items have the same difficulty by the peer's own parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import count
from statistics import median
from typing import Final

import reasoning_gym
from rich.table import Table

from benchmarks.side_by_side import Contender, contest, machine, rate, show
from models import Tokenizer
from testbeds import EXPLICIT, IMPLICIT, Mixture, Suite, Task, demonstrated, game24, game24_hands, stream
from testbeds.core import TraceStyle
from testbeds.countdown import Countdown
from testbeds.game24 import Game24
from testbeds.latent_modules import LEVELS as LATENT_LEVELS
from testbeds.smt.knights_knaves import KnightsKnaves
from testbeds.smt.zebra import Zebra
from testbeds.sudoku import Sudoku
from training import FreshText

Setting = bool | int | float | str
BATCH: Final = 256  # problems of ours at a time: four blocks of a suite
TARGET_TOKENS: Final = 1_000_000  # per second and core, of the whole stream from problem to token ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of work, ours and the peer's."""

    name: str
    task: Task
    peer: str
    """Name of the peer's data set."""
    settings: tuple[tuple[str, Setting], ...]
    """Its parameters."""
    wanted: float
    """The ratio that is asked for."""
    style: TraceStyle = EXPLICIT
    batch: int = BATCH
    """Problems of ours at a time."""
    peer_batch: int = 4
    """Items of the peer at a time: a few tenths of a second for the dearest."""
    forget: Callable[[], None] = lambda: None
    """Drops what is tabulated once per process, where that would hide the work."""


def _forget_hands() -> None:
    game24._table.cache_clear()
    game24_hands.facts.cache_clear()


def _rows() -> Iterator[Row]:
    numbers = tuple(Countdown(numbers=n, values=(1, 100), target=(1, 100)) for n in (3, 4))
    yield Row(
        name="Countdown, 3-4 numbers, with demonstration",
        task=Mixture(tasks=numbers, weights=(1, 1)),
        peer="countdown",
        settings=(("min_numbers", 3), ("max_numbers", 4), ("min_target", 1), ("max_target", 100)),
        wanted=200,
    )
    for name, givens, empty, wanted in (("30-50 empty", (31, 51), (30, 50), 100), ("56 empty", (25, 25), (56, 56), 0)):
        yield Row(
            name=f"Sudoku 9x9, {name}",
            task=Sudoku(givens=givens),
            peer="sudoku",
            settings=(("min_empty", empty[0]), ("max_empty", empty[1])),
            wanted=wanted,
        )
    for style in (IMPLICIT, EXPLICIT):
        yield Row(
            name=f"Sudoku 4x4, {style.name} demonstration",
            task=Sudoku(size=4, givens=(4, 8)),
            peer="mini_sudoku",
            settings=(),
            wanted=10,
            style=style,
        )
    for size, wanted in ((3, 100), (4, 100), (5, 50)):
        yield Row(
            name=f"zebra {size}x{size}",
            task=Zebra(houses=size, attributes=size),
            peer="zebra_puzzles",
            settings=(("num_people", size), ("num_characteristics", size)),
            wanted=wanted,
        )
    yield Row(
        name="knights and knaves, 5 people",
        task=KnightsKnaves(people=5, depth=1, width=2),  # one connective a statement, as theirs
        peer="knights_knaves",
        settings=(("n_people", 5), ("depth_constraint", 2), ("width_constraint", 2)),
        wanted=10,
    )
    yield Row(
        name="24 game",
        task=Game24(values=(1, 10)),
        peer="puzzle24",
        settings=(("min_value", 1), ("max_value", 10)),
        wanted=500,
        batch=8 * BATCH,  # a process tabulates the hands once; here it does so for every 2,048 problems
        peer_batch=16,  # its items differ a hundredfold in time
        forget=_forget_hands,
    )


def _ours(row: Row) -> Contender:
    rounds = count()

    def make() -> float:
        row.forget()
        rng = stream("benchmark", row.name, next(rounds))
        problems = row.task.generate(rng, row.batch)
        for problem in problems:
            demonstrated(row.task, problem, row.style, rng)
        return len(problems)

    return make


def _theirs(row: Row) -> Contender:
    seeds = count(1)

    def make() -> float:
        items = reasoning_gym.create_dataset(
            row.peer, seed=1_000_003 * next(seeds), size=row.peer_batch, **dict(row.settings)
        )
        return sum(1 for _ in items)

    return make


def _verification() -> tuple[Contender, Contender]:
    """Right answers to the same kind of problem, each judged by its own verifier."""
    task = Countdown(numbers=4, values=(1, 100), target=(1, 100))
    problems = task.generate(stream("benchmark", "verification"), BATCH)
    answers = [demonstrated(task, p, IMPLICIT, stream("benchmark", "answers")).text for p in problems]
    items = reasoning_gym.create_dataset(
        "countdown", seed=5, size=32, min_numbers=4, max_numbers=4, min_target=1, max_target=100
    )
    asked = [(item["metadata"]["expression"], item) for item in items]

    def ours() -> float:
        return sum(task.verify(problem, answer).correct for problem, answer in zip(problems, answers, strict=True))

    def theirs() -> float:
        return sum(items.score_answer(answer, item) == 1.0 for answer, item in asked)

    return ours, theirs


def _tokens(task: Task) -> Contender:
    """The whole stream of a training stage: keyed problems of a split, traces, token ids."""
    source = FreshText(suite=Suite(task=task))
    tokenizer = Tokenizer.of(task.symbols)
    steps = count()

    def make() -> float:
        texts = source.texts(0, next(steps), BATCH)
        prompts = tokenizer.encode_many([text.problem.prompt for text in texts])
        completions = tokenizer.encode_many([text.completion for text in texts])
        return sum(map(len, prompts)) + sum(map(len, completions)) + len(texts)  # and an end token each

    return make


def main() -> None:
    """Print the tables of README.md."""
    table = Table(title=f"reasoning-gym {version('reasoning-gym')}, {machine()}", title_justify="left")
    for heading in ("work", "ours / CPU s", "reasoning-gym / CPU s", "ratio (range)", "asked"):
        table.add_column(heading, justify="left" if heading == "work" else "right")
    for row in _rows():
        result = contest(_ours(row), _theirs(row))
        ours, theirs = (median(timed.rate for timed in side) for side in (result.ours, result.peer))
        table.add_row(
            row.name, f"{ours:,.0f}", f"{theirs:.3g}", result.ratio(), f"{row.wanted:g}" if row.wanted else "300/s"
        )
    result = contest(*_verification())
    ours, theirs = (median(timed.rate for timed in side) for side in (result.ours, result.peer))
    table.add_row("Countdown verification", f"{ours:,.0f}", f"{theirs:,.0f}", result.ratio(), "50")
    streams = Table(title="problem to token ids, one core", title_justify="left")
    for heading in ("task", "tokens / CPU s", "asked"):
        streams.add_column(heading, justify="left" if heading == "task" else "right")
    for name, task in (
        ("Countdown, 4 numbers from 1 to 100", Countdown(numbers=4, values=(1, 100), target=(1, 100))),
        *((f"latent modules, {level}", task) for level, task in LATENT_LEVELS.items() if level != "direct"),
    ):
        streams.add_row(name, f"{rate(_tokens(task)):,.0f}", f"{TARGET_TOKENS:,}")
    show(table, streams)


if __name__ == "__main__":
    main()
