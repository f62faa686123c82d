"""What is drawn from the runs that exist, and when their metrics are collected again."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cohort.core.errors import UserError
from cohort.core.paths import Layout
from cohort.pipeline import driver, preview
from cohort.pipeline.preview import collect_partial
from cohort.plan import Plan, load
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

    monkeypatch.setattr(preview, "draw_study", fails)
    with pytest.raises(UserError, match=r"^demo could not be drawn$"):
        preview.draw_studies(plan, ["demo", "six"])
    assert "error: results/x.h5 is damaged" in capfd.readouterr().err
    assert Path("six").exists()
    stages = SimpleNamespace(requested=["demo", "six"])
    stopping = SimpleNamespace(uninstall=lambda: None, received=None)
    failed: Any = SimpleNamespace(plan=plan, lock=True, stages=stages, stopping=stopping)
    driver.Driver.on_error(failed)
    assert "exist: six\n" in capfd.readouterr().err


def test_a_figure_without_any_run_is_neither_drawn_nor_kept(plan: Plan):  # noqa: F811
    file = Path("config/studies/six.yaml")
    study = yaml.safe_load(file.read_text())
    first = study["experiments"]["one"]
    study["experiments"]["two"] = first | {"axes": first["axes"] | {"J": ["J3"]}}
    figure = {"kind": "curves", "metric": "test_accuracy", "hue": "strategy"}
    study["figures"] = {f"of_{name}": figure | {"experiment": name} for name in ("one", "two")}
    file.write_text(yaml.safe_dump(study))
    finish(next(iter(plan.cells.values())))
    layout = Layout("full", partial=True)
    drawn, old = (Path(layout.figure("six", name)[0]) for name in study["figures"])
    old.parent.mkdir(parents=True)
    old.touch()
    preview.draw_study(load(), "six")
    assert drawn.exists() and not old.exists()


def test_what_did_not_change_is_not_read_again(plan: Plan, monkeypatch: pytest.MonkeyPatch):  # noqa: F811
    read_paths: list[str] = []
    read = preview.collect.read_result
    counted = lambda path: read_paths.append(path) or read(path)  # noqa: E731
    monkeypatch.setattr(preview.collect, "read_result", counted)
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
