"""Code of a convolution with samples in the lanes, so that layers of few channels fill vectors."""

from collections.abc import Sequence

from cohort.native.emitter import ZERO, Index, Ranges, split
from cohort.native.lanes_layers import ABREAST, LayerCode

Pixels = Sequence[tuple[int, int]]
FOUR: Pixels = [(0, 0), (0, 1), (1, 0), (1, 1)]  # that are pooled
ACROSS = 7  # pixels of a row whose gradients are computed together, at most


class ConvolutionCode(LayerCode):
    """Emits a direct convolution by weights (outer, inner, kernel row, kernel column): inner loops
    keep a tile of sums (output channel, pixel) in registers."""

    # forward

    def emit_forward(self) -> None:
        layer = self.layer
        for channels in split(layer.outer, self.layout.target.tile // ABREAST):
            for columns in split(layer.outputs[2], 1 if layer.pools else ABREAST):
                self._emit_forward_tiles(channels, columns)

    def _emit_forward_tiles(self, channels: Ranges, columns: Ranges) -> None:
        """Emit outputs of some channels at four pixels: those that are pooled, or side by side."""
        emit, layer, size = self.emit, self.layer, channels.size
        pixels = FOUR if layer.pools else [(0, x) for x in range(columns.size)]
        stops = "%blocks", channels, layer.outputs[1], columns
        with emit.loops(*stops) as (block, channel, row, column):
            biases = [self.broadcast_bias(channel, number) for number in range(size)]
            sums = emit.variables([bias for bias in biases for _ in pixels])
            step = 1 + layer.pools
            corner = emit.mul(row, step), emit.mul(column, step)
            source = self.pointer(self.inputs, block, 0, *corner, offset=self.inputs.corner)
            with emit.loop(layer.inner) as inner, sums.update() as values:
                here = emit.pointer(source, (inner, self.inputs.strides[1]))
                per_output = layer.inner * layer.taps
                weights = self.weight_pointer((channel, per_output), (inner, layer.taps))
                self._emit_taps(values, here, weights, pixels)
            values = sums.load()
            for number in range(size):
                of_pixels = values[number * len(pixels) : (number + 1) * len(pixels)]
                self._emit_stores(of_pixels, block, emit.add(channel, number), row, column)

    def _emit_taps(self, sums: list[str], source: str, weights: str, pixels: Pixels) -> None:
        """Add the products of one input channel to `sums`, of some output channels and pixels."""
        emit, layer = self.emit, self.layer
        per_output = layer.inner * layer.taps
        for tap in range(layer.taps):
            starts = range(tap, tap + len(sums) // len(pixels) * per_output, per_output)
            factors = [emit.broadcast(emit.load_number(weights, start)) for start in starts]
            down, right = divmod(tap, layer.kernel)
            offsets = [self._offset(y + down, x + right) for y, x in pixels]
            loaded = ((n, emit.load(source, at, reload=True)) for n, at in enumerate(offsets))
            emit.add_outer_product(sums, len(pixels), factors, loaded)

    def _offset(self, rows: int, columns: int) -> int:
        return rows * self.inputs.strides[2] + columns * self.inputs.strides[3]

    def _emit_stores(
        self, values: list[str], block: Index, channel: Index, row: Index, column: Index
    ) -> None:
        emit, layer = self.emit, self.layer
        if layer.pools:
            values = [self._emit_pooling(values, self._masks_at(block, channel, row, column))]
        for index, value in enumerate(values):
            value = emit.relu(value) if layer.rectifies else value
            goal = self.pointer(self.outputs, block, channel, row, column)
            emit.store(value, goal, index * self.outputs.strides[3])

    def _masks_at(self, block: Index, channel: Index, row: Index, column: Index) -> str:
        """A pointer to the four masks of a pooled pixel."""
        emit, (channels, height, width) = self.emit, self.layer.outputs
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
        undecided = emit.op("fcmp ogt" if self.layer.rectifies else "fcmp ord", greatest, ZERO)
        for index, value in enumerate(four):
            mask = undecided
            if index < 3:
                is_greatest = emit.op("fcmp oeq", value, greatest)
                mask = emit.value(f"and {emit.mask} {undecided}, {is_greatest}")
                undecided = emit.value(f"xor {emit.mask} {undecided}, {mask}")
            bits = emit.value(f"bitcast {emit.mask} {mask} to i{self.lanes}")
            goal = emit.pointer(masks, index, kind=f"i{self.lanes}")
            emit.emit(f"store i{self.lanes} {bits}, ptr {goal}")
        return greatest

    # gradient of the weights

    def emit_weight_gradient(self) -> None:
        layer, tile = self.layer, self.layout.target.tile
        lines = min(layer.kernel, max(1, tile // 2 // layer.kernel))
        for channels in split(layer.outer, max(1, tile // (lines * layer.kernel))):
            with self.emit.parts(channels) as channel:
                self._emit_weight_tile(channel, channels.size, lines)

    def _emit_weight_tile(self, channel: Index, size: int, lines: int) -> None:
        """Emit the gradients of some output channels' weights: a block of samples at a time, and as
        many rows as stay in the first-level cache. Sums over the samples are taken at the end."""
        emit, layout, layer = self.emit, self.layout, self.layer
        per_output, rows = layer.inner * layer.taps, layout.rows_at_once(layer, size)
        biases = layout.sums + size * per_output * self.lanes
        with emit.loop(size * (per_output + 1)) as index:
            emit.store(ZERO, "%memory", (index, self.lanes), layout.sums)
        with emit.loops("%blocks", layer.sides[0] // rows) as (block, chunk):
            with emit.loop(size) as number:
                bias = emit.pointer("%memory", (number, self.lanes), biases)
                self._emit_spread(block, emit.add(channel, number), number, chunk, rows, bias)
            with emit.loop(layer.inner) as inner:
                for part in split(layer.kernel, lines):
                    with emit.parts(part) as line:
                        position = block, channel, inner, line, chunk
                        self._emit_kernel_lines(position, rows, size, part.size)
        goal = emit.pointer("%gradients", (channel, per_output), layer.weight)
        self.emit_lane_sums(layout.sums, size * per_output, goal)
        self.emit_lane_sums(biases, size, emit.pointer("%gradients", channel, layer.bias))

    def _emit_kernel_lines(self, index: Sequence[Index], rows: int, size: int, lines: int) -> None:
        """Emit code that adds, over some rows, to the gradients of some lines of the kernel for one
        input channel and some output channels, which are in registers meanwhile. `index` is the
        block of samples, the output and the input channel, the line and the chunk of rows."""
        block, channel, inner, line, chunk = index
        emit, layer, lanes, unpooled = self.emit, self.layer, self.lanes, self.unpooled
        taps, per_output = lines * layer.kernel, layer.inner * layer.taps
        offsets = (inner, layer.taps * lanes), (line, layer.kernel * lanes), self.layout.sums
        goal = emit.pointer("%memory", *offsets)
        begins = [number * per_output for number in range(size)]
        goal_offsets = [(begin + tap) * lanes for begin in begins for tap in range(taps)]
        sums = emit.variables([emit.load(goal, offset) for offset in goal_offsets])
        abreast = 2 - layer.sides[1] % 2
        columns = emit.loop(layer.sides[1], step=abreast)
        with emit.loop(rows) as row, columns as column, sums.update() as values:
            y = emit.add(emit.mul(chunk, rows), row)
            below, corner = emit.add(y, line), self.inputs.corner
            source = self.pointer(self.inputs, block, inner, below, column, offset=corner)
            indices = (block, channel, y) if unpooled.is_whole else (0, 0, row)
            gradient = self.pointer(unpooled, *indices, column)
            for x in range(abreast):
                stride, first = unpooled.strides[1], x * unpooled.strides[3]
                starts = range(first, first + size * stride, stride)
                factors = [emit.load(gradient, start) for start in starts]
                pixels = [divmod(tap, layer.kernel) for tap in range(taps)]
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
        emit, layer, unpooled = self.emit, self.layer, self.unpooled
        total = emit.variables([emit.load(bias)])
        rows //= 1 + layer.pools
        with emit.loops(rows, layer.outputs[2]) as (below, column), total.update() as values:
            row = emit.add(emit.mul(chunk, rows), below)
            gradients = self.layout.gradients[self.number + 1]
            value = emit.load(self.pointer(gradients, block, channel, row, column))
            if layer.pools:
                whole = unpooled.is_whole
                y = emit.mul(row if whole else below, 2)
                start = (block, channel, y) if whole else (0, number, y)
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
        for part in split(self.layer.inputs[2], ACROSS):
            max_channels = max(1, self.layout.target.tile // part.size)
            for begin in part.starts:
                for channels in split(self.layer.inner, max_channels):
                    self._emit_input_tile(channels, begin, part.size)

    def _emit_input_tile(self, channels: Ranges, begin: int, across: int) -> None:
        """Emit the gradients of pixels and channels of each row from all outputs they reach."""
        emit, layer, size = self.emit, self.layer, channels.size
        with emit.loops("%blocks", channels, layer.inputs[1]) as (block, channel, row):
            sums = emit.variables([ZERO] * (size * across))
            first = emit.add(row, layer.padding + 1 - layer.sides[0])
            start = emit.intrinsic("smax.i64", "i64", ("i64", str(first)), ("i64", "0"))
            last = emit.add(row, layer.padding + 1)
            stop = emit.intrinsic("smin.i64", "i64", ("i64", str(last)), ("i64", str(layer.kernel)))
            with (
                emit.when(emit.value(f"icmp slt i64 {start}, {stop}")),
                emit.loop(layer.outer) as outer,
                emit.loop(stop, start) as down,
                sums.update() as values,
            ):
                lines = (channel, layer.taps), (down, layer.kernel)
                weights = self.weight_pointer((outer, layer.inner * layer.taps), *lines)
                y = emit.add(row, emit.mul(down, -1))
                offset = layer.padding * self.unpooled.strides[2]
                source = self.pointer(self.unpooled, block, outer, y, offset=offset)
                self._emit_kernel_line(values, source, weights, begin, across)
            for index, value in enumerate(sums.load()):
                number, x = divmod(index, across)
                self.store_gradient(value, block, emit.add(channel, number), row, begin + x)

    def _emit_kernel_line(
        self, sums: list[str], source: str, weights: str, begin: int, across: int
    ) -> None:
        """Add the products of one line of the kernel with a row of the outputs' gradient to `sums`.
        What would be outside of the row is left out."""
        emit, layer = self.emit, self.layer
        for right in range(layer.kernel):
            columns = [begin + x + layer.padding - right for x in range(across)]
            inside = [x for x, column in enumerate(columns) if 0 <= column < layer.sides[1]]
            starts = range(right, right + len(sums) // across * layer.taps, layer.taps)
            factors = [emit.broadcast(emit.load_number(weights, start)) for start in starts]
            offsets = {x: columns[x] * self.unpooled.strides[3] for x in inside}
            loaded = ((x, emit.load(source, offsets[x], reload=True)) for x in inside)
            emit.add_outer_product(sums, across, factors, loaded)
