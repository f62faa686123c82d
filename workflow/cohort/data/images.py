"""Image operations for augmentations: on a batch, with separate parameters for each image.

They give the results of torchvision's transforms, which apply one set of parameters to a whole
batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy("torch")

BRIGHTNESS, CONTRAST, SATURATION = range(3)


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
    """Change the brightness, contrast or saturation of each image: blend it with black, with the
    mean of its gray version, or with its gray version."""
    kind, factor = kind.view(-1, 1, 1, 1), factor.to(images.dtype).view(-1, 1, 1, 1)
    shades = gray(images)
    partner = shades * (kind == SATURATION) + shades.mean(dim=(1, 2, 3), keepdim=True) * (
        kind == CONTRAST
    )
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
    sixths = (
        sixths.div_(spread + _equal(spread, torch.zeros_like(spread)))
        .add_(is_green, alpha=2)
        .add_(is_blue, alpha=4)
    )
    angles = sixths + 6 * shift.to(images.dtype).view(-1, 1, 1)
    # Per channel, in turns from where it is darkest.
    starts = torch.arange(3, -2, -2, dtype=angles.dtype, device=angles.device)
    turns = (angles[:, None] + starts.view(-1, 1, 1)).div_(6)
    darkness = turns.sub_(turns.round()).abs_().mul_(-6).add_(2).clamp_(0, 1)
    return torch.addcmul(brightest[:, None], darkness, spread[:, None], value=-1)


def _equal(first: Tensor, second: Tensor) -> Tensor:
    """1.0 where the values are equal, else 0.0; on a CPU faster than a tensor of booleans."""
    return torch.eq(first, second, out=torch.empty_like(first))
