"""Latent graphs: compute a typed graph of hidden modules whose names carry no meaning.

The design follows "From Reasoning Traces to Reusable Modules" (arXiv:2606.18089): skills that make values, routings
that select, move and copy them, and graphs of both (chains, trees, general).

Texts (white space ends a symbol, and means nothing between symbols):

==================  =============================================  ==================================================
what                example                                        grammar
==================  =============================================  ==================================================
prompt              ``x1 = c ; y1 = m3 x1 ; y2 = m1 y1 ; ? y2 >``  inputs, then results in an order of computation,
                                                                   joined by ``;``, then ``? NAME >``
answer              ``d``                                          ``VALUE``, of the asked result
.. with working     ``y1 = b ; y2 = d # d``                        ``WORKING # VALUE``: one mark
VALUE               ``c``, ``5``, ``[abc]``, ``(abc)``, ``{c,d}``  symbol, residue without leading zeros, list,
                                                                   string, pair; lists and strings may be empty
checked working     ``y2 = d ; y1 = b``                            nothing, or ``NAME = VALUE`` joined by ``;``
==================  =============================================  ==================================================

With ``working="free"`` the working is any text; with ``"checked"`` each line must be true; with ``"none"`` there is no
mark. Up to 100,000 characters of an answer and 20,000 of a working are read: longer checked working is malformed,
longer free working is not looked at for progress.
"""

from typing import Final

from testbeds.core import Task
from testbeds.latent_graphs.graphs import Graph
from testbeds.latent_graphs.heldout import heldout_pairs, heldout_routing_pairs, heldout_routings, heldout_triples
from testbeds.latent_graphs.task import LatentGraphs
from testbeds.latent_graphs.worlds import GraphModule
from testbeds.latent_modules import HoldsPair
from testbeds.latent_structure import Coverage, HoldsRouting, HoldsTriple, coverage

__all__ = [
    "LEVELS",
    "TESTBED",
    "Coverage",
    "Graph",
    "GraphModule",
    "HoldsPair",
    "HoldsRouting",
    "HoldsTriple",
    "LatentGraphs",
    "coverage",
    "heldout_pairs",
    "heldout_routing_pairs",
    "heldout_routings",
    "heldout_triples",
]

TESTBED: Final[type[Task]] = LatentGraphs
LEVELS: Final[dict[str, Task]] = {
    "easy": LatentGraphs(world=0, skills=6, modules=2, depth=2),
    "tree": LatentGraphs(world=0, skills=8, types=("symbol", "residue"), shape="tree", modules=4, depth=3, width=2),
    "general": LatentGraphs(
        world=0, skills=8, types=("symbol", "residue"), shape="general", modules=5, depth=4, width=2, reuse=1
    ),
    "rows": LatentGraphs(
        world=0, skills=18, types=("symbol", "list", "string"), shape="tree", modules=4, depth=3, width=2
    ),
    "routed": LatentGraphs(
        world=0, skills=8, routings=6, shape="general", modules=6, depth=4, width=2, reuse=1, working="checked"
    ),
    "hard": LatentGraphs(
        world=0,
        skills=24,
        routings=8,
        types=("symbol", "residue", "list", "string"),
        shape="general",
        modules=12,
        depth=7,
        width=3,
        reuse=2,
    ),
}
