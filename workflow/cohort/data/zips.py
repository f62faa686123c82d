"""A zip, read without trust: its members are read into memory or as streams, and never written to a path that it names."""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from cohort.core.errors import UserError, refusal

MEMBER_LIMIT = 64 << 20  # bytes of one member once unpacked: a picture or a list
TOTAL_LIMIT = 24 << 30  # bytes of all of them
WAYS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
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
    """An open zip whose members were all found harmless. `names` lists its files, without what a Mac or an editor hides among them."""

    def __init__(
        self, path: Path, member_limit: int = MEMBER_LIMIT, total_limit: int = TOTAL_LIMIT
    ):
        self.path = path
        with self._explained("cannot be opened as a zip"):
            self._archive = zipfile.ZipFile(path)
        self._members = {
            info.filename: info for info in self._archive.infolist() if not info.is_dir()
        }
        try:
            self._check(member_limit, total_limit)
        except UserError:
            self._archive.close()
            raise
        self.names = [
            name
            for name in self._members
            if not any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)
        ]

    def __enter__(self) -> Zip:
        return self

    def __exit__(self, *error: object) -> None:
        self._archive.close()

    def read(self, name: str) -> bytes:
        """The content of a member."""
        with self.open(name) as stream:
            content = stream.read(
                self.size(name) + 1
            )  # one more than there are: so its checksum is looked at
        if len(content) != self.size(name):
            raise UserError(
                f"{self.path}: {name} unpacks to {len(content)} bytes, but is said to have {self.size(name)}"
            )
        return content

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """A member as a stream, which ends at its declared size."""
        if name not in self._members:
            raise UserError(f"{self.path}: holds no {name}")
        with (
            self._explained(f"{name} in it cannot be unpacked"),
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
            if info.flag_bits & 1 or info.compress_type not in WAYS:
                self._refuse(info, "which is encrypted, or packed in an unusual way")
            if info.file_size > member_limit:
                self._refuse(
                    info,
                    f"of {info.file_size} bytes, more than the {member_limit} that are believed",
                )
        if len({info.filename for info in infos}) < len(infos):
            raise UserError(
                f"{self.path}: is not trusted, because it holds two members of one name"
            )
        if sum(info.file_size for info in infos) > total_limit:
            raise UserError(
                f"{self.path}: is not trusted, because it unpacks to more than {total_limit} bytes, which no data set here has"
            )

    def _refuse(self, info: zipfile.ZipInfo, reason: str) -> None:
        raise UserError(
            f"{self.path}: is not trusted, because it holds {info.filename!r}, {reason}"
        )

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except BROKEN as error:
            if refusal(error):  # there is no room, or no permission, for what is in it
                raise
            raise UserError(
                f"{self.path}: {what} ({' '.join(str(error).split()) or type(error).__name__})"
            ) from None
