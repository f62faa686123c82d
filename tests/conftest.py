"""What every test may use: a project folder of its own, and a plan file for a small cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.project import copied

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project as the working directory."""
    folder = copied(tmp_path / "project")
    monkeypatch.chdir(folder)
    return folder
