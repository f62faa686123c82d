"""Raw files as config/datasets.yaml declares them, and the checks that come before opening them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from cohort.core.errors import UserError


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """A file that a parser reads. It comes from `source` or one of the `mirrors`, or from the user
    who downloaded it behind a `login`.

    `sha256` and `bytes` are those of the content. If `md5` or `member` is given too, the file comes
    packed, as a .gz or as the `member` of a .tar.gz or .zip with this MD5. An `md5` alone is that
    of the file itself, which the parser reads as it is. An MD5 detects damage but no attack;
    parsers and unpacking trust nothing.
    """

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


def check_content(file: RawFile, path: Path, called: str) -> None:
    """Raise UserError if the content is not the declared one; `called` names it in the error."""
    size = path.stat().st_size
    if file.bytes and size != file.bytes and not _is_page(path):
        raise UserError(f"{called}: {size} bytes, config/datasets.yaml expects {file.bytes}")
    algorithm = "sha256" if file.sha256 or not file.md5 else "md5"
    _check(path, algorithm, file.sha256 or file.md5, called)


def check_packed(file: RawFile, path: Path, called: str) -> None:
    """Raise UserError if the packed file that holds the content is not the declared one."""
    _check(path, "md5", file.md5, called)


def _check(path: Path, algorithm: str, expected: str, called: str) -> None:
    """Compare checksums. Without one, as for files behind a login, only refuse web pages."""
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, algorithm).hexdigest() if expected else ""
    if digest == expected and (expected or not _is_page(path)):
        return
    if _is_page(path):
        raise UserError(f"{called}: is a web page, not the file that config/datasets.yaml expects")
    name = {"sha256": "SHA-256", "md5": "MD5"}[algorithm]
    raise UserError(f"{called}: {name} is {digest}, config/datasets.yaml expects {expected}")


def _is_page(path: Path) -> bool:
    """Whether a file is HTML or XML, which servers without the file and captive networks send
    instead."""
    with open(path, "rb") as stream:
        return stream.read(512).lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml"))
