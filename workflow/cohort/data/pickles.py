"""Pickles of arrays, read without trust: an unpickler that knows the few names that an array needs and refuses every other."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from cohort.core.errors import UserError

_reconstruct: Any = np.empty(0).__reduce__()[0]
ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """What a pickle may call. It looks names up nowhere else, so nothing is imported on its behalf."""
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no array needs")
        return ALLOWED[module, name]


def read_pickle(path: Path) -> dict[Any, Any]:
    """A pickled mapping, texts of Python 2 as bytes."""
    try:
        with open(path, "rb") as file:
            content = _Unpickler(file, encoding="bytes").load()
    except Exception as error:  # a broken pickle may raise anything
        raise UserError(
            f"{path}: is not read, because it is no pickle of arrays ({' '.join(str(error).split())})"
        ) from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: holds no mapping of names to arrays")
    return content
