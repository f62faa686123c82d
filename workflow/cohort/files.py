"""Files that are there whole or not at all, and hashes of files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | Path, *, sync: bool = True) -> Iterator[Path]:
    """A temporary name beside `path`: synced and renamed onto it when the block ends well, removed when it does not."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    try:
        yield temporary
        if sync:
            _sync(temporary)
        temporary.replace(path)
        if sync:
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


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
