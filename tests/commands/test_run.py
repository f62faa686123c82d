"""`cohort run` and jobs: which cell a path names, and what a job takes for its own, keeps and leaves."""

import shutil
import signal
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from cohort.commands.cli import main
from cohort.commands.run import find_cell, make_inputs, run_cell
from cohort.core.paths import digest_in, plan_file, state_folder
from cohort.pipeline import driver
from cohort.pipeline.driver import remove_published_originals, restore_records
from cohort.plan import Plan, load
from cohort.records.record import read, write
from cohort.settings import write_plan
from cohort.training.cell import Cell
from cohort.training.job import train as job
from cohort.training.job.lease import CHECKPOINT, FINISHED, PREVIOUS
from tests.commands.conftest import finish, output_of, replan

DRIVER = """
import os, signal, time
from pathlib import Path

def stop(*_):
    time.sleep(1)  # the cells are saved
    Path("saved").touch()
    os._exit(1)

signal.signal(signal.SIGINT, stop)
for process in (os.getppid(), os.getpid()):  # as a terminal does
    os.kill(process, signal.SIGINT)
time.sleep(60)
"""


def train(cell: Cell, **options: float) -> None:
    """Train a cell as a job does, after making its data, shards and plan file."""
    make_inputs(load(), cell)
    write_plan(cell.planned())
    job.train(plan_file(cell.digest), cell.path, trainer="serial", device="cpu", **options)


@pytest.fixture
def cell(plan: Plan) -> Cell:
    """A cell of three rounds."""
    return next(iter(replan(rounds=3).cells.values()))


def test_a_finished_state_is_published_if_it_is_of_this_cell(cell: Cell):
    train(cell)
    path, folder = Path(cell.path), state_folder(cell.path)
    assert sorted(file.name for file in folder.iterdir()) == [FINISHED]
    written = (folder / FINISHED).read_bytes()
    path.unlink()
    train(cell)
    assert path.read_bytes() == written  # published, not trained again
    other = read(path)
    write(folder / FINISHED, replace(other, header=other.header | {"digest": "k0123456789ab"}))
    path.unlink()
    train(cell)
    assert read(path).header["digest"] == cell.digest


def test_a_run_that_was_resumed_leaves_no_checkpoint(cell: Cell):
    train(cell, until=2, checkpoint_seconds=0)
    folder = state_folder(cell.path)
    assert {CHECKPOINT, PREVIOUS} <= {file.name for file in folder.iterdir()}
    assert not Path(cell.path).exists()
    train(cell)
    assert sorted(file.name for file in folder.iterdir()) == [FINISHED]
    assert len(read(cell.path).header["provenance"]["sessions"]) == 2


def test_a_diverged_run_with_silent_clients(plan: Plan):
    changes = {"rounds": 3, "lr": 1e3, "weight_decay": 1e30, "participation": "dropout-0.5"}
    cell = next(iter(replan(**changes).cells.values()))
    train(cell)
    record = read(cell.path)
    assert record.header["status"] == "diverged"
    chosen = np.bincount(np.concatenate(record.history.cohorts), minlength=4)
    assert record.clients["selected"].tolist() == chosen.tolist()
    assert sum(map(len, record.history.responders)) < chosen.sum()


def test_a_cell_that_another_process_finishes_is_not_trained(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
):
    cell = next(iter(plan.cells.values()))
    write_plan(cell.planned())
    monkeypatch.setattr(job, "progress_display", lambda *_: nullcontext(finish(cell)))
    monkeypatch.setattr(job.Run, "begin", lambda *arguments: pytest.fail("it is trained"))
    run_cell(plan_file(cell.digest))
    assert [path.name for path in Path(cell.path).parent.iterdir()] == [Path(cell.path).name]


def test_a_cell_is_found_by_any_path_of_its_record(plan: Plan):
    cell = next(iter(plan.cells.values()))
    finish(cell)
    for path in (Path.cwd() / cell.path, f"../{Path.cwd().name}/{cell.path}", f"./{cell.path}"):
        assert find_cell(plan, str(path)) == cell
        assert output_of("show", str(path)).splitlines()[-1] == f"{cell.path}: it is done"


@pytest.mark.parametrize("command", ["verify demo", "show demo", "run demo.fig1", "run kxyz"])
def test_a_word_that_can_be_no_cell_is_refused_before_planning(command: str, empty_folder: Path):
    """In the empty folder there is nothing to plan."""
    name = command.split()[1]
    with pytest.raises(SystemExit, match=f"^error: '{name}' is no cell: give the path of its rec"):
        main(command.split())


def test_a_record_under_the_name_of_another_cell_is_that_of_no_cell(plan: Plan):
    """Commands refuse it, and no driver publishes it, nor deletes the original of its place."""
    for planned in plan.cells.values():
        finish(planned)
    misplaced, other, *_ = (Path(planned.path) for planned in plan.cells.values())
    shutil.copy(other, misplaced)
    digest = digest_in(misplaced)
    assert output_of("status").splitlines()[1].split() == ["six.one", "5", "1", "0"]
    for command in (("show", str(misplaced)), ("show", digest), ("verify", digest)):
        assert "under the name of another cell" in output_of(*command, fails=True), command
    finished = state_folder(misplaced) / FINISHED
    finished.parent.mkdir()
    misplaced.rename(finished)
    restore_records(plan)
    assert not misplaced.exists()
    shutil.copy(finished, misplaced)
    remove_published_originals(plan.cells.values())
    assert finished.exists()


def test_a_record_that_appeared_while_the_driver_planned_is_kept(plan: Plan):
    """Snakemake would delete it, and the job train again."""
    record = Path(finish(next(iter(plan.cells.values()))))
    driver.keep_new_records(plan.cells.values())
    record.unlink()
    restore_records(plan)
    assert record.exists()


def test_a_state_folder_may_go_while_the_driver_looks(plan: Plan, monkeypatch: pytest.MonkeyPatch):
    """`cohort run` deletes what it has published itself."""
    cell = next(iter(plan.cells.values()))
    finished = state_folder(finish(cell)) / FINISHED
    finished.parent.mkdir()
    finished.touch()
    monkeypatch.setattr(driver, "is_valid", lambda *_: not shutil.rmtree(finished.parent))
    driver.remove_published_originals([cell])


def test_a_driver_saves_its_cells_after_ctrl_c(empty_folder: Path):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job
    Path("driver.py").write_text(DRIVER)
    with pytest.raises(KeyboardInterrupt):
        import_module("cohort.commands.try").run_driver("driver")
    assert Path("saved").exists()
