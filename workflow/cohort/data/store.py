"""Read the HDF5 store of prepared data: values and labels of its splits, and the file's attributes.

Values are stored contiguously and uncompressed, so that they can be mapped into memory: a process
reads only what it uses, and all processes of a machine share what was read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cohort.core.hdf5 import SealedFile
from cohort.core.sealed_json import explain_unreadable
from cohort.data.split import Split

FORMAT = 2


def read(path: str | Path, split: str) -> tuple[Split, dict[str, Any]]:
    """Read a split of prepared data, its values mapped into memory, and the file's attributes."""
    with _open_store(path) as file:
        values = file[f"{split}/values"]
        mapped = np.memmap(path, values.dtype, "c", values.id.get_offset(), values.shape)
        labels = file[f"{split}/labels"][:].astype(np.int64)
        return Split(mapped, labels, _groups(file, split)), dict(file.attrs)


def has_validation(path: str | Path) -> bool:
    """Whether prepared data has validation samples of the publisher."""
    with _open_store(path) as file:
        return "validation/labels" in file


def read_labels(path: str | Path) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Read training labels, groups (None if there are none) and number of classes, for dealing."""
    with _open_store(path) as file:
        labels = file["train/labels"][:].astype(np.int64)
        return labels, _groups(file, "train"), int(file.attrs["classes"])


@contextmanager
def _open_store(path: str | Path) -> Iterator[SealedFile]:
    with explain_unreadable(path, "prepared data"), SealedFile(path) as file:
        if file.attrs["format"] != FORMAT:
            raise ValueError(f"it is of format {file.attrs['format']}, not {FORMAT}")
        yield file


def _groups(file: SealedFile, split: str) -> np.ndarray | None:
    return file[f"{split}/groups"][:].astype(np.int64) if f"{split}/groups" in file else None
