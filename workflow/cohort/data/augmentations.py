"""Augmentations: random changes of training images, and the operations that they consist of.

The operations work on a batch, with separate parameters for each image, and give the results of
torchvision's transforms, which apply one set of parameters to a whole batch.
"""

from __future__ import annotations

import functools
from itertools import permutations
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from cohort.core.components import Catalog, Component
from cohort.core.lazy import lazy

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy("torch")

BRIGHTNESS, CONTRAST, SATURATION, HUE, GRAY = range(1, 6)  # changes of color; 0 is none


class AugmentationParameters(NamedTuple):
    """What an augmentation does to each image, one row per image, for native code: color changes
    and their factors, place of the crop, and flip."""

    flip: np.ndarray
    top: np.ndarray | int = 0
    left: np.ndarray | int = 0
    colors: np.ndarray = np.empty((1, 0))
    factors: np.ndarray = np.empty((1, 0))


class Augmentation(Component):
    """A random change of images that depends, for each, on its own random numbers only, not on the
    rest of the batch. Planning imports it, and must not import torch: see `cohort.core.lazy`."""

    numbers: ClassVar[int]
    """How many random numbers each image takes."""

    kinds: ClassVar[tuple[str, ...]] = ("images",)
    """The kinds of samples it can be applied to: images, text, table."""

    border: ClassVar[int] = 0
    """How many pixels `parameters` adds at each side before an image is cropped."""

    reflects: ClassVar[bool] = False
    """Whether that border reflects the image; else it is black."""

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError if the augmentation cannot be applied to samples of this shape."""

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        """Augment images with values in [0, 1]. Each has a row of `numbers`, uniform in [0, 1)."""
        raise NotImplementedError

    def parameters(self, numbers: np.ndarray) -> AugmentationParameters | None:
        """The parameters of `apply` with these numbers for native code; None if it has none."""
        return None


class Nothing(Augmentation):
    """Leave samples as they are, of any kind and shape."""

    name: ClassVar[str] = "none"
    kinds: ClassVar[tuple[str, ...]] = ("images", "text", "table")
    numbers: ClassVar[int] = 0

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        return images


class Flip(Augmentation):
    """Flip images horizontally with probability 1/2."""

    name: ClassVar[str] = "flip"
    numbers: ClassVar[int] = 1

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        return flipped(images, numbers[:, 0] < 0.5)

    def parameters(self, numbers: np.ndarray) -> AugmentationParameters | None:
        return AugmentationParameters(numbers[:, 0] < 0.5)


class CropFlip(Augmentation):
    """Crop and flip, as AML augments CIFAR-100: a crop of the image's own size from the image
    padded with 4 black pixels, flipped with probability 1/2. Its three numbers give the crop's top
    and left, and whether to flip."""

    name: ClassVar[str] = "crop-flip"
    numbers: ClassVar[int] = 3
    border: ClassVar[int] = 4

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        top, left = (numbers[:, :2] * (2 * self.border + 1)).long().unbind(dim=1)
        mode = "reflect" if self.reflects else "constant"
        padded = torch.nn.functional.pad(images, [self.border] * 4, mode=mode)
        return flipped(cropped(padded, top, left, *images.shape[2:]), numbers[:, 2] < 0.5)

    def parameters(self, numbers: np.ndarray) -> AugmentationParameters | None:
        top, left = (numbers[:, :2] * (2 * self.border + 1)).astype(np.int32).T
        return AugmentationParameters(numbers[:, 2] < 0.5, top, left)


class ReflectCropFlip(CropFlip):
    """Crop and flip CIFAR-10 as NIID-Bench and PECO do: with a border of 4 reflected pixels."""

    name: ClassVar[str] = "reflect-crop-flip"
    reflects: ClassVar[bool] = True

    def check(self, shape: tuple[int, ...]) -> None:
        if min(shape[1:]) <= self.border:
            pixels = f"over {self.border} pixels"
            raise ValueError(f"needs images of {pixels}, not samples of shape {shape}")


ORDERS = [(*blends, before) for blends in permutations(range(3)) for before in range(4)]
"""The three blends in order, and how many of them come before the change of hue."""


class JitterFlipGray(Augmentation):
    """Jitter colors, flip with probability 0.5 and turn gray with probability 0.1, as in FedEntOpt,
    which does not say how strongly. Here brightness, contrast and saturation change by up to 0.4
    and hue by up to 0.1 of the color circle, in random order as in torchvision."""

    name: ClassVar[str] = "jitter-flip-gray"
    numbers: ClassVar[int] = 7
    strength: ClassVar[float] = 0.4
    hue: ClassVar[float] = 0.1

    def check(self, shape: tuple[int, ...]) -> None:
        if shape[0] != 3:
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
        rows = np.arange(len(numbers))[:, None]
        order = np.array(ORDERS)[(numbers[:, 0] * len(ORDERS)).astype(int)]
        blends, before = order[:, :3], order[:, 3:]
        columns = np.arange(3) + (np.arange(3) >= before)  # the change of hue is between them
        colors = np.full((len(numbers), 5), HUE)
        colors[rows, columns] = BRIGHTNESS + blends
        colors[:, 4] = np.where(numbers[:, 6] < 0.1, GRAY, 0)
        factors = np.repeat(self.hue * (2 * numbers[:, 4:5] - 1), 5, axis=1)
        strengths = 1 + self.strength * (2 * numbers[:, 1:4] - 1)
        factors[rows, columns] = np.take_along_axis(strengths, blends, axis=1)
        return AugmentationParameters(numbers[:, 5] < 0.5, colors=colors, factors=factors)


@functools.cache
def _orders(device: torch.device) -> Tensor:
    """The orders on a device: a copy in every step would have to wait for a GPU."""
    return torch.tensor(ORDERS, device=device)


def where(condition: Tensor, chosen: Tensor, other: Tensor) -> Tensor:
    """Choose `chosen` for each image whose condition holds, else `other`. A blend by 1 or 0 is
    exact and, on a CPU, several times as fast as `torch.where`."""
    return torch.lerp(other, chosen, condition.view(-1, 1, 1, 1).to(chosen.dtype))


def flipped(images: Tensor, condition: Tensor) -> Tensor:
    """Flip the images for which the condition holds horizontally; return all images."""
    return where(condition, images.flip(3), images)


def cropped(images: Tensor, top: Tensor, left: Tensor, height: int, width: int) -> Tensor:
    """Crop each image to this size, at its own top and left."""
    rows = top[:, None] + torch.arange(height, device=images.device)
    columns = left[:, None] + torch.arange(width, device=images.device)
    pixel_indices = (rows[:, :, None] * images.shape[3] + columns[:, None, :]).flatten(1)
    pixels = images.flatten(2).gather(2, pixel_indices[:, None, :].expand(-1, images.shape[1], -1))
    return pixels.unflatten(2, (height, width))


def gray(images: Tensor) -> Tensor:
    """Convert to one channel: the luma of ITU-R 601, with torchvision's rounded coefficients."""
    red, green, blue = images.unbind(dim=1)
    return (0.2989 * red).add_(green, alpha=0.587).add_(blue, alpha=0.114).unsqueeze(1)


def blended(images: Tensor, kind: Tensor, factor: Tensor) -> Tensor:
    """Change the brightness (0), contrast (1) or saturation (2) of each image: blend it with black,
    with the mean of its gray version, or with its gray version."""
    kind, factor = kind.view(-1, 1, 1, 1), factor.to(images.dtype).view(-1, 1, 1, 1)
    shades = gray(images)
    means = shades.mean(dim=(1, 2, 3), keepdim=True)
    partner = shades * (kind == 2) + means * (kind == 1)
    return torch.lerp(partner, images, factor).clamp_(0, 1)


def hue_shifted(images: Tensor, shift: Tensor) -> Tensor:
    """Rotate the hue of each image by a share of the color circle. Like in HSV, the values of a
    pixel's brightest and darkest channels are kept."""
    red, green, blue = images.unbind(dim=1)
    brightest = images.amax(dim=1)
    spread = brightest - images.amin(dim=1)
    is_red = _equal(brightest, red)
    is_green = _equal(brightest, green) * (1 - is_red)
    is_blue = 1 - is_red - is_green
    sixths = (is_red * (green - blue)).addcmul_(is_green, blue - red).addcmul_(is_blue, red - green)
    divisor = spread + _equal(spread, torch.zeros_like(spread))
    sixths = sixths.div_(divisor).add_(is_green, alpha=2).add_(is_blue, alpha=4)
    angles = sixths + 6 * shift.to(images.dtype).view(-1, 1, 1)
    # Per channel, in turns from where it is darkest.
    starts = torch.arange(3, -2, -2, dtype=angles.dtype, device=angles.device)
    turns = (angles[:, None] + starts.view(-1, 1, 1)).div_(6)
    darkness = turns.sub_(turns.round()).abs_().mul_(-6).add_(2).clamp_(0, 1)
    return torch.addcmul(brightest[:, None], darkness, spread[:, None], value=-1)


def _equal(first: Tensor, second: Tensor) -> Tensor:
    """1.0 where the values are equal, else 0.0; on a CPU faster than a tensor of booleans."""
    return torch.eq(first, second, out=torch.empty_like(first))


_CLASSES = CropFlip, Flip, JitterFlipGray, Nothing, ReflectCropFlip
AUGMENTATIONS = Catalog("cohort.data.augmentations", Augmentation, _CLASSES)
