"""Colors shaken, mirrored, and now and then gray."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, ClassVar

from cohort.data.augmentations.augmentation import Augmentation

if TYPE_CHECKING:
    from torch import Tensor

ORDERS = [(*blends, turn) for blends in permutations(range(3)) for turn in range(4)]
"""Three blends in order, and how many of them come before the change of hue."""


@dataclass(frozen=True, kw_only=True)
class JitterFlipGray(Augmentation):
    """FedEntOpt's: color jitter, mirrored with probability 0.5, gray with probability 0.1.

    The paper does not say how strong the jitter is: brightness, contrast and saturation by up to 0.4 and hue by up to 0.1 of the color
    circle are ours. As in torchvision, the four changes come in random order.
    """

    name: ClassVar[str] = "jitter-flip-gray"
    numbers: ClassVar[int] = 7
    strength: ClassVar[float] = 0.4
    hue: ClassVar[float] = 0.1

    def check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 3 or shape[0] != 3:
            raise ValueError(
                f"needs images with three color channels, not samples of shape {shape}"
            )

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        from cohort.data.images import chosen, gray, mirrored

        images = self._jittered(images, numbers[:, :5])
        images = mirrored(images, numbers[:, 5] < 0.5)
        return chosen(numbers[:, 6] < 0.1, gray(images).expand_as(images), images)

    def _jittered(self, images: Tensor, numbers: Tensor) -> Tensor:
        """Four changes in 24 orders, without a look at single images: three blends before the change of hue and three after it.

        A blend whose turn is not on that side of the hue has the factor 1, which leaves an image as it is.
        """
        import torch

        from cohort.data.images import blended, hue_shifted

        order = torch.tensor(ORDERS, device=images.device)[(numbers[:, 0] * len(ORDERS)).long()]
        blends, turn = order[:, :3], order[:, 3:]
        factors = (1 + self.strength * (2 * numbers[:, 1:4] - 1)).gather(1, blends)
        before = torch.arange(3, device=images.device) < turn
        for place in range(3):
            images = blended(images, blends[:, place], torch.where(before, factors, 1.0)[:, place])
        images = hue_shifted(images, self.hue * (2 * numbers[:, 4] - 1))
        for place in range(3):
            images = blended(images, blends[:, place], torch.where(before, 1.0, factors)[:, place])
        return images
