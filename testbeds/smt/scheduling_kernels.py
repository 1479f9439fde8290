"""The fast half of scheduling: the shortest schedule by branch and bound, in compiled code.

Jobs are put in one after another, each as early as the machines and its predecessors allow, in every order in which
starts do not go back. Some order gives a shortest schedule: sort the jobs of any schedule by their starts, and each
goes in no later than it stood.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def _earliest(job: int, before: Ints, ends: Ints, free: Ints) -> int:
    """When a job can start: a machine is free and all that come before have ended."""
    start = free[0]
    for other in range(ends.size):
        if before[job] >> other & 1:
            start = max(start, ends[other])
    return int(start)


@njit(cache=True)
def _put(free: Ints, end: int, into: Ints) -> None:
    """Write into ``into`` the times at which machines are free, ascending, after the first takes a job to ``end``."""
    i = 0
    while i + 1 < free.size and free[i + 1] < end:
        into[i] = free[i + 1]
        i += 1
    into[i] = end
    for k in range(i + 1, free.size):
        into[k] = free[k]


@njit(cache=True)
def shortest(durations: Ints, before: Ints, tails: Ints, machines: int, starts: Ints) -> int:  # noqa: C901, PLR0915
    """The least makespan, with the starts of one such schedule written into ``starts``.

    ``before[j]`` has a bit for each predecessor of j; ``tails[j]`` is the longest chain of durations from j on.
    """
    jobs = durations.size
    total = durations.sum()
    least = max(tails.max(), -(-total // machines))
    best = total + 1
    free = np.zeros((jobs + 1, machines), dtype=np.int64)
    ends = np.zeros((jobs + 1, jobs), dtype=np.int64)
    begun = np.zeros((jobs + 1, jobs), dtype=np.int64)
    done = np.zeros(jobs + 1, dtype=np.int64)
    latest = np.zeros(jobs + 1, dtype=np.int64)
    left = np.full(jobs + 1, total, dtype=np.int64)
    tried = np.full(jobs + 1, -1, dtype=np.int64)
    depth = 0
    while depth >= 0:
        if depth == jobs:
            makespan = ends[depth].max()
            if makespan < best:
                best = makespan
                starts[:] = begun[depth]
                if best == least:
                    break
            depth -= 1
            continue
        tried[depth] += 1
        job = tried[depth]
        if job == jobs:
            depth -= 1
            continue
        if done[depth] >> job & 1 or before[job] & ~done[depth]:
            continue
        start = _earliest(job, before, ends[depth], free[depth])
        if start < latest[depth] or start + tails[job] >= best:
            continue
        if -(-(free[depth].sum() + left[depth]) // machines) >= best:
            continue
        _put(free[depth], start + durations[job], free[depth + 1])
        ends[depth + 1] = ends[depth]
        ends[depth + 1, job] = start + durations[job]
        begun[depth + 1] = begun[depth]
        begun[depth + 1, job] = start
        done[depth + 1] = done[depth] | 1 << job
        latest[depth + 1] = start
        left[depth + 1] = left[depth] - durations[job]
        tried[depth + 1] = -1
        depth += 1
    return int(best)


@njit(cache=True)
def shortest_of_many(durations: Ints, before: Ints, tails: Ints, machines: int) -> tuple[Ints, Ints]:
    """(makespans, starts) of many problems, one a row."""
    count, jobs = durations.shape
    makespans = np.zeros(count, dtype=np.int64)
    starts = np.zeros((count, jobs), dtype=np.int64)
    for i in range(count):
        makespans[i] = shortest(durations[i], before[i], tails[i], machines, starts[i])
    return makespans, starts
