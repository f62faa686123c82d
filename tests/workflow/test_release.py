"""Runs that are exported and restored are finished runs: nothing trains, and the same is drawn."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cohort.core.files import sha256
from cohort.records.record import read, write
from tests.workflow.conftest import CELLS, Project, copy_of, made_once
from tests.workflow.test_command_line import cohort

RELEASED = "resources/released/tiny"
RUNS = sum(CELLS.values())


@pytest.fixture(scope="session")
def exported_once(finished_once: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    def export(folder: Path) -> None:
        cohort(copy_of(finished_once, folder), "export", "tiny")

    return made_once(tmp_path_factory, "exported", export)


@pytest.fixture
def exported(exported_once: Project, tmp_path: Path) -> Project:
    """The finished project with its release."""
    return copy_of(exported_once, tmp_path / "exported")


@pytest.fixture
def clone(exported: Project) -> Project:
    """A project with a release and without results."""
    shutil.rmtree(exported.root / "results")
    shutil.rmtree(exported.root / "resources/data")
    return exported


@pytest.mark.slow
def test_nothing_trains_where_runs_are_restored(clone: Project, finished_once: Project):
    assert cohort(clone, "restore", "tiny") == f"{RELEASED}: {RUNS} runs restored\n"
    for record in clone.records():
        before = read(finished_once.root / record.relative_to(clone.root))
        header = read(record).header
        (source,) = header.pop("restored")
        assert header == before.header and source["release"] == RELEASED
    assert f"not trained here: {RUNS}\n" in cohort(clone, "status")
    assert not {"train", "deal", "prepare", "download"} & clone.planned().keys()
    clone.snakemake()
    for table in (finished_once.root / "results/full/tables").rglob("*.csv"):
        assert (
            clone.root / table.relative_to(finished_once.root)
        ).read_bytes() == table.read_bytes()
    assert "Nothing to be done" in clone.snakemake("-n")
    clone.records()[0].unlink()
    assert cohort(clone, "restore", "tiny").endswith(
        f"1 run restored; {RUNS - 1} runs here already, bit by bit the same\n"
    )


def test_a_release_of_another_lab(clone: Project, exported_once: Project):
    """A run of theirs that differs from ours is named; ours stays."""
    address = str(exported_once.root / "resources/released")
    assert f"{RUNS} runs restored" in cohort(clone, "restore", "tiny", "--from", address)
    record = clone.records()[0]
    ours = read(record)
    ours.history.metrics["test_accuracy"][-1] = (4, 0.125)
    del ours.header["restored"]
    write(record, ours)
    text = cohort(clone, "restore", "tiny")
    assert "1 run here already, not bit by bit the same" in text and "\n  other: k" in text
    assert read(record).history.last("test_accuracy") == 0.125
    sources = read(clone.records()[1]).header["restored"]
    assert [source["release"] for source in sources] == [f"{address}/tiny", RELEASED]
    assert "ucb is not a release" in cohort(clone, "restore", "ucb", "--from", address, fails=True)


def test_an_export_keeps_what_was_released_before(clone: Project, tmp_path: Path):
    """Twice gives the same bytes; runs whose records are gone stay."""
    folder = clone.root / RELEASED
    before = {file.name: sha256(file) for file in folder.iterdir()}
    assert f"{RUNS} of {RUNS} runs, 0 of them new" in cohort(clone, "export", "tiny")
    assert {file.name: sha256(file) for file in folder.iterdir()} == before
    shutil.rmtree(folder)
    assert "tiny has no finished run" in cohort(clone, "export", "tiny", fails=True)
    (tmp_path / "empty").mkdir()
    assert "holds no release" in cohort(
        clone, "restore", "--from", str(tmp_path / "empty"), fails=True
    )


def test_a_released_run_trained_again(exported: Project):
    """Bit-identical if it was trained on this kind of processor, else nearly the same."""
    text = cohort(exported, "verify", "--released")
    assert text.endswith(
        "the same to the last bit: metrics and cohorts, and the final weights of 4 rounds\n"
    )
    for path, change in zip(exported.records(), (0.04, 0.06), strict=False):
        record = read(path)
        last = record.history.last("test_accuracy")
        record.history.metrics["test_accuracy"][-1] = (4, last + change)
        provenance = record.header["provenance"]
        provenance["devices"], provenance["sessions"][0]["device"] = ["another CPU"], "another CPU"
        write(path, record)
    near, far = (path.stem.rpartition("-")[2] for path in exported.records()[:2])
    text = cohort(exported, "verify", near)
    assert "bits may differ: its device was another CPU, and is now " in text
    assert "test_accuracy differs" in text and "the last bit" not in text
    assert text.endswith("the same within 5 points of every accuracy and 10% of every loss\n")
    text = cohort(exported, "verify", far, fails=True)
    assert "a second run ends elsewhere: test_accuracy" in text
    shutil.rmtree(exported.root / RELEASED)
    text = cohort(exported, "verify", "--released", fails=True)
    assert "resources/released has no run of the listed studies" in text
