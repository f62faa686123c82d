"""Raw files: how config/datasets.yaml declares them, and where they lie on this machine."""

import hashlib
import os
import shutil
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from cohort.core.errors import UserError

EARLIEST = (1980, 1, 1, 0, 0, 0)  # time that a zip can state


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """A file that a parser reads. It comes from `source` or one of the `mirrors`, or from the user
    who downloaded it behind a `login`.

    `sha256` and `bytes` are those of the content. If `md5` or `member` is given too, the file comes
    packed, as a .gz or as the `member` of a .tar.gz or .zip with this MD5. An `md5` alone is that
    of the file itself, which the parser reads as it is.
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


def check(file: RawFile, path: Path, called: str, *, packed: bool = False) -> None:
    """Raise UserError unless a file has the declared checksum, or that of the archive which holds
    it if it is `packed`; `called` names it in the error. Without a checksum, as for files behind a
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
        raise UserError(f"{called}: is a web page, not the file that config/datasets.yaml expects")
    if expected:
        raise UserError(
            f"{called}: {algorithm} is {digest}, config/datasets.yaml expects {expected}"
        )


def files_in_mirror(mirror: str, names: set[str]) -> list[Path]:
    """All files below the mirror with one of these names; checksums tell which file is meant."""
    if not mirror:
        return []
    check_mirror(mirror)
    return sorted(
        Path(folder, name)
        for folder, _, files in os.walk(Path(mirror).expanduser())
        for name in names.intersection(files)
    )


def check_mirror(mirror: str) -> None:
    """Raise UserError if the mirror is not a folder."""
    if not Path(mirror).expanduser().is_dir():
        raise UserError(
            f"data_mirror is '{mirror}', which is not a folder; name one with the publishers' "
            "files, or leave it out to download them"
        )


def check_data_path(dataset: str, path: str) -> None:
    """Raise UserError if the path that the user named for a data set is neither a zip nor a
    folder."""
    file = Path(path).expanduser()
    if not file.is_dir() and not zipfile.is_zipfile(file):
        reason = "is neither a zip nor a folder" if file.exists() else "does not exist"
        raise UserError(
            f"config/config.yaml or --config: data_paths.{dataset} is '{path}', which {reason}; "
            "name the publisher's zip or the folder that it unpacks to"
        )


def copy_or_pack(path: Path, target: Path) -> None:
    """Copy a zip to `target`, or pack a folder into an uncompressed zip that depends only on its
    files' names and contents, without hidden files."""
    if not path.is_dir():
        shutil.copyfile(path, target)
        return
    files = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, file in sorted(files.items()):
            if "/." in f"/{name}":
                continue
            info = zipfile.ZipInfo(name, EARLIEST)
            info.create_system, info.external_attr = 3, 0o100644 << 16  # a regular file on Unix
            info.file_size = file.stat().st_size
            with open(file, "rb") as source, archive.open(info, "w") as member:
                shutil.copyfileobj(source, member, 1 << 20)
