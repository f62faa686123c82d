"""No augmentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.data.augmentations.augmentation import Augmentation

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Nothing(Augmentation):
    """Leave samples as they are, of any kind and shape."""

    name: ClassVar[str] = "none"
    kinds: ClassVar[tuple[str, ...]] = ("images", "text", "table")
    numbers: ClassVar[int] = 0

    def check(self, shape: tuple[int, ...]) -> None:
        """Accept samples of any shape."""

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        return images
