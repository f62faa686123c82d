"""Convolutions by their frequencies, as products of matrices: where maps are small and channels many, these are far fewer multiplications
than one for each pixel, place in the kernel and pair of channels.

A map is taken to go round, but is longer by its padding, so that only zeros meet where it does. First come the frequencies along its rows,
without those that are others' conjugates, then those down the columns of these numbers. Three products of real numbers make one of complex
ones. So in all, outputs are sums of products of sums of inputs and sums of weights; the way back takes the same sums, transposed."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

Sides = tuple[int, ...]
Factors = tuple[tuple[int, int], ...]
DEARER = 2.2  # than a multiplication of a direct convolution, as measured

# Of the real and the imaginary part of two numbers, the three sums that are multiplied with each other, and where these products go: the
# first into both parts of the product, the second into the imaginary one, the third, less, into the real one.
PARTS = ((1, 0), (0, 1))
OF_INPUTS, OF_WEIGHTS, OF_OUTPUTS = (
    ((1, 1), (1, 0), (0, 1)),
    ((1, 0), (-1, 1), (1, 1)),
    ((1, 1), (0, 1), (-1, 0)),
)


@dataclass(frozen=True)
class Sums:
    """Of each map, or kernel: of each row's pixels; then of what is in each column of these, first of the real ones, then of the others."""

    across: Tensor
    down: list[Tensor]  # a matrix for each column

    @property
    def count(self) -> int:
        """Of these sums."""
        return sum(len(matrices) * matrices.shape[1] for matrices in self.down)

    @property
    def multiplications(self) -> int:
        """Those that one map takes, there or back."""
        return self.across.numel() * self.down[0].shape[2] + sum(
            matrices.numel() for matrices in self.down
        )

    def transform(self, maps: Tensor) -> Tensor:
        """A matrix for each sum, with a row for each sample and a column for each channel."""
        samples, channels, _, width = maps.shape
        rows = (self.across @ maps.permute(3, 2, 0, 1).reshape(width, -1)).view(
            -1, samples * channels
        )
        sums = maps.new_empty(self.count, samples * channels)
        for matrices, of_rows, result in zip(
            self.down, self._columns(rows, 2), self._columns(sums, 1), strict=True
        ):
            torch.bmm(matrices, of_rows, out=result)
        return sums.view(-1, samples, channels)

    def adjoint(self, sums: Tensor) -> Tensor:
        """The same, transposed."""
        (_, samples, channels), (length, width), height = (
            sums.shape,
            self.across.shape,
            self.down[0].shape[2],
        )
        rows = sums.new_empty(length * height, samples * channels)
        for matrices, of_sums, result in zip(
            self.down, self._columns(sums.flatten(1), 1), self._columns(rows, 2), strict=True
        ):
            torch.bmm(matrices.mT, of_sums, out=result)
        maps = (self.across.t() @ rows.view(length, -1)).view(width, height, samples, channels)
        return maps.permute(2, 3, 1, 0).contiguous(memory_format=torch.channels_last)

    def _columns(self, lines: Tensor, dim: int) -> list[Tensor]:
        """Those that go with each kind of matrices, by column."""
        parts = lines.split([len(matrices) * matrices.shape[dim] for matrices in self.down])
        return [
            part.view(len(matrices), matrices.shape[dim], -1)
            for matrices, part in zip(self.down, parts, strict=True)
        ]


class FourierConvolution:
    """One step of a convolution with a stride of one. It remembers what its way back needs."""

    def __init__(self, weight: Tensor, padding: Sides, sides: Sides):
        self.of_inputs, self.of_weights, self.of_outputs = _all_sums(
            weight.shape[2:], padding, sides, weight.dtype
        )
        self.weights = self.of_weights.transform(weight)

    def forward(self, inputs: Tensor) -> Tensor:
        """The outputs, to which no bias is added."""
        self.inputs = self.of_inputs.transform(inputs)
        return self.of_outputs.adjoint(self.inputs @ self.weights.mT)

    def backward(self, gradient: Tensor, needs_input_grad: bool) -> tuple[Tensor, Tensor]:
        """The gradient of the weights, and from that of the outputs to that of the inputs, where it is wanted."""
        gradients = self.of_outputs.transform(gradient)
        of_weight = self.of_weights.adjoint(gradients.mT @ self.inputs)
        return of_weight, self.of_inputs.adjoint(
            gradients @ self.weights
        ) if needs_input_grad else gradient


def is_faster(weight: Tensor, padding: Sides, inputs: torch.Size) -> bool:
    """Whether it makes so many multiplications less that a step of training on a CPU, there and back, is done sooner."""
    (outer, inner), kernel, samples, sides = (
        weight.shape[:2],
        weight.shape[2:],
        inputs[0],
        inputs[2:],
    )
    if weight.device.type != "cpu" or any(
        pad >= side for pad, side in zip(padding, kernel, strict=True)
    ):
        return False
    of_inputs, of_weights, of_outputs = _all_sums(kernel, padding, sides, weight.dtype)
    sums = (
        samples * (inner * of_inputs.multiplications + outer * of_outputs.multiplications)
        + outer * inner * of_weights.multiplications
    )
    direct = math.prod(_outer_sides(kernel, padding, sides)) * math.prod(kernel)
    return (
        DEARER * (2 * sums + 3 * of_inputs.count * samples * outer * inner)
        < 3 * direct * samples * outer * inner
    )


def _outer_sides(kernel: Sides, padding: Sides, sides: Sides) -> Sides:
    return tuple(
        side + 2 * pad - across + 1
        for side, pad, across in zip(sides, padding, kernel, strict=True)
    )


@functools.lru_cache(maxsize=64)
def _all_sums(
    kernel: Sides, padding: Sides, sides: Sides, dtype: torch.dtype
) -> tuple[Sums, Sums, Sums]:
    """Those of inputs, of weights and of outputs, for a kernel and maps of these sides."""
    lengths = tuple(side + pad for side, pad in zip(sides, padding, strict=True))
    moves = [range(pad, pad - side, -1) for pad, side in zip(padding, kernel, strict=True)]
    pixels, outer_pixels = (
        [range(side) for side in area] for area in (sides, _outer_sides(kernel, padding, sides))
    )
    outputs = _sums(lengths, outer_pixels, OF_OUTPUTS, dtype, 1 / math.prod(lengths), 2)
    return (
        _sums(lengths, pixels, OF_INPUTS, dtype),
        _sums(lengths, moves, OF_WEIGHTS, dtype),
        outputs,
    )


def _sums(
    lengths: Sides,
    places: list[range],
    factors: Factors,
    dtype: torch.dtype,
    share: float = 1,
    twice: int = 1,
) -> Sums:
    """`twice` is 2 where a number stands for its conjugate too."""
    (height, width), (rows, columns), alone = lengths, places, 2 - lengths[1] % 2
    across = share * _of_real(width, columns, PARTS, twice)
    down = (
        (_of_real(height, rows, factors, twice), alone),
        (_of_complex(height, rows, factors), (width - alone) // 2),
    )
    return Sums(
        across.to(dtype),
        [matrix.to(dtype).expand(number, -1, -1) for matrix, number in down if number],
    )


def _of_real(length: int, places: range, factors: Factors, twice: int) -> Tensor:
    """Sums of real numbers: one at each frequency that is its own conjugate's, the factors' at each of the others that is kept."""
    waves = _waves(length, places)
    return torch.cat(
        [
            waves[0, [0] if length % 2 else [0, length // 2]],
            twice * _combined(factors, waves[:, 1 : (length + 1) // 2]),
        ]
    )


def _of_complex(length: int, places: range, factors: Factors) -> Tensor:
    """Sums of complex numbers, all real parts before the imaginary ones: the factors' at each frequency."""
    real, imaginary = _waves(length, places)
    return _combined(
        factors,
        torch.stack([torch.cat([real, -imaginary], dim=1), torch.cat([imaginary, real], dim=1)]),
    )


def _waves(length: int, places: range) -> Tensor:
    """Their real and their imaginary parts, with a row for each frequency."""
    angles = 2 * math.pi / length * torch.outer(torch.arange(length), torch.tensor(places)).double()
    return torch.stack([angles.cos(), -angles.sin()])


def _combined(factors: Factors, parts: Tensor) -> Tensor:
    """Sums of a number's parts, number after number."""
    return torch.einsum("fp,plx->lfx", torch.tensor(factors).double(), parts).flatten(0, 1)
