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
    """One of its sets at one size. Gray images become RGB, three times the same: the papers that use them feed networks for color images.

    The publisher's validation part is left out; a study's setting `validation` sets aside samples of the training part.
    """

    file: ClassVar[str]
    side: ClassVar[int]

    def parse(self, folder: Path) -> tuple[Split, Split]:
        return self._split(folder / self.file, "train"), self._split(folder / self.file, "test")

    def _split(self, path: Path, part: str) -> Split:
        images, labels = (
            StoredArray.of(path, f"{part}_images"),
            StoredArray.of(path, f"{part}_labels"),
        )
        if (
            images.dtype != np.uint8
            or images.shape[1] != images.shape[2]
            or images.shape[3:] not in ((), (3,))
        ):
            raise UserError(
                f"{path}: {images.name} is of {images.dtype}, {' x '.join(map(str, images.shape))}, and no list of images"
            )
        if labels.shape != (images.shape[0], 1):
            raise UserError(
                f"{path}: {labels.name} does not hold one number for each of {images.shape[0]} images"
            )

        def read() -> Iterator[np.ndarray]:
            for block in images.blocks():
                colored = block if block.ndim == 4 else np.repeat(block[..., np.newaxis], 3, axis=3)
                yield (
                    colored if colored.shape[1] == self.side else resized(colored, self.side)
                ).transpose(0, 3, 1, 2)

        return Split(
            Blocks((images.shape[0], 3, self.side, self.side), read),
            labels.all()[:, 0].astype(np.int64),
        )


class PathMnist(MedMnist):
    """Nine kinds of tissue, in color."""

    name: ClassVar[str] = "pathmnist"
    file: ClassVar[str] = "pathmnist.npz"
    side: ClassVar[int] = 28


class PathMnist32(PathMnist):
    """The images of 28 pixels at the size that networks for CIFAR take."""

    name: ClassVar[str] = "pathmnist-32"
    side: ClassVar[int] = 32


class PathMnist64(MedMnist):
    """The same set, larger."""

    name: ClassVar[str] = "pathmnist-64"
    file: ClassVar[str] = "pathmnist_64.npz"
    side: ClassVar[int] = 64


class PathMnist128(MedMnist):
    """The same set, larger."""

    name: ClassVar[str] = "pathmnist-128"
    file: ClassVar[str] = "pathmnist_128.npz"
    side: ClassVar[int] = 128


class PathMnist224(MedMnist):
    """The same set, at the size of its sources."""

    name: ClassVar[str] = "pathmnist-224"
    file: ClassVar[str] = "pathmnist_224.npz"
    side: ClassVar[int] = 224


class TissueMnist(MedMnist):
    """Eight kinds of kidney cells, gray."""

    name: ClassVar[str] = "tissuemnist"
    file: ClassVar[str] = "tissuemnist.npz"
    side: ClassVar[int] = 28


class TissueMnist32(TissueMnist):
    """The images of 28 pixels at the size that networks for CIFAR take."""

    name: ClassVar[str] = "tissuemnist-32"
    side: ClassVar[int] = 32


class TissueMnist64(MedMnist):
    """The same set, larger."""

    name: ClassVar[str] = "tissuemnist-64"
    file: ClassVar[str] = "tissuemnist_64.npz"
    side: ClassVar[int] = 64


class TissueMnist128(MedMnist):
    """The same set, larger."""

    name: ClassVar[str] = "tissuemnist-128"
    file: ClassVar[str] = "tissuemnist_128.npz"
    side: ClassVar[int] = 128


class TissueMnist224(MedMnist):
    """The same set, larger."""

    name: ClassVar[str] = "tissuemnist-224"
    file: ClassVar[str] = "tissuemnist_224.npz"
    side: ClassVar[int] = 224
