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
    return (0.2989 * red + 0.587 * green + 0.114 * blue).unsqueeze(1)


def blended(images: Tensor, kind: Tensor, factor: Tensor) -> Tensor:
    """Brightness, contrast or saturation, each image its own: a blend with black, with the mean of its gray, or with its gray."""
    kind, factor = kind.view(-1, 1, 1, 1), factor.to(images.dtype).view(-1, 1, 1, 1)
    shades = gray(images)
    partner = shades * (kind == SATURATION) + shades.mean(dim=(1, 2, 3), keepdim=True) * (kind == CONTRAST)
    return (factor * images).add_((1 - factor) * partner).clamp_(0, 1)


def hue_shifted(images: Tensor, shift: Tensor) -> Tensor:
    """Colors moved along the color circle, 1 being all the way round; brightest and darkest channel keep their values (HSV)."""
    red, green, blue = images.unbind(dim=1)
    brightest = images.amax(dim=1)
    spread = brightest - images.amin(dim=1)
    divisor = spread + (spread == 0)
    is_red = (brightest == red).to(images.dtype)
    is_green = (brightest == green) * (1 - is_red)
    is_blue = 1 - is_red - is_green
    sixths = is_red * ((green - blue) / divisor) + is_green * ((blue - red) / divisor + 2) + is_blue * ((red - green) / divisor + 4)
    places = (sixths + 6 * shift.to(images.dtype).view(-1, 1, 1)).remainder_(6)
    turns = places[:, None] + torch.tensor([5, 3, 1], device=images.device).view(-1, 1, 1)  # up to twice round the circle, which is 6 long
    distances = torch.maximum(torch.minimum(turns, 4 - turns), torch.minimum(turns - 6, 10 - turns))
    return brightest[:, None] - distances.clamp_(0, 1).mul_(spread[:, None])
