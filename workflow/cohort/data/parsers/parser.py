"""The base of all parsers, and what they return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cohort.core.components import Component


@dataclass(frozen=True)
class Blocks:
    """Values that may not fit in memory: their shape, and a function that reads them in order,
    block by block."""

    shape: tuple[int, ...]
    read: Callable[[], Iterator[np.ndarray]]


@dataclass(frozen=True)
class Split:
    """The samples of a training or test split.

    `values` has one row per sample: channels x height x width, characters, or columns. Labels count
    from 0. `groups` numbers each sample's group (domain or role) if the data set has any.
    """

    values: np.ndarray | Blocks
    labels: np.ndarray
    groups: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class Parser(Component):
    """Reads the raw files of the data set of its name, and of those that name it as their `parser`.
    Sources, checksums, sizes and scaling are facts in config/datasets.yaml."""

    in_digest: ClassVar[bool] = True
    """Whether its name is part of the digest of data sets that name it. Not if their files and
    shape say all that it depends on."""

    @classmethod
    def of(cls, files: Sequence[str], shape: Sequence[int]) -> Parser:
        """The parser for a data set with raw files of these names and samples of this shape."""
        return cls()

    def parse(self, folder: Path) -> tuple[Split, ...]:
        """Read the raw files in `folder` and return the training and the test split, and then the
        publisher's validation split if there is one."""
        raise NotImplementedError
