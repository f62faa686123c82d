"""Find data on this machine: in the mirror, or at the path that the config names for a data set."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

from cohort.core.errors import UserError

EARLIEST = (1980, 1, 1, 0, 0, 0)  # time that a zip can state


def files_in_mirror(mirror: str, names: set[str]) -> list[Path]:
    """All files below the mirror with one of these names; checksums tell which file is meant."""
    if not mirror:
        return []
    check_mirror(mirror)
    root = Path(mirror).expanduser()
    return sorted(
        Path(folder, name)
        for folder, _, files in os.walk(root)
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
    key = f"config/config.yaml or --config: data_paths.{dataset}"
    wanted = "name the publisher's zip or the folder that it unpacks to"
    if not file.exists():
        raise UserError(f"{key} is '{path}', which does not exist; {wanted}")
    if not file.is_dir() and not zipfile.is_zipfile(file):
        raise UserError(f"{key} is '{path}', which is neither a zip nor a folder; {wanted}")


def copy_or_pack(path: Path, target: Path) -> None:
    """Copy a zip to `target`, or pack a folder into a zip there."""
    if path.is_dir():
        pack(path, target)
    else:
        shutil.copyfile(path, target)


def pack(folder: Path, target: Path) -> None:
    """Pack a folder into an uncompressed zip that depends only on its files' names and contents.
    Hidden files are left out."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, path in sorted(_files(folder)):
            info = zipfile.ZipInfo(name, EARLIEST)
            info.create_system, info.external_attr = 3, 0o100644 << 16  # a regular file on Unix
            info.file_size = path.stat().st_size
            with open(path, "rb") as source, archive.open(info, "w") as member:
                shutil.copyfileobj(source, member, 1 << 20)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and (path := Path(parent, name)).is_file():
                yield path.relative_to(folder).as_posix(), path
