"""HDF5 files that are written atomically and carry their checksums, in the 512 bytes that HDF5
leaves to applications: a CRC-32 of each large array, verified when it is read, and a SHA-256 of all
other bytes, verified before HDF5 parses any of them."""

import contextlib
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np

from cohort.core.files import atomic_write
from cohort.core.sealed_json import DAMAGED

SEAL_BYTES = 512
LARGE = 1 << 20  # bytes from which an array has a checksum of its own
BLOCK = 1 << 20


class SealedFile(h5py.File):
    """An HDF5 file, opened once its checksum is verified, whose large arrays are verified when they
    are read: ValueError if one is damaged. A file that is damaged may raise any error."""

    def __init__(self, path: str | Path):
        with open(path, "rb") as stream:
            try:
                seal = json.loads(stream.read(SEAL_BYTES))
                self.large, expected = dict(seal["large"]), seal["sha256"]
            except (ValueError, TypeError, KeyError, RecursionError):
                raise ValueError("it does not begin like a file of this program") from None
            if _sha256_of_rest(stream, self.large) != expected:
                raise ValueError(DAMAGED)
        super().__init__(path, locking=False)  # a sealed file never changes

    def __getitem__(self, name: str) -> h5py.Dataset:
        if name in self.large:
            begin, size, crc = self.large[name]
            with open(self.filename, "rb") as stream:
                if _crc(stream, begin, size) != crc:
                    raise ValueError(DAMAGED)
        return super().__getitem__(name)

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by their paths, verified."""
        return {name: array[()] for name, array in _arrays(self)}


@contextlib.contextmanager
def new_hdf5(path: str | Path) -> Iterator[h5py.File]:
    """Create an HDF5 file with checksums. It replaces `path` only if the block succeeds."""
    with atomic_write(path) as temporary, _DeferredErrors(temporary, "w+b") as stream:
        try:
            with h5py.File(stream, "w", userblock_size=SEAL_BYTES) as file:
                yield file
                file.flush()
                is_small = os.fstat(stream.fileno()).st_size < LARGE  # so it has no large array
                arrays = [] if is_small else _arrays(file)
                large = [item for item in arrays if item[1].nbytes >= LARGE]
                large.sort(key=lambda item: item[1].nbytes, reverse=True)
                ranges = {name: (array.id.get_offset(), array.nbytes) for name, array in large}
            sums = {name: [*pair, _crc(stream, *pair)] for name, pair in ranges.items()}
            while len(json.dumps(sums)) > SEAL_BYTES - 100:  # the SHA-256 covers the smallest
                sums.popitem()
            seal = json.dumps({"sha256": _sha256_of_rest(stream, sums), "large": sums}).encode()
            stream.seek(0)
            stream.write(seal.ljust(SEAL_BYTES, b"\n"))
        finally:
            if stream.error is not None:
                raise stream.error


def _arrays(file: h5py.File) -> list[tuple[str, h5py.Dataset]]:
    """All arrays of a file with their paths."""
    names: list[str] = []
    file.visit(names.append)
    items = ((name, file[name]) for name in names)
    return [(name, item) for name, item in items if isinstance(item, h5py.Dataset)]


def _sha256_of_rest(stream: IO[bytes], large: Mapping[str, Any]) -> str:
    """The SHA-256 of all bytes behind the seal that belong to no large array."""
    digest, position = hashlib.sha256(), SEAL_BYTES
    end_of_file = os.fstat(stream.fileno()).st_size
    for begin, size, *_ in [*sorted(large.values()), (end_of_file, 0)]:
        stream.seek(position)
        digest.update(stream.read(max(0, begin - position)))
        position = begin + size
    return digest.hexdigest()


def _crc(stream: IO[bytes], begin: int, size: int) -> int:
    stream.seek(begin)
    crc = 0
    while size > 0 and (block := stream.read(min(size, BLOCK))):
        crc, size = zlib.crc32(block, crc), size - len(block)
    return crc


class _DeferredErrors(io.FileIO):
    """A file whose writes never fail, as HDF5 crashes on a full disk: the first error is kept."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while self.error is None and len(rest):
                rest = rest[super().write(rest) :]
        except OSError as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0
