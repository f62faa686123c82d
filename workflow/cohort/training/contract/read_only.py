"""Arrays that cannot be written to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np

MOST_COPIED = 1 << 20  # bytes; what is larger, such as models of all clients, is not copied


def read_only(array: np.ndarray) -> np.ndarray:
    """The array over a copy in `bytes`, or over a read-only view of itself if it is large: NumPy
    makes neither writable again, nor what they are based on."""
    if isinstance(array.base, bytes | memoryview) and not array.flags.writeable:
        return array
    if array.nbytes > MOST_COPIED:
        return np.asarray(array.data.toreadonly())
    order: Literal["F", "C"] = "F" if array.flags.fnc else "C"
    return np.ndarray(array.shape, array.dtype, array.tobytes(order), order=order)


def read_only_arrays(arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Arrays by name; neither they nor the mapping can be written to."""
    return MappingProxyType({name: read_only(np.asarray(array)) for name, array in arrays.items()})
