"""CIFAR-10 and CIFAR-100: 60,000 color images of 32x32 pixels in pickled batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cohort.core.errors import UserError
from cohort.data.parsers.parser import Parser
from cohort.data.pickles import read_pickle
from cohort.data.split import Split

SHAPE = (3, 32, 32)


@dataclass(frozen=True, kw_only=True)
class Cifar10(Parser):
    """Parses CIFAR-10: ten classes, five batches for training and one for testing."""

    name: ClassVar[str] = "cifar10"

    def parse(self, folder: Path) -> tuple[Split, Split]:
        batches = [_batch(folder / f"data_batch_{number}", b"labels") for number in range(1, 6)]
        images = np.concatenate([batch.values for batch in batches])
        labels = np.concatenate([batch.labels for batch in batches])
        return Split(images, labels), _batch(folder / "test_batch", b"labels")


@dataclass(frozen=True, kw_only=True)
class Cifar10Unit(Cifar10):
    """Parses CIFAR-10 for networks that see its pixels as numbers from 0 to 1, not standardized, as
    Flower's niid_bench prepares it."""

    name: ClassVar[str] = "cifar10-unit"


@dataclass(frozen=True, kw_only=True)
class Cifar100(Parser):
    """Parses CIFAR-100 with its 100 fine classes."""

    name: ClassVar[str] = "cifar100"
    key: ClassVar[bytes] = b"fine_labels"

    def parse(self, folder: Path) -> tuple[Split, Split]:
        return _batch(folder / "train", self.key), _batch(folder / "test", self.key)


@dataclass(frozen=True, kw_only=True)
class Cifar100Coarse(Cifar100):
    """Parses CIFAR-100 with its 20 coarse classes, of five fine ones each."""

    name: ClassVar[str] = "cifar100-coarse"
    key: ClassVar[bytes] = b"coarse_labels"


def _batch(path: Path, key: bytes) -> Split:
    content = read_pickle(path)
    images, labels = content.get(b"data"), content.get(key)
    row = math.prod(SHAPE)
    if (
        not isinstance(images, np.ndarray)
        or images.dtype != np.uint8
        or images.ndim != 2
        or images.shape[1] != row
    ):
        raise UserError(f"{path}: data is not an array of bytes with {row} in each row")
    if (
        not isinstance(labels, list)
        or not all(type(label) is int for label in labels)
        or len(labels) != len(images)
    ):
        raise UserError(f"{path}: {key.decode()} is not a list of {len(images)} whole numbers")
    return Split(images.reshape(-1, *SHAPE), np.array(labels))
