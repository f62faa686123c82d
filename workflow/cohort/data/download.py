"""The download stage: a publisher's file into resources/raw, checked before anything opens it.

A local mirror is asked first, then the publisher. What came packed is kept in resources/raw/packed, where the other files of an archive
are taken from; it can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cohort import files
from cohort.data.fetch import fetch
from cohort.data.raw import RawFile, check_content, check_packed
from cohort.data.unpack import unpack
from cohort.errors import Refused, UserError

PACKED = Path("resources/raw/packed")


def download(raw: Mapping[str, Any], target: str | Path, mirror: str = "") -> None:
    """Make one raw file, declared as in config/datasets.yaml. `package:NAME/PATH` is a file that an installed Python package bundles."""
    file, target = RawFile(**raw), Path(target)
    if file.source.startswith("package:"):
        _take(file, _bundled(file.source), target, file.source)
        return
    refused = []
    for path in _in_mirror(mirror, {target.name, file.source_name}):
        try:
            _take(file, path, target, str(path))
            print(f"taken from the mirror: {path}")
            return
        except Refused:
            raise
        except UserError as error:
            print(f"not taken from the mirror: {error}")
            refused.append(str(error))
    try:
        _from_publisher(file, target)
    except Refused:
        raise
    except UserError as error:
        raise UserError(f"{_about_mirror(mirror, target.name, refused)}{error}") from None


def _take(file: RawFile, path: Path, target: Path, called: str) -> None:
    """Copy or unpack a file that is there."""
    with files.replacing(target) as temporary:
        if file.md5 and path.name == file.source_name:
            check_packed(file, path, called)
            unpack(path, file.member, file.bytes, temporary, called)
        else:
            shutil.copyfile(path, temporary)
        check_content(file, temporary, called)


def _from_publisher(file: RawFile, target: Path) -> None:
    if file.md5:
        _take(file, _fetched(file), target, file.source)
        return
    with files.replacing(target) as temporary:
        fetch(file.source, temporary)
        check_content(file, temporary, file.source)


def _fetched(file: RawFile) -> Path:
    """What a URL holds, fetched by one job while the jobs for other files of the same archive wait."""
    path = PACKED / file.md5 / file.source_name  # MNIST's and Fashion-MNIST's files are called the same
    with _locked(PACKED / f"{file.md5}.lock"):
        if not _is_whole(file, path):
            with files.replacing(path) as temporary:
                fetch(file.source, temporary)
                check_packed(file, temporary, file.source)
    return path


def _is_whole(file: RawFile, path: Path) -> bool:
    try:
        check_packed(file, path, str(path))
    except (UserError, FileNotFoundError):
        return False
    return True


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _in_mirror(mirror: str, names: set[str]) -> list[Path]:
    """Every file below the mirror that has one of these names: checksums tell which of them is meant."""
    if not mirror:
        return []
    root = Path(mirror).expanduser()
    if not root.is_dir():
        raise UserError(f"data_mirror is '{mirror}', which is no folder")
    return sorted(Path(folder, name) for folder, _, found in os.walk(root) for name in names.intersection(found))


def _about_mirror(mirror: str, name: str, refused: list[str]) -> str:
    """What the mirror had to offer, to begin an error sentence with."""
    if not mirror:
        return ""
    return f"data_mirror '{mirror}' has no {name} that can be used ({'; '.join(refused) or 'none of that name'}), and "


def _bundled(source: str) -> Path:
    package, _, path = source.removeprefix("package:").partition("/")
    spec = importlib.util.find_spec(package)
    file = Path(spec.origin).parent / path if spec is not None and spec.origin is not None else None
    if file is None or not file.exists():
        raise UserError(f"{source}: the installed package {package} has no such file")
    return file
