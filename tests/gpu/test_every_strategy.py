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
FEDERATED = {
    "settings": {
        "dataset": "digits",
        "model": "small-cnn",
        "partition": "dir-0.5-overlap0.2x2",
        "J": "J4",
        "clients": 20,
        "cohort": 5,
        "rounds": 3,
        "batch": 16,
        "lr": 0.3,
        "holdout": 0.1,
        "reserve": 50,
        "evaluate_local": 1,
        "seed": 0,
    },
}
OTHER_PROCEDURES = {
    "concat-3": "fedconcat",
    "stratified-single": "stratify-uniform",
    "stratified-batch": "stratify-uniform",
    "stratified-hybrid-1": "stratify-uniform",
    "sequential": "sfl",
}


def plan_of(experiments: dict[str, Any]) -> Plan:
    (STUDIES / "every.yaml").write_text(
        yaml.safe_dump({"title": "All", "experiments": experiments})
    )
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
        name = cell.settings.strategy, cell.settings.procedure, cell.settings.precision
        for chosen, again in zip(serial.cohorts, batched.cohorts, strict=True):
            assert np.array_equal(chosen, again), name
        for metric, values in serial.metrics.items():
            if metric.endswith("_loss"):
                again = list(dict(batched.metrics[metric]).values())
                assert np.allclose(list(dict(values).values()), again, rtol=1e-3, equal_nan=True), (
                    name,
                    metric,
                )


def test_strategies(project: Path):
    others = {*OTHER_PROCEDURES.values(), "stratify-weighted", "fedtan", "centralized"}
    strategies = yaml.safe_load(Path("config/strategies.yaml").read_text()).keys() - others
    plan = plan_of({"main": FEDERATED | {"axes": {"strategy": sorted(strategies)}}})
    assert len(plan.cells) == len(strategies) > 30
    compare(plan)


def test_procedures(project: Path):
    changes = {"partition": "dir-0.5", "holdout": 0, "reserve": 0, "evaluate_local": 0, "J": "J1e"}
    settings = FEDERATED["settings"] | changes | {"clients": 5, "rounds": 2}
    compare(
        plan_of(
            {
                f"procedure{number}": {
                    "settings": settings
                    | {"procedure": procedure, "batch": 1 if "single" in procedure else 16},
                    "axes": {"strategy": [strategy]},
                }
                for number, (procedure, strategy) in enumerate(OTHER_PROCEDURES.items())
            }
        )
    )


def test_double_precision(project: Path):
    """Only a GPU has tf32: tests/gpu/trainers.py checks it there."""
    axes = {"precision": ["float64"], "strategy": ["fedavg", "scaffold"]}
    compare(plan_of({"main": FEDERATED | {"axes": axes}}))
