"""Each worker process has a GPU of its own as long as there are enough."""

import os
from multiprocessing import Pipe

import pytest
import torch

from experiments.gpus import VISIBLE, least_used, usable_cores, usual_workers, visible_gpus
from experiments.worker import begin


def test_workers_share_the_gpus_evenly():
    taken = []
    for _ in range(5):
        taken.append(least_used(("0", "1"), taken))
    assert taken == ["0", "1", "0", "1", "0"]
    taken.remove("1")  # the worker on it died
    assert least_used(("0", "1"), taken) == "1"
    assert least_used((), [None, None]) is None


@pytest.mark.parametrize(
    ("environment", "count", "gpus"),
    [
        ("", 0, ()),
        ("", 3, ("0", "1", "2")),
        ("4, 6", 2, ("4", "6")),
        ("GPU-8932f937,GPU-b40e2d1a", 2, ("GPU-8932f937", "GPU-b40e2d1a")),
        ("0,7", 1, ("0",)),  # CUDA stops at the first name that it does not know
    ],
)
def test_gpus_have_the_names_of_the_environment(environment, count, gpus, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setenv(VISIBLE, environment)
    assert visible_gpus() == gpus
    assert usual_workers("auto") == (len(gpus) or usable_cores())
    assert usual_workers("cpu") == usable_cores()


def test_a_worker_sees_its_gpu_alone(monkeypatch):
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", VISIBLE):
        monkeypatch.setenv(variable, "1")
    threads = torch.get_num_threads()
    lifeline, held = Pipe(duplex=False)
    try:
        begin(lifeline, "5")
        assert os.environ[VISIBLE] == "5"
        begin(lifeline, None)
        assert os.environ[VISIBLE] == "5"  # without GPUs the environment stays as it is
    finally:
        torch.set_num_threads(threads)
    globals()["_kept"] = held  # a lifeline that is cut ends the process
