"""The numeric settings of a process: precision, determinism and threads."""

from __future__ import annotations

import os

import torch

from cohort.core.errors import UserError
from cohort.training.job.memory import keep_freed_memory

WEIGHTS = {
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.float32,
    "float64": torch.float64,
}
"""The type of weights and sums by precision. Products have a mantissa of 10 bits at `tf32` (on a
GPU) and of 7 bits at `bfloat16` (on every device), instead of the 23 bits of float32."""


def set_up(precision: str, device: torch.device) -> None:
    """Set PyTorch up for this process: one thread, deterministic algorithms, and products of
    exactly this precision (by default, PyTorch computes convolutions on a GPU in tf32). Raise
    UserError for a precision that the device lacks."""
    if precision == "tf32" and device.type != "cuda":
        raise UserError(
            f"precision is tf32, but a {device.type.upper()} computes in float32 all the same: "
            "train this cell on a GPU, or set precision to float32 or bfloat16"
        )
    torch.set_num_threads(1)
    keep_freed_memory()
    # required by deterministic matrix products on a GPU
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # use_deterministic_algorithms(True), which would also import the compiler
    torch.set_deterministic_debug_mode("error")
    # else each new tensor is filled with NaN
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.set_autocast_enabled(device.type, precision == "bfloat16")
    torch.set_autocast_dtype(device.type, torch.bfloat16)
    # the cache would keep weights from before the first step
    torch.set_autocast_cache_enabled(False)
