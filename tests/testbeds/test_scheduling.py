"""Scheduling: shortest schedules by trying all and by z3; feasible and optimal judged apart; exact keys."""

import re
from dataclasses import replace
from itertools import permutations, product

import pytest

from testbeds.core import EXPLICIT, Problem, TraceStyle, Unrealisable
from testbeds.smt import oracle, search
from testbeds.smt import scheduling_engine as engine
from testbeds.smt.scheduling import LEVELS, Scheduling, SchedulingCertificate
from testbeds.smt.scheduling_engine import Plan
from testbeds.smt.working import dead_ends
from testbeds.streams import stream


def told(prompt):
    """(machines, durations, links, deadline) read from a prompt alone."""
    first, *jobs, last = prompt.removesuffix(" ?").split(" ; ")
    durations, links = {}, []
    for part in jobs:
        job, duration, earlier = re.fullmatch(r"(\w) takes (\d)(?: after (.*))?", part).groups()
        durations[job] = int(duration)
        links += [(before, job) for before in (earlier or "").split(" , ") if before]
    deadline = None if last == "finish soonest" else int(last.removeprefix("finish by "))
    return int(first.split()[1]), durations, links, deadline


def is_feasible(starts, machines, durations, links):
    if any(starts[before] + durations[before] > starts[job] for before, job in links):
        return False
    last = max(starts.values()) + max(durations.values())
    return all(
        sum(starts[job] <= moment < starts[job] + durations[job] for job in durations) <= machines
        for moment in range(last)
    )


def feasible(machines, durations, links, limit):
    """Every feasible schedule that ends by a limit, by trying all starts."""
    jobs = list(durations)
    found = []
    for starts in product(range(limit + 1), repeat=len(jobs)):
        named = dict(zip(jobs, starts, strict=True))
        if all(named[job] + durations[job] <= limit for job in jobs) and is_feasible(named, machines, durations, links):
            found.append(named)
    return found


def written(starts):
    return ",".join(f"{job}={start}" for job, start in starts.items())


TINY = [
    Scheduling(jobs=3, machines=1, durations=(1, 3)),
    Scheduling(jobs=3, machines=2, durations=(1, 4)),
    Scheduling(jobs=4, machines=2, durations=(1, 2), density=0.5),
    Scheduling(jobs=3, machines=2, durations=(1, 3), aim="deadline", slack=1),
]


@pytest.mark.parametrize("task", TINY, ids=repr)
def test_exactly_the_right_schedules_of_all_are_accepted(task):
    for problem in task.generate(stream("tiny", repr(task)), 3):
        machines, durations, links, deadline = told(problem.prompt)
        optimum = problem.certificate.optimum
        assert not feasible(machines, durations, links, optimum - 1)
        limit = optimum if deadline is None else deadline
        right = feasible(machines, durations, links, limit)
        assert right
        assert [written(starts) for starts in right] == list(task.answers(problem))
        for starts in product(range(limit + 2), repeat=task.jobs):
            named = dict(zip(durations, starts, strict=True))
            verdict = task.verify(problem, written(named))
            assert verdict.correct == (named in right), verdict.reason
            assert verdict.well_formed
            if not verdict.correct and deadline is None:
                assert verdict.reason.startswith("feasible") == is_feasible(named, machines, durations, links)


@pytest.mark.parametrize("level", ["medium", "hard", "deadline"])
def test_z3_finds_the_same_optimum(level):
    task = LEVELS[level]
    for problem in task.generate(stream("oracle", level), 1):
        certificate = problem.certificate
        plan = Plan(certificate.durations, certificate.links, certificate.machines)
        assert oracle.optimum(engine.puzzle(plan, None)) == certificate.optimum
        assert oracle.solutions(engine.puzzle(plan, certificate.optimum - 1), 1) == []
        assert oracle.solutions(engine.puzzle(plan, certificate.optimum), 1)


def test_the_general_search_lists_the_same_schedules_as_the_direct_one():
    for problem in LEVELS["easy"].generate(stream("search"), 5):
        certificate = problem.certificate
        plan = Plan(certificate.durations, certificate.links, certificate.machines)
        listed = list(engine.schedules(plan, certificate.optimum))
        assert sorted(search.solutions(engine.puzzle(plan, certificate.optimum), 5000)) == listed


# A (3) before B (2), and C (4), on two machines: A then B end at 5, C fits beside them anywhere from 0 to 1.
BY_HAND = Problem(
    prompt="machines 2 ; A takes 3 ; B takes 2 after A ; C takes 4 ; finish soonest ?",
    key="by hand",
    certificate=SchedulingCertificate(
        durations=(3, 2, 4), links=((0, 1),), machines=2, deadline=None, optimum=5, starts=(0, 3, 0)
    ),
)
THREE = Scheduling(jobs=3, machines=2)
RIGHT = "A=0,B=3,C=0"


@pytest.mark.parametrize("text", [RIGHT, "C=1,B=3,A=0", "A = 0 , B = 3 , C = 1", f"first A # {RIGHT}"])
def test_any_shortest_schedule_is_accepted_however_it_is_written(text):
    assert THREE.verify(BY_HAND, text).correct


@pytest.mark.parametrize(
    ("text", "reason", "progress"),
    [
        # Rules: capacity, three ends, one precedence. Feasible schedules get 0.5 + 0.49 * 5 / end.
        ("A=0,B=3,C=2", "feasible, but it ends at 6 and the optimum is 5", 0.5 + 0.49 * 5 / 6),
        ("A=0,B=2,C=3", "infeasible: B after A is violated", 0.5 * 4 / 5),
        ("A=0,B=3,C=999999", "feasible, but it ends at 1000003 and the optimum is 5", 0.5 + 0.49 * 5 / 1000003),
    ],
)
def test_feasible_and_optimal_are_judged_apart(text, reason, progress):
    verdict = THREE.verify(BY_HAND, text)
    assert verdict.well_formed
    assert not verdict.correct
    assert verdict.reason == reason
    assert verdict.progress == pytest.approx(progress)


def test_more_jobs_at_once_than_machines_are_infeasible():
    crowded = replace(BY_HAND, certificate=replace(BY_HAND.certificate, machines=1, optimum=9))
    assert THREE.verify(crowded, "A=0,B=3,C=2").reason == "infeasible: at most 1 at once is violated"
    assert THREE.verify(crowded, "A=0,B=3,C=5").correct


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("B14 inside other words", f"blah {RIGHT} blah"),
        ("a job twice", f"{RIGHT},A=0"),
        ("a job missing", "A=0,B=3"),
        ("a job too many", f"{RIGHT},D=0"),
        ("leading zero", "A=00,B=3,C=0"),
        ("negative", "A=-1,B=3,C=0"),
        ("fraction", "A=0,B=3.0,C=0"),
        ("power", "A=0,B=9**9**9**9,C=0"),
        ("many digits", f"A=0,B={'3' * 5000},C=0"),
        ("full-width digit", "A=0,B=\uff13,C=0"),
        ("no number", "A=,B=3,C=0"),
        ("A22 a number", "5"),
        ("two marks", f"#{RIGHT}#"),
        ("the prompt", BY_HAND.prompt),
    ],
)
def test_what_gives_no_starts_is_malformed(fault, text):
    verdict = THREE.verify(BY_HAND, text)
    assert not verdict.correct, fault
    assert not verdict.well_formed, fault


def renamed(plan, order):
    durations = [0] * len(order)
    for job, duration in enumerate(plan.durations):
        durations[order[job]] = duration
    return Plan(tuple(durations), tuple(sorted((order[i], order[j]) for i, j in plan.links)), plan.machines)


def plan_of(problem):
    return Plan(problem.certificate.durations, problem.certificate.links, problem.certificate.machines)


@pytest.mark.parametrize("level", LEVELS)
def test_other_names_and_the_other_direction_of_time_leave_the_key(level):
    rng = stream("names", level)
    for problem in LEVELS[level].generate(stream("keys", level), 15):
        plan = plan_of(problem)
        image = renamed(plan, rng.permutation(len(plan.durations)).tolist())
        assert engine.canonical(image) == engine.canonical(image.reversed) == engine.canonical(plan)
        assert problem.family == f"scheduling:{plan.machines}:{engine.canonical(plan)}"
        assert problem.key.startswith(problem.family)


def test_keys_are_equal_exactly_where_a_renaming_or_reversal_makes_one_plan_the_other():
    plans = [plan_of(p) for p in Scheduling(jobs=4, durations=(1, 2), density=0.4).generate(stream("iff"), 150)]

    def orbit(plan):
        images = [renamed(way, order) for way in (plan, plan.reversed) for order in permutations(range(4))]
        return min((image.durations, image.links) for image in images)

    by_key = {engine.canonical(plan): orbit(plan) for plan in plans}
    assert all(orbit(plan) == by_key[engine.canonical(plan)] for plan in plans)
    assert len(set(by_key.values())) == len(by_key) > 20


def test_identical_jobs_have_one_key_however_they_are_linked_up():
    one = Plan((3,) * 8, ((0, 1),), 2)  # 8! namings, which the twins among the jobs make few
    other = renamed(one, [5, 2, 0, 1, 3, 4, 6, 7])
    assert engine.canonical(one) == engine.canonical(other)
    assert engine.canonical(one) != engine.canonical(Plan((3,) * 8, ((0, 1), (2, 3)), 2))


def test_what_follows_from_other_links_is_left_out():
    assert engine.reduced(4, [(0, 1), (1, 2), (0, 2), (0, 3), (2, 3)]) == ((0, 1), (1, 2), (2, 3))


def test_the_floor_counts_the_orders_that_fit():
    for problem in Scheduling(jobs=5).generate(stream("floor"), 10):
        links = problem.certificate.links
        fits = sum(all(order.index(i) < order.index(j) for i, j in links) for order in permutations(range(5)))
        assert engine.linear_extensions(5, links) == fits
        assert Scheduling(jobs=5).floor(problem) == fits / 120


@pytest.mark.parametrize("level", LEVELS)
def test_each_placement_has_a_true_reason(level):
    task = LEVELS[level]
    for problem in task.generate(stream("reasons", level), 8):
        machines, durations, links, _ = told(problem.prompt)
        starts = {}
        for step in task.demonstrate(problem, EXPLICIT, stream("rng")).steps:
            job, start = step.result.split("=")
            _, *reason = step.operation.split()
            assert all(start_before <= int(start) for start_before in starts.values())
            if reason == ["free"]:
                assert start == "0"
            else:
                assert starts[reason[1]] + durations[reason[1]] == int(start)
                assert ((reason[1], job) in links) == (reason[0] == "after")
            starts[job] = int(start)
        assert is_feasible(starts, machines, durations, links)


@pytest.mark.parametrize("backtracks", [0, 1, 3])
def test_a_search_shows_exactly_as_many_dead_ends_as_asked_each_another_branch(backtracks):
    task = LEVELS["hard"]
    style = TraceStyle(search="depth_first", backtracks=backtracks)
    realised = 0
    for problem in task.generate(stream("dead ends"), 12):
        try:
            trace = task.demonstrate(problem, style, stream("rng", problem.key))
        except Unrealisable:
            continue
        realised += 1
        assert dead_ends(trace.steps) == backtracks
        assert task.verify(problem, trace.text).correct
    assert realised >= 4


@pytest.mark.parametrize("level", LEVELS)
def test_a_search_of_its_own_ends_at_a_right_schedule(level):
    task = LEVELS[level]
    for problem in task.generate(stream("own"), 8):
        trace = task.demonstrate(problem, TraceStyle(search="depth_first"), stream("rng"))
        assert task.verify(problem, trace.text).correct


def test_measures_are_what_they_say():
    for problem in LEVELS["medium"].generate(stream("measures"), 20):
        features = problem.features
        assert features["waiting"] == features["optimum"] - features["critical"] >= 0
        assert features["greedy_excess"] >= 0
        assert features["optimum"] * 2 >= features["work"]  # two machines


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"jobs": 1}, "2 to 8"),
        ({"machines": 5}, "1 to 4"),
        ({"jobs": True}, "2 to 8"),
        ({"durations": (0, 3)}, "tuple"),
        ({"durations": [1, 3]}, "tuple"),
        ({"durations": (True, 3)}, "tuple"),
        ({"density": 1.5}, "0 to 1"),
        ({"density": float("nan")}, "0 to 1"),
        ({"aim": "fastest"}, "soonest"),
        ({"slack": 1}, "goes with"),
        ({"slack": 9, "aim": "deadline"}, "0 to 5"),
    ],
)
def test_what_cannot_be_drawn_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Scheduling(**fields)


def test_no_word_begins_another():
    symbols = Scheduling(jobs=8).symbols
    assert not [(a, b) for a in symbols for b in symbols if a != b and b.startswith(a)]
