"""Every strategy chooses the same clients and reaches the same losses by two trainers, of which one
is on a GPU if there is any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from cohort.commands.run import make_inputs
from cohort.core.paths import plan_file
from cohort.plan import Plan, load
from cohort.records.record import Record, read
from cohort.settings import write_plan
from cohort.training.cell import Cell
from cohort.training.job.train import train

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("float32_again")]
BOTH = {"serial": "cpu", "auto" if torch.cuda.is_available() else "batched": "auto"}
"""The device of each trainer; on a GPU `auto` is the batched one where it takes the procedure."""

STUDIES = Path("config/studies")
DATA = {"dataset": "digits", "model": "small-cnn", "partition": "dir-0.5-overlap0.2x2", "seed": 0}
WAYS = {"J": "J4", "clients": 20, "cohort": 5, "rounds": 3, "batch": 16, "lr": 0.3}
SETTINGS = DATA | WAYS | {"holdout": 0.1, "reserve": 50, "evaluate_local": 1}
OTHER_PROCEDURES = {
    "concat-3": "fedconcat",
    "stratified-single": "stratify-uniform",
    "stratified-batch": "stratify-uniform",
    "stratified-hybrid-1": "stratify-uniform",
    "sequential": "sfl",
}


def plan_of(experiments: dict[str, Any]) -> Plan:
    text = yaml.safe_dump({"title": "All", "experiments": experiments})
    (STUDIES / "every.yaml").write_text(text)
    return load({"studies": "every"})


def trained(cell: Cell, trainer: str) -> Record:
    record = Path(trainer, f"{cell.digest}.h5")
    record.parent.mkdir(exist_ok=True)
    train(plan_file(cell.digest), record, device=BOTH[trainer], trainer=trainer)
    return read(record)


def compare(plan: Plan) -> None:
    """Train every cell by both trainers; losses may differ by a thousandth."""
    for cell in plan.cells.values():
        make_inputs(plan, cell)
        write_plan(cell.planned())
        serial, batched = (trained(cell, trainer).history for trainer in BOTH)
        name = f"{cell.settings.strategy}, {cell.settings.procedure}, {cell.settings.precision}"
        for chosen, again in zip(serial.cohorts, batched.cohorts, strict=True):
            np.testing.assert_array_equal(chosen, again, name)
        for metric, values in serial.metrics.items():
            if metric.endswith("_loss"):
                again, message = batched.metrics[metric], f"{name}: {metric}"
                np.testing.assert_allclose(again, values, rtol=1e-3, err_msg=message)


def test_strategies(project: Path):
    excluded = {*OTHER_PROCEDURES.values(), "stratify-weighted", "fedtan", "centralized"}
    strategies = yaml.safe_load(Path("config/strategies.yaml").read_text()).keys() - excluded
    plan = plan_of({"main": {"settings": SETTINGS, "axes": {"strategy": sorted(strategies)}}})
    assert len(plan.cells) == len(strategies) > 30
    compare(plan)


def test_procedures(project: Path):
    changes = {"partition": "dir-0.5", "holdout": 0, "reserve": 0, "evaluate_local": 0, "J": "J1e"}
    settings, experiments = SETTINGS | changes | {"clients": 5, "rounds": 2}, {}
    for number, (procedure, strategy) in enumerate(OTHER_PROCEDURES.items()):
        own = {"procedure": procedure, "batch": 1 if "single" in procedure else 16}
        axes = {"strategy": [strategy]}
        experiments[f"procedure{number}"] = {"settings": settings | own, "axes": axes}
    compare(plan_of(experiments))


def test_double_precision(project: Path):
    """Only a GPU has tf32: tests/gpu/trainers.py checks it there."""
    axes = {"precision": ["float64"], "strategy": ["fedavg", "scaffold"]}
    compare(plan_of({"main": {"settings": SETTINGS, "axes": axes}}))
