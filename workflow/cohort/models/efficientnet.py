"""EfficientNets (Tan and Le, 2019) as torchvision builds them, without pretrained weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.models.model import Model, Shape
from cohort.models.vision import from_torchvision

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class EfficientNetB0(Model):
    """The smallest EfficientNet. 4,019,077 parameters for the nine classes of PathMNIST."""

    name: ClassVar[str] = "efficientnet-b0"
    batch_norm: ClassVar[bool] = True

    def check(self, shape: Shape) -> None:
        if len(shape) != 3 or shape[0] != 3:
            raise ValueError(
                f"needs images with three color channels, not samples of shape {shape}"
            )

    def build(self, shape: Shape, classes: int) -> nn.Module:
        network: nn.Module = from_torchvision("models").get_model(
            self.name.replace("-", "_"), weights=None, num_classes=classes
        )
        return network


@dataclass(frozen=True, kw_only=True)
class EfficientNetB3(EfficientNetB0):
    """EfficientNet-B3, wider and deeper. 10,710,065 parameters for the nine classes of
    PathMNIST."""

    name: ClassVar[str] = "efficientnet-b3"
