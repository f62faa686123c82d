"""Code of a convolution of many channels in the frequency domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from cohort.native.emitter import ZERO, Emitter, Index, chunks, transposed
from cohort.native.lanes_convolution import ConvolutionCode
from cohort.native.lanes_layers import LanesLayout, Product
from cohort.native.spectra import (
    Complex,
    Fourier,
    SpectralArrays,
    gradient_slots,
    input_gradient_frequency,
    input_slots,
    output_frequency,
    weight_gradient_frequency,
    weight_slots,
)

Slot = Callable[[Index, Index, Index], str]
"""A pointer, by slot, channel and block of samples."""
Pixel = Callable[[Index, Index, Index, Index], str]
"""A pointer, by block of samples, channel, row and column."""
ToSlots = Callable[[Emitter, tuple[str, ...]], list[str]]
FromSlots = Callable[[Emitter, list[str]], Complex]


class RowCoefficients(NamedTuple):
    """Where the coefficients of the Fourier transform along rows lie: the offset of their array,
    the distance between two coefficients, and the numbers of channels and rows."""

    array: int
    stride: int
    channels: int
    height: int


class Columns(NamedTuple):
    """The real or the complex columns of the row transform.

    `number` is how many there are, `row` and `slot` are the indices of the first row coefficient
    and slot, `rows` and `slots` how many of them each column has.
    """

    is_real: bool
    number: int
    row: int
    slot: int
    rows: int
    slots: int


class Transforms:
    """Emits Fourier transforms along rows and columns. Row coefficients are real columns first,
    then the real and imaginary parts of the complex ones."""

    def __init__(self, emit: Emitter, layout: LanesLayout, arrays: SpectralArrays):
        self.emit, self.layout, self.slots = emit, layout, arrays.slots
        self.along_rows = Fourier(emit, self.slots.width)
        self.along_columns = Fourier(emit, self.slots.height)
        self.scale = 1 / (self.slots.height * self.slots.width)

    def column_groups(self) -> Iterator[Columns]:
        """Yield the real columns of the row transform, then the complex ones if there are any."""
        slots, real = self.slots, self.slots.real_columns
        yield Columns(True, real, 0, 0, 1, slots.per_real_column)
        if slots.complex_columns:
            start = real * slots.per_real_column
            yield Columns(False, slots.complex_columns, real, start, 2, slots.per_complex_column)

    def coefficient_pointer(
        self, rows: RowCoefficients, coefficient: Index, channel: Index, y: Index, block: Index
    ) -> str:
        """A pointer to a coefficient of the row transform."""
        width = self.layout.width
        offsets = (channel, rows.height * width), (y, width), (block, self.layout.lanes)
        return self.emit.pointer("%memory", (coefficient, rows.stride), *offsets, rows.array)

    def transform_rows(self, rows: RowCoefficients, width: int, source: Pixel) -> None:
        """Emit the Fourier transform of each row of some maps into `rows`."""
        emit = self.emit
        with emit.loops(rows.channels, "%blocks", rows.height) as (channel, block, y):
            pixels = {x: emit.load(source(block, channel, y, x)) for x in range(width)}
            spectrum = self.along_rows.real_dft(pixels)
            for number, value in enumerate(self.row_coefficients(spectrum)):
                emit.store(value, self.coefficient_pointer(rows, number, channel, y, block))

    def inverse_row(
        self, rows: RowCoefficients, channel: Index, y: Index, block: Index, width: int
    ) -> dict[int, str]:
        """Emit the inverse transform of a row; return the values of its pixels."""
        spectrum = self.load_spectrum(
            lambda number: self.coefficient_pointer(rows, number, channel, y, block)
        )
        return self.along_rows.inverse_real_dft(spectrum, range(width), self.scale)

    def row_coefficients(self, spectrum: Sequence[tuple[str, ...]]) -> list[str]:
        """The row coefficients of a spectrum in the order in which they are stored: the real ones,
        then the real and imaginary part of each complex one."""
        return [part for parts in sorted(spectrum, key=len) for part in parts]

    def load_spectrum(self, pointer_to: Callable[[int], str]) -> list[tuple[str, ...]]:
        """Emit loads of a row's spectrum; `pointer_to` gives the pointer to a row coefficient."""
        spectrum = []
        for frequency in range(self.along_rows.half + 1):
            numbers = [min(frequency, 1)]
            if not self.along_rows.is_real(frequency):
                first = self.slots.real_columns + 2 * (frequency - 1)
                numbers = [first, first + 1]
            spectrum.append(tuple(self.emit.load(pointer_to(number)) for number in numbers))
        return spectrum

    def transform_columns(
        self, columns: Columns, column: Index, rows: RowCoefficients, to_slots: ToSlots, goal: Slot
    ) -> None:
        """Emit the transform of a column of the row coefficients of every channel into slots."""
        emit = self.emit
        first = emit.add(emit.mul(column, columns.rows), columns.row)
        with emit.loops(rows.channels, "%blocks") as (channel, block):
            values = {}
            for y in range(rows.height):
                numbers = [emit.add(first, part) for part in range(columns.rows)]
                pointers = [
                    self.coefficient_pointer(rows, number, channel, y, block) for number in numbers
                ]
                values[y] = tuple(map(emit.load, pointers))
            for slot, value in enumerate(self.column_slots(values, to_slots)):
                emit.store(value, goal(slot, channel, block))

    def column_slots(self, values: Mapping[int, tuple[str, ...]], to_slots: ToSlots) -> list[str]:
        """Emit the slots of a column from its values by row, which are all real or all complex."""
        (count,) = {len(value) for value in values.values()}
        spectrum: list[tuple[str, ...]]
        if count == 1:
            spectrum = self.along_columns.real_dft({y: value[0] for y, value in values.items()})
        else:
            pairs = {y: (value[0], value[1]) for y, value in values.items()}
            period = range(self.slots.height)
            by_frequency = self.along_columns.complex_dft(pairs, period, sign=-1)
            spectrum = [by_frequency[frequency] for frequency in period]
        return [slot for value in spectrum for slot in to_slots(self.emit, value)]

    def invert_columns(
        self,
        columns: Columns,
        column: Index,
        source: Slot,
        from_slots: FromSlots,
        rows: RowCoefficients,
    ) -> None:
        """Emit the inverse transform of every channel's column of slots into row coefficients."""
        emit = self.emit
        first = emit.add(emit.mul(column, columns.rows), columns.row)
        with emit.loops(rows.channels, "%blocks") as (channel, block):
            slots = [emit.load(source(slot, channel, block)) for slot in range(columns.slots)]
            wanted = range(rows.height)
            for y, value in self.column_values(slots, columns, from_slots, wanted).items():
                for part, number in enumerate(value):
                    goal = self.coefficient_pointer(rows, emit.add(first, part), channel, y, block)
                    emit.store(number, goal)

    def column_values(
        self, slots: Sequence[str], columns: Columns, from_slots: FromSlots, wanted: Sequence[int]
    ) -> dict[int, tuple[str, ...]]:
        """Emit the values of a column by row, at the wanted rows, from its slots."""
        left = list(slots)
        spectrum: list[tuple[str, ...]] = []
        frequencies = self.along_columns.half + 1 if columns.is_real else self.slots.height
        for frequency in range(frequencies):
            count = 1 if columns.is_real and self.along_columns.is_real(frequency) else 3
            parts, left = left[:count], left[count:]
            spectrum.append(tuple(parts) if count == 1 else from_slots(self.emit, parts))
        if columns.is_real:
            values = self.along_columns.inverse_real_dft(spectrum, wanted, 1)
            return {y: (value,) for y, value in values.items()}
        pairs = {frequency: (value[0], value[1]) for frequency, value in enumerate(spectrum)}
        return dict(self.along_columns.complex_dft(pairs, wanted, sign=1))


class SpectralConvolutionCode(ConvolutionCode):
    """Emits a convolution as products of spectra: transforms, then for each slot a matrix product
    over the channels.

    Columns of the row transform are worked on one after another, all the way to the result, so that
    what is in between stays in the second-level cache.
    """

    def __init__(self, emit: Emitter, layout: LanesLayout, number: int):
        super().__init__(emit, layout, number)
        arrays = layout.spectra[number]
        assert arrays is not None
        self.arrays, inner, outer = arrays, self.layer.inner, self.layer.outer
        self.input_rows = RowCoefficients(
            arrays.input_rows, arrays.input_row, inner, self.layer.inputs[1]
        )
        self.output_rows = RowCoefficients(
            arrays.output_rows, arrays.output_row, outer, self.layer.sides[0]
        )
        self.transforms = Transforms(emit, layout, arrays)

    # passes

    def emit_preparation(self) -> None:
        """Emit the transform of the weights along the rows of the kernel."""
        emit, lanes, kernel = self.emit, self.lanes, self.layer.kernel
        with emit.loop(self.arrays.pairs // lanes) as group:
            pixels = self._load_taps(self.weight_pointer((group, lanes * self.layer.taps)))
            for y in range(kernel):
                line = pixels[y * kernel : (y + 1) * kernel]
                spectrum = self.transforms.along_rows.real_dft(
                    dict(zip(self._column_indices, line, strict=True))
                )
                for number, value in enumerate(self.transforms.row_coefficients(spectrum)):
                    emit.store(value, self._kernel_at(number, y, group))

    def emit_forward(self) -> None:
        transforms, source = self.transforms, partial(self.pointer, self.inputs)
        transforms.transform_rows(self.input_rows, self.layer.inputs[2], source)
        for columns in transforms.column_groups():
            with self.emit.loop(columns.number) as column:
                self._emit_input_transform(columns, column)
                self._emit_weight_transform(columns, column)
                with self.emit.loop(columns.slots) as slot:
                    self._emit_products(slot)
                goal = self._output_at, output_frequency, self.output_rows
                transforms.invert_columns(columns, column, *goal)
        self._emit_outputs()

    def emit_weight_gradient(self) -> None:
        """Emit the gradient of the weights, and that of the inputs but for the last transform: both
        need the spectrum of the outputs' gradient, of which only a column is there at a time."""
        transforms, rows = self.transforms, self.output_rows
        self._emit_gradient_spread()
        source = partial(self.pointer, self.unpooled)
        transforms.transform_rows(rows, self.layer.sides[1], source)
        for columns in transforms.column_groups():
            with self.emit.loop(columns.number) as column:
                transforms.transform_columns(columns, column, rows, gradient_slots, self._output_at)
                self._emit_input_transform(columns, column)
                self._emit_weight_transform(columns, column)
                with self.emit.loop(columns.slots) as slot:
                    self._emit_gradient_products(slot)
                self._emit_weight_inverse(columns, column)
                goal = self._input_at, input_gradient_frequency, self.input_rows
                transforms.invert_columns(columns, column, *goal)
        self._emit_kernel_gradient()

    def emit_input_gradient(self) -> None:
        emit, rows, width = self.emit, self.input_rows, self.layer.inputs[2]
        with emit.loops(rows.channels, "%blocks", rows.height) as (channel, block, row):
            for x, value in self.transforms.inverse_row(rows, channel, row, block, width).items():
                self.store_gradient(value, block, channel, row, x)

    # arrays

    def _slot_at(self, array: int, stride: int, slot: Index, channel: Index, block: Index) -> str:
        offsets = (slot, stride), (channel, self.layout.width), (block, self.lanes)
        return self.emit.pointer("%memory", *offsets, array)

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
        inner, outer = self.layer.inner, self.layer.outer
        self._product(outer, inner, slot, self._input_at, self._output_at).emit_code(
            self._weight_at(slot), (inner, 1)
        )

    def _emit_gradient_products(self, slot: Index) -> None:
        """Emit the products of a slot that give the gradients of inputs and weights, which
        overwrite the slot's inputs and weights."""
        inner, outer = self.layer.inner, self.layer.outer

        def inputs(block: Index, channel: Index) -> str:
            return self._input_at(slot, channel, block)

        def gradients(block: Index, channel: Index) -> str:
            return self._output_at(slot, channel, block)

        self.emit_transpose(inner, inputs, "%blocks")
        product = self._product(inner, outer, slot, self._output_at, self._input_at)
        product.emit_code(self._weight_at(slot), (1, inner))
        samples = self.emit.mul("%blocks", self.lanes)
        self.emit_transposed_product(outer, inner, gradients, samples, self._weight_at(slot))

    def _product(
        self, results: int, terms: int, slot: Index, source_at: Slot, goal_at: Slot
    ) -> Product:
        """A product of a slot of the weights and of what is at `source_at`."""
        emit = self.emit
        return Product(
            emit,
            self.layout,
            results,
            terms,
            lambda block, channel: source_at(slot, channel, block),
            lambda value, block, channel: emit.store(value, goal_at(slot, channel, block)),
        )

    def _emit_input_transform(self, columns: Columns, column: Index) -> None:
        """Emit the transform of a column of the inputs' row coefficients into slots: once in either
        pass, which is less than to keep them."""
        goal = self.input_rows, input_slots, self._input_at
        self.transforms.transform_columns(columns, column, *goal)

    # beginnings and ends

    def _emit_outputs(self) -> None:
        """Emit inverse row transforms, then bias, pooling and ReLU, and store the outputs."""
        emit, layer, step = self.emit, self.layer, 1 + self.layer.pools
        with emit.loops(layer.outer, "%blocks", layer.outputs[1]) as (channel, block, row):
            bias, lines = self.broadcast_bias(channel), []
            for below in range(step):
                y = emit.add(emit.mul(row, step), below)
                row_at = self.output_rows, channel, y, block
                pixels = self.transforms.inverse_row(*row_at, layer.sides[1])
                lines.append([emit.op("fadd", pixels[x], bias) for x in range(layer.sides[1])])
            for x in range(layer.outputs[2]):
                values = [line[x * step + right] for line in lines for right in range(step)]
                self._emit_stores(values, block, channel, row, x)

    def _emit_gradient_spread(self) -> None:
        """Emit code that sends each pooled gradient to the pixel that won the maximum, and adds the
        gradients up for the biases."""
        emit, layer, biases = self.emit, self.layer, self.layout.sums
        with emit.loop(layer.outer) as channel:
            bias = emit.pointer("%memory", (channel, self.lanes), biases)
            emit.store(ZERO, bias)
            with emit.loop("%blocks") as block:
                self._emit_spread(block, channel, 0, 0, layer.sides[0], bias)
        self.emit_lane_sums(biases, layer.outer, emit.pointer("%gradients", layer.bias))

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
        emit, lanes, taps = self.emit, self.lanes, self.layer.taps
        for part in chunks(self.layer.inner * self.layer.outer, lanes):
            with emit.loop(part.count) as number:
                group = emit.add(number, part.start // lanes)
                pixels: list[str] = []
                for y in range(self.layer.kernel):
                    pixels += self._kernel_line(y, group)
                goal = emit.pointer("%gradients", (group, lanes * taps), self.layer.weight)
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
        emit, lanes, taps = self.emit, self.lanes, self.layer.taps
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
        return [(self.layer.padding - tap) % period for tap in range(self.layer.kernel)]
