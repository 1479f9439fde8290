"""Worlds, drawing and keys of latent graphs."""

import itertools
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbeds import stream
from testbeds.latent_graphs import LEVELS, Graph, LatentGraphs, coverage
from testbeds.latent_graphs.graphs import measured, merged
from testbeds.latent_graphs.sorts import Draw
from testbeds.latent_graphs.worlds import WRITERS, drawn_world

ALL = ("symbol", "residue", "list", "string")
WIDE = LatentGraphs(
    world=5, skills=27, routings=24, types=ALL, alphabet=6, shape="general", modules=6, depth=4, width=2, reuse=1
)


# ------------------------------------------------------------------------- an interpreter of the meanings, by hand


def read_value(text):
    """A written value as (kind, content): residues as int, rows as lists of letters, pairs as two values."""
    if text[0] == "{":
        one, other = text[1:-1].split(",")
        return read_value(one), read_value(other)
    if text[0] in "[(":
        return list(text[1:-1])
    return int(text) if text.isdigit() else text


def written(value, gives):
    if gives.endswith(" pair"):
        part = gives.removesuffix(" pair")
        return "{" + written(value[0], part) + "," + written(value[1], part) + "}"
    opened, closed = {"list": "[]", "string": "()"}.get(gives, ("", ""))
    return opened + ("".join(value) if isinstance(value, list) else str(value)) + closed


def looked_up(meaning, key):
    return dict(entry.split(">") for entry in meaning.split())[str(key)]


def by_hand(module, arguments):  # noqa: C901, PLR0911, PLR0912, PLR0915  # one case for each sort
    """What a module does according to its meaning: plain Python, written from the texts alone."""
    words, first = module.meaning.split(), arguments[0]
    most = int(words[-1]) if "up to" in module.meaning else None
    match module.sort:
        case "permute" | "collapse" | "letter":
            return looked_up(module.meaning, first)
        case "number":
            return int(looked_up(module.meaning, first))
        case "combine":
            rows = dict(word.split(":") for word in words)
            return rows[arguments[1]]["abcdefghijklnopqrstu".index(first)]
        case "affine" | "quadratic" | "add" | "multiply" | "length":
            formula, modulus = module.meaning.split(" mod ")
            length = len(first) if module.sort == "length" else 0
            total = 0
            for term in formula.split("+"):
                product = 1
                for factor in term.split("*"):
                    names = {"x": first, "y": arguments[-1], "length": length}
                    product *= names[factor] if factor in names else int(factor)
                total += product
            return total % int(modulus)
        case "relabel" | "encipher" | "spell":
            return [looked_up(module.meaning, letter) for letter in first]
        case "reverse" | "reverse string":
            return list(reversed(first))
        case "rotate":
            row = list(first)
            for _ in range(int(words[-1])):
                row = row[1:] + row[:1]
            return row
        case "drop":
            return first[int(words[-1]) :]
        case "take":
            return first[: int(words[-1])]
        case "sort":
            return [letter for wanted in words[-1] for letter in first if letter == wanted]
        case "replace":
            return [words[3] if letter == words[1] else letter for letter in first]
        case "concatenate":
            return [*first, *arguments[1]][:most]
        case "interleave":
            zipped = itertools.zip_longest(first, arguments[1])
            return [letter for two in zipped for letter in two if letter is not None][:most]
        case "push":
            return [arguments[1], *first][:most]
        case "attach":
            return [*first, arguments[1]][:most]
        case "append":
            return [*first, words[1]][:most]
        case "double":
            return [letter for letter in first for _ in range(2)][:most]
        case "pick":
            return first[int(words[1]) % len(first)] if first else words[-1]
        case "select":
            return arguments[words[0] == "second"]
        case "part":
            return first[words[0] == "second"]
        case "duplicate":
            return first, first
        case "swap":
            return first[1], first[0]
        case "pair":
            return first, arguments[1]
        case "branch":
            chosen = module.meaning.removeprefix("second if first is one of ").split(",")[0].split()
            return arguments[1] if str(first) in chosen else arguments[2]
    raise AssertionError(module.sort)


@pytest.mark.parametrize("task", [WIDE, *LEVELS.values()])
def test_values_follow_from_what_the_modules_say_they_do(task):
    modules = {module.name: module for module in task.inventory}
    for problem in task.generate(stream("by hand"), 60):
        read = dict(line.split(" = ") for line in problem.prompt.split(" ; ")[:-1])
        for name, line in read.items():
            if name.startswith("x"):
                continue
            module_name, *arguments = line.split()
            module = modules[module_name]
            values = [read_value(read[argument]) for argument in arguments]
            read[name] = written(by_hand(module, values), module.gives)
        assert [value for name, value in read.items() if name.startswith("y")] == list(problem.certificate.values)


def test_the_wide_world_has_every_sort_of_module():
    assert len({module.sort for module in WIDE.inventory}) == 27 + 6
    applied = coverage(WIDE.generate(stream("every sort"), 1200)).modules
    sorts = {module.name: module.sort for module in WIDE.inventory}
    assert len({sorts[name] for name, _ in applied}) == 33


def all_values(of, letters, modulus, longest):
    match of:
        case "symbol":
            return list(letters)
        case "residue":
            return list(range(modulus))
        case "list" | "string":
            rows = (itertools.product(letters, repeat=length) for length in range(longest + 1))
            return ["".join(row) for row in itertools.chain.from_iterable(rows)]
    part = all_values(of.removesuffix(" pair"), letters, modulus, longest)
    return list(itertools.product(part, part))


def test_invertible_modules_are_bijections_and_other_unary_ones_are_not():
    task = LatentGraphs(world=2, skills=27, routings=12, types=ALL, alphabet=3, longest=3, modulus=5)
    drawn = drawn_world(task.graph_world)
    seen = Counter()
    for module, apply in zip(drawn.modules, drawn.functions, strict=True):
        if len(module.takes) != 1:
            assert not module.invertible
            continue
        taken, given_values = (all_values(of, "abc", 5, 3) for of in (module.takes[0], module.gives))
        images = {apply(value) for value in taken}
        assert (len(images) == len(taken) and images == set(given_values)) == module.invertible, module
        seen[module.invertible] += 1
    assert seen[True] >= 8
    assert seen[False] >= 8


def test_modules_differ_and_none_does_nothing():
    drawn = drawn_world(WIDE.graph_world)
    behaviours = set()
    rng = Draw(stream("behaviour"), alphabet=6, modulus=7, longest=4)
    probes = {}
    for module, apply in zip(drawn.modules, drawn.functions, strict=True):
        inputs = probes.setdefault(module.takes, [tuple(rng.value(of) for of in module.takes) for _ in range(200)])
        made = tuple(apply(*arguments) for arguments in inputs)
        assert made != tuple(arguments[0] for arguments in inputs) or len(module.takes) > 1
        behaviours.add((module.takes, module.gives, made))
    assert len(behaviours) == len(drawn.modules)


def test_names_do_not_give_kinds_away():
    # Over 60 worlds of 6 skills and 6 routings, m1 is a skill about 30 times (standard deviation 3.9).
    firsts = [LatentGraphs(world=seed, routings=6).inventory[0].kind for seed in range(60)]
    assert 15 < firsts.count("skill") < 45


def test_a_larger_world_contains_the_smaller_one_under_other_names():
    small = LatentGraphs(world=3, skills=8, routings=2, types=ALL)
    large = LatentGraphs(world=3, skills=14, routings=5, types=ALL)
    meanings = [Counter((m.sort, m.takes, m.meaning) for m in task.inventory) for task in (small, large)]
    assert meanings[0] <= meanings[1]
    assert small.graph_world.family == large.graph_world.family
    assert small.graph_world.identity != large.graph_world.identity


def test_another_seed_draws_another_world():
    meanings = [{module.meaning for module in LatentGraphs(world=seed).inventory} for seed in (1, 2)]
    assert not meanings[0] & meanings[1]


# ------------------------------------------------------------------------------------------------- knobs


def by_prompt(prompt):
    """Modules, arguments and levels as a reader of the prompt finds them."""
    lines = dict(line.split(" = ") for line in prompt.split(" ; ")[:-1])
    taken = {name: line.split()[1:] for name, line in lines.items() if name[0] == "y"}
    levels = {}
    for name, arguments in taken.items():
        levels[name] = 1 + max([levels[argument] for argument in arguments if argument[0] == "y"], default=0)
    uses = Counter(argument for arguments in taken.values() for argument in arguments)
    return lines, taken, levels, uses


@given(
    shape=st.sampled_from(["chain", "tree", "general"]),
    modules=st.integers(1, 9),
    depth=st.integers(1, 9),
    width=st.integers(1, 4),
    reuse=st.integers(0, 3),
    routed=st.none() | st.integers(0, 2),
    types=st.sampled_from([("symbol",), ("symbol", "residue"), ALL]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=80)
def test_what_is_asked_is_what_is_realised(shape, modules, depth, width, reuse, routed, types, seed):
    try:
        task = LatentGraphs(
            world=0, skills=12, routings=6, types=types, shape=shape, modules=modules, depth=depth, width=width,
            reuse=reuse, routed=routed,
        )  # fmt: skip
    except ValueError:
        return
    routes = {module.name for module in task.inventory if module.kind == "routing"}
    for problem in task.generate(stream("knobs", seed), 4):
        lines, taken, levels, uses = by_prompt(problem.prompt)
        assert len(taken) == modules
        assert max(levels.values()) == depth
        assert max(Counter(levels.values()).values()) == width
        assert sum(uses[name] > 1 for name in taken) == reuse
        assert all(uses[name] == 1 for name in lines if name[0] == "x")
        assert {name for name in taken if not uses[name]} == {f"y{modules}"}
        used = [lines[name].split()[0] for name in taken]
        assert routed in (None, sum(name in routes for name in used))
        assert problem.features == {
            "modules": modules,
            "depth": depth,
            "width": width,
            "reused": reuse,
            "routing_modules": sum(name in routes for name in used),
            "distinct_modules": len(set(used)),
            "inputs": len(lines) - modules,
        }


def test_the_configurations_of_that_property_are_mostly_drawn_not_refused():
    feasible = [("tree", 4, 3, 2, 0), ("tree", 5, 3, 3, 0), ("general", 4, 3, 2, 1), ("general", 7, 4, 3, 2)]
    for shape, modules, depth, width, reuse in feasible:
        LatentGraphs(world=0, skills=12, shape=shape, modules=modules, depth=depth, width=width, reuse=reuse)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"depth": 2}, "a chain of 3 modules has depth=3, width=1 and reuse=0, got depth=2"),
        ({"shape": "tree", "reuse": 1}, "a tree takes each result once, got reuse=1"),
        ({"shape": "general"}, "general graph with reuse=0 is a tree"),
        ({"shape": "tree", "depth": 2, "width": 3}, "no tree graph has modules=3, depth=2, width=3"),
        ({"shape": "tree", "modules": 6, "depth": 2, "width": 5}, "no tree graph has modules=6"),
        (
            {"shape": "general", "modules": 64, "depth": 32, "width": 6, "reuse": 20},
            "too many to count: .* is 21676032, above 3000000",  # 64 * 32 * 6 * 84 * 21; it took minutes
        ),
        ({"shape": "ring"}, "shape must be one of chain, tree, general, got 'ring'"),
        ({"working": "some"}, "working must be one of free, checked, none, got 'some'"),
        ({"types": ("residue", "symbol")}, "each once and in this order"),
        ({"types": ("list",)}, "with symbol or residue among them"),
        ({"types": ["symbol"]}, "types must be a tuple"),
        ({"modulus": 6}, "modulus must be a prime from 3 to 97, got 6"),
        ({"alphabet": 1}, "alphabet must be a whole number from 2 to 20, got 1"),
        ({"modules": True, "depth": 1}, "modules must be a whole number from 1 to 64, got True"),
        ({"modules": None}, "modules must be a whole number from 1 to 64, got None"),
        ({"modules": "3"}, "modules must be a whole number from 1 to 64, got '3'"),
        ({"skills": 0}, "skills must be a whole number from 1"),
        ({"longest": 0}, "longest must be a whole number from 1 to 12, got 0"),
        ({"world": "0"}, "world must be a whole number, got '0'"),
        ({"routed": 4}, "routed must be a whole number from 0 to 3, got 4"),
        ({"routed": 1}, "0 of 400 graphs drawn for .* came out as asked"),
        ({"alphabet": 2, "skills": 60}, "60 different modules of kind 'skill' were asked"),
    ],
)
def test_impossible_configurations_are_refused_when_they_are_declared(fields, message):
    with pytest.raises(ValueError, match=message):
        LatentGraphs(**({"world": 0} | fields))


def test_choices_are_uniform_over_what_fits():
    # A chain over one type with 4 skills: two unary and one lossy take one result in one way, the binary in two.
    task = LatentGraphs(world=0, skills=3, modules=2, depth=2)
    drawn = task.generate(stream("uniform"), 4000)
    binary = next(module.name for module in task.inventory if len(module.takes) == 2)
    asked = Counter(problem.certificate.nodes[-1] for problem in drawn)
    last = Counter(name for (name, _), times in asked.items() for _ in range(times))
    # Last: 4 choices, two of them the binary module: 2000 expected, deviation 32. First: 3 modules, 1333, deviation 30.
    assert abs(last[binary] - 2000) < 5 * 32
    first = Counter(problem.certificate.nodes[0][0] for problem in drawn)
    assert all(abs(first[name] - 4000 / 3) < 5 * 30 for name in task.names)
    slots = Counter(taken.index(0) for (name, taken), times in asked.items() for _ in range(times) if name == binary)
    assert abs(slots[0] - slots[1]) < 5 * 45
    inputs = Counter(problem.certificate.inputs[0] for problem in drawn)
    assert len(inputs) == 8
    assert all(abs(times - 500) < 5 * 21 for times in inputs.values())


# ------------------------------------------------------------------------------------------------- keys


def test_prompts_and_keys_are_written_as_documented():
    problem = LEVELS["general"].generate(stream("written"), 1)[0]
    line = r"(x\d+ = ([a-h]|\d)|y\d+ = m\d( [xy]\d+)+)"
    assert re.fullmatch(rf"{line}( ; {line})* ; \? y5 >", problem.prompt)
    assert problem.key == "latent-graphs:0/sr8.7.4/8s0r:" + problem.prompt.removesuffix(" ; ? y5 >")


def renamed(graph, rng):
    """The same graph in another topological order, with its inputs in another order."""
    left, placed, order = set(range(len(graph.nodes))), {}, []
    while left:
        ready = [n for n in sorted(left) if all(a < 0 or a in placed for a in graph.nodes[n][1])]
        chosen = ready[int(rng.integers(len(ready)))]
        placed[chosen] = len(order)
        order.append(chosen)
        left.remove(chosen)
    inputs = rng.permutation(len(graph.inputs)).tolist()
    nodes = [
        (graph.nodes[n][0], tuple(placed[a] if a >= 0 else -1 - inputs.index(-1 - a) for a in graph.nodes[n][1]))
        for n in order
    ]
    return nodes, [graph.inputs[n] for n in inputs], placed[len(graph.nodes) - 1]


def canonical_by_hand(nodes, inputs, asked):
    """Numbers a graph as the asked result is computed, arguments from left to right: what prompts promise."""
    lines, names, count = [], {}, Counter()

    def visit(place):
        if place in names:
            return names[place]
        if place >= 0:
            taken = " ".join(visit(argument) for argument in nodes[place][1])
            text = f"{nodes[place][0]} {taken}"
        else:
            text = inputs[-1 - place]
        kind = "y" if place >= 0 else "x"
        count[kind] += 1
        names[place] = f"{kind}{count[kind]}"
        lines.append((kind, f"{names[place]} = {text}"))
        return names[place]

    visit(asked)
    return " ; ".join(line for wanted in "xy" for kind, line in lines if kind == wanted)


@pytest.mark.parametrize("task", [LEVELS["tree"], LEVELS["routed"], LEVELS["hard"]])
def test_keys_do_not_depend_on_names_or_order(task):
    rng = stream("renaming")
    changed = 0
    for problem in task.generate(stream("keys"), 60):
        nodes, inputs, asked = renamed(problem.certificate, rng)
        changed += nodes != list(problem.certificate.nodes)
        assert problem.key.endswith(":" + canonical_by_hand(nodes, inputs, asked))
    assert changed > 30


def test_a_result_computed_twice_is_of_the_family_of_the_one_reused():
    once = Graph(nodes=(("m1", (-1,)), ("m2", (0, 0))), inputs=("a",), values=("b", "c"))
    twice = Graph(nodes=(("m1", (-1,)), ("m1", (-2,)), ("m2", (0, 1))), inputs=("a", "a"), values=("b", "b", "c"))
    other = Graph(nodes=(("m1", (-1,)), ("m1", (-2,)), ("m2", (0, 1))), inputs=("a", "b"), values=("b", "b", "c"))
    assert merged(once) == merged(twice) == "m1 a;m2 y1 y1"
    assert merged(other) != merged(once)
    assert measured(once, frozenset())["reused"] == 1
    assert measured(twice, frozenset({"m1"}))["routing_modules"] == 2


def test_families_span_worlds_that_may_share_modules():
    few = LatentGraphs(world=0, skills=6, modules=2, depth=2).generate(stream("family"), 5)
    for problem in few:
        assert problem.family.startswith("latent-graphs:0/s8.7.4:m")
        assert "6s0r" not in problem.family


def test_writers_and_readers_of_values_agree():
    rng = Draw(stream("values"), alphabet=6, modulus=7, longest=4)
    for of in (*ALL, *(f"{base} pair" for base in ALL)):
        for _ in range(20):
            text = WRITERS[of](rng.value(of))
            assert written(read_value(text), of) == text
