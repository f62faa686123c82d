"""A data set's samples as parsers, the prepare stage and the store exchange them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np


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
