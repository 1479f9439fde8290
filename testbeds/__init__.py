"""Generated problems whose every answer can be checked exactly. Testbeds are modules of this package."""

from testbeds.core import (
    EXPLICIT,
    IMPLICIT,
    FeatureAtLeast,
    Predicate,
    Problem,
    Step,
    Task,
    Trace,
    TraceStyle,
    Verdict,
)
from testbeds.demonstrations import demonstration
from testbeds.identity import canonical, fingerprint
from testbeds.mixture import Mixture
from testbeds.streams import stream
from testbeds.suites import ProblemStream, Splits, Suite

__all__ = [
    "EXPLICIT",
    "IMPLICIT",
    "FeatureAtLeast",
    "Mixture",
    "Predicate",
    "Problem",
    "ProblemStream",
    "Splits",
    "Step",
    "Suite",
    "Task",
    "Trace",
    "TraceStyle",
    "Verdict",
    "canonical",
    "demonstration",
    "fingerprint",
    "stream",
]
