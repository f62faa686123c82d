"""Profile one round of ours; print self time and calls of each operation as JSON."""

from __future__ import annotations

import json
import time

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.variants.inputs import arguments
from benchmarks.variants.ours import task_of
from benchmarks.work import read_work
from cohort.training.precision import set_up
from cohort.training.procedures import parse_procedure


def main() -> None:
    """Profile the second round; the first warms up."""
    set_up("float32", torch.device("cpu"))
    task, procedure = task_of(read_work(arguments().folder)), parse_procedure("federated")
    rounds = procedure.rounds(task, procedure.begin(task))
    next(rounds)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        started = time.perf_counter()
        next(rounds)
        taken = time.perf_counter() - started
    operations = {
        event.key: [event.self_cpu_time_total / 1e6, event.count]
        for event in profiler.key_averages()
    }
    print(json.dumps({"seconds": taken, "operations": operations}))


if __name__ == "__main__":
    main()
