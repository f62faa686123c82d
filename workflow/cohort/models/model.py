"""Base class of the models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import Component

if TYPE_CHECKING:
    from torch import nn

Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Model(Component):
    """A network that can be built for any samples whose shape passes `check`.

    Planning imports every model, and must not import torch: use `cohort.core.lazy` for it.
    """

    kinds: ClassVar[tuple[str, ...]] = ("images",)
    """The kinds of samples it takes: images, text, table."""

    batch_norm: ClassVar[bool] = False
    """Whether the network has batch normalization layers."""

    def check(self, shape: Shape) -> None:
        """Raise ValueError if the model cannot take samples of this shape."""

    def build(self, shape: Shape, classes: int) -> nn.Module:
        """Build the network, its initial weights drawn from torch's current generator."""
        raise NotImplementedError


def check_images(shape: Shape, least: int) -> None:
    """Raise ValueError unless samples of this shape are images of at least `least` pixels a
    side."""
    if len(shape) != 3 or min(shape[1:]) < least:
        raise ValueError(
            f"needs images of at least {least}x{least} pixels, not samples of shape {shape}"
        )
