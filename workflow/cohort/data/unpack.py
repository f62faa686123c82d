"""One file out of a .gz or a .tar.gz, read as a stream: nothing is ever written to a path that an archive names."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, Any

from cohort.errors import UserError, refusal

LIMIT = 4 << 30  # bytes of a whole archive once unpacked: a small file can hold endless zeros
BLOCK = 1 << 20


def unpack(packed: Path, member: str, size: int, target: Path, called: str) -> None:
    """Write a file of `size` bytes, the `member` of an archive or the only one of a .gz, to `target`."""
    try:
        with gzip.open(packed) as stream:
            if not member:
                _copy(stream, size, target, called)
                return
            limited: Any = _Limited(stream, called)  # all of a file that a stream of tarfile asks for
            with tarfile.open(fileobj=limited, mode="r|") as archive:
                _copy(_find(archive, member, called), size, target, f"{member} in {called}")
    except (EOFError, OSError, zlib.error, tarfile.TarError) as error:
        if refusal(error):  # there is no room, or no permission, for what is in it
            raise
        raise UserError(f"{called}: cannot be unpacked ({error})") from None


def _find(archive: tarfile.TarFile, member: str, called: str) -> IO[bytes]:
    for info in archive:
        path = PurePosixPath(info.name)
        if path.is_absolute() or ".." in path.parts:
            raise UserError(f"{called}: is not trusted, because it holds {info.name!r}, a path that leads out of it")
        if not (info.isfile() or info.isdir()):
            raise UserError(f"{called}: is not trusted, because it holds {info.name!r}, which is neither a file nor a folder")
        if path == PurePosixPath(member) and (stream := archive.extractfile(info)) is not None:
            return stream
    raise UserError(f"{called}: holds no {member}")


def _copy(stream: Any, size: int, target: Path, called: str) -> None:
    left = size
    with open(target, "wb") as file:
        while left and (block := stream.read(min(left, BLOCK))):
            file.write(block)
            left -= len(block)
    if left:
        raise UserError(f"{called}: unpacks to {size - left} bytes, config/datasets.yaml expects {size}")
    if stream.read(1):
        raise UserError(f"{called}: unpacks to more than the {size} bytes that config/datasets.yaml expects")


class _Limited:
    """A stream that refuses to go on for ever."""

    def __init__(self, stream: gzip.GzipFile, called: str):
        self.stream, self.called, self.left = stream, called, LIMIT

    def read(self, size: int) -> bytes:
        data = self.stream.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise UserError(f"{self.called}: unpacks to more than {LIMIT} bytes, which no data set here has")
        return data
