"""Base class of the augmentations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import Component

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Augmentation(Component):
    """A random change of images that depends, for each image, only on its own random numbers, not
    on the rest of the batch.

    Planning imports every augmentation, and must not import torch: use `cohort.core.lazy` for it.
    """

    numbers: ClassVar[int]
    """How many random numbers each image takes."""

    kinds: ClassVar[tuple[str, ...]] = ("images",)
    """The kinds of samples it can be applied to: images, text, table."""

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError if it cannot be applied to samples of this shape."""
        if len(shape) != 3:
            raise ValueError(f"needs images, not samples of shape {shape}")

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        """Change images with values in [0, 1]. Each has a row of `numbers`, float64 and uniform in
        [0, 1)."""
        raise NotImplementedError
