"""What is in a .gz or a .tar.gz, read as a stream: nothing is ever written to a path that an archive names."""

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

LIMIT = 4 << 30  # bytes of a whole archive once unpacked: a small file can hold endless zeros
BLOCK = 1 << 20


def unpack(packed: Path, member: str, size: int, target: Path, called: str) -> None:
    """Write a file of `size` bytes, the `member` of an archive or the only one of a .gz, to `target`."""
    if packed.suffix == ".zip":
        with Zip(packed) as archive, archive.open(member) as stream:
            return _copy(stream, size, target, f"{member} in {called}")
    with _explained(called), gzip.open(packed) as stream:
        if not member:
            _copy(stream, size, target, called)
            return None
        for info, content in _trusted(stream, called):
            if PurePosixPath(info.name) == PurePosixPath(member) and info.isfile():
                _copy(content, size, target, f"{member} in {called}")
                return None
    raise UserError(f"{called}: holds no {member}")


def tar_files(packed: Path, largest: int) -> Iterator[tuple[str, bytes]]:
    """The files of a .tar.gz in its order, one after another."""
    with _explained(str(packed)), gzip.open(packed) as stream:
        for info, content in _trusted(stream, str(packed)):
            if info.isfile():
                if info.size > largest:
                    raise UserError(
                        f"{packed}: {info.name!r} has {info.size} bytes, more than the {largest} that are believed"
                    )
                yield info.name, content.read()


@contextmanager
def _explained(called: str) -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError, zlib.error, tarfile.TarError) as error:
        if refusal(error):  # there is no room, or no permission, for what is in it
            raise
        raise UserError(f"{called}: cannot be unpacked ({error})") from None


def _trusted(stream: gzip.GzipFile, called: str) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    """What a .tar.gz holds, as long as all of it is files and folders inside it."""
    limited: Any = _Limited(stream, called)  # all of a file that a stream of tarfile asks for
    with tarfile.open(fileobj=limited, mode="r|") as archive:
        while (info := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]  # or the heads of a hundred thousand files pile up
            path = PurePosixPath(info.name)
            if path.is_absolute() or ".." in path.parts:
                raise UserError(
                    f"{called}: is not trusted, because it holds {info.name!r}, a path that leads out of it"
                )
            if not (info.isfile() or info.isdir()):
                raise UserError(
                    f"{called}: is not trusted, because it holds {info.name!r}, which is neither a file nor a folder"
                )
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


class _Limited:
    """A stream that refuses to go on for ever."""

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
