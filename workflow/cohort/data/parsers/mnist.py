"""MNIST and Fashion-MNIST: images and labels in IDX files."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cohort.core.errors import UserError
from cohort.data.parsers.parser import Parser
from cohort.data.split import Split

UNSIGNED_BYTES = 0x08


@dataclass(frozen=True, kw_only=True)
class Mnist(Parser):
    """Parses MNIST: 70,000 handwritten digits of 28x28 pixels, in the publisher's split."""

    name: ClassVar[str] = "mnist"

    def parse(self, folder: Path) -> tuple[Split, Split]:
        return _split(folder, "train"), _split(folder, "t10k")


@dataclass(frozen=True, kw_only=True)
class FashionMnist(Mnist):
    """Parses Fashion-MNIST: 70,000 pictures of clothes, in files like those of MNIST."""

    name: ClassVar[str] = "fashion-mnist"


def _split(folder: Path, part: str) -> Split:
    images = read_idx(folder / f"{part}-images-idx3-ubyte", 3)
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte", 1)
    if len(images) != len(labels):
        raise UserError(f"{folder}: {part} has {len(images)} images, but {len(labels)} labels")
    return Split(images[:, np.newaxis], labels)


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Read an IDX file of bytes: two zeros, a type, the number of dimensions, their sizes, the
    values."""
    content = path.read_bytes()
    begin = 4 + 4 * dimensions
    if len(content) < begin or content[:4] != bytes([0, 0, UNSIGNED_BYTES, dimensions]):
        raise UserError(f"{path}: is not an IDX file of bytes in {dimensions} dimensions")
    shape = struct.unpack_from(f">{dimensions}I", content, 4)
    values = np.frombuffer(content, dtype=np.uint8, offset=begin)
    if len(values) != np.prod(shape, dtype=object):
        sides = " x ".join(map(str, shape))
        raise UserError(f"{path}: holds {len(values)} values, but its head names {sides}")
    return values.reshape(shape)
