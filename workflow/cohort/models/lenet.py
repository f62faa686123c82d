"""LeNets: two 5x5 convolutions, each followed by max pooling and ReLU, and three linear layers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from cohort.core.lazy import lazy
from cohort.models.model import Model, Shape, check_images

if TYPE_CHECKING:
    from torch import nn
else:
    nn = lazy("torch.nn")

KERNEL = 5


@dataclass(frozen=True, kw_only=True)
class LeNet(Model):
    """Base of the LeNets, which differ in their widths and padding. They take any number of
    channels and any image that pooling does not use up."""

    channels: ClassVar[tuple[int, int]]
    hidden: ClassVar[tuple[int, int]]
    padding: ClassVar[int]

    def check(self, shape: Shape) -> None:
        check_images(shape, 4 if self.padding else 16)

    def build(self, shape: Shape, classes: int) -> nn.Module:
        layers: list[nn.Module] = []
        for before, after in pairwise((shape[0], *self.channels)):
            layers += [
                nn.Conv2d(before, after, KERNEL, padding=self.padding),
                nn.MaxPool2d(2),
                nn.ReLU(),
            ]
        layers.append(nn.Flatten())
        height, width = self._pooled(shape)
        features = self.channels[-1] * height * width
        for before, after in pairwise((features, *self.hidden, classes)):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def _pooled(self, shape: Shape) -> list[int]:
        """Height and width of the maps after the last pooling."""
        sides = list(shape[1:])
        for _ in self.channels:
            sides = [(side + 2 * self.padding - KERNEL + 1) // 2 for side in sides]
        return sides


@dataclass(frozen=True, kw_only=True)
class LeNet5(LeNet):
    """LeNet-5 of FedEntOpt, and the CNN of NIID-Bench and PECO: 6 and 16 channels without padding,
    120 and 84 units."""

    name: ClassVar[str] = "lenet5"
    channels: ClassVar[tuple[int, int]] = (6, 16)
    hidden: ClassVar[tuple[int, int]] = (120, 84)
    padding: ClassVar[int] = 0


@dataclass(frozen=True, kw_only=True)
class AmlLeNet(LeNet):
    """The network that the AML project trains on CIFAR-100: 64 and 64 channels, padded to keep the
    size, 384 and 192 units."""

    name: ClassVar[str] = "aml-lenet"
    channels: ClassVar[tuple[int, int]] = (64, 64)
    hidden: ClassVar[tuple[int, int]] = (384, 192)
    padding: ClassVar[int] = 2
