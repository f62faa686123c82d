"""Code of layers with samples in the lanes of vectors: the layout of their arrays, the base of all
layers, matrix products of which a tile stays in registers, and linear layers. Axes are named from
the slowest to the fastest: maps, which convolutions read, are (block, channel, row, column, lane);
features, which linear layers read, are (channel, row, column, block, lane). A block is as many
samples as a vector has lanes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cohort.native import emitter
from cohort.native.emitter import ZERO, Arena, Emitter, Index, Ranges, Target
from cohort.native.layers import Layer, Shape
from cohort.native.spectra import SpectralArrays, is_spectral_faster

L1_SHARE = 24 * 1024  # bytes of the first-level cache that a gradient may fill
ABREAST = 4  # vectors of samples, or pixels, that share each load of a weight
_ARRAYS = Emitter.noalias("memory", "weights", "gradients")
PARAMETERS = (*_ARRAYS, "i64 %blocks", *Emitter.noalias("logit_scale"))
"""LLVM parameters of the functions of all layers: scratch memory, weights, their gradients, the
number of blocks of samples, and the scale of calibrated logits."""

Pointer = Callable[[Index, Index], str]
"""Points to a vector (row, block, lane), by block of samples and number of the row."""
Store = Callable[[str, Index, Index], None]
"""Stores a vector, by block of samples and number of the row."""


@dataclass(frozen=True)
class Array:
    """The place of an array of vectors (block, channel, row, column); a vector holds one number of
    each sample of a block. The array begins at `offset`; `strides` are those of its axes, in
    numbers; `border` is the width of zeros around each channel, which no index reaches."""

    offset: int
    strides: tuple[int, int, int, int]
    border: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether it has room for all blocks at once."""
        return self.strides[0] > 0

    @property
    def corner(self) -> int:
        """The offset from a channel's first pixel back to the corner of its border."""
        return -self.border * (self.strides[2] + self.strides[3])


class LanesLayout:
    """The layout of a network's arrays in the scratch memory of its code, for batches.
    `activations[i]` is what layer i reads, the last one the outputs; `gradients[i]` is its
    gradient. Of a layer that pools, `unpooled[i]` is the gradient before pooling, and `masks[i]`
    (block, channel, row, column, 4) says which of four pixels was the greatest. Shared by layers,
    one after another: `transposed` (sample, input) for sums over samples, `sums` (output, weight,
    lane) for gradients, `packed` (input, lane) for weights that lie far apart."""

    def __init__(self, layers: Sequence[Layer], batch: int, target: Target):
        self.layers, self.target, self.lanes = list(layers), target, target.lanes
        self.weight_count = layers[-1].end
        blocks = -(-batch // target.lanes)
        self.blocks = blocks if blocks <= ABREAST else -(-blocks // ABREAST) * ABREAST
        self.abreast, self.width = min(self.blocks, ABREAST), self.blocks * self.lanes
        self.arena = Arena(target)
        shapes = [layers[0].inputs, *(layer.outputs for layer in layers)]
        readers = list(zip(shapes, [*layers, None], strict=True))
        self.activations = [self._allocate_array(*reader, True) for reader in readers]
        self.gradients = [self._allocate_array(*reader, False) for reader in readers]
        self.unpooled = [self._allocate_unpooled(number) for number in range(len(layers))]
        # a bit per lane for each mask, with room for one or more masks in a number
        sizes = (self.blocks * math.prod(layer.outputs) * 4 * layer.pools for layer in layers)
        self.masks = list(map(self.arena.allocate, sizes))
        widest = max(layer.inner for layer in layers)
        self.transposed = self.arena.allocate(self.width * (widest + self.lanes))
        terms = max(layer.inner * layer.taps + 1 for layer in layers)
        self.sums = self.arena.allocate(self.lanes * target.tile * terms)
        self.packed = self.arena.allocate(self.lanes * max(layer.outer for layer in layers))
        self.spectra: list[SpectralArrays | None] = [None] * len(layers)
        for number, layer in enumerate(layers):
            if number and is_spectral_faster(layer):
                self.spectra[number] = SpectralArrays(layer, self.arena, self.width, self.lanes)

    def rows_at_once(self, layer: Layer, channels: int) -> int:
        """How many rows of the gradients of so many channels fit in the first-level cache."""
        (height, width), minimum = layer.sides, 1 + layer.pools
        limit = L1_SHARE // (self.target.size * self.lanes * channels * width)
        fitting = range(minimum, height + 1, minimum)
        return max(r for r in fitting if height % r == 0 and r <= max(minimum, limit))

    def _allocate_array(self, shape: Shape, reader: Layer | None, has_border: bool) -> Array:
        if reader is not None and reader.is_convolution:
            return self._allocate_maps(shape, reader.padding if has_border else 0)
        start = self.arena.allocate(math.prod(shape) * self.width)
        row = shape[2] * self.width
        return Array(start, (self.lanes, shape[1] * row, row, self.width))

    def _allocate_maps(self, shape: Shape, border: int = 0) -> Array:
        channels, height, width = shape[0], shape[1] + 2 * border, shape[2] + 2 * border
        row = width * self.lanes
        strides = channels * height * row, height * row, row, self.lanes
        start = self.arena.allocate(self.blocks * strides[0])
        return Array(start + border * (row + self.lanes), strides, border)

    def _allocate_unpooled(self, number: int) -> Array:
        """Allocate the gradient of a layer before pooling. The first convolution has room for some
        rows at a time only: nothing but the weights' gradients needs them."""
        layer = self.layers[number]
        if not layer.pools:
            return self.gradients[number + 1]
        if number:
            return self._allocate_maps((layer.outer, *layer.sides))
        row = layer.sides[1] * self.lanes
        channel = self.rows_at_once(layer, 1) * row
        return Array(self.arena.allocate(self.target.tile * channel), (0, channel, row, self.lanes))


class LayerCode:
    """Base of the code of one layer, for batches in the lanes. Subclasses emit bodies of functions:
    `emit_forward`, `emit_weight_gradient` (biases included) and `emit_input_gradient`."""

    def __init__(self, emit: Emitter, layout: LanesLayout, number: int):
        self.emit, self.layout, self.number = emit, layout, number
        self.layer, self.lanes = layout.layers[number], layout.lanes
        self.inputs, self.outputs = layout.activations[number : number + 2]
        self.unpooled = layout.unpooled[number]

    def emit_preparation(self) -> None:
        """Emit what is done with the weights before forward passes; nothing by default."""

    def pointer(self, array: Array, *indices: Index, offset: int = 0) -> str:
        """A pointer to the vector of an array at these indices: block, channel, row and column."""
        strided = zip(indices, array.strides, strict=False)
        return self.emit.pointer("%memory", *strided, array.offset + offset)

    def weight_pointer(self, *offsets: Index | tuple[Index, int]) -> str:
        """Emit a pointer to a weight of this layer, moved by the offsets from its first weight."""
        return self.emit.pointer("%weights", *offsets, self.layer.weight)

    def broadcast_bias(self, channel: Index, offset: int = 0) -> str:
        """Emit a vector with an output channel's bias in all lanes."""
        bias = self.emit.load_number("%weights", channel, self.layer.bias + offset)
        return self.emit.broadcast(bias)

    def store_gradient(self, value: str, *indices: Index) -> None:
        """Emit a store of the gradient of an input, 0 where the ReLU before it was off. Where the
        layer before pools, its masks will tell instead."""
        emit, before = self.emit, self.layout.layers[self.number - 1]
        if before.rectifies and not before.pools:
            value = emit.where_positive(value, emit.load(self.pointer(self.inputs, *indices)))
        emit.store(value, self.pointer(self.layout.gradients[self.number], *indices))

    def emit_lane_sums(self, offset: int, count: int, goal: str) -> None:
        """Emit the lane sums of `count` vectors, from `offset` on, into `goal`."""
        emit, lanes = self.emit, self.lanes
        for group in emitter.chunks(count, lanes):
            with emit.parts(group) as first:
                source = emit.pointer("%memory", (first, lanes), offset)
                vectors = [emit.load(source, row * lanes) for row in range(group.size)]
                emit.store_first(emitter.lane_sums(emit, vectors), group.size, goal, first)

    def emit_transpose(self, source: Pointer, blocks: Index) -> None:
        """Emit a transposition of the inputs (row, block, lane) into scratch memory `transposed`
        (sample, row). Vectors then run along rows, so that sums over samples need no shuffles."""
        emit, lanes, row = self.emit, self.lanes, self._row_length
        for part in emitter.chunks(self.layer.inner, lanes):
            with emit.loops(part, blocks) as (first, block):
                pointers = (source(block, emit.add(first, index)) for index in range(part.size))
                rows = [*map(emit.load, pointers), *[ZERO] * (lanes - part.size)]
                goal = emit.pointer("%memory", first, (block, lanes * row), self.layout.transposed)
                for lane, values in enumerate(emitter.transposed(emit, rows)):
                    emit.store(values, goal, lane * row)

    def emit_transposed_product(self, gradients: Pointer, samples: Index, goal: str) -> None:
        """Emit sums over samples: `goal` (output, row) gets each output's gradient (output, sample)
        times each row of the inputs that were transposed last (sample, row)."""
        emit, lanes, count = self.emit, self.lanes, self.layer.inner
        vectors, rest = divmod(count, lanes)
        inner = [(part, lanes) for part in emitter.split(vectors, ABREAST)]
        inner += [(Ranges(vectors, 1, 1), rest)] if rest else []
        for columns, used in inner:
            for outer in emitter.split(self.layer.outer, self.layout.target.tile // ABREAST):
                wide, pairs = columns.size, outer.size * columns.size
                with emit.loops(columns, outer) as (vector, first):
                    column = emit.mul(vector, lanes)
                    sums = emit.variables([ZERO] * pairs)
                    pointers = [gradients(0, emit.add(first, n)) for n in range(outer.size)]
                    with emit.loop(samples) as sample, sums.update() as values:
                        rows = sample, self._row_length
                        source = emit.pointer("%memory", column, rows, self.layout.transposed)
                        numbers = (emit.load_number(pointer, sample) for pointer in pointers)
                        factors = [emit.broadcast(number) for number in numbers]
                        loaded = ((n, emit.load(source, n * lanes)) for n in range(wide))
                        emit.add_outer_product(values, wide, factors, loaded)
                    corner = emit.pointer(goal, (first, count), column)
                    for number, value in enumerate(sums.load()):
                        result, vector = divmod(number, wide)
                        emit.store_first(value, used, corner, result * count + vector * lanes)

    @property
    def _row_length(self) -> int:
        """The length of a sample's row of inputs, in whole vectors."""
        return -(-self.layer.inner // self.lanes) * self.lanes


@dataclass(frozen=True)
class Product:
    """A product of weights and samples: for each of the `results`, the sum over `terms` of weights
    (result, term) times `source` (term, block, lane), plus `start(result)`."""

    emit: Emitter
    layout: LanesLayout
    results: int
    terms: int
    source: Pointer
    store: Store
    start: Callable[[Index], str] = lambda result: ZERO

    def emit_code(self, weights: str, strides: tuple[int, int]) -> None:
        """Emit the product with weights of these strides. Large weights whose first stride is 1 are
        packed: those of as many results as a vector has lanes are first copied side by side."""
        emit, layout, lanes = self.emit, self.layout, self.layout.lanes
        max_results = layout.target.tile // layout.abreast
        if strides[0] != 1 or self.results * self.terms * layout.target.size <= L1_SHARE:
            for part in emitter.split(self.results, max_results):
                with emit.parts(part) as first:
                    self._emit_tiles(first, part.size, weights, strides, first)
            return
        packed = emit.pointer("%memory", layout.packed)
        for strips in emitter.chunks(self.results, lanes):
            with emit.parts(strips) as begin:
                with emit.loop(self.terms) as term:
                    values = emit.load_anywhere(weights, begin, (term, strides[1]))
                    emit.store(values, packed, (term, lanes))
                for part in emitter.split(strips.size, max_results):
                    for offset in part.starts:
                        side_by_side = emit.pointer(packed, offset)
                        first = emit.add(begin, offset)
                        self._emit_tiles(first, part.size, side_by_side, (1, lanes), 0)

    def _emit_tiles(
        self, first: Index, size: int, weights: str, strides: tuple[int, int], row: Index
    ) -> None:
        """Emit `size` results from `first` on, of all samples; their weights begin at `row`."""
        emit, abreast = self.emit, self.layout.abreast
        with emit.loop(self.layout.blocks // abreast) as group:
            block = emit.mul(group, abreast)
            starts = [self.start(emit.add(first, result)) for result in range(size)]
            sums = emit.variables([value for value in starts for _ in range(abreast)])
            with emit.loop(self.terms) as term, sums.update() as values:
                of_term = emit.pointer(weights, (row, strides[0]), (term, strides[1]))
                source, lanes = self.source(block, term), self.layout.lanes
                loaded = [(index, emit.load(source, index * lanes)) for index in range(abreast)]
                for result in range(size):
                    span = slice(result * abreast, (result + 1) * abreast)
                    factor = emit.broadcast(emit.load_number(of_term, result * strides[0]))
                    tile = values[span]
                    emit.add_outer_product(tile, abreast, [factor], loaded)
                    values[span] = tile
            for number, value in enumerate(sums.load()):
                result, which = divmod(number, abreast)
                self.store(value, emit.add(block, which), emit.add(first, result))


class LinearCode(LayerCode):
    """Emits a linear layer: products of weights (outer, inner) and features (inner, block, lane),
    with a tile of the result (outer, block, lane) in registers at a time. `calibrates`: the
    gradient of the outputs is that of calibrated logits."""

    def __init__(self, emit: Emitter, layout: LanesLayout, number: int, calibrates: bool = False):
        super().__init__(emit, layout, number)
        self.calibrates = calibrates

    def emit_forward(self) -> None:
        layer = self.layer

        def store(value: str, block: Index, output: Index) -> None:
            value = self.emit.relu(value) if layer.rectifies else value
            self.emit.store(value, self.pointer(self.outputs, block, 0, 0, output))

        args = layer.outer, layer.inner, self._features(self.inputs), store, self.broadcast_bias
        Product(self.emit, self.layout, *args).emit_code(self.weight_pointer(), (layer.inner, 1))

    def emit_weight_gradient(self) -> None:
        emit, layer, gradients = self.emit, self.layer, self.layout.gradients[self.number + 1]
        with emit.loop(layer.outer) as outer:
            total = emit.variables([ZERO])
            with emit.loop(self.layout.blocks) as block, total.update() as values:
                address = self.pointer(gradients, block, 0, 0, outer)
                gradient = emit.load(address)
                values[0] = emit.op("fadd", values[0], gradient)
                if self.calibrates:  # scale * (output - bias) + bias: the bias is not scaled
                    scale = emit.broadcast(emit.load_number("%logit_scale", outer))
                    emit.store(emit.op("fmul", gradient, scale), address)
            emit.store_number(emit.lane_sum(*total.load()), "%gradients", outer, layer.bias)
        self.emit_transpose(self._features(self.inputs), self.layout.blocks)
        goal, samples = emit.pointer("%gradients", layer.weight), self.layout.width
        sources = self._features(gradients)
        self.emit_transposed_product(sources, samples, goal)

    def emit_input_gradient(self) -> None:
        layer, gradients = self.layer, self.layout.gradients[self.number + 1]

        def store(value: str, block: Index, inner: Index) -> None:
            self.store_gradient(value, block, 0, 0, inner)

        args = layer.inner, layer.outer, self._features(gradients), store
        Product(self.emit, self.layout, *args).emit_code(self.weight_pointer(), (1, layer.inner))

    def _features(self, array: Array) -> Pointer:
        """Pointers to the numbers of this layer's inputs or outputs, in one row over all axes."""
        return lambda block, number: self.pointer(array, block, 0, 0, number)
