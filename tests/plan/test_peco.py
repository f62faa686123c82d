"""PECO's study: how many cells its figures take, what their settings are, and where the paper's numbers stand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from cohort.metrics.paper import read_paper
from cohort.metrics.paper_match import match_paper
from cohort.partition import parse_name
from cohort.plan import Plan, Study, load
from cohort.tables.spec import Table
from tests.conftest import ROOT

PAPER = "resources/paper_values/peco.csv"
OWN = {"reserves", "exponents", "factors", "windows", "optimizer"}
CELLS = {  # of each experiment, and how many of them no earlier one has
    "workloads": (24, 24),
    "losses": (8, 4),
    "most_skewed": (6, 6),
    "alphas": (18, 6),
    "most_overlap": (6, 6),
    "ratios": (24, 18),
    "smallest_fraction": (6, 6),
    "fractions": (18, 12),
    "one_overlapping": (6, 6),
    "numbers": (26, 14),
    "unequal_ratios": (6, 6),
    "reserves": (5, 4),
    "exponents": (5, 4),
    "factors": (5, 4),
    "windows": (4, 3),
    "optimizer": (2, 2),
    "preferences": (6, 0),
    "chosen": (7, 0),
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


def test_the_paper_has_108_cells(plan: Plan, study: Study):
    cells = digests(study, *(set(study.experiments) - OWN))
    models = Counter(plan.cells[digest].settings["model"] for digest in cells)
    assert models == {"lenet5": 82, "resnet18": 26}
    assert len(plan.cells) == 108 + 17


def test_settings_are_those_of_table_1(plan: Plan):
    fixed = {"clients": 20, "rounds": 100, "J": "J5e", "batch": 32, "lr": 0.01, "holdout": 0.1}
    for cell in plan.cells.values():
        assert fixed.items() <= cell.settings.items()
        augmented = cell.settings["dataset"] == "cifar10-unit"
        assert cell.settings["augmentation"] == ("reflect-crop-flip" if augmented else "none")
        if cell.settings["strategy"] == "peco":
            assert cell.settings["selector"]["tau"] > 0
    default = next(cell for cell in plan.cells.values() if cell.settings["strategy"] == "peco")
    expected = {"name": "peco", "tau": 5, "gamma": 0.5, "window": 10, "unseen": "mean"}
    assert default.settings["selector"] == expected
    assert (default.settings["reserve"], default.settings["momentum"]) == (500, 0)


def test_all_three_accuracies_are_measured_in_every_round_and_shown_everywhere(
    plan: Plan, study: Study
):
    plans = ("evaluate_every", "evaluate_holdout", "evaluate_local")
    assert all(cell.settings[key] == 1 for cell in plan.cells.values() for key in plans)
    for spec in [*study.figures.values(), *study.tables.values()]:
        if spec["metric"] == "test_accuracy":
            assert {"holdout_accuracy", "local_accuracy"} <= set(spec["also"]), spec["title"]


def test_every_printed_number_of_table_2_stands_in_one_place(study: Study):
    spec = study.tables["tab2"]
    experiment = study.experiments[spec["experiment"]]
    fields = {key: spec[key] for key in ("metric", "at", "also", "rows", "paper")}
    used = []
    for one in Table(**fields).measures():
        cells: list[dict[str, Any]] = [row.labels for row in experiment.rows]
        matches = match_paper(
            ROOT / PAPER,
            "TableII",
            one.metric,
            cells,
            one.facets(),
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
    cells = [cell.settings for cell in small.cells.values() if cell.settings["model"] == "resnet18"]
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
