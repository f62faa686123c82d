"""Base class of the augmentations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from cohort.core.components import Component

if TYPE_CHECKING:
    from torch import Tensor

BRIGHTNESS, CONTRAST, SATURATION, HUE, GRAY = range(1, 6)  # changes of color; 0 is none


class AugmentationParameters(NamedTuple):
    """What an augmentation does to each image, one row per image, for native code: color changes
    and their factors, place of the crop, and flip."""

    colors: np.ndarray
    factors: np.ndarray
    top: np.ndarray
    left: np.ndarray
    flip: np.ndarray


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

    border: ClassVar[int] = 0
    """How many pixels `parameters` adds at each side before an image is cropped."""

    reflects: ClassVar[bool] = False
    """Whether that border reflects the image; else it is black."""

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError if the augmentation cannot be applied to samples of this shape."""
        if len(shape) != 3:
            raise ValueError(f"needs images, not samples of shape {shape}")

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        """Augment images with values in [0, 1]. Each has a row of `numbers`, uniform in [0, 1)."""
        raise NotImplementedError

    def parameters(self, numbers: np.ndarray) -> AugmentationParameters | None:
        """The parameters of what `apply` does with these random numbers, for native code; None if
        native code cannot do it."""
        return None
