"""What is drawn from the runs that exist, and when their metrics are collected again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from cohort.core.errors import UserError
from cohort.core.paths import Layout
from cohort.pipeline import partial_metrics, preview
from cohort.pipeline.partial_metrics import collect_partial
from cohort.plan import Plan, load
from cohort.records.record import read, write
from cohort.results.collect import Result, read_result
from cohort.results.series import read_metric
from tests.commands.conftest import finish, plan  # noqa: F401 (a fixture)


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


def test_a_preview_of_restored_runs(plan: Plan):  # noqa: F811
    """Tables and claims name the release; a figure without any run is not drawn, nor kept."""
    file = Path("config/studies/six.yaml")
    study = yaml.safe_load(file.read_text())
    first = study["experiments"]["one"]
    study["experiments"]["two"] = first | {"axes": first["axes"] | {"J": ["J3"]}}
    figure = {"kind": "curves", "metric": "test_accuracy", "hue": "strategy"}
    study["figures"] = {f"of_{name}": figure | {"experiment": name} for name in ("one", "two")}
    claim = {"kind": "gain", "experiment": "one", "metric": "test_accuracy"}
    claim |= {"along": "strategy", "pairs": [["loss", "fedavg"]]}
    study["claims"] = {"first": claim | {"says": "First.", "where": "here"}}
    file.write_text(yaml.safe_dump(study))
    plan = load()
    for row in plan.study("six").experiments["one"].rows[1:]:
        path = finish(plan.cells[row.digest])
        run = read(path)
        theirs = {"restored": [{"release": "theirs_&_ours"}]}
        write(path, replace(run, header=run.header | theirs))
    finish(plan.cells[plan.study("six").experiments["one"].rows[0].digest])
    layout = Layout("full", partial=True)
    old = Path(layout.figure("six", "of_two")[0])
    old.parent.mkdir(parents=True)
    old.touch()
    preview.draw_partial(plan, "six")
    assert Path(layout.figure("six", "of_one")[0]).exists() and not old.exists()
    for files in (layout.table("six", "tab1"), layout.claims("six")):
        markdown, latex = (Path(file).read_text() for file in files[1:3])
        assert "Restored from theirs_&_ours: 5 of 6 finished runs." in markdown
        assert r"Restored from theirs\_\&\_ours: 5 of 6 finished runs." in latex


def test_what_did_not_change_is_not_read_again(plan: Plan, monkeypatch: pytest.MonkeyPatch):  # noqa: F811
    read_paths: list[str] = []

    def counted(path: str) -> Result:
        read_paths.append(path)
        return read_result(path)

    monkeypatch.setattr(partial_metrics.collect, "read_result", counted)
    first, second, *_ = plan.cells.values()
    finish(first, 0.5)

    def accuracies() -> list[float]:
        rows = read_metric(collect_partial(plan, "six", "one"), "test_accuracy")
        return sorted(rows.loc[rows["round"] == 10, "value"])

    assert (accuracies(), read_paths) == ([0.5], [first.path])
    assert (accuracies(), read_paths) == ([0.5], [first.path])
    finish(second, 0.25)
    assert (accuracies(), read_paths) == ([0.25, 0.5], [first.path, first.path, second.path])
    finish(first, 0.75)
    assert accuracies() == [0.25, 0.75]
    Path(second.path).unlink()
    assert accuracies() == [0.75]
    table = Path(collect_partial(plan, "six", "one"))
    table.write_bytes(table.read_bytes()[:-1])
    assert accuracies() == [0.75]  # a damaged table is made anew
