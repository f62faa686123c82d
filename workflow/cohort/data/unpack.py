"""Unpack untrusted archives as streams. Nothing is ever written to a path that an archive names."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from cohort.core.errors import UserError, refusal
from cohort.data.zips import Zip

LIMIT = 4 << 30  # unpacked bytes of an archive; a small file can unpack to endless zeros
BLOCK = 1 << 20


def unpack(packed: Path, member: str, size: int, target: Path, called: str) -> None:
    """Write the `member` of an archive, or the content of a .gz if it is empty, to `target`. It
    must have `size` bytes; `called` names the archive in error messages."""
    if packed.suffix == ".zip":
        with Zip(packed) as archive, archive.open(member) as stream:
            return _copy(stream, size, target, f"{member} in {called}")
    with _explain_errors(called), gzip.open(packed) as stream:
        if not member:
            _copy(stream, size, target, called)
            return None
        for info, content in _checked_members(stream, called):
            if PurePosixPath(info.name) == PurePosixPath(member) and info.isfile():
                _copy(content, size, target, f"{member} in {called}")
                return None
    raise UserError(f"{called}: holds no {member}")


def tar_files(packed: Path, largest: int) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the files in a .tar.gz, in the archive's order."""
    with _explain_errors(str(packed)), gzip.open(packed) as stream:
        for info, content in _checked_members(stream, str(packed)):
            if info.isfile():
                if info.size > largest:
                    raise UserError(
                        f"{packed}: {info.name!r} has {info.size} bytes, "
                        f"more than the {largest} that are allowed"
                    )
                yield info.name, content.read()


@contextmanager
def _explain_errors(called: str) -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError, zlib.error, tarfile.TarError) as error:
        if refusal(error):  # the disk's fault, not the archive's
            raise
        raise UserError(f"{called}: cannot be unpacked ({error})") from None


def _checked_members(
    stream: gzip.GzipFile, called: str
) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    """Yield the members of a .tar.gz; UserError if one is neither file nor folder, or leads
    outside."""
    limited: Any = _LimitedStream(stream, called)  # as much of a file as tarfile needs
    with tarfile.open(fileobj=limited, mode="r|") as archive:
        while (info := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]  # or 100,000 headers pile up
            path = PurePosixPath(info.name)
            reason = f"{called}: is not trusted, because it holds {info.name!r}"
            if path.is_absolute() or ".." in path.parts:
                raise UserError(f"{reason}, a path that leads out of it")
            if not (info.isfile() or info.isdir()):
                raise UserError(f"{reason}, which is neither a file nor a folder")
            yield info, archive.extractfile(info) or io.BytesIO()


def _copy(stream: Any, size: int, target: Path, called: str) -> None:
    left = size
    with open(target, "wb") as file:
        while left and (block := stream.read(min(left, BLOCK))):
            file.write(block)
            left -= len(block)
    if left:
        raise UserError(
            f"{called}: unpacks to {size - left} bytes, config/datasets.yaml expects {size}"
        )
    if stream.read(1):
        raise UserError(
            f"{called}: unpacks to more than the {size} bytes that config/datasets.yaml expects"
        )


class _LimitedStream:
    """A stream that fails once more bytes were read from it than any data set here has."""

    def __init__(self, stream: gzip.GzipFile, called: str):
        self.stream, self.called, self.left = stream, called, LIMIT

    def read(self, size: int) -> bytes:
        data = self.stream.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise UserError(
                f"{self.called}: unpacks to more than {LIMIT} bytes, which no data set here has"
            )
        return data
