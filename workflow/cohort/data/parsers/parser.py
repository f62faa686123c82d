"""What a data set's parser is: its publisher's files in, training and test samples out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cohort.components import Component


@dataclass(frozen=True)
class Blocks:
    """Values that are read block by block, because all of them might not fit in memory: their shape, and what reads them in order."""

    shape: tuple[int, ...]
    read: Callable[[], Iterator[np.ndarray]]


@dataclass(frozen=True)
class Split:
    """Samples as the publisher gives them: `values` (pixels as samples x channels x height x width, characters, or columns), labels from 0
    and, where the set has them, the number of each sample's group (its domain, its role)."""

    values: np.ndarray | Blocks
    labels: np.ndarray
    groups: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class Parser(Component):
    """Reads one data set's raw files. Its facts (sources, checksums, sizes, scaling) stand in config/datasets.yaml."""

    def parse(self, folder: Path) -> tuple[Split, Split]:
        """The training and the test split."""
        raise NotImplementedError
