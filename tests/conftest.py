"""What every test may use: a project folder of its own, and a plan file for a small cell."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("Snakefile", "rules", "workflow", "config", "profiles", "resources/paper_values", "environment.yml")


def copy_project(target: Path) -> Path:
    """The project's files, without results, in a folder of their own."""
    target.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target / part)
    return target


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project as the working directory."""
    folder = copy_project(tmp_path / "project")
    monkeypatch.chdir(folder)
    return folder
