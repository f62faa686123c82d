"""Small networks for small images and tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.lazy import lazy
from cohort.models.model import Model, Shape, check_images

if TYPE_CHECKING:
    from torch import nn
else:
    nn = lazy("torch.nn")


@dataclass(frozen=True, kw_only=True)
class SmallMLP(Model):
    """A multilayer perceptron with one hidden layer of 64 units."""

    name: ClassVar[str] = "small-mlp"
    kinds: ClassVar[tuple[str, ...]] = ("images", "table")
    hidden: ClassVar[int] = 64

    def build(self, shape: Shape, classes: int) -> nn.Module:
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(math.prod(shape), self.hidden),
            nn.ReLU(),
            nn.Linear(self.hidden, classes),
        )


@dataclass(frozen=True, kw_only=True)
class SmallCNN(Model):
    """Two 3x3 convolutions with 16 and 32 channels, each followed by max pooling, and a linear
    layer."""

    name: ClassVar[str] = "small-cnn"
    channels: ClassVar[tuple[int, int]] = (16, 32)

    def check(self, shape: Shape) -> None:
        check_images(shape, 4)

    def build(self, shape: Shape, classes: int) -> nn.Module:
        depth, height, width = shape
        first, second = self.channels
        return nn.Sequential(
            nn.Conv2d(depth, first, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(first, second, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(second * (height // 4) * (width // 4), classes),
        )
