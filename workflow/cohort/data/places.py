"""Where files lie on this machine: below a mirror, or where the config names a data set's own path."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

from cohort.core.errors import UserError

BEGINNING = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can say


def in_mirror(mirror: str, names: set[str]) -> list[Path]:
    """Every file below the mirror that has one of these names: checksums tell which of them is meant."""
    if not mirror:
        return []
    root = Path(mirror).expanduser()
    if not root.is_dir():
        raise UserError(f"data_mirror is '{mirror}', which is no folder")
    return sorted(
        Path(folder, name)
        for folder, _, found in os.walk(root)
        for name in names.intersection(found)
    )


def check_given(dataset: str, path: str) -> None:
    """Raise where the path that a user names for a data set is neither a zip nor a folder."""
    where, wanted = (
        Path(path).expanduser(),
        "name the publisher's zip or the folder that it unpacks to",
    )
    if not where.exists():
        raise UserError(
            f"config/config.yaml or --config: data_paths.{dataset} is '{path}', which does not exist; {wanted}"
        )
    if not where.is_dir() and not zipfile.is_zipfile(where):
        raise UserError(
            f"config/config.yaml or --config: data_paths.{dataset} is '{path}', which is neither a zip nor a folder; {wanted}"
        )


def take_given(path: Path, target: Path) -> None:
    """The zip as it is, or a folder as a zip."""
    if path.is_dir():
        pack(path, target)
    else:
        shutil.copyfile(path, target)


def pack(folder: Path, target: Path) -> None:
    """The files of a folder in one uncompressed zip, which is the same for the same files. Hidden files are left out."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, path in sorted(_files(folder)):
            info = zipfile.ZipInfo(name, BEGINNING)
            info.create_system, info.external_attr = (
                3,
                0o100644 << 16,
            )  # a plain file of Unix, whatever it was
            info.file_size = path.stat().st_size
            with open(path, "rb") as source, archive.open(info, "w") as member:
                shutil.copyfileobj(source, member, 1 << 20)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and (path := Path(parent, name)).is_file():
                yield path.relative_to(folder).as_posix(), path
