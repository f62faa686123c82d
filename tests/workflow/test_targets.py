"""Targets of Snakemake that do not exist, and what is drawn and cleaned up after a run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.workflow.commands import cohort
from tests.workflow.conftest import Project

WRONG = {
    "tiny_fig9": "there is no target 'tiny_fig9'; did you mean 'tiny_fig2'? (allowed: tiny_",
    "results/full/figures/tiny/fig9.png": "tiny has no figure or table 'fig9'",
    "results/full/report/tinny.html": "there is no study 'tinny'; did you mean 'tiny'?",
    "results/full/metrics/tiny/oone.parquet": "tiny has no experiment 'oone'",
    "results/cells/digits/seed0-k0123456789ab.h5": "no listed study has the cell k0123456789ab at "
    "scale full: add --config studies=STUDY scale=SCALE",
    "resources/raw/digitz/x": "there is no data set 'digitz'; did you mean 'digits'?",
    "results/smoke/figures/tiny/fig1.png": "results/smoke is of another scale than full: add "
    "--config scale=smoke",
}
OWN_RULE = """

rule copy:
    input: "results/full/tables/demo/tab1.csv", "samples.txt"
    output: "copied.csv"
    shell: "cp {input[0]} {output}"
"""


@pytest.mark.parametrize("target", WRONG)
def test_a_target_that_does_not_exist_is_one_sentence(fresh: Project, target: str):
    output = fresh.snakemake("-n", target, fails=True)
    assert f"\nerror: {WRONG[target]}" in output
    assert "Exception" not in output and "  File " not in output


def test_options_without_jobs_or_handlers(fresh: Project):
    """--touch runs no job that makes a page; without its handlers the driver would lock nothing."""
    output = fresh.snakemake("--no-hooks", "--cores", "1", fails=True)
    assert "\nerror: --no-hooks would start jobs without their plan and lock" in output
    assert "Error" not in fresh.snakemake("--touch", "--cores", "1")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_here(fresh: Project):
    output = fresh.snakemake("--cores", "1", "--config", "device=cuda", fails=True)
    assert "\nerror: config/config.yaml or --device: device is cuda, but no GPU is vis" in output
    assert not list(fresh.root.glob("results/*/train"))  # no job has started


def test_a_folder_that_snakemake_cannot_work_in(fresh: Project):
    folder = fresh.root.with_name("of{mine}")
    fresh.root.rename(folder)
    output = Project(folder).snakemake("-n", fails=True)
    assert f"error: {folder}: Snakemake cannot work below a folder with {{ or }}" in output
    assert "Traceback" not in output and "  File " not in output


def test_a_folder_of_init_takes_rules_of_the_user_and_names_a_target_that_is_none(
    fresh: Project, tmp_path: Path
):
    """Its rules may read and write files beside the Snakefile, whose names could be targets."""
    folder = tmp_path / "own"
    assert cohort(fresh, "init", str(folder)).returncode == 0
    project = Project(folder)
    project.replace("config/config.yaml", "[tiny]", "[demo]")  # tiny is not the package's
    with (folder / "workflow/Snakefile").open("a") as file:
        file.write(OWN_RULE)
    (folder / "samples.txt").touch()
    table = project.planned("demo_tab1")
    assert project.planned("copied.csv").items() - table.items() == {("copy", 1)}
    sentence = "error: there is no target 'demo.fig1'; did you mean 'demo_fig1'?"
    assert sentence in project.snakemake("-n", "demo.fig1", fails=True)
