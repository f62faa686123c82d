"""Decode picture files with Pillow, and resize images."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING

import numpy as np

from cohort.core.errors import UserError
from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from PIL import Image
else:
    Image = lazy("PIL.Image")

PIXELS = 50_000_000  # more than any picture here has; a tiny file can claim billions


def decode_picture(content: bytes, side: int, called: str, *, resize: bool = False) -> np.ndarray:
    """Decode an untrusted PNG or JPEG to 3 x `side` x `side` bytes; gray becomes RGB.

    With `resize`, pictures of any size are resized (bilinear with antialiasing); without it they
    must have this size. `called` names the file in error messages.
    """
    try:
        with (
            warnings.catch_warnings(),
            Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image,
        ):
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            if image.width * image.height > PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels are more than are allowed")
            size, colored = image.size, image.convert("RGB")
    except Exception as error:  # a broken picture may raise anything
        words = re.sub("<_io.BytesIO[^>]*>", "it", " ".join(str(error).split()))
        reason = words or type(error).__name__
        raise UserError(f"{called}: is not a readable picture ({reason})") from None
    if size != (side, side):
        if not resize:
            raise UserError(
                f"{called}: is a picture of {size[0]} x {size[1]} pixels, "
                f"{side} x {side} are expected"
            )
        colored = colored.resize((side, side), Image.Resampling.BILINEAR)
    return np.asarray(colored).transpose(2, 0, 1)


def resized(images: np.ndarray, side: int) -> np.ndarray:
    """Resize RGB images, an array of count x height x width x 3, as `decode_picture` does."""
    pictures = map(Image.fromarray, images)
    bilinear = Image.Resampling.BILINEAR
    return np.stack([np.asarray(image.resize((side, side), bilinear)) for image in pictures])
