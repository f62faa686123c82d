"""What a job takes for its own, keeps and leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cohort.commands.run import make_inputs
from cohort.core.paths import plan_file, state_folder
from cohort.plan import Plan, load
from cohort.records.record import read, write
from cohort.settings import write_plan
from cohort.training.cell import Cell
from cohort.training.job.lease import CHECKPOINT, FINISHED, PREVIOUS
from cohort.training.job.train import train
from tests.commands.conftest import replan


def prepared_cell() -> Cell:
    """The first cell of the project, with its data, shards and plan file."""
    plan = load()
    cell = next(iter(plan.cells.values()))
    make_inputs(plan, cell)
    write_plan(cell.planned())
    return cell


@pytest.fixture
def job(plan: Plan) -> tuple[Cell, Callable[..., None]]:
    """A planned cell with its inputs, and how to train it."""
    replan(rounds=3)
    cell = prepared_cell()
    return cell, lambda **options: train(
        plan_file(cell.digest), cell.path, trainer="serial", device="cpu", **options
    )


def test_a_finished_state_is_published_if_it_is_of_this_cell(job: tuple[Cell, Callable[..., None]]):
    cell, start = job
    start()
    path, folder = Path(cell.path), state_folder(cell.path)
    assert sorted(file.name for file in folder.iterdir()) == [FINISHED]
    written = (folder / FINISHED).read_bytes()
    path.unlink()
    start()
    assert path.read_bytes() == written  # published, not trained again
    other = read(path)
    write(folder / FINISHED, replace(other, header=other.header | {"digest": "k0123456789ab"}))
    path.unlink()
    start()
    assert read(path).header["digest"] == cell.digest


def test_a_run_that_was_resumed_leaves_no_checkpoint(job: tuple[Cell, Callable[..., None]]):
    cell, start = job
    start(until=2, checkpoint_seconds=0)
    folder = state_folder(cell.path)
    assert {CHECKPOINT, PREVIOUS} <= {file.name for file in folder.iterdir()}
    assert not Path(cell.path).exists()
    start()
    assert sorted(file.name for file in folder.iterdir()) == [FINISHED]
    sessions = read(cell.path).header["provenance"]["sessions"]
    assert len(sessions) == 2


def test_a_diverged_run_with_silent_clients(plan: Plan):
    replan(rounds=3, lr=1e3, weight_decay=1e30, participation="dropout-0.5")
    cell = prepared_cell()
    train(plan_file(cell.digest), cell.path, trainer="serial", device="cpu")
    made = read(cell.path)
    assert made.header["status"] == "diverged"
    chosen = np.bincount(np.concatenate(made.history.cohorts), minlength=4)
    assert made.clients["selected"].tolist() == chosen.tolist()
    assert sum(map(len, made.history.responders)) < chosen.sum()
