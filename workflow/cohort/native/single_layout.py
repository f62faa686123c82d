"""The layout of a network's arrays in the memory of its code, for training on one sample at a
time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cohort.native.arena import Arena
from cohort.native.network_stages import Shape, Stage
from cohort.native.target import Target

NEVER = -1e30  # the bias of an output that is not there, whose exponential is 0


class SingleSampleLayout:
    """The layout of a network's arrays for training on one sample at a time. Channels are in the
    lanes of vectors: images are (row, column, channel), their channels filled up to whole vectors.

    Weights lie as the code reads them most, in whole vectors too: those of the first convolution by
    (input channel, tap, output channel), those of the others by (output channel, tap, input
    channel), those of a linear layer by (pixel, input channel, output channel). `order` says where
    each weight of the network is, and `padding` what is where no weight is.
    """

    def __init__(self, stages: Sequence[Stage], shape: Shape, target: Target):
        self.stages, self.target, self.lanes = list(stages), target, target.lanes
        first = stages[0]
        shapes = [shape if first.is_convolution else first.inputs]
        shapes += [stage.outputs for stage in stages]
        self.sides = [sides for _, *sides in shapes]
        self.borders = [*[stage.padding for stage in stages], 0]
        self.widths = [self._padded(channels) for channels in (first.inner, *self._outer())]
        self.pixels = [math.prod(sides) for sides in self.sides]
        self.sizes = [
            (sides[0] + 2 * border) * (sides[1] + 2 * border) * width
            for sides, border, width in zip(self.sides, self.borders, self.widths, strict=True)
        ]
        self.arena = arena = Arena(target)
        self.activations = [arena.allocate(size) for size in self.sizes]
        self.gradients = [arena.allocate(size) for size in self.sizes]
        outputs = list(zip(self.pixels[1:], self.widths[1:], strict=True))
        self.positions = [arena.allocate(pixels * width) for pixels, width in outputs]
        self.lists = [
            arena.allocate(max(size, pixels))
            for size, (pixels, _) in zip(self.sizes, outputs, strict=False)
        ]
        self.listed = [arena.allocate(pixels) for pixels, _ in outputs]
        self.counts = [arena.allocate(1) for _ in stages]
        self.by_input = [
            arena.allocate(stage.taps * self.widths[number] * self.widths[number + 1])
            for number, stage in enumerate(stages)
        ]
        self._lay_out_weights(target)

    def strides(self, number: int) -> tuple[int, int]:
        """The strides of rows and of columns in the inputs of a stage."""
        width = self.widths[number]
        return (self.sides[number][1] + 2 * self.borders[number]) * width, width

    def origin(self, number: int) -> int:
        """The offset of the first pixel in the inputs of a stage, behind the border."""
        return self.borders[number] * sum(self.strides(number))

    def _outer(self) -> list[int]:
        return [stage.outer for stage in self.stages]

    def _padded(self, channels: int) -> int:
        return -(-channels // self.lanes) * self.lanes

    def _lay_out_weights(self, target: Target) -> None:
        arena, order = Arena(target), []
        self.weight, self.bias = [], []
        for number, stage in enumerate(self.stages):
            inner, outer = self.widths[number : number + 2]
            pixels = stage.taps if stage.is_convolution else self.pixels[number]
            self.weight.append(arena.allocate(pixels * inner * outer))
            self.bias.append(arena.allocate(outer))
            channels = stage.inner * stage.taps // pixels
            out, into, pixel = np.ogrid[: stage.outer, :channels, :pixels]
            if not stage.is_convolution:
                positions = (pixel * inner + into) * outer + out
            elif number:
                positions = (out * pixels + pixel) * inner + into
            else:
                positions = (into * pixels + pixel) * outer + out
            order += [(self.weight[-1] + positions).reshape(-1)]
            order += [self.bias[-1] + np.arange(stage.outer)]
        self.order, self.weight_count = np.concatenate(order), arena.used
        self.padding = np.zeros(self.weight_count)
        self.padding[self.bias[-1] + self.stages[-1].outer :] = NEVER
