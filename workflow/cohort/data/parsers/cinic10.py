"""CINIC-10: 32x32 pixels, from CIFAR-10 and downscaled from ImageNet, as PNG files in a .tar.gz."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar

import numpy as np

from cohort.data.parsers.listed import is_picture, number_in
from cohort.data.parsers.parser import Parser
from cohort.data.pictures import decode_picture
from cohort.data.split import Blocks, Split
from cohort.data.unpack import tar_files

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIDE = 32
LARGEST = 1 << 20  # bytes of a file in the archive
BLOCK = 5_000  # pictures


@dataclass(frozen=True, kw_only=True)
class Cinic10(Parser):
    """Parses CINIC-10: the parts `train` and `test`, 90,000 pictures each; the third, `valid`, is
    not used.

    The archive is in the order of some file system. It is read once, as a stream, and its pictures
    are kept in memory (half a gigabyte) to sort them by class and name.
    """

    name: ClassVar[str] = "cinic10"

    def parse(self, folder: Path) -> tuple[Split, Split]:
        archive = folder / "CINIC-10.tar.gz"
        by_part: dict[str, list[tuple[int, str, np.ndarray]]] = {"train": [], "test": []}
        for name, content in tar_files(archive, LARGEST):
            *_, part, word, file = ("", "", *PurePosixPath(name).parts)
            if part in by_part and is_picture(file):
                label = number_in(CLASSES, word, "class", f"{archive}: {name}")
                pixels = np.ascontiguousarray(decode_picture(content, SIDE, f"{archive}: {name}"))
                by_part[part].append((label, file, pixels))
        train, test = (
            _split(sorted(pictures, key=lambda item: item[:2])) for pictures in by_part.values()
        )
        return train, test


def _split(pictures: list[tuple[int, str, np.ndarray]]) -> Split:
    def read() -> Iterator[np.ndarray]:
        for begin in range(0, len(pictures), BLOCK):
            yield np.stack([pixels for _, _, pixels in pictures[begin : begin + BLOCK]])

    return Split(
        Blocks((len(pictures), 3, SIDE, SIDE), read),
        np.array([label for label, _, _ in pictures], dtype=np.int64),
    )
