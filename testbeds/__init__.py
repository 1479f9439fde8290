"""Generated problems whose every answer can be checked exactly. Testbeds are modules of this package."""

from testbeds.core import (
    EXPLICIT,
    IMPLICIT,
    Choice,
    FeatureAtLeast,
    Predicate,
    Problem,
    Step,
    Task,
    Trace,
    TraceStyle,
    Unrealisable,
    Verdict,
)
from testbeds.demonstrations import demonstrated, demonstration
from testbeds.identity import canonical, fingerprint
from testbeds.mixture import Mixture
from testbeds.streams import stream
from testbeds.suites import ProblemStream, Splits, Suite
from testbeds.verifiers import Exact, Verifier

__all__ = [
    "EXPLICIT",
    "IMPLICIT",
    "Choice",
    "Exact",
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
    "Unrealisable",
    "Verdict",
    "Verifier",
    "canonical",
    "demonstrated",
    "demonstration",
    "fingerprint",
    "stream",
]
