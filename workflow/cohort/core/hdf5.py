"""HDF5 files that are written atomically, carry their checksums, and are read without trust.

The user block, 512 bytes that HDF5 leaves to the application, holds the seal: a CRC-32 of each
large array, verified when that array is read, and a SHA-256 of all other bytes, verified before
HDF5 opens the file. So HDF5 never parses damaged bytes.
"""

from __future__ import annotations

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
UNCHUNKED = (h5py.h5d.CONTIGUOUS, h5py.h5d.COMPACT)


@contextlib.contextmanager
def new_hdf5(path: str | Path) -> Iterator[h5py.File]:
    """Create an HDF5 file with checksums in its header. It replaces `path` only if the block
    succeeds."""
    with atomic_write(path) as temporary, _DeferredErrors(temporary, "w+b") as stream:
        try:
            with h5py.File(stream, "w", userblock_size=SEAL_BYTES) as file:
                yield file
                file.flush()
                is_large = os.fstat(stream.fileno()).st_size >= LARGE
                large = _large_arrays(file) if is_large else {}
            _seal(stream, large)
        finally:
            if stream.error is not None:
                raise stream.error


@contextlib.contextmanager
def sealed_hdf5(path: str | Path) -> Iterator[SealedFile]:
    """Open an HDF5 file once its checksum is verified. A damaged or malicious one may raise any
    error."""
    with open(path, "rb") as stream:
        large = _verify(stream)
    with h5py.File(path) as file:
        yield SealedFile(file, large)


class SealedFile:
    """The safe part of an open HDF5 file: attributes, and contiguous numeric arrays."""

    def __init__(self, file: h5py.File, large: Mapping[str, Any]):
        self.file, self.large, self.attrs = file, large, file.attrs

    def __contains__(self, name: str) -> bool:
        return name in self.file

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by their paths, verified; links to other files are not followed."""
        arrays: dict[str, np.ndarray] = {}

        def take(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                arrays[name] = self._verified(name, item)[()]

        self.file.visititems(take)
        return arrays

    def __getitem__(self, name: str) -> h5py.Dataset:
        """The array of this name, after its checksum was verified."""
        parts = name.split("/")
        for count in range(1, len(parts) + 1):
            if not isinstance(self.file.get("/".join(parts[:count]), getlink=True), h5py.HardLink):
                raise KeyError(f"{name} is a link")
        return self._verified(name, self.file[name])

    def _verified(self, name: str, array: h5py.Dataset) -> h5py.Dataset:
        size, created = array.nbytes, array.id.get_create_plist()
        is_inside = created.get_layout() in UNCHUNKED and not created.get_external_count()
        if array.dtype.kind not in "iuf" or not is_inside:
            raise ValueError(f"{name} is not a plain array of numbers")
        if size and array.id.get_storage_size() != size:
            raise ValueError(f"{name} is said to be larger than it is")
        if name in self.large:
            with open(self.file.filename, "rb") as stream:
                if _crc(stream, *self.large[name][:2]) != self.large[name][2]:
                    raise ValueError(DAMAGED)
        return array


def _large_arrays(file: h5py.File) -> dict[str, tuple[int, int]]:
    """Offset and size in bytes of each large array."""
    large: dict[str, tuple[int, int]] = {}

    def collect_large(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.nbytes >= LARGE:
            large[name] = (item.id.get_offset(), item.nbytes)

    file.visititems(collect_large)
    return large


def _seal(stream: IO[bytes], large: Mapping[str, tuple[int, int]]) -> None:
    sums = {name: [begin, size, _crc(stream, begin, size)] for name, (begin, size) in large.items()}
    text = json.dumps({"sha256": _sha256_of_rest(stream, sums), "large": sums}).encode()
    assert len(text) <= SEAL_BYTES, "too many large arrays for the seal"
    stream.seek(0)
    stream.write(text.ljust(SEAL_BYTES, b"\n"))


def _verify(stream: IO[bytes]) -> dict[str, Any]:
    """Verify everything but the large arrays; return their offsets, sizes and CRC-32s by name."""
    head = stream.read(SEAL_BYTES)
    try:
        seal = json.loads(head)
        sums, expected = dict(seal["large"]), seal["sha256"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("it does not begin like a file of this program") from None
    if _sha256_of_rest(stream, sums) != expected:
        raise ValueError(DAMAGED)
    return sums


def _sha256_of_rest(stream: IO[bytes], large: Mapping[str, Any]) -> str:
    """The SHA-256 of all bytes behind the seal that belong to no large array."""
    digest, position = hashlib.sha256(), SEAL_BYTES
    for begin, size, *_ in sorted(large.values()):
        stream.seek(position)
        digest.update(stream.read(begin - position))
        position = begin + size
    stream.seek(position)
    while block := stream.read(BLOCK):
        digest.update(block)
    return digest.hexdigest()


def _crc(stream: IO[bytes], begin: int, size: int) -> int:
    stream.seek(begin)
    crc = 0
    while size and (block := stream.read(min(size, BLOCK))):
        crc = zlib.crc32(block, crc)
        size -= len(block)
    return crc


class _DeferredErrors(io.FileIO):
    """A file whose writes never fail: the first error is kept for later, because HDF5 crashes the
    process when a disk is full."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all of the data; drop what no longer fits."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while self.error is None and len(rest):
                rest = rest[super().write(rest) :]
        except OSError as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        """Report success even if there is no room for the new size."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0
