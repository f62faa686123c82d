"""Cohort as a module of another workflow, as snakedeploy deploys it too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tests.workflow.conftest import CELLS, Project, jobs

OUTER = """
configfile: "config/config.yaml"

onsuccess:
    print("it is over")

rule everything:
    input: "copied.pdf"

module cohort:
    snakefile: "{snakefile}"
    config: config["cohort"]
    {more}

use rule * from cohort as cohort_*

use rule train from cohort as cohort_train with:
    threads: 1

rule copy:
    input: "results/full/figures/tiny/fig2.pdf", "samples.txt"
    output: "copied.pdf"
    shell: "cp {{input[0]}} {{output}}"

rule retrain:
    output: touch("retrained.txt")

onstart:
    print("it begins")
"""


def outer(fresh: Project, folder: Path, more: str = "") -> Project:
    """Another workflow, with a config, a file and rules of its own, that uses the tiny project."""
    (folder / "config").mkdir(parents=True)
    config = {"samples": ["a"], "cohort": {"studies": "tiny"}}
    (folder / "config/config.yaml").write_text(yaml.safe_dump(config))
    (folder / "samples.txt").touch()
    snakefile = fresh.root / "workflow/Snakefile"
    (folder / "Snakefile").write_text(OUTER.format(snakefile=snakefile, more=more))
    return Project(folder)


@pytest.mark.slow
def test_another_workflow_runs_it_to_the_end(fresh: Project, tmp_path: Path):
    fresh.narrow()
    project = outer(fresh, tmp_path / "outer")
    refusal = project.snakemake("-c2", fails=True)
    assert "train finished cells again: copy Cohort's profiles/default, or add" in refusal
    assert not project.records()

    shutil.copytree(fresh.root / "profiles", project.root / "profiles")
    output = project.snakemake("--show-failed-logs")
    assert "it begins" in output and "it is over" in output
    assert jobs(output)["cohort_train"] == len(project.records()) == CELLS["two"]
    assert (project.root / "copied.pdf").exists()
    shutil.rmtree(project.root / "results/shards")
    assert "Nothing to be done" in project.snakemake("-n")
    assert project.planned("copied.pdf", "retrained.txt", "-R", "retrain") == {"retrain": 1}

    record = project.records()[0]
    record.unlink()
    (project.root / "results/full/metrics/tiny/two.parquet").unlink()
    assert project.planned("cohort_tiny_fig2")["cohort_train"] == 1


@pytest.mark.parametrize("more", ['prefix: "sub"', 'replace_prefix: {"results/": "sub/"}'])
def test_other_paths_are_refused(fresh: Project, tmp_path: Path, more: str):
    output = outer(fresh, tmp_path / "outer", more).snakemake("-n", fails=True)
    assert "error: Cohort as a module takes no prefix or replace_prefix" in output


def test_the_catalog_finds_a_small_run(fresh: Project):
    shutil.copytree(ROOT / ".test/config", fresh.root / ".test/config")
    fresh.replace(".test/config/config.yaml", "demo", "tiny")
    planned = fresh.planned("--directory", ".test", "--snakefile", "workflow/Snakefile")
    assert planned["train"] == 4  # of six: this scale thins axes and seeds


def test_the_catalog_reads_defaults_from_the_schema():
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
    defaults = {key: entry["default"] for key, entry in schema["properties"].items()}
    assert defaults == yaml.safe_load((ROOT / "config/config.yaml").read_text())
    assert all(entry["description"] for entry in schema["properties"].values())
