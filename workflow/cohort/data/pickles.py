"""Read untrusted pickles of arrays, with an unpickler that refuses every name an array does not
need."""

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
        """Look a name up among the allowed ones only, so that a pickle can import nothing."""
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no array needs")
        return ALLOWED[module, name]


def read_pickle(path: Path) -> dict[Any, Any]:
    """Read a pickled dict; strings of Python 2 become bytes."""
    try:
        with open(path, "rb") as file:
            content = _Unpickler(file, encoding="bytes").load()
    except Exception as error:  # a broken pickle may raise anything
        reason = " ".join(str(error).split())
        raise UserError(
            f"{path}: is not read, because it is not a pickle of arrays ({reason})"
        ) from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: holds no mapping of names to arrays")
    return content
