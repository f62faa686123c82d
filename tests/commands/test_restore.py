"""`restore` of a release whose runs state other parameters than their planned cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.plan import Plan
from cohort.records.record import read
from cohort.results.differences import settings_with_defaults
from cohort.results.release import restoring
from cohort.results.release.restoring import restore
from tests.commands.conftest import finish


def released(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, folder: Path, selector: dict[str, Any]
) -> str:
    """The digest of a run whose release, which is in `folder`, states a selector."""
    cell = next(iter(plan.cells.values()))
    path = finish(cell, settings=cell.plain_settings() | {"selector": selector})
    record = read(path)
    path.unlink()
    (folder / "manifest.json").write_text("{}")
    monkeypatch.setattr(restoring, "read_release", lambda *_: [record])
    monkeypatch.setattr(restoring, "read_digests", lambda _: [cell.digest])
    return cell.digest


def test_a_parameter_that_is_gone_is_no_conflict(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    selector = {"name": "random", "gone": 1}
    digest = released(plan, monkeypatch, tmp_path, selector)
    assert restore(tmp_path, "here", plan.cells).restored == [digest]
    settings = read(plan.cells[digest].path).header["settings"]
    assert settings["selector"] == selector  # as it was recorded
    assert settings_with_defaults(settings) == plan.cells[digest].plain_settings()


def test_another_selector_is_one(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    released(plan, monkeypatch, tmp_path, {"name": "loss"})
    with pytest.raises(UserError, match=r"do not give this digest \(selector\); nothing was"):
        restore(tmp_path, "here", plan.cells)
