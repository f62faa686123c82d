"""What an augmentation is. Files of this package import torch inside `apply`, so that planning a study needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import Component

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Augmentation(Component):
    """A random change of images, decided for each image by random numbers of its own and by nothing else of its batch."""

    numbers: ClassVar[int]
    """How many random numbers an image takes."""

    kinds: ClassVar[tuple[str, ...]] = ("images",)
    """What it can be applied to: images, text, table."""

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError when it cannot take samples of this shape."""
        if len(shape) != 3:
            raise ValueError(f"needs images, not samples of shape {shape}")

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        """The images changed. They lie in [0, 1]; each has its row of `numbers`, drawn evenly from [0, 1) in float64."""
        raise NotImplementedError
