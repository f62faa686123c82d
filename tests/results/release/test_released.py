"""The releases of this repository are whole, and their runs are those of the studies."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cohort.commands.cli import main
from cohort.core.paths import RELEASED
from cohort.plan import load
from cohort.results.release.folder import read_manifest, read_release
from tests.conftest import ROOT

FOLDERS = sorted(file.parent for file in (ROOT / RELEASED).glob("*/manifest.json"))


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_released_run_is_planned(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    runs = read_release(folder)
    cells = load({"studies": [folder.name]}).cells
    assert {run.header["digest"] for run in runs} <= cells.keys()
    assert read_manifest(folder)["runs"] == len(runs) > 0


def test_a_run_of_the_demo_trained_again(project: Path, capfd: pytest.CaptureFixture[str]):
    shutil.copytree(ROOT / RELEASED / "demo", project / RELEASED / "demo")
    main(["verify", "--released", "--until", "20"])
    assert "the same " in capfd.readouterr().out
