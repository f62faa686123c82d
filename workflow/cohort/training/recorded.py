"""Recorded steps: on a GPU, the many small kernels of a step are started by one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

WARM_UP = 2  # runs before a recording, in which libraries set themselves up


class Recorded:
    """A function of tensors that also changes some tensors in place. On a GPU it is recorded as a CUDA graph for each shape of its
    arguments and then replayed; the result is overwritten by the next call. All that it changes and reads besides stays where it is."""

    def __init__(self, function: Callable[..., Tensor], changes: Iterable[Tensor]):
        self.function, self.changes = function, list(changes)
        self.recordings: dict[tuple[torch.Size, ...], tuple[torch.cuda.CUDAGraph, list[Tensor], Tensor]] = {}

    def __call__(self, *arguments: Tensor) -> Tensor:
        if not arguments[0].is_cuda:
            return self.function(*arguments)
        shapes = tuple(argument.shape for argument in arguments)
        if shapes not in self.recordings:
            self.recordings[shapes] = self._record(*arguments)
        graph, inputs, output = self.recordings[shapes]
        for mine, given in zip(inputs, arguments, strict=True):
            mine.copy_(given)
        graph.replay()
        return output

    def _record(self, *arguments: Tensor) -> tuple[torch.cuda.CUDAGraph, list[Tensor], Tensor]:
        """Warming up changes what the function changes, so that is put back. Recording runs nothing."""
        inputs, before = [argument.clone() for argument in arguments], [tensor.clone() for tensor in self.changes]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                self.function(*inputs)
        torch.cuda.current_stream().wait_stream(aside)
        for tensor, value in zip(self.changes, before, strict=True):
            tensor.copy_(value)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = self.function(*inputs)
        return graph, inputs, output
