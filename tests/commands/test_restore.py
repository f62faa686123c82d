"""`cohort restore` of what is no release, of several, and while cells are trained."""

import shutil
from pathlib import Path

import pytest

from cohort.core.files import lock
from cohort.core.paths import DRIVER_LOCK, state_folder
from cohort.plan import Plan
from cohort.records.record import read
from cohort.results.release.folder import write_release
from cohort.training.job.lease import LEASE
from tests.commands.conftest import finish, output_of


@pytest.fixture
def release(plan: Plan) -> Path:
    """The release of the six cells, in the folder `offered` of a project without records."""
    for file in Path("config/studies").iterdir():
        if file.stem != "six":  # planning all takes seconds
            file.unlink()
    records = [read(finish(cell)) for cell in plan.cells.values()]
    write_release(Path("offered/six"), "six", records)
    shutil.rmtree("results")
    return Path("offered/six")


def test_nothing_is_restored_while_a_driver_is_at_work(release: Path):
    restored = ("restore", "six", "--from", "offered")
    with lock(DRIVER_LOCK):
        text = output_of(*restored, fails=True)
    assert text.startswith("error: another snakemake") and "is running in this directory" in text
    assert not Path("results/cells").exists()
    assert "6 runs restored" in output_of(*restored)


def test_a_cell_in_training_is_not_restored(plan: Plan, release: Path):
    cell = next(iter(plan.cells.values()))
    with lock(state_folder(cell.path) / LEASE):
        text = output_of("restore", "six", "--from", "offered")
    assert (
        text == f"{release}: 5 runs restored; 1 run that a process here is training, not restored\n"
    )
    assert not Path(cell.path).exists()
    (state_folder(cell.path) / LEASE).unlink()
    assert "1 run restored; 5 runs here already" in output_of("restore", "six", "--from", "offered")
    assert list(Path("results").rglob("*.state")) == []
