"""HDF5 files that are there whole or not at all, carry their checksums, and are read without trust.

The first 512 bytes, which HDF5 leaves to whoever writes a file, hold a seal: a SHA-256 of everything after them but large arrays, and a
CRC-32 of each of these, which is looked at when the array is read. So nothing is read that changed after it was written, and HDF5 itself
never sees a damaged file. Files of the first versions begin with HDF5's own signature and have no seal.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np

from cohort.core.files import replacing

SEAL = 512  # bytes
SIGNATURE = b"\x89HDF\r\n\x1a\n"
LARGE = 1 << 20  # bytes of an array from which on it has a checksum of its own
BLOCK = 1 << 20
PLAIN = (h5py.h5d.CONTIGUOUS, h5py.h5d.COMPACT)
DAMAGED = "its checksum does not fit: it was damaged after it was written"


@contextlib.contextmanager
def new_hdf5(path: str | Path) -> Iterator[h5py.File]:
    """A new HDF5 file, there whole and sealed when the block ends well, or not at all."""
    with replacing(path) as temporary, _Quiet(temporary, "w+b") as stream:
        try:
            with h5py.File(stream, "w", userblock_size=SEAL) as file:
                yield file
                file.flush()
                large = _large_arrays(file)
            _seal(stream, large)
        finally:
            if stream.error is not None:
                raise stream.error


@contextlib.contextmanager
def sealed_hdf5(path: str | Path) -> Iterator[Sealed]:
    """An HDF5 file that is as it was written. Whatever is wrong with it raises some error: a file of an enemy's may raise any."""
    with open(path, "rb") as stream:
        large = _checked(stream)
    with h5py.File(path) as file:
        yield Sealed(file, large)


class Sealed:
    """What may be read of a file: attributes, and arrays of numbers that lie in the file itself in one piece."""

    def __init__(self, file: h5py.File, large: Mapping[str, Any]):
        self.file, self.large, self.attrs = file, large, file.attrs

    def __contains__(self, name: str) -> bool:
        return name in self.file

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by their paths. Links that lead out of the file are not followed."""
        found: dict[str, np.ndarray] = {}

        def take(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                found[name] = self._sound(name, item)[()]

        self.file.visititems(take)
        return found

    def __getitem__(self, name: str) -> h5py.Dataset:
        """An array, found unchanged."""
        parts = name.split("/")
        for count in range(1, len(parts) + 1):
            if not isinstance(self.file.get("/".join(parts[:count]), getlink=True), h5py.HardLink):
                raise KeyError(f"{name} is a link")
        return self._sound(name, self.file[name])

    def _sound(self, name: str, array: h5py.Dataset) -> h5py.Dataset:
        size, made = array.nbytes, array.id.get_create_plist()
        if (
            array.dtype.kind not in "iuf"
            or made.get_layout() not in PLAIN
            or made.get_external_count()
        ):
            raise ValueError(f"{name} is no plain array of numbers")
        if size and array.id.get_storage_size() != size:
            raise ValueError(f"{name} is said to be larger than it is")
        if name in self.large:
            with open(self.file.filename, "rb") as stream:
                if _crc(stream, *self.large[name][:2]) != self.large[name][2]:
                    raise ValueError(DAMAGED)
        return array


def _large_arrays(file: h5py.File) -> dict[str, tuple[int, int]]:
    """Where those arrays begin that are large, and how many bytes they have."""
    found: dict[str, tuple[int, int]] = {}

    def note(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.nbytes >= LARGE:
            found[name] = (item.id.get_offset(), item.nbytes)

    file.visititems(note)
    return found


def _seal(stream: IO[bytes], large: Mapping[str, tuple[int, int]]) -> None:
    sums = {name: [begin, size, _crc(stream, begin, size)] for name, (begin, size) in large.items()}
    text = json.dumps({"sha256": _rest(stream, sums), "large": sums}).encode()
    assert len(text) <= SEAL, "too many large arrays for the seal"
    stream.seek(0)
    stream.write(text.ljust(SEAL, b"\n"))


def _checked(stream: IO[bytes]) -> dict[str, Any]:
    """The large arrays of a file, once all else in it is found unchanged."""
    head = stream.read(SEAL)
    if head.startswith(SIGNATURE):
        return {}
    try:
        seal = json.loads(head)
        sums, expected = dict(seal["large"]), seal["sha256"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("it does not begin like a file of this program") from None
    if _rest(stream, sums) != expected:
        raise ValueError(DAMAGED)
    return sums


def _rest(stream: IO[bytes], large: Mapping[str, Any]) -> str:
    """The SHA-256 of all after the seal that belongs to no large array."""
    digest, place = hashlib.sha256(), SEAL
    for begin, size, *_ in sorted(large.values()):
        stream.seek(place)
        digest.update(stream.read(begin - place))
        place = begin + size
    stream.seek(place)
    while block := stream.read(BLOCK):
        digest.update(block)
    return digest.hexdigest()


def _crc(stream: IO[bytes], begin: int, size: int) -> int:
    stream.seek(begin)
    found = 0
    while size and (block := stream.read(min(size, BLOCK))):
        found = zlib.crc32(block, found)
        size -= len(block)
    return found


class _Quiet(io.FileIO):
    """A file that takes whatever is written and keeps the first error for later: HDF5 crashes the process where a disk is full."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        """All of it, or the rest of it to nowhere."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while self.error is None and len(rest):
                rest = rest[super().write(rest) :]
        except OSError as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        """The new size, also where there is no room for it."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0
