"""Code of a convolution that trains on one sample at a time, with channels in the lanes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cohort.native.batched_layout import ABREAST, Ranges, split
from cohort.native.emitter import ZERO, Index
from cohort.native.single_code import SingleSampleCode
from cohort.native.vectors import transposed


class SingleSampleConvolutionCode(SingleSampleCode):
    """Emits a convolution after the first for one sample. The backward pass visits only the outputs
    that have a gradient, which pooling and ReLU leave few of."""

    def emit_forward(self) -> None:
        stage, (_, width) = self.stage, self.layout.sides[self.number + 1]
        tiles = [Ranges(0, width, 1)] if stage.pools else split(width, ABREAST)
        for columns in tiles:
            for vectors in split(self.outer // self.lanes, self.layout.target.tile // ABREAST):
                self._emit_forward_tiles(columns, vectors)

    def _weight_pointer(self, *offsets: Index | tuple[Index, int]) -> str:
        """A pointer to the weights by input channel, tap and output channel."""
        return self.emit.pointer("%memory", *offsets, self.layout.by_input[self.number])

    def _emit_forward_tiles(self, columns: Ranges, vectors: Ranges) -> None:
        """Emit some vectors of output channels at four pixels at once."""
        emit, stage, lanes, size = self.emit, self.stage, self.lanes, vectors.size
        step, pixels = 1, [(0, x) for x in range(columns.size)]
        if stage.pools:
            step, pixels = 2, [(0, 0), (0, 1), (1, 0), (1, 1)]
        with (
            emit.loop(vectors.count) as part,
            emit.loop(self.layout.sides[self.number + 1][0]) as row,
            emit.loop(columns.count) as tile,
        ):
            channel = emit.add(emit.mul(part, size * lanes), vectors.start * lanes)
            column = emit.add(emit.mul(tile, columns.size), columns.start)
            source = self.input_pointer((row, step * self.row), (column, step * self.column))
            bias = emit.pointer("%weights", channel, self.layout.bias[self.number])
            biases = [emit.load(bias, vector * lanes) for vector in range(size)]
            sums = emit.variables(biases * len(pixels))
            with emit.loop(stage.inner) as inner, sums.update() as values:
                weights = self._weight_pointer((inner, stage.taps * self.outer), channel)
                self._emit_taps(values, emit.pointer(source, inner), weights, pixels)
            values = sums.load()
            for vector in range(size):
                position = row, column, channel, vector * lanes
                self._emit_stores(values[vector::size], pixels, *position)

    def _emit_taps(
        self, sums: list[str], source: str, weights: str, pixels: Sequence[tuple[int, int]]
    ) -> None:
        """Add the products of one input channel with the kernel's taps to `sums`."""
        emit, stage, size = self.emit, self.stage, len(sums) // len(pixels)
        for tap in range(stage.taps):
            down, right = divmod(tap, stage.kernel)
            offset = tap * self.outer
            loaded = [
                (vector, emit.load(weights, offset + vector * self.lanes)) for vector in range(size)
            ]
            offsets = [(y + down) * self.row + (x + right) * self.column for y, x in pixels]
            factors = [emit.broadcast(emit.load_number(source, offset)) for offset in offsets]
            emit.add_outer_product(sums, size, factors, loaded)

    def _emit_stores(
        self,
        values: list[str],
        pixels: Sequence[tuple[int, int]],
        row: Index,
        column: Index,
        *channel: Index,
    ) -> None:
        emit = self.emit
        if self.stage.pools:
            offsets = [y * self.row + x * self.column for y, x in pixels]
            values = [
                self._emit_pooling(values, offsets, self.position_pointer(row, column, *channel))
            ]
        for index, value in enumerate(values):
            value = emit.relu(value) if self.stage.rectifies else value
            emit.store(value, self.output_pointer(row, column, *channel), index * self.outer)

    def _emit_pooling(self, four: Sequence[str], offsets: Sequence[int], positions: str) -> str:
        """Emit the maximum of four and a store of the offset of the one that it was, the first of
        equals; return the maximum."""
        emit, integers = self.emit, f"<{self.lanes} x i32>"
        greatest, position = four[0], "splat (i32 0)"
        for value, offset in zip(four[1:], offsets[1:], strict=True):
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
        with emit.loop(self.stage.outer) as channel:
            count, total = self._emit_gradient_list(channel)
            self._emit_listed_step(channel, count)
            goal = emit.pointer("%weights", channel, self.layout.bias[self.number])
            change = emit.value(f"fmul {emit.scalar} %lr, {total}")
            bias = emit.load_number(goal)
            emit.store_number(emit.value(f"fsub {emit.scalar} {bias}, {change}"), goal)

    def _emit_gradient_list(self, channel: Index) -> tuple[str, str]:
        """Emit code that lists where an output channel has a gradient, as offsets in the inputs,
        and the gradients; return how many there are, and their sum."""
        emit, stage, scalar = self.emit, self.stage, self.emit.scalar
        height, width = self.layout.sides[self.number + 1]
        step = 1 + stage.pools
        count, total = emit.variables(["0"], "i64"), emit.variables([emit.literal(0)], scalar)
        with emit.loop(height) as row, emit.loop(width) as column:
            gradient = emit.load_number(self.output_pointer(row, column, channel, gradient=True))
            offset = emit.add(emit.mul(row, step * self.row), emit.mul(column, step * self.column))
            if stage.pools:
                offset = emit.add(
                    offset, emit.load_int(self.position_pointer(row, column, channel))
                )
            goal = self.layout.listed[self.number]
            emit.store_number(gradient, "%memory", count.load()[0], goal)
            with self.emit_append(count, offset) as conditions, total.update() as sums:
                conditions.append(emit.value(f"fcmp une {scalar} {gradient}, 0.0"))
                if stage.rectifies:
                    value = emit.load_number(self.output_pointer(row, column, channel))
                    is_on = emit.value(f"fcmp ogt {scalar} {value}, 0.0")
                    conditions.append(is_on)
                    gradient = emit.value(f"select i1 {is_on}, {scalar} {gradient}, {scalar} 0.0")
                sums[0] = emit.value(f"fadd {scalar} {sums[0]}, {gradient}")
        return count.load()[0], total.load()[0]

    def _emit_listed_step(self, channel: Index, count: str) -> None:
        """Emit code that adds each listed gradient's part to the gradients of the inputs, and takes
        the step of the channel's weights."""
        emit, stage, lanes, tile = self.emit, self.stage, self.lanes, self.layout.target.tile
        per_output = stage.taps * self.inner
        weights = emit.pointer("%weights", (channel, per_output), self.layout.weight[self.number])
        negative_rate, pairs = self.negative_rate(), []
        for tap in range(stage.taps):
            down, right = divmod(tap, stage.kernel)
            for part in range(0, self.inner, lanes):
                offset = down * self.row + right * self.column + part
                pairs.append((tap * self.inner + part, offset))
        arrays = self.layout.activations[self.number], self.layout.gradients[self.number]
        for some in (pairs[start : start + tile] for start in range(0, len(pairs), tile)):
            sums = emit.variables([ZERO] * len(some))
            with self.emit_list_loop(count) as (entry, input_offset), sums.update() as values:
                listed = self.layout.listed[self.number]
                gradient = emit.broadcast(emit.load_number("%memory", entry, listed))
                inputs, goals = (emit.pointer("%memory", input_offset, array) for array in arrays)
                for number, (weight, offset) in enumerate(some):
                    values[number] = emit.fma(gradient, emit.load(inputs, offset), values[number])
                    added = emit.load(goals, offset)
                    changed = emit.fma(gradient, emit.load(weights, weight), added)
                    emit.store(changed, goals, offset)
            for (weight, _), value in zip(some, sums.load(), strict=True):
                changed = emit.fma(negative_rate, value, emit.load(weights, weight))
                emit.store(changed, weights, weight)

    def emit_preparation(self) -> None:
        """Emit a copy of the weights by input channel, as the forward pass reads them."""
        emit, lanes, taps = self.emit, self.lanes, self.stage.taps
        with (
            emit.loop(self.inner // lanes) as left,
            emit.loop(self.outer // lanes) as top,
            emit.loop(taps) as tap,
        ):
            offsets = (top, lanes * taps * self.inner), (tap, self.inner), (left, lanes)
            source = emit.pointer("%weights", *offsets, self.layout.weight[self.number])
            rows = [emit.load(source, row * taps * self.inner) for row in range(lanes)]
            goal = self._weight_pointer(
                (left, lanes * taps * self.outer), (tap, self.outer), (top, lanes)
            )
            for lane, row in enumerate(transposed(emit, rows)):
                emit.store(row, goal, lane * taps * self.outer)


class FirstConvolutionCode(SingleSampleConvolutionCode):
    """Emits the first convolution, which has few input channels, whose gradient nothing needs:
    weights lie by output channel in the lanes, in the backward pass too."""

    def _weight_pointer(self, *offsets: Index | tuple[Index, int]) -> str:
        return self.emit.pointer("%weights", *offsets, self.layout.weight[self.number])

    def emit_preparation(self) -> None:
        pass

    def emit_backward_and_step(self) -> None:
        vectors = self.outer // self.lanes
        most = max(1, (self.layout.target.tile - vectors) // vectors)
        taps = [(inner, tap) for inner in range(self.stage.inner) for tap in range(self.stage.taps)]
        parts = [taps[start : start + most] for start in range(0, len(taps), most)]
        for number, some in enumerate(parts):
            self._emit_tap_step(some, vectors, with_bias=number == 0)

    def _emit_tap_step(
        self, taps: Sequence[tuple[int, int]], vectors: int, with_bias: bool
    ) -> None:
        """Emit the step of the weights of some taps, and of the biases if `with_bias`."""
        emit, lanes, negative_rate = self.emit, self.lanes, self.negative_rate()
        height, width = self.layout.sides[self.number + 1]
        starts = [
            self.layout.weight[self.number]
            + (inner * self.stage.taps + tap) * self.outer
            + vector * lanes
            for inner, tap in taps
            for vector in range(vectors)
        ]
        if with_bias:
            bias = self.layout.bias[self.number]
            starts += [bias + vector * lanes for vector in range(vectors)]
        sums = emit.variables([ZERO] * len(starts))
        with emit.loop(height) as row, emit.loop(width) as column, sums.update() as values:
            for vector in range(vectors):
                gradient = self._relu_gradient(row, column, vector * lanes)
                if with_bias:
                    end = len(taps) * vectors + vector
                    values[end] = emit.op("fadd", values[end], gradient)
                for share, source in self._gradient_shares(gradient, row, column, vector * lanes):
                    for number, (inner, tap) in enumerate(taps):
                        down, right = divmod(tap, self.stage.kernel)
                        offset = down * self.row + right * self.column + inner
                        pixel = emit.broadcast(emit.load_number(source, offset))
                        index = number * vectors + vector
                        values[index] = emit.fma(share, pixel, values[index])
        for start, value in zip(starts, sums.load(), strict=True):
            goal = emit.pointer("%weights", start)
            emit.store(emit.fma(negative_rate, value, emit.load(goal)), goal)

    def _relu_gradient(self, row: Index, column: Index, channel: int) -> str:
        """Emit an output pixel's gradient for channels from `channel` on; 0 where ReLU is off."""
        emit = self.emit
        gradient = emit.load(self.output_pointer(row, column, channel, gradient=True))
        if self.stage.rectifies:
            value = emit.load(self.output_pointer(row, column, channel))
            gradient = emit.where_positive(gradient, value)
        return gradient

    def _gradient_shares(
        self, gradient: str, row: Index, column: Index, channel: int
    ) -> Iterator[tuple[str, str]]:
        """Emit the share of a gradient that each pixel before pooling has; yield each with a
        pointer to the pixel's first input."""
        emit, integers = self.emit, f"<{self.lanes} x i32>"
        if not self.stage.pools:
            yield gradient, self.input_pointer((row, self.row), (column, self.column))
            return
        source = self.input_pointer((row, 2 * self.row), (column, 2 * self.column))
        address = self.position_pointer(row, column, channel)
        position = emit.value(f"load {integers}, ptr {address}, align 4")
        for y, x in ((0, 0), (0, 1), (1, 0), (1, 1)):
            offset = y * self.row + x * self.column
            is_here = emit.value(f"icmp eq {integers} {position}, splat (i32 {offset})")
            yield emit.select(is_here, gradient, ZERO), emit.pointer(source, offset)
