"""Two contenders in turn, in one process: how fast is either, and their ratio in each round."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median
from typing import Final

import torch
from rich.console import Console
from rich.table import Table

ROUNDS: Final = 7  # odd: the median is a measured round
WIDTH: Final = 110  # columns of the output, so that it reads alike in a terminal and in a file
ROUND_S: Final = 0.4  # long against a clock's ticks, short against what else the machine does

Contender = Callable[[], float]
"""Does its work once and returns how much that was, in the unit of the contest: tokens, without padding, or FLOPs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One round of one contender."""

    amount: float
    """Work done, in the unit of the contest."""
    cpu_s: float
    """Processor time of this process; what other processes do to caches and clock rates remains in it."""
    wall_s: float

    @property
    def rate(self) -> float:
        """Work per second of processor time."""
        return self.amount / self.cpu_s

    @property
    def wall_rate(self) -> float:
        """Work per second on the wall."""
        return self.amount / self.wall_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """All rounds of two contenders."""

    ours: tuple[Timed, ...]
    peer: tuple[Timed, ...]

    def ratio(self) -> str:
        """Our rate over the peer's: the median over rounds, and its range."""
        ratios = [ours.rate / peer.rate for ours, peer in zip(self.ours, self.peer, strict=True)]
        return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def contest(ours: Contender, peer: Contender) -> Contest:
    """Rounds of either contender, one after the other; who begins changes from round to round."""
    our_calls, peer_calls = _calls(ours), _calls(peer)
    our_rounds, peer_rounds = [], []
    for number in range(ROUNDS):
        if number % 2:
            peer_rounds.append(_time(peer, peer_calls))
        our_rounds.append(_time(ours, our_calls))
        if not number % 2:
            peer_rounds.append(_time(peer, peer_calls))
    return Contest(ours=tuple(our_rounds), peer=tuple(peer_rounds))


def rate(contender: Contender) -> float:
    """Work per second of processor time, the median over rounds."""
    calls = _calls(contender)
    return median(_time(contender, calls).rate for _ in range(ROUNDS))


def machine() -> str:
    """What a table was measured on, without names or dates."""
    return f"{os.cpu_count()} cores, torch {version('torch')}, {torch.backends.cpu.get_cpu_capability()}"


def show(*parts: Table | str) -> None:
    """Print tables and lines of text."""
    console = Console(width=WIDTH)
    for part in parts:
        console.print(part, highlight=False)


def _calls(contender: Contender) -> int:
    """How many calls fill a round; measured on the second call, since the first one pays for allocations."""
    contender()
    began = time.perf_counter()
    contender()
    return max(1, round(ROUND_S / (time.perf_counter() - began)))


def _time(contender: Contender, calls: int) -> Timed:
    cpu, wall = time.process_time(), time.perf_counter()
    amount = sum(contender() for _ in range(calls))
    return Timed(amount=amount, cpu_s=time.process_time() - cpu, wall_s=time.perf_counter() - wall)
