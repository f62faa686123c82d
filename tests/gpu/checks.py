"""All checks of what needs a GPU, for pytest and for `make gpu`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from tests.gpu import cells, trainers

Check = Callable[[torch.device, Path], str]
"""Checks something on a device, in an empty folder; returns what it found or raises."""

CHECKS: tuple[Check, ...] = (
    trainers.captured_steps_equal_calls,
    trainers.batched_equals_serial,
    trainers.cells_equal_themselves_in_a_stack,
    trainers.augmented_batched_equals_serial,
    trainers.convolutions_batched_equal_serial,
    trainers.a_step_in_float32,
    cells.cell_gets_a_free_gpu,
)
CUDA_ONLY: dict[Check, str] = {
    cells.killed_cell_resumes: "on a CPU, its name needs llvmlite",
    trainers.float32_is_not_tf32: "a CPU computes in float32 all the same",
    trainers.every_height_is_captured: "CUDA graphs need a GPU",
    trainers.memory_does_not_grow: "it is about GPU memory",
    trainers.whole_runs_are_equal: "on a CPU, evaluation needs llvmlite",
}
"""Checks that mean nothing on a CPU, with the reason."""
