"""PECO's study against the paper's text. tests/plan/cells has its cells."""

from __future__ import annotations

from collections import Counter

import pytest

from cohort.partition import parse_partition
from cohort.plan import Plan, Study
from cohort.results.paper import open_paper
from tests.conftest import ROOT
from tests.plan.conftest import digests
from tools.cells import plan_all

PAPER = "resources/paper_values/peco.csv"
OWN = {"reserves", "exponents", "factors", "windows", "optimizer", "centralized"}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_all("peco")


@pytest.fixture(scope="module")
def study(plan: Plan) -> Study:
    return plan.study("peco")


def test_the_paper_has_118_cells_of_which_those_of_the_cnn_have_five_seeds(
    plan: Plan, study: Study
):
    """108, and the choice by training loss: two of the CNN and two of the ResNet. Of the momentum
    and the weight decay of niid_bench there are 36, and 12 without them that no figure has."""
    cells = digests(study, *(set(study.experiments) - OWN))
    models = Counter(plan.cells[digest].plain_settings()["model"] for digest in cells)
    assert models == {"lenet5": 5 * 84, "resnet18": 28}


def test_every_printed_value_of_table_1_is_planned(plan: Plan, study: Study):
    """Defaults, printed in bold, are settings of the workloads; the others are on an axis."""
    cells = [
        plan.cells[digest].plain_settings()
        for digest in digests(study, *set(study.experiments) - OWN)
    ]
    workload = plan.cells[study.experiments["workloads"].rows[0].digest].plain_settings()
    overlap, selector = parse_partition(workload["partition"]), workload["selector"]
    schemes = [parse_partition(cell["partition"]) for cell in cells]
    ratios = [getattr(scheme, "ratios", ()) for scheme in schemes]
    bases = [getattr(scheme, "base", scheme) for scheme in schemes]
    ours = {
        "total_clients": {workload["clients"]},
        "dirichlet_alpha_default": {overlap.base.alpha},
        "dirichlet_alpha_other": {base.alpha for base in bases} - {overlap.base.alpha},
        "fraction_fit_default": {workload["cohort"] / workload["clients"]},
        "fraction_fit_other": {cell["cohort"] / cell["clients"] for cell in cells} - {0.2},
        "overlap_ratio_default": set(overlap.ratios),
        "overlap_ratio_other": {ratio for results in ratios for ratio in results} - {0.2, 0},
        "n_overlapping_default": {len(overlap.ratios)},
        "n_overlapping_other": set(map(len, ratios)) - {2},
        "rounds": {workload["rounds"]},
        "local_epochs": {int(workload["J"].strip("Je"))},
        "batch_size": {workload["batch"]},
        "lr": {workload["lr"]},
        "tau": {selector["tau"]},
        "gamma": {selector["gamma"]},
        "W": {selector["window"]},
    }
    printed: dict[str, set[float]] = {}
    for row in open_paper(ROOT / PAPER, "TableI").rows:
        if row["item"] == "TableI":
            printed.setdefault(row["metric"], set()).add(float(row["value"]))
    assert ours == printed


def test_all_four_accuracies_are_shown_everywhere_as_means_over_ten_rounds(study: Study):
    further = {"holdout_accuracy", "next_cohort_accuracy", "local_accuracy"}
    for name, spec in [*study.figures.items(), *study.tables.items()]:
        if spec["metric"] == "test_accuracy" and name not in ("tab2", "differences", "centralized"):
            assert further <= set(spec["also"]), name
        if name.startswith("fig"):
            key, value = ("at", "21-30") if spec["kind"] == "bars" else ("buckets", 10)
            assert spec[key] == value, name


def test_partitions_overlap_as_their_names_in_the_figures_say(study: Study):
    for row in study.experiments["numbers"].rows:
        ratios = getattr(parse_partition(row.labels["partition"]), "ratios", ())
        assert row.labels["series"].split()[0] == (str(len(ratios)) if ratios else "none")
    for row in study.experiments["ratios"].rows:
        (ratio,) = set(parse_partition(row.labels["partition"]).ratios)
        assert row.labels["series"] == f"ratio {ratio:g}"
