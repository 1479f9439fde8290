"""Experiments: arms, seeds and claims in one file, run from a plan, judged by fixed rules, reported on one page.

This package declares and judges; it trains nothing. A study needs the names below and those of ``training``.
"""

from experiments.claims import Check, Claim, Effect, Measure, difference, interaction, level
from experiments.effects import Correlation, slope
from experiments.experiment import Experiment, Reading, Scale
from experiments.shifts import Shift

__all__ = [
    "Check",
    "Claim",
    "Correlation",
    "Effect",
    "Experiment",
    "Measure",
    "Reading",
    "Scale",
    "Shift",
    "difference",
    "interaction",
    "level",
    "slope",
]
