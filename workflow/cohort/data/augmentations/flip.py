"""Random horizontal flips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cohort.data.augmentations.augmentation import Augmentation, AugmentationParameters
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

    def parameters(self, numbers: np.ndarray) -> AugmentationParameters | None:
        none, zeros = np.zeros((len(numbers), 0)), np.zeros(len(numbers))
        return AugmentationParameters(none, none, zeros, zeros, numbers[:, 0] < 0.5)
