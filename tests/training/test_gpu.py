"""The same short run on CPU and GPU; skipped where there is no accelerator."""

import pytest
import torch
from safetensors.torch import load_file


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
@pytest.mark.parametrize("kind", ["pretrain", "sft", "rl"])
def test_a_short_run_agrees_on_cpu_and_gpu(recipe, train, stages, kind):
    base = stages["pretrain"](8)
    declared = recipe(base) if kind == "pretrain" else recipe(base, stages[kind](1))
    on_cpu, on_gpu = (load_file(train(declared, device=device) / "model.safetensors") for device in ("cpu", "cuda"))
    assert on_cpu.keys() == on_gpu.keys()
    for name, tensor in on_cpu.items():
        torch.testing.assert_close(on_gpu[name], tensor, atol=1e-4, rtol=1e-3)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_asking_for_a_missing_accelerator_is_an_error(recipe, train, stages):
    with pytest.raises(ValueError, match="no usable CUDA device; use cpu or auto"):
        train(recipe(stages["pretrain"](1)), device="cuda")
