"""Code of a convolution of many channels in the frequency domain."""

from __future__ import annotations

from functools import partial

from cohort.native.batched_layout import Layout, chunks
from cohort.native.convolution import ConvolutionCode
from cohort.native.emitter import ZERO, Emitter, Index
from cohort.native.products import Products
from cohort.native.spectra import (
    gradient_slots,
    input_gradient_of,
    input_slots,
    output_of,
    weight_gradient_of,
    weight_slots,
)
from cohort.native.spectral_transforms import Columns, Rows, Transforms
from cohort.native.vectors import transposed


class SpectralConvolutionCode(ConvolutionCode):
    """A convolution as products of spectra: transforms, then for each slot a matrix product over
    the channels.

    Columns of the row transform are worked on one after another, all the way to the result, so that
    what is in between stays in the second-level cache.
    """

    def __init__(self, emit: Emitter, layout: Layout, number: int):
        super().__init__(emit, layout, number)
        arrays = layout.spectra[number]
        assert arrays is not None
        self.arrays, self.products = arrays, Products(emit, layout)
        self.transforms = Transforms(emit, layout, arrays)

    # passes

    def prepare(self) -> None:
        """Emit the transform of the weights along the rows of the kernel."""
        emit, lanes, kernel = self.emit, self.lanes, self.stage.kernel
        with emit.loop(self.arrays.pairs // lanes) as group:
            pixels = self._load_taps(self.weight((group, lanes * self.stage.taps)))
            for y in range(kernel):
                line = pixels[y * kernel : (y + 1) * kernel]
                spectrum = self.transforms.along_rows.real(
                    dict(zip(self._column_indices, line, strict=True))
                )
                for number, value in enumerate(self.transforms.ordered(spectrum)):
                    emit.store(value, self._kernel_row(number, y, group))

    def forward(self) -> None:
        arrays, width = self.arrays, self.stage.inputs[2]
        source = partial(self.at, self.inputs)
        self.transforms.transform_rows(self._input_rows, width, source)
        results = Rows(arrays.output_rows, arrays.output_row, self.stage.outer, self.stage.sides[0])
        for columns in self.transforms.columns():
            with self.emit.loop(columns.number) as column:
                self._transform_inputs(columns, column)
                self._transform_weights(columns, column)
                with self.emit.loop(columns.slots) as slot:
                    self._multiply(slot)
                self.transforms.invert_columns(columns, column, self._outputs, output_of, results)
        self._finish_outputs(results)

    def weight_gradient(self) -> None:
        """The inputs' gradient too, but for the last transform: both need the spectrum of the
        outputs' gradient, of which only a column is there at a time."""
        arrays, transforms = self.arrays, self.transforms
        self._spread_all()
        rows = Rows(arrays.output_rows, arrays.output_row, self.stage.outer, self.stage.sides[0])
        source = partial(self.at, self.unpooled)
        transforms.transform_rows(rows, self.stage.sides[1], source)
        for columns in transforms.columns():
            with self.emit.loop(columns.number) as column:
                transforms.transform_columns(columns, column, rows, gradient_slots, self._outputs)
                self._transform_inputs(columns, column)
                self._transform_weights(columns, column)
                with self.emit.loop(columns.slots) as slot:
                    self._multiply_gradients(slot)
                self._invert_weights(columns, column)
                arguments = columns, column, self._inputs, input_gradient_of, self._input_rows
                transforms.invert_columns(*arguments)
        self._finish_weights()

    def input_gradient(self) -> None:
        emit, rows, width = self.emit, self._input_rows, self.stage.inputs[2]
        with (
            emit.loop(rows.channels) as channel,
            emit.loop("%blocks") as block,
            emit.loop(rows.height) as row,
        ):
            for x, value in self.transforms.inverse_row(rows, channel, row, block, width).items():
                self.store_input_gradient(value, block, channel, row, x)

    # arrays

    def _slot(self, array: int, stride: int, slot: Index, channel: Index, block: Index) -> str:
        offsets = (slot, stride), (channel, self.layout.width), (block, self.lanes)
        return self.emit.pointer("%memory", *offsets, array)

    @property
    def _input_rows(self) -> Rows:
        """The row coefficients of the inputs, then of their gradient."""
        arrays, (inner, height, _) = self.arrays, self.stage.inputs
        return Rows(arrays.input_rows, arrays.input_row, inner, height)

    def _inputs(self, slot: Index, channel: Index, block: Index) -> str:
        """The slots of a column of the inputs' spectrum, then of its gradient."""
        return self._slot(self.arrays.inputs, self.arrays.input_slot, slot, channel, block)

    def _outputs(self, slot: Index, channel: Index, block: Index) -> str:
        """The slots of a column of the outputs' spectrum, or of its gradient."""
        return self._slot(self.arrays.outputs, self.arrays.output_slot, slot, channel, block)

    def _weights(self, slot: Index) -> str:
        """A slot of a column of the weights' spectrum, then of its gradient."""
        return self.emit.pointer("%memory", (slot, self.arrays.weight_slot), self.arrays.weights)

    def _kernel_row(self, number: Index, y: int, group: Index) -> str:
        """A row coefficient of a line of the kernel, then of its gradient, for some pairs of
        channels."""
        offsets = (number, self.arrays.weight_row), (group, self.lanes)
        start = self.arrays.weight_rows + y * self.arrays.pairs
        return self.emit.pointer("%memory", *offsets, start)

    # products

    def _multiply(self, slot: Index) -> None:
        emit, (inner, outer) = self.emit, (self.stage.inner, self.stage.outer)
        self.products.multiply(
            outer,
            inner,
            lambda block, channel: self._inputs(slot, channel, block),
            self._weights(slot),
            (inner, 1),
            lambda value, block, channel: emit.store(value, self._outputs(slot, channel, block)),
        )

    def _multiply_gradients(self, slot: Index) -> None:
        """Multiply a slot's gradients; those of inputs and weights overwrite these, which are not
        needed any more."""
        emit, (inner, outer) = self.emit, (self.stage.inner, self.stage.outer)
        self.products.transpose(
            inner, lambda block, channel: self._inputs(slot, channel, block), "%blocks"
        )
        self.products.multiply(
            inner,
            outer,
            lambda block, channel: self._outputs(slot, channel, block),
            self._weights(slot),
            (1, inner),
            lambda value, block, channel: emit.store(value, self._inputs(slot, channel, block)),
        )
        self.products.multiply_transposed(
            outer,
            inner,
            lambda block, channel: self._outputs(slot, channel, block),
            emit.mul("%blocks", self.lanes),
            self._weights(slot),
        )

    def _transform_inputs(self, columns: Columns, column: Index) -> None:
        """Transform a column of the inputs' row coefficients into slots: once in either pass, which
        is less than to keep them."""
        arguments = columns, column, self._input_rows, input_slots, self._inputs
        self.transforms.transform_columns(*arguments)

    # beginnings and ends

    def _finish_outputs(self, rows: Rows) -> None:
        """Invert the rows, add the bias, pool and rectify."""
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
                self._store_outputs(values, block, channel, row, x)

    def _spread_all(self) -> None:
        """Emit code that sends each pooled gradient to the pixel that won the maximum, and adds the
        gradients up for the biases."""
        emit, stage, biases = self.emit, self.stage, self.layout.sums
        with emit.loop(stage.outer) as channel:
            bias = emit.pointer("%memory", (channel, self.lanes), biases)
            emit.store(ZERO, bias)
            with emit.loop("%blocks") as block:
                self._spread_gradient(block, channel, 0, 0, stage.sides[0], bias)
        self.sum_lanes(biases, stage.outer, emit.pointer("%gradients", stage.bias))

    def _transform_weights(self, columns: Columns, column: Index) -> None:
        """Transform a column of the weights' row coefficients into slots."""
        emit, arrays = self.emit, self.arrays
        first = emit.add(emit.mul(column, columns.rows), columns.row)
        with emit.loop(arrays.pairs // self.lanes) as group:
            values = {}
            for y, index in enumerate(self._row_indices):
                numbers = [emit.add(first, part) for part in range(columns.rows)]
                rows = [self._kernel_row(n, y, group) for n in numbers]
                values[index] = tuple(map(emit.load, rows))
            for slot, value in enumerate(self.transforms.column_slots(values, weight_slots)):
                emit.store(value, self._weights(slot), (group, self.lanes))

    def _invert_weights(self, columns: Columns, column: Index) -> None:
        """Invert a column of slots of the weights' gradient into row coefficients."""
        emit, arrays = self.emit, self.arrays
        first = emit.add(emit.mul(column, columns.rows), columns.row)
        with emit.loop(arrays.pairs // self.lanes) as group:
            slots = [
                emit.load(self._weights(slot), (group, self.lanes)) for slot in range(columns.slots)
            ]
            arguments = slots, columns, weight_gradient_of, self._row_indices
            values = self.transforms.inverted_column(*arguments)
            for y, index in enumerate(self._row_indices):
                for part, value in enumerate(values[index]):
                    number = emit.add(first, part)
                    emit.store(value, self._kernel_row(number, y, group))

    def _finish_weights(self) -> None:
        """Emit the inverse row transforms of the weights' gradient."""
        emit, lanes, taps = self.emit, self.lanes, self.stage.taps
        for part in chunks(self.stage.inner * self.stage.outer, lanes):
            with emit.loop(part.count) as number:
                group = emit.add(number, part.start // lanes)
                pixels: list[str] = []
                for y in range(self.stage.kernel):
                    pixels += self._inverted_line(y, group)
                goal = emit.pointer("%gradients", (group, lanes * taps), self.stage.weight)
                for first in range(0, taps, lanes):
                    rows = pixels[first : first + lanes]
                    used, rows = len(rows), rows + [ZERO] * (lanes - len(rows))
                    for pair, value in enumerate(transposed(emit, rows)[: part.size]):
                        emit.store_first(value, used, goal, pair * taps + first)

    def _inverted_line(self, y: int, group: Index) -> list[str]:
        """A line of the gradient of some pairs of channels."""
        transforms = self.transforms
        spectrum = transforms.spectrum(lambda number: self._kernel_row(number, y, group))
        pixels = transforms.along_rows.real_inverse(
            spectrum, self._column_indices, transforms.scale
        )
        return [pixels[index] for index in self._column_indices]

    def _load_taps(self, source: str) -> list[str]:
        """The weights of as many pairs of channels as a vector has lanes, one vector per tap."""
        emit, lanes, taps = self.emit, self.lanes, self.stage.taps
        vectors: list[str] = []
        for first in range(0, taps, lanes):
            rows = [emit.load_anywhere(source, pair * taps + first) for pair in range(lanes)]
            vectors += transposed(emit, rows)
        return vectors[:taps]

    @property
    def _row_indices(self) -> list[int]:
        """The indices of the kernel's lines in its periodic image. It is reflected, because layers
        compute cross-correlations, and shifted by the padding."""
        return self._indices(self.arrays.slots.height)

    @property
    def _column_indices(self) -> list[int]:
        """Column indices of the kernel's taps in its periodic image."""
        return self._indices(self.arrays.slots.width)

    def _indices(self, period: int) -> list[int]:
        return [(self.stage.padding - tap) % period for tap in range(self.stage.kernel)]
