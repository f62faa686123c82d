"""Recorded steps: on a GPU, the many small kernels of a step are started by one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

WARM_UP = 2  # runs before a recording, in which libraries set themselves up


class Recording(NamedTuple):
    """A CUDA graph, where its arguments are put, and where its result appears."""

    graph: torch.cuda.CUDAGraph
    inputs: list[Tensor]
    output: Tensor


class Recorded:
    """A function of tensors that also changes some tensors in place. On a GPU it is recorded as a CUDA graph for each shape of its
    arguments and then replayed; the result is overwritten by the next call. All that it changes and reads besides stays where it is."""

    def __init__(self, function: Callable[..., Tensor], changes: Iterable[Tensor]):
        self.function, self.changes = function, list(changes)
        self.recordings: dict[tuple[torch.Size, ...], Recording | None] = {}

    def __call__(self, *arguments: Tensor) -> Tensor:
        if not arguments[0].is_cuda:
            return self.function(*arguments)
        shapes = tuple(argument.shape for argument in arguments)
        if shapes not in self.recordings:
            self.recordings[shapes] = self._record(*arguments)
        recording = self.recordings[shapes]
        if recording is None:
            return self.function(*arguments)
        for place, argument in zip(recording.inputs, arguments, strict=True):
            place.copy_(argument)
        recording.graph.replay()
        return recording.output

    def _record(self, *arguments: Tensor) -> Recording | None:
        """Warming up changes what the function changes, so that is put back. Recording runs nothing; what cannot be recorded is run."""
        inputs, before = (
            [argument.clone() for argument in arguments],
            [tensor.clone() for tensor in self.changes],
        )
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                self.function(*inputs)
        torch.cuda.current_stream().wait_stream(aside)
        for tensor, value in zip(self.changes, before, strict=True):
            tensor.copy_(value)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                return Recording(graph, inputs, self.function(*inputs))
        except RuntimeError as error:
            print(
                f"steps are slower here than they could be, because they cannot be recorded ({str(error).splitlines()[0]})",
                flush=True,
            )
            return None
