"""PathMNIST and TissueMNIST of MedMNIST+: arrays in an .npz, at 28, 64, 128 and 224 pixels."""

from __future__ import annotations

from collections.abc import Iterator
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
    """A set of MedMNIST+ at one size. Gray images become RGB, because the papers that use them
    train networks for color images.
    """

    file: ClassVar[str]
    side: ClassVar[int]

    def parse(self, folder: Path) -> tuple[Split, ...]:
        return tuple(self._split(folder / self.file, part) for part in ("train", "test", "val"))

    def _split(self, path: Path, part: str) -> Split:
        images = StoredArray.of(path, f"{part}_images")
        labels = StoredArray.of(path, f"{part}_labels")
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


class PathMnist(MedMnist):
    """PathMNIST: nine kinds of tissue, in color."""

    name: ClassVar[str] = "pathmnist"
    file: ClassVar[str] = "pathmnist.npz"
    side: ClassVar[int] = 28


class PathMnist32(PathMnist):
    """PathMNIST, its 28x28 pixels resized to 32x32, the size of CIFAR."""

    name: ClassVar[str] = "pathmnist-32"
    side: ClassVar[int] = 32


class PathMnist64(MedMnist):
    """PathMNIST at 64x64 pixels."""

    name: ClassVar[str] = "pathmnist-64"
    file: ClassVar[str] = "pathmnist_64.npz"
    side: ClassVar[int] = 64


class PathMnist128(MedMnist):
    """PathMNIST at 128x128 pixels."""

    name: ClassVar[str] = "pathmnist-128"
    file: ClassVar[str] = "pathmnist_128.npz"
    side: ClassVar[int] = 128


class PathMnist224(MedMnist):
    """PathMNIST at 224x224 pixels."""

    name: ClassVar[str] = "pathmnist-224"
    file: ClassVar[str] = "pathmnist_224.npz"
    side: ClassVar[int] = 224


class TissueMnist(MedMnist):
    """TissueMNIST: eight kinds of kidney cells, gray."""

    name: ClassVar[str] = "tissuemnist"
    file: ClassVar[str] = "tissuemnist.npz"
    side: ClassVar[int] = 28


class TissueMnist32(TissueMnist):
    """TissueMNIST, its 28x28 pixels resized to 32x32, the size of CIFAR."""

    name: ClassVar[str] = "tissuemnist-32"
    side: ClassVar[int] = 32


class TissueMnist64(MedMnist):
    """TissueMNIST at 64x64 pixels."""

    name: ClassVar[str] = "tissuemnist-64"
    file: ClassVar[str] = "tissuemnist_64.npz"
    side: ClassVar[int] = 64


class TissueMnist128(MedMnist):
    """TissueMNIST at 128x128 pixels."""

    name: ClassVar[str] = "tissuemnist-128"
    file: ClassVar[str] = "tissuemnist_128.npz"
    side: ClassVar[int] = 128


class TissueMnist224(MedMnist):
    """TissueMNIST at 224x224 pixels."""

    name: ClassVar[str] = "tissuemnist-224"
    file: ClassVar[str] = "tissuemnist_224.npz"
    side: ClassVar[int] = 224
