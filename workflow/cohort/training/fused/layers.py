"""The links of the chained trainer: common layers, each with its way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear

from cohort.training.fused.fourier import FourierConvolution, pays
from cohort.training.job.provenance import device_name

LANES = 16  # channels that fill a register of the processors that were measured
LARGE = 1 << 21  # multiplications in a product of matrices
ONEDNN = (
    getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if "AMD" in device_name(torch.device("cpu"))
    else None
)


class Link(Protocol):
    """A part of the chain: it remembers what its way back needs."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Its outputs."""

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        """From the gradient of the outputs to that of the inputs, where it is wanted; those of the weights are then with them."""


class _Linear:
    def __init__(self, layer: nn.Linear):
        self.weight, self.bias = layer.weight, layer.bias

    def forward(self, inputs: Tensor) -> Tensor:
        self.inputs = inputs
        return _product(inputs, self.weight, self.bias)

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        _give(self.weight, _product(gradient.t(), self.inputs.t()))
        _give(self.bias, gradient.sum(dim=0))
        return _product(gradient, self.weight.t()) if further else gradient


class Convolution:
    """Each pass in the layout in which it is faster, or by frequencies. Of the biases' gradient oneDNN makes more work than a sum is."""

    back = torch.ops.aten.convolution_backward.default

    def __init__(self, layer: Any):
        self.weight, self.bias, self.groups = layer.weight, layer.bias, layer.groups
        self.way = layer.stride, layer.padding, layer.dilation
        self.outer, self.inner = max(layer.in_channels, layer.out_channels), layer.in_channels
        self.by_frequencies: dict[torch.Size, bool] = {}  # whether batches of a shape are
        self.fourier: FourierConvolution | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        stride, padding, dilation = self.way
        if inputs.shape not in self.by_frequencies:
            plain = stride == dilation == (1, 1) and self.groups == 1
            self.by_frequencies[inputs.shape] = plain and pays(self.weight, padding, inputs.shape)
        if self.by_frequencies[inputs.shape]:
            self.fourier = FourierConvolution(self.weight, padding, inputs.shape[2:])
            return self.fourier.forward(inputs).add_(self.bias.view(-1, 1, 1))
        self.fourier = None
        self.inputs = _laid(inputs, self.outer)
        return conv2d(
            self.inputs, _laid(self.weight, self.outer), self.bias, *self.way, self.groups
        )

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        _give(self.bias, gradient.sum(dim=(0, 2, 3)))
        return self.without_bias(gradient, further)

    def without_bias(self, gradient: Tensor, further: bool) -> Tensor:
        """The same, where the gradient of the biases is known."""
        if self.fourier is not None:
            slopes, gradient = self.fourier.backward(gradient, further)
            _give(self.weight, slopes)
            return gradient
        _give(self.weight, self._slopes(gradient, self.inputs, self.outer, [False, True, False])[1])
        if not further:
            return gradient
        like = (
            self.inputs if self.inner >= LANES else self.inputs.new_empty(self.inputs.shape)
        )  # their values do not matter
        return self._slopes(gradient, like, self.inner, [True, False, False])[0]

    def _slopes(self, gradient: Tensor, inputs: Tensor, channels: int, wanted: list[bool]) -> Any:
        gradient, weight = _laid(gradient, channels), _laid(self.weight, channels)
        return self.back(
            gradient, inputs, weight, None, *self.way, False, [0, 0], self.groups, wanted
        )


class Pool:
    there, back = (
        torch.ops.aten.max_pool2d_with_indices.default,
        torch.ops.aten.max_pool2d_with_indices_backward.default,
    )

    def __init__(self, layer: nn.MaxPool2d):
        windows = layer.kernel_size, layer.stride, layer.padding, layer.dilation
        self.windows = [[side, side] if isinstance(side, int) else list(side) for side in windows]
        self.ceil = layer.ceil_mode

    def forward(self, inputs: Tensor) -> Tensor:
        self.inputs = inputs
        outputs, self.places = self.there(inputs, *self.windows, self.ceil)
        return outputs

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        return self.back(gradient, self.inputs, *self.windows, self.ceil, self.places)


class Pooled:
    """A convolution and the pooling of its outputs: the gradient of the biases is a sum over the few that were greatest."""

    def __init__(self, convolution: Convolution, pool: Pool):
        self.convolution, self.pool = convolution, pool

    def forward(self, inputs: Tensor) -> Tensor:
        return self.pool.forward(self.convolution.forward(inputs))

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        _give(self.convolution.bias, gradient.sum(dim=(0, 2, 3)))
        return self.convolution.without_bias(self.pool.backward(gradient, True), further)


class Quartered:
    """A convolution of few channels and the greatest of each 2x2 of its outputs. The four are channels of one convolution that goes two
    pixels at a time, with the kernel moved for each: so channels fill a register, and the pooling compares whole tensors."""

    def __init__(self, convolution: Convolution):
        self.weight, self.bias, self.back = convolution.weight, convolution.bias, convolution.back
        self.way = [2, 2], convolution.way[1], [1, 1]
        outer, inner, height, width = self.weight.shape
        self.moved = self.weight.new_zeros(4 * outer, inner, height + 1, width + 1)
        self.corners, self.biases = self._corners(self.moved), self.bias.new_empty(4 * outer)

    @staticmethod
    def fits(convolution: Convolution, pool: Pool) -> bool:
        """Whether nothing but its padding is unusual."""
        stride, _, dilation = convolution.way
        plain = (
            convolution.outer < LANES and convolution.groups == 1 and stride == dilation == (1, 1)
        )
        return plain and pool.windows == [[2, 2], [2, 2], [0, 0], [1, 1]] and not pool.ceil

    def forward(self, inputs: Tensor) -> Tensor:
        self.inputs = _laid(inputs, 1)
        self.corners.copy_(self.weight)
        self.biases.view(4, -1).copy_(self.bias)
        outputs = conv2d(self.inputs, self.moved, self.biases, *self.way)
        left, right = outputs.unflatten(1, (2, 2, -1)).unbind(dim=2)
        rows, self.right = torch.maximum(left, right), _greater(right, left)
        above, below = rows.unbind(dim=1)
        self.below = _greater(below, above)
        return torch.maximum(above, below)

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        _give(self.bias, gradient.sum(dim=(0, 2, 3)))
        quarters = _parted(_parted(gradient, self.below, 1), self.right, 2).flatten(1, 3)
        wanted = [further, True, False]
        slopes, moved, _ = self.back(
            quarters, self.inputs, self.moved, None, *self.way, False, [0, 0], 1, wanted
        )
        _give(self.weight, self._corners(moved.contiguous()).sum(dim=(0, 1)))
        return slopes if further else gradient

    def _corners(self, moved: Tensor) -> Tensor:
        """Where the kernel lies in each of four that are larger by a pixel, by how far it is moved down and to the right."""
        quarter, (_, inner, height, width) = moved.numel() // 4, moved.shape
        down, right = (
            2 * quarter + width,
            quarter + 1,
        )  # to the quarter after the next, and a line on; to the next, and a pixel on
        return moved.as_strided(
            (2, 2, *self.weight.shape),
            (down, right, inner * height * width, height * width, width, 1),
        )


class Rectifier:
    back = torch.ops.aten.threshold_backward.default

    def __init__(self, layer: nn.ReLU): ...

    def forward(self, inputs: Tensor) -> Tensor:
        self.outputs = inputs.relu()
        return self.outputs

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        return self.back(gradient, self.outputs, 0)


class _Flattening:
    def __init__(self, layer: nn.Flatten):
        self.layer = layer

    def forward(self, inputs: Tensor) -> Tensor:
        self.inputs = inputs
        return self.layer(inputs)

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        return torch.empty_like(self.inputs).copy_(gradient.view(self.inputs.shape))


def _give(parameter: Tensor, gradient: Tensor) -> None:
    """Beside what the objective asks of it."""
    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)


def _product(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """`left` times the transpose of `right`, plus a bias. Of large ones oneDNN's product takes about half the time on an AMD EPYC, where
    PyTorch's own, which is Intel's, does not use all of the processor; on an Intel Xeon it takes longer."""
    if (
        ONEDNN is None
        or left.dtype != torch.float32
        or left.device.type != "cpu"
        or left.numel() * len(right) < LARGE
    ):
        return linear(left, right, bias)
    return ONEDNN(left, right, bias, "none", [], "")


def _laid(tensor: Tensor, channels: int) -> Tensor:
    """Laid with its channels side by side if so many fill a register, else one after another."""
    if channels >= LANES:
        return tensor.contiguous(memory_format=torch.channels_last)
    return (
        tensor.contiguous().view(-1).view(tensor.shape)
    )  # a single channel is both, until it is said again


def _greater(left: Tensor, right: Tensor) -> Tensor:
    """1 where it is, else 0, as a number, which is faster than as a truth."""
    return torch.gt(left, right, out=torch.empty_like(left))


def _parted(gradient: Tensor, second: Tensor, dim: int) -> Tensor:
    """Along a new dimension of two: it goes to the second where that is 1, else to the first."""
    parts = gradient.new_empty(*gradient.shape[:dim], 2, *gradient.shape[dim:])
    first, last = parts.unbind(dim)
    torch.sub(gradient, torch.mul(gradient, second, out=last), out=first)
    return parts


LINKS: dict[type[nn.Module], Callable[[Any], Link]] = {
    nn.Linear: _Linear,
    nn.Conv2d: Convolution,
    nn.MaxPool2d: Pool,
    nn.ReLU: Rectifier,
    nn.Flatten: _Flattening,
}
