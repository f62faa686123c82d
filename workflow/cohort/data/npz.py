"""Read arrays from an untrusted .npz in blocks of rows, so that 15 GB never have to fit in
memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from cohort.core.errors import UserError
from cohort.data.zips import TOTAL_LIMIT, Zip

BLOCK = 16 << 20  # bytes read at once
HEADER_READERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True)
class StoredArray:
    """An array of integers, called `name` in the .npz at `path`, which is read in blocks."""

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def open(cls, path: Path, name: str) -> StoredArray:
        """Read an array's header and check that its size fits; no values are read yet."""
        with Zip(path, TOTAL_LIMIT) as archive, archive.open(f"{name}.npy") as stream:
            shape, dtype = _read_header(stream, f"{path}: {name}")
            expected = stream.tell() + dtype.itemsize * int(np.prod(shape, dtype=object))
            if archive.size(f"{name}.npy") != expected:
                sides = " x ".join(map(str, shape))
                raise UserError(f"{path}: {name} is not as long as its head says ({sides})")
        return cls(path, name, shape, dtype)

    def blocks(self) -> Iterator[np.ndarray]:
        """Read the rows in order, as many at a time as make a block."""
        row = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=object))
        rows = max(1, BLOCK // max(1, row))
        with Zip(self.path, TOTAL_LIMIT) as archive, archive.open(f"{self.name}.npy") as stream:
            _read_header(stream, f"{self.path}: {self.name}")
            for begin in range(0, self.shape[0], rows):
                count = min(rows, self.shape[0] - begin)
                content = stream.read(count * row)
                if len(content) != count * row:
                    last = begin + len(content) // row
                    raise UserError(f"{self.path}: {self.name} ends in the middle of row {last}")
                yield np.frombuffer(content, self.dtype).reshape(count, *self.shape[1:])
            stream.read(1)  # verifies the checksum

    def all(self) -> np.ndarray:
        """Read the whole array, which must fit in memory."""
        return np.concatenate([np.empty((0, *self.shape[1:]), self.dtype), *self.blocks()])


def _read_header(stream: IO[bytes], called: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    try:
        shape, by_columns, dtype = HEADER_READERS[np.lib.format.read_magic(stream)](stream)
    except (KeyError, ValueError, SyntaxError, TypeError) as error:
        raise UserError(f"{called} is not a NumPy array ({' '.join(str(error).split())})") from None
    if dtype.kind not in "iu" or by_columns or not shape or min(shape) < 0:
        order = " by columns" if by_columns else ""
        raise UserError(f"{called} is of {dtype}{order}, not a list of whole numbers")
    return shape, dtype
