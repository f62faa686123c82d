"""Code of a convolution with samples in the lanes, so that layers of few channels fill vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cohort.native.batched_layout import ABREAST, Ranges, split
from cohort.native.emitter import ZERO, Index
from cohort.native.stage_code import StageCode

ACROSS = 7  # pixels of a row whose gradients are computed together, at most


class ConvolutionCode(StageCode):
    """Emits a direct convolution by weights (outer, inner, kernel row, kernel column): inner loops
    keep a tile of sums (output channel, pixel) in registers."""

    # forward

    def emit_forward(self) -> None:
        stage = self.stage
        tiles = [Ranges(0, stage.outputs[2], 1)] if stage.pools else split(stage.sides[1], ABREAST)
        for channels in split(stage.outer, self.layout.target.tile // ABREAST):
            for columns in tiles:
                self._emit_forward_tiles(channels, columns)

    def _emit_forward_tiles(self, channels: Ranges, columns: Ranges) -> None:
        """Emit outputs of some channels at four pixels: those that are pooled, or side by side."""
        emit, stage, size = self.emit, self.stage, channels.size
        pixels = [(0, x) for x in range(columns.size)]
        if stage.pools:
            pixels = [(0, 0), (0, 1), (1, 0), (1, 1)]
        with (
            emit.loop("%blocks") as block,
            emit.loop(channels.count) as part,
            emit.loop(stage.outputs[1]) as row,
            emit.loop(columns.count) as tile,
        ):
            channel = emit.add(emit.mul(part, size), channels.start)
            column = emit.add(emit.mul(tile, columns.size), columns.start)
            biases = [self.broadcast_bias(channel, number) for number in range(size)]
            sums = emit.variables([bias for bias in biases for _ in pixels])
            step = 1 + stage.pools
            corner = emit.mul(row, step), emit.mul(column, step)
            source = self.pointer(self.inputs, block, 0, *corner, offset=self.inputs.corner)
            with emit.loop(stage.inner) as inner, sums.update() as values:
                here = emit.pointer(source, (inner, self.inputs.strides[1]))
                self._emit_taps(values, here, channel, inner, pixels)
            values = sums.load()
            for number in range(size):
                of_pixels = values[number * len(pixels) : (number + 1) * len(pixels)]
                self._emit_stores(of_pixels, block, emit.add(channel, number), row, column)

    def _emit_taps(
        self,
        sums: list[str],
        source: str,
        channel: Index,
        inner: Index,
        pixels: Sequence[tuple[int, int]],
    ) -> None:
        """Add the products of one input channel to `sums`, of some output channels and pixels."""
        emit, stage = self.emit, self.stage
        per_output = stage.inner * stage.taps
        weights = self.weight_pointer((channel, per_output), (inner, stage.taps))
        for tap in range(stage.taps):
            factors = [
                emit.broadcast(emit.load_number(weights, number * per_output + tap))
                for number in range(len(sums) // len(pixels))
            ]
            down, right = divmod(tap, stage.kernel)
            offsets = [self._offset(y + down, x + right) for y, x in pixels]
            loaded = (
                (n, emit.load(source, offset, reload=True)) for n, offset in enumerate(offsets)
            )
            emit.add_outer_product(sums, len(pixels), factors, loaded)

    def _offset(self, rows: int, columns: int) -> int:
        return rows * self.inputs.strides[2] + columns * self.inputs.strides[3]

    def _emit_stores(
        self, values: list[str], block: Index, channel: Index, row: Index, column: Index
    ) -> None:
        emit, stage = self.emit, self.stage
        if stage.pools:
            values = [self._emit_pooling(values, self._masks_at(block, channel, row, column))]
        for index, value in enumerate(values):
            value = emit.relu(value) if stage.rectifies else value
            goal = self.pointer(self.outputs, block, channel, row, column)
            emit.store(value, goal, index * self.outputs.strides[3])

    def _masks_at(self, block: Index, channel: Index, row: Index, column: Index) -> str:
        """A pointer to the four masks of a pooled pixel."""
        emit, (channels, height, width) = self.emit, self.stage.outputs
        area = height * width
        offsets = (block, channels * area), (channel, area), (row, width), column
        masks = emit.pointer("%memory", self.layout.masks[self.number])
        return emit.pointer(masks, *offsets, kind=f"[4 x i{self.lanes}]")

    def _emit_pooling(self, four: Sequence[str], masks: str) -> str:
        """Emit the maximum of four and code that stores in `masks` which one it was: the first of
        equals, or none if ReLU makes it 0. Return the maximum."""
        emit = self.emit
        pairs = emit.maximum(four[0], four[1]), emit.maximum(four[2], four[3])
        greatest = emit.maximum(*pairs)
        left = emit.op("fcmp ogt" if self.stage.rectifies else "fcmp ord", greatest, ZERO)
        for index, value in enumerate(four):
            mask = left
            if index < 3:
                is_greatest = emit.op("fcmp oeq", value, greatest)
                mask = emit.value(f"and {emit.mask} {left}, {is_greatest}")
                left = emit.value(f"xor {emit.mask} {left}, {mask}")
            bits = emit.value(f"bitcast {emit.mask} {mask} to i{self.lanes}")
            goal = emit.pointer(masks, index, kind=f"i{self.lanes}")
            emit.emit(f"store i{self.lanes} {bits}, ptr {goal}")
        return greatest

    # gradient of the weights

    def emit_weight_gradient(self) -> None:
        stage = self.stage
        lines = min(stage.kernel, max(1, self.layout.target.tile // 2 // stage.kernel))
        most = max(1, self.layout.target.tile // (lines * stage.kernel))
        for channels in split(stage.outer, most):
            with self.emit.loop(channels.count) as part:
                channel = self.emit.add(self.emit.mul(part, channels.size), channels.start)
                self._emit_weight_tile(channel, channels.size, lines)

    def _emit_weight_tile(self, channel: Index, size: int, lines: int) -> None:
        """Emit the gradients of some output channels' weights: a block of samples at a time, and as
        many rows as stay in the first-level cache. Sums over the samples are taken at the end."""
        emit, layout, stage = self.emit, self.layout, self.stage
        per_output, rows = stage.inner * stage.taps, layout.rows_at_once(stage, size)
        biases = layout.sums + size * per_output * self.lanes
        with emit.loop(size * (per_output + 1)) as index:
            emit.store(ZERO, "%memory", (index, self.lanes), layout.sums)
        with emit.loop("%blocks") as block, emit.loop(stage.sides[0] // rows) as chunk:
            with emit.loop(size) as number:
                bias = emit.pointer("%memory", (number, self.lanes), biases)
                self._emit_spread(block, emit.add(channel, number), number, chunk, rows, bias)
            with emit.loop(stage.inner) as inner:
                for part in split(stage.kernel, lines):
                    with emit.loop(part.count) as time:
                        line = emit.add(emit.mul(time, part.size), part.start)
                        position = block, channel, inner, line, chunk
                        self._emit_kernel_lines(*position, rows=rows, size=size, lines=part.size)
        goal = emit.pointer("%gradients", (channel, per_output), stage.weight)
        self.emit_lane_sums(layout.sums, size * per_output, goal)
        self.emit_lane_sums(biases, size, emit.pointer("%gradients", channel, stage.bias))

    def _emit_kernel_lines(
        self,
        block: Index,
        channel: Index,
        inner: Index,
        line: Index,
        chunk: Index,
        *,
        rows: int,
        size: int,
        lines: int,
    ) -> None:
        """Emit code that adds, over some rows, to the gradients of some lines of the kernel for one
        input channel and some output channels, which are in registers meanwhile."""
        emit, stage, lanes, unpooled = self.emit, self.stage, self.lanes, self.unpooled
        taps, per_output = lines * stage.kernel, stage.inner * stage.taps
        offsets = (inner, stage.taps * lanes), (line, stage.kernel * lanes), self.layout.sums
        goal = emit.pointer("%memory", *offsets)
        goal_offsets = [
            (number * per_output + tap) * lanes for number in range(size) for tap in range(taps)
        ]
        sums = emit.variables([emit.load(goal, offset) for offset in goal_offsets])
        abreast = 2 - stage.sides[1] % 2
        with (
            emit.loop(rows) as row,
            emit.loop(stage.sides[1], step=abreast) as column,
            sums.update() as values,
        ):
            y = emit.add(emit.mul(chunk, rows), row)
            below, corner = emit.add(y, line), self.inputs.corner
            source = self.pointer(self.inputs, block, inner, below, column, offset=corner)
            is_whole = bool(unpooled.strides[0])
            indices = (block, channel, y) if is_whole else (0, 0, row)
            gradient = self.pointer(unpooled, *indices, column)
            for x in range(abreast):
                stride, first = unpooled.strides[1], x * unpooled.strides[3]
                starts = range(first, first + size * stride, stride)
                factors = [emit.load(gradient, start) for start in starts]
                pixels = [divmod(tap, stage.kernel) for tap in range(taps)]
                shifts = [self._offset(down, right + x) for down, right in pixels]
                loaded = ((n, emit.load(source, shift)) for n, shift in enumerate(shifts))
                emit.add_outer_product(values, taps, factors, loaded)
        for offset, value in zip(goal_offsets, sums.load(), strict=True):
            emit.store(value, goal, offset)

    def _emit_spread(
        self, block: Index, channel: Index, number: Index, chunk: Index, rows: int, bias: str
    ) -> None:
        """Emit code that sends each pooled gradient of some rows to the pixel that won the maximum,
        and adds the gradients up for the bias. Without pooling, only add up."""
        emit, stage, unpooled = self.emit, self.stage, self.unpooled
        total = emit.variables([emit.load(bias)])
        rows //= 1 + stage.pools
        with (
            emit.loop(rows) as below,
            emit.loop(stage.outputs[2]) as column,
            total.update() as values,
        ):
            row = emit.add(emit.mul(chunk, rows), below)
            gradients = self.layout.gradients[self.number + 1]
            value = emit.load(self.pointer(gradients, block, channel, row, column))
            if stage.pools:
                is_whole = bool(unpooled.strides[0])
                start = (
                    (block, channel, emit.mul(row, 2))
                    if is_whole
                    else (0, number, emit.mul(below, 2))
                )
                goal = self.pointer(unpooled, *start, emit.mul(column, 2))
                value = self._emit_winner(value, self._masks_at(block, channel, row, column), goal)
            values[0] = emit.op("fadd", value, values[0])
        emit.store(*total.load(), bias)

    def _emit_winner(self, value: str, masks: str, goal: str) -> str:
        """Emit code that stores a pooled gradient at the pixel that won the maximum, and 0 at the
        other three; return the gradient where one of the four won, else 0."""
        emit, bits = self.emit, f"i{self.lanes}"
        anywhere = "0"
        for index in range(4):
            mask = emit.value(f"load {bits}, ptr {emit.pointer(masks, index, kind=bits)}")
            anywhere = emit.value(f"or {bits} {anywhere}, {mask}")
            lanes = emit.value(f"bitcast {bits} {mask} to {emit.mask}")
            offset = index // 2 * self.unpooled.strides[2] + index % 2 * self.unpooled.strides[3]
            emit.store(emit.select(lanes, value, ZERO), goal, offset)
        lanes = emit.value(f"bitcast {bits} {anywhere} to {emit.mask}")
        return emit.select(lanes, value, ZERO)

    # gradient of the inputs

    def emit_input_gradient(self) -> None:
        for begin, across in self._tiles(self.stage.inputs[2]):
            for channels in split(self.stage.inner, max(1, self.layout.target.tile // across)):
                self._emit_input_tile(channels, begin, across)

    def _tiles(self, width: int) -> Iterator[tuple[int, int]]:
        for part in split(width, ACROSS):
            for tile in range(part.count):
                yield part.start + tile * part.size, part.size

    def _emit_input_tile(self, channels: Ranges, begin: int, across: int) -> None:
        """Emit the gradients of some pixels of each row, of some channels at once, from all outputs
        that these pixels reach."""
        emit, stage, size = self.emit, self.stage, channels.size
        with (
            emit.loop("%blocks") as block,
            emit.loop(channels.count) as part,
            emit.loop(stage.inputs[1]) as row,
        ):
            channel = emit.add(emit.mul(part, size), channels.start)
            sums = emit.variables([ZERO] * (size * across))
            first = emit.add(row, stage.padding + 1 - stage.sides[0])
            start = emit.intrinsic("smax.i64", "i64", ("i64", str(first)), ("i64", "0"))
            last = emit.add(row, stage.padding + 1)
            stop = emit.intrinsic("smin.i64", "i64", ("i64", str(last)), ("i64", str(stage.kernel)))
            with (
                emit.when(emit.value(f"icmp slt i64 {start}, {stop}")),
                emit.loop(stage.outer) as outer,
                emit.loop(stop, start) as down,
                sums.update() as values,
            ):
                lines = (channel, stage.taps), (down, stage.kernel)
                weights = self.weight_pointer((outer, stage.inner * stage.taps), *lines)
                y = emit.add(row, emit.mul(down, -1))
                offset = stage.padding * self.unpooled.strides[2]
                source = self.pointer(self.unpooled, block, outer, y, offset=offset)
                self._emit_kernel_line(values, source, weights, begin, across)
            for index, value in enumerate(sums.load()):
                number, x = divmod(index, across)
                self.store_gradient(value, block, emit.add(channel, number), row, begin + x)

    def _emit_kernel_line(
        self, sums: list[str], source: str, weights: str, begin: int, across: int
    ) -> None:
        """Add the products of one line of the kernel with a row of the outputs' gradient to `sums`,
        whose names are replaced. What would be outside of the row is left out."""
        emit, stage = self.emit, self.stage
        for right in range(stage.kernel):
            columns = [begin + x + stage.padding - right for x in range(across)]
            inside = [x for x, column in enumerate(columns) if 0 <= column < stage.sides[1]]
            factors = [
                emit.broadcast(emit.load_number(weights, number * stage.taps + right))
                for number in range(len(sums) // across)
            ]
            loaded = (
                (x, emit.load(source, columns[x] * self.unpooled.strides[3], reload=True))
                for x in inside
            )
            emit.add_outer_product(sums, across, factors, loaded)
