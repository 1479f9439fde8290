"""The demonstration of a problem: one text per style, the same for training, evaluation and export."""

from __future__ import annotations

from testbeds.core import Problem, Task, Trace, TraceStyle
from testbeds.streams import stream


def demonstration(task: Task, problem: Problem, style: TraceStyle) -> Trace:
    """The worked solution of ``problem`` in ``style``: where several are possible, always the same one.

    Its randomness is keyed by the problem and the style alone. So what was trained on is what an evaluation scores and
    what an export holds, and a smaller set of demonstrations has the same texts as a larger one.

    Raises:
        ValueError: for a style that the task cannot write.
    """
    return task.demonstrate(problem, style, stream("demonstration", problem.key, style.granularity, style.group))
