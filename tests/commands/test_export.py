"""`cohort export` drops no released run that its study still has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.core.paths import RELEASED
from cohort.pipeline.frames import load as load_frames
from cohort.plan import Plan, load
from cohort.records.record import read
from cohort.results.release.folder import read_manifest, write_release
from tests.commands.conftest import finish, replan


def test_one_export_hides_no_other_release(
    plan: Plan, output_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Releases that ship with Cohort lie elsewhere than those of a folder that `cohort init` made."""
    for cell in plan.cells.values():
        finish(cell)
    for name in ("six", "demo"):
        write_release(
            tmp_path / RELEASED / name, name, map(read, Path("results").rglob("seed0*.h5"))
        )
    monkeypatch.setattr("cohort.core.shipped.ROOT", tmp_path)
    monkeypatch.setattr("cohort.results.release.folder.ROOT", tmp_path)
    output_of("export", "six", "--only", "seed=1")
    assert "4 runs here already" in output_of("restore", "six")
    assert "2 runs that no study plans" not in output_of("restore", "demo")
    assert load_frames("six", "released").runs["seed"].nunique() == 2


@pytest.mark.parametrize("option", ["--only=seed=0", "--seeds=1", "--scale=smoke", "--seeds=4"])
def test_a_part_keeps_the_whole(plan: Plan, output_of: Callable[..., str], option: str):
    for cell in load({"seeds": 4}).cells.values():
        finish(cell)
    output_of("export", "six", "--seeds", "4", "--to", "out")
    assert "dropped" not in output_of("export", "six", "--to", "out", option)
    assert read_manifest(Path("out/six"))["runs"] == 8
    replan(lr=0.1)
    finish(next(iter(replan(lr=0.1).cells.values())))
    assert output_of("export", "six", "--to", "out").endswith(
        "; 8 dropped that six no longer has\n"
    )
