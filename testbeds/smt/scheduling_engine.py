"""Jobs with durations and predecessors on equal machines: the plan, its measures, its search tree, its puzzle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from testbeds.smt.constraints import Constraint, Expression, OneOf, Precedence, Values
from testbeds.smt.language import Objective, Puzzle, Variable
from testbeds.smt.logic import Told
from testbeds.smt.renaming import canonical_writing

NAMES = "ABCDEFGH"
END = "end"
"""The variable that a puzzle with an objective minimises: when all jobs are done."""


@dataclass(frozen=True)
class Plan:
    """What is to be scheduled."""

    durations: tuple[int, ...]
    links: tuple[tuple[int, int], ...]
    """Pairs (earlier, later), none of which follows from others, ascending."""
    machines: int

    @cached_property
    def before(self) -> tuple[tuple[int, ...], ...]:
        """The direct predecessors of each job."""
        return tuple(tuple(i for i, j in self.links if j == job) for job in range(len(self.durations)))

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        """The direct successors of each job."""
        return tuple(tuple(j for i, j in self.links if i == job) for job in range(len(self.durations)))

    @cached_property
    def tails(self) -> tuple[int, ...]:
        """The longest chain of durations from each job on."""
        known: dict[int, int] = {}

        def tail(job: int) -> int:
            if job not in known:
                known[job] = self.durations[job] + max((tail(later) for later in self.after[job]), default=0)
            return known[job]

        return tuple(tail(job) for job in range(len(self.durations)))

    @property
    def reversed(self) -> Plan:
        """The plan run backwards: a schedule of one, mirrored in time, is a schedule of the other."""
        return Plan(self.durations, tuple(sorted((j, i) for i, j in self.links)), self.machines)


def reduced(jobs: int, links: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The links that do not follow from others (transitive reduction), ascending; they must not form a circle."""
    reach = [[False] * jobs for _ in range(jobs)]
    for i, j in links:
        reach[i][j] = True
    for k in range(jobs):
        for i in range(jobs):
            for j in range(jobs):
                reach[i][j] = reach[i][j] or (reach[i][k] and reach[k][j])
    return tuple(
        (i, j)
        for i in range(jobs)
        for j in range(jobs)
        if reach[i][j] and not any(reach[i][k] and reach[k][j] for k in range(jobs))
    )


def greedy_makespan(plan: Plan) -> int:
    """When a list schedule ends that starts, whenever it can, the job with the longest chain behind it."""
    tree = Placing(plan, sum(plan.durations))
    path: tuple[int, ...] = ()
    while len(path) < tree.depth:
        ready = {job: tree.start(path, job) for job in tree.ready(path)}
        soonest = min(ready.values())
        path = (*path, min((job for job in ready if ready[job] == soonest), key=lambda job: (-plan.tails[job], job)))
    return max(tree.ends(path).values())


@lru_cache(maxsize=4096)
def linear_extensions(jobs: int, links: tuple[tuple[int, int], ...]) -> int:
    """In how many orders the jobs can be done one by one: exact, by subsets."""
    before = [sum(1 << i for i, j in links if j == job) for job in range(jobs)]
    orders = [0] * 2**jobs
    orders[0] = 1
    for done in range(2**jobs):
        for job in range(jobs):
            if not done >> job & 1 and not before[job] & ~done:
                orders[done | 1 << job] += orders[done]
    return orders[-1]


def canonical(plan: Plan) -> str:
    """The plan up to names of jobs and the direction of time, exact."""
    return min(_named(plan), _named(plan.reversed))


def _named(plan: Plan) -> str:
    before, after = plan.before, plan.after

    def describe(job: int, colours: Sequence[int]) -> str:
        return f"{sorted([colours[other] for other in before[job]])}{sorted([colours[other] for other in after[job]])}"

    def write(names: Sequence[int]) -> str:
        durations = [plan.durations[job] for job in sorted(range(len(names)), key=names.__getitem__)]
        links = sorted([(names[i], names[j]) for i, j in plan.links])
        return f"{','.join(map(str, durations))};{','.join(f'{i}<{j}' for i, j in links)}"

    def are_twins(one: int, other: int) -> bool:
        return before[one] == before[other] and after[one] == after[other]

    return canonical_writing([f"{duration:04d}" for duration in plan.durations], describe, write, are_twins)


# -------------------------------------------------------------------------------------------------------- search


class Placing:
    """The search tree that puts in one job after another, each as early as it can stand; see working.py.

    Starts do not go back from job to job. A path fails if a job and the chain behind it cannot end by ``limit``, or the
    machines have not enough time for what is left.
    """

    def __init__(self, plan: Plan, limit: int) -> None:
        self._plan = plan
        self._limit = limit

    @property
    def depth(self) -> int:
        return len(self._plan.durations)

    def ready(self, path: tuple[int, ...]) -> list[int]:
        """The jobs whose predecessors are in."""
        return [
            job
            for job in range(self.depth)
            if job not in path and all(other in path for other in self._plan.before[job])
        ]

    def starts(self, path: tuple[int, ...]) -> dict[int, int]:
        """When each job of the path starts."""
        starts: dict[int, int] = {}
        free = [0] * self._plan.machines
        for job in path:
            start = max([free[0], *(starts[other] + self._plan.durations[other] for other in self._plan.before[job])])
            starts[job] = start
            free[0] = start + self._plan.durations[job]
            free.sort()
        return starts

    def ends(self, path: tuple[int, ...]) -> dict[int, int]:
        """When each job of the path ends."""
        return {job: start + self._plan.durations[job] for job, start in self.starts(path).items()}

    def start(self, path: tuple[int, ...], job: int) -> int:
        """When a job would start after those of the path."""
        return self.starts((*path, job))[job]

    def choices(self, path: tuple[int, ...]) -> Sequence[int]:
        latest = max(self.starts(path).values(), default=0)
        return [job for job in self.ready(path) if self.start(path, job) >= latest]

    def failure(self, path: tuple[int, ...]) -> str:
        ends = self.ends(path)
        free = sorted([0] * self._plan.machines + list(ends.values()))[-self._plan.machines :]
        left = [job for job in range(self.depth) if job not in ends]
        newest = path[-1]
        if ends[newest] - self._plan.durations[newest] + self._plan.tails[newest] > self._limit:
            return f"{NAMES[newest]} fails"
        late = self._late(left, ends, free[0])
        if late is not None:
            return f"{NAMES[late]} fails"
        needed = sum(self._plan.durations[job] for job in left)
        return "time fails" if sum(free) + needed > self._limit * self._plan.machines else ""

    def _late(self, left: Sequence[int], ends: Mapping[int, int], free: int) -> int | None:
        """A job that is not in and cannot end, with its chain, by the limit."""
        for job in left:
            earliest = max([free, *(ends[other] for other in self._plan.before[job] if other in ends)])
            if earliest + self._plan.tails[job] > self._limit:
                return job
        return None

    def shown(self, path: tuple[int, ...]) -> str:
        return f"{NAMES[path[-1]]}={self.starts(path)[path[-1]]}"


def schedules(plan: Plan, limit: int) -> Iterator[tuple[int, ...]]:
    """The starts of every schedule that ends by ``limit``, in lexicographic order."""
    return _extended(plan, limit, ())


def _extended(plan: Plan, limit: int, starts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    job = len(starts)
    if job == len(plan.durations):
        yield starts
        return
    earliest = max([0, *(starts[i] + plan.durations[i] for i in plan.before[job] if i < job)])
    latest = min([limit - plan.tails[job], *(starts[j] - plan.durations[job] for j in plan.after[job] if j < job)])
    for start in range(earliest, latest + 1):
        longer = (*starts, start)
        if _overload(plan.durations, longer, plan.machines) is None:
            yield from _extended(plan, limit, longer)


def _overload(durations: Sequence[int], starts: Sequence[int], machines: int) -> int | None:
    """A moment at which more jobs run than there are machines; None where there is none."""
    for moment in starts:
        running = sum(start <= moment < start + duration for start, duration in zip(starts, durations, strict=False))
        if running > machines:
            return moment
    return None


# ------------------------------------------------------------------------------------------------ puzzle language


@dataclass(frozen=True, slots=True)
class Capacity:
    """Never more jobs run at once than there are machines."""

    jobs: tuple[str, ...]
    durations: tuple[int, ...]
    machines: int

    @property
    def scope(self) -> tuple[str, ...]:
        return self.jobs

    @property
    def text(self) -> str:
        return f"at most {self.machines} at once"

    def holds(self, values: Values) -> bool:
        return _overload(self.durations, [values[job] for job in self.jobs], self.machines) is None

    def to_z3(self, expressions: Mapping[str, Expression]) -> Expression:
        import z3

        pairs = list(zip(self.jobs, self.durations, strict=True))
        return z3.And(
            [
                z3.Sum(
                    [
                        z3.If(
                            z3.And(
                                expressions[other] <= expressions[job],
                                expressions[job] < expressions[other] + duration,
                            ),
                            1,
                            0,
                        )
                        for other, duration in pairs
                    ]
                )
                <= self.machines
                for job in self.jobs
            ]
        )


@lru_cache(maxsize=256)
def puzzle(plan: Plan, deadline: int | None) -> Puzzle:
    """The plan in the puzzle language: starts that meet a deadline, or, without one, whose last end is minimal."""
    horizon = sum(plan.durations) if deadline is None else deadline
    names = tuple(NAMES[: len(plan.durations)])
    jobs = list(zip(names, plan.durations, strict=True))
    rules: list[Constraint] = [Capacity(names, plan.durations, plan.machines)]
    if deadline is None:
        rules += [Precedence(name, END, duration) for name, duration in jobs]
    else:
        rules += [
            Told(OneOf(name, tuple(range(deadline - duration + 1))), f"{name} ends by {deadline}")
            for name, duration in jobs
        ]
    clues = tuple(
        Told(Precedence(names[i], names[j], plan.durations[i]), f"{names[j]} after {names[i]}") for i, j in plan.links
    )
    variables = [Variable(name=name, domain=tuple(range(horizon + 1))) for name in names]
    if deadline is not None:
        return Puzzle(variables=tuple(variables), rules=tuple(rules), clues=clues)
    end = Variable(name=END, domain=tuple(range(horizon + 1)))
    return Puzzle(
        variables=(*variables, end),
        rules=tuple(rules),
        clues=clues,
        objective=Objective(variables=(END,), coefficients=(1,), maximise=False),
    )
