"""Timing of what runs on a GPU: interleaved, and less often if it is slow."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch

LEAST = 3  # sweeps, however slow


def finish(device: torch.device) -> None:
    """Wait until the GPU has done all work that was queued."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def interleaved_seconds(
    functions: Mapping[str, Callable[[], object]], device: torch.device, most: int, deadline: float
) -> dict[str, list[float]]:
    """Time the functions in turn: the seconds of each call, at most `most` of each. After the first
    three sweeps none begins that would end after `deadline`, a time of time.monotonic.

    One sweep more runs first, in which CUDA graphs are captured and libraries initialize.
    """
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for sweep in range(most + 1):
        began = time.monotonic()
        for name, function in functions.items():
            seconds = timed(function, device)
            if sweep:
                taken[name].append(seconds)
        now = time.monotonic()
        if sweep >= LEAST and now + (now - began) > deadline:
            break
    return taken


def timed(function: Callable[[], object], device: torch.device) -> float:
    """Call a function; return the seconds until the GPU has finished its work."""
    finish(device)
    began = time.perf_counter()
    function()
    finish(device)
    return time.perf_counter() - began
