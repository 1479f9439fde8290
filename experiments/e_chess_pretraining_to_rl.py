"""e_chess_pretraining_to_rl: does a better-pretrained chess model gain more from RL?

The published study (arXiv 2607.16097) pretrains models of 20 M to 1 B parameters on human games, fine-tunes them on
synthetic traces of reasoning and then rewards right answers to puzzles. It finds that accuracy after RL, at fixed RL
compute, follows the loss after pretraining; that the gain per decade of RL compute grows with pretraining tokens; and
that RL amplifies what the model preferred before on easy positions, while on hard ones it brings up moves that had
little probability.

This file has that design at three scales. ``tiny`` runs on two cores from what ships with the project: games of a
public-domain sample and of self-play, puzzles that are drawn. ``small`` and ``gpu`` read corpora that a user builds
from the public Lichess files (``stagecraft corpus --help``). The same claims are judged at each. Hyperparameters are
fixed here and were not tuned on any outcome.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from experiments import Claim, Correlation, Effect, Experiment, Measure, Reading, Scale, Shift, slope
from models import SIZES, Transformer
from testbeds import EXPLICIT, IMPLICIT, Mixture, Splits, Suite, Task
from testbeds.chess.chess_games import ChessGames
from testbeds.chess.chess_puzzle import ChessPuzzle
from testbeds.chess.corpus import corpus_named
from testbeds.chess.lines import CandidateStyle
from testbeds.chess.mates import MateIn
from testbeds.chess.puzzle_sources import CorpusPuzzles, ShippedPuzzles
from testbeds.chess.reaches import Reaches
from testbeds.chess.sources import CorpusGames, SelfPlay, ShippedGames
from testbeds.streams import seed_from_key
from training import (
    GRPO,
    RL,
    SFT,
    AdamW,
    Budget,
    Cosine,
    Demonstrations,
    Evaluation,
    FreshText,
    Pretrain,
    ProblemSet,
    Recipe,
    Styles,
    lexicon,
)
from training.recipe import Precision

SPLITS: Final = Splits(fractions=(("train", 0.8), ("test", 0.2)))
SIZE_NAMES: Final = ("small", "large")
LEVELS: Final = {"low": 1, "mid": 4, "high": 16}
"""Pretraining tokens of each level, as multiples of the scale's lowest; the data of a lower level begin the next."""
RL_PARTS: Final = (1, 2, 6)
"""RL compute of the three RL stages: after them it is 1, 3 and 9 times the scale's unit."""
DEEP_MATES: Final = ("mateIn3", "mateIn4", "mateIn5")  # all their right moves take seconds each to prove
EASY, HARD = "task=easy", "task=hard"
"""Bands of the evaluation of puzzles: the two components of the mixture."""
AFTER_PRETRAINING, AFTER_SFT, AFTER_RL = 0, 1, -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """What differs between the scales of this study."""

    models: tuple[Transformer, Transformer]
    """The small and the large architecture."""
    tokens: int
    """Pretraining tokens of the lowest level."""
    games: Task
    """What is pretrained on."""
    puzzles: Mixture
    """What is fine-tuned and rewarded on: the components ``easy`` and ``hard``."""
    lichess: Task
    """Puzzles with ratings, for evaluation alone."""
    depth: int
    """Moves of each candidate in a trace: where material counts, a line ends after the side's own move."""
    trace_tokens: int
    """Token budget of an answer: two candidates and the move, and some to spare."""
    demonstrations: int
    """Distinct puzzles that are imitated."""
    sft_steps: int
    rl_flops: int
    """FLOPs of the first RL stage, the unit of RL compute, the same for both sizes."""
    batch: int
    """Sequences of a pretraining step."""
    rates: tuple[float, float, float]
    """Peak learning rates of pretraining, SFT and RL."""
    prompts: int
    """Puzzles of an RL step, eight rollouts each."""
    evaluated: int
    """Problems of each evaluation and component."""
    precision: Precision = "32-true"


def ladder(scale: Scale) -> Ladder:
    """The ladder of a scale; ``small`` and ``gpu`` open the user's corpora, or say how to build them."""
    if scale.name in ("tiny", "smoke"):
        return _miniature(smoke=scale.name == "smoke")
    large_scale = scale.name == "gpu"
    games = ChessGames(source=CorpusGames(corpus=corpus_named("games", "lichess-games")), header="squares", plies=60)
    source = CorpusPuzzles(corpus=corpus_named("puzzles", "lichess-puzzles"))
    puzzle = ChessPuzzle(source=source, without=DEEP_MATES, header="squares")
    return Ladder(
        models=(
            replace(SIZES["30M" if large_scale else "1M"], context=512),
            replace(SIZES["100M" if large_scale else "10M"], context=512),
        ),
        tokens=200_000_000 if large_scale else 4_000_000,
        games=games,
        puzzles=Mixture(
            tasks=(replace(puzzle, rating=(400, 1400)), replace(puzzle, rating=(1800, 3000))),
            weights=(0.7, 0.3),
            names=("easy", "hard"),
        ),
        lichess=puzzle,
        depth=3,
        trace_tokens=56,
        demonstrations=90_000 if large_scale else 10_000,
        sft_steps=4_000 if large_scale else 1_000,
        rl_flops=20_000_000_000_000_000 if large_scale else 50_000_000_000_000,
        batch=256 if large_scale else 64,
        rates=(1e-3, 1e-4, 2e-5) if large_scale else (1e-3, 3e-4, 1e-4),
        prompts=256 if large_scale else 32,
        evaluated=1000 if large_scale else 300,
        precision="bf16-mixed" if large_scale else "32-true",
    )


def _miniature(*, smoke: bool) -> Ladder:
    """What ships with the project, for two cores: endings that the machine plays, and games of the sample."""
    endings = tuple(
        ChessGames(source=SelfPlay(policy="one_ply", noise=0.2, most_plies=24, start=pieces), header="pieces", plies=12)
        for pieces in ("KQK", "KRRK", "KQRK", "KQKP")
    )
    sample = ChessGames(source=ShippedGames(), header="pieces", plies=12)
    return Ladder(
        models=(replace(SIZES["0.1M"], context=192), replace(SIZES["0.5M"], context=192)),
        tokens=2_000 if smoke else 40_000,
        games=Mixture(tasks=(*endings, sample), weights=(0.15, 0.15, 0.15, 0.15, 0.4)),
        puzzles=Mixture(
            tasks=tuple(ChessPuzzle(source=MateIn(moves=moves), header="pieces") for moves in (1, 2)),
            weights=(0.7, 0.3),
            names=("easy", "hard"),
        ),
        lichess=ChessPuzzle(source=ShippedPuzzles(), without=DEEP_MATES, header="pieces"),
        depth=2,
        trace_tokens=40,
        demonstrations=50 if smoke else 1000,
        sft_steps=2 if smoke else 60,
        rl_flops=1_000_000 if smoke else 50_000_000_000,
        batch=16,
        rates=(3e-3, 1e-3, 3e-4),
        prompts=4 if smoke else 16,
        evaluated=8 if smoke else 60,
    )


def suites(seed: int, scale: Scale) -> tuple[Suite, Suite, Suite]:
    """Games, puzzles and rated puzzles; no training split reaches a position that an evaluation asks."""
    made = ladder(scale)
    asked = tuple(
        (Suite(task=task, splits=SPLITS, seed=seed), "test", count)
        for task, count in ((made.puzzles, 2 * made.evaluated), (made.lichess, made.evaluated))
    )
    kept_out = replace(SPLITS, held_out=(("reaches an evaluation", Reaches(suites=asked)),))
    return (
        Suite(task=made.games, splits=kept_out, seed=seed),
        Suite(task=made.puzzles, splits=kept_out, seed=seed),
        Suite(task=made.lichess, splits=SPLITS, seed=seed),
    )


def arms(seed: int, scale: Scale) -> Mapping[str, Recipe]:
    """Two sizes x three levels of pretraining tokens; SFT and RL are the same for all."""
    made = ladder(scale)
    games, puzzles, lichess = suites(seed, scale)
    pretraining, sft_rate, rl_rate = made.rates
    traces = Styles(styles=(CandidateStyle(candidates=2, depth=made.depth), IMPLICIT), weights=(0.5, 0.5))
    sft = SFT(
        source=Demonstrations(suite=puzzles, count=made.demonstrations, styles=traces),
        budget=Budget(steps=made.sft_steps),
        optimizer=AdamW(rate=sft_rate, weight_decay=0.01, schedule=Cosine()),
        seed=seed,
    )
    rl = tuple(
        RL(
            suite=puzzles,
            method=GRPO,
            budget=Budget(flops=part * made.rl_flops),
            optimizer=AdamW(rate=rl_rate),
            seed=seed_from_key("part of RL", seed, place),  # each part sees new puzzles
            max_new_tokens=made.trace_tokens,
            prompts=made.prompts,
        )
        for place, part in enumerate(RL_PARTS)
    )
    recipes = {}
    for size, model in zip(SIZE_NAMES, made.models, strict=True):
        for level, times in LEVELS.items():
            pretrain = Pretrain(
                source=FreshText(suite=games),
                budget=Budget(tokens=times * made.tokens),
                optimizer=AdamW(rate=pretraining, weight_decay=0.1, schedule=Cosine()),
                seed=seed,
                batch=made.batch,
            )
            recipes[f"{size}-{level}"] = Recipe(
                model=model,
                symbols=lexicon([games.task, puzzles.task, lichess.task]),
                seed=seed,
                stages=(pretrain, sft, *rl),
                precision=made.precision,
            )
    return recipes


def evaluations(seed: int, scale: Scale) -> Mapping[str, Evaluation]:
    """Loss on games of the test split; unseen puzzles of both kinds; rated Lichess puzzles, by rating."""
    made = ladder(scale)
    games, _, lichess = suites(seed, scale)
    puzzles = Evaluation(
        sets=(ProblemSet(suite=Suite(task=made.puzzles, splits=SPLITS, seed=seed), count=2 * made.evaluated),),
        max_new_tokens=made.trace_tokens,
        seed=seed,
        samples=4,
        passes=(4,),
    )
    return {
        "games": replace(
            puzzles, sets=(ProblemSet(suite=games, count=made.evaluated),), samples=1, passes=(1,), styles=(EXPLICIT,)
        ),
        "puzzles": puzzles,
        "lichess": replace(puzzles, sets=(ProblemSet(suite=lichess, count=made.evaluated),), band="rating_band"),
    }


ARMS: Final = tuple(f"{size}-{level}" for size in SIZE_NAMES for level in LEVELS)
LOSS: Final = Reading(evaluation="games", metric="explicit_nats_per_token")
SOLVED: Final = Reading(evaluation="puzzles")
BEST: Final = "large-high"


def rl_slope(arm: str) -> Effect:
    """Accuracy gained per decade of RL compute."""
    spent = [sum(RL_PARTS[: place + 1]) for place in range(len(RL_PARTS))]
    return slope([(math.log10(flops), SOLVED.of(arm, stage=2 + place)) for place, flops in enumerate(spent)])


def shifted(category: str, band: str) -> Measure:
    """Share of the puzzles of a band whose answer moved so between SFT and the end of RL, in the best-trained arm."""
    return Shift(arm=BEST, evaluation="puzzles", metric=category, band=band, stage=AFTER_RL, since=AFTER_SFT)


CLAIMS: Final = (
    Claim(
        name="loss predicts",
        statement="Accuracy after RL falls with the loss after pretraining: rank correlation over the arms below -0.5.",
        effect=Correlation(
            pairs=tuple((LOSS.of(arm, stage=AFTER_PRETRAINING), SOLVED.of(arm, stage=AFTER_RL)) for arm in ARMS)
        ),
        high=-0.5,
    ),
    Claim(
        name="slope grows",
        statement="Per decade of RL compute, accuracy grows faster the more tokens the model was pretrained on.",
        effect=slope(
            [(math.log10(times), rl_slope(f"{size}-{level}")) for size in SIZE_NAMES for level, times in LEVELS.items()]
        ),
        low=0.0,
    ),
    Claim(
        name="easy: amplify",
        statement="On easy puzzles RL strengthens a right first choice more often than it brings up a right move.",
        effect=Effect(
            terms=(
                (1, shifted("amplified", EASY)),
                (-1, shifted("corrected", EASY)),
                (-1, shifted("discovered", EASY)),
            )
        ),
        low=0.0,
    ),
    Claim(
        name="hard: surface",
        statement="On hard puzzles RL brings up a right move more often than it strengthens a right first choice.",
        effect=Effect(
            terms=(
                (1, shifted("corrected", HARD)),
                (1, shifted("discovered", HARD)),
                (-1, shifted("amplified", HARD)),
            )
        ),
        low=0.0,
    ),
)

EXPERIMENT: Final = Experiment(
    name="e_chess_pretraining_to_rl",
    title="What pretraining on chess games gives to RL on puzzles",
    question="Does a chess model that was pretrained longer gain more from the same RL compute?",
    introduction="""\
Decoders of two sizes are pretrained on games of chess, each size on three amounts of text: the text of a smaller amount
is the beginning of the larger one, and every run has a whole learning-rate schedule of its own. Then all see the same
SFT: half of its texts weigh two candidate moves, each with the line that follows and its outcome, before they name the
move, half name it at once. Then RL rewards right answers, for the same FLOPs in every arm, in three parts: 1, 2 and 6
units.

A puzzle is right with any move that wins as it asks: every mate in a mate puzzle. "Easy" and "hard" are the two
kinds of puzzle that are trained on: at the scale "tiny" mates in one and in two moves with three or four pieces on the
board, drawn at random; at the larger scales Lichess puzzles rated below 1400 and above 1800. Rated Lichess puzzles are
asked, too, and at "tiny" never trained on. The loss is that of unseen games.

What RL does to a single puzzle is read off exact probabilities: every legal move is scored as an immediate answer,
before and after. "Amplified": the right move was the likeliest and its share grew. "Corrected" and "discovered": it was
not the likeliest (with a share of at least 0.05, or less) and became so.""",
    factor="Size of the model, and number of pretraining tokens.",
    held_equal=(
        "The text of pretraining and its order: a lower level is the beginning of the higher ones.",
        "SFT: demonstrations, order, steps, batch and learning rate.",
        "RL: compute in FLOPs, puzzles and their order, rollouts, sampling noise and learning rate.",
        "Evaluation problems and sampling noise.",
        "No game, demonstration or puzzle of training reaches a position that an evaluation asks, or an image of it.",
    ),
    arms=arms,
    evaluations=evaluations,
    primary=SOLVED,
    drawn=BEST,
    descriptions=tuple(
        (f"{size}-{level}", f"{size} model, {times} x the lowest number of pretraining tokens, then SFT and RL")
        for size in SIZE_NAMES
        for level, times in LEVELS.items()
    ),
    # Consecutive seeds, fixed before any of them was run.
    seeds=(3001, 3002, 3003, 3004, 3005, 3006, 3007, 3008),
    scales=(
        Scale(name="tiny", seeds=3),
        Scale(name="small", seeds=4),
        Scale(name="gpu", seeds=8),
        Scale(name="smoke", seeds=1),
    ),
    claims=CLAIMS,
    threats=(
        "At tiny, models of 0.1 and 0.5 M parameters see up to 0.64 M tokens; the published ladder starts at 20 M"
        " parameters and 200 M tokens. What holds here need not hold there, nor the other way round.",
        "Three seeds decide little under Holm's correction; no seed is replaced.",
        "At tiny, easy and hard puzzles come from few pieces; their floor, a random legal move, is far above that of"
        " positions with many.",
        "Each part of RL starts with a new optimizer, and its puzzles are drawn anew.",
        "Equal FLOPs of RL are fewer steps for the larger model.",
        "Shares of moves are those of an immediate answer; after RL the policy may prefer to weigh candidates.",
        "Learning rates are fixed for each scale and were not tuned for each arm.",
    ),
    references=(
        "Understanding Reasoning from Pretraining to Post-Training (arXiv 2607.16097): the design, at 20 M to 1 B.",
        "Lichess open database (database.lichess.org): games and puzzles, CC0.",
    ),
)
