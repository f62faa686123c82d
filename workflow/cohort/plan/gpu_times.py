"""Estimates of a cell's time on a GPU: an assumed rate, corrected by the records made on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cohort.core.errors import UserError, suggest
from cohort.data.dataset_info import DatasetInfo
from cohort.plan.cost import layers, operations, serial_steps
from cohort.plan.loading import CONFIG
from cohort.plan.schema_validation import Validator
from cohort.training.cell import Cell

GPUS = CONFIG / "gpus.yaml"


@dataclass
class Gpu:
    """A GPU as config/gpus.yaml assumes it to be, and by which factor records correct this for each
    model."""

    name: str
    operations_per_second: float
    layer_seconds: float
    names: tuple[str, ...] = ()  # all GPUs of the file
    measured: dict[str, float] = field(default_factory=dict)

    def is_cpu(self, device: str) -> bool:
        """Whether a record's device is none of the file's GPUs."""
        return not any(name in device for name in self.names)

    def seconds(self, cell: Cell, info: DatasetInfo) -> float:
        """Estimate the time of all rounds."""
        return self.measured.get(cell.settings.model, 1.0) * self._assumed(cell, info)

    def _assumed(self, cell: Cell, info: DatasetInfo) -> float:
        computing = operations(cell, info) / self.operations_per_second
        return computing + serial_steps(cell, info) * layers(cell, info) * self.layer_seconds

    def learn(self, finished: Iterable[tuple[Cell, DatasetInfo, float]]) -> None:
        """Correct the rates of models by finished cells, with the data set and the seconds of each."""
        taken: defaultdict[str, float] = defaultdict(float)
        assumed: defaultdict[str, float] = defaultdict(float)
        for cell, info, seconds in finished:
            taken[cell.settings.model] += seconds
            assumed[cell.settings.model] += self._assumed(cell, info)
        self.measured = {model: taken[model] / assumed[model] for model in taken}


def find_gpu(name: str = "") -> Gpu:
    """The GPU of this name in config/gpus.yaml, by default its first one."""
    table = Validator(CONFIG / "schemas").read(GPUS, "gpus")
    gpus: dict[str, Any] = table["gpus"]
    name = name or next(iter(gpus))
    if name not in gpus:
        raise UserError(f"{GPUS} has no GPU '{name}'{suggest(name, gpus)}")
    peak = gpus[name]["tflops"] * 1e12
    return Gpu(name, table["utilization"] * peak, table["layer_seconds"], tuple(gpus))
