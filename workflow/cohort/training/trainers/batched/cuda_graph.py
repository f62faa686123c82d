"""CUDA graphs, which launch the many small kernels of a training step by one call."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

WARM_UP = 2  # runs before a capture, in which libraries initialize themselves


class CapturedGraph(NamedTuple):
    """A CUDA graph with the tensors that hold its inputs and its output."""

    graph: torch.cuda.CUDAGraph
    inputs: list[Tensor]
    output: Tensor


class CudaGraphFunction:
    """A function of tensors that may also change some tensors in place, captured as a CUDA graph.

    On a GPU it is captured once for each combination of argument shapes, then replayed; each call
    overwrites the result of the one before, whatever its shapes. All other tensors that it reads or
    changes must keep their memory. On a CPU, and where capturing fails, the function is called
    directly.
    """

    def __init__(self, function: Callable[..., Tensor], changes: Iterable[Tensor] = ()):
        self.function, self.changes = function, list(changes)
        self.captures: dict[tuple[torch.Size, ...], CapturedGraph | None] = {}
        self._pool: Any = None  # of memory, which the graphs share

    def __call__(self, *arguments: Tensor) -> Tensor:
        if not arguments[0].is_cuda:
            return self.function(*arguments)
        shapes = tuple(argument.shape for argument in arguments)
        if shapes not in self.captures:
            self.captures[shapes] = self._capture(*arguments)
        captured = self.captures[shapes]
        if captured is None:
            return self.function(*arguments)
        for buffer, argument in zip(captured.inputs, arguments, strict=True):
            buffer.copy_(argument)
        captured.graph.replay()
        return captured.output

    def _capture(self, *arguments: Tensor) -> CapturedGraph | None:
        """Warm up, restore the tensors that this changed, and capture, which executes nothing. None
        if capturing fails."""
        inputs = [argument.clone() for argument in arguments]
        before = [tensor.clone() for tensor in self.changes]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self.function(*inputs)
        torch.cuda.current_stream().wait_stream(side)
        for tensor, value in zip(self.changes, before, strict=True):
            tensor.copy_(value)
        graph = torch.cuda.CUDAGraph()
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        try:
            with _no_garbage_collection(), torch.cuda.graph(graph, self._pool):
                return CapturedGraph(graph, inputs, self.function(*inputs))
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            print(f"no CUDA graph could be captured, so steps are slower ({reason})", flush=True)
            return None


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Collect no garbage in this block: an older CUDA graph cannot be freed during a capture."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
