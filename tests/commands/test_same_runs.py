"""Which runs are the same, which differ, and which are refused or restored."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cohort.core.errors import UserError
from cohort.core.sealed_json import write_sealed
from cohort.plan import Plan
from cohort.records.record import Record, check, read
from cohort.results.collect import is_same, settings_with_defaults
from cohort.results.release import restoring
from cohort.results.release.folder import read_manifest, read_release, write_release
from cohort.results.release.restoring import RestoreOutcome
from tests.commands.conftest import finish, record
from tests.results.release.runs import random_record

Restored = Callable[[Record], RestoreOutcome]
RECORDS = [random_record(seed) for seed in range(12)]


@pytest.fixture
def restored(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Restored:
    """Return a function that restores a release of one run."""

    def run_of_release(run: Record) -> RestoreOutcome:
        (tmp_path / "manifest.json").write_text("{}")
        monkeypatch.setattr(restoring, "read_release", lambda *_: [run])
        monkeypatch.setattr(restoring, "read_digests", lambda _: [run.header["digest"]])
        return restoring.restore(tmp_path, "here", plan.cells)

    return run_of_release


@pytest.mark.parametrize(
    ("change", "is_another"),
    [
        (lambda run: None, False),
        (lambda run: run.header.update(weights_sha256="1" * 64), True),
        (lambda run: run.history.cohorts.__setitem__(3, np.array([1, 0])), True),
        (lambda run: run.history.add_traffic({"model": {"server": 1}}), True),
        (lambda run: run.history.cost.update(client_steps=[(1, 5.0)]), True),
        (lambda run: run.clients.update(accuracy=run.clients["accuracy"] / 2), True),
        (lambda run: run.classes.update(right=np.array([1, 2])), True),
        (lambda run: run.history.cost.update(seconds=[(1, 5.0)]), False),
        (lambda run: run.header["provenance"].update(peak_memory_mb=7.0), False),
    ],
)
def test_runs_that_differ_in_measured_times_only_are_the_same(
    plan: Plan, change: Callable[[Record], object], is_another: bool
):
    settings = next(iter(plan.cells.values())).plain_settings()
    run, again = (record(settings, 0.5) for _ in range(2))
    for both in (run, again):
        both.history.norms = [np.ones(2)] * len(both.history.cohorts)
    change(again)
    assert is_same(run, again) != is_another


def test_no_table_is_read_from_outside_of_a_release(tmp_path: Path):
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
        ({"settings": {"selector": {"name": "loss"}}}, "selector"),
        ({"science": {"model:small-mlp": 7}}, "model:small-mlp"),
        ({"settings": {"unheard_of": 1}}, "unheard_of"),
    ],
)
def test_what_a_planned_cell_contradicts(
    plan: Plan, restored: Restored, changes: dict[str, Any], name: str
):
    run = read(path := finish(next(iter(plan.cells.values()))))
    path.unlink()
    header = run.header | {key: run.header[key] | new for key, new in changes.items()}
    with pytest.raises(UserError, match=rf"do not give this digest \({name}\); nothing was"):
        restored(replace(run, header=header))
    assert not path.exists()


def test_a_record_that_was_trained_here_is_not_marked_as_restored(plan: Plan, restored: Restored):
    path = finish(cell := next(iter(plan.cells.values())))
    before = path.read_bytes()
    assert restored(read(path)).present == [cell.digest]
    assert path.read_bytes() == before and "restored" not in read(path).header


def test_a_parameter_that_is_gone_is_no_conflict(plan: Plan, restored: Restored):
    cell, selector = next(iter(plan.cells.values())), {"name": "random", "gone": 1}
    run = read(path := finish(cell, settings=cell.plain_settings() | {"selector": selector}))
    path.unlink()
    assert restored(run).restored == [cell.digest]
    settings = read(cell.path).header["settings"]
    assert settings["selector"] == selector  # as it was recorded
    assert settings_with_defaults(settings) == cell.plain_settings()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda run: run.history.add_metrics(11, test_accuracy=0.5), "ascend within 1 to 10"),
        (lambda run: run.history.add_cost(10, seconds=1.0), "do not ascend"),
        (lambda run: run.history.metrics.update({"x/../y": [(1, 0.5)]}), "not the name of a met"),
        (lambda run: run.clients.update({"x y": run.clients["size"]}), "not the name of a metric"),
    ],
)
def test_records_that_are_refused(plan: Plan, change: Callable[[Record], object], sentence: str):
    run = record(next(iter(plan.cells.values())).plain_settings(), 0.5)
    check(run)
    change(run)
    with pytest.raises(ValueError, match=sentence):
        check(run)
