"""Estimates of a cell's time on a GPU, from rates that config/gpus.yaml assumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cohort.core.errors import UserError, suggest
from cohort.core.shipped import CONFIG, shipped
from cohort.data.dataset_info import DatasetInfo
from cohort.plan.cost import counts_of, operations, serial_steps
from cohort.plan.schema_validation import Validator
from cohort.training.cell import Cell

GPUS = CONFIG / "gpus.yaml"


@dataclass(frozen=True)
class Gpu:
    """A GPU with the speed that config/gpus.yaml assumes. `names` are all GPUs of the file."""

    name: str
    operations_per_second: float
    layer_seconds: float
    names: tuple[str, ...] = ()

    def is_cpu(self, device: str) -> bool:
        """Whether a record's device is none of the file's GPUs, and so a CPU."""
        return not any(name in device for name in self.names)

    def seconds(self, cell: Cell, info: DatasetInfo) -> float:
        """Estimate the seconds of all rounds of a cell on this GPU."""
        steps = serial_steps(cell, info) * counts_of(cell, info).layers
        return operations(cell, info) / self.operations_per_second + steps * self.layer_seconds


def find_gpu(name: str = "") -> Gpu:
    """The GPU of this name in config/gpus.yaml, by default its first one."""
    table = Validator().read(shipped(GPUS), "gpus")
    gpus: dict[str, Any] = table["gpus"]
    name = name or next(iter(gpus))
    if name not in gpus:
        raise UserError(f"{GPUS} has no GPU '{name}'{suggest(name, gpus)}")
    peak = gpus[name]["tflops"] * 1e12
    return Gpu(name, table["utilization"] * peak, table["layer_seconds"], tuple(gpus))
