"""The model names of processors and GPUs."""

from __future__ import annotations

import functools
import platform
from pathlib import Path

import torch

CPUINFO = Path("/proc/cpuinfo")


@functools.cache
def cpu_name() -> str:
    """The processor's model name, e.g. `AMD EPYC 7763 64-Core Processor`."""
    for line in CPUINFO.read_text().splitlines() if CPUINFO.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def device_name(device: torch.device) -> str:
    """The model name of a GPU, or of the processor."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()
