"""With which arithmetic a process computes."""

from __future__ import annotations

import os

import torch

from cohort.training.job.memory import keep_freed_memory

WEIGHTS = {
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.float32,
    "float64": torch.float64,
}
"""The type of weights and sums by precision. At `tf32` a GPU multiplies numbers of 10 bits after the point, at `bfloat16` every device
numbers of 7; both add in float32, whose numbers have 23."""


def set_up(precision: str, device: torch.device) -> None:
    """One thread, the same result each time, and products as precise as asked for: PyTorch's own convolutions on a GPU would not be."""
    torch.set_num_threads(1)
    keep_freed_memory()
    os.environ.setdefault(
        "CUBLAS_WORKSPACE_CONFIG", ":4096:8"
    )  # what deterministic matrix products on a GPU ask for
    torch.set_deterministic_debug_mode(
        "error"
    )  # use_deterministic_algorithms(True), without its import of the compiler
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # or it fills each new tensor with NaN
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.set_autocast_enabled(device.type, precision == "bfloat16")
    torch.set_autocast_dtype(device.type, torch.bfloat16)
    torch.set_autocast_cache_enabled(
        False
    )  # it would keep weights as they were before the first step
