"""Splits of samples as parsers, the prepare stage and the store exchange them; base parsers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cohort.core.components import Component


@dataclass(frozen=True)
class Blocks:
    """Values that may not fit in memory: their shape, and a function that reads them by blocks."""

    shape: tuple[int, ...]
    read: Callable[[], Iterator[np.ndarray]]


@dataclass(frozen=True)
class Split:
    """The samples of a split: `values` with a row each (channels x height x width, characters, or
    columns), labels from 0, and each one's group (domain or role) if the data set has `groups`."""

    values: np.ndarray | Blocks
    labels: np.ndarray
    groups: np.ndarray | None = None


class Parser(Component):
    """Reads the raw files of the data set of its name, and of those that name it as their `parser`.
    Sources, checksums, sizes and scaling are declared in config/datasets.yaml."""

    in_digest: ClassVar[bool] = True
    """Whether the digest of a data set that names this parser includes the name; False if the files
    alone determine the samples."""

    def parse(self, folder: Path) -> tuple[Split, ...]:
        """Read the raw files in `folder` and return the training and the test split, and then the
        publisher's validation split if there is one."""
        raise NotImplementedError
