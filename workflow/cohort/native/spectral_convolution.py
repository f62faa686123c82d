"""Code of a convolution of many channels in the frequency domain."""

from __future__ import annotations

from functools import partial

from cohort.native.batched_layout import BatchLayout, chunks
from cohort.native.convolution import ConvolutionCode
from cohort.native.emitter import ZERO, Emitter, Index
from cohort.native.products import Products
from cohort.native.spectra import (
    gradient_slots,
    input_gradient_frequency,
    input_slots,
    output_frequency,
    weight_gradient_frequency,
    weight_slots,
)
from cohort.native.spectral_transforms import Columns, RowCoefficients, Transforms
from cohort.native.vectors import transposed


class SpectralConvolutionCode(ConvolutionCode):
    """Emits a convolution as products of spectra: transforms, then for each slot a matrix product
    over the channels.

    Columns of the row transform are worked on one after another, all the way to the result, so that
    what is in between stays in the second-level cache.
    """

    def __init__(self, emit: Emitter, layout: BatchLayout, number: int):
        super().__init__(emit, layout, number)
        arrays = layout.spectra[number]
        assert arrays is not None
        self.arrays, self.products = arrays, Products(emit, layout)
        self.transforms = Transforms(emit, layout, arrays)

    # passes

    def emit_preparation(self) -> None:
        """Emit the transform of the weights along the rows of the kernel."""
        emit, lanes, kernel = self.emit, self.lanes, self.stage.kernel
        with emit.loop(self.arrays.pairs // lanes) as group:
            pixels = self._load_taps(self.weight_pointer((group, lanes * self.stage.taps)))
            for y in range(kernel):
                line = pixels[y * kernel : (y + 1) * kernel]
                spectrum = self.transforms.along_rows.real_dft(
                    dict(zip(self._column_indices, line, strict=True))
                )
                for number, value in enumerate(self.transforms.row_coefficients(spectrum)):
                    emit.store(value, self._kernel_at(number, y, group))

    def emit_forward(self) -> None:
        arrays, width = self.arrays, self.stage.inputs[2]
        source = partial(self.pointer, self.inputs)
        self.transforms.transform_rows(self._input_rows, width, source)
        results = RowCoefficients(
            arrays.output_rows, arrays.output_row, self.stage.outer, self.stage.sides[0]
        )
        for columns in self.transforms.column_groups():
            with self.emit.loop(columns.number) as column:
                self._emit_input_transform(columns, column)
                self._emit_weight_transform(columns, column)
                with self.emit.loop(columns.slots) as slot:
                    self._emit_products(slot)
                self.transforms.invert_columns(
                    columns, column, self._output_at, output_frequency, results
                )
        self._emit_outputs(results)

    def emit_weight_gradient(self) -> None:
        """Emit the gradient of the weights, and that of the inputs but for the last transform: both
        need the spectrum of the outputs' gradient, of which only a column is there at a time."""
        arrays, transforms = self.arrays, self.transforms
        self._emit_gradient_spread()
        rows = RowCoefficients(
            arrays.output_rows, arrays.output_row, self.stage.outer, self.stage.sides[0]
        )
        source = partial(self.pointer, self.unpooled)
        transforms.transform_rows(rows, self.stage.sides[1], source)
        for columns in transforms.column_groups():
            with self.emit.loop(columns.number) as column:
                transforms.transform_columns(columns, column, rows, gradient_slots, self._output_at)
                self._emit_input_transform(columns, column)
                self._emit_weight_transform(columns, column)
                with self.emit.loop(columns.slots) as slot:
                    self._emit_gradient_products(slot)
                self._emit_weight_inverse(columns, column)
                arguments = (
                    columns,
                    column,
                    self._input_at,
                    input_gradient_frequency,
                    self._input_rows,
                )
                transforms.invert_columns(*arguments)
        self._emit_kernel_gradient()

    def emit_input_gradient(self) -> None:
        emit, rows, width = self.emit, self._input_rows, self.stage.inputs[2]
        with (
            emit.loop(rows.channels) as channel,
            emit.loop("%blocks") as block,
            emit.loop(rows.height) as row,
        ):
            for x, value in self.transforms.inverse_row(rows, channel, row, block, width).items():
                self.store_gradient(value, block, channel, row, x)

    # arrays

    def _slot_at(self, array: int, stride: int, slot: Index, channel: Index, block: Index) -> str:
        offsets = (slot, stride), (channel, self.layout.width), (block, self.lanes)
        return self.emit.pointer("%memory", *offsets, array)

    @property
    def _input_rows(self) -> RowCoefficients:
        """The array of row coefficients of the inputs, then of their gradient."""
        arrays, (inner, height, _) = self.arrays, self.stage.inputs
        return RowCoefficients(arrays.input_rows, arrays.input_row, inner, height)

    def _input_at(self, slot: Index, channel: Index, block: Index) -> str:
        """A pointer to a slot of a column of the inputs' spectrum, or of its gradient."""
        return self._slot_at(self.arrays.inputs, self.arrays.input_slot, slot, channel, block)

    def _output_at(self, slot: Index, channel: Index, block: Index) -> str:
        """A pointer to a slot of a column of the outputs' spectrum, or of its gradient."""
        return self._slot_at(self.arrays.outputs, self.arrays.output_slot, slot, channel, block)

    def _weight_at(self, slot: Index) -> str:
        """A pointer to a slot of a column of the weights' spectrum, or of its gradient."""
        return self.emit.pointer("%memory", (slot, self.arrays.weight_slot), self.arrays.weights)

    def _kernel_at(self, number: Index, y: int, group: Index) -> str:
        """A pointer to a row coefficient of a kernel's line, or its gradient, for channel pairs."""
        offsets = (number, self.arrays.weight_row), (group, self.lanes)
        start = self.arrays.weight_rows + y * self.arrays.pairs
        return self.emit.pointer("%memory", *offsets, start)

    # products

    def _emit_products(self, slot: Index) -> None:
        emit, (inner, outer) = self.emit, (self.stage.inner, self.stage.outer)
        self.products.emit_product(
            outer,
            inner,
            lambda block, channel: self._input_at(slot, channel, block),
            self._weight_at(slot),
            (inner, 1),
            lambda value, block, channel: emit.store(value, self._output_at(slot, channel, block)),
        )

    def _emit_gradient_products(self, slot: Index) -> None:
        """Emit the products of a slot that give the gradients of inputs and weights, which
        overwrite the slot's inputs and weights."""
        emit, (inner, outer) = self.emit, (self.stage.inner, self.stage.outer)
        self.products.emit_transpose(
            inner, lambda block, channel: self._input_at(slot, channel, block), "%blocks"
        )
        self.products.emit_product(
            inner,
            outer,
            lambda block, channel: self._output_at(slot, channel, block),
            self._weight_at(slot),
            (1, inner),
            lambda value, block, channel: emit.store(value, self._input_at(slot, channel, block)),
        )
        self.products.emit_transposed_product(
            outer,
            inner,
            lambda block, channel: self._output_at(slot, channel, block),
            emit.mul("%blocks", self.lanes),
            self._weight_at(slot),
        )

    def _emit_input_transform(self, columns: Columns, column: Index) -> None:
        """Emit the transform of a column of the inputs' row coefficients into slots: once in either
        pass, which is less than to keep them."""
        arguments = columns, column, self._input_rows, input_slots, self._input_at
        self.transforms.transform_columns(*arguments)

    # beginnings and ends

    def _emit_outputs(self, rows: RowCoefficients) -> None:
        """Emit inverse row transforms, then bias, pooling and ReLU, and store the outputs."""
        emit, stage, step = self.emit, self.stage, 1 + self.stage.pools
        with (
            emit.loop(stage.outer) as channel,
            emit.loop("%blocks") as block,
            emit.loop(stage.outputs[1]) as row,
        ):
            bias, lines = self.broadcast_bias(channel), []
            for below in range(step):
                y = emit.add(emit.mul(row, step), below)
                pixels = self.transforms.inverse_row(rows, channel, y, block, stage.sides[1])
                lines.append([emit.op("fadd", pixels[x], bias) for x in range(stage.sides[1])])
            for x in range(stage.outputs[2]):
                values = [line[x * step + right] for line in lines for right in range(step)]
                self._emit_stores(values, block, channel, row, x)

    def _emit_gradient_spread(self) -> None:
        """Emit code that sends each pooled gradient to the pixel that won the maximum, and adds the
        gradients up for the biases."""
        emit, stage, biases = self.emit, self.stage, self.layout.sums
        with emit.loop(stage.outer) as channel:
            bias = emit.pointer("%memory", (channel, self.lanes), biases)
            emit.store(ZERO, bias)
            with emit.loop("%blocks") as block:
                self._emit_spread(block, channel, 0, 0, stage.sides[0], bias)
        self.emit_lane_sums(biases, stage.outer, emit.pointer("%gradients", stage.bias))

    def _emit_weight_transform(self, columns: Columns, column: Index) -> None:
        """Emit the transform of a column of the weights' row coefficients into slots."""
        emit, arrays = self.emit, self.arrays
        first = emit.add(emit.mul(column, columns.rows), columns.row)
        with emit.loop(arrays.pairs // self.lanes) as group:
            values = {}
            for y, index in enumerate(self._row_indices):
                numbers = [emit.add(first, part) for part in range(columns.rows)]
                rows = [self._kernel_at(n, y, group) for n in numbers]
                values[index] = tuple(map(emit.load, rows))
            for slot, value in enumerate(self.transforms.column_slots(values, weight_slots)):
                emit.store(value, self._weight_at(slot), (group, self.lanes))

    def _emit_weight_inverse(self, columns: Columns, column: Index) -> None:
        """Emit the inverse transform of a column of slots of the weights' gradient."""
        emit, arrays = self.emit, self.arrays
        first = emit.add(emit.mul(column, columns.rows), columns.row)
        with emit.loop(arrays.pairs // self.lanes) as group:
            slots = [
                emit.load(self._weight_at(slot), (group, self.lanes))
                for slot in range(columns.slots)
            ]
            arguments = slots, columns, weight_gradient_frequency, self._row_indices
            values = self.transforms.column_values(*arguments)
            for y, index in enumerate(self._row_indices):
                for part, value in enumerate(values[index]):
                    number = emit.add(first, part)
                    emit.store(value, self._kernel_at(number, y, group))

    def _emit_kernel_gradient(self) -> None:
        """Emit the inverse row transforms of the weights' gradient."""
        emit, lanes, taps = self.emit, self.lanes, self.stage.taps
        for part in chunks(self.stage.inner * self.stage.outer, lanes):
            with emit.loop(part.count) as number:
                group = emit.add(number, part.start // lanes)
                pixels: list[str] = []
                for y in range(self.stage.kernel):
                    pixels += self._kernel_line(y, group)
                goal = emit.pointer("%gradients", (group, lanes * taps), self.stage.weight)
                for first in range(0, taps, lanes):
                    rows = pixels[first : first + lanes]
                    used, rows = len(rows), rows + [ZERO] * (lanes - len(rows))
                    for pair, value in enumerate(transposed(emit, rows)[: part.size]):
                        emit.store_first(value, used, goal, pair * taps + first)

    def _kernel_line(self, y: int, group: Index) -> list[str]:
        """Emit a line of the kernel's gradient for some pairs of channels, one vector per tap."""
        transforms = self.transforms
        spectrum = transforms.load_spectrum(lambda number: self._kernel_at(number, y, group))
        pixels = transforms.along_rows.inverse_real_dft(
            spectrum, self._column_indices, transforms.scale
        )
        return [pixels[index] for index in self._column_indices]

    def _load_taps(self, source: str) -> list[str]:
        """Emit loads of the weights of a vector of channel pairs, one vector per tap."""
        emit, lanes, taps = self.emit, self.lanes, self.stage.taps
        vectors: list[str] = []
        for first in range(0, taps, lanes):
            rows = [emit.load_anywhere(source, pair * taps + first) for pair in range(lanes)]
            vectors += transposed(emit, rows)
        return vectors[:taps]

    @property
    def _row_indices(self) -> list[int]:
        """The indices of the kernel's lines in its periodic image, which is reflected, because
        layers compute cross-correlations, and shifted by the padding."""
        return self._indices(self.arrays.slots.height)

    @property
    def _column_indices(self) -> list[int]:
        """Column indices of the kernel's taps in its periodic image."""
        return self._indices(self.arrays.slots.width)

    def _indices(self, period: int) -> list[int]:
        return [(self.stage.padding - tap) % period for tap in range(self.stage.kernel)]
