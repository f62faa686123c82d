"""Views that cannot be written to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np


def read_only(array: np.ndarray) -> np.ndarray:
    """A view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def read_only_arrays(arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Arrays by name; neither they nor the mapping can be written to."""
    return MappingProxyType({name: read_only(np.asarray(array)) for name, array in arrays.items()})
