"""A study on a data set behind a login, as a user would run it: without the data, with them, and after they went away."""

from __future__ import annotations

import io
import zipfile

import pandas as pd
import pytest
import yaml

from cohort.records.record import read
from tests.data import publishers
from tests.workflow.conftest import Project, jobs

NOTE = "tiny.one: 1 of 2 cells skipped: digits-dg is behind a login (https://drive.google.com/"


@pytest.fixture
def mixed(fresh: Project) -> Project:
    """One of two cells is on Digits-DG; the facts count the generated files."""
    file = fresh.root / "config/datasets.yaml"
    facts = yaml.safe_load(file.read_text())
    facts["digits-dg"] |= publishers.counts("digits-dg") | {"generated": True}
    file.write_text(yaml.safe_dump(facts, sort_keys=False))
    study = fresh.study()
    study["settings"] |= {"clients": 4, "cohort": 2, "reserve": 2, "rounds": 2}
    study["experiments"]["one"]["axes"] |= {
        "partition": ["iid"],
        "strategy": ["fedavg"],
        "dataset": ["digits", "digits-dg"],
    }
    del study["experiments"]["two"], study["figures"]["fig2"]
    study["figures"]["fig1"]["rows"] = "dataset"
    study["tables"]["tab1"]["rows"] = ["dataset"]
    fresh.write(study)
    return fresh


@pytest.mark.long
def test_skipped_without_the_data_and_made_with_them(mixed: Project):
    """Without them it runs to the end and says so on the page."""
    output = mixed.snakemake()
    assert NOTE in output and "set data_paths" in output
    assert len(mixed.records()) == 1
    page = mixed.root / "results/full/report/tiny.html"
    assert NOTE in page.read_text()
    with zipfile.ZipFile(io.BytesIO(publishers.contents("digits-dg")["digits_dg.zip"])) as archive:
        archive.extractall(mixed.root / "mine")
    paths = ("--config", "data_paths={digits-dg: mine/digits_dg}")
    output = mixed.snakemake(*paths)
    assert NOTE not in output and jobs(output)["train"] == 1
    (record,) = (path for path in mixed.records() if "digits-dg" in path.parts)
    assert read(record).header["settings"]["generated"] is True
    metrics = pd.read_parquet(mixed.root / "results/full/metrics/tiny/one.parquet")
    assert metrics["generated"].dtype == bool
    assert set(metrics.groupby("dataset")["generated"].unique().map(tuple).items()) == {
        ("digits", (False,)),
        ("digits-dg", (True,)),
    }
    said = "tiny.one: 1 of 2 cells are of generated stand-in data (digits-dg)"
    assert said in page.read_text() and "skipped" not in page.read_text()
    assert mixed.planned(*paths) == {}
    assert mixed.planned() == {}  # what was made stays, wherever the data went
    next(path for path in mixed.records() if path != record).unlink()
    assert mixed.planned()["train"] == 1
