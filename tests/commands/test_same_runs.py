"""Which runs are the same, which differ, and which are refused or restored."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cohort.plan import Plan
from cohort.records.record import Record, read
from cohort.results.collect import is_same, settings_with_defaults
from cohort.results.release import restoring
from cohort.results.release.restoring import RestoreOutcome
from tests.commands.conftest import finish, record

Restored = Callable[[Record], RestoreOutcome]


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
    for history in (run.history, again.history):
        history.norms = [np.ones(2)] * len(history.cohorts)
    change(again)
    assert is_same(run, again) != is_another


def test_runs_that_differ_in_ciphertexts_only_are_the_same(plan: Plan):
    """A second run has other keys, so that its ciphertexts are some bytes longer or shorter."""
    settings = next(iter(plan.cells.values())).plain_settings()
    plain, masked = (settings | {"procedure": name} for name in ("federated", "masked-labels"))
    for sent in ("bytes_up", "comparisons"):
        first, second = (record(masked, 0.5) for _ in range(2))
        second.history.cost[sent] = [(1, 5.0)]
        assert is_same(first, second) == (sent == "bytes_up")
    first, second = (record(plain, 0.5) for _ in range(2))
    second.history.cost["bytes_up"] = [(1, 5.0)]
    assert not is_same(first, second)


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
