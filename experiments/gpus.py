"""How many worker processes a machine is good for, and which GPU each computes on.

Arms and seeds are independent, so each worker has a GPU of its own where there are any.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

VISIBLE: Final = "CUDA_VISIBLE_DEVICES"


def visible_gpus() -> tuple[str, ...]:
    """The GPUs that this process may use, by the names that ``CUDA_VISIBLE_DEVICES`` has for them."""
    import torch  # the driver of a run has imported it; a plan for the CPU need not wait for it

    if not torch.cuda.is_available():
        return ()
    named = [name.strip() for name in os.environ.get(VISIBLE, "").split(",") if name.strip()]
    count = torch.cuda.device_count()
    return tuple(named[:count]) if named else tuple(str(number) for number in range(count))


def least_used(gpus: Sequence[str], taken: Sequence[str | None]) -> str | None:
    """The GPU with the fewest workers, the first among equals; None where there is none."""
    return min(gpus, key=taken.count, default=None)


def usable_cores() -> int:
    """Number of cores that this process may use, which in a container is fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usual_workers(device: str) -> int:
    """One worker for each GPU that may be used, else one for each core."""
    return (len(visible_gpus()) if device != "cpu" else 0) or usable_cores()
