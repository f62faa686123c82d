"""The UCB study: its cells, and where the slides' numbers stand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from scipy.stats import binom

from cohort.plan import Plan, load
from cohort.results.paper import read_paper
from cohort.results.paper_match import match_paper
from cohort.results.tables.spec import Table
from tests.conftest import ROOT

PAPER = "resources/paper_values/ucb.csv"


@pytest.fixture(scope="module")
def plan() -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load({"studies": ["ucb"]})


def test_the_slides_cells_with_five_or_a_hundred_seeds_and_variants(plan: Plan):
    experiments = plan.study("ucb").experiments
    counts = {name: len(experiment.rows) for name, experiment in experiments.items()}
    assert counts == {
        "results": 10,
        "profiling": 25,
        "profiled": 5,
        "repeated": 200,
        "explorations": 20,
        "milder": 10,
    }
    assert len(plan.cells) == 25 + 5 + 200 + 15 + 10


def test_settings(plan: Plan):
    fixed = {"clients": 12, "J": "J1e", "lr": 0.01}
    chosen = {"name": "ucb", "epsilon": 0.1, "initial": 3}
    for cell in plan.cells.values():
        assert fixed.items() <= cell.plain_settings().items()
        if cell.plain_settings()["strategy"] == "ucb":
            assert chosen.items() <= cell.plain_settings()["selector"].items()
    profiled = [
        cell.plain_settings()
        for cell in plan.cells.values()
        if "profiled" in cell.plain_settings()["procedure"]
    ]
    counts = Counter((cell["batch"], cell["rounds"]) for cell in profiled)
    assert counts == {(batch, 3): 5 for batch in (8, 16, 32, 64, 128)} | {(16, 20): 5}


def test_two_clients_of_strong_skew_and_five_of_less(plan: Plan):
    """The slides leave both open; the likelier setting is that of all experiments but one."""
    for name, experiment in plan.study("ucb").experiments.items():
        found = {
            (settings["partition"], settings["cohort"])
            for settings in (plan.cells[row.digest].plain_settings() for row in experiment.rows)
        }
        assert found == {("dir-0.5", 5) if name == "milder" else ("dir-0.1", 2)}


def test_the_likelihood_of_the_slides_selections():
    """A client is in a random cohort of k with probability k / 12, so its rounds in twenty are
    binomial: 7, 2, 2, 2 and 2 are far likelier with cohorts of two than of five."""
    two, five = (binom.pmf([7, 2, 2, 2, 2], 20, cohort / 12).prod() for cohort in (2, 5))
    assert two == pytest.approx(4.0e-5, rel=0.01) and five == pytest.approx(2.5e-12, rel=0.02)


def test_claims_that_runs_can_decide(plan: Plan):
    """Those of accuracies have a hundred seeds, and the server's work is judged without what
    clients evaluate."""
    claims = plan.study("ucb").claims
    seeds = {
        name: {row.labels["seed"] for row in plan.study("ucb").experiments[spec["experiment"]].rows}
        for name, spec in claims.items()
    }
    assert {name: len(values) for name, values in seeds.items()} == (
        dict.fromkeys(claims, 100) | {"best_batch_size": 5}
    )
    assert claims["server_complexity"]["metric"] == "seconds_scoring"


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
            one.labels,
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
