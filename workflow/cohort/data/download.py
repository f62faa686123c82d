"""The download stage: a publisher's file into resources/raw, checked before anything opens it."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from cohort.errors import UserError
from cohort.files import replacing, sha256


def download(source: str, checksum: str, target: str | Path) -> None:
    """Fetch one file. `package:NAME/PATH` is a file that an installed Python package bundles."""
    with replacing(target) as temporary:
        shutil.copyfile(_bundled(source), temporary)
        found = sha256(temporary)
        if found != checksum:
            raise UserError(f"{source}: SHA-256 is {found}, config/datasets.yaml expects {checksum}")


def _bundled(source: str) -> Path:
    package, _, path = source.removeprefix("package:").partition("/")
    spec = importlib.util.find_spec(package)
    file = Path(spec.origin).parent / path if spec is not None and spec.origin is not None else None
    if file is None or not file.exists():
        raise UserError(f"{source}: the installed package {package} has no such file")
    return file
