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
        return crop_flip_parameters(numbers)


def crop_flip_parameters(numbers: np.ndarray) -> AugmentationParameters:
    """The crop and the flip of each image, given by its three random `numbers` in [0, 1)."""
    none = np.zeros((len(numbers), 0))
    top, left = (numbers[:, :2] * (2 * BORDER + 1)).astype(np.int32).T
    return AugmentationParameters(none, none, top, left, numbers[:, 2] < 0.5)


def crop_and_flip(images: Tensor, numbers: Tensor, padding: str) -> Tensor:
    """Pad images in the mode `padding` of torch's `pad`, crop them, and flip them left to right.
    The three `numbers` of an image, in [0, 1), give the crop's top and left, and whether to
    flip."""
    top, left = (numbers[:, :2] * (2 * BORDER + 1)).long().unbind(dim=1)
    padded = functional.pad(images, [BORDER] * 4, mode=padding)
    return flipped(cropped(padded, top, left, *images.shape[2:]), numbers[:, 2] < 0.5)
