"""Stratify's study against the paper's text. tests/plan/cells has its cells."""

from __future__ import annotations

import pytest

from cohort.plan import Plan, Study
from cohort.results.paper import read_paper
from tests.conftest import ROOT
from tests.plan.conftest import digests
from tools.cells import plan_all

PAPER = "resources/paper_values/stratify.csv"
UNIFORM, WEIGHTED = "stratify-uniform", "stratify-weighted"
PARTS = {  # the paper's cells of each experiment, by hand from the columns and panels
    "single": 130,
    "batch": 104,
    "clients_single": 90,  # Figure 2 without its points at ten clients, which Table I has
    "clients_batch": 72,
    "fedtan": 10,
    "selection": 24,
    "group_norm": 4,
}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_all("stratify")


@pytest.fixture(scope="module")
def study(plan: Plan) -> Study:
    return plan.study("stratify")


def test_the_paper_has_434_cells(plan: Plan, study: Study):
    """A cell with two ways to choose clients is one; weighted choice in Figures 2 and 3 is ours."""
    assert sum(PARTS.values()) == 434
    cells = {digest: plan.cells[digest].plain_settings() for digest in digests(study, *PARTS)}
    first = [digest for digest, cell in cells.items() if cell["seed"] == 0]
    both = 16 + 12  # ways to choose in the tables, and in the figures with more than ten clients
    shared = 2  # of Table V, whose first and seventh rows of CIFAR-10 are cells of Tables I and II
    assert len(first) == 434 + both - shared


def rounds_by_strategy(plan: Plan, study: Study, name: str) -> dict[tuple[str, bool], set[int]]:
    lengths: dict[tuple[str, bool], set[int]] = {}
    for row in study.experiments[name].rows:
        cell = plan.cells[row.digest].plain_settings()
        key = (cell["dataset"], cell["strategy"] in (UNIFORM, WEIGHTED))
        lengths.setdefault(key, set()).add(cell["rounds"])
    return lengths


def test_runs_are_as_long_as_the_largest_epoch_that_is_printed(plan: Plan, study: Study):
    """Of each method's IID case; a baseline's is that of any baseline and partition."""
    for name, item in (("single", "TableI"), ("batch", "TableII")):
        printed = read_paper(ROOT / PAPER, item, "best_round")
        for (dataset, is_stratify), rounds in rounds_by_strategy(plan, study, name).items():
            epochs = [
                value.value
                for value in printed
                if value.labels["dataset"] == dataset
                and (value.labels["strategy"] in (UNIFORM, WEIGHTED)) == is_stratify
                and (value.labels["partition"] == "iid" or not is_stratify)
            ]
            assert rounds == {max(epochs)}, (name, dataset, is_stratify)
