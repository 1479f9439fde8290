"""Experiments: arms, seeds and claims in one file, run from a plan, judged by fixed rules, reported on one page.

This package declares and judges; it trains nothing. A study needs the names below and those of ``training``.
"""

from experiments.claims import Check, Claim, Effect, Measure, difference, interaction, level
from experiments.experiment import Experiment, Reading, Scale

__all__ = [
    "Check",
    "Claim",
    "Effect",
    "Experiment",
    "Measure",
    "Reading",
    "Scale",
    "difference",
    "interaction",
    "level",
]
