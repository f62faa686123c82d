"""A checkpoint that cannot be used is none: the run begins anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from cohort.records.history import History
from cohort.training.checkpoint import load, load_history, save
from cohort.training.state import RunState

CPU = torch.device("cpu")


def state() -> RunState:
    history = History(cohorts=[np.array([2, 0]), np.array([1, 2])])
    history.add(2, test_accuracy=0.5)
    history.add_cost(1, seconds=0.25)
    return RunState({"w": torch.tensor([1.0, -0.0])}, {"v": torch.ones(1)}, {"loss": np.array([np.inf, 1.0])}, history, round=2)


def test_what_is_saved_is_read_back(tmp_path: Path):
    save(tmp_path / "c", state(), "k1")
    found = load(tmp_path / "c", "k1", CPU)
    assert found is not None and found.round == 2 and not found.diverged
    assert found.weights["w"].numpy().tobytes() == state().weights["w"].numpy().tobytes()
    assert found.server["v"].item() == 1 and found.selector["loss"].tolist() == [np.inf, 1.0]
    assert dict(found.history.metrics) == {"test_accuracy": [(2, 0.5)]} and dict(found.history.cost) == {"seconds": [(1, 0.25)]}
    assert np.array_equal(found.history.cohorts, [[2, 0], [1, 2]])


@pytest.mark.parametrize("damage", ["absent", "cut", "other cell", "no header"])
def test_what_cannot_be_used_is_none(tmp_path: Path, damage: str):
    path = tmp_path / "c"
    if damage != "absent":
        save(path, state(), "k1")
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    if damage == "no header":
        save_file({"weights/w": torch.ones(2)}, path)
    assert load(path, "k2" if damage == "other cell" else "k1", CPU) is None
    assert (load_history(path) is None) == (damage != "other cell")
