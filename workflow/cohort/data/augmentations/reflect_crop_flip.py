"""Random crops and flips with reflected borders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cohort.data.augmentations.augmentation import Augmentation, AugmentationParameters
from cohort.data.augmentations.crop_flip import BORDER, crop_and_flip, crop_flip_parameters

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class ReflectCropFlip(Augmentation):
    """Crop and flip CIFAR-10 as NIID-Bench and PECO do: with a border of 4 reflected pixels."""

    name: ClassVar[str] = "reflect-crop-flip"
    numbers: ClassVar[int] = 3
    border: ClassVar[int] = BORDER
    reflects: ClassVar[bool] = True

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 3 or min(shape[1:]) <= BORDER:
            raise ValueError(
                f"needs images of at least {BORDER + 1}x{BORDER + 1} pixels, "
                f"not samples of shape {shape}"
            )

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        return crop_and_flip(images, numbers, "reflect")

    def parameters(self, numbers: np.ndarray) -> AugmentationParameters | None:
        return crop_flip_parameters(numbers)
