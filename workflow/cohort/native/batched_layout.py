"""The layout of a network's arrays in the scratch memory of its code, for batches of samples.

Axes are named from the slowest to the fastest: maps, which convolutions read, are (block, channel,
row, column, lane); features, which linear layers read, are (channel, row, column, block, lane). A
block is as many samples as a vector has lanes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cohort.native.arena import Arena
from cohort.native.network_stages import Shape, Stage
from cohort.native.spectra import SpectralArrays, pays
from cohort.native.target import Target

L1_SHARE = 24 * 1024  # bytes of the first-level cache that a gradient may fill
ABREAST = 4  # vectors of samples, or pixels, that share each load of a weight


@dataclass(frozen=True)
class Array:
    """An array of vectors (block, channel, row, column), of one number of 16 samples each on
    AVX-512. It begins at `offset`; `strides` are those of its axes, in numbers; `border` is the
    width of a border of zeros around each channel, outside of what indices reach."""

    offset: int
    strides: tuple[int, int, int, int]
    border: int = 0

    @property
    def corner(self) -> int:
        """The offset from a channel's first pixel back to the corner of its border."""
        return -self.border * (self.strides[2] + self.strides[3])


@dataclass(frozen=True)
class Part:
    """`count` ranges of equal `size`, one after the other from `start` on."""

    start: int
    count: int
    size: int


def split(total: int, most: int) -> list[Part]:
    """Split a range into parts of nearly equal size, at most `most`."""
    if not total:
        return []
    parts = -(-total // most)
    size, larger = divmod(total, parts)
    end = larger * (size + 1)
    ranges = Part(0, larger, size + 1), Part(end, parts - larger, size)
    return [part for part in ranges if part.count]


def chunks(total: int, size: int) -> list[Part]:
    """Split a range into parts of a size, and what is left."""
    whole = total // size
    ranges = Part(0, whole, size), Part(whole * size, 1, total % size)
    return [part for part in ranges if part.count and part.size]


class Layout:
    """The arrays of a network whose vectors hold one number of several samples.

    `activations[i]` is what stage i reads, the last one the outputs; `gradients[i]` is its
    gradient. Of a stage that pools, `unpooled[i]` is the gradient before pooling, and `masks[i]`
    (block, channel, row, column, 4) says which of four pixels was the greatest. Shared by stages,
    one after another: `transposed` (sample, input) for sums over samples, `sums` (output, weight,
    lane) for gradients, `packed` (input, lane) for weights that lie far apart.
    """

    def __init__(self, stages: Sequence[Stage], shape: Shape, batch: int, target: Target):
        self.stages, self.target, self.lanes = list(stages), target, target.lanes
        blocks = -(-batch // target.lanes)
        self.blocks = blocks if blocks <= ABREAST else -(-blocks // ABREAST) * ABREAST
        self.abreast, self.width = min(self.blocks, ABREAST), self.blocks * self.lanes
        self.arena = Arena(target)
        self.activations = [self._array(*both, True) for both in self._read(shape)]
        self.gradients = [self._array(*both, False) for both in self._read(shape)]
        self.unpooled = [self._unpooled(number) for number in range(len(stages))]
        self.masks = [self._masks(stage) for stage in stages]
        widest = max(stage.inner for stage in stages)
        self.transposed = self.arena.allocate(self.width * (widest + self.lanes))
        most = max(stage.inner * stage.taps + 1 for stage in stages)
        self.sums = self.arena.allocate(self.lanes * target.tile * most)
        self.packed = self.arena.allocate(self.lanes * max(stage.outer for stage in stages))
        self.spectra = [
            SpectralArrays(stage, self.arena, self.width, self.lanes)
            if number and pays(stage)
            else None
            for number, stage in enumerate(stages)
        ]

    @property
    def weights(self) -> int:
        """The number of weights."""
        return self.stages[-1].end

    def rows_at_once(self, stage: Stage, channels: int) -> int:
        """The number of rows of the gradients of so many channels that fit in the first-level
        cache."""
        (height, width), least = stage.sides, 1 + stage.pools
        most = L1_SHARE // (self.target.size * self.lanes * channels * width)
        fitting = range(least, height + 1, least)
        return max(r for r in fitting if height % r == 0 and r <= max(least, most))

    def _read(self, shape: Shape) -> Iterator[tuple[Shape, Stage | None]]:
        """The shape that each stage reads, with the stage; then that of the outputs, which none
        reads."""
        first = self.stages[0]
        shapes = [shape if first.is_convolution else first.inputs]
        shapes += [stage.outputs for stage in self.stages]
        return zip(shapes, [*self.stages, None], strict=True)

    def _array(self, shape: Shape, reader: Stage | None, has_border: bool) -> Array:
        if reader is None or not reader.is_convolution:
            return self._features(shape)
        return self._maps(shape, reader.padding if has_border else 0)

    def _maps(self, shape: Shape, border: int = 0) -> Array:
        """Block after block of samples, as convolutions read them."""
        channels, height, width = shape[0], shape[1] + 2 * border, shape[2] + 2 * border
        row = width * self.lanes
        strides = channels * height * row, height * row, row, self.lanes
        start = self.arena.allocate(self.blocks * strides[0])
        return Array(start + border * (row + self.lanes), strides, border)

    def _features(self, shape: Shape) -> Array:
        """All samples of a number side by side, as linear layers read them."""
        start = self.arena.allocate(math.prod(shape) * self.width)
        row = shape[2] * self.width
        return Array(start, (self.lanes, shape[1] * row, row, self.width))

    def _unpooled(self, number: int) -> Array:
        """The gradient of a stage before pooling. Of the first convolution only some rows are there
        at a time: nothing but the weights' gradients needs them."""
        stage = self.stages[number]
        if not stage.pools:
            return self.gradients[number + 1]
        if number:
            return self._maps((stage.outer, *stage.sides))
        row = stage.sides[1] * self.lanes
        channel = self.rows_at_once(stage, 1) * row
        return Array(self.arena.allocate(self.target.tile * channel), (0, channel, row, self.lanes))

    def _masks(self, stage: Stage) -> int:
        """Four masks of a bit per lane for each pooled pixel; a number has room for one or more."""
        if not stage.pools:
            return 0
        return self.arena.allocate(self.blocks * math.prod(stage.outputs) * 4)
