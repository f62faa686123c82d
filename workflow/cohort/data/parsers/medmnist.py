"""The sets of MedMNIST+: arrays in an .npz, at 28, 64, 128 or 224 pixels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cohort.core.errors import UserError
from cohort.data.npz import StoredArray
from cohort.data.parsers.parser import Parser
from cohort.data.pictures import resized
from cohort.data.split import Blocks, Split


@dataclass(frozen=True, kw_only=True)
class MedMnist(Parser):
    """Parses any set of MedMNIST+, with images resized to `side` pixels if they have others. Gray
    images become RGB, because the papers that use them train networks for color images."""

    name: ClassVar[str] = "medmnist"
    in_digest: ClassVar[bool] = False
    file: str
    side: int

    @classmethod
    def of(cls, files: Sequence[str], shape: Sequence[int]) -> MedMnist:
        (file,) = files
        return cls(file=file, side=shape[-1])

    def parse(self, folder: Path) -> tuple[Split, ...]:
        return tuple(self._split(folder / self.file, part) for part in ("train", "test", "val"))

    def _split(self, path: Path, part: str) -> Split:
        images = StoredArray.open(path, f"{part}_images")
        labels = StoredArray.open(path, f"{part}_labels")
        count, *sides = images.shape
        is_square = len(sides) >= 2 and sides[0] == sides[1]
        if images.dtype != np.uint8 or not is_square or sides[2:] not in ([], [3]):
            shape = " x ".join(map(str, images.shape))
            raise UserError(
                f"{path}: {images.name} is of {images.dtype}, {shape}, and no list of images"
            )
        if labels.shape != (count, 1):
            raise UserError(
                f"{path}: {labels.name} does not hold one number for each of {count} images"
            )

        def read() -> Iterator[np.ndarray]:
            for block in images.blocks():
                colored = block if block.ndim == 4 else np.repeat(block[..., np.newaxis], 3, axis=3)
                if colored.shape[1] != self.side:
                    colored = resized(colored, self.side)
                yield colored.transpose(0, 3, 1, 2)

        values = Blocks((count, 3, self.side, self.side), read)
        return Split(values, labels.all()[:, 0].astype(np.int64))
