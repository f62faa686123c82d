"""Which runs are the same, which differ, and which are refused or restored."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from cohort.core.errors import UserError
from cohort.core.sealed_json import write_sealed
from cohort.records.record import check, read
from cohort.results.differences import FEW, differences, is_same
from cohort.results.release import restoring
from cohort.results.release.folder import read_manifest, read_release, write_release
from cohort.results.release.restoring import restore
from tests.commands.conftest import finish, record
from tests.results.release.runs import random_record

RECORDS = [random_record(seed) for seed in range(12)]


def side(settings, strategies, weights, status=()):
    cells = {}
    for strategy, values in strategies.items():
        for seed, value in values.items():
            own = settings | {"strategy": strategy}
            one = record(own, value, weights=weights)
            if (strategy, seed) in status:
                one = replace(one, header=one.header | {"status": "diverged"})
            cells[json.dumps(own), seed] = one
    return cells


def test_diverged_runs_and_few_runs(plan):
    settings = next(iter(plan.cells.values())).plain_settings()
    first = {
        "a": {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0},
        "b": {0: 0.0, 1: 0.0, 2: 0.1},
        "c": {0: 0.0, 1: 0.0},
    }
    second = {
        "a": {0: 1.0, 1: 1.1, 2: 1.2, 3: 99.0},
        "b": {10: 1.0, 11: 1.1},
        "c": {0: 5.0, 1: -5.0},
    }
    found = {
        d.name.split("/")[-1]: d
        for d in differences(
            side(settings, first, "0"), side(settings, second, "1", {("a", 3)}), "test_accuracy"
        )
    }
    assert found["a"].sample.n == 3 and found["a"].mean == pytest.approx(1.1)  # the last diverged
    assert found["a"].level == 0.05  # those with too few runs are not tested
    assert found["b"].sample is None and found["b"].word == FEW == found["c"].word


def test_what_makes_two_runs_the_same(plan):
    settings = next(iter(plan.cells.values())).plain_settings()
    one, again = (record(settings, 0.5) for _ in range(2))
    assert is_same(one, again)
    assert not is_same(one, record(settings, 0.5, weights="1"))
    assert not is_same(one, record(settings, 0.6))
    again.history.cohorts[3] = np.array([1, 0])
    assert not is_same(one, again)


def test_no_table_is_read_from_outside_of_a_release(tmp_path):
    write_release(tmp_path / "study", "study", RECORDS)
    outside = tmp_path / "curves.parquet"
    (tmp_path / "study/curves.parquet").rename(outside)
    manifest = read_manifest(tmp_path / "study")
    manifest["files"]["../curves.parquet"] = manifest["files"].pop("curves.parquet")
    write_sealed(tmp_path / "study/manifest.json", manifest)
    with pytest.raises(UserError, match="is not the manifest of a release"):
        read_release(tmp_path / "study")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"settings": {"generated": True}}, "generated"),
        ({"science": {"model:small-mlp": 7}}, "model:small-mlp"),
        ({"settings": {"unheard_of": 1}}, "unheard_of"),
    ],
)
def test_what_a_planned_cell_contradicts(plan, tmp_path, monkeypatch, changes, name):
    cell = next(iter(plan.cells.values()))
    path = finish(cell)
    one = read(path)
    path.unlink()
    header = one.header | {k: one.header[k] | v for k, v in changes.items()}
    (tmp_path / "manifest.json").write_text("{}")
    monkeypatch.setattr(restoring, "read_release", lambda folder: [replace(one, header=header)])
    with pytest.raises(UserError, match=rf"do not give this digest \({name}\); nothing was"):
        restore(tmp_path, "here", plan.cells)
    assert not path.exists()


def test_a_record_that_was_trained_here_is_not_marked_as_restored(plan, tmp_path, monkeypatch):
    cell = next(iter(plan.cells.values()))
    path = finish(cell)
    (tmp_path / "manifest.json").write_text("{}")
    monkeypatch.setattr(restoring, "read_release", lambda folder: [read(path)])
    before = path.read_bytes()
    assert restore(tmp_path, "here", plan.cells).present == [cell.digest]
    assert path.read_bytes() == before and "restored" not in read(path).header


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda one: one.history.add_metrics(11, test_accuracy=0.5),
            "do not ascend within 1 to 10",
        ),
        (lambda one: one.history.add_cost(10, seconds=1.0), "do not ascend"),
        (
            lambda one: one.history.metrics.update({"loss/../../x": [(1, 0.5)]}),
            "is not the name of a metric",
        ),
        (
            lambda one: one.clients.update({"size x": one.clients["size"]}),
            "is not the name of a metric",
        ),
    ],
)
def test_records_that_are_refused(plan, change, sentence):
    settings = next(iter(plan.cells.values())).plain_settings()
    one = record(settings, 0.5)
    check(one)
    change(one)
    with pytest.raises(ValueError, match=sentence):
        check(one)
