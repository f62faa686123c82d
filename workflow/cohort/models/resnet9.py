"""ResNet-9: eight 3x3 convolutions, four of them in two residual blocks, and one linear layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.lazy import lazy
from cohort.models.model import Model, Shape, check_images
from cohort.models.residual import residual

if TYPE_CHECKING:
    from torch import nn
else:
    nn = lazy("torch.nn")


@dataclass(frozen=True, kw_only=True)
class ResNet9(Model):
    """ResNet-9 of Stratify, with batch normalization and with biases in its convolutions. 6,575,370
    parameters for CIFAR-10."""

    name: ClassVar[str] = "resnet9"
    batch_norm: ClassVar[bool] = True

    def check(self, shape: Shape) -> None:
        check_images(shape, 8)  # three halvings leave a pixel

    def build(self, shape: Shape, classes: int) -> nn.Module:
        depth, height, width = shape
        return nn.Sequential(
            *self._convolution(depth, 64),
            *self._convolution(64, 128, pools=True),
            residual(*self._convolution(128, 128), *self._convolution(128, 128)),
            *self._convolution(128, 256, pools=True),
            *self._convolution(256, 512, pools=True),
            residual(*self._convolution(512, 512), *self._convolution(512, 512)),
            nn.MaxPool2d((height // 8, width // 8)),  # leaves one pixel
            nn.Flatten(),
            nn.Linear(512, classes),
        )

    def normalization(self, channels: int) -> list[nn.Module]:
        """The normalization layers between a convolution and its ReLU."""
        return [nn.BatchNorm2d(channels)]

    def _convolution(self, before: int, after: int, pools: bool = False) -> list[nn.Module]:
        pooling = [nn.MaxPool2d(2)] if pools else []
        layers = [nn.Conv2d(before, after, 3, padding=1), *self.normalization(after)]
        return [*layers, *pooling, nn.ReLU()]


@dataclass(frozen=True, kw_only=True)
class ResNet9GroupNorm(ResNet9):
    """ResNet-9 with group normalization, in 32 groups of channels. 6,575,370 parameters for
    CIFAR-10."""

    name: ClassVar[str] = "resnet9-gn"
    batch_norm: ClassVar[bool] = False

    def normalization(self, channels: int) -> list[nn.Module]:
        return [nn.GroupNorm(32, channels)]


@dataclass(frozen=True, kw_only=True)
class ResNet9Plain(ResNet9):
    """ResNet-9 without normalization. 6,570,890 parameters for CIFAR-10."""

    name: ClassVar[str] = "resnet9-plain"
    batch_norm: ClassVar[bool] = False

    def normalization(self, channels: int) -> list[nn.Module]:
        return []
