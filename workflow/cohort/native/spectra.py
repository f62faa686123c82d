"""The layout of a convolution's spectra in memory, and whether they are worth it.

A convolution is a product of discrete Fourier transforms (DFTs), first along rows, then columns.
Images count as periodic, with a period longer than the image by the padding, so that only zeros
wrap around. Inputs are real, so half of the frequencies are conjugates, which are left out.

A complex product takes three real ones instead of four (Karatsuba). For inputs a + bi and weights
c + di these are p = (a + b) c, q = a (d - c) and r = b (c + d), and the result is (p - r) +
(p + q) i. So each complex frequency has three slots: inputs are stored as (a + b, a, b), weights
as (c, d - c, c + d). With the gradient of the outputs e + gi stored as (e + g, g, e) the same slots
give both gradients: that of the inputs is the product with the conjugate of the weights, that of
the weights the product with the conjugate of the inputs.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cohort.native.emitter import ZERO, Arena, Emitter
from cohort.native.layers import Layer

ADVANTAGE = 1.5  # how many direct products must be saved for each product of the spectra
MIN_CHANNELS = 8  # of inputs and of outputs, below which transforms are most of the work
Complex = tuple[str, str]
"""The real and imaginary parts of numbers, two vectors."""


def is_spectral_faster(layer: Layer) -> bool:
    """Whether a convolution multiplies clearly less by Fourier transforms than directly."""
    direct, slots = math.prod(layer.sides) * layer.taps, SpectrumSlots(layer)
    is_wide = min(layer.inner, layer.outer) >= MIN_CHANNELS
    fits = layer.kernel <= min(slots.height, slots.width)
    return layer.is_convolution and is_wide and fits and direct > ADVANTAGE * slots.count


class SpectrumSlots:
    """The slots of the spectrum of a channel of a layer's images, with their sides plus the padding
    as periods. A real frequency takes one slot, a complex one three; real columns come first."""

    def __init__(self, layer: Layer):
        self.height, self.width = (side + layer.padding for side in layer.inputs[1:])
        self.real_columns = _real_frequencies(self.width)
        self.complex_columns = (self.width - self.real_columns) // 2
        real = _real_frequencies(self.height)
        self.per_real_column = real + 3 * (self.height - real) // 2
        self.per_complex_column = 3 * self.height
        of_complex = self.complex_columns * self.per_complex_column
        self.count = self.real_columns * self.per_real_column + of_complex


def _real_frequencies(period: int) -> int:
    """How many frequencies of real numbers have a real spectrum: 0, and half an even period."""
    return 2 - period % 2


@dataclass(frozen=True)
class MapSpectra:
    """Where the spectra of the inputs or outputs of a convolution lie, then of their gradient. All
    row coefficients (coefficient, channel, row, block, lane) are kept for the backward pass; of the
    slots (slot, channel, block, lane) only those of one column are there at a time. `row` and
    `slot` are the distances between coefficients and between slots."""

    channels: int
    height: int
    row: int
    slot: int
    rows: int
    slots: int


class SpectralArrays:
    """The arrays of a convolution by Fourier transforms. Those of the weights are (coefficient,
    kernel row, pair of channels) and (slot, pair of channels). Distances between slots are odd
    numbers of cache lines, so that those of a channel do not compete for a place in the cache."""

    def __init__(self, layer: Layer, arena: Arena, width: int, line: int):
        self.slots = SpectrumSlots(layer)
        per_column = max(self.slots.per_real_column, self.slots.per_complex_column)
        self.pairs = -(-layer.inner * layer.outer // line) * line  # of channels
        shapes = (layer.inner, layer.inputs[1]), (layer.outer, layer.sides[0])
        rows = [channels * height * width + line for channels, height in shapes]
        slots = [channels * width + line for channels, _ in shapes]
        self.weight_row, self.weight_slot = layer.kernel * self.pairs + line, self.pairs + line
        starts = [arena.allocate(self.slots.width * row) for row in (*rows, self.weight_row)]
        starts += [arena.allocate(per_column * slot) for slot in (*slots, self.weight_slot)]
        self.weight_rows, self.weights = starts[2], starts[5]
        self.inputs, self.outputs = (
            MapSpectra(*shapes[index], rows[index], slots[index], starts[index], starts[index + 3])
            for index in range(2)
        )


def input_slots(emit: Emitter, real: str, imaginary: str) -> list[str]:
    """Emit the slots of a complex frequency of inputs, in the order of `weight_slots`."""
    return [emit.op("fadd", real, imaginary), real, imaginary]


def gradient_slots(emit: Emitter, real: str, imaginary: str) -> list[str]:
    """Emit the slots of a complex frequency of the outputs' gradient."""
    return [emit.op("fadd", real, imaginary), imaginary, real]


def weight_slots(emit: Emitter, real: str, imaginary: str) -> list[str]:
    """Emit the slots of a complex frequency of weights."""
    return [real, emit.op("fsub", imaginary, real), emit.op("fadd", real, imaginary)]


def output_frequency(emit: Emitter, slots: list[str]) -> Complex:
    """Emit the real and imaginary parts of an output frequency from its three real products
    (Karatsuba), in the order in which `input_slots` lists their factors."""
    return emit.op("fsub", slots[0], slots[2]), emit.op("fadd", slots[0], slots[1])


def input_gradient_frequency(emit: Emitter, slots: list[str]) -> Complex:
    """Emit the real and imaginary parts of a frequency of the inputs' gradient from its three real
    products, those of the outputs' gradient with the conjugate of the weights."""
    return emit.op("fadd", slots[0], slots[1]), emit.op("fsub", slots[0], slots[2])


def weight_gradient_frequency(emit: Emitter, slots: list[str]) -> Complex:
    """Emit the real and imaginary parts of a frequency of the weights' gradient from its three real
    products, those of the outputs' gradient with the conjugate of the inputs."""
    real = emit.op("fsub", emit.op("fsub", slots[0], slots[1]), slots[2])
    return real, emit.op("fsub", slots[1], slots[2])


class Fourier:
    """Emits straight-line discrete Fourier transforms (DFTs) of a period, modulo which indices are
    counted. Values at n and -n are first added and subtracted, which halves the products."""

    def __init__(self, emit: Emitter, period: int):
        self.emit, self.period, self.half = emit, period, period // 2

    def real_dft(self, values: Mapping[int, str]) -> list[tuple[str, ...]]:
        """Emit the DFT of real numbers, given by index, up to half the period: other frequencies
        are conjugates. Frequency 0 and half an even period have no imaginary part."""
        even, odd = self._even_and_odd_parts(values)
        spectrum: list[tuple[str, ...]] = []
        for frequency in range(self.half + 1):
            cosines, sines = self._waves(frequency)
            real = self._sum(even, cosines)
            is_real = self.is_real(frequency)
            spectrum.append((real,) if is_real else (real, self._sum(odd, sines, -1)))
        return spectrum

    def inverse_real_dft(
        self, spectrum: Sequence[tuple[str, ...]], wanted: Sequence[int], scale: float
    ) -> list[str]:
        """Emit the real numbers at the wanted indices from half a spectrum, times a scale."""
        whole = {f: parts[0] for f, parts in enumerate(spectrum)}
        imaginary = {f: parts[1] for f, parts in enumerate(spectrum) if len(parts) == 2}
        weight = {f: scale * (1 if self.is_real(f) else 2) for f in whole}
        numbers = {}
        for index, mirrored in self._mirror_pairs(wanted):
            cosines, sines = self._waves(index)
            even = self._sum(whole, {f: weight[f] * cosines[f] for f in whole})
            odd = self._sum(imaginary, {f: weight[f] * sines[f] for f in imaginary})
            numbers[index], numbers[mirrored] = self._subtract(even, odd), self._add(even, odd)
        return [numbers[index] for index in wanted]

    def complex_dft(
        self, values: Mapping[int, tuple[str, ...]], wanted: Sequence[int], sign: int
    ) -> list[Complex]:
        """Emit the sums over n of values * exp(sign * 2 pi i * k * n / period) at the wanted
        indices k: a DFT if sign is -1, its inverse times the period if it is 1."""
        real_parts = {index: real for index, (real, _) in values.items()}
        imaginary_parts = {index: imaginary for index, (_, imaginary) in values.items()}
        even_real, odd_real = self._even_and_odd_parts(real_parts)
        even_imaginary, odd_imaginary = self._even_and_odd_parts(imaginary_parts)
        sums = {}
        for index, mirrored in self._mirror_pairs(wanted):
            cosines, sines = self._waves(index)
            real = (self._sum(even_real, cosines), self._sum(odd_imaginary, sines, -sign))
            imaginary = (self._sum(even_imaginary, cosines), self._sum(odd_real, sines, sign))
            sums[index] = self._add(*real), self._add(*imaginary)
            sums[mirrored] = self._subtract(*real), self._subtract(*imaginary)
        return [sums[index] for index in wanted]

    def is_real(self, frequency: int) -> bool:
        """Whether the spectrum of real numbers is real at this frequency."""
        return 2 * frequency % self.period == 0

    def _waves(self, index: int) -> tuple[dict[int, float], dict[int, float]]:
        """Cosines and sines of 2 pi k n / period for an index k, by n."""
        angles = [2 * math.pi * (index * n % self.period) / self.period for n in range(self.period)]
        numbers = *map(math.cos, angles), *map(math.sin, angles)
        exact = [round(v) if abs(v - round(v)) < 1e-12 else v for v in numbers]
        return dict(enumerate(exact[: self.period])), dict(enumerate(exact[self.period :]))

    def _mirror_pairs(self, wanted: Iterable[int]) -> list[tuple[int, int]]:
        """Pairs of an index up to half the period and its mirror image, at least one wanted."""
        indices = sorted({min(index, self.period - index) % self.period for index in wanted})
        return [(index, -index % self.period) for index in indices]

    def _even_and_odd_parts(self, values: Mapping[int, str]) -> list[dict[int, str]]:
        """Emit the even part of values, then the odd part, each by index up to half the period."""
        even, odd = {}, {}
        for index, mirrored in self._mirror_pairs(values):
            here, there = values.get(index, ZERO), values.get(mirrored, ZERO)
            if index == mirrored:
                even[index] = here
            else:
                even[index], odd[index] = self._add(here, there), self._subtract(here, there)
        return [even, odd]

    def _sum(self, values: Mapping[int, str], factors: Mapping[int, float], sign: int = 1) -> str:
        """Emit the sum of values times factors; nothing is emitted for what is 0."""
        total = ZERO
        for index, value in values.items():
            factor = sign * factors[index]
            if factor == 0:
                continue
            if total == ZERO and factor == 1:
                total = value
            elif total == ZERO:
                total = self.emit.op("fmul", value, self.emit.constant(factor))
            elif abs(factor) == 1:
                total = self.emit.op("fadd" if factor > 0 else "fsub", total, value)
            else:
                total = self.emit.fma(value, self.emit.constant(factor), total)
        return total

    def _add(self, left: str, right: str) -> str:
        if ZERO in (left, right):
            return right if left == ZERO else left
        return self.emit.op("fadd", left, right)

    def _subtract(self, left: str, right: str) -> str:
        return left if right == ZERO else self.emit.op("fsub", left, right)
