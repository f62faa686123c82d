"""Mirrored half of the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.data.augmentations.augmentation import Augmentation

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Flip(Augmentation):
    """Left and right change places with probability 1/2."""

    name: ClassVar[str] = "flip"
    numbers: ClassVar[int] = 1

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        from cohort.data.images import mirrored

        return mirrored(images, numbers[:, 0] < 0.5)
