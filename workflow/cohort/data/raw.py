"""A raw file as config/datasets.yaml declares it, and the checks that it must pass before anything opens it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from cohort.errors import UserError


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """What a parser reads. Where `md5` is given, `source` holds it packed: in a .gz, or as the `member` of a .tar.gz.

    SHA-256 and size are those of the content, so that it makes no difference whether it came packed. For what they packed the publishers
    give MD5, which keeps away what is damaged; what was made to deceive is found by the SHA-256, and unpacking trusts nothing.
    """

    source: str
    sha256: str
    bytes: int = 0
    md5: str = ""
    member: str = ""

    @property
    def source_name(self) -> str:
        """The publisher's own name of what `source` holds."""
        return urlsplit(self.source).path.rpartition("/")[2]


def check_content(file: RawFile, path: Path, called: str) -> None:
    """Raise where the content is another than the one declared; `called` is what a reader knows it by."""
    found = path.stat().st_size
    if file.bytes and found != file.bytes and not _is_page(path):
        raise UserError(f"{called}: {found} bytes, config/datasets.yaml expects {file.bytes}")
    _check(path, "sha256", file.sha256, called)


def check_packed(file: RawFile, path: Path, called: str) -> None:
    """The same for the file that the content is packed in."""
    _check(path, "md5", file.md5, called)


def _check(path: Path, algorithm: str, expected: str, called: str) -> None:
    with open(path, "rb") as stream:
        found = hashlib.file_digest(stream, algorithm).hexdigest()
    if found == expected:
        return
    if _is_page(path):
        raise UserError(f"{called}: is a web page, not the file that config/datasets.yaml expects")
    name = {"sha256": "SHA-256", "md5": "MD5"}[algorithm]
    raise UserError(f"{called}: {name} is {found}, config/datasets.yaml expects {expected}")


def _is_page(path: Path) -> bool:
    """What a server that lacks the file, or a network that wants a login, likes to send in its place."""
    with open(path, "rb") as stream:
        return stream.read(512).lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml"))
