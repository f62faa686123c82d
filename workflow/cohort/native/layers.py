"""The layers of a network: each with weights, and the pooling and ReLU that follow it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import nn

Shape = tuple[int, int, int]


class Unsupported(Exception):
    """There is no native code for something, which the message names."""

    def __init__(self, what: object):
        super().__init__(f"no native code for {what}")


@dataclass(frozen=True)
class Layer:
    """A convolution with stride 1 or a linear layer, then 2x2 max pooling and ReLU if set. `inputs`
    is the shape of its inputs: channels, height, width. The weights begin at `weight` in the
    concatenation of all the network's weights, and the biases follow them."""

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
        """The index of the next layer's first weight."""
        return self.bias + self.outer

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width before pooling, without a last row or column that pooling leaves out."""
        height, width = (side + 2 * self.padding - self.kernel + 1 for side in self.inputs[1:])
        return (height // 2 * 2, width // 2 * 2) if self.pools else (height, width)

    @property
    def outputs(self) -> Shape:
        """The shape of the layer's outputs, which the next layer reads."""
        height, width = self.sides
        return (self.outer, height // 2, width // 2) if self.pools else (self.outer, height, width)


def layers_of(model: nn.Module, shape: Sequence[int]) -> tuple[Layer, ...]:
    """The layers of a network for samples of a shape; Unsupported if one has no native code."""
    if type(model) is not nn.Sequential:
        raise Unsupported(f"{type(model).__name__}, which is not a sequence of layers")
    layers: list[Layer] = []
    outputs = sample_shape(shape)
    for _, module in model.named_modules(remove_duplicate=False):
        last, kind = layers[-1] if layers else None, type(module)  # a subclass may do anything
        if kind in (nn.Conv2d, nn.Linear):
            layers.append(_layer(module, outputs, last.end if last else 0))
        elif kind is nn.ReLU and last:
            layers[-1] = replace(last, rectifies=True)
        elif kind is nn.MaxPool2d and last and last.is_convolution and not last.pools:
            sizes = {module.kernel_size, module.stride} - {2, (2, 2)}
            is_shifted = module.padding not in (0, (0, 0)) or module.dilation not in (1, (1, 1))
            if sizes or is_shifted or module.ceil_mode or module.return_indices:
                raise Unsupported(module)
            layers[-1] = replace(last, pools=True)
        elif kind not in (nn.Flatten, nn.Sequential):
            raise Unsupported(kind.__name__)
        outputs = layers[-1].outputs if layers else outputs
    if not layers or min(min(layer.outputs) for layer in layers) < 1:
        raise Unsupported("a network without outputs")
    if layers[-1].is_convolution or layers[-1].rectifies:
        raise Unsupported("a network that does not end with a linear layer")
    return tuple(layers)


def sample_shape(shape: Sequence[int]) -> Shape:
    """The shape of a sample as channels, height and width."""
    if len(shape) != 3:
        return math.prod(shape), 1, 1
    channels, height, width = shape
    return channels, height, width


def _layer(module: nn.Conv2d | nn.Linear, inputs: Shape, weight: int) -> Layer:
    if module.bias is None:
        raise Unsupported(f"{type(module).__name__} without bias")
    if isinstance(module, nn.Linear):
        layer = Layer((math.prod(inputs), 1, 1), module.out_features, weight)
        inner = module.in_features
    else:
        height, width = module.kernel_size
        is_plain = (
            module.stride == module.dilation == (1, 1)
            and module.groups == 1
            and module.padding_mode == "zeros"
            and not isinstance(module.padding, str)
            and height == width
            and len({*module.padding}) == 1
            and module.padding[0] < height
        )
        if not is_plain:
            raise Unsupported(module)
        padding = int(module.padding[0])
        layer = Layer(inputs, module.out_channels, weight, height, padding, is_convolution=True)
        inner = module.in_channels
    if layer.inner != inner:
        raise Unsupported(f"{type(module).__name__} of {inner} inputs after {layer.inner}")
    return layer
