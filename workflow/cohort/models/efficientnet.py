"""EfficientNets of torchvision, from scratch: how large they are is worked out here from the table of their paper (Tan and Le, 2019)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from cohort.models.model import Model, Shape

if TYPE_CHECKING:
    from torch import nn


class Stage(NamedTuple):
    """Blocks in a row, of which the first has this stride, as the table's B0 has them."""

    expansion: int
    kernel: int
    stride: int
    channels: int
    blocks: int


STAGES = (
    Stage(1, 3, 1, 16, 1),
    Stage(6, 3, 2, 24, 2),
    Stage(6, 5, 2, 40, 2),
    Stage(6, 3, 2, 80, 3),
    Stage(6, 5, 1, 112, 3),
    Stage(6, 5, 2, 192, 4),
    Stage(6, 3, 1, 320, 1),
)
STEM, HEAD = (
    32,
    4,
)  # channels of the first convolution, and how many times as many as the last stage the last one has
NORMALIZED, BIAS = 2, 1  # weights of a channel beside those of its convolution


class Layer(NamedTuple):
    """A convolution with what follows it: how many numbers each of its own is made of, the weights of a channel beside those, its channels,
    its pixels, and how many times as many numbers it and what follows it put out."""

    inputs: int
    beside: int
    channels: int
    pixels: int
    kept: int


@dataclass(frozen=True, kw_only=True)
class EfficientNetB0(Model):
    """The smallest of them. 4,019,077 parameters for the nine classes of PathMNIST."""

    name: ClassVar[str] = "efficientnet-b0"
    width: ClassVar[float] = 1.0
    depth: ClassVar[float] = 1.0
    kept: ClassVar[float] = (
        1.25  # of so many layers one after another's gradients are there at once
    )

    def check(self, shape: Shape) -> None:
        if len(shape) != 3 or shape[0] != 3:
            raise ValueError(
                f"needs images with three color channels, not samples of shape {shape}"
            )

    def multiply_adds(self, shape: Shape, classes: int) -> int:
        return (
            sum(layer.inputs * layer.channels * layer.pixels for layer in self._layers(shape))
            + self._features * classes
        )

    def weights(self, shape: Shape, classes: int) -> int:
        return (
            sum((layer.inputs + layer.beside) * layer.channels for layer in self._layers(shape))
            + (self._features + 1) * classes
        )

    def outputs(self, shape: Shape) -> int:
        return sum(layer.kept * layer.channels * layer.pixels for layer in self._layers(shape))

    def build(self, shape: Shape, classes: int) -> nn.Module:
        from cohort.models.vision import from_torchvision

        network: nn.Module = from_torchvision("models").get_model(
            self.name.replace("-", "_"), weights=None, num_classes=classes
        )
        return network

    @property
    def _features(self) -> int:
        """What the linear layer looks at."""
        return HEAD * self._scaled(STAGES[-1].channels)

    def _scaled(self, channels: int) -> int:
        """A multiple of eight that is near to what the width asks for, and not much less."""
        wanted = channels * self.width
        rounded = max(8, int(wanted + 4) // 8 * 8)
        return rounded if rounded >= 0.9 * wanted else rounded + 8

    def _layers(self, shape: Shape) -> Iterator[Layer]:
        """All convolutions, first to last, those of squeeze and excitation too."""
        sides = _halved(shape[1:])
        channels = self._scaled(STEM)
        yield Layer(9 * shape[0], NORMALIZED, channels, math.prod(sides), 3)
        for stage in STAGES:
            for number in range(math.ceil(stage.blocks * self.depth)):
                after = _halved(sides) if number == 0 and stage.stride == 2 else sides
                yield from _block(
                    stage,
                    channels,
                    self._scaled(stage.channels),
                    math.prod(sides),
                    math.prod(after),
                    number > 0,
                )
                channels, sides = self._scaled(stage.channels), after
        yield Layer(channels, NORMALIZED, self._features, math.prod(sides), 3)


@dataclass(frozen=True, kw_only=True)
class EfficientNetB3(EfficientNetB0):
    """The same, wider and deeper. 10,710,065 parameters for the nine classes of PathMNIST."""

    name: ClassVar[str] = "efficientnet-b3"
    width: ClassVar[float] = 1.2
    depth: ClassVar[float] = 1.4


def _halved(sides: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-side // 2) for side in sides)


def _block(
    stage: Stage, before: int, after: int, pixels: int, left: int, added: bool
) -> Iterator[Layer]:
    """What takes so many channels and pixels to others. Its output is added to its input in all blocks of a stage but the first."""
    wide, squeezed = before * stage.expansion, before // 4
    if stage.expansion > 1:
        yield Layer(
            before, NORMALIZED, wide, pixels, 3
        )  # the convolution, its normalization, its nonlinearity
    yield Layer(
        stage.kernel**2, NORMALIZED, wide, left, 4
    )  # these, and what excitation makes of them
    yield Layer(wide, BIAS, squeezed, 1, 2)
    yield Layer(
        squeezed, BIAS, wide, 1, 3
    )  # with the means of all channels, which squeezing begins with
    yield Layer(
        wide, NORMALIZED, after, left, 3 if added else 2
    )  # a whole block is sometimes left out where it is added to its input
