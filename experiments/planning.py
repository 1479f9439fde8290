"""Planning: an experiment becomes a graph of stages and evaluations in which nothing is done twice.

Stages of equal identity are one node, whichever arms and seeds use them; so are evaluations of one policy. The plan is
a pure function of the experiment; a store then says which nodes are there already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from experiments.experiment import Experiment, Scale
from experiments.graph import Kind, Plan, User
from experiments.lengths import fullest_demonstration
from experiments.naming import unknown
from models import Tokenizer, Transformer
from models.flops import forward_flops, sampling_flops
from training.evaluation import Evaluation, evaluation_id
from training.execution import Execution, Reporter
from training.recipe import Recipe, estimated_flops, stage_id

PROBLEMS_FOR_ESTIMATE = 32  # their mean length is that of the set to a few per cent


@dataclass(frozen=True, slots=True, kw_only=True)
class StageNode:
    """The last stage of a recipe."""

    id: str
    recipe: Recipe
    """Cut after the stage: arms that share it hand the same recipe to it."""
    parents: tuple[str, ...]
    users: tuple[User, ...]

    @property
    def kind(self) -> Kind:
        return "stage"

    @property
    def description(self) -> str:
        return self.recipe.stages[-1].describe()

    def estimated_flops(self) -> int:
        return estimated_flops(self.recipe, len(self.recipe.stages) - 1)

    def identity(self) -> str:
        return stage_id(self.recipe, len(self.recipe.stages) - 1)

    def perform(
        self,
        parents: Sequence[Path],
        *,
        workspace: Path,
        execution: Execution,
        report: Reporter,
    ) -> None:
        from training.run import train_stage  # the driver, which only plans, need not wait for Lightning

        train_stage(
            self.recipe,
            len(self.recipe.stages) - 1,
            parent=parents[0] if parents else None,
            workspace=workspace,
            execution=execution,
            report=report,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationNode:
    """One evaluation of the policy that a stage leaves."""

    id: str
    name: str
    """The evaluation's name in the experiment."""
    evaluation: Evaluation
    recipe: Recipe
    """Of the policy; says what a sample costs."""
    parents: tuple[str, ...]
    users: tuple[User, ...]

    @property
    def kind(self) -> Kind:
        return "evaluation"

    @property
    def description(self) -> str:
        return f"{self.name} after {self.recipe.stages[-1].name}"

    def estimated_flops(self) -> int:
        return evaluation_flops(self.evaluation, self.recipe.model, self.recipe.symbols)

    def identity(self) -> str:
        return evaluation_id(self.evaluation, self.parents[0])

    def perform(
        self,
        parents: Sequence[Path],
        *,
        workspace: Path,
        execution: Execution,
        report: Reporter,
    ) -> None:
        from training.run import run_evaluation

        run_evaluation(self.evaluation, policy=parents[0], workspace=workspace, execution=execution, report=report)


def plan(experiment: Experiment, scale: Scale, *, only: Sequence[str] = ()) -> Plan:
    """The work of an experiment at a scale, for all arms or ``only`` some.

    Raises:
        ValueError: when an arm cannot be built, when it does not fit its evaluations, or for an unknown arm.
    """
    nodes: dict[str, StageNode | EvaluationNode] = {}
    arms = _chosen(experiment.order, only)
    experiment.validate(scale)
    seeds = experiment.seeds_of(scale)
    for seed in seeds:
        recipes, evaluations = experiment.arms(seed, scale), experiment.evaluations(seed, scale)
        for arm in arms:
            _check_arm(f"arm {arm!r} of {experiment.name} at seed {seed}", recipes[arm], evaluations)
            for node in _nodes_of(recipes[arm], evaluations, User(arm=arm, seed=seed)):
                known = nodes.get(node.id)
                nodes[node.id] = node if known is None else _shared(known, node.users)
    return Plan(experiment=experiment.name, scale=scale.name, seeds=seeds, arms=arms, nodes=tuple(nodes.values()))


def _nodes_of(
    recipe: Recipe, evaluations: Mapping[str, Evaluation], user: User
) -> Iterable[StageNode | EvaluationNode]:
    parents: tuple[str, ...] = ()
    for index in range(len(recipe.stages)):
        cut = recipe.upto(index)
        stage = StageNode(id=stage_id(recipe, index), recipe=cut, parents=parents, users=(user,))
        yield stage
        parents = (stage.id,)
        for name, evaluation in evaluations.items():
            yield EvaluationNode(
                id=evaluation_id(evaluation, stage.id),
                name=name,
                evaluation=evaluation,
                recipe=cut,
                parents=parents,
                users=(user,),
            )


def _shared(node: StageNode | EvaluationNode, users: tuple[User, ...]) -> StageNode | EvaluationNode:
    return replace(node, users=tuple(dict.fromkeys(node.users + users)))


def _chosen(arms: tuple[str, ...], only: Sequence[str]) -> tuple[str, ...]:
    for arm in only:
        if arm not in arms:
            raise unknown("arm", arm, arms)
    return tuple(arm for arm in arms if arm in only) if only else arms


def _check_arm(where: str, recipe: Recipe, evaluations: Mapping[str, Evaluation]) -> None:
    for name, evaluation in evaluations.items():
        asked = {symbol for chosen in evaluation.sets for symbol in chosen.suite.task.symbols}
        missing = sorted(asked - set(recipe.symbols))
        if missing:
            raise ValueError(
                f"{where} cannot be evaluated with {name!r}: its recipe's symbols lack {missing};"
                " use symbols=lexicon(...) over the tasks of all stages and evaluations"
            )
        if evaluation.max_new_tokens >= recipe.model.context:
            raise ValueError(
                f"{where} cannot be evaluated with {name!r}: completions of {evaluation.max_new_tokens} tokens and a"
                f" prompt do not fit into a context of {recipe.model.context}; raise Transformer.context"
            )


@lru_cache(maxsize=64)  # the same for every policy of a study
def evaluation_flops(evaluation: Evaluation, model: Transformer, symbols: tuple[str, ...]) -> int:
    """Expected FLOPs of evaluating one policy: sampling, greedy decoding, and scoring what was sampled.

    Completions are taken to be as long as demonstrations, on a few problems of each set.
    """
    tokenizer = Tokenizer.of(symbols)
    total = 0.0
    for chosen in evaluation.sets:
        task = chosen.suite.task
        problems = chosen.suite.stream(chosen.split, "cost estimate").take(0, PROBLEMS_FOR_ESTIMATE)
        texts = [fullest_demonstration(task, problem).text for problem in problems]
        prompts = [len(ids) + 1 for ids in tokenizer.encode_many([problem.prompt for problem in problems])]
        completions = [len(ids) + 1 for ids in tokenizer.encode_many(texts)]
        sampled = sampling_flops(model, tokenizer.size, prompts, completions)
        whole = [prompt + completion for prompt, completion in zip(prompts, completions, strict=True)]
        scored = forward_flops(model, tokenizer.size, whole)
        count = chosen.count if chosen.count is not None else chosen.suite.capacity(chosen.split) or 0
        total += ((evaluation.samples + 1) * sampled + evaluation.samples * scored) * count / len(problems)
    return int(total)
