"""Code of the two-dimensional transforms of a convolution by its spectra."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cohort.native.batched_layout import BatchLayout
from cohort.native.emitter import Emitter, Index
from cohort.native.fourier import Complex, Fourier
from cohort.native.spectra import SpectralArrays

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

    def __init__(self, emit: Emitter, layout: BatchLayout, arrays: SpectralArrays):
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
        with (
            emit.loop(rows.channels) as channel,
            emit.loop("%blocks") as block,
            emit.loop(rows.height) as y,
        ):
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
        with emit.loop(rows.channels) as channel, emit.loop("%blocks") as block:
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
        with emit.loop(rows.channels) as channel, emit.loop("%blocks") as block:
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
