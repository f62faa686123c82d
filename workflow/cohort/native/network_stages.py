"""Networks as stages: each a layer with weights, and the pooling and ReLU that follow it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

Shape = tuple[int, int, int]


class Unsupported(Exception):
    """There is no native code for something, which the message names."""

    def __init__(self, what: object):
        super().__init__(f"no native code for {what}")


@dataclass(frozen=True)
class Stage:
    """A convolution with stride 1 or a linear layer, then 2x2 max pooling and ReLU if set.

    `inputs` is the shape of the stage's inputs: channels, height, width. The weights begin at
    `weight` in the concatenation of all the network's weights, and the biases follow them.
    """

    inputs: Shape
    outer: int
    weight: int
    kernel: int = 1
    padding: int = 0
    is_convolution: bool = False
    pools: bool = False
    rectifies: bool = False

    @property
    def inner(self) -> int:
        """The number of input channels."""
        return self.inputs[0]

    @property
    def taps(self) -> int:
        """The number of weights of the kernel for a pair of channels."""
        return self.kernel**2

    @property
    def bias(self) -> int:
        """The index of the first bias among the network's weights."""
        return self.weight + self.inner * self.outer * self.taps

    @property
    def end(self) -> int:
        """The index of the next stage's first weight."""
        return self.bias + self.outer

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width before pooling, without a last row or column that pooling leaves out."""
        height, width = (side + 2 * self.padding - self.kernel + 1 for side in self.inputs[1:])
        return (height // 2 * 2, width // 2 * 2) if self.pools else (height, width)

    @property
    def outputs(self) -> Shape:
        """The shape of the stage's outputs, which the next stage reads."""
        height, width = self.sides
        return (self.outer, height // 2, width // 2) if self.pools else (self.outer, height, width)


def stages_of(model: nn.Module, shape: Sequence[int]) -> list[Stage]:
    """The stages of a network for samples of a shape; Unsupported if a layer has no native code."""
    if not isinstance(model, nn.Sequential):
        raise Unsupported(f"{type(model).__name__}, which is not a sequence of layers")
    stages: list[Stage] = []
    outputs = sample_shape(shape)
    for layer in _layers(model):
        last = stages[-1] if stages else None
        if isinstance(layer, nn.Conv2d | nn.Linear):
            stages.append(_stage(layer, outputs, last.end if last else 0))
        elif isinstance(layer, nn.ReLU) and last:
            stages[-1] = replace(last, rectifies=True)
        elif isinstance(layer, nn.MaxPool2d) and last and last.is_convolution and not last.pools:
            _check_pooling(layer)
            stages[-1] = replace(last, pools=True)
        elif not isinstance(layer, nn.Flatten):
            raise Unsupported(type(layer).__name__)
        outputs = stages[-1].outputs if stages else outputs
    if not stages or min(min(stage.outputs) for stage in stages) < 1:
        raise Unsupported("a network without outputs")
    if stages[-1].is_convolution or stages[-1].rectifies:
        raise Unsupported("a network that does not end with a linear layer")
    return stages


def sample_shape(shape: Sequence[int]) -> Shape:
    """The shape of a sample as channels, height and width."""
    if len(shape) != 3:
        return math.prod(shape), 1, 1
    channels, height, width = shape
    return channels, height, width


def _layers(model: nn.Module) -> Iterator[nn.Module]:
    for layer in model.children():
        yield from _layers(layer) if isinstance(layer, nn.Sequential) else (layer,)


def _stage(layer: Any, inputs: Shape, weight: int) -> Stage:
    if layer.bias is None:
        raise Unsupported(f"{type(layer).__name__} without bias")
    if isinstance(layer, nn.Linear):
        stage = Stage((math.prod(inputs), 1, 1), layer.out_features, weight)
        inner = layer.in_features
    else:
        _check_convolution(layer)
        kernel, padding = layer.kernel_size[0], layer.padding[0]
        stage = Stage(inputs, layer.out_channels, weight, kernel, padding, is_convolution=True)
        inner = layer.in_channels
    if stage.inner != inner:
        raise Unsupported(f"{type(layer).__name__} of {inner} inputs after {stage.inner}")
    return stage


def _check_convolution(layer: nn.Conv2d) -> None:
    height, width = layer.kernel_size
    is_plain = (
        layer.stride == layer.dilation == (1, 1)
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and not isinstance(layer.padding, str)
        and height == width
        and len({*layer.padding}) == 1
        and layer.padding[0] < height
    )
    if not is_plain:
        raise Unsupported(layer)


def _check_pooling(layer: nn.MaxPool2d) -> None:
    sizes = {layer.kernel_size, layer.stride} - {2, (2, 2)}
    if sizes or layer.padding not in (0, (0, 0)) or layer.dilation not in (1, (1, 1)):
        raise Unsupported(layer)
    if layer.ceil_mode or layer.return_indices:
        raise Unsupported(layer)
