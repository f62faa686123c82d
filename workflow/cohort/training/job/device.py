"""The names of processors and GPUs."""

from __future__ import annotations

import functools
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from llvmlite import binding as llvm
else:
    llvm = lazy("llvmlite.binding")

CPUINFO = Path("/proc/cpuinfo")


@functools.cache
def cpu_name() -> str:
    """The processor's model and microarchitecture, e.g. `AMD EPYC 7763 64-Core Processor (znver3)`.

    Virtual machines often hide the model, and libraries such as OpenBLAS choose their kernels, and
    with them the last bits of a result, by the microarchitecture.
    """
    return f"{_cpu_model()} ({llvm.get_host_cpu_name()})"


def _cpu_model() -> str:
    for line in CPUINFO.read_text().splitlines() if CPUINFO.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def device_name(device: torch.device) -> str:
    """The model of a GPU, or of the processor."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()
