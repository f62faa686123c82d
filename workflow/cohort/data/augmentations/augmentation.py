"""Base class of the augmentations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from cohort.core.components import Component

if TYPE_CHECKING:
    from torch import Tensor

BRIGHTNESS, CONTRAST, SATURATION, HUE, GRAY = range(1, 6)  # changes of color; 0 is none


class Changes(NamedTuple):
    """Per-image parameters of an augmentation, one row per image, for native code."""

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
    """How many pixels `changes` adds at each side before an image is cropped."""

    reflects: ClassVar[bool] = False
    """Whether that border reflects the image; else it is black."""

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError if it cannot be applied to samples of this shape."""
        if len(shape) != 3:
            raise ValueError(f"needs images, not samples of shape {shape}")

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        """Change images with values in [0, 1]. Each has a row of `numbers`, float64 and uniform in
        [0, 1)."""
        raise NotImplementedError

    def changes(self, numbers: np.ndarray) -> Changes | None:
        """The changes that `apply` makes with these numbers, for trainers with native code; None if
        it is something else."""
        return None
