"""The chained trainer: one client after another, on networks that are a chain of common layers. It walks the chain back by itself, because
PyTorch's graph of a step takes longer than it should where batches are small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear

from cohort.cell import Settings
from cohort.data.samples import Samples
from cohort.training.objectives import Objective
from cohort.training.objectives.cross_entropy import CrossEntropy
from cohort.training.serial import SerialTrainer

LANES = 16  # channels that fill a register of the processors that were measured
MEAN = 1  # of the losses of a batch, in PyTorch's count of reductions
LARGE = 1 << 21  # multiplications in a product of matrices
ONEDNN = getattr(torch.ops.mkldnn, "_linear_pointwise", None)


class Link(Protocol):
    """A layer of the chain: it remembers what its way back needs."""

    def __init__(self, layer: Any): ...

    def forward(self, inputs: Tensor) -> Tensor:
        """The layer's outputs."""

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        """From the gradient of the outputs to that of the inputs, where it is wanted; those of the weights are then with them."""


class ChainedTrainer(SerialTrainer):
    """The serial trainer's steps, but for rounding."""

    name: ClassVar[str] = "chained"

    def __init__(self, model: nn.Module, settings: Settings, objective: Objective, samples: Samples, shards: list[np.ndarray]):
        super().__init__(model, settings, objective, samples, shards)
        self.chain = [LINKS[type(layer)](layer) for layer in model.children()]

    @classmethod
    def fits(cls, model: nn.Module, settings: Settings) -> bool:
        """In the federated procedure, for a chain of layers that it knows."""
        chain = isinstance(model, nn.Sequential) and all(_is_plain(layer) for layer in model)
        return chain and settings.procedure == "federated" and settings.precision != "bfloat16"

    @torch.no_grad()
    def _backward(self, inputs: Tensor, targets: Tensor, facts: Tensor, bias: Tensor, anchor: Sequence[Tensor]) -> Tensor:
        outputs = inputs
        for link in self.chain:
            outputs = link.forward(outputs)
        if type(self.objective) is CrossEntropy:
            loss, gradient = _cross_entropy(outputs, targets)
        else:
            loss, gradient = self._by_autograd(outputs, targets, facts, bias, anchor)
        for link in reversed(self.chain):
            gradient = link.backward(gradient, link is not self.chain[0])
        return loss

    @torch.enable_grad()
    def _by_autograd(
        self, outputs: Tensor, targets: Tensor, facts: Tensor, bias: Tensor, anchor: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The objective's loss, and its gradient; what it asks of weights directly is then with them."""
        loss = self._loss(outputs.requires_grad_(), targets, facts, bias, anchor)
        loss.backward()
        assert outputs.grad is not None
        return loss.detach(), outputs.grad


def _cross_entropy(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The same for the mean of plain cross-entropy over a batch, written down."""
    aten, logs = torch.ops.aten, outputs.log_softmax(dim=1)
    loss, weight = aten.nll_loss_forward.default(logs, targets, None, MEAN, -100)
    slopes = aten.nll_loss_backward.default(torch.ones_like(loss), logs, targets, None, MEAN, -100, weight)
    return loss, aten._log_softmax_backward_data.default(slopes, logs, 1, outputs.dtype)


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


class _Convolution:
    """Each pass in the layout in which it is faster. Of the biases' gradient oneDNN makes more work than a sum is."""

    back = torch.ops.aten.convolution_backward.default

    def __init__(self, layer: Any):
        self.weight, self.bias, self.groups = layer.weight, layer.bias, layer.groups
        self.way = layer.stride, layer.padding, layer.dilation
        self.outer, self.inner = max(layer.in_channels, layer.out_channels), layer.in_channels

    def forward(self, inputs: Tensor) -> Tensor:
        self.inputs = _laid(inputs, self.outer)
        return conv2d(self.inputs, _laid(self.weight, self.outer), self.bias, *self.way, self.groups)

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        _give(self.weight, self._slopes(gradient, self.inputs, self.outer, [False, True, False])[1])
        _give(self.bias, gradient.sum(dim=(0, 2, 3)))
        if not further:
            return gradient
        like = self.inputs if self.inner >= LANES else self.inputs.new_empty(self.inputs.shape)  # their values do not matter
        return self._slopes(gradient, like, self.inner, [True, False, False])[0]

    def _slopes(self, gradient: Tensor, inputs: Tensor, channels: int, wanted: list[bool]) -> Any:
        gradient, weight = _laid(gradient, channels), _laid(self.weight, channels)
        return self.back(gradient, inputs, weight, None, *self.way, False, [0, 0], self.groups, wanted)


class _Pool:
    there, back = torch.ops.aten.max_pool2d_with_indices.default, torch.ops.aten.max_pool2d_with_indices_backward.default

    def __init__(self, layer: nn.MaxPool2d):
        windows = layer.kernel_size, layer.stride, layer.padding, layer.dilation
        self.windows = [[side, side] if isinstance(side, int) else list(side) for side in windows]
        self.ceil = layer.ceil_mode
        self.halves = self.windows == [[2, 2], [2, 2], [0, 0], [1, 1]] and not self.ceil

    def forward(self, inputs: Tensor) -> Tensor:
        self.inputs = inputs
        if self.halves and inputs.is_contiguous():
            outputs, self.places = _halved(inputs)
        else:
            outputs, self.places = self.there(inputs, *self.windows, self.ceil)
        return outputs

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        return self.back(gradient, self.inputs, *self.windows, self.ceil, self.places)


class _Rectifier:
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
    PyTorch's own, which is Intel's, does not use all of the processor."""
    if ONEDNN is None or left.dtype != torch.float32 or left.device.type != "cpu" or left.numel() * len(right) < LARGE:
        return linear(left, right, bias)
    return ONEDNN(left, right, bias, "none", [], "")


def _laid(tensor: Tensor, channels: int) -> Tensor:
    """Laid with its channels side by side if so many fill a register, else one after another."""
    if channels >= LANES:
        return tensor.contiguous(memory_format=torch.channels_last)
    return tensor.contiguous().view(-1).view(tensor.shape)  # a single channel is both, until it is said again


def _halved(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """The greatest of each 2x2 pixels and its place, the first of equals, of channels that lie one after another."""
    height, width = (side // 2 * 2 for side in inputs.shape[2:])
    a, b, c, d = (inputs[..., row:height:2, column:width:2] for row in (0, 1) for column in (0, 1))
    above, below, in_b, in_d = torch.maximum(a, b), torch.maximum(c, d), b > a, d > c
    lower = below > above
    right = in_b ^ (lower & (in_b ^ in_d))  # in_d where the greatest is below, else in_b
    rows, columns = (torch.arange(0, side, 2, device=inputs.device) for side in (height, width))
    corners = rows.unsqueeze(1) * inputs.shape[3] + columns
    return torch.maximum(above, below), corners + torch.add(right.short(), lower.short(), alpha=inputs.shape[3])


def _is_plain(layer: nn.Module) -> bool:
    """Whether it is of a known kind, with a bias if it has weights, and pads with zeros, if at all."""
    as_usual = getattr(layer, "bias", True) is not None and getattr(layer, "padding_mode", "zeros") == "zeros"
    return type(layer) in LINKS and as_usual and not isinstance(getattr(layer, "padding", 0), str)


LINKS: dict[type[nn.Module], type[Link]] = {
    nn.Linear: _Linear,
    nn.Conv2d: _Convolution,
    nn.MaxPool2d: _Pool,
    nn.ReLU: _Rectifier,
    nn.Flatten: _Flattening,
}
