"""Whatever training records is a run that its cell can have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from cohort.results.release.restoring import check_run
from cohort.selection import SELECTORS
from cohort.training.job.train import Run, describe_session
from cohort.training.servers import Momentum
from tests.golden.computations import example
from tests.training.small_task import small_task

PARTICIPATIONS = ["full", "dropout-0.5", "bernoulli-0.9", "stragglers-0.5"]
FEW: dict[str, Any] = {"sizes": (4, 0, 9, 2, 6), "cohort": 3}
ALONE: dict[str, Any] = {"sizes": (9,), "validation": (1, 2)}
RUNS: dict[str, dict[str, Any]] = {
    **{
        f"{name} {part}": FEW | {"selector": name, "participation": part}
        for name in SELECTORS
        for part in PARTICIPATIONS
    },
    **{
        f"{name} {scheme}": FEW | {"selector": name, "rounds": 9, "availability": scheme}
        for name in ("random", "probe", "peco", "tifl", "clustered-updates", "optimal-sampling")
        for scheme in ("markov-2-6", "diurnal-0.1")
    },
    **{
        f"{name} {part}": FEW
        | {"selector": name, "participation": part, "client_devices": "lognormal-1"}
        for name in ("random", "probe", "kl", "reselect", "pow-d")
        for part in ("overselect-1.5", "deadline-0.13")
    },
    "idle": FEW | {"seed": 1, "rounds": 2, "availability": "markov-2-500"},
    "on the clock": FEW | {"availability": "diurnal-0.1-day2", "client_devices": "lognormal-1"},
    "centralized": ALONE | {"procedure": "centralized"},
    "sequential": {"procedure": "sequential"},
    "stratified-single": {"procedure": "stratified-single", "batch": 1},
    "stratified-batch": {"procedure": "stratified-batch"},
    "stratified-hybrid": {"procedure": "stratified-hybrid-2"},
    "concat": FEW | {"procedure": "concat-2"},
    "masked labels": {"procedure": "masked-labels", "rounds": 1},
    "profiled": FEW | {"procedure": "federated-profiled1"},
    "momentum": FEW | {"server": Momentum(clip=0.01)},
    "diverged": FEW | {"lr": 1e300},
    "diverged at the end": FEW | {"lr": 1e300, "rounds": 1},
    "diverged alone": ALONE | {"procedure": "centralized", "lr": 1e300},
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_valid(name: str):
    """With each selector, where clients drop out or hold no samples; with each procedure; and of runs that diverge."""
    settings = {"rounds": 4, "J": "J1e", "evaluate_every": 2} | RUNS[name]
    if "selector" in settings:
        settings["selector"] = example(SELECTORS[settings["selector"]])
    if settings.get("procedure", "federated").startswith("federated"):
        settings |= {"evaluate_local": 3, "evaluate_own": 1}
    task = small_task(**settings)
    rounds, begun = task.procedure.rounds_of(task), task.procedure.begin(task)
    run = Run(rounds, begun, {}, Path())
    run.state.sessions.append(describe_session(torch.device("cpu"), task.trainer.name, 0))
    *_, run.state = run.rounds.run(run.state)
    record = run.record()
    assert (record.header["status"] == "diverged") == name.startswith("diverged")
    check_run(record, task)
