"""Stratify's simple CNNs: one for images and, for tables, a multilayer perceptron; MNIST has
LeNet-5. The paper prints no layout, so all are assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.lazy import lazy
from cohort.models.model import Model, Shape, check_images

if TYPE_CHECKING:
    from torch import nn
else:
    nn = lazy("torch.nn")


@dataclass(frozen=True, kw_only=True)
class StratifyCNN(Model):
    """Stratify's CNN: 3x3 convolutions of 32, 64 and 128 channels, the last two followed by max
    pooling, and 256 units. 2,193,226 parameters for CIFAR-10, 1,701,130 for MNIST.

    Convolutions are padded, which is as much an assumption as their widths: about two million
    parameters for 28 to 32 pixels. Without padding it would be about one million, and images of
    fewer than 12 pixels would be used up.
    """

    name: ClassVar[str] = "stratify-cnn"
    channels: ClassVar[tuple[int, int, int]] = (32, 64, 128)
    hidden: ClassVar[int] = 256

    def check(self, shape: Shape) -> None:
        check_images(shape, 4)

    def build(self, shape: Shape, classes: int) -> nn.Module:
        depth, height, width = shape
        first, second, third = self.channels
        return nn.Sequential(
            nn.Conv2d(depth, first, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(first, second, 3, padding=1),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(second, third, 3, padding=1),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(third * (height // 4) * (width // 4), self.hidden),
            nn.ReLU(),
            nn.Linear(self.hidden, classes),
        )


@dataclass(frozen=True, kw_only=True)
class StratifyMLP(Model):
    """Stratify's multilayer perceptron: two hidden layers, of 128 and 64 units. 15,426 parameters
    for two classes of COVTYPE."""

    name: ClassVar[str] = "stratify-mlp"
    kinds: ClassVar[tuple[str, ...]] = ("table",)
    hidden: ClassVar[tuple[int, int]] = (128, 64)

    def build(self, shape: Shape, classes: int) -> nn.Module:
        (columns,) = shape
        first, second = self.hidden
        return nn.Sequential(
            nn.Linear(columns, first),
            nn.ReLU(),
            nn.Linear(first, second),
            nn.ReLU(),
            nn.Linear(second, classes),
        )
