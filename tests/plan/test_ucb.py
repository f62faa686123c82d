"""The UCB study against the slides. tests/plan/cells has its cells."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from cohort.results.tables.spec import Table
from tests.conftest import ROOT
from tools.cells import plan_all


def test_the_likelihood_of_the_slides_selections():
    """A client is in a random cohort of k with probability k / 12, so its rounds in twenty are
    binomial: 7, 2, 2, 2 and 2 are far likelier with cohorts of two than of five."""
    two, five = (binom.pmf([7, 2, 2, 2, 2], 20, cohort / 12).prod() for cohort in (2, 5))
    assert two == pytest.approx(4.0e-5, rel=0.01) and five == pytest.approx(2.5e-12, rel=0.02)


def test_claims_that_runs_can_decide():
    """Those of accuracies have a hundred seeds, and the server's work is judged without what
    clients evaluate."""
    study = plan_all("ucb").study("ucb")
    for name, claim in study.claims.items():
        rows = study.experiments[claim["experiment"]].rows
        seeds = 5 if name == "best_batch_size" else 100
        assert len({row.labels["seed"] for row in rows}) == seeds, name
    assert study.claims["server_complexity"]["metric"] == "seconds_scoring"


def test_the_slides_numbers_stand_beside_accuracies_on_own_samples():
    study = plan_all("ucb").study("ucb")
    spec = study.tables["results"]
    experiment = study.experiments[spec["experiment"]]
    fields = {key: spec[key] for key in ("metric", "at", "also", "rows", "paper")}
    cells = [row.labels for row in experiment.rows]
    values = {
        (measure.metric, measure.at, match.labels["strategy"]): value.value
        for measure in Table(**fields).measures()
        for match in measure.matches(
            ROOT / "resources/paper_values/ucb.csv", cells, experiment.axes
        )
        for value in match.values
    }
    metric = "own_samples_accuracy"
    assert values == {
        (metric, 1, "ucb"): 0.8981,
        (metric, 1, "fedavg"): 0.7781,
        (metric, "10", "ucb"): 0.53,
        (metric, "10", "fedavg"): 0.7637,
        (metric, "20", "ucb"): 0.6105,
        (metric, "20", "fedavg"): 0.4938,
    }
