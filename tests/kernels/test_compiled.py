"""Triton compiles all kernels for NVIDIA's cards on any machine, and finds there what its interpreter lets pass."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

# in place of each launch, the kernel is compiled for a card of this compute capability
COMPILE = """
import sys
from functools import partial
import torch
from torch import nn
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

class Card:
    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", int(sys.argv[1]), 32)

compiled = set()

def launcher(kernel, grid):
    def compile(*arguments, **options):
        compiled.add(kernel.fn.__name__)
        assert kernel.run(*arguments, grid=grid, warmup=True, **options).asm["cubin"]

    return compile

driver.set_active(Card())
JITFunction.__getitem__ = launcher
from cohort.kernels import layers
network = nn.Sequential(
    nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 48, 3), nn.BatchNorm2d(48),
    nn.ReLU(), nn.Conv2d(48, 48, 3, 2, groups=48, bias=False), nn.Flatten(), nn.Linear(48, 3),
)
error = layers.check(network, layers.with_kernels(network, sys.argv[2]), torch.randn(20, 3, 12, 12))
assert error.startswith("the gradient of"), error  # results that nothing computed
print(*sorted(compiled))
"""
KERNELS = "_activation_gradient _convolve _filter _filter_gradient _scale _sum_splits _sums"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("capability", "precision"), [(90, "float32"), (90, "bfloat16"), (80, "tf32")]
)
def test_all_kernels_compile(capability: int, precision: str, tmp_path: Path):
    surroundings = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    surroundings |= {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT / "workflow")}
    command = [sys.executable, "-c", COMPILE, str(capability), precision]
    done = subprocess.run(command, env=surroundings, text=True, capture_output=True)
    assert done.stdout.split() == [*KERNELS.split(), "_weight_gradient"], done.stderr
