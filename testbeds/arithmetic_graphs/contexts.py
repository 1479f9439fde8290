"""The words in which a graph is told: letters and signs, or one of three little worlds with 40 nouns each.

Noun i of one context stands for noun i of every other: the same draw is the same graph in other words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from testbeds.arithmetic_graphs.graph import LARGEST_MODULUS, Graph

_NUMBERS = tuple(map(str, reversed(range(LARGEST_MODULUS))))

_ZOO = """
lions bears wolves foxes tigers zebras giraffes elephants monkeys gorillas penguins seals otters beavers badgers
hyenas leopards panthers camels llamas antelopes buffaloes rhinos hippos crocodiles lizards turtles snakes frogs
toads parrots eagles owls hawks storks herons flamingos peacocks ostriches swans
"""
_SCHOOL = """
pencils rulers erasers crayons notebooks folders binders markers staplers scissors globes maps desks chairs lamps
clocks bells books atlases magnets beakers lenses prisms easels brushes drums flutes violins trumpets balls ropes
mats lockers benches tables posters flags tablets chalks sponges
"""
_FILM = """
heroes villains actors extras dancers singers stuntmen pilots sailors pirates knights wizards witches ghosts robots
aliens spies thieves doctors nurses judges lawyers farmers cowboys bandits kings queens princes clowns acrobats
divers hunters rangers soldiers guards butlers cooks waiters drivers painters
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A closed lexicon and the sentences made of it."""

    nouns: tuple[str, ...]
    """Names of nodes."""
    subject: str
    """Begins a sentence, before the node's name."""
    verb: str
    """Stands between a name and its definition."""
    operand: str
    """Stands before the name of a node in a definition."""
    signs: tuple[str, str, str]
    """Plus, minus and times."""
    stop: str
    """Ends a sentence; empty where sentences are joined by ``;``."""
    question: str
    """Stands before the asked node's name."""
    end: str
    """Stands after it."""

    def prompt(self, graph: Graph, order: list[int]) -> str:
        """The sentences in the given order of nodes, then the question.

        Numbers beyond the nodes are skipped, so that an order can be drawn before a graph's size is known.
        """
        names, size = graph.names, len(graph.names)
        operands = [*[self.operand + name for name in names], *_NUMBERS]
        signs = ("", *self.signs)
        sentences = []
        for node in order:
            if node < size:
                kind, left, right = graph.definitions[node]
                definition = operands[left] + signs[kind] + operands[right] if kind else operands[left]
                sentences.append(self.subject + names[node] + self.verb + definition)
        sentences.append(f"{self.question}{names[graph.needed - 1]}{self.end}")
        return self.stop.join(sentences)

    @property
    def words(self) -> tuple[str, ...]:
        """Every symbol that is no noun, each once."""
        texts = (self.subject, self.verb, self.operand, *self.signs, self.stop, self.question, self.end)
        return tuple(dict.fromkeys(" ".join(texts).split()))


CONTEXTS: Final[dict[str, Context]] = {
    "abstract": Context(
        nouns=tuple("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"),
        subject="",
        verb="=",
        operand="",
        signs=("+", "-", "*"),
        stop=";",
        question="?",
        end="",
    ),
    "zoo": Context(
        nouns=tuple(_ZOO.split()),
        subject="the number of ",
        verb=" equals ",
        operand="the number of ",
        signs=(" plus ", " minus ", " times "),
        stop=" . ",
        question="how many ",
        end=" ?",
    ),
    "school": Context(
        nouns=tuple(_SCHOOL.split()),
        subject="the teacher counts as many ",
        verb=" as ",
        operand="",
        signs=(" and ", " less ", " times "),
        stop=" . ",
        question="count the ",
        end=" !",
    ),
    "film": Context(
        nouns=tuple(_FILM.split()),
        subject="the cast of ",
        verb=" is ",
        operand="the cast of ",
        signs=(" with ", " without ", " times "),
        stop=" , ",
        question="how large is the cast of ",
        end=" ?",
    ),
}
