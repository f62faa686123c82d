"""LeNets: two 5x5 convolutions, each rectified and pooled, and three linear layers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from cohort.models.model import Model, Shape

if TYPE_CHECKING:
    from torch import nn

KERNEL = 5


@dataclass(frozen=True, kw_only=True)
class LeNet(Model):
    """What the family shares; it takes any number of channels and any size that leaves something to the linear layers."""

    channels: ClassVar[tuple[int, int]]
    hidden: ClassVar[tuple[int, int]]
    padding: ClassVar[int]

    def check(self, shape: Shape) -> None:
        if len(shape) != 3 or min(self._sizes(shape)[-1]) < 2:
            least = 4 if self.padding else 16
            raise ValueError(
                f"needs images of at least {least}x{least} pixels, not samples of shape {shape}"
            )

    def multiply_adds(self, shape: Shape, classes: int) -> int:
        depths = pairwise((shape[0], *self.channels))
        pixels = map(math.prod, self._sizes(shape))
        convolutions = sum(
            KERNEL**2 * before * after * size
            for (before, after), size in zip(depths, pixels, strict=True)
        )
        return convolutions + sum(
            before * after for before, after in pairwise(self._widths(shape, classes))
        )

    def weights(self, shape: Shape, classes: int) -> int:
        convolutions = sum(
            (KERNEL**2 * before + 1) * after
            for before, after in pairwise((shape[0], *self.channels))
        )
        return convolutions + sum(
            (before + 1) * after for before, after in pairwise(self._widths(shape, classes))
        )

    def outputs(self, shape: Shape) -> int:
        convolutions = zip(self.channels, self._sizes(shape), strict=True)
        convolved = sum(
            depth * (height * width + 2 * (height // 2) * (width // 2))
            for depth, (height, width) in convolutions
        )
        return convolved + 2 * sum(self.hidden)

    def build(self, shape: Shape, classes: int) -> nn.Module:
        from torch import nn

        layers: list[nn.Module] = []
        for before, after in pairwise((shape[0], *self.channels)):
            layers += [
                nn.Conv2d(before, after, KERNEL, padding=self.padding),
                nn.MaxPool2d(2),
                nn.ReLU(),
            ]
        layers.append(nn.Flatten())
        for before, after in pairwise(self._widths(shape, classes)):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def _sizes(self, shape: Shape) -> list[tuple[int, int]]:
        """Height and width that each convolution gives."""
        sizes, (height, width) = [], shape[1:]
        for _ in self.channels:
            height, width = (side + 2 * self.padding - KERNEL + 1 for side in (height, width))
            sizes.append((height, width))
            height, width = height // 2, width // 2
        return sizes

    def _widths(self, shape: Shape, classes: int) -> tuple[int, ...]:
        """Of the linear layers, from what the last pooling leaves to the classes."""
        height, width = self._sizes(shape)[-1]
        return self.channels[-1] * (height // 2) * (width // 2), *self.hidden, classes


@dataclass(frozen=True, kw_only=True)
class LeNet5(LeNet):
    """6 and 16 channels without padding, 120 and 84 units: LeNet-5 of FedEntOpt and the CNN of NIID-Bench and PECO."""

    name: ClassVar[str] = "lenet5"
    channels: ClassVar[tuple[int, int]] = (6, 16)
    hidden: ClassVar[tuple[int, int]] = (120, 84)
    padding: ClassVar[int] = 0


@dataclass(frozen=True, kw_only=True)
class AmlLeNet(LeNet):
    """64 and 64 channels padded to keep the size, 384 and 192 units: what the AML project trains on CIFAR-100."""

    name: ClassVar[str] = "aml-lenet"
    channels: ClassVar[tuple[int, int]] = (64, 64)
    hidden: ClassVar[tuple[int, int]] = (384, 192)
    padding: ClassVar[int] = 2
