"""Estimates of a cell's time on a GPU, from rates that config/gpus.yaml assumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cohort.core.errors import UserError, suggest
from cohort.core.shipped import CONFIG, shipped
from cohort.data.dataset_info import DatasetInfo
from cohort.models.counting import Counts
from cohort.plan.cost import client_steps, counts_of, operations, phases
from cohort.plan.schema_validation import Validator
from cohort.training.cell import Cell

GPUS = CONFIG / "gpus.yaml"


@dataclass(frozen=True)
class Gpu:
    """A GPU with the speed that config/gpus.yaml assumes. `names` are all GPUs of the file."""

    name: str
    operations_per_second: float
    layer_seconds: float
    graph_layer_seconds: float
    client_layer_seconds: float
    names: tuple[str, ...] = ()

    def is_cpu(self, device: str) -> bool:
        """Whether a record's device is none of the file's GPUs, and so a CPU."""
        return not any(name in device for name in self.names)

    def seconds(self, cell: Cell, info: DatasetInfo) -> float:
        """Estimate the seconds of all rounds of a cell on this GPU."""
        counts, waiting = counts_of(cell, info), 0.0
        for part in phases(cell):
            together = part.settings.cohort if _is_batched(part, counts) else 0
            layers = counts.layers * client_steps(part, info) / max(together, 1)
            waiting += layers * self.seconds_per_layer(together)
        return operations(cell, info) / self.operations_per_second + waiting

    def seconds_per_layer(self, together: int) -> float:
        """Estimate the seconds of a layer in a step, besides its operations, where the batched
        trainer takes steps of so many clients together; 0 for any other trainer."""
        if together:
            return self.graph_layer_seconds + together * self.client_layer_seconds
        return self.layer_seconds


def _is_batched(cell: Cell, counts: Counts) -> bool:
    """Whether the batched trainer takes a cell."""
    is_usual = "batched" in cell.procedure.usable_trainers() and cell.settings.optimizer == "sgd"
    return is_usual and counts.can_be_batched


def find_gpu(name: str = "") -> Gpu:
    """The GPU of this name in config/gpus.yaml, by default its first one."""
    table = Validator().read(shipped(GPUS), "gpus")
    gpus: dict[str, Any] = table.pop("gpus")
    name = name or next(iter(gpus))
    if name not in gpus:
        raise UserError(f"{GPUS} has no GPU '{name}'{suggest(name, gpus)}")
    peak = table.pop("utilization") * gpus[name]["tflops"] * 1e12
    return Gpu(name=name, operations_per_second=peak, names=tuple(gpus), **table)
