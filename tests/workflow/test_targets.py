"""Targets of Snakemake that do not exist, and what is drawn and cleaned up after a run."""

from __future__ import annotations

import pytest
import yaml

from tests.workflow.conftest import Project

WRONG = {
    "tiny_fig9": "there is no target 'tiny_fig9'; did you mean 'tiny_fig2'? (allowed: all, ",
    "results/full/figures/tiny/fig9.png": "tiny has no figure or table 'fig9'",
    "results/full/report/tinny.html": "there is no study 'tinny'; did you mean 'tiny'?",
    "results/full/metrics/tiny/oone.parquet": "tiny has no experiment 'oone'",
    "results/cells/digits/seed0-k0123456789ab.h5": "no listed study has the cell k0123456789ab at "
    "scale full: add --config studies=STUDY scale=SCALE",
    "results/smoke/figures/tiny/fig1.png": "results/smoke is of another scale than full: add "
    "--config scale=smoke",
}


@pytest.mark.parametrize("target", WRONG)
def test_a_target_that_does_not_exist_is_one_sentence(fresh: Project, target: str):
    output = fresh.snakemake("-n", target, fails=True)
    assert f"\nerror: {WRONG[target]}" in output
    assert "Exception" not in output and "  File " not in output


def test_a_folder_that_snakemake_cannot_work_in(fresh: Project):
    folder = fresh.root.with_name("of{mine}")
    fresh.root.rename(folder)
    output = Project(folder).snakemake("-n", fails=True)
    assert f"error: {folder}: Snakemake cannot work below a folder with {{ or }}" in output
    assert "Traceback" not in output and "  File " not in output


@pytest.mark.long
def test_after_a_failure_only_what_was_asked_for_is_drawn(finished: Project):
    """And a study that is finished then leaves the preview of another one alone."""
    finished.narrow()
    (finished.root / "config/studies/other.yaml").write_text(yaml.safe_dump(finished.study()))
    finished.replace("config/config.yaml", "studies: [tiny]", "studies: [tiny, other]")
    next(path for path in finished.records() if "/J3/" in str(path)).unlink()
    average = "workflow/cohort/training/servers.py"
    finished.replace(average, "return Merged", "raise OSError('no memory')\n        return Merged")
    partial = finished.root / "results/full/partial"

    output = finished.snakemake("tiny_fig2", fails=True)
    drawn = "drawn from the records that exist: results/full/partial/"
    assert output.count("drawn from") == 1 and f"{drawn}figures/tiny/fig2.png" in output
    assert not (partial / "report").exists()

    assert f"{drawn}report/other.html" in finished.snakemake("other", fails=True)
    index = (finished.root / "results/full/report/index.html").read_text()
    assert '<a href="tiny.html">' in index and '<a href="../partial/report/other.html">' in index
    assert "no memory" in index.partition("What is left out")[2]
    finished.replace(average, "raise OSError('no memory')", "pass")
    finished.snakemake("tiny")
    assert (partial / "report/other.html").exists()
    assert not (partial / "figures/tiny").exists()
