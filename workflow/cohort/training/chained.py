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


class Link(Protocol):
    """A layer of the chain: it remembers what its way back needs."""

    def __init__(self, layer: Any): ...

    def forward(self, inputs: Tensor) -> Tensor:
        """The layer's outputs."""

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        """From the gradient of the outputs to that of the inputs, where it is wanted; those of the weights are then with them."""


class ChainedTrainer(SerialTrainer):
    """The serial trainer's steps, bit for bit."""

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
    aten, count, logs = torch.ops.aten, len(targets), outputs.log_softmax(dim=1)
    losses, weight = aten.nll_loss_forward.default(logs, targets, None, 0, -100)
    shares = outputs.new_full((count,), 1 / count)
    slopes = aten.nll_loss_backward.default(shares, logs, targets, None, 0, -100, weight)
    return losses.mean(), aten._log_softmax_backward_data.default(slopes, logs, 1, outputs.dtype)


class _Linear:
    def __init__(self, layer: nn.Linear):
        self.weight, self.bias = layer.weight, layer.bias

    def forward(self, inputs: Tensor) -> Tensor:
        self.inputs = inputs
        return linear(inputs, self.weight, self.bias)

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        _give(self.weight, gradient.t().mm(self.inputs))
        _give(self.bias, gradient.sum(dim=0))
        return gradient.mm(self.weight) if further else gradient


class _Convolution:
    back = torch.ops.aten.convolution_backward.default

    def __init__(self, layer: Any):
        self.weight, self.bias = layer.weight, layer.bias
        self.way = layer.stride, layer.padding, layer.dilation
        self.groups, self.channels = layer.groups, [layer.out_channels]

    def forward(self, inputs: Tensor) -> Tensor:
        self.inputs = inputs
        return conv2d(inputs, self.weight, self.bias, *self.way, self.groups)

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        wanted = [further, True, True]
        before, weight, bias = self.back(gradient, self.inputs, self.weight, self.channels, *self.way, False, [0, 0], self.groups, wanted)
        _give(self.weight, weight)
        _give(self.bias, bias)
        return before


class _Pool:
    there, back = torch.ops.aten.max_pool2d_with_indices.default, torch.ops.aten.max_pool2d_with_indices_backward.default

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
        self.shape = inputs.shape
        return self.layer(inputs)

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        return gradient.view(self.shape)


def _give(parameter: Tensor, gradient: Tensor) -> None:
    """Beside what the objective asks of it."""
    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)


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
