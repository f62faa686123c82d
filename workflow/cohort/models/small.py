"""Small networks for small images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.models.model import Model, Shape

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class SmallMLP(Model):
    """One hidden layer of 64 units."""

    name: ClassVar[str] = "small-mlp"
    kinds: ClassVar[tuple[str, ...]] = ("images", "table")
    hidden: ClassVar[int] = 64

    def multiply_adds(self, shape: Shape, classes: int) -> int:
        return (math.prod(shape) + classes) * self.hidden

    def weights(self, shape: Shape, classes: int) -> int:
        return self.multiply_adds(shape, classes) + self.hidden + classes

    def outputs(self, shape: Shape) -> int:
        return 2 * self.hidden

    def build(self, shape: Shape, classes: int) -> nn.Module:
        from torch import nn

        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(math.prod(shape), self.hidden),
            nn.ReLU(),
            nn.Linear(self.hidden, classes),
        )


@dataclass(frozen=True, kw_only=True)
class SmallCNN(Model):
    """Two 3x3 convolutions of 16 and 32 channels, each pooled, and a linear head."""

    name: ClassVar[str] = "small-cnn"
    channels: ClassVar[tuple[int, int]] = (16, 32)

    def check(self, shape: Shape) -> None:
        if len(shape) != 3 or min(shape[1:]) < 4:
            raise ValueError(f"needs images of at least 4x4 pixels, not samples of shape {shape}")

    def multiply_adds(self, shape: Shape, classes: int) -> int:
        depth, height, width = shape
        first, second = self.channels
        convolutions = 9 * depth * first * height * width + 9 * first * second * (height // 2) * (
            width // 2
        )
        return convolutions + second * (height // 4) * (width // 4) * classes

    def weights(self, shape: Shape, classes: int) -> int:
        depth, height, width = shape
        first, second = self.channels
        convolutions = (9 * depth + 1) * first + (9 * first + 1) * second
        return convolutions + (second * (height // 4) * (width // 4) + 1) * classes

    def outputs(self, shape: Shape) -> int:
        _, height, width = shape
        first, second = self.channels
        halves, quarters = (height // 2) * (width // 2), (height // 4) * (width // 4)
        return 2 * first * height * width + first * halves + 2 * second * halves + second * quarters

    def build(self, shape: Shape, classes: int) -> nn.Module:
        from torch import nn

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
