"""Read archives as streams: nothing is written to a path that an archive names. A broken one is a
UserError."""

import contextlib
import gzip
import math
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from cohort.core.errors import UserError, refusal
from cohort.data.split import Blocks

BLOCK = 16 << 20  # bytes of an array that are read at once
HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
LARGEST = 64 << 20  # bytes of a member that is read whole, a picture or a list


@contextlib.contextmanager
def explain_broken_file(called: str) -> Iterator[None]:
    """Turn what a broken file raises in this block into a UserError, but no error of the disk."""
    try:
        yield
    except Exception as error:  # a broken archive may raise anything
        if isinstance(error, UserError) or refusal(error):
            raise
        reason = str(error) or type(error).__name__
        raise UserError(f"{called}: cannot be read ({reason})") from None


def unpack(packed: Path, member: str, size: int, target: Path, called: str) -> None:
    """Write the `member` of a .zip or .tar.gz, or the content of a .gz if it is empty, to `target`,
    but no more than one byte above `size`. `called` names the archive in error messages."""
    with explain_broken_file(called), contextlib.ExitStack() as stack:
        content: Any
        if packed.suffix == ".zip":
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
    names = archive.namelist()
    return [name for name in names if not re.search(r"(^|/)(\.|__MACOSX)|/$", name)]


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a picture or a list in a zip."""
    with explain_broken_file(f"{archive.filename}: {name}"):
        if archive.getinfo(name).file_size > LARGEST:
            raise ValueError(f"it has more than {LARGEST} bytes")
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
                block = np.frombuffer(stream.read(count * row), dtype)
                yield block.reshape(count, *shape[1:])
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
