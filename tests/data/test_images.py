"""Image operations with separate parameters per image match torchvision image by image."""

from __future__ import annotations

import colorsys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from cohort.data.images import (
    BRIGHTNESS,
    CONTRAST,
    SATURATION,
    blended,
    cropped,
    flipped,
    gray,
    hue_shifted,
)
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
@pytest.mark.parametrize("border", ["constant", "reflect"])
def test_windows(border: str, dtype: torch.dtype):
    images = pictures(dtype)
    top, left = torch.arange(40) % 9, torch.arange(40) % 7
    actual = cropped(pad(images, [3, 3, 4, 4], mode=border), top, left, 7, 6)
    padded = functional.pad(images, [3, 4, 3, 4], padding_mode=border)
    expected = one_by_one(
        lambda image, y, x: functional.crop(image, y, x, 7, 6), padded, top.tolist(), left.tolist()
    )
    assert actual.dtype == dtype and torch.equal(actual, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_mirrored(dtype: torch.dtype):
    images, condition = pictures(dtype), torch.arange(40) % 3 == 0
    expected = one_by_one(
        lambda image, flip: functional.horizontal_flip(image) if flip else image,
        images,
        condition.tolist(),
    )
    assert torch.equal(flipped(images, condition), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gray(dtype: torch.dtype):
    images = gray(pictures(dtype))
    assert images.shape == (40, 1, 7, 6)
    torch.testing.assert_close(
        images,
        functional.rgb_to_grayscale(pictures(dtype)),
        rtol=0,
        atol=1e-6 if dtype == torch.float32 else 1e-14,
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


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_blend_of_factor_one_changes_no_bit(dtype: torch.dtype):
    images = pictures(dtype)
    for kind in ADJUST:
        assert torch.equal(blended(images, torch.full((40,), kind), torch.ones(40)), images)


def test_hue_matches_torchvision():
    shifts = torch.linspace(-0.5, 0.5, 40, dtype=torch.float64)
    actual = hue_shifted(pictures(torch.float32), shifts)
    expected = one_by_one(functional.adjust_hue, pictures(torch.float32), shifts.tolist())
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)


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
