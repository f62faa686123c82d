"""Fused CPU layers: each computes its forward pass and its own backward pass without autograd."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear

from cohort.training.device import is_amd
from cohort.training.fused.fourier import FourierConvolution, is_faster

LANES = 16  # channels that fill a vector register of the measured processors
LARGE = 1 << 21  # multiplications in a matrix product from which oneDNN may be faster


class FusedLayer(Protocol):
    """A layer with its own backward pass, for which `forward` stores what it needs."""

    def forward(self, inputs: Tensor) -> Tensor:
        """The layer's outputs."""

    def backward(self, gradient: Tensor, needs_input_grad: bool) -> Tensor:
        """Turn the gradient of the outputs into that of the inputs, if it is needed, and add the
        gradients of the weights to their `grad`."""


class FusedLinear:
    """A linear layer that computes its own backward pass."""

    def __init__(self, layer: nn.Linear):
        self.weight, self.bias = layer.weight, layer.bias

    def forward(self, inputs: Tensor) -> Tensor:
        self.inputs = inputs
        return _matmul(inputs, self.weight, self.bias)

    def backward(self, gradient: Tensor, needs_input_grad: bool) -> Tensor:
        _accumulate_grad(self.weight, _matmul(gradient.t(), self.inputs.t()))
        _accumulate_grad(self.bias, gradient.sum(dim=0))
        return _matmul(gradient, self.weight.t()) if needs_input_grad else gradient


class FusedConv2d:
    """A convolution, each pass in the faster memory layout, or in the frequency domain.

    The gradient of the biases is a plain sum, which oneDNN's backward pass computes more slowly.
    """

    backward_op = torch.ops.aten.convolution_backward.default

    def __init__(self, layer: Any):
        self.weight, self.bias, self.groups = layer.weight, layer.bias, layer.groups
        self.geometry = layer.stride, layer.padding, layer.dilation
        self.outer, self.inner = max(layer.in_channels, layer.out_channels), layer.in_channels
        self.uses_fourier: dict[torch.Size, bool] = {}  # by the shape of a batch
        self.fourier: FourierConvolution | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        stride, padding, dilation = self.geometry
        if inputs.shape not in self.uses_fourier:
            plain = stride == dilation == (1, 1) and self.groups == 1
            self.uses_fourier[inputs.shape] = plain and is_faster(
                self.weight, padding, inputs.shape
            )
        if self.uses_fourier[inputs.shape]:
            self.fourier = FourierConvolution(self.weight, padding, inputs.shape[2:])
            return self.fourier.forward(inputs).add_(self.bias.view(-1, 1, 1))
        self.fourier = None
        self.inputs = _laid_out(inputs, self.outer)
        return conv2d(
            self.inputs, _laid_out(self.weight, self.outer), self.bias, *self.geometry, self.groups
        )

    def backward(self, gradient: Tensor, needs_input_grad: bool) -> Tensor:
        _accumulate_grad(self.bias, gradient.sum(dim=(0, 2, 3)))
        return self.backward_without_bias(gradient, needs_input_grad)

    def backward_without_bias(self, gradient: Tensor, needs_input_grad: bool) -> Tensor:
        """Like `backward`, but without the gradient of the biases."""
        if self.fourier is not None:
            gradients, gradient = self.fourier.backward(gradient, needs_input_grad)
            _accumulate_grad(self.weight, gradients)
            return gradient
        of_weight = self._gradients(gradient, self.inputs, self.outer, [False, True, False])[1]
        _accumulate_grad(self.weight, of_weight)
        if not needs_input_grad:
            return gradient
        # only the memory layout of `like` matters, its values are not used
        like = self.inputs if self.inner >= LANES else self.inputs.new_empty(self.inputs.shape)
        return self._gradients(gradient, like, self.inner, [True, False, False])[0]

    def _gradients(
        self, gradient: Tensor, inputs: Tensor, channels: int, wanted: list[bool]
    ) -> Any:
        gradient, weight = _laid_out(gradient, channels), _laid_out(self.weight, channels)
        return self.backward_op(
            gradient, inputs, weight, None, *self.geometry, False, [0, 0], self.groups, wanted
        )


class FusedMaxPool2d:
    """Max pooling that computes its own backward pass."""

    forward_op, backward_op = (
        torch.ops.aten.max_pool2d_with_indices.default,
        torch.ops.aten.max_pool2d_with_indices_backward.default,
    )

    def __init__(self, layer: nn.MaxPool2d):
        windows = layer.kernel_size, layer.stride, layer.padding, layer.dilation
        self.windows = [[side, side] if isinstance(side, int) else list(side) for side in windows]
        self.ceil = layer.ceil_mode

    def forward(self, inputs: Tensor) -> Tensor:
        self.inputs = inputs
        outputs, self.places = self.forward_op(inputs, *self.windows, self.ceil)
        return outputs

    def backward(self, gradient: Tensor, needs_input_grad: bool) -> Tensor:
        return self.backward_op(gradient, self.inputs, *self.windows, self.ceil, self.places)


class ConvPool:
    """A convolution and the max pooling of its outputs, where the gradient of the biases is a sum
    over the pooled outputs only."""

    def __init__(self, convolution: FusedConv2d, pool: FusedMaxPool2d):
        self.convolution, self.pool = convolution, pool

    def forward(self, inputs: Tensor) -> Tensor:
        return self.pool.forward(self.convolution.forward(inputs))

    def backward(self, gradient: Tensor, needs_input_grad: bool) -> Tensor:
        _accumulate_grad(self.convolution.bias, gradient.sum(dim=(0, 2, 3)))
        gradient = self.pool.backward(gradient, needs_input_grad=True)
        return self.convolution.backward_without_bias(gradient, needs_input_grad)


class FusedConvPool2x2:
    """A convolution of few channels and the 2x2 max pooling of its outputs, as one convolution.

    It has four times the channels, one for each place in a pooling window, and a stride of two. So
    the channels fill a vector register, and pooling compares whole tensors.
    """

    def __init__(self, convolution: FusedConv2d):
        self.weight, self.bias = convolution.weight, convolution.bias
        self.geometry = [2, 2], convolution.geometry[1], [1, 1]
        outer, inner, height, width = self.weight.shape
        self.moved = self.weight.new_zeros(4 * outer, inner, height + 1, width + 1)
        self.corners, self.biases = self._corners(self.moved), self.bias.new_empty(4 * outer)

    @staticmethod
    def fits(convolution: FusedConv2d, pool: FusedMaxPool2d) -> bool:
        """Whether the convolution has few channels and the pooling is 2x2 without overlap."""
        stride, _, dilation = convolution.geometry
        plain = (
            convolution.outer < LANES and convolution.groups == 1 and stride == dilation == (1, 1)
        )
        return plain and pool.windows == [[2, 2], [2, 2], [0, 0], [1, 1]] and not pool.ceil

    def forward(self, inputs: Tensor) -> Tensor:
        self.inputs = _laid_out(inputs, 1)
        self.corners.copy_(self.weight)
        self.biases.view(4, -1).copy_(self.bias)
        outputs = conv2d(self.inputs, self.moved, self.biases, *self.geometry)
        left, right = outputs.unflatten(1, (2, 2, -1)).unbind(dim=2)
        rows, self.right = torch.maximum(left, right), _greater_mask(right, left)
        above, below = rows.unbind(dim=1)
        self.below = _greater_mask(below, above)
        return torch.maximum(above, below)

    def backward(self, gradient: Tensor, needs_input_grad: bool) -> Tensor:
        _accumulate_grad(self.bias, gradient.sum(dim=(0, 2, 3)))
        quarters = _route(_route(gradient, self.below, 1), self.right, 2).flatten(1, 3)
        wanted = [needs_input_grad, True, False]
        gradients, moved, _ = FusedConv2d.backward_op(
            quarters, self.inputs, self.moved, None, *self.geometry, False, [0, 0], 1, wanted
        )
        _accumulate_grad(self.weight, self._corners(moved.contiguous()).sum(dim=(0, 1)))
        return gradients if needs_input_grad else gradient

    def _corners(self, moved: Tensor) -> Tensor:
        """A view of the kernel within each of four kernels that are larger by one row and column,
        shifted by 0 or 1 down and to the right."""
        quarter, (_, inner, height, width) = moved.numel() // 4, moved.shape
        down = 2 * quarter + width  # two quarters and one row further
        right = quarter + 1  # one quarter and one column further
        return moved.as_strided(
            (2, 2, *self.weight.shape),
            (down, right, inner * height * width, height * width, width, 1),
        )


class FusedReLU:
    """A ReLU that computes its own backward pass."""

    backward_op = torch.ops.aten.threshold_backward.default

    def __init__(self, layer: nn.ReLU): ...

    def forward(self, inputs: Tensor) -> Tensor:
        self.outputs = inputs.relu()
        return self.outputs

    def backward(self, gradient: Tensor, needs_input_grad: bool) -> Tensor:
        return self.backward_op(gradient, self.outputs, 0)


class FusedFlatten:
    """Flattens each sample, and reshapes gradients back."""

    def __init__(self, layer: nn.Flatten):
        self.layer = layer

    def forward(self, inputs: Tensor) -> Tensor:
        self.inputs = inputs
        return self.layer(inputs)

    def backward(self, gradient: Tensor, needs_input_grad: bool) -> Tensor:
        return torch.empty_like(self.inputs).copy_(gradient.view(self.inputs.shape))


def _accumulate_grad(parameter: Tensor, gradient: Tensor) -> None:
    """Add to the gradient that a proximal term may already have left."""
    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)


def _matmul(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """`left` times the transpose of `right`, plus a bias. Large products take half the time with
    oneDNN on an AMD EPYC, where PyTorch's default (MKL) does not use all of the processor; on an
    Intel Xeon they take longer."""
    is_large = left.numel() * len(right) >= LARGE
    if is_large and left.dtype == torch.float32 and left.device.type == "cpu":
        onednn = onednn_linear()
        if onednn is not None:
            return onednn(left, right, bias, "none", [], "")
    return linear(left, right, bias)


@functools.cache
def onednn_linear() -> Callable[..., Tensor] | None:
    """oneDNN's linear layer where it is the faster one, if this PyTorch has it."""
    return getattr(torch.ops.mkldnn, "_linear_pointwise", None) if is_amd() else None


def _laid_out(tensor: Tensor, channels: int) -> Tensor:
    """Channels last if there are enough of them to fill a vector register, else channels first."""
    if channels >= LANES:
        return tensor.contiguous(memory_format=torch.channels_last)
    # a single channel has both layouts' strides until it is viewed anew
    return tensor.contiguous().view(-1).view(tensor.shape)


def _greater_mask(left: Tensor, right: Tensor) -> Tensor:
    """1 where `left` is greater, else 0, in the tensors' own dtype, which is faster than bool."""
    return torch.gt(left, right, out=torch.empty_like(left))


def _route(gradient: Tensor, second: Tensor, dim: int) -> Tensor:
    """Split a gradient along a new dimension of two: to the second where `second` is 1, else to the
    first."""
    parts = gradient.new_empty(*gradient.shape[:dim], 2, *gradient.shape[dim:])
    first, last = parts.unbind(dim)
    torch.sub(gradient, torch.mul(gradient, second, out=last), out=first)
    return parts


FUSED: dict[type[nn.Module], Callable[[Any], FusedLayer]] = {
    nn.Linear: FusedLinear,
    nn.Conv2d: FusedConv2d,
    nn.MaxPool2d: FusedMaxPool2d,
    nn.ReLU: FusedReLU,
    nn.Flatten: FusedFlatten,
}
