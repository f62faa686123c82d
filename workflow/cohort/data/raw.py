"""A raw file as config/datasets.yaml declares it, and the checks that it must pass before anything opens it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from cohort.core.errors import UserError


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """What a parser reads: from `source`, else from one of the `mirrors`; or from a user who got it from the page behind a `login`.

    `sha256` and `bytes` are those of the content. Where `md5` or a `member` stands beside `sha256`, it comes packed: a .gz, or a .tar.gz
    or .zip that holds the file as its `member`. So it makes no difference whether it came packed. Where `md5` stands alone, it is that of
    the file itself, which the parser reads as it is. An MD5 keeps away what is damaged, not what was made to deceive: parsers and unpacking
    trust nothing.
    """

    source: str = ""
    mirrors: list[str] = field(default_factory=list)
    login: str = ""
    sha256: str = ""
    bytes: int = 0
    md5: str = ""
    member: str = ""

    @property
    def is_packed(self) -> bool:
        """Whether what comes from the publisher must be unpacked."""
        return bool(self.sha256 and (self.md5 or self.member))

    @property
    def source_name(self) -> str:
        """The publisher's own name of what `source` holds."""
        return urlsplit(self.source).path.rpartition("/")[2]


def check_content(file: RawFile, path: Path, called: str) -> None:
    """Raise where the content is another than the one declared; `called` is what a reader knows it by."""
    found = path.stat().st_size
    if file.bytes and found != file.bytes and not _is_page(path):
        raise UserError(f"{called}: {found} bytes, config/datasets.yaml expects {file.bytes}")
    algorithm = "sha256" if file.sha256 or not file.md5 else "md5"
    _check(path, algorithm, file.sha256 or file.md5, called)


def check_packed(file: RawFile, path: Path, called: str) -> None:
    """The same for the file that the content is packed in."""
    _check(path, "md5", file.md5, called)


def _check(path: Path, algorithm: str, expected: str, called: str) -> None:
    """Nothing to compare with (a file behind a login) leaves the question whether it is a file at all."""
    with open(path, "rb") as stream:
        found = hashlib.file_digest(stream, algorithm).hexdigest() if expected else ""
    if found == expected and (expected or not _is_page(path)):
        return
    if _is_page(path):
        raise UserError(f"{called}: is a web page, not the file that config/datasets.yaml expects")
    name = {"sha256": "SHA-256", "md5": "MD5"}[algorithm]
    raise UserError(f"{called}: {name} is {found}, config/datasets.yaml expects {expected}")


def _is_page(path: Path) -> bool:
    """What a server that lacks the file, or a network that wants a login, likes to send in its place."""
    with open(path, "rb") as stream:
        return stream.read(512).lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml"))
