"""`cohort.load`: the same frames from records and from releases, with documented columns."""

from __future__ import annotations

import dataclasses
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import cohort
from cohort.commands.cli import main
from cohort.core.errors import UserError
from cohort.records.record import read
from cohort.results.release.folder import RunFrames
from cohort.results.statistics import paired_differences
from cohort.settings import Settings
from tests.conftest import ROOT

RELEASES = str(ROOT / "resources/released")
PAGE = (ROOT / "docs/records.md").read_text()


@pytest.fixture
def demo(project: Path) -> None:
    """A project in which the demo's released runs are restored."""
    main(["restore", "demo", "--from", RELEASES])


def frames_of(data: RunFrames) -> dict[str, pd.DataFrame]:
    return {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}


def test_records_and_releases_give_the_same_frames(demo: None):
    restored, released = cohort.load("demo"), cohort.load("demo", source=RELEASES)
    for name, frame in frames_of(released).items():
        pd.testing.assert_frame_equal(getattr(restored, name)[list(frame)], frame)
    assert set(restored.runs) - set(released.runs) == {"restored"}
    record = read(next(Path("results/cells").rglob("fedentopt/seed1-*.h5")))
    accuracy = restored.metric("test_accuracy")
    rows = accuracy[accuracy["digest"] == record.header["digest"]]
    assert list(zip(rows["round"], rows["value"], strict=True)) == [
        *record.history.metrics["test_accuracy"]
    ]
    assert {*rows["strategy"]} == {"fedentopt"} and {*rows["seed"]} == {1}
    assert set(cohort.load("demo", only="strategy=loss,seed=0").runs["strategy"]) == {"loss"}
    with pytest.raises(
        UserError,
        match='no finished run at scale smoke; train it first, or load its release with source="r',
    ):
        cohort.load("demo", scale="smoke")
    with pytest.raises(UserError, match="there is no study 'dem'; did you mean 'demo'"):
        cohort.load("dem")
    with pytest.raises(UserError, match='all scales; scale is for source="results"'):
        cohort.load("demo", source=RELEASES, scale="smoke")
    with pytest.raises(UserError, match="the metric 'accuracy'; did you mean 'test_accuracy'"):
        released.metric("accuracy")


@pytest.mark.parametrize("study", ["demo", "fedentopt", "ucb"])
def test_every_column_is_documented(study: str):
    for frame in frames_of(cohort.load(study, source=RELEASES)).values():
        columns = {re.sub("^version_.*", "version_{package}", name) for name in frame}
        columns -= {field.name for field in dataclasses.fields(Settings)}  # described there
        assert {name for name in columns if f"`{name}`" not in PAGE} == set()


def test_importing_cohort_imports_nothing_heavy():
    code = "import sys, cohort; cohort.load; print(*sys.modules)"
    options = {"check": True, "env": {"PYTHONPATH": str(ROOT / "workflow")}}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, **options)
    assert not {"numpy", "pandas", "yaml", "cohort.plan"} & set(done.stdout.decode().split())


def test_the_notebook_runs_and_its_interval_is_that_of_cohort(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(ROOT)
    notebook = json.loads((ROOT / "examples/runs_in_pandas.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells)
    script = tmp_path / "notebook.py"
    script.write_text("\n\n".join("".join(cell["source"]) for cell in cells))
    names = runpy.run_path(str(script))
    rows = names["last"]
    rows = rows[(rows["partition"] == "dir-0.1") & (rows["J"] == "J4")]
    ours, theirs = (
        rows[rows["strategy"] == name].set_index("seed")["value"]
        for name in ("fedentopt", "fedavg")
    )
    sample = paired_differences(dict(ours), dict(theirs)).scaled(100)
    low, high = sample.interval()
    text = f"{sample.mean:+.2f} ({low:+.2f} to {high:+.2f}, 3 seeds)"
    assert names["interval"](ours - theirs) == text
