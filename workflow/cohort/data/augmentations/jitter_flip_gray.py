"""Color jitter, random flips and random grayscale."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cohort.core.lazy import lazy
from cohort.data.augmentations.augmentation import (
    BRIGHTNESS,
    GRAY,
    HUE,
    Augmentation,
    AugmentationParameters,
)
from cohort.data.images import blended, flipped, gray, hue_shifted, where

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy("torch")

ORDERS = [(*blends, before) for blends in permutations(range(3)) for before in range(4)]
"""The three blends in order, and how many of them come before the change of hue."""


@dataclass(frozen=True, kw_only=True)
class JitterFlipGray(Augmentation):
    """Jitter colors, flip with probability 0.5 and turn gray with probability 0.1, as in FedEntOpt.

    The paper does not give the strength of the jitter. Ours changes brightness, contrast and
    saturation by up to 0.4 and hue by up to 0.1 of the color circle, in random order as torchvision
    does.
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
        images = self._jittered(images, numbers[:, :5])
        images = flipped(images, numbers[:, 5] < 0.5)
        return where(numbers[:, 6] < 0.1, gray(images).expand_as(images), images)

    def _jittered(self, images: Tensor, numbers: Tensor) -> Tensor:
        """Apply each image's four changes in its own of 24 orders, the whole batch at once: three
        blends before the change of hue and three after it. A blend that belongs on the other side
        of the hue has factor 1, which leaves an image unchanged."""
        order = _orders(images.device)[(numbers[:, 0] * len(ORDERS)).long()]
        blends, count = order[:, :3], order[:, 3:]
        factors = (1 + self.strength * (2 * numbers[:, 1:4] - 1)).gather(1, blends)
        before = torch.arange(3, device=images.device) < count
        for turn in range(3):
            images = blended(images, blends[:, turn], torch.where(before, factors, 1.0)[:, turn])
        images = hue_shifted(images, self.hue * (2 * numbers[:, 4] - 1))
        for turn in range(3):
            images = blended(images, blends[:, turn], torch.where(before, 1.0, factors)[:, turn])
        return images

    def parameters(self, numbers: np.ndarray) -> AugmentationParameters | None:
        rows, zeros = np.arange(len(numbers))[:, None], np.zeros(len(numbers))
        order = np.array(ORDERS)[(numbers[:, 0] * len(ORDERS)).astype(int)]
        blends, before = order[:, :3], order[:, 3:]
        columns = np.arange(3) + (np.arange(3) >= before)  # the change of hue is between them
        colors = np.full((len(numbers), 5), HUE)
        colors[rows, columns] = BRIGHTNESS + blends
        colors[:, 4] = np.where(numbers[:, 6] < 0.1, GRAY, 0)
        factors = np.repeat(self.hue * (2 * numbers[:, 4:5] - 1), 5, axis=1)
        strengths = 1 + self.strength * (2 * numbers[:, 1:4] - 1)
        factors[rows, columns] = np.take_along_axis(strengths, blends, axis=1)
        return AugmentationParameters(colors, factors, zeros, zeros, numbers[:, 5] < 0.5)


@functools.cache
def _orders(device: torch.device) -> Tensor:
    """The orders on a device: a copy in every step would have to wait for a GPU."""
    return torch.tensor(ORDERS, device=device)
