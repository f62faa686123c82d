"""Moved by a few pixels and mirrored: the usual augmentation of CIFAR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.data.augmentations.augmentation import Augmentation

if TYPE_CHECKING:
    from torch import Tensor

BORDER = 4


@dataclass(frozen=True, kw_only=True)
class CropFlip(Augmentation):
    """A window of the image's own size anywhere in the image with a border of 4 black pixels, mirrored half of the time: what the AML
    project does to CIFAR-100."""

    name: ClassVar[str] = "crop-flip"
    numbers: ClassVar[int] = 3

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        return moved_and_mirrored(images, numbers, "constant")


def moved_and_mirrored(images: Tensor, numbers: Tensor, border: str) -> Tensor:
    """Where the window begins, from the top and from the left, and whether it is mirrored, are the three numbers of an image."""
    from torch.nn.functional import pad

    from cohort.data.images import mirrored, windows

    top, left = (numbers[:, :2] * (2 * BORDER + 1)).long().unbind(dim=1)
    height, width = images.shape[2:]
    return mirrored(
        windows(pad(images, [BORDER] * 4, mode=border), top, left, height, width),
        numbers[:, 2] < 0.5,
    )
