"""The download stage: fetch a publisher's file into resources/raw and verify its checksum.

A local mirror is tried first, then the publisher, then other servers that offer the same file. Data
behind a login are taken from the path that the config names. Archives are kept in
resources/raw/packed for the other files that are in them; that folder can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cohort.core import files, user_files
from cohort.core.errors import FileAccessError, UserError
from cohort.data.fetch import fetch
from cohort.data.places import copy_or_pack, files_in_mirror
from cohort.data.raw import RawFile, check_content, check_packed
from cohort.data.unpack import unpack

PACKED = Path("resources/raw/packed")


def download(
    raw: Mapping[str, Any],
    target: str | Path,
    mirror: str = "",
    paths: Mapping[str, str] | None = None,
) -> None:
    """Download or copy one raw file to `target`. `raw` is the file's entry in config/datasets.yaml,
    whose source may be a file bundled with an installed Python package, `package:NAME/PATH`, or one
    of this machine, `file:PATH`.

    `paths` gives, for data sets behind a login, the user's zip or folder.
    """
    file, target = RawFile(**raw), Path(target)
    if file.source.startswith("package:"):
        _copy_or_unpack(file, _bundled_file(file.source), target, file.source)
        return
    if file.source.startswith("file:"):
        _copy_file(file, target)
        return
    if file.login and (named := (paths or {}).get(target.parent.name)):
        _copy_given(file, named, target)
        return
    refused = []
    for path in files_in_mirror(mirror, {target.name, file.source_name or target.name}):
        try:
            _copy_or_unpack(file, path, target, str(path))
            print(f"taken from the mirror: {path}")
            return
        except FileAccessError:
            raise
        except UserError as error:
            print(f"not taken from the mirror: {error}")
            refused.append(str(error))
    try:
        _from_publisher(file, target)
    except FileAccessError:
        raise
    except UserError as error:
        raise UserError(f"{_mirror_failure(mirror, target.name, refused)}{error}") from None


def is_downloaded(raw: Mapping[str, Any], target: str | Path) -> bool:
    """Whether a raw file is in place, with the checksum that its entry has now."""
    expected = RawFile(**raw).sha256
    return Path(target).exists() and (not expected or files.sha256(target) == expected)


def _copy_or_unpack(file: RawFile, path: Path, target: Path, called: str) -> None:
    """Copy or unpack a local file; `called` names it in error messages."""
    with files.atomic_write(target) as temporary:
        if file.is_archive and path.name == file.source_name:
            check_packed(file, path, called)
            unpack(path, file.member, file.bytes, temporary, called)
        else:
            shutil.copyfile(path, temporary)
        check_content(file, temporary, called)


def _copy_file(file: RawFile, target: Path) -> None:
    """Copy a raw file whose source is a `file:` path of this machine."""
    path = Path(file.source.removeprefix("file:")).expanduser()
    if not path.exists():
        raise UserError(f"{path}, the source of {target.parent.name}, does not exist")
    if file.sha256 and files.sha256(path) != file.sha256:
        raise UserError(
            f"{path} has changed since {user_files.folder() / 'datasets.yaml'} declared it as "
            f"{target.parent.name}; add what it is now as another data set (cohort data add), "
            "or bring the old file back"
        )
    _copy_or_unpack(file, path, target, str(path))


def _copy_given(file: RawFile, named: str, target: Path) -> None:
    """Copy the zip, or pack the folder, that `data_paths` names for a data set."""
    path = Path(named).expanduser()
    if not path.exists():
        raise UserError(f"data_paths.{target.parent.name} is '{named}', which does not exist")
    with files.atomic_write(target) as temporary:
        copy_or_pack(path, temporary)
        check_content(file, temporary, named)
    print(f"taken from data_paths: {path}")


def _from_publisher(file: RawFile, target: Path) -> None:
    """Download from the source, or else from the first of its mirrors that has the file."""
    if file.login:
        dataset = target.parent.name
        raise UserError(
            f"{dataset} is behind a login ({file.login}); "
            f"fetch it by hand and name its zip or folder in data_paths.{dataset}"
        )
    failures = []
    for url in (file.source, *file.mirrors):
        try:
            return _from_url(file, url, target)
        except UserError as error:
            failures.append(str(error))
            print(f"not fetched: {error}")
    raise UserError("; and ".join(failures))


def _from_url(file: RawFile, url: str, target: Path) -> None:
    if file.is_archive:
        _copy_or_unpack(file, _fetch_archive(file, url), target, url)
        return
    with files.atomic_write(target) as temporary:
        fetch(url, temporary)
        check_content(file, temporary, url)


def _fetch_archive(file: RawFile, url: str) -> Path:
    """Download a file's archive, unless it is there already, and return its path. Jobs for other
    files of the same archive wait meanwhile."""
    folder = PACKED / (file.md5 or file.sha256)  # (Fashion-)MNIST's files have the same names
    path = folder / file.source_name
    with _hold_lock(folder.with_suffix(".lock")):
        if not _is_complete(file, path):
            with files.atomic_write(path) as temporary:
                fetch(url, temporary)
                check_packed(file, temporary, url)
    return path


def _is_complete(file: RawFile, path: Path) -> bool:
    try:
        check_packed(file, path, str(path))
    except (UserError, FileNotFoundError):
        return False
    return True


@contextlib.contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _mirror_failure(mirror: str, name: str, refused: list[str]) -> str:
    """The start of an error sentence: why no file of the mirror could be used."""
    if not mirror:
        return ""
    reasons = "; ".join(refused) or "none of that name"
    return f"data_mirror '{mirror}' has no {name} that can be used ({reasons}), and "


def _bundled_file(source: str) -> Path:
    package, _, path = source.removeprefix("package:").partition("/")
    spec = importlib.util.find_spec(package)
    file = Path(spec.origin).parent / path if spec is not None and spec.origin is not None else None
    if file is None or not file.exists():
        raise UserError(f"{source}: the installed package {package} has no such file")
    return file
