"""The download stage: a publisher's file into resources/raw, checked before anything opens it."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from cohort import files
from cohort.errors import UserError


def download(source: str, sha256: str, target: str | Path) -> None:
    """Fetch one file. `package:NAME/PATH` is a file that an installed Python package bundles."""
    with files.replacing(target) as temporary:
        shutil.copyfile(_bundled(source), temporary)
        found = files.sha256(temporary)
        if found != sha256:
            raise UserError(f"{source}: SHA-256 is {found}, config/datasets.yaml expects {sha256}")


def _bundled(source: str) -> Path:
    package, _, path = source.removeprefix("package:").partition("/")
    spec = importlib.util.find_spec(package)
    file = Path(spec.origin).parent / path if spec is not None and spec.origin is not None else None
    if file is None or not file.exists():
        raise UserError(f"{source}: the installed package {package} has no such file")
    return file
