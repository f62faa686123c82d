"""Time the native calls of rounds of ours, and the processor's peak between them; print medians as
JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any
from unittest import mock

import torch

from benchmarks.variants.inputs import arguments
from benchmarks.variants.ours import task_of
from benchmarks.work import read_work
from cohort.native.compiler import compile_function
from cohort.native.emitter import Emitter
from cohort.native.kernel import Kernel, zeros
from cohort.native.target import Target, host
from cohort.training.job.machine import set_up
from cohort.training.procedures import parse_procedure

STEPS = 10**7  # of the loop that measures the peak


def main() -> None:
    """Time the native calls of all rounds but the first, which warms up; print medians as JSON."""
    set_up("float32", torch.device("cpu"))
    given, procedure = read_work(arguments().folder), parse_procedure("federated")
    task = task_of(given)
    rounds = procedure.rounds(task, procedure.begin(task))
    peak, calls = _peak_flops_meter(host("float")), _Calls(Kernel._call)
    profiles: list[tuple[float, ...]] = []
    with mock.patch.object(Kernel, "_call", lambda *given: calls.timed(*given)):
        next(rounds)
        for _ in range(given.workload.rounds):
            calls.seconds, calls.count = 0.0, 0
            started = time.perf_counter()
            next(rounds)
            taken = time.perf_counter() - started
            profiles.append((taken, calls.seconds, calls.count, peak()))
    names = "round", "native", "calls", "peak"
    medians = map(median, zip(*profiles, strict=True))
    print(json.dumps(dict(zip(names, medians, strict=True))))


class _Calls:
    """Wraps a function and adds up the time of its calls."""

    def __init__(self, call: Callable[..., None]):
        self.call, self.seconds, self.count = call, 0.0, 0

    def timed(self, *given: Any) -> None:
        started = time.perf_counter()
        self.call(*given)
        self.seconds += time.perf_counter() - started
        self.count += 1


def _peak_flops_meter(target: Target) -> Callable[[], float]:
    """Make a function that measures a core's peak, in floating-point operations per second."""
    emit = Emitter(target)
    with emit.function("peak", "ptr %a", "ptr %b", "i64 %c", "i64 %steps", exported=True):
        factor = emit.broadcast(emit.load_number("%a"))
        sums = emit.variables([factor] * target.tile)
        with emit.loop("%steps"), sums.update() as values:
            values[:] = [emit.fma(value, factor, factor) for value in values]
        for index, value in enumerate(sums.load()):
            emit.store(value, "%b", index * target.lanes)
    run = compile_function(emit.llvm_ir(), emit.llvm_ir, "peak", target)
    room = zeros(target.lanes * target.tile, target.dtype)

    def measured() -> float:
        started = time.perf_counter()
        run(room.ctypes.data, room.ctypes.data, 0, STEPS)
        taken = time.perf_counter() - started
        return 2 * target.lanes * target.tile * STEPS / taken

    return measured


if __name__ == "__main__":
    main()
