"""Files that are there whole or not at all, and hashes of files."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from cohort.core.errors import explained

CODE = (".py", ".j2", ".css")  # suffixes of the files that decide what a stage writes


@contextlib.contextmanager
def replacing(path: str | Path, *, sync: bool = True, keep: Path | None = None) -> Iterator[Path]:
    """A temporary name beside `path`: synced and renamed onto it when the block ends well, removed when it does not.

    What stood there before is renamed to `keep` first, where that is given.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            if sync:
                _sync(temporary)
            if keep is not None and path.exists():
                path.replace(keep)
            temporary.replace(path)
            if sync:
                _sync(path.parent)
        except OSError as error:
            if str(temporary) in (str(error.filename), str(error.filename2)):
                error.filename = str(path)  # the name that a reader knows
            raise
        finally:
            with contextlib.suppress(
                OSError
            ):  # a disk that can only be read refuses this too, and nothing is there
                temporary.unlink()


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
    """A hash of the code and templates in some of Cohort's packages: a param of the stages that are cheap to run again."""
    root = Path(__file__).parents[1]
    files = (file for folder in folders for file in (root / folder).rglob("*"))
    digest = hashlib.sha256()
    for file in sorted(file for file in files if file.suffix in CODE):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
