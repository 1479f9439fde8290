"""Scheduling with precedence: when each job starts, on equal machines, by a deadline or as soon as can be.

Texts (white space between symbols is free, and means nothing):

============  =============================================  ========================================================
what          example                                        grammar
============  =============================================  ========================================================
prompt        ``machines 2 ; A takes 3 ; B takes 2 after A   ``"machines" NUMBER (";" JOB "takes" NUMBER ["after" JOB
              ; C takes 4 ; finish by 6 ?``                  ("," JOB)*])+ ";" "finish" ("by" NUMBER | "soonest") "?"``
answer        ``A=0,B=3,C=0``                                ``JOB "=" NUMBER ("," JOB "=" NUMBER)*``
.. worked     ``A free : A=0 ; B after A : B=3 # A=0,...``   ``WORKING "#" ANSWER``: one mark, WORKING is free text
============  =============================================  ========================================================

A job that starts at 3 and takes 2 runs at 3 and 4 and ends at 5. An answer gives each job one start, in any order,
without leading zeros. It is *feasible* if each job starts at or after the end of those that it comes after, never more
jobs run at once than there are machines, and (``finish by``) all end by the deadline; with ``finish soonest`` it must
also be *optimal*: no feasible schedule ends earlier. Any right schedule is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import factorial
from typing import ClassVar, Final, Literal, get_args

import numpy as np
from numpy.random import Generator

from testbeds.core import Problem, Step, Task, Trace, TraceStyle, Verdict
from testbeds.smt import scheduling_engine as engine
from testbeds.smt import scheduling_kernels as kernels
from testbeds.smt.answers import Flaw
from testbeds.smt.scheduling_engine import NAMES, Placing, Plan
from testbeds.smt.working import arranged, check_style, depth_first, first_found, read_words, split_at

Aim = Literal["soonest", "deadline"]

LONGEST_JOB = 7  # eight jobs of 7 end by 56, and the puzzle language has room for 62 values
LONGEST_NUMBER = 6  # digits of a start; more are far beyond any schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingCertificate:
    """What is to be scheduled, and a shortest schedule."""

    durations: tuple[int, ...]
    links: tuple[tuple[int, int], ...]
    """Pairs (earlier, later) of jobs."""
    machines: int
    deadline: int | None
    """None where the schedule must be as short as can be."""
    optimum: int
    """When the shortest schedule ends."""
    starts: tuple[int, ...]
    """The starts of a shortest schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """Jobs on equal machines, some after others.

    Durations are uniform. Precedence is drawn for each pair of jobs independently, along a random order, and written
    without what follows from the rest; there is at least one. The key forgets the names of jobs and the direction of
    time (a plan run backwards has the same schedules, mirrored), exactly; the family forgets the aim as well.
    """

    revision: ClassVar[int] = 1
    answers_are_shared: ClassVar[bool] = False
    key_note: ClassVar[str] = "durations, precedence, machines and aim, up to names of jobs and the direction of time"
    jobs: int = 5
    """How many jobs, 2 to 8."""
    machines: int = 2
    """How many jobs can run at once, 1 to 4."""
    durations: tuple[int, int] = (1, 5)
    """Shortest and longest job, 1 to 7."""
    density: float = 0.3
    """Probability that one of two jobs must come after the other, before what follows is left out; 0 to 1."""
    aim: Aim = "soonest"
    """``soonest``: only shortest schedules are right; ``deadline``: all that end by a given time."""
    slack: int = 0
    """How much later than the shortest schedule the deadline is, 0 to 5; only ``deadline`` has more than 0."""

    def __post_init__(self) -> None:
        for name, low, high in (("jobs", 2, len(NAMES)), ("machines", 1, 4), ("slack", 0, 5)):
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise ValueError(f"Scheduling.{name} must be a whole number from {low} to {high}, got {value!r}")
        bounds: object = self.durations
        match bounds:
            case (int(low), int(high)) if (
                type(bounds) is tuple and bool not in map(type, bounds) and 1 <= low <= high <= LONGEST_JOB
            ):
                pass
            case _:
                raise ValueError(
                    "Scheduling.durations must be a tuple (shortest, longest) of whole numbers from 1 to"
                    f" {LONGEST_JOB}, got {self.durations!r}"
                )
        if type(self.density) not in (int, float) or not 0 <= self.density <= 1:
            raise ValueError(f"Scheduling.density must be a number from 0 to 1, got {self.density!r}")
        if self.aim not in get_args(Aim):
            raise ValueError(f"Scheduling.aim must be one of {', '.join(get_args(Aim))}, got {self.aim!r}")
        if self.slack and self.aim != "deadline":
            raise ValueError(f"Scheduling.slack={self.slack} goes with aim='deadline', got aim={self.aim!r}")

    @property
    def symbols(self) -> tuple[str, ...]:
        return (
            *map(str, range(10)),
            *NAMES[: self.jobs],
            *"=,;:?#",
            *("machines", "takes", "after", "finish", "by", "soonest"),
            *("free", "behind", "try", "time", "fails"),
        )

    @property
    def instructions(self) -> str:
        goal = (
            "all jobs end by the time that the prompt gives"
            if self.aim == "deadline"
            else "the last job ends as early as possible"
        )
        return (
            "The prompt says how many equal machines there are, how long each job takes, and which jobs it must come"
            " after. A job runs without a break on one machine; a machine runs one job at a time; a job may start once"
            f" all jobs that it comes after have ended. Choose whole starting times from 0 so that {goal}. Answer with"
            " each job's start, separated by commas, such as 'A=0,B=3'. Working may stand before the answer, divided"
            " from it by one # mark."
        )

    @property
    def capacity(self) -> int | None:
        return None

    def generate(self, rng: Generator, count: int) -> list[Problem]:
        plans = [self._plan(rng) for _ in range(count)]
        if not plans:
            return []
        durations = np.array([plan.durations for plan in plans], dtype=np.int64)
        before = np.array([[sum(1 << i for i in early) for early in plan.before] for plan in plans], dtype=np.int64)
        tails = np.array([plan.tails for plan in plans], dtype=np.int64)
        optima, starts = kernels.shortest_of_many(durations, before, tails, self.machines)
        return [
            self._problem(plan, optimum, tuple(start))
            for plan, optimum, start in zip(plans, optima.tolist(), starts.tolist(), strict=True)
        ]

    def enumerate(self) -> None:
        return None

    def demonstrate(self, problem: Problem, style: TraceStyle, rng: Generator) -> Trace:
        """The jobs in the order of their starts, each with its reason, or a search that puts in job after job.

        ``free``: nothing is in the way; ``after X``: X had to end first; ``behind X``: X's machine had to be free. The
        search tries jobs in the order of their names; without a number of backtracks it ends at the first schedule that
        it finds, with one at a shortest schedule.
        """
        check_style(style, of="Scheduling")
        certificate = _certificate(problem)
        plan = _plan_of(certificate)
        if style.search != "depth_first":
            return Trace.worked(
                arranged(_placements(plan, certificate.starts), style, rng),
                _answer(certificate.starts),
                separator=" ; ",
            )
        tree = _placing(plan, _limit(certificate))
        goal: tuple[int, ...] | None = tuple(sorted(range(tree.depth), key=lambda job: (certificate.starts[job], job)))
        if style.backtracks is None:
            goal = first_found(tree)
        if goal is None:
            raise ValueError(f"{problem.prompt!r} has no schedule by {_limit(certificate)}; ask the task that made it")
        steps = depth_first(tree, goal, style.backtracks, rng)
        starts = tree.starts(goal)
        return Trace.worked(steps, _answer([starts[job] for job in range(tree.depth)]), separator=" ; ")

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The verdict by the grammar at the top of this file.

        ``progress`` is half the share of rules that hold; for a feasible schedule that is too long, a half plus nearly
        a half of the ratio of optimum to length.
        """
        certificate = _certificate(problem)
        starts = _read(certificate, completion)
        if isinstance(starts, Flaw):
            return starts.verdict
        durations = dict(zip(NAMES, certificate.durations, strict=False))
        end = max(start + durations[job] for job, start in starts.items())
        rules = engine.puzzle(_plan_of(certificate), certificate.deadline).constraints
        broken = [rule.text for rule in rules if not rule.holds(starts | {engine.END: end})]
        if broken:
            held = 0.5 * (1 - len(broken) / len(rules))
            return Verdict(
                correct=False, well_formed=True, progress=held, reason=f"infeasible: {broken[0]} is violated"
            )
        if certificate.deadline is None and end > certificate.optimum:
            return Verdict(
                correct=False,
                well_formed=True,
                progress=0.5 + 0.49 * certificate.optimum / end,  # below 1 whatever rounding does
                reason=f"feasible, but it ends at {end} and the optimum is {certificate.optimum}",
            )
        return Verdict(correct=True, well_formed=True, progress=1.0, reason=f"feasible and in time: it ends at {end}")

    def solutions(self, problem: Problem) -> None:
        """None: working is free text. See ``answers``."""
        return

    def answers(self, problem: Problem) -> Iterator[str]:
        """Every right schedule, jobs in order; there can be very many."""
        certificate = _certificate(problem)
        return (_answer(starts) for starts in engine.schedules(_plan_of(certificate), _limit(certificate)))

    def floor(self, problem: Problem) -> float:
        """An upper bound for guesses that do not see which job comes after which: orders that fit / jobs!.

        Names are dealt to the places of the precedence graph uniformly and independently of durations. A guess puts the
        jobs in some order, and is right only if that order fits; of all dealings, a share of
        (linear extensions) / jobs! fits any one order.
        """
        certificate = _certificate(problem)
        jobs = len(certificate.durations)
        return engine.linear_extensions(jobs, certificate.links) / factorial(jobs)

    def _plan(self, rng: Generator) -> Plan:
        low, high = self.durations
        order = rng.permutation(self.jobs).tolist()
        pairs = [(order[i], order[j]) for j in range(self.jobs) for i in range(j)]
        links = [
            pair for pair, chance in zip(pairs, rng.random(len(pairs)).tolist(), strict=True) if chance < self.density
        ]
        spare = pairs[int(rng.integers(len(pairs)))]
        durations = tuple(rng.integers(low, high + 1, size=self.jobs).tolist())
        return Plan(durations, engine.reduced(self.jobs, links or [spare]), self.machines)

    def _problem(self, plan: Plan, optimum: int, starts: tuple[int, ...]) -> Problem:
        deadline = optimum + self.slack if self.aim == "deadline" else None
        family = f"scheduling:{self.machines}:{engine.canonical(plan)}"
        return Problem(
            prompt=_prompt(plan, deadline),
            key=f"{family};{'soonest' if deadline is None else f'by {deadline}'}",
            family=family,
            certificate=SchedulingCertificate(
                durations=plan.durations,
                links=plan.links,
                machines=plan.machines,
                deadline=deadline,
                optimum=optimum,
                starts=starts,
            ),
            features={
                "jobs": self.jobs,
                "links": len(plan.links),
                "work": sum(plan.durations),
                "critical": max(plan.tails),
                "optimum": optimum,
                "waiting": optimum - max(plan.tails),
                "greedy_excess": engine.greedy_makespan(plan) - optimum,
                "slack": self.slack,
            },
        )


def _prompt(plan: Plan, deadline: int | None) -> str:
    jobs = []
    for job, duration in enumerate(plan.durations):
        earlier = " , ".join(NAMES[i] for i in plan.before[job])
        jobs.append(f"{NAMES[job]} takes {duration}{f' after {earlier}' if earlier else ''}")
    aim = "soonest" if deadline is None else f"by {deadline}"
    return f"machines {plan.machines} ; {' ; '.join(jobs)} ; finish {aim} ?"


def _certificate(problem: Problem) -> SchedulingCertificate:
    certificate = problem.certificate
    if not isinstance(certificate, SchedulingCertificate):
        raise TypeError(
            f"Scheduling reads problems with a SchedulingCertificate, got {type(certificate).__name__}; ask the task"
            " that made the problem"
        )
    return certificate


def _plan_of(certificate: SchedulingCertificate) -> Plan:
    return Plan(certificate.durations, certificate.links, certificate.machines)


def _limit(certificate: SchedulingCertificate) -> int:
    """When a right schedule ends at the latest."""
    return certificate.optimum if certificate.deadline is None else certificate.deadline


def _answer(starts: list[int] | tuple[int, ...]) -> str:
    return ",".join(f"{job}={start}" for job, start in zip(NAMES, starts, strict=False))


def _placements(plan: Plan, starts: tuple[int, ...]) -> list[Step]:
    """One step for each job, in the order of starts: why it does not start earlier, and when it starts."""
    ends = [start + duration for start, duration in zip(starts, plan.durations, strict=True)]
    steps = []
    for job in sorted(range(len(starts)), key=lambda job: (starts[job], job)):
        waited = [i for i in plan.before[job] if ends[i] == starts[job]]
        freed = [i for i in range(len(starts)) if ends[i] == starts[job]]
        reason = "free"
        if starts[job] > 0:
            reason = f"after {NAMES[waited[0]]}" if waited else f"behind {NAMES[freed[0]]}"
        result = f"{NAMES[job]}={starts[job]}"
        steps.append(Step(operation=f"{NAMES[job]} {reason}", result=result, text=f"{NAMES[job]} {reason} : {result}"))
    return steps


def _read(certificate: SchedulingCertificate, completion: str) -> dict[str, int] | Flaw:
    """The start of each job."""
    names = NAMES[: len(certificate.durations)]
    found = read_words(completion, (*names, *"0123456789=,"))
    if isinstance(found, Flaw):
        return found
    starts: dict[str, int] = {}
    for part in split_at(found, ","):
        number = "".join(part[2:])
        if len(part) < 3 or part[0] not in names or part[1] != "=" or not number.isdigit():
            return Flaw(f"a start is a job, '=' and a number, got {''.join(part)[:80]!r}")
        if len(number) > LONGEST_NUMBER or (number[0] == "0" and number != "0"):
            return Flaw(f"{part[0]}'s start has a leading zero or more than {LONGEST_NUMBER} digits")
        if part[0] in starts:
            return Flaw(f"{part[0]} has more than one start")
        starts[part[0]] = int(number)
    missing = [name for name in names if name not in starts]
    return Flaw(f"{missing[0]} has no start") if missing else starts


_placing = lru_cache(maxsize=256)(Placing)


TESTBED: Final[type[Task]] = Scheduling
LEVELS: Final[dict[str, Task]] = {
    "easy": Scheduling(jobs=4),
    "medium": Scheduling(jobs=5, machines=2),
    "hard": Scheduling(jobs=8, machines=3, durations=(1, 7), density=0.25),
    "deadline": Scheduling(jobs=6, machines=2, aim="deadline", slack=1),
}
