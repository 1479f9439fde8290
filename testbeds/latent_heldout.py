"""Which pairs, triples and routings of a chain of latent modules to hold out, listed from a keyed salt.

Each list leaves what it is made of in training: pairs leave every module, triples leave every pair. Predicates that
hold the listed out stand in latent_modules.py (``HoldsPair``) and latent_structure.py.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING

from testbeds.latent_structure import Pair, Triple, first_spared
from testbeds.streams import stream

if TYPE_CHECKING:
    from testbeds.latent_modules import LatentModules


def heldout_pairs(task: LatentModules, count: int, salt: int = 0) -> tuple[Pair, ...]:
    """``count`` ordered pairs of modules to hold out, such that each module is still seen first and second in a pair.

    The first pairs do not depend on ``count``: more can be held out without letting any back in.
    """
    names = task.names
    most = _spared_pairs(len(names))
    _check_count(count, most, f"pairs of {len(names)} modules")
    rng = stream("latent-modules", task.world, "heldout-pairs", salt)
    return first_spared(tuple(product(names, names)), count, rng, _sides, _sides_seen(names))


def heldout_triples(task: LatentModules, count: int, salt: int = 0) -> tuple[Triple, ...]:
    """``count`` ordered triples of modules to hold out, such that every pair of modules is still seen.

    Each pair keeps a module that may come before it and one that may come after it. So it stands in a training program
    of every depth: the pair, then after each two modules one that may follow them. The first triples do not depend on
    ``count``.
    """
    names = task.names
    if task.depth < 3:
        raise ValueError(f"programs of depth {task.depth} have no triples to hold out; take a depth of at least 3")
    most = len(names) * _spared_pairs(len(names))  # of triples with one module in the middle, as many as of pairs
    _check_count(count, most, f"triples of {len(names)} modules")
    seen: Counter[object] = Counter()
    for first, second in product(names, names):
        seen["first pair", first, second] = seen["second pair", first, second] = len(names)
    rng = stream("latent-modules", task.world, "heldout-triples", salt)
    return first_spared(tuple(product(names, names, names)), count, rng, _pair_sides, seen)


def heldout_routings(task: LatentModules, count: int, salt: int = 0) -> tuple[str, ...]:
    """Names of ``count`` routing modules to hold out; one at least stays. The first do not depend on ``count``."""
    routings = [module.name for module in task.modules if module.kind == "routing"]
    _check_count(count, len(routings) - 1, f"of the {len(routings)} routing modules")
    rng = stream("latent-modules", task.world, "heldout-routings", salt)
    return first_spared(routings, count, rng, lambda _: (), Counter())


def heldout_routing_pairs(task: LatentModules, count: int, salt: int = 0) -> tuple[Pair, ...]:
    """``count`` ordered pairs of a routing module and a skill, or the reverse, for ``HoldsRouting.patterns``.

    Each module is still seen on both sides of a pair: at least beside itself. The first do not depend on ``count``.
    """
    routes = {module.name: module.kind == "routing" for module in task.modules}
    mixed = [(first, second) for first, second in product(routes, routes) if routes[first] != routes[second]]
    _check_count(count, len(mixed), "pairs of a routing and a skill")
    rng = stream("latent-modules", task.world, "heldout-routing-pairs", salt)
    return first_spared(mixed, count, rng, _sides, _sides_seen(task.names))


def _check_count(count: int, most: int, what: str) -> None:
    if most < 1:
        raise ValueError(f"no {what.removeprefix('of the ')} can be held out of so few; take more modules")
    if type(count) is not int or not 1 <= count <= most:
        raise ValueError(f"between 1 and {most} {what} can be held out, got count={count!r}")


def _spared_pairs(modules: int) -> int:
    """Ordered pairs that can always be held out: a least edge cover of K(n, n) has up to 2n - 2 edges, at least n."""
    return modules**2 - max(modules, 2 * modules - 2)


def _sides(pair: Pair) -> tuple[object, ...]:
    return ("first", pair[0]), ("second", pair[1])


def _sides_seen(names: tuple[str, ...]) -> Counter[object]:
    return Counter(side for pair in product(names, names) for side in _sides(pair))


def _pair_sides(triple: Triple) -> tuple[object, ...]:
    return ("first pair", *triple[:2]), ("second pair", *triple[1:])
