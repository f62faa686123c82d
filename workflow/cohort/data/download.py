"""The download stage: fetch a publisher's file into resources/raw and verify its checksum.

A local mirror is tried first, then the publisher, then other servers that offer the same file. Data
behind a login are taken from the path that the config names. Archives are kept in
resources/raw/packed for the other files that are in them; that folder can be deleted at any time.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cohort.core import user_files
from cohort.core.errors import FileAccessError, UserError
from cohort.core.files import atomic_write, lock, sha256
from cohort.data.archives import unpack
from cohort.data.fetch import fetch
from cohort.data.raw import RawFile, check, copy_or_pack, files_in_mirror

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
    kind, _, path = file.source.partition(":")
    if kind == "package":
        _copy_or_unpack(file, _bundled_file(file.source), target, file.source)
    elif kind == "file":
        _copy_file(file, Path(path).expanduser(), target)
    elif file.login and (named := (paths or {}).get(target.parent.name)):
        _copy_given(file, named, target)
    else:
        _from_mirror_or_publisher(file, target, mirror)


def is_downloaded(raw: Mapping[str, Any], target: str | Path) -> bool:
    """Whether a raw file is in place, with the checksum that its entry has now."""
    expected = RawFile(**raw).sha256
    return Path(target).exists() and (not expected or sha256(target) == expected)


def _copy_or_unpack(file: RawFile, path: Path, target: Path, called: str) -> None:
    """Copy or unpack a local file; `called` names it in error messages."""
    with atomic_write(target) as temporary:
        if file.is_archive and path.name == file.source_name:
            check(file, path, called, packed=True)
            unpack(path, file.member, file.bytes, temporary, called)
        else:
            shutil.copyfile(path, temporary)
        check(file, temporary, called)


def _bundled_file(source: str) -> Path:
    package, _, path = source.removeprefix("package:").partition("/")
    spec = importlib.util.find_spec(package)
    file = Path(spec.origin).parent / path if spec is not None and spec.origin is not None else None
    if file is None or not file.exists():
        raise UserError(f"{source}: the installed package {package} has no such file")
    return file


def _copy_file(file: RawFile, path: Path, target: Path) -> None:
    """Copy a file of this machine, which `cohort data add` or the user has declared."""
    dataset = target.parent.name
    if not path.exists():
        raise UserError(f"{path}, the source of {dataset}, does not exist")
    if file.sha256 and sha256(path) != file.sha256:
        raise UserError(
            f"{path} has changed since {user_files.folder() / 'datasets.yaml'} declared it as "
            f"{dataset}; add what it is now as another data set (cohort data add), "
            "or bring the old file back"
        )
    _copy_or_unpack(file, path, target, str(path))


def _copy_given(file: RawFile, named: str, target: Path) -> None:
    """Copy the zip, or pack the folder, that `data_paths` names for a data set."""
    path = Path(named).expanduser()
    if not path.exists():
        raise UserError(f"data_paths.{target.parent.name} is '{named}', which does not exist")
    with atomic_write(target) as temporary:
        copy_or_pack(path, temporary)
        check(file, temporary, named)
    print(f"taken from data_paths: {path}")


def _from_mirror_or_publisher(file: RawFile, target: Path, mirror: str) -> None:
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
        reasons = "; ".join(refused) or "none of that name"
        lacking = f"data_mirror '{mirror}' has no {target.name} that can be used ({reasons}), and "
        raise UserError(f"{lacking if mirror else ''}{error}") from None


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
    """Download a file, or its archive unless that is here already. Jobs for other files of the same
    archive wait meanwhile."""
    if not file.is_archive:
        with atomic_write(target) as temporary:
            fetch(url, temporary)
            check(file, temporary, url)
        return
    folder = PACKED / (file.md5 or file.sha256)  # (Fashion-)MNIST's files have the same names
    archive = folder / file.source_name
    with lock(folder.with_suffix(".lock")):
        try:
            check(file, archive, str(archive), packed=True)
        except (UserError, FileNotFoundError):
            with atomic_write(archive) as temporary:
                fetch(url, temporary)
                check(file, temporary, url, packed=True)
    _copy_or_unpack(file, archive, target, url)
