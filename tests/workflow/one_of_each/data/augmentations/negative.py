"""Inverted images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.lazy import lazy
from cohort.data.augmentations import Augmentation

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy("torch")


@dataclass(frozen=True, kw_only=True)
class Negative(Augmentation):
    """Inverts images with probability 1/10."""

    name: ClassVar[str] = "negative"
    numbers: ClassVar[int] = 1

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        return torch.where(numbers[:, 0, None, None, None] < 0.1, 1 - images, images)
