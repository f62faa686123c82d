"""The code of a network that trains on one sample at a time, with channels in the lanes of vectors:
the layout of its arrays, the base of all layers, linear layers, convolutions, and the program."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from itertools import pairwise

import numpy as np

from cohort.native import emitter, program
from cohort.native.augment import BYTES, AugmentCode
from cohort.native.emitter import ZERO, Arena, Emitter, Index, Offset, Ranges, Target, Variables
from cohort.native.lanes_convolution import FOUR, Pixels
from cohort.native.lanes_layers import ABREAST
from cohort.native.layers import Layer
from cohort.native.program import TRAIN, CodeRequest, StepOptions, emit_entry, pointers

NEVER = -1e30  # the bias of a padded output, whose exponential is negligible
PARAMETERS = Emitter.noalias("memory", "weights")


class SingleSampleLayout:
    """The layout of a network's arrays for training on one sample at a time. Channels are in the
    lanes of vectors: images are (row, column, channel), their channels filled up to whole vectors.
    Weights lie as the code reads them most, in whole vectors too: those of the first convolution by
    (input channel, tap, output channel), those of the others by (output channel, tap, input
    channel), those of a linear layer by (pixel, input channel, output channel). `order` says where
    each weight of the network is, and `padding` what is where no weight is."""

    def __init__(self, layers: Sequence[Layer], target: Target):
        self.layers, self.target, self.lanes = list(layers), target, target.lanes
        shapes = [layers[0].inputs, *(layer.outputs for layer in layers)]
        channels = layers[0].inner, *(layer.outer for layer in layers)
        self.sides = [sides for _, *sides in shapes]
        self.borders = [*[layer.padding for layer in layers], 0]
        self.widths = [-(-count // self.lanes) * self.lanes for count in channels]
        self.pixels = [math.prod(sides) for sides in self.sides]
        self.sizes = [
            (sides[0] + 2 * border) * (sides[1] + 2 * border) * width
            for sides, border, width in zip(self.sides, self.borders, self.widths, strict=True)
        ]
        self.arena = arena = Arena(target)
        self.activations = [arena.allocate(size) for size in self.sizes]
        self.gradients = [arena.allocate(size) for size in self.sizes]
        outputs = zip(self.pixels[1:], self.widths[1:], strict=True)
        self.positions = [arena.allocate(pixels * width) for pixels, width in outputs]
        self.nonzero_offsets = list(map(arena.allocate, map(max, self.sizes[:-1], self.pixels[1:])))
        self.nonzero_gradients = list(map(arena.allocate, self.pixels[1:]))
        self.nonzero_counts = [arena.allocate(1) for _ in layers]
        pairs = [before * after for before, after in pairwise(self.widths)]
        sizes = (layer.taps * count for layer, count in zip(layers, pairs, strict=True))
        self.by_input = list(map(arena.allocate, sizes))
        self._lay_out_weights(target)

    def strides(self, number: int) -> tuple[int, int]:
        """The strides of rows and of columns in the inputs of a layer."""
        width = self.widths[number]
        return (self.sides[number][1] + 2 * self.borders[number]) * width, width

    def origin(self, number: int) -> int:
        """The offset of the first pixel in the inputs of a layer, behind the border."""
        return self.borders[number] * sum(self.strides(number))

    def _lay_out_weights(self, target: Target) -> None:
        arena, order = Arena(target), []
        self.weight, self.bias = [], []
        for number, layer in enumerate(self.layers):
            inner, outer = self.widths[number : number + 2]
            pixels = layer.taps if layer.is_convolution else self.pixels[number]
            self.weight.append(arena.allocate(pixels * inner * outer))
            self.bias.append(arena.allocate(outer))
            channels = layer.inner * layer.taps // pixels
            out, into, pixel = np.ogrid[: layer.outer, :channels, :pixels]
            if not layer.is_convolution:
                positions = (pixel * inner + into) * outer + out
            elif number:
                positions = (out * pixels + pixel) * inner + into
            else:
                positions = (into * pixels + pixel) * outer + out
            order += [(self.weight[-1] + positions).reshape(-1)]
            order += [self.bias[-1] + np.arange(layer.outer)]
        self.order, self.weight_count = np.concatenate(order), arena.used
        self.padding = np.zeros(self.weight_count)
        self.padding[self.bias[-1] + self.layers[-1].outer :] = NEVER


class SingleSampleCode:
    """Base of the code of a layer for one sample: `emit_forward`, and `emit_backward_and_step` for
    the gradient of its inputs and the step of its weights, each the body of a function."""

    def __init__(self, emit: Emitter, layout: SingleSampleLayout, number: int):
        self.emit, self.layout, self.number = emit, layout, number
        self.layer, self.lanes = layout.layers[number], layout.lanes
        self.inner, self.outer = layout.widths[number : number + 2]
        self.row, self.column = layout.strides(number)
        self.weight, self.bias = layout.weight[number], layout.bias[number]
        self.sides = layout.sides[number + 1]  # of the outputs

    def emit_preparation(self) -> None:
        """Emit what is done with the weights before each forward pass; nothing by default."""

    def input_pointer(self, *offsets: Offset) -> str:
        """A pointer into this layer's inputs, from the corner of their border on."""
        return self.emit.pointer("%memory", *offsets, self.layout.activations[self.number])

    def output_pointer(
        self, row: Index, column: Index, *offsets: Offset, gradient: bool = False
    ) -> str:
        """A pointer to a pixel of this layer's outputs, or of their gradient."""
        number = self.number + 1
        arrays = self.layout.gradients if gradient else self.layout.activations
        strides = self.layout.strides(number)
        pixel = (row, strides[0]), (column, strides[1])
        start = arrays[number] + self.layout.origin(number)
        return self.emit.pointer("%memory", *pixel, *offsets, start)

    def position_pointer(self, row: Index, column: Index, *offsets: Offset) -> str:
        """A pointer to the stored offset, from the first of four pooled pixels, of the greatest."""
        base = self.emit.pointer("%memory", self.layout.positions[self.number])
        pixel = (row, self.sides[1] * self.outer), (column, self.outer)
        return self.emit.pointer(base, *pixel, *offsets, kind="i32")

    def emit_append(self, count: Variables, offset: Index, condition: str) -> None:
        """Emit code that appends an offset to the layer's list if a condition holds: it is stored
        in any case, but counted then only. A branch would often be predicted wrongly."""
        emit, (number,) = self.emit, count.load()
        base = emit.pointer("%memory", self.layout.nonzero_offsets[self.number])
        goal = emit.pointer(base, number, kind="i32")
        emit.emit(f"store i32 {emit.value(f'trunc i64 {offset} to i32')}, ptr {goal}")
        more = emit.value(f"zext i1 {condition} to i64")
        count.store([emit.value(f"add i64 {number}, {more}")])

    @contextmanager
    def emit_loop_over_nonzero(self, count: str) -> Iterator[tuple[Index, str]]:
        """Emit a loop over the layer's list; the `with` block gets an entry's index and offset."""
        emit = self.emit
        base = emit.pointer("%memory", self.layout.nonzero_offsets[self.number])
        with emit.when(emit.value(f"icmp sgt i64 {count}, 0")), emit.loop(count) as entry:
            yield entry, emit.load_int(base, entry)

    def relu_gradient(self, row: Index, column: Index, channel: int) -> str:
        """Emit an output pixel's gradient for a vector of channels; 0 where ReLU is off."""
        emit = self.emit
        gradient = emit.load(self.output_pointer(row, column, channel, gradient=True))
        if not self.layer.rectifies:
            return gradient
        return emit.where_positive(gradient, emit.load(self.output_pointer(row, column, channel)))

    def negative_rate(self) -> str:
        """Emit a vector with the negative learning rate in all lanes."""
        return self.emit.op("fsub", ZERO, self.emit.broadcast("%lr"))


class SingleSampleLinearCode(SingleSampleCode):
    """Emits a linear layer for one sample that skips inputs that are 0. If ReLU made them so, their
    gradient is 0 too, and their weights do not change."""

    def emit_forward(self) -> None:
        emit, layer, lanes = self.emit, self.layer, self.lanes
        count = self._emit_input_list()
        for vectors in emitter.split(self.outer // lanes, self.layout.target.tile):
            with emit.parts(vectors) as vector:
                channel = emit.mul(vector, lanes)
                bias = emit.pointer("%weights", channel, self.bias)
                sums = emit.variables([emit.load(bias, n * lanes) for n in range(vectors.size)])
                with self.emit_loop_over_nonzero(count) as (_, index), sums.update() as values:
                    factor = emit.broadcast(emit.load_number(self.input_pointer(index)))
                    weights = emit.pointer("%weights", (index, self.outer), channel, self.weight)
                    loaded = ((n, emit.load(weights, n * lanes)) for n in range(vectors.size))
                    emit.add_outer_product(values, vectors.size, [factor], loaded)
                for number, value in enumerate(sums.load()):
                    value = emit.relu(value) if layer.rectifies else value
                    emit.store(value, self.output_pointer(0, 0, channel), number * lanes)

    def _emit_input_list(self) -> str:
        """Emit code that lists the inputs that are not 0; return how many there are."""
        emit, count = self.emit, self.emit.variables(["0"], "i64")
        with emit.loop(self.layout.sizes[self.number]) as index:
            number = emit.load_number(self.input_pointer(index))
            self.emit_append(count, index, emit.value(f"fcmp une {emit.scalar} {number}, 0.0"))
        (length,) = count.load()
        stored = emit.pointer("%memory", self.layout.nonzero_counts[self.number])
        emit.emit(f"store i64 {length}, ptr {stored}")
        return length

    def emit_backward_and_step(self) -> None:
        """Emit code that reads an input's weights once, for its gradient and for their step."""
        emit, negative_rate = self.emit, self.negative_rate()
        starts = range(0, self.outer, self.lanes)
        gradients = [self.relu_gradient(0, 0, channel) for channel in starts]
        for number, gradient in enumerate(gradients):
            bias = emit.pointer("%weights", self.bias + number * self.lanes)
            emit.store(emit.fma(negative_rate, gradient, emit.load(bias)), bias)
        stored = emit.pointer("%memory", self.layout.nonzero_counts[self.number])
        with self.emit_loop_over_nonzero(emit.value(f"load i64, ptr {stored}")) as (_, index):
            weights = emit.pointer("%weights", (index, self.outer), self.weight)
            value = emit.broadcast(emit.load_number(self.input_pointer(index)))
            factor = emit.op("fmul", value, negative_rate)
            sums = [ZERO] * min(4, len(gradients))
            for number, gradient in enumerate(gradients):
                weight = emit.load(weights, number * self.lanes)
                sums[number % 4] = emit.fma(gradient, weight, sums[number % 4])
                emit.store(emit.fma(factor, gradient, weight), weights, number * self.lanes)
            while len(sums) > 1:
                sums = [*sums[2:], emit.op("fadd", *sums[:2])]
            goal = self.layout.gradients[self.number]
            emit.store_number(emit.lane_sum(*sums), "%memory", index, goal)


class SingleSampleConvolutionCode(SingleSampleCode):
    """Emits a convolution after the first for one sample. The backward pass visits only the outputs
    that have a gradient, which pooling and ReLU leave few of."""

    def emit_forward(self) -> None:
        max_vectors = self.layout.target.tile // ABREAST
        for columns in emitter.split(self.sides[1], 1 if self.layer.pools else ABREAST):
            for vectors in emitter.split(self.outer // self.lanes, max_vectors):
                self._emit_forward_tiles(columns, vectors)

    def _weight_pointer(self, *offsets: Index | tuple[Index, int]) -> str:
        """A pointer to the weights by input channel, tap and output channel."""
        return self.emit.pointer("%memory", *offsets, self.layout.by_input[self.number])

    def _emit_forward_tiles(self, columns: Ranges, vectors: Ranges) -> None:
        """Emit some vectors of output channels at four pixels at once."""
        emit, layer, lanes, size = self.emit, self.layer, self.lanes, vectors.size
        step = 1 + layer.pools
        pixels = FOUR if layer.pools else [(0, x) for x in range(columns.size)]
        with emit.loops(vectors, self.sides[0], columns) as (first, row, column):
            channel = emit.mul(first, lanes)
            source = self.input_pointer((row, step * self.row), (column, step * self.column))
            bias = emit.pointer("%weights", channel, self.bias)
            biases = [emit.load(bias, vector * lanes) for vector in range(size)]
            sums = emit.variables(biases * len(pixels))
            with emit.loop(layer.inner) as inner, sums.update() as values:
                weights = self._weight_pointer((inner, layer.taps * self.outer), channel)
                self._emit_taps(values, emit.pointer(source, inner), weights, pixels)
            values = sums.load()
            for vector in range(size):
                self._emit_stores(values[vector::size], row, column, channel, vector * lanes)

    def _emit_taps(self, sums: list[str], source: str, weights: str, pixels: Pixels) -> None:
        """Add the products of one input channel with the kernel's taps to `sums`."""
        emit, layer, size = self.emit, self.layer, len(sums) // len(pixels)
        for tap in range(layer.taps):
            down, right = divmod(tap, layer.kernel)
            starts = [tap * self.outer + vector * self.lanes for vector in range(size)]
            loaded = [(vector, emit.load(weights, start)) for vector, start in enumerate(starts)]
            offsets = [(y + down) * self.row + (x + right) * self.column for y, x in pixels]
            factors = [emit.broadcast(emit.load_number(source, offset)) for offset in offsets]
            emit.add_outer_product(sums, size, factors, loaded)

    def _emit_stores(self, values: list[str], row: Index, column: Index, *channel: Index) -> None:
        emit = self.emit
        if self.layer.pools:
            values = [self._emit_pooling(values, self.position_pointer(row, column, *channel))]
        for index, value in enumerate(values):
            value = emit.relu(value) if self.layer.rectifies else value
            emit.store(value, self.output_pointer(row, column, *channel), index * self.outer)

    def _emit_pooling(self, four: Sequence[str], positions: str) -> str:
        """Emit the maximum of four, and a store of the offset of the first such one; return it."""
        emit, integers = self.emit, f"<{self.lanes} x i32>"
        greatest, position = four[0], "splat (i32 0)"
        for value, (y, x) in zip(four[1:], FOUR[1:], strict=True):
            offset = y * self.row + x * self.column
            is_greater = emit.op("fcmp ogt", value, greatest)
            greatest = emit.select(is_greater, value, greatest)
            choices = f"{integers} splat (i32 {offset}), {integers} {position}"
            position = emit.value(f"select {emit.mask} {is_greater}, {choices}")
        emit.emit(f"store {integers} {position}, ptr {positions}, align 4")
        return greatest

    def emit_backward_and_step(self) -> None:
        emit = self.emit
        gradients = self.layout.gradients[self.number]
        with emit.loop(self.layout.sizes[self.number] // self.lanes) as vector:
            emit.store(ZERO, "%memory", (vector, self.lanes), gradients)
        with emit.loop(self.layer.outer) as channel:
            count, total = self._emit_gradient_list(channel)
            self._emit_listed_step(channel, count)
            goal = emit.pointer("%weights", channel, self.bias)
            change = emit.value(f"fmul {emit.scalar} %lr, {total}")
            bias = emit.load_number(goal)
            emit.store_number(emit.value(f"fsub {emit.scalar} {bias}, {change}"), goal)

    def _emit_gradient_list(self, channel: Index) -> tuple[str, str]:
        """Emit code that lists where an output channel has a gradient, as offsets in the inputs,
        and the gradients; return how many there are, and their sum."""
        emit, layer, scalar = self.emit, self.layer, self.emit.scalar
        step = 1 + layer.pools
        count, total = emit.variables(["0"], "i64"), emit.variables([emit.literal(0)], scalar)
        with emit.loops(*self.sides) as (row, column):
            gradient = emit.load_number(self.output_pointer(row, column, channel, gradient=True))
            offset = emit.add(emit.mul(row, step * self.row), emit.mul(column, step * self.column))
            if layer.pools:
                position = emit.load_int(self.position_pointer(row, column, channel))
                offset = emit.add(offset, position)
            emit.store_number(
                gradient, "%memory", count.load()[0], self.layout.nonzero_gradients[self.number]
            )
            counts = emit.value(f"fcmp une {scalar} {gradient}, 0.0")
            if layer.rectifies:
                value = emit.load_number(self.output_pointer(row, column, channel))
                is_on = emit.value(f"fcmp ogt {scalar} {value}, 0.0")
                counts = emit.value(f"and i1 {counts}, {is_on}")
                gradient = emit.value(f"select i1 {is_on}, {scalar} {gradient}, {scalar} 0.0")
            self.emit_append(count, offset, counts)
            with total.update() as sums:
                sums[0] = emit.value(f"fadd {scalar} {sums[0]}, {gradient}")
        return count.load()[0], total.load()[0]

    def _emit_listed_step(self, channel: Index, count: str) -> None:
        """Emit code that adds each listed gradient's part to the gradients of the inputs, and takes
        the step of the channel's weights."""
        emit, layer, lanes, tile = self.emit, self.layer, self.lanes, self.layout.target.tile
        weights = emit.pointer("%weights", (channel, layer.taps * self.inner), self.weight)
        negative_rate, pairs = self.negative_rate(), []
        for tap in range(layer.taps):
            down, right = divmod(tap, layer.kernel)
            for part in range(0, self.inner, lanes):
                offset = down * self.row + right * self.column + part
                pairs.append((tap * self.inner + part, offset))
        arrays = self.layout.activations[self.number], self.layout.gradients[self.number]
        for taps in (pairs[start : start + tile] for start in range(0, len(pairs), tile)):
            sums = emit.variables([ZERO] * len(taps))
            with (
                self.emit_loop_over_nonzero(count) as (entry, input_offset),
                sums.update() as values,
            ):
                listed = self.layout.nonzero_gradients[self.number]
                gradient = emit.broadcast(emit.load_number("%memory", entry, listed))
                inputs, goals = (emit.pointer("%memory", input_offset, array) for array in arrays)
                for number, (weight, offset) in enumerate(taps):
                    values[number] = emit.fma(gradient, emit.load(inputs, offset), values[number])
                    added = emit.load(goals, offset)
                    changed = emit.fma(gradient, emit.load(weights, weight), added)
                    emit.store(changed, goals, offset)
            for (weight, _), value in zip(taps, sums.load(), strict=True):
                changed = emit.fma(negative_rate, value, emit.load(weights, weight))
                emit.store(changed, weights, weight)

    def emit_preparation(self) -> None:
        """Emit a copy of the weights by input channel, as the forward pass reads them."""
        emit, lanes, taps = self.emit, self.lanes, self.layer.taps
        with emit.loops(self.inner // lanes, self.outer // lanes, taps) as (left, top, tap):
            offsets = (top, lanes * taps * self.inner), (tap, self.inner), (left, lanes)
            source = emit.pointer("%weights", *offsets, self.weight)
            rows = [emit.load(source, row * taps * self.inner) for row in range(lanes)]
            offsets = (left, lanes * taps * self.outer), (tap, self.outer), (top, lanes)
            goal = self._weight_pointer(*offsets)
            for lane, row in enumerate(emitter.transposed(emit, rows)):
                emit.store(row, goal, lane * taps * self.outer)


class FirstConvolutionCode(SingleSampleConvolutionCode):
    """Emits the first convolution, which has few input channels, whose gradient nothing needs:
    weights lie by output channel in the lanes, in the backward pass too."""

    def _weight_pointer(self, *offsets: Index | tuple[Index, int]) -> str:
        return self.emit.pointer("%weights", *offsets, self.weight)

    def emit_preparation(self) -> None:
        pass

    def emit_backward_and_step(self) -> None:
        vectors = self.outer // self.lanes
        max_taps = max(1, (self.layout.target.tile - vectors) // vectors)
        taps = [(inner, tap) for inner in range(self.layer.inner) for tap in range(self.layer.taps)]
        parts = [taps[start : start + max_taps] for start in range(0, len(taps), max_taps)]
        for number, part in enumerate(parts):
            self._emit_tap_step(part, vectors, has_bias=number == 0)

    def _emit_tap_step(self, taps: Sequence[tuple[int, int]], vectors: int, has_bias: bool) -> None:
        """Emit the step of the weights of some taps, and of the biases if `has_bias`."""
        emit, lanes, negative_rate = self.emit, self.lanes, self.negative_rate()
        firsts = [self.weight + (inner * self.layer.taps + tap) * self.outer for inner, tap in taps]
        firsts += [self.bias] if has_bias else []
        starts = [first + vector * lanes for first in firsts for vector in range(vectors)]
        sums = emit.variables([ZERO] * len(starts))
        with emit.loops(*self.sides) as (row, column), sums.update() as values:
            for vector in range(vectors):
                gradient = self.relu_gradient(row, column, vector * lanes)
                if has_bias:
                    end = len(taps) * vectors + vector
                    values[end] = emit.op("fadd", values[end], gradient)
                for share, source in self._gradient_shares(gradient, row, column, vector * lanes):
                    for number, (inner, tap) in enumerate(taps):
                        down, right = divmod(tap, self.layer.kernel)
                        offset = down * self.row + right * self.column + inner
                        pixel = emit.broadcast(emit.load_number(source, offset))
                        index = number * vectors + vector
                        values[index] = emit.fma(share, pixel, values[index])
        for start, value in zip(starts, sums.load(), strict=True):
            goal = emit.pointer("%weights", start)
            emit.store(emit.fma(negative_rate, value, emit.load(goal)), goal)

    def _gradient_shares(
        self, gradient: str, row: Index, column: Index, channel: int
    ) -> Iterator[tuple[str, str]]:
        """Emit the share of a gradient that each pixel before pooling has; yield each with a
        pointer to the pixel's first input."""
        emit, integers = self.emit, f"<{self.lanes} x i32>"
        if not self.layer.pools:
            yield gradient, self.input_pointer((row, self.row), (column, self.column))
            return
        source = self.input_pointer((row, 2 * self.row), (column, 2 * self.column))
        address = self.position_pointer(row, column, channel)
        position = emit.value(f"load {integers}, ptr {address}, align 4")
        for y, x in FOUR:
            offset = y * self.row + x * self.column
            is_here = emit.value(f"icmp eq {integers} {position}, splat (i32 {offset})")
            yield emit.select(is_here, gradient, ZERO), emit.pointer(source, offset)


def is_single_sample(request: CodeRequest) -> bool:
    """Whether SingleSampleProgram can train a network. Linear layers must follow ReLUs, as inputs
    of 0 get no gradient. Learning rate times proximal weight must be small."""
    options, pairs = request.options, pairwise(request.layers)
    if request.batch != 1 or options is None:
        return False
    rectified = all(before.rectifies or after.is_convolution for before, after in pairs)
    plain = StepOptions(proximal=options.proximal, corrects=options.corrects)
    return rectified and options == plain


class SingleSampleProgram:
    """Emits the native code `train` of a network for batches of one sample."""

    width, slack = 1, 0

    def __init__(self, request: CodeRequest):
        assert request.options is not None
        target, shape = request.target, request.shape
        self.options, self.kind, self.shape = request.options, request.kind, shape
        self.emit, self.layout = Emitter(target), SingleSampleLayout(request.layers, target)
        self.weight_count, self.augment = self.layout.weight_count, None
        if request.augment is not None:
            arena = self.layout.arena
            self.augment = AugmentCode(self.emit, arena, request.augment, shape, self.kind, 1)
            self.kind = target.scalar
        self.memory = self.layout.arena.used
        self.order, self.padding = self.layout.order, self.layout.padding

    def llvm_ir(self) -> str:
        """Emit all functions and return the module as LLVM IR."""
        if self.augment is not None:
            self.augment.emit_function()
        layers = len(self.layout.layers)
        for number in range(layers):
            code = self._layer_code(number)
            with self.emit.function(f"forward{number}", *PARAMETERS):
                code.emit_forward()
            with self.emit.function(f"backward{number}", *PARAMETERS, f"{self.emit.scalar} %lr"):
                code.emit_backward_and_step()
            with self.emit.function(f"prepare{number}", *PARAMETERS):
                code.emit_preparation()
        self._emit_cross_entropy()
        with self.emit.function("move", *program.step_parameters(self.emit.scalar)):
            program.emit_move(self.emit, self.weight_count, self.options)
        self._emit_train(layers)
        return self.emit.llvm_ir()

    def _layer_code(self, number: int) -> SingleSampleLinearCode | SingleSampleConvolutionCode:
        if not self.layout.layers[number].is_convolution:
            return SingleSampleLinearCode(self.emit, self.layout, number)
        kind = SingleSampleConvolutionCode if number else FirstConvolutionCode
        return kind(self.emit, self.layout, number)

    def _emit_cross_entropy(self) -> None:
        """Emit the function `cross_entropy`: for one sample, the gradient of its logits, and sum of
        exponentials and label's gap to the maximum, from which `Kernel.train` makes the loss."""
        emit, lanes, scalar = self.emit, self.layout.lanes, self.emit.scalar
        parameters = "ptr noalias %memory", "i64 %label", "ptr noalias %sum", "ptr noalias %gap"
        with emit.function("cross_entropy", *parameters):
            logits = emit.pointer("%memory", self.layout.activations[-1])
            goal = emit.pointer("%memory", self.layout.gradients[-1])
            vectors = [emit.load(logits, n) for n in range(0, self.layout.widths[-1], lanes)]
            greatest = reduce(lambda most, vector: emit.maximum(vector, most), vectors)
            name = f"vector.reduce.fmax.{emit.suffix}"
            maximum = emit.intrinsic(name, scalar, (emit.vector, greatest))
            below = emit.broadcast(maximum)
            gaps = (emit.op("fsub", vector, below) for vector in vectors)
            powers = [emitter.exponential(emit, gap) for gap in gaps]
            total = emit.lane_sum(reduce(partial(emit.op, "fadd"), powers))
            for number, power in enumerate(powers):
                softmax = emit.op("fdiv", power, emit.broadcast(total))
                emit.store(softmax, goal, number * lanes)
            softmax = emit.load_number(goal, "%label")
            emit.store_number(emit.value(f"fsub {scalar} {softmax}, 1.0"), goal, "%label")
            logit = emit.load_number(logits, "%label")
            emit.store_number(total, "%sum")
            emit.store_number(emit.value(f"fsub {scalar} {logit}, {maximum}"), "%gap")

    def _emit_train(self, layers: int) -> None:
        emit, memory = self.emit, pointers("%memory", "%weights")

        def measure() -> None:  # before the first step; each step writes the next distance
            if self.options.proximal:
                program.emit_distance(emit, self.weight_count, emit.pointer("%distances", "%first"))

        with emit_entry(emit, TRAIN, before=measure) as step:
            self._emit_fetch(step)
            for number in range(layers):
                emit.call(f"prepare{number}", *memory)
                emit.call(f"forward{number}", *memory)
            label = f"i64 {emit.load_int('%labels', step)}"
            results = pointers(*(emit.pointer(name, step) for name in ("%sums", "%gaps")))
            emit.call("cross_entropy", "ptr %memory", label, *results)
            rate = program.rate_before_move(emit, self.options)
            for number in reversed(range(layers)):
                emit.call(f"backward{number}", *memory, f"{emit.scalar} {rate}")
            if self.options != StepOptions():
                program.emit_step_call(emit, "move", emit.pointer("%distances", step, 1))

    def _emit_fetch(self, step: Index) -> None:
        """Emit code that standardizes a sample and puts channels into the lanes of each pixel."""
        emit, (channels, height, width) = self.emit, self.shape
        if self.augment is None:
            index = emit.load_int("%indices", step)
            sample = emit.pointer("%samples", (index, math.prod(self.shape)), kind=self.kind)
        else:
            indices, rows = (emit.pointer(n, step, kind="i32") for n in ("%indices", "%rows"))
            self.augment.emit_call(indices, rows, "1")
            sample = emit.pointer("%memory", self.augment.images)
        strides, is_image = self.layout.strides(0), self.layout.layers[0].is_convolution
        start = self.layout.activations[0] + self.layout.origin(0)
        with emit.loops(channels, height, width) as (channel, row, column):
            position = emit.add(emit.mul(channel, height * width), emit.mul(row, width))
            position = emit.add(position, column)
            address = emit.pointer(sample, position, kind=self.kind)
            value = emit.value(f"load {self.kind}, ptr {address}")
            if self.kind == BYTES:
                value = emit.value(f"uitofp i8 {value} to {emit.scalar}")
            scale, shift = (emit.load_number(name, position) for name in ("%scale", "%shift"))
            value = emit.value(f"fmul contract {emit.scalar} {value}, {scale}")
            value = emit.value(f"fadd contract {emit.scalar} {value}, {shift}")
            offsets = (row, strides[0]), (column, strides[1]), channel
            goal = emit.pointer("%memory", *(offsets if is_image else (position,)), start)
            emit.store_number(value, goal)
