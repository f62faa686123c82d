"""Random horizontal flips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.data.augmentations.augmentation import Augmentation
from cohort.data.images import flipped

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Flip(Augmentation):
    """Flip images horizontally with probability 1/2."""

    name: ClassVar[str] = "flip"
    numbers: ClassVar[int] = 1

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        return flipped(images, numbers[:, 0] < 0.5)
