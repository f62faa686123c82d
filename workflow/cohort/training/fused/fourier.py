"""Convolutions in the frequency domain, as products of real matrices.

A convolution is a product of discrete Fourier transforms (DFTs). For small images with many
channels this takes far fewer multiplications than a direct convolution.

- Images are treated as periodic, with a period longer than the image by the padding, so that only
  zeros wrap around.
- The DFT is separable: first along rows, then along columns. Inputs are real, so half of the
  frequencies are the conjugates of others and are left out.
- A complex product takes three real products instead of four (Karatsuba's trick): each factor is
  transformed into three real linear combinations of its real and imaginary part, and three more
  combine the products into the result.

All transforms are therefore real linear maps: outputs = T_out^T (T_in inputs * T_weight weights).
The backward pass uses their adjoints, i.e. the same matrices, transposed.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

Sides = tuple[int, ...]
Factors = tuple[tuple[int, int], ...]
RELATIVE_COST = 2.2  # of a multiplication here to one of a direct convolution, as measured

# Rows are linear combinations of (real part, imaginary part). With inputs a + bi and weights
# c + di, the three products are p = (a + b) c, q = a (d - c), r = b (c + d), and the result is
# (p - r) + (p + q) i. OF_OUTPUTS says to which part of the result each product is added.
PARTS = ((1, 0), (0, 1))
OF_INPUTS, OF_WEIGHTS, OF_OUTPUTS = (
    ((1, 1), (1, 0), (0, 1)),
    ((1, 0), (-1, 1), (1, 1)),
    ((1, 1), (0, 1), (-1, 0)),
)


@dataclass(frozen=True)
class Transform:
    """The two-dimensional real DFT of images (or kernels), followed by linear combinations of the
    real and imaginary parts of each frequency.

    `rows` transforms the pixels of each row. `columns` then transforms each column of the result: a
    batch of matrices for the real columns (frequencies that are their own conjugates) and one for
    the complex columns, whose real parts come before their imaginary parts.
    """

    rows: Tensor
    columns: list[Tensor]

    @property
    def count(self) -> int:
        """The number of coefficients into which one image is transformed."""
        return sum(len(matrices) * matrices.shape[1] for matrices in self.columns)

    @property
    def multiplications(self) -> int:
        """The number of multiplications to transform one image, or to apply the adjoint."""
        of_columns = sum(matrices.numel() for matrices in self.columns)
        return self.rows.numel() * self.columns[0].shape[2] + of_columns

    def transform(self, images: Tensor) -> Tensor:
        """The coefficients of images (sample, channel, height, width) as a stack of matrices:
        (coefficient, sample, channel)."""
        samples, channels, _, width = images.shape
        rows = self.rows @ images.permute(3, 2, 0, 1).reshape(width, -1)
        rows = rows.view(-1, samples * channels)
        coefficients = images.new_empty(self.count, samples * channels)
        parts = self._by_column(rows, 2), self._by_column(coefficients, 1)
        for matrices, of_rows, result in zip(self.columns, *parts, strict=True):
            torch.bmm(matrices, of_rows, out=result)
        return coefficients.view(-1, samples, channels)

    def adjoint(self, coefficients: Tensor) -> Tensor:
        """Apply the transposed linear map: from coefficients to images, channels last."""
        _, samples, channels = coefficients.shape
        (length, width), height = self.rows.shape, self.columns[0].shape[2]
        rows = coefficients.new_empty(length * height, samples * channels)
        parts = self._by_column(coefficients.flatten(1), 1), self._by_column(rows, 2)
        for matrices, of_columns, result in zip(self.columns, *parts, strict=True):
            torch.bmm(matrices.mT, of_columns, out=result)
        images = (self.rows.t() @ rows.view(length, -1)).view(width, height, samples, channels)
        return images.permute(2, 3, 1, 0).contiguous(memory_format=torch.channels_last)

    def _by_column(self, lines: Tensor, dim: int) -> list[Tensor]:
        """Split lines into batches for `columns`; `dim` is the dimension of the matrices that the
        lines are multiplied with (2), or that they result from (1)."""
        parts = lines.split([len(matrices) * matrices.shape[dim] for matrices in self.columns])
        return [
            part.view(len(matrices), matrices.shape[dim], -1)
            for matrices, part in zip(self.columns, parts, strict=True)
        ]


class FourierConvolution:
    """The forward and backward pass of a convolution with stride 1, for one batch.

    `forward` stores the transformed inputs for `backward`.
    """

    def __init__(self, weight: Tensor, padding: Sides, sides: Sides):
        self.of_inputs, self.of_weights, self.of_outputs = _transforms(
            weight.shape[2:], padding, sides, weight.dtype
        )
        self.weights = self.of_weights.transform(weight)

    def forward(self, inputs: Tensor) -> Tensor:
        """The outputs, without bias."""
        self.inputs = self.of_inputs.transform(inputs)
        return self.of_outputs.adjoint(self.inputs @ self.weights.mT)

    def backward(self, gradient: Tensor, needs_input_grad: bool) -> tuple[Tensor, Tensor]:
        """The gradients of the weights and, if needed, of the inputs, from that of the outputs. If
        the latter is not needed, the gradient of the outputs is returned in its place."""
        gradients = self.of_outputs.transform(gradient)
        of_weight = self.of_weights.adjoint(gradients.mT @ self.inputs)
        if not needs_input_grad:
            return of_weight, gradient
        return of_weight, self.of_inputs.adjoint(gradients @ self.weights)


def is_faster(weight: Tensor, padding: Sides, inputs: torch.Size) -> bool:
    """Whether a training step of a convolution on a CPU is faster in the frequency domain, judged
    by the number of multiplications."""
    (outer, inner), kernel = weight.shape[:2], weight.shape[2:]
    samples, sides = inputs[0], inputs[2:]
    if weight.device.type != "cpu" or any(
        pad >= side for pad, side in zip(padding, kernel, strict=True)
    ):
        return False
    of_inputs, of_weights, of_outputs = _transforms(kernel, padding, sides, weight.dtype)
    transforms = (
        samples * (inner * of_inputs.multiplications + outer * of_outputs.multiplications)
        + outer * inner * of_weights.multiplications
    )
    pairs = samples * outer * inner
    direct = math.prod(_output_sides(kernel, padding, sides)) * math.prod(kernel)
    return RELATIVE_COST * (2 * transforms + 3 * of_inputs.count * pairs) < 3 * direct * pairs


def _output_sides(kernel: Sides, padding: Sides, sides: Sides) -> Sides:
    return tuple(
        side + 2 * pad - across + 1
        for side, pad, across in zip(sides, padding, kernel, strict=True)
    )


@functools.lru_cache(maxsize=64)
def _transforms(
    kernel: Sides, padding: Sides, sides: Sides, dtype: torch.dtype
) -> tuple[Transform, Transform, Transform]:
    """The transforms of inputs, weights and outputs, for a kernel and images of these sides.

    The adjoint of the last one is the inverse DFT. Kernels are reflected, because layers compute
    cross-correlations, and shifted by the padding.
    """
    periods = tuple(side + pad for side, pad in zip(sides, padding, strict=True))
    shifts = [range(pad, pad - side, -1) for pad, side in zip(padding, kernel, strict=True)]
    pixels = [range(side) for side in sides]
    output_pixels = [range(side) for side in _output_sides(kernel, padding, sides)]
    norm = 1 / math.prod(periods)
    return (
        _transform(periods, pixels, OF_INPUTS, dtype),
        _transform(periods, shifts, OF_WEIGHTS, dtype),
        _transform(periods, output_pixels, OF_OUTPUTS, dtype, norm, 2),
    )


def _transform(
    periods: Sides,
    places: list[range],
    factors: Factors,
    dtype: torch.dtype,
    norm: float = 1,
    twice: int = 1,
) -> Transform:
    """A transform of images with pixels at these places (rows, columns), scaled by `norm`.

    `twice` is 2 for the inverse DFT, where a frequency also stands for its conjugate, else 1.
    """
    (height, width), (rows, columns) = periods, places
    real = 2 - width % 2  # the number of frequencies that are their own conjugates
    along_rows = norm * _of_real(width, columns, PARTS, twice)
    along_columns = (
        (_of_real(height, rows, factors, twice), real),
        (_of_complex(height, rows, factors), (width - real) // 2),
    )
    return Transform(
        along_rows.to(dtype),
        [matrix.to(dtype).expand(count, -1, -1) for matrix, count in along_columns if count],
    )


def _of_real(period: int, places: range, factors: Factors, twice: int) -> Tensor:
    """The real DFT as a matrix: one row for each frequency that is its own conjugate, then the
    linear combinations `factors` for each of the others, without their conjugates."""
    waves = _dft_matrix(period, places)
    own_conjugates = waves[0, [0] if period % 2 else [0, period // 2]]
    others = _combined(factors, waves[:, 1 : (period + 1) // 2])
    return torch.cat([own_conjugates, twice * others])


def _of_complex(period: int, places: range, factors: Factors) -> Tensor:
    """The complex DFT as a real matrix, for inputs with all real parts before all imaginary parts:
    the linear combinations `factors` for each frequency."""
    real, imaginary = _dft_matrix(period, places)
    parts = torch.cat([real, -imaginary], dim=1), torch.cat([imaginary, real], dim=1)
    return _combined(factors, torch.stack(parts))


def _dft_matrix(period: int, places: range) -> Tensor:
    """The DFT matrix exp(-2 pi i f x / period) as its real and imaginary parts: shape (2, period,
    len(places)), one row for each frequency f, one column for each place x."""
    angles = 2 * math.pi / period * torch.outer(torch.arange(period), torch.tensor(places)).double()
    return torch.stack([angles.cos(), -angles.sin()])


def _combined(factors: Factors, parts: Tensor) -> Tensor:
    """Linear combinations of real and imaginary parts, all those of a frequency together."""
    return torch.einsum("fp,plx->lfx", torch.tensor(factors).double(), parts).flatten(0, 1)
