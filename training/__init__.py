"""Stages, objectives, losses and evaluation: what joins problems and policies."""

from training.budget import Budget
from training.evaluation import Evaluation, ProblemSet, evaluation_id
from training.execution import Execution, Progress
from training.kl import KL
from training.methods import GRPO, GRPO_AS_TRL, GRPO_AS_VERL, REINFORCE, RLOO, PolicyGradient, dr_grpo
from training.optimizers import AdamW, Constant, Cosine, WarmupStableDecay
from training.recipe import Recipe, lexicon, stage_id
from training.reinforce import RL
from training.rewards import Outcome, Shuffled
from training.sources import Demonstrations, FreshText, Styles
from training.supervised import SFT, Pretrain

__all__ = [
    "GRPO",
    "GRPO_AS_TRL",
    "GRPO_AS_VERL",
    "KL",
    "REINFORCE",
    "RL",
    "RLOO",
    "SFT",
    "AdamW",
    "Budget",
    "Constant",
    "Cosine",
    "Demonstrations",
    "Evaluation",
    "Execution",
    "FreshText",
    "Outcome",
    "PolicyGradient",
    "Pretrain",
    "ProblemSet",
    "Progress",
    "Recipe",
    "Shuffled",
    "Styles",
    "WarmupStableDecay",
    "dr_grpo",
    "evaluation_id",
    "lexicon",
    "stage_id",
]
