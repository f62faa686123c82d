"""The layout of a convolution's spectra in memory, and whether they are worth it.

A convolution is a product of discrete Fourier transforms (DFTs). Images count as periodic, with a
period longer than the image by the padding, so that only zeros wrap around. The DFT is separable:
first along rows, then along columns. Inputs are real, so half of the frequencies are conjugates of
the others and are left out.

A complex product takes three real ones instead of four (Karatsuba). For inputs a + bi and weights
c + di these are p = (a + b) c, q = a (d - c) and r = b (c + d), and the result is (p - r) +
(p + q) i. So each complex frequency has three slots: inputs are stored as (a + b, a, b), weights
as (c, d - c, c + d). With the gradient of the outputs e + gi stored as (e + g, g, e) the same slots
give both gradients: that of the inputs is the product with the conjugate of the weights, that of
the weights the product with the conjugate of the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from cohort.native.arena import Arena
from cohort.native.emitter import Emitter
from cohort.native.fourier import Complex
from cohort.native.network_stages import Stage

ADVANTAGE = 1.5  # how many direct products must be saved for each product of the spectra
LEAST = 8  # input and output channels, below which transforms are most of the work


def is_spectral_faster(stage: Stage) -> bool:
    """Whether a convolution multiplies clearly less by Fourier transforms than directly."""
    height, width = stage.sides
    direct = height * width * stage.taps
    is_wide = min(stage.inner, stage.outer) >= LEAST
    slots = SpectrumSlots.of_stage(stage)
    fits = stage.kernel <= min(slots.height, slots.width)
    return stage.is_convolution and is_wide and fits and direct > ADVANTAGE * slots.count


@dataclass(frozen=True)
class SpectrumSlots:
    """The slots of a channel's spectrum, whose periods are `height` and `width`. A real frequency
    takes one slot, a complex one three. Real columns of the row transform come first."""

    height: int
    width: int

    @staticmethod
    def of_stage(stage: Stage) -> SpectrumSlots:
        """The slots of a stage's images, whose periods are their sides plus the padding."""
        return SpectrumSlots(*(side + stage.padding for side in stage.inputs[1:]))

    @property
    def real_columns(self) -> int:
        """The number of real columns of the row transform."""
        return 2 - self.width % 2 if self.width > 1 else 1

    @property
    def complex_columns(self) -> int:
        """The number of complex columns of the row transform."""
        return (self.width - self.real_columns) // 2

    @property
    def per_real_column(self) -> int:
        """The number of slots that a real column takes: one for each of its real frequencies and
        three for each complex one."""
        real = 2 - self.height % 2 if self.height > 1 else 1
        return real + 3 * (self.height - real) // 2

    @property
    def per_complex_column(self) -> int:
        """The number of slots that a complex column takes: three for each frequency."""
        return 3 * self.height

    @property
    def count(self) -> int:
        """The number of slots of a whole spectrum."""
        return (
            self.real_columns * self.per_real_column
            + self.complex_columns * self.per_complex_column
        )


class SpectralArrays:
    """The arrays of a convolution by Fourier transforms: their strides and where they begin.

    Row coefficients of inputs and outputs are (coefficient, channel, row, block, lane), those of
    weights (coefficient, kernel row, pair of channels); slots of a column are (slot, channel,
    block, lane), and (slot, pair of channels).

    Of each spectrum only the slots of one column of the row transform are there at a time; the row
    coefficients are kept for the backward pass. A gradient takes the place of what it is the
    gradient of. Distances between slots are odd numbers of cache lines, so that those of a channel
    do not compete for the same place in the cache.
    """

    def __init__(self, stage: Stage, arena: Arena, width: int, line: int):
        self.slots = SpectrumSlots.of_stage(stage)
        height, most = (
            stage.inputs[1],
            max(self.slots.per_real_column, self.slots.per_complex_column),
        )
        self.pairs = -(-stage.inner * stage.outer // line) * line  # of channels
        self.input_slot = stage.inner * width + line
        self.output_slot = stage.outer * width + line
        self.weight_slot = self.pairs + line
        self.input_row = stage.inner * height * width + line
        self.output_row = stage.outer * stage.sides[0] * width + line
        self.weight_row = stage.kernel * self.pairs + line
        self.input_rows = arena.allocate(self.slots.width * self.input_row)
        self.output_rows = arena.allocate(self.slots.width * self.output_row)
        self.weight_rows = arena.allocate(self.slots.width * self.weight_row)
        self.inputs = arena.allocate(most * self.input_slot)
        self.outputs = arena.allocate(most * self.output_slot)
        self.weights = arena.allocate(most * self.weight_slot)


def input_slots(emit: Emitter, value: tuple[str, ...]) -> list[str]:
    """Emit the slots of a frequency of inputs, in the order of `weight_slots`."""
    return list(value) if len(value) == 1 else [emit.op("fadd", *value), *value]


def gradient_slots(emit: Emitter, value: tuple[str, ...]) -> list[str]:
    """Emit the slots of a frequency of the outputs' gradient."""
    return list(value) if len(value) == 1 else [emit.op("fadd", *value), value[1], value[0]]


def weight_slots(emit: Emitter, value: tuple[str, ...]) -> list[str]:
    """Emit the slots of a frequency of weights."""
    if len(value) == 1:
        return list(value)
    real, imaginary = value
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
