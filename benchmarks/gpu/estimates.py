"""What `cohort status --cost` estimates, beside the rounds that were measured on a GPU."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.gpu.results import Row
from benchmarks.gpu.rounds import WORKLOADS, layers_in_turn, operations
from cohort.plan.gpu_times import find_gpu


def with_estimates(rows: Iterable[Row], device: str) -> list[Row]:
    """Add the estimate of each round divided by its time, if config/gpus.yaml has the device."""
    name = next((name for name in find_gpu().names if name in device), None)
    if name is None:
        return list(rows)
    gpu, workloads = find_gpu(name), {workload.name: workload for workload in WORKLOADS}
    compared = []
    for row in rows:
        workload, trainer = workloads[str(row["workload"])], str(row["trainer"])
        seconds = float(row["median s/round"] or 0)
        together = workload.cohort if trainer == "batched" else 0
        waiting = layers_in_turn(workload, trainer) * gpu.seconds_per_layer(together)
        estimate = operations(workload) / gpu.operations_per_second + waiting
        compared.append(row | {"estimated / measured": estimate / seconds})
    return compared
