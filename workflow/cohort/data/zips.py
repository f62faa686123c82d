"""Read untrusted zips, in memory or as streams. Nothing is ever written to a path that a zip
names."""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from cohort.core.errors import UserError, refusal

MEMBER_LIMIT = 64 << 20  # unpacked bytes of one member, a picture or a list
TOTAL_LIMIT = 24 << 30  # unpacked bytes of all members
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    ValueError,
    RuntimeError,
)


class Zip:
    """An open zip whose member list was checked. `names` lists its files, without hidden files and
    those that macOS adds."""

    def __init__(
        self, path: Path, member_limit: int = MEMBER_LIMIT, total_limit: int = TOTAL_LIMIT
    ):
        self.path = path
        with self._explain_errors("cannot be opened as a zip"):
            self._archive = zipfile.ZipFile(path)
        self._members = {
            info.filename: info for info in self._archive.infolist() if not info.is_dir()
        }
        try:
            self._check(member_limit, total_limit)
        except UserError:
            self._archive.close()
            raise
        self.names = [name for name in self._members if not _is_hidden(name)]

    def __enter__(self) -> Zip:
        return self

    def __exit__(self, *error: object) -> None:
        self._archive.close()

    def read(self, name: str) -> bytes:
        """The content of a member."""
        with self.open(name) as stream:
            content = stream.read(self.size(name) + 1)  # beyond the end, to verify the checksum
        if len(content) != self.size(name):
            raise UserError(
                f"{self.path}: {name} unpacks to {len(content)} bytes, "
                f"but is said to have {self.size(name)}"
            )
        return content

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a member as a stream, which ends at its declared size."""
        if name not in self._members:
            raise UserError(f"{self.path}: holds no {name}")
        with (
            self._explain_errors(f"{name} in it cannot be unpacked"),
            self._archive.open(self._members[name]) as stream,
        ):
            yield stream

    def size(self, name: str) -> int:
        """The declared size of a member."""
        return self._members[name].file_size

    def _check(self, member_limit: int, total_limit: int) -> None:
        infos = self._archive.infolist()
        for info in infos:
            path, mode = PurePosixPath(info.filename), info.external_attr >> 16
            if path.is_absolute() or ".." in path.parts:
                self._refuse(info, "a path that leads out of it")
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                self._refuse(info, "which is neither a file nor a folder")
            if info.flag_bits & 1 or info.compress_type not in COMPRESSIONS:
                self._refuse(info, "which is encrypted, or packed in an unusual way")
            if info.file_size > member_limit:
                size = f"of {info.file_size} bytes, more than the {member_limit} that are allowed"
                self._refuse(info, size)
        if len({info.filename for info in infos}) < len(infos):
            raise UserError(
                f"{self.path}: is not trusted, because it holds two members of one name"
            )
        if sum(info.file_size for info in infos) > total_limit:
            raise UserError(
                f"{self.path}: is not trusted, because it unpacks to more than {total_limit} "
                "bytes, which no data set here has"
            )

    def _refuse(self, info: zipfile.ZipInfo, reason: str) -> None:
        raise UserError(
            f"{self.path}: is not trusted, because it holds {info.filename!r}, {reason}"
        )

    @contextmanager
    def _explain_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except BROKEN as error:
            if refusal(error):  # the disk's fault, not the zip's
                raise
            reason = " ".join(str(error).split()) or type(error).__name__
            raise UserError(f"{self.path}: {what} ({reason})") from None


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)
