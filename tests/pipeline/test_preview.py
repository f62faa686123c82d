"""Several studies are drawn at a time, each in a process of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cohort.core.errors import UserError
from cohort.core.paths import Layout
from cohort.pipeline import preview
from cohort.plan import Plan
from tests.commands.conftest import plan  # noqa: F401 (a fixture)


def test_each_study_has_a_process(plan: Plan, monkeypatch: pytest.MonkeyPatch):  # noqa: F811
    def noted(plan: Plan, study: str) -> Path:
        Path(study).write_text(str(os.getpid()))
        return Path(study)

    monkeypatch.setattr(preview, "draw_partial", noted)
    pages = preview.draw_studies(plan, ["demo", "six"])
    layout = Layout("full", partial=True)
    assert pages == [Path(layout.page("demo")[0]), Path(layout.page("six")[0])]
    processes = {Path("demo").read_text(), Path("six").read_text(), str(os.getpid())}
    assert len(processes) == 3
    assert Path(layout.index()).exists()


def test_a_study_that_fails_says_why_and_the_others_are_drawn(
    plan: Plan,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    def fails(plan: Plan, study: str) -> Path:
        if study == "demo":
            raise UserError("results/x.h5 is damaged")
        Path(study).touch()
        return Path(study)

    monkeypatch.setattr(preview, "draw_partial", fails)
    with pytest.raises(UserError, match=r"^demo could not be drawn$"):
        preview.draw_studies(plan, ["demo", "six"])
    assert "error: results/x.h5 is damaged" in capfd.readouterr().err
    assert Path("six").exists()
