"""One round of ours under PyTorch's profiler: for each operation, its own time and its calls, as JSON on standard output."""

from __future__ import annotations

import json
import time

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.variants.given import arguments, given_work
from benchmarks.variants.ours import task_of
from cohort.training.precision import set_up
from cohort.training.procedures import parse_procedure


def main() -> None:
    """The second round, when everything is warm."""
    set_up("float32", torch.device("cpu"))
    task, procedure = task_of(given_work(arguments().folder)), parse_procedure("federated")
    rounds = procedure.rounds(task, procedure.begin(task))
    next(rounds)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        started = time.perf_counter()
        next(rounds)
        taken = time.perf_counter() - started
    own = {
        event.key: [event.self_cpu_time_total / 1e6, event.count]
        for event in profiler.key_averages()
    }
    print(json.dumps({"seconds": taken, "operations": own}))


if __name__ == "__main__":
    main()
