"""Image operations with separate parameters per image match torchvision image by image, beyond what
the tests of augmentations show."""

from __future__ import annotations

import colorsys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from cohort.data.images import BRIGHTNESS, CONTRAST, SATURATION, blended, hue_shifted
from tests.vision import functional

DTYPES = [torch.float32, torch.float64]
FACTORS = torch.linspace(0, 2, 40, dtype=torch.float64)
ADJUST = {
    BRIGHTNESS: functional.adjust_brightness,
    CONTRAST: functional.adjust_contrast,
    SATURATION: functional.adjust_saturation,
}


def pictures(dtype: torch.dtype) -> Tensor:
    """Noise, bytes, gray ones, and the corners of the color cube: 40 images of 3x7x6 pixels."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.rand(40, 3, 7, 6, generator=generator, dtype=torch.float64)
    noise[10:20] = (noise[10:20] * 255).round() / 255
    noise[20:25] = noise[20:25, :1]
    noise[25:35] = noise[25:35].round()
    noise[35], noise[36] = 0, 1
    return noise.to(dtype)


def one_by_one(change: Callable[..., Tensor], images: Tensor, *parameters: list) -> Tensor:
    return torch.stack(
        [change(image, *values) for image, *values in zip(images, *parameters, strict=True)]
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_blends_of_three_kinds_in_one_batch(dtype: torch.dtype):
    images, kinds = pictures(dtype), torch.arange(40) % 3
    actual = blended(images, kinds, FACTORS)
    expected = one_by_one(
        lambda image, kind, factor: ADJUST[kind](image, factor),
        images,
        kinds.tolist(),
        FACTORS.tolist(),
    )
    torch.testing.assert_close(
        actual, expected, rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-14
    )


def test_hue_in_float64_matches_colorsys():
    """torchvision would compute in float32."""
    images, shifts = pictures(torch.float64), torch.linspace(-0.5, 0.5, 40, dtype=torch.float64)

    def shifted(pixel: list[float], shift: float) -> tuple[float, float, float]:
        hue, saturation, value = colorsys.rgb_to_hsv(*pixel)
        return colorsys.hsv_to_rgb((hue + shift) % 1, saturation, value)

    pixels = [
        [shifted(pixel, float(shift)) for pixel in image.flatten(1).T.tolist()]
        for image, shift in zip(images, shifts, strict=True)
    ]
    expected = torch.tensor(pixels, dtype=torch.float64).transpose(1, 2).view_as(images)
    torch.testing.assert_close(hue_shifted(images, shifts), expected, rtol=0, atol=1e-12)
