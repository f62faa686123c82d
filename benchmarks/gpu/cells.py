"""Cells side by side: processes that share the GPU."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

import torch

from benchmarks.draw import draw_work, save_work
from benchmarks.gpu.report import Report
from benchmarks.gpu.timing import interleaved_seconds
from benchmarks.peers import environment
from benchmarks.processes import Workers
from benchmarks.workloads import W1, W2, Workload

CELLS = (1, 4)
MOST = 10  # rounds of each


def measure(report: Report) -> None:
    """Time rounds of one cell, and of four at once, for two workloads."""
    workloads = (W2.tiny(),) if report.is_trial else (W1, W2)
    counts = (2,) if report.is_trial else CELLS
    report.plan(len(workloads) * len(counts))
    for workload in workloads:
        with tempfile.TemporaryDirectory() as folder:
            save_work(draw_work(workload), Path(folder))
            _time_workload(workload, counts, Path(folder), report)


def _time_workload(
    workload: Workload, counts: tuple[int, ...], folder: Path, report: Report
) -> None:
    alone = None
    for count in counts:
        with report.step(f"{workload.name}, {count} at once") as until:
            seconds, memory = _time_side_by_side(count, folder, report, until)
            round = median(seconds)
            alone = alone or round
            report.add(
                {
                    "workload": workload.name,
                    "cells": count,
                    "median s/round": round,
                    "min": min(seconds),
                    "max": max(seconds),
                    "rounds": len(seconds),
                    "rounds/s of all": count / round,
                    "vs one cell": count * alone / round,
                    "memory, MB": memory,
                }
            )


def _time_side_by_side(
    count: int, folder: Path, report: Report, until: float
) -> tuple[list[float], float | None]:
    """Play rounds in so many processes at once: the seconds of each sweep until all are done, and
    the GPU memory that all took."""
    device = report.device
    command = [sys.executable, "-m", "benchmarks.variants.ours", str(folder)]
    options = ["--trainer", "batched", "--device", device.type]
    before = _free_bytes(device)
    with Workers([command + options] * count, environment(), folder / "log") as workers:
        most = 1 if report.is_trial else MOST
        seconds = interleaved_seconds({"round": workers.run}, device, most, until)["round"]
        after = _free_bytes(device)
    return seconds, None if before is None or after is None else (before - after) / 1e6


def _free_bytes(device: torch.device) -> int | None:
    """The bytes that are free on the GPU; None on a CPU."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None
