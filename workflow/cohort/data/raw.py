"""Raw files as config/datasets.yaml declares them, and archives read as streams: nothing is written
to a path that an archive names, and a broken one is a UserError."""

import contextlib
import gzip
import hashlib
import math
import os
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import numpy as np

from cohort.core.errors import UserError, os_error_sentence
from cohort.data.split import Blocks

BLOCK = 16 << 20  # bytes of an array that are read at once
ZIP = b"PK\3\4"  # the bytes with which a zip archive begins
HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """A file that a parser reads, from `source`, one of the `mirrors`, or the user who downloaded
    it behind a `login`. `sha256` and `bytes` are those of the content. With `md5` or `member` too,
    it comes packed: a .gz, or the `member` of a .tar.gz or .zip, with this MD5. An `md5` alone is
    that of the file itself."""

    source: str = ""
    mirrors: list[str] = field(default_factory=list)
    login: str = ""
    sha256: str = ""
    bytes: int = 0
    md5: str = ""
    member: str = ""

    @property
    def is_archive(self) -> bool:
        """Whether the publisher's file is an archive that must be extracted."""
        return bool(self.sha256 and (self.md5 or self.member))

    @property
    def source_name(self) -> str:
        """The file name in `source`."""
        return urlsplit(self.source).path.rpartition("/")[2]


def verify_checksum(file: RawFile, path: Path, source: str, *, packed: bool = False) -> None:
    """Raise UserError unless a file has the declared checksum, or that of the archive which holds
    it if it is `packed`; `source` names it in the error. Without a checksum, as for files behind a
    login, only refuse web pages, which servers without the file and captive networks send."""
    has_md5 = packed or not file.sha256
    algorithm, expected = ("MD5", file.md5) if has_md5 else ("SHA-256", file.sha256)
    with open(path, "rb") as stream:
        start = stream.read(512).lstrip().lower()
        stream.seek(0)
        digest = hashlib.file_digest(stream, algorithm.replace("-", "")).hexdigest()
    if digest == expected:
        return
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise UserError(f"{source}: is a web page, not the file that datasets.yaml expects")
    if expected:
        raise UserError(f"{source}: {algorithm} is {digest}, datasets.yaml expects {expected}")


def files_in_mirror(mirror: str, names: set[str]) -> list[Path]:
    """All files below the mirror with one of these names; checksums tell which file is meant."""
    if not mirror:
        return []
    check_mirror(mirror)
    folders = os.walk(Path(mirror).expanduser(), followlinks=True)
    return sorted(Path(top, name) for top, _, files in folders for name in names & {*files})


def check_mirror(mirror: str) -> None:
    """Raise UserError if the mirror is not a folder."""
    if not Path(mirror).expanduser().is_dir():
        fix = "name one with the publishers' files, or leave it out to download them"
        raise UserError(f"data_mirror is '{mirror}', which is not a folder; {fix}")


@contextlib.contextmanager
def explain_broken_file(source: str) -> Iterator[None]:
    """Turn any exception of a broken file in this block into a UserError; the disk's pass."""
    try:
        yield
    except Exception as error:  # a broken archive may raise anything
        if isinstance(error, UserError) or os_error_sentence(error):
            raise
        reason = str(error) or type(error).__name__
        raise UserError(f"{source}: cannot be read ({reason})") from None


def unpack(packed: Path, member: str, size: int, target: Path, source: str) -> None:
    """Write the `member` of a .zip or .tar.gz, or the content of a .gz if it is empty, to `target`,
    but no more than one byte above `size`. `source` names the archive in error messages."""
    with explain_broken_file(source), contextlib.ExitStack() as stack:
        content: Any
        if packed.suffix == ".zip" or stack.enter_context(open(packed, "rb")).read(4) == ZIP:
            content = stack.enter_context(zipfile.ZipFile(packed)).open(member)
        elif member:
            archive = stack.enter_context(tarfile.open(packed))
            members = (archive.extractfile(info) for info in archive if info.name == member)
            content = next(members, None)
        else:
            content = stack.enter_context(gzip.open(packed))
        if content is None:
            raise ValueError(f"it holds no file {member}")
        target.write_bytes(content.read(size + 1))


def tar_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files in a .tar.gz, in the archive's order."""
    with explain_broken_file(str(path)), tarfile.open(path, "r|gz") as archive:
        while (info := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]  # or 270,000 headers pile up
            if info.isfile() and (content := archive.extractfile(info)):
                yield info.name, content.read()


@contextlib.contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip; UserError if it is none."""
    with explain_broken_file(str(path)):
        archive = zipfile.ZipFile(path)
    with archive:
        yield archive


def zip_files(archive: zipfile.ZipFile) -> list[str]:
    """The names of a zip's files, without hidden ones and those that macOS adds."""
    return [name for name in archive.namelist() if not re.search(r"(^|/)(\.|__MACOSX)|/$", name)]


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a picture or a list in a zip."""
    with explain_broken_file(f"{archive.filename}: {name}"):
        return archive.read(name)


def read_npz(path: Path, name: str) -> Blocks:
    """An array of whole numbers in an .npz, read in blocks of rows: it may not fit in memory."""
    with _open_array(path, name) as (shape, _, _):
        pass

    def read() -> Iterator[np.ndarray]:
        with _open_array(path, name) as (_, dtype, stream):
            row = dtype.itemsize * math.prod(shape[1:])
            rows = max(1, BLOCK // max(1, row))
            for begin in range(0, shape[0], rows):
                count = min(rows, shape[0] - begin)
                yield np.frombuffer(stream.read(count * row), dtype).reshape(count, *shape[1:])
            stream.read(1)  # verifies the checksum

    return Blocks(shape, read)


@contextlib.contextmanager
def _open_array(path: Path, name: str) -> Iterator[tuple[tuple[int, ...], Any, IO[bytes]]]:
    """The shape and dtype of an array in an .npz, and the stream of its values."""
    with (
        explain_broken_file(f"{path}: {name}"),
        zipfile.ZipFile(path) as archive,
        archive.open(f"{name}.npy") as stream,
    ):
        shape, by_columns, dtype = HEADERS[np.lib.format.read_magic(stream)](stream)
        if dtype.kind not in "iu" or by_columns or not shape or min(shape) < 1:
            raise ValueError(f"it is {shape} of {dtype}, not rows of whole numbers")
        yield shape, dtype, stream
