"""`cohort export` and `cohort prune`: what no study has goes, and nothing else."""

import shutil
from pathlib import Path

import pytest

from cohort.core.paths import RELEASED, state_folder
from cohort.pipeline.preview import load as load_frames
from cohort.plan import Plan, load
from cohort.records.record import read
from cohort.results.release.folder import read_manifest, write_release
from tests.commands.conftest import finish, output_of, replan


def test_one_export_hides_no_other_release(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Releases that ship with Cohort lie elsewhere than those of a folder that `cohort init` made."""
    for cell in plan.cells.values():
        finish(cell)
    for name in ("six", "demo"):
        records = map(read, Path("results").rglob("seed0*.h5"))
        write_release(tmp_path / RELEASED / name, name, records)
    monkeypatch.setattr("cohort.core.shipped.ROOT", tmp_path)
    monkeypatch.setattr("cohort.results.release.folder.ROOT", tmp_path)
    output_of("export", "six", "--only", "seed=1")
    assert "4 runs here already" in output_of("restore", "six")
    assert "2 runs that no study plans" not in output_of("restore", "demo")
    assert load_frames("six", "released").runs["seed"].nunique() == 2
    manifest = read_manifest(Path(RELEASED, "six"))
    shutil.rmtree("results/cells")
    output_of("restore", "six")
    output_of("export", "six")  # a run's copy does not replace it
    assert read_manifest(Path(RELEASED, "six")) == manifest


@pytest.mark.parametrize("option", ["--only=seed=0", "--seeds=1", "--scale=smoke", "--seeds=4"])
def test_a_part_keeps_the_whole(plan: Plan, option: str):
    for cell in load({"seeds": 4}).cells.values():
        finish(cell)
    output_of("export", "six", "--seeds", "4", "--to", "out")
    assert "dropped" not in output_of("export", "six", "--to", "out", option)
    assert read_manifest(Path("out/six"))["runs"] == 8
    replan(lr=0.1)
    finish(next(iter(replan(lr=0.1).cells.values())))
    assert "; 8 dropped that six no longer has\n" in output_of("export", "six", "--to", "out")


@pytest.mark.slow
def test_runs_of_more_seeds_stay(plan: Plan):
    """README recommends `--seeds 5`. Shards and checkpoints of those seeds stay too, and what only a
    study that is not listed names."""
    begun, *further = (
        cell for key, cell in load({"seeds": 5}).cells.items() if key not in plan.cells
    )
    old = finish(next(iter(replan(lr=0.5).cells.values())))
    unlisted = finish(next(iter(replan(lr=0.25).cells.values())))
    shutil.copy("config/studies/six.yaml", "config/studies/other.yaml")
    replan()
    remaining = [unlisted, *(finish(cell) for cell in further)]
    remaining += [state_folder(begun.path) / "checkpoint.safetensors", Path(begun.inputs["shards"])]
    for file in remaining[-2:]:
        file.parent.mkdir(parents=True)
        file.touch()
    assert "in 1 records, shards and checkpoints could be deleted" in output_of("prune")
    assert old.exists()
    assert "in 1 records" in output_of("prune", "--delete")
    assert "(cohort prune --delete)" in output_of("prune")
    assert not old.exists() and all(file.exists() for file in remaining) and len(remaining) == 6
