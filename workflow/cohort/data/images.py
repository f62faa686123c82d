"""What augmentations are made of: each works on a batch of images, with parameters of its own for each image.

The results are those of torchvision's functions of the same purpose, which take one set of parameters for a whole batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

BRIGHTNESS, CONTRAST, SATURATION = range(3)


def chosen(condition: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """For each image the one or the other: a blend by 1 or 0, which is exact, and on a CPU several times as fast as `where`."""
    return torch.lerp(other, one, condition.view(-1, 1, 1, 1).to(one.dtype))


def mirrored(images: Tensor, condition: Tensor) -> Tensor:
    """Left and right change places where the condition holds."""
    return chosen(condition, images.flip(3), images)


def windows(images: Tensor, top: Tensor, left: Tensor, height: int, width: int) -> Tensor:
    """From each image a window of one size that begins at its own place."""
    rows = top[:, None] + torch.arange(height, device=images.device)
    columns = left[:, None] + torch.arange(width, device=images.device)
    places = (rows[:, :, None] * images.shape[3] + columns[:, None, :]).flatten(1)
    pixels = images.flatten(2).gather(2, places[:, None, :].expand(-1, images.shape[1], -1))
    return pixels.unflatten(2, (height, width))


def gray(images: Tensor) -> Tensor:
    """One channel: the luma of ITU-R 601, with the digits that torchvision keeps."""
    red, green, blue = images.unbind(dim=1)
    return (0.2989 * red).add_(green, alpha=0.587).add_(blue, alpha=0.114).unsqueeze(1)


def blended(images: Tensor, kind: Tensor, factor: Tensor) -> Tensor:
    """Brightness, contrast or saturation, each image its own: a blend with black, with the mean of its gray, or with its gray."""
    kind, factor = kind.view(-1, 1, 1, 1), factor.to(images.dtype).view(-1, 1, 1, 1)
    shades = gray(images)
    partner = shades * (kind == SATURATION) + shades.mean(dim=(1, 2, 3), keepdim=True) * (
        kind == CONTRAST
    )
    return torch.lerp(partner, images, factor).clamp_(0, 1)


def hue_shifted(images: Tensor, shift: Tensor) -> Tensor:
    """Colors moved along the color circle, 1 being all the way round; brightest and darkest channel keep their values (HSV)."""
    red, green, blue = images.unbind(dim=1)
    brightest = images.amax(dim=1)
    spread = brightest - images.amin(dim=1)
    is_red = _equal(brightest, red)
    is_green = _equal(brightest, green) * (1 - is_red)
    is_blue = 1 - is_red - is_green
    sixths = (is_red * (green - blue)).addcmul_(is_green, blue - red).addcmul_(is_blue, red - green)
    sixths = (
        sixths.div_(spread + _equal(spread, torch.zeros_like(spread)))
        .add_(is_green, alpha=2)
        .add_(is_blue, alpha=4)
    )
    places = sixths + 6 * shift.to(images.dtype).view(-1, 1, 1)
    turns = (places[:, None] + places.new_tensor([3, 1, -1]).view(-1, 1, 1)).div_(
        6
    )  # from where it is darkest
    darkness = turns.sub_(turns.round()).abs_().mul_(-6).add_(2).clamp_(0, 1)
    return torch.addcmul(brightest[:, None], darkness, spread[:, None], value=-1)


def _equal(one: Tensor, other: Tensor) -> Tensor:
    """1 where they are, else 0, as a number, which is faster on a CPU than as a truth."""
    return torch.eq(one, other, out=torch.empty_like(one))
