"""Files that are there whole or not at all, and hashes of files."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.errors import explained

if TYPE_CHECKING:
    import h5py


@contextlib.contextmanager
def replacing(path: str | Path, *, sync: bool = True) -> Iterator[Path]:
    """A temporary name beside `path`: synced and renamed onto it when the block ends well, removed when it does not."""
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            if sync:
                _sync(temporary)
            temporary.replace(path)
            if sync:
                _sync(path.parent)
        except OSError as error:
            if str(temporary) in (str(error.filename), str(error.filename2)):
                error.filename = str(path)  # the name that a reader knows
            raise
        finally:
            with contextlib.suppress(OSError):  # a disk that can only be read refuses this too, and nothing is there
                temporary.unlink()


@contextlib.contextmanager
def new_hdf5(path: str | Path) -> Iterator[h5py.File]:
    """A new HDF5 file, there whole when the block ends well or not at all."""
    import h5py

    with replacing(path) as temporary, _Quiet(temporary, "w+b") as stream:
        try:
            with h5py.File(stream, "w") as file:
                yield file
        finally:
            if stream.error is not None:
                raise stream.error


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


def check_writable(folder: str | Path) -> None:
    """Raise where a folder is there, but no file can be made in it."""
    folder = Path(folder)
    if not folder.exists() or (folder.is_dir() and os.access(folder, os.W_OK)):
        return
    read_only = errno.EROFS if os.statvfs(folder).f_flag & os.ST_RDONLY else errno.EACCES
    with explained():
        raise OSError(read_only if folder.is_dir() else errno.ENOTDIR, "", str(folder))


def write_text(path: str | Path, text: str, *, sync: bool = True) -> None:
    """Write a small text file, whole or not at all."""
    with replacing(path, sync=sync) as temporary:
        temporary.write_text(text, encoding="utf-8")


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def code_hash(*folders: str) -> str:
    """A hash of the Python files of some of Cohort's packages: a param of the stages that are cheap to run again."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for file in sorted(file for folder in folders for file in (root / folder).rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
