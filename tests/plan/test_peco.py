"""PECO's study: how many cells its figures take, what their settings are, and where the paper's numbers stand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from cohort.partition import parse_name
from cohort.plan import Plan, Study, load
from cohort.results.paper import read_paper, read_rows
from cohort.results.paper_match import match_paper
from cohort.results.tables.spec import Table
from tests.conftest import ROOT

PAPER = "resources/paper_values/peco.csv"
OWN = {"reserves", "exponents", "factors", "windows", "optimizer", "centralized"}
CELLS = {  # of each experiment, and how many of them no earlier one has
    "workloads": (72, 72),
    "losses": (36, 24),
    "most_skewed": (30, 30),
    "alphas": (90, 30),
    "most_overlap": (6, 6),
    "ratios": (120, 90),
    "smallest_fraction": (6, 6),
    "fractions": (90, 60),
    "one_overlapping": (30, 30),
    "numbers": (130, 70),
    "unequal_ratios": (30, 30),
    "reserves": (25, 20),
    "exponents": (25, 20),
    "factors": (25, 20),
    "windows": (20, 15),
    "optimizer": (360, 240),
    "centralized": (20, 20),
    "unequal_together": (30, 0),
    "resnet_fractions": (4, 0),
    "preferences": (30, 0),
    "chosen": (40, 0),
}


def planned(scale: str) -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load({"studies": ["peco"], "scale": scale})


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planned("full")


@pytest.fixture(scope="module")
def study(plan: Plan) -> Study:
    return plan.study("peco")


def digests(study: Study, *experiments: str) -> set[str]:
    return {row.digest for name in experiments for row in study.experiments[name].rows}


def test_each_experiment_has_its_cells(study: Study):
    seen: set[str] = set()
    found = {}
    for name in study.experiments:
        cells = digests(study, name)
        found[name] = (len(study.experiments[name].rows), len(cells - seen))
        seen |= cells
    assert found == CELLS


def test_the_paper_has_118_cells_of_which_those_of_the_cnn_have_five_seeds(
    plan: Plan, study: Study
):
    """108, and the choice by training loss: two of the CNN and two of the ResNet. Of the momentum
    and the weight decay of niid_bench there are 36, and 12 without them that no figure has."""
    cells = digests(study, *(set(study.experiments) - OWN))
    models = Counter(plan.cells[digest].plain_settings()["model"] for digest in cells)
    assert models == {"lenet5": 5 * 84, "resnet18": 28}
    assert len(plan.cells) == 5 * 84 + 28 + 5 * (15 + 48 + 4)
    seeds = Counter(
        (cell.plain_settings()["model"], cell.plain_settings()["seed"])
        for cell in plan.cells.values()
    )
    assert seeds == {("resnet18", 0): 28} | {("lenet5", seed): 151 for seed in range(5)}


def test_settings_are_those_of_table_1(plan: Plan):
    fixed = {"rounds": 100, "batch": 32, "lr": 0.01}
    federated = {"clients": 20, "J": "J5e", "holdout": 0.1}
    for cell in plan.cells.values():
        assert fixed.items() <= cell.plain_settings().items()
        assert (
            cell.plain_settings()["strategy"] == "centralized"
            or federated.items() <= cell.plain_settings().items()
        )
        augmented = cell.plain_settings()["dataset"] == "cifar10-unit"
        assert cell.plain_settings()["augmentation"] == (
            "reflect-crop-flip" if augmented else "none"
        )
    default = next(
        cell for cell in plan.cells.values() if cell.plain_settings()["strategy"] == "peco"
    )
    expected = {"name": "peco", "tau": 5, "gamma": 0.5, "window": 10, "unseen": "mean"}
    assert default.plain_settings()["selector"] == expected
    assert (default.plain_settings()["reserve"], default.plain_settings()["momentum"]) == (500, 0)


def test_every_printed_value_of_table_1_is_planned(plan: Plan, study: Study):
    """Defaults, printed in bold, are settings of the workloads; the others are on an axis."""
    cells = [
        plan.cells[digest].plain_settings()
        for digest in digests(study, *set(study.experiments) - OWN)
    ]
    workload = plan.cells[study.experiments["workloads"].rows[0].digest].plain_settings()
    overlap, selector = parse_name(workload["partition"]), workload["selector"]
    schemes = [parse_name(cell["partition"]) for cell in cells]
    ratios = [getattr(scheme, "ratios", ()) for scheme in schemes]
    bases = [getattr(scheme, "base", scheme) for scheme in schemes]
    ours = {
        "total_clients": {workload["clients"]},
        "dirichlet_alpha_default": {overlap.base.alpha},
        "dirichlet_alpha_other": {base.alpha for base in bases} - {overlap.base.alpha},
        "fraction_fit_default": {workload["cohort"] / workload["clients"]},
        "fraction_fit_other": {cell["cohort"] / cell["clients"] for cell in cells} - {0.2},
        "overlap_ratio_default": set(overlap.ratios),
        "overlap_ratio_other": {ratio for found in ratios for ratio in found} - {0.2, 0},
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
    for row in read_rows(ROOT / PAPER, "TableI").values():
        if row["item"] == "TableI":
            printed.setdefault(row["metric"], set()).add(float(row["value"]))
    assert ours == printed


def test_all_four_accuracies_are_measured_in_every_round_and_shown_everywhere(
    plan: Plan, study: Study
):
    plans = ("evaluate_every", "evaluate_holdout", "evaluate_next", "evaluate_local")
    federated = [
        one for one in plan.cells.values() if one.plain_settings()["strategy"] != "centralized"
    ]
    assert all(cell.plain_settings()[key] == 1 for cell in federated for key in plans)
    further = {"holdout_accuracy", "next_cohort_accuracy", "local_accuracy"}
    for name, spec in [*study.figures.items(), *study.tables.items()]:
        if spec["metric"] == "test_accuracy" and name not in ("tab2", "centralized"):
            assert further <= set(spec["also"]), name


def test_every_printed_number_of_table_2_stands_in_one_place_of_a_table_like_it(study: Study):
    spec = study.tables["tab2"]
    assert spec["joined"] and [*spec["rows"], spec["columns"]] == ["strategy", "model", "dataset"]
    experiment = study.experiments[spec["experiment"]]
    fields = {key: spec[key] for key in ("metric", "at", "also", "rows", "columns", "paper")}
    used = []
    for one in Table(**fields).measures():
        cells: list[dict[str, Any]] = [row.labels for row in experiment.rows]
        matches = match_paper(
            ROOT / PAPER,
            "TableII",
            one.metric,
            cells,
            one.labels,
            experiment.axes,
            at=str(one.at),
        )
        used += [value for match in matches for value in match.values]
    printed = read_paper(ROOT / PAPER, "TableII", "test_accuracy")
    assert len(printed) == 24
    assert sorted(map(repr, used)) == sorted(map(repr, printed))


def test_means_over_ten_rounds(study: Study):
    for name, spec in study.figures.items():
        if name.startswith("fig"):
            key, value = ("at", "21-30") if spec["kind"] == "bars" else ("buckets", 10)
            assert spec[key] == value, name


def test_reduced_keeps_the_ends_of_the_sweeps():
    small = planned("reduced")
    rows = {name: one.rows for name, one in small.study("peco").experiments.items()}
    assert {row.labels["series"] for row in rows["alphas"]} >= {"alpha = 0.05", "alpha = 0.15"}
    assert {row.labels["series"] for row in rows["ratios"]} == {"ratio 0", "ratio 0.2", "ratio 0.3"}
    assert {row.labels["cohort"] for row in rows["fractions"]} == {2, 4, 6}
    ends = {row.labels["series"] for row in rows["numbers"]}
    assert ends == {"none", "1 overlapping", "2 overlapping", "4 overlapping"}


@pytest.mark.parametrize("scale", ["reduced", "smoke"])
def test_resnet_has_the_size_of_smoke(scale: str):
    small = planned(scale)
    cells = [
        cell.plain_settings()
        for cell in small.cells.values()
        if cell.plain_settings()["model"] == "resnet18"
    ]
    assert {(one["rounds"], one["samples"]) for one in cells} == {(2, 0.01)}
    shares = {
        row.share
        for row in small.study("peco").experiments["workloads"].rows
        if row.labels["model"] == "resnet18"
    }
    assert shares == {0.02}


def test_partitions_overlap_as_their_names_in_the_figures_say(study: Study):
    for row in study.experiments["numbers"].rows:
        ratios = getattr(parse_name(row.labels["partition"]), "ratios", ())
        assert row.labels["series"].split()[0] == (str(len(ratios)) if ratios else "none")
    for row in study.experiments["ratios"].rows:
        (ratio,) = set(parse_name(row.labels["partition"]).ratios)
        assert row.labels["series"] == f"ratio {ratio:g}"
