"""Random crops and flips, the usual augmentation of CIFAR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cohort.core.lazy import lazy
from cohort.data.augmentations.augmentation import Augmentation, AugmentationParameters
from cohort.data.images import cropped, flipped

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import functional
else:
    functional = lazy("torch.nn.functional")

BORDER = 4


@dataclass(frozen=True, kw_only=True)
class CropFlip(Augmentation):
    """Crop and flip, as AML augments CIFAR-100: a crop of the image's own size from the image
    padded with 4 black pixels, flipped with probability 1/2."""

    name: ClassVar[str] = "crop-flip"
    numbers: ClassVar[int] = 3
    border: ClassVar[int] = BORDER

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        return crop_and_flip(images, numbers, "constant")

    def parameters(self, numbers: np.ndarray) -> AugmentationParameters | None:
        return crop_parameters(numbers)


def crop_parameters(numbers: np.ndarray) -> AugmentationParameters:
    """The crops and flips that the three random numbers of each image stand for."""
    none = np.zeros((len(numbers), 0))
    top, left = (numbers[:, :2] * (2 * BORDER + 1)).astype(np.int32).T
    return AugmentationParameters(none, none, top, left, numbers[:, 2] < 0.5)


def crop_and_flip(images: Tensor, numbers: Tensor, padding: str) -> Tensor:
    """Crop and flip images, padded in this mode of torch's `pad`. An image's three random numbers
    give the crop's top and left, and whether the image is flipped."""
    top, left = (numbers[:, :2] * (2 * BORDER + 1)).long().unbind(dim=1)
    padded = functional.pad(images, [BORDER] * 4, mode=padding)
    return flipped(cropped(padded, top, left, *images.shape[2:]), numbers[:, 2] < 0.5)
