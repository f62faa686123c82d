"""The UCB study: its cells, and where the slides' numbers stand."""

from __future__ import annotations

from typing import Any

import pytest

from cohort.metrics.paper import read_paper
from cohort.metrics.paper_match import match_paper
from cohort.plan import Plan, load
from cohort.tables.spec import Table
from tests.conftest import ROOT

PAPER = "resources/paper_values/ucb.csv"


@pytest.fixture(scope="module")
def plan() -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load({"studies": ["ucb"]})


def test_the_slides_have_seven_cells_and_a_longer_profile(plan: Plan):
    experiments = plan.study("ucb").experiments
    counts = {name: len(experiment.rows) for name, experiment in experiments.items()}
    assert counts == {
        "results": 2,
        "profiling": 5,
        "profiled": 1,
        "repeated": 10,
        "explorations": 12,
    }
    assert len(plan.cells) == 2 + 5 + 1 + 8 + 9


def test_settings(plan: Plan):
    fixed = {"clients": 12, "cohort": 5, "J": "J1e", "lr": 0.01, "partition": "dir-0.5"}
    chosen = {"name": "ucb", "epsilon": 0.1, "initial": 3}
    for cell in plan.cells.values():
        assert fixed.items() <= cell.settings.items()
        if cell.settings["strategy"] == "ucb":
            assert chosen.items() <= cell.settings["selector"].items()
    profiled = [
        cell.settings for cell in plan.cells.values() if "profiled" in cell.settings["procedure"]
    ]
    sizes = sorted((cell["batch"], cell["rounds"]) for cell in profiled)
    assert sizes == [(8, 3), (16, 3), (16, 20), (32, 3), (64, 3), (128, 3)]


def test_the_slides_numbers_stand_beside_accuracies_on_own_samples(plan: Plan):
    study = plan.study("ucb")
    spec = study.tables["results"]
    experiment = study.experiments[spec["experiment"]]
    fields = {key: spec[key] for key in ("metric", "at", "also", "rows", "paper")}
    found = {}
    for one in Table(**fields).measures():
        cells: list[dict[str, Any]] = [row.labels for row in experiment.rows]
        for match in match_paper(
            ROOT / PAPER,
            spec["paper"],
            one.metric,
            cells,
            one.facets(),
            experiment.axes,
            at=str(one.at),
        ):
            for value in match.values:
                found[one.metric, one.at, match.labels["strategy"]] = value.value
    metric = "own_samples_accuracy"
    assert found == {
        (metric, 1, "ucb"): 0.8981,
        (metric, 1, "fedavg"): 0.7781,
        (metric, "10", "ucb"): 0.53,
        (metric, "10", "fedavg"): 0.7637,
        (metric, "20", "ucb"): 0.6105,
        (metric, "20", "fedavg"): 0.4938,
    }
    assert len(read_paper(ROOT / PAPER, spec["paper"], metric)) == len(found)
