"""Reads completions of latent graphs: the answer after the mark, and the results written before it.

Work is bounded before it is done: a part that is longer than anything to be read is refused by its length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from testbeds.arithmetic import shown
from testbeds.core import ANSWER_MARK, Verdict
from testbeds.latent_graphs.graphs import Graph
from testbeds.latent_graphs.worlds import GraphWorld, value_pattern

LONGEST_ANSWER = 100_000  # characters, white space included
LONGEST_WORKING = 20_000  # characters; a prompt's applications take a few hundred

_LINE = re.compile(r"\s*(y[1-9][0-9]*)\s*=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Judges completions of one task."""

    world: GraphWorld
    working: str
    """As the task's field of this name."""

    def verdict(self, graph: Graph, completion: str) -> Verdict:
        """The verdict by the grammar of latent_graphs; ``progress`` of a wrong answer is below 1."""
        working, mark, answer = completion.rpartition(ANSWER_MARK)
        fault = self._form_fault(working, mark, answer)
        if fault:
            return _malformed(fault)
        answer = "".join(answer.split())
        if mark and self.working == "checked":
            judged = self._working_fault(graph, working)
            if judged is not None:
                return judged
        if answer == graph.values[-1]:
            return Verdict(correct=True, well_formed=True, progress=1.0, reason=f"the answer {answer} is right")
        return _wrong(graph, working, f"the answer {shown(answer)} is wrong; it is {graph.values[-1]}")

    def _form_fault(self, working: str, mark: str, answer: str) -> str:
        """What is wrong with the form of a completion, but for checked working; empty if nothing is."""
        if ANSWER_MARK in working:
            return f"there is more than one {ANSWER_MARK}; working and answer are parted by one"
        if mark and self.working == "none":
            return "working is written where only the answer may stand"
        if len(answer) > LONGEST_ANSWER:
            return f"the answer has {len(answer)} characters, at most {LONGEST_ANSWER} are read"
        tight = "".join(answer.split())
        if not tight:
            return "the answer is empty"
        return "" if _value(self.world).fullmatch(tight) else f"the answer {shown(tight)} is not a value"

    def _working_fault(self, graph: Graph, working: str) -> Verdict | None:
        """What is wrong with checked working; None if nothing is."""
        if len(working) > LONGEST_WORKING:
            return _malformed(f"the working has {len(working)} characters, at most {LONGEST_WORKING} are read")
        if not working.strip():
            return None
        truth = _truth(graph)
        value = _value(self.world)
        for number, line in enumerate(working.split(";"), start=1):
            read = _LINE.fullmatch(line)
            written = "".join(read[2].split()) if read else ""
            if read is None or not value.fullmatch(written):
                return _malformed(f"line {number} of the working, {shown(line.strip())}, is not NAME = VALUE")
            if truth.get(read[1]) != written:
                what = f"it is {truth[read[1]]}" if read[1] in truth else "there is no such result"
                return _wrong(graph, working, f"line {number} of the working, {shown(line.strip())}, is wrong; {what}")
        return None


def right_results(graph: Graph, working: str) -> int:
    """Applications whose value is written in the working, in a line of its own, and never written wrong there."""
    if len(working) > LONGEST_WORKING:
        return 0
    truth = _truth(graph)
    right: set[str] = set()
    wrong: set[str] = set()
    for line in working.split(";"):
        read = _LINE.fullmatch(line)
        if read is not None and read[1] in truth:
            (right if "".join(read[2].split()) == truth[read[1]] else wrong).add(read[1])
    return len(right - wrong)


def _truth(graph: Graph) -> dict[str, str]:
    return {f"y{number}": value for number, value in enumerate(graph.values, start=1)}


@lru_cache(maxsize=64)
def _value(world: GraphWorld) -> re.Pattern[str]:
    return re.compile(value_pattern(world))


def _wrong(graph: Graph, working: str, reason: str) -> Verdict:
    progress = right_results(graph, working) / (len(graph.nodes) + 1)
    return Verdict(correct=False, well_formed=True, progress=progress, reason=reason)


def _malformed(reason: str) -> Verdict:
    return Verdict(correct=False, well_formed=False, progress=0.0, reason=reason)
