"""A picture file as an array of bytes. Pillow reads it; what is broken, huge or of another size is one sentence."""

from __future__ import annotations

import io
import re
import warnings

import numpy as np

from cohort.core.errors import UserError

PIXELS = 50_000_000  # more than any picture here has: a small file can hold endless black


def picture(content: bytes, side: int, called: str, *, resize: bool = False) -> np.ndarray:
    """Red, green and blue x `side` x `side`, gray ones thrice the same; `called` is what a reader knows the file by.

    With `resize`, pictures of any size and shape are brought to this one (bilinear, each new pixel a mean over what it covers).
    """
    from PIL import Image

    try:
        with (
            warnings.catch_warnings(),
            Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image,
        ):
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            if image.width * image.height > PIXELS:
                raise ValueError(
                    f"{image.width} x {image.height} pixels are more than are believed"
                )
            found, colored = image.size, image.convert("RGB")
    except Exception as error:  # a broken picture may raise anything
        reason = (
            re.sub("<_io.BytesIO[^>]*>", "it", " ".join(str(error).split())) or type(error).__name__
        )
        raise UserError(f"{called}: is no picture that can be read ({reason})") from None
    if found != (side, side):
        if not resize:
            raise UserError(
                f"{called}: is a picture of {found[0]} x {found[1]} pixels, {side} x {side} are expected"
            )
        colored = colored.resize((side, side), Image.Resampling.BILINEAR)
    return np.asarray(colored).transpose(2, 0, 1)


def resized(images: np.ndarray, side: int) -> np.ndarray:
    """Images x height x width x 3 at another size, in the same way."""
    from PIL import Image

    return np.stack(
        [
            np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR))
            for image in images
        ]
    )
