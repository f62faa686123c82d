"""Augmentations match torchvision image by image, and no image depends on its batch."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from cohort.data.augmentations import AUGMENTATIONS, ORDERS
from tests.vision import functional, v2

COUNT = 48
SHAPE = (3, 32, 32)
JITTER = v2.ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1)
CHANGES = [
    functional.adjust_brightness,
    functional.adjust_contrast,
    functional.adjust_saturation,
    functional.adjust_hue,
]


def pictures(dtype: torch.dtype = torch.float32, count: int = COUNT) -> Tensor:
    rng = torch.Generator().manual_seed(1)
    return torch.rand(count, *SHAPE, generator=rng, dtype=torch.float64).to(dtype)


def numbers_for(name: str, count: int = COUNT) -> Tensor:
    rng = torch.Generator().manual_seed(2)
    return torch.rand(count, AUGMENTATIONS[name].numbers, generator=rng, dtype=torch.float64)


def moved(image: Tensor, numbers: list[float], border: str) -> Tensor:
    padded = functional.pad(image, [4], padding_mode=border)
    window = functional.crop(padded, int(numbers[0] * 9), int(numbers[1] * 9), *image.shape[1:])
    return functional.horizontal_flip(window) if numbers[2] < 0.5 else window


def jittered(image: Tensor, numbers: list[float]) -> Tensor:
    """The order is the first number, the four strengths the next ones; the ranges are those that
    torchvision's own transform draws from."""
    *blends, turn = ORDERS[int(numbers[0] * 24)]
    for change in (*blends[:turn], 3, *blends[turn:]):
        low, high = (JITTER.brightness, JITTER.contrast, JITTER.saturation, JITTER.hue)[change]
        image = CHANGES[change](image, low + (high - low) * numbers[1 + change])
    image = functional.horizontal_flip(image) if numbers[5] < 0.5 else image
    return functional.rgb_to_grayscale(image, 3) if numbers[6] < 0.1 else image


BY_TORCHVISION: dict[str, tuple[Callable[[Tensor, list[float]], Tensor], float]] = {
    "none": (lambda image, numbers: image, 0),
    "flip": (
        lambda image, numbers: functional.horizontal_flip(image) if numbers[0] < 0.5 else image,
        0,
    ),
    "crop-flip": (lambda image, numbers: moved(image, numbers, "constant"), 0),
    "reflect-crop-flip": (lambda image, numbers: moved(image, numbers, "reflect"), 0),
    "jitter-flip-gray": (jittered, 1e-5),
}


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_each_image_is_changed_as_torchvision_changes_it(name: str):
    images, numbers = pictures(), numbers_for(name)
    if name == "jitter-flip-gray":
        numbers[:, 0] = (torch.arange(COUNT) % 24 + 0.5) / 24  # every order, twice
    change, tolerance = BY_TORCHVISION[name]
    pairs = zip(images, numbers.tolist(), strict=True)
    expected = torch.stack([change(image, row) for image, row in pairs])
    actual = AUGMENTATIONS[name]().apply(images, numbers)
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_an_image_does_not_depend_on_its_batch(name: str, dtype: torch.dtype):
    images, numbers, augmentation = pictures(dtype), numbers_for(name), AUGMENTATIONS[name]()
    before, together = images.clone(), augmentation.apply(images, numbers)
    assert torch.equal(images, before)
    assert together.dtype == dtype and together.shape == images.shape
    assert together.min() >= 0 and together.max() <= 1
    for size in (1, 5):
        parts = zip(images.split(size), numbers.split(size), strict=True)
        assert torch.equal(torch.cat([augmentation.apply(*part) for part in parts]), together)
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(3))
    assert torch.equal(augmentation.apply(images[order], numbers[order]), together[order])


REFUSED = [
    ("jitter-flip-gray", (1, 28, 28), "images with three color channels"),
    ("reflect-crop-flip", (1, 8, 4), "images of over 4 pixels"),
]


@pytest.mark.parametrize(("name", "shape", "sentence"), REFUSED)
def test_invalid_shapes_are_refused(name: str, shape: tuple[int, ...], sentence: str):
    with pytest.raises(ValueError) as refusal:
        AUGMENTATIONS[name]().check(shape)
    assert str(refusal.value) == f"needs {sentence}, not samples of shape {shape}"
