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
from cohort.native.spectra import SpectralArrays, is_spectral_faster
from cohort.native.target import Target

L1_SHARE = 24 * 1024  # bytes of the first-level cache that a gradient may fill
ABREAST = 4  # vectors of samples, or pixels, that share each load of a weight


@dataclass(frozen=True)
class Array:
    """The place of an array of vectors (block, channel, row, column); a vector holds one number of
    each sample of a block. The array begins at `offset`; `strides` are those of its axes, in
    numbers; `border` is the width of a border of zeros around each channel, which no index
    reaches."""

    offset: int
    strides: tuple[int, int, int, int]
    border: int = 0

    @property
    def corner(self) -> int:
        """The offset from a channel's first pixel back to the corner of its border."""
        return -self.border * (self.strides[2] + self.strides[3])


@dataclass(frozen=True)
class Ranges:
    """`count` ranges of equal `size`, one after the other from `start` on."""

    start: int
    count: int
    size: int


def split(total: int, most: int) -> list[Ranges]:
    """Split range(total) into as few ranges of at most `most` as possible: a group of equal ranges,
    or two whose sizes differ by 1."""
    if not total:
        return []
    parts = -(-total // most)
    size, larger = divmod(total, parts)
    end = larger * (size + 1)
    ranges = Ranges(0, larger, size + 1), Ranges(end, parts - larger, size)
    return [part for part in ranges if part.count]


def chunks(total: int, size: int) -> list[Ranges]:
    """Split range(total) into ranges of a size, and a last one with what is left."""
    whole = total // size
    ranges = Ranges(0, whole, size), Ranges(whole * size, 1, total % size)
    return [part for part in ranges if part.count and part.size]


class BatchLayout:
    """The layout of a network's arrays for batches: each vector holds one number of several
    samples.

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
        self.activations = [self._allocate_array(*both, True) for both in self._shapes(shape)]
        self.gradients = [self._allocate_array(*both, False) for both in self._shapes(shape)]
        self.unpooled = [self._allocate_unpooled(number) for number in range(len(stages))]
        self.masks = [self._allocate_masks(stage) for stage in stages]
        widest = max(stage.inner for stage in stages)
        self.transposed = self.arena.allocate(self.width * (widest + self.lanes))
        most = max(stage.inner * stage.taps + 1 for stage in stages)
        self.sums = self.arena.allocate(self.lanes * target.tile * most)
        self.packed = self.arena.allocate(self.lanes * max(stage.outer for stage in stages))
        self.spectra = [
            SpectralArrays(stage, self.arena, self.width, self.lanes)
            if number and is_spectral_faster(stage)
            else None
            for number, stage in enumerate(stages)
        ]

    @property
    def weight_count(self) -> int:
        """The number of weights of the network."""
        return self.stages[-1].end

    def rows_at_once(self, stage: Stage, channels: int) -> int:
        """The number of rows of the gradients of so many channels that fit in the first-level
        cache."""
        (height, width), least = stage.sides, 1 + stage.pools
        most = L1_SHARE // (self.target.size * self.lanes * channels * width)
        fitting = range(least, height + 1, least)
        return max(r for r in fitting if height % r == 0 and r <= max(least, most))

    def _shapes(self, shape: Shape) -> Iterator[tuple[Shape, Stage | None]]:
        """The shape that each stage reads, with the stage; then that of the outputs, with None."""
        first = self.stages[0]
        shapes = [shape if first.is_convolution else first.inputs]
        shapes += [stage.outputs for stage in self.stages]
        return zip(shapes, [*self.stages, None], strict=True)

    def _allocate_array(self, shape: Shape, reader: Stage | None, has_border: bool) -> Array:
        if reader is None or not reader.is_convolution:
            return self._allocate_features(shape)
        return self._allocate_maps(shape, reader.padding if has_border else 0)

    def _allocate_maps(self, shape: Shape, border: int = 0) -> Array:
        """Allocate an array as convolutions read it: one block of samples after another."""
        channels, height, width = shape[0], shape[1] + 2 * border, shape[2] + 2 * border
        row = width * self.lanes
        strides = channels * height * row, height * row, row, self.lanes
        start = self.arena.allocate(self.blocks * strides[0])
        return Array(start + border * (row + self.lanes), strides, border)

    def _allocate_features(self, shape: Shape) -> Array:
        """Allocate an array as linear layers read it: each number of all samples side by side."""
        start = self.arena.allocate(math.prod(shape) * self.width)
        row = shape[2] * self.width
        return Array(start, (self.lanes, shape[1] * row, row, self.width))

    def _allocate_unpooled(self, number: int) -> Array:
        """Allocate the gradient of a stage before pooling. The first convolution has room for some
        rows at a time only: nothing but the weights' gradients needs them."""
        stage = self.stages[number]
        if not stage.pools:
            return self.gradients[number + 1]
        if number:
            return self._allocate_maps((stage.outer, *stage.sides))
        row = stage.sides[1] * self.lanes
        channel = self.rows_at_once(stage, 1) * row
        return Array(self.arena.allocate(self.target.tile * channel), (0, channel, row, self.lanes))

    def _allocate_masks(self, stage: Stage) -> int:
        """Allocate four masks of a bit per lane for each pooled pixel, with room for one or more
        masks in a number; return their offset."""
        if not stage.pools:
            return 0
        return self.arena.allocate(self.blocks * math.prod(stage.outputs) * 4)
