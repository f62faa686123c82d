"""ResNet-20 for small images (He et al., 2016): a convolution, nine residual blocks of two
convolutions, and one linear layer."""

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

STAGES = (16, 32, 64)  # channels; the second and the third stage halve the images
BLOCKS = 3  # in a stage


@dataclass(frozen=True, kw_only=True)
class ResNet20(Model):
    """ResNet-20 of FedTAN, with batch normalization and shortcuts without weights, initialized as
    in its authors' code. 269,722 parameters for CIFAR-10."""

    name: ClassVar[str] = "resnet20"
    batch_norm: ClassVar[bool] = True

    def check(self, shape: Shape) -> None:
        check_images(shape, 4)

    def build(self, shape: Shape, classes: int) -> nn.Module:
        layers = [*_normalized(shape[0], STAGES[0]), nn.ReLU()]
        before = STAGES[0]
        for after in STAGES:
            for _ in range(BLOCKS):
                layers += [_block(before, after), nn.ReLU()]
                before = after
        pooling = nn.AdaptiveAvgPool2d(1)
        network = nn.Sequential(*layers, pooling, nn.Flatten(), nn.Linear(before, classes))
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
        return network


def _block(before: int, after: int) -> nn.Module:
    """A residual block, which halves the images where it widens."""
    stride = 2 if after > before else 1
    return residual(
        *_normalized(before, after, stride),
        nn.ReLU(),
        *_normalized(after, after),
        stride=stride,
        new_channels=after - before,
    )


def _normalized(before: int, after: int, stride: int = 1) -> list[nn.Module]:
    """A 3x3 convolution with batch normalization."""
    convolution = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
    return [convolution, nn.BatchNorm2d(after)]
