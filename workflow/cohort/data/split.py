"""Samples on their way from a publisher's files to the store, and back out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np


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
