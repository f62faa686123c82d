"""Code of a convolution of many channels in the frequency domain."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from cohort.native import lanes_convolution, spectra
from cohort.native.emitter import ZERO, Emitter, Index, Ranges, chunks, transposed
from cohort.native.lanes_layers import Array, LanesLayout, Product
from cohort.native.spectra import Complex, Fourier, MapSpectra

ToSlots = Callable[[Emitter, str, str], list[str]]
FromSlots = Callable[[Emitter, list[str]], Complex]


class Columns(NamedTuple):
    """The real or the complex columns of the row transform: coefficients and slots of each."""

    is_real: bool
    coefficients: Ranges
    slots: int


class SpectralConvolutionCode(lanes_convolution.ConvolutionCode):
    """Emits a convolution as products of spectra: transforms, then for each slot a matrix product
    over the channels. Row coefficients are real columns first, then the real and imaginary parts of
    the complex ones. Columns are worked on one after another, all the way to the result, so that
    what is in between stays in the second-level cache."""

    def __init__(self, emit: Emitter, layout: LanesLayout, number: int):
        super().__init__(emit, layout, number)
        arrays = layout.spectra[number]
        assert arrays is not None
        self.arrays, self.slots = arrays, arrays.slots
        self.along_rows = Fourier(emit, self.slots.width)
        self.along_columns = Fourier(emit, self.slots.height)
        self.scale = 1 / (self.slots.height * self.slots.width)
        # the kernel in its periodic image is reflected, because layers compute cross-correlations,
        # and shifted by the padding
        shifts = [self.layer.padding - tap for tap in range(self.layer.kernel)]
        self.kernel_rows = [shift % self.slots.height for shift in shifts]
        self.kernel_columns = [shift % self.slots.width for shift in shifts]

    # passes

    def emit_preparation(self) -> None:
        """Emit the transform of the weights along the rows of the kernel."""
        emit, lanes, kernel, taps = self.emit, self.lanes, self.layer.kernel, self.layer.taps
        with emit.loop(self.arrays.pairs // lanes) as group:
            source, pixels = self.weight_pointer((group, lanes * taps)), list[str]()
            for first in range(0, taps, lanes):
                rows = [emit.load_anywhere(source, pair * taps + first) for pair in range(lanes)]
                pixels += transposed(emit, rows)
            for y in range(kernel):
                line = pixels[y * kernel : (y + 1) * kernel]
                of_columns = dict(zip(self.kernel_columns, line, strict=True))
                for number, value in enumerate(self._row_transform(of_columns)):
                    emit.store(value, self._kernel_at(number, y, group))

    def emit_forward(self) -> None:
        inner, arrays = self.layer.inner, self.arrays
        self._transform_rows(arrays.inputs, self.inputs, self.layer.inputs[2])
        for columns in self._column_groups():
            with self.emit.parts(columns.coefficients) as first:
                # in either pass, which is less than to keep them
                self._transform_columns(columns, first, arrays.inputs, spectra.input_slots)
                self._transform_weight_columns(columns, first)
                with self.emit.loop(columns.slots) as slot:
                    self._emit_product(slot, arrays.inputs, arrays.outputs, (inner, 1))
                self._invert_columns(columns, first, arrays.outputs, spectra.output_frequency)
        self._emit_outputs()

    def emit_weight_gradient(self) -> None:
        """Emit the gradient of the weights, and that of the inputs but for the last transform: both
        need the spectrum of the outputs' gradient, of which only a column is there at a time."""
        emit, layer = self.emit, self.layer
        inputs, outputs = self.arrays.inputs, self.arrays.outputs
        self._emit_gradient_spread()
        self._transform_rows(outputs, self.unpooled, layer.sides[1])
        for columns in self._column_groups():
            with emit.parts(columns.coefficients) as first:
                self._transform_columns(columns, first, outputs, spectra.gradient_slots)
                self._transform_columns(columns, first, inputs, spectra.input_slots)
                self._transform_weight_columns(columns, first)
                with emit.loop(columns.slots) as slot:
                    self.emit_transpose(partial(self._at, inputs, slot), "%blocks")
                    self._emit_product(slot, outputs, inputs, (1, layer.inner))
                    samples = emit.mul("%blocks", self.lanes)
                    gradients, goal = partial(self._at, outputs, slot), self._weight_at(slot)
                    self.emit_transposed_product(gradients, samples, goal)
                self._invert_weight_columns(columns, first)
                self._invert_columns(columns, first, inputs, spectra.input_gradient_frequency)
        self._emit_kernel_gradient()

    def emit_input_gradient(self) -> None:
        maps, width = self.arrays.inputs, self.layer.inputs[2]
        with self.emit.loops(maps.channels, "%blocks", maps.height) as (channel, block, row):
            for x, value in enumerate(self._inverse_row(maps, channel, row, block, width)):
                self.store_gradient(value, block, channel, row, x)

    def _emit_product(
        self, slot: Index, source: MapSpectra, goal: MapSpectra, strides: tuple[int, int]
    ) -> None:
        """Emit the product of a slot of the weights, of these strides, and a slot of `source`."""

        def store(value: str, block: Index, channel: Index) -> None:
            self.emit.store(value, self._at(goal, slot, block, channel))

        sizes, source_at = (goal.channels, source.channels), partial(self._at, source, slot)
        product = Product(self.emit, self.layout, *sizes, source_at, store)
        product.emit_code(self._weight_at(slot), strides)

    # arrays

    def _column_groups(self) -> Iterator[Columns]:
        """Yield the real columns of the row transform, then the complex ones if there are any."""
        slots, real = self.slots, self.slots.real_columns
        yield Columns(True, Ranges(0, real, 1), slots.per_real_column)
        if slots.complex_columns:
            yield Columns(False, Ranges(real, slots.complex_columns, 2), slots.per_complex_column)

    def _at(self, maps: MapSpectra, slot: Index, block: Index, channel: Index) -> str:
        """A pointer to a slot of a column of the spectrum of inputs or outputs."""
        offsets = (slot, maps.slot), (channel, self.layout.width), (block, self.lanes)
        return self.emit.pointer("%memory", *offsets, maps.slots)

    def _row_at(
        self, maps: MapSpectra, coefficient: Index, channel: Index, y: Index, block: Index
    ) -> str:
        """A pointer to a coefficient of the row transform of inputs or outputs."""
        width = self.layout.width
        offsets = (channel, maps.height * width), (y, width), (block, self.lanes)
        return self.emit.pointer("%memory", (coefficient, maps.row), *offsets, maps.rows)

    def _weight_at(self, slot: Index) -> str:
        """A pointer to a slot of a column of the weights' spectrum, or of its gradient."""
        return self.emit.pointer("%memory", (slot, self.arrays.weight_slot), self.arrays.weights)

    def _kernel_at(self, number: Index, y: int, group: Index) -> str:
        """A pointer to a row coefficient of a kernel's line, or its gradient, for channel pairs."""
        offsets = (number, self.arrays.weight_row), (group, self.lanes)
        start = self.arrays.weight_rows + y * self.arrays.pairs
        return self.emit.pointer("%memory", *offsets, start)

    # transforms of rows

    def _row_transform(self, pixels: Mapping[int, str]) -> list[str]:
        """Emit the row coefficients of some pixels in the order in which they are stored."""
        spectrum = self.along_rows.real_dft(pixels)
        return [part for parts in sorted(spectrum, key=len) for part in parts]

    def _transform_rows(self, maps: MapSpectra, source: Array, width: int) -> None:
        emit = self.emit
        with emit.loops(maps.channels, "%blocks", maps.height) as (channel, block, y):
            row = source, block, channel, y
            pixels = {x: emit.load(self.pointer(*row, x)) for x in range(width)}
            for number, value in enumerate(self._row_transform(pixels)):
                emit.store(value, self._row_at(maps, number, channel, y, block))

    def _inverse_row(
        self, maps: MapSpectra, channel: Index, y: Index, block: Index, width: int
    ) -> list[str]:
        """Emit the inverse transform of a row; return the values of its pixels."""
        spectrum = self._load_spectrum(lambda n: self._row_at(maps, n, channel, y, block))
        return self.along_rows.inverse_real_dft(spectrum, range(width), self.scale)

    def _load_spectrum(self, pointer_to: Callable[[int], str]) -> list[tuple[str, ...]]:
        """Emit loads of a row's spectrum; `pointer_to` gives the pointer to a row coefficient."""
        spectrum = []
        for frequency in range(self.along_rows.half + 1):
            numbers = [min(frequency, 1)]
            if not self.along_rows.is_real(frequency):
                first = self.slots.real_columns + 2 * (frequency - 1)
                numbers = [first, first + 1]
            spectrum.append(tuple(self.emit.load(pointer_to(number)) for number in numbers))
        return spectrum

    # transforms of columns

    def _load_parts(
        self, columns: Columns, first: Index, pointer_to: Callable[[Index], str]
    ) -> tuple[str, ...]:
        """Emit loads of a column's row coefficients, from the `first` on: a real or complex one."""
        numbers = [self.emit.add(first, part) for part in range(columns.coefficients.size)]
        return tuple(map(self.emit.load, [pointer_to(number) for number in numbers]))

    def _transform_columns(
        self, columns: Columns, first: Index, maps: MapSpectra, to_slots: ToSlots
    ) -> None:
        """Emit the transform of a column of the row coefficients of every channel into slots."""
        emit = self.emit
        with emit.loops(maps.channels, "%blocks") as (channel, block):
            values = {}
            for y in range(maps.height):
                row_at = partial(self._row_at, maps, channel=channel, y=y, block=block)
                values[y] = self._load_parts(columns, first, row_at)
            for slot, value in enumerate(self._column_slots(columns, values, to_slots)):
                emit.store(value, self._at(maps, slot, block, channel))

    def _transform_weight_columns(self, columns: Columns, first: Index) -> None:
        emit = self.emit
        with emit.loop(self.arrays.pairs // self.lanes) as group:
            values = {}
            for y, index in enumerate(self.kernel_rows):
                kernel_at = partial(self._kernel_at, y=y, group=group)
                values[index] = self._load_parts(columns, first, kernel_at)
            for slot, value in enumerate(self._column_slots(columns, values, spectra.weight_slots)):
                emit.store(value, self._weight_at(slot), (group, self.lanes))

    def _column_slots(
        self, columns: Columns, values: Mapping[int, tuple[str, ...]], to_slots: ToSlots
    ) -> list[str]:
        """Emit the slots of a column from its values by row."""
        spectrum: list[tuple[str, ...]]
        if columns.is_real:
            spectrum = self.along_columns.real_dft({y: value[0] for y, value in values.items()})
        else:
            spectrum = [*self.along_columns.complex_dft(values, range(self.slots.height), sign=-1)]
        pieces = (value if len(value) == 1 else to_slots(self.emit, *value) for value in spectrum)
        return [slot for piece in pieces for slot in piece]

    def _invert_columns(
        self, columns: Columns, first: Index, maps: MapSpectra, from_slots: FromSlots
    ) -> None:
        """Emit the inverse transform of every channel's column of slots into row coefficients."""
        emit, height = self.emit, range(maps.height)
        with emit.loops(maps.channels, "%blocks") as (channel, block):
            slots = [emit.load(self._at(maps, n, block, channel)) for n in range(columns.slots)]
            for y, value in enumerate(self._column_values(columns, slots, from_slots, height)):
                for part, number in enumerate(value):
                    emit.store(number, self._row_at(maps, emit.add(first, part), channel, y, block))

    def _invert_weight_columns(self, columns: Columns, first: Index) -> None:
        emit, lanes = self.emit, self.lanes
        with emit.loop(self.arrays.pairs // lanes) as group:
            numbers = range(columns.slots)
            slots = [emit.load(self._weight_at(slot), (group, lanes)) for slot in numbers]
            args = spectra.weight_gradient_frequency, self.kernel_rows
            for y, value in enumerate(self._column_values(columns, slots, *args)):
                for part, number in enumerate(value):
                    emit.store(number, self._kernel_at(emit.add(first, part), y, group))

    def _column_values(
        self, columns: Columns, slots: list[str], from_slots: FromSlots, wanted: Sequence[int]
    ) -> list[tuple[str, ...]]:
        """Emit the values of a column at the wanted rows, from its slots."""
        spectrum: list[tuple[str, ...]] = []
        frequencies = self.along_columns.half + 1 if columns.is_real else self.slots.height
        for frequency in range(frequencies):
            count = 1 if columns.is_real and self.along_columns.is_real(frequency) else 3
            parts, slots = slots[:count], slots[count:]
            spectrum.append(tuple(parts) if count == 1 else from_slots(self.emit, parts))
        if columns.is_real:
            return [(v,) for v in self.along_columns.inverse_real_dft(spectrum, wanted, 1)]
        return [*self.along_columns.complex_dft(dict(enumerate(spectrum)), wanted, sign=1)]

    # beginnings and ends

    def _emit_outputs(self) -> None:
        """Emit inverse row transforms, then bias, pooling and ReLU, and store the outputs."""
        emit, layer, step, width = self.emit, self.layer, 1 + self.layer.pools, self.layer.sides[1]
        with emit.loops(layer.outer, "%blocks", layer.outputs[1]) as (channel, block, row):
            bias, lines = self.broadcast_bias(channel), []
            for below in range(step):
                y = emit.add(emit.mul(row, step), below)
                pixels = self._inverse_row(self.arrays.outputs, channel, y, block, width)
                lines.append([emit.op("fadd", pixel, bias) for pixel in pixels])
            for x in range(layer.outputs[2]):
                values = [line[x * step + right] for line in lines for right in range(step)]
                self._emit_stores(values, block, channel, row, x)

    def _emit_gradient_spread(self) -> None:
        """Emit code that sends pooled gradients to the winning pixels, and sums them for biases."""
        emit, layer, biases = self.emit, self.layer, self.layout.sums
        with emit.loop(layer.outer) as channel:
            bias = emit.pointer("%memory", (channel, self.lanes), biases)
            emit.store(ZERO, bias)
            with emit.loop("%blocks") as block:
                self._emit_spread(block, channel, 0, 0, layer.sides[0], bias)
        self.emit_lane_sums(biases, layer.outer, emit.pointer("%gradients", layer.bias))

    def _emit_kernel_gradient(self) -> None:
        """Emit the inverse row transforms of the weights' gradient."""
        emit, lanes, taps = self.emit, self.lanes, self.layer.taps
        for part in chunks(self.layer.inner * self.layer.outer, lanes):
            with emit.loop(part.count) as number:
                group = emit.add(number, part.start // lanes)
                pixels: list[str] = []
                for y in range(self.layer.kernel):
                    spectrum = self._load_spectrum(partial(self._kernel_at, y=y, group=group))
                    wanted = self.kernel_columns
                    pixels += self.along_rows.inverse_real_dft(spectrum, wanted, self.scale)
                goal = emit.pointer("%gradients", (group, lanes * taps), self.layer.weight)
                for first in range(0, taps, lanes):
                    rows = pixels[first : first + lanes]
                    used, rows = len(rows), rows + [ZERO] * (lanes - len(rows))
                    for pair, value in enumerate(transposed(emit, rows)[: part.size]):
                        emit.store_first(value, used, goal, pair * taps + first)
