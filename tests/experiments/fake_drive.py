"""A driver in a process of its own, for tests that kill it: ``python fake_drive.py STORE WORKERS STEPS STEP_S``."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

from fake_nodes import FakeNode, plan_of
from rich.console import Console

from experiments.display import Lines
from experiments.runner import execute
from experiments.store import Store


def nodes(steps, step_s):
    base = FakeNode(name="base", steps=steps, step_s=step_s)
    tips = (FakeNode(name=f"tip {i}", parents=(base.id,), steps=steps, step_s=step_s) for i in range(2))
    return (base, *tips)


def main():
    root, workers, steps, step_s = sys.argv[1:]
    plan = plan_of(*nodes(int(steps), float(step_s)))
    store = Store(Path(root))
    store.preflight()
    try:
        execute(
            plan,
            plan.pending(store),
            store=store,
            workers=int(workers),
            execution=SimpleNamespace(device="cpu"),
            display=Lines(Console()),
        )
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
