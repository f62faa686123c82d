"""Stratify's study: how many cells its tables and figures take, what their settings are, and where the paper's numbers stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from cohort.plan import Plan, Study, load
from cohort.results.paper import read_paper
from cohort.results.paper_match import match_paper
from cohort.results.tables.spec import Table
from tests.conftest import ROOT

PAPER = "resources/paper_values/stratify.csv"
PACS, DIGITS_DG = FEATURE_SKEW = ("pacs", "digits-dg")
OURS = {"simple", "fedtan_both", "fedtan_as_published", "chunks", "handing_on", "times", "masked"}
OURS |= {"constant_rate", "fedtan_constant_rate"}

# By hand from the columns of the paper's Tables I and II, the panels of Figures 2 and 3, and its texts.
SEVERITIES = {
    "mnist": ["classes-1", "classes-3", "classes-5"],
    "cifar10": ["classes-1", "classes-3", "classes-5"],
    "cifar100": ["covering-10", "covering-30", "covering-50"],
    "tiny-imagenet": ["covering-20", "covering-60", "covering-100"],
    "covtype": ["classes-1"],
    PACS: ["domains-1", "domains-2"],
    DIGITS_DG: ["domains-1", "domains-2"],
}
PANELS = [
    ("cifar10", "classes-3"),
    ("cifar100", "covering-50"),
    (PACS, "domains-1"),
    ("cifar10", "dir-0.5"),
    ("cifar100", "dir-0.5"),
    (PACS, "dirdomains-0.5"),
]
BASELINES = ["fedavg", "fedprox", "scaffold"]
UNIFORM, WEIGHTED = "stratify-uniform", "stratify-weighted"
Cells = Counter[tuple[Any, ...]]


def stratify_of(dataset: str) -> list[str]:
    """Feature skew is run with both choices of clients, of which the paper reports the better."""
    return [UNIFORM, WEIGHTED] if dataset in FEATURE_SKEW else [UNIFORM]


def table(datasets: list[str], methods: list[str]) -> Cells:
    """The cells of Table I or II."""
    cells: Cells = Counter()
    for dataset in datasets:
        dirichlet = "dirdomains-0.5" if dataset in FEATURE_SKEW else "dir-0.5"
        for partition in [*SEVERITIES[dataset], dirichlet, "iid"]:
            cells.update((dataset, partition, one, 10) for one in methods + stratify_of(dataset))
    return cells


def growing(methods: list[str]) -> Cells:
    """The cells of Figure 2 or 3, with the ten clients of the tables."""
    cells: Cells = Counter()
    for dataset, partition in PANELS:
        for clients in (10, 20, 50, 100):
            strategies = methods + stratify_of(dataset)
            cells.update((dataset, partition, one, clients) for one in strategies)
    return cells


EXPECTED = {
    "single": table([name for name in SEVERITIES if name != "tiny-imagenet"], [*BASELINES, "sfl"]),
    "batch": table([name for name in SEVERITIES if name != "mnist"], BASELINES),
    "clients_single": growing([*BASELINES, "sfl"]),
    "clients_batch": growing(BASELINES),
    "fedtan": Counter(
        ("cifar10", partition, strategy, 10)
        for partition in ["classes-1", "classes-3", "classes-5", "dir-0.5", "iid"]
        for strategy in ["fedtan", UNIFORM]
    ),
    "selection": Counter(
        {
            (dataset, partition, strategy, 10): 4  # chunks of 5, 50 and 150, and batches
            for dataset, partition in (
                ("cifar10", "dir-0.5"),
                (PACS, "onedomain-3"),
                (DIGITS_DG, "onedomain-3"),
            )
            for strategy in (UNIFORM, WEIGHTED)
        }
    ),
    "group_norm": Counter(
        {(dataset, "dir-0.5", UNIFORM, 10): 2 for dataset in ("cifar10", "cifar100")}
    ),
}


def planned(scale: str) -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        paths = {name: str(ROOT) for name in FEATURE_SKEW}
        return load({"studies": ["stratify"], "scale": scale, "data_paths": paths})


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planned("full")


@pytest.fixture(scope="module")
def study(plan: Plan) -> Study:
    return plan.study("stratify")


def digests(study: Study, *experiments: str) -> set[str]:
    return {row.digest for name in experiments for row in study.experiments[name].rows}


def first_seed(plan: Plan, found: set[str]) -> set[str]:
    return {digest for digest in found if plan.cells[digest].plain_settings()["seed"] == 0}


@pytest.mark.parametrize("name", EXPECTED)
def test_cells_of_the_paper(name: str, plan: Plan, study: Study):
    keys = ("dataset", "partition", "strategy", "clients")
    found = [plan.cells[row.digest].plain_settings() for row in study.experiments[name].rows]
    first = [cell for cell in found if cell["seed"] == 0]
    assert Counter(tuple(cell[key] for key in keys) for cell in first) == EXPECTED[name]
    assert len(digests(study, name)) == len(found)
    costly = [cell["model"].startswith("resnet") for cell in first]
    assert len(found) == sum(1 if resnet else 5 for resnet in costly)


def test_resnets_have_one_seed_and_all_others_five(plan: Plan):
    of: dict[str, Counter[int]] = {}
    for cell in plan.cells.values():
        of.setdefault(cell.plain_settings()["model"], Counter())[cell.plain_settings()["seed"]] += 1
    for model, seeds in of.items():
        assert sorted(seeds) == ([0] if model.startswith("resnet") else [0, 1, 2, 3, 4]), model
        assert len(set(seeds.values())) == 1, model


def test_the_paper_has_434_cells(plan: Plan, study: Study):
    """A cell with two ways to choose clients is one. Weighted choice in Figures 2 and 3, and their
    points at ten clients, which Tables I and II have, are not among them."""
    tables = [
        {(*key[:2], "stratify" if key[2] in stratify_of(key[0]) else key[2]) for key in one}
        for one in (EXPECTED["single"], EXPECTED["batch"])
    ]
    figures = [
        {key for key in EXPECTED[name] if key[3] > 10 and key[2] != WEIGHTED}
        for name in ("clients_single", "clients_batch")
    ]
    rest = [EXPECTED[name].total() for name in ("fedtan", "selection", "group_norm")]
    counts = [*map(len, tables), *map(len, figures), *rest]
    assert counts == [130, 104, 90, 72, 10, 24, 4] and sum(counts) == 434
    whole = first_seed(plan, digests(study, *EXPECTED))
    both = 16 + 12  # ways to choose in the tables, and in the figures with more than ten clients
    shared = 2  # of Table V, whose first and seventh rows of CIFAR-10 are cells of Tables I and II
    assert len(whole) == 434 + both - shared
    assert set(study.experiments) == OURS | set(EXPECTED)


def test_what_the_paper_does_not_count_shares_its_cells(plan: Plan, study: Study):
    whole = first_seed(plan, digests(study, *EXPECTED))
    new = {name: len(first_seed(plan, digests(study, name)) - whole) for name in OURS}
    assert new == {
        "times": 4,
        "masked": 9,
        "simple": 0,
        "handing_on": 0,
        "chunks": 4,
        "fedtan_both": 5,
        "fedtan_as_published": 2,
        "constant_rate": 15,  # Stratify's; those of the baselines are cells of Table II
        "fedtan_constant_rate": 5,
    }
    assert len(first_seed(plan, set(plan.cells))) == len(whole) + sum(new.values())


@pytest.mark.parametrize(
    ("name", "original"), [("constant_rate", "batch"), ("fedtan_constant_rate", "fedtan")]
)
def test_stratify_at_the_constant_rate_differs_in_its_schedule_only(
    name: str, original: str, plan: Plan, study: Study
):
    def settings(experiment: str) -> list[dict[str, Any]]:
        cells = [
            plan.cells[row.digest].plain_settings() for row in study.experiments[experiment].rows
        ]
        return [cell for cell in cells if cell["strategy"] == UNIFORM]

    mine = settings(name)
    assert {cell["schedule"] for cell in mine} == {"constant"}
    by_cycle = [cell for cell in settings(original) if cell["schedule"] == "onecycle"]
    assert [cell | {"schedule": "onecycle"} for cell in mine] == by_cycle


def rounds_by_strategy(plan: Plan, study: Study, name: str) -> dict[tuple[str, bool], set[int]]:
    found: dict[tuple[str, bool], set[int]] = {}
    for row in study.experiments[name].rows:
        cell = plan.cells[row.digest].plain_settings()
        key = (cell["dataset"], cell["strategy"] in (UNIFORM, WEIGHTED))
        found.setdefault(key, set()).add(cell["rounds"])
    return found


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


def pictures_of(cell: Mapping[str, Any]) -> bool:
    """Whether a cell's images are cropped and flipped, which they are for every network."""
    return cell["dataset"] in ("cifar10", "cifar100", "tiny-imagenet")


def test_settings(plan: Plan, study: Study):
    for name, batch in (
        ("single", 1),
        ("clients_single", 1),
        ("batch", 128),
        ("clients_batch", 128),
    ):
        for row in study.experiments[name].rows:
            cell = plan.cells[row.digest].plain_settings()
            expected = {"batch": batch, "J": "J1e", "cohort": cell["clients"], "evaluate_every": 1}
            assert expected.items() <= cell.items()
            one_cycle = batch == 128 and pictures_of(cell) and cell["strategy"] == UNIFORM
            assert cell["lr"] == (0.001 if batch == 1 else 0.01)
            assert cell["schedule"] == ("onecycle" if one_cycle else "constant")
            assert cell["momentum"] == (0.9 if batch == 128 else 0)
            assert cell["augmentation"] == ("crop-flip" if pictures_of(cell) else "none")


def test_models_are_those_of_the_paper(plan: Plan, study: Study):
    simple = dict.fromkeys(SEVERITIES, "stratify-cnn") | {"covtype": "stratify-mlp"}
    simple |= {"mnist": "lenet5"}  # 44,426 parameters
    residual = {"cifar10": "resnet9", "cifar100": "resnet9", "tiny-imagenet": "resnet18"}
    for name, models in (("single", simple), ("batch", simple | residual)):
        for row in study.experiments[name].rows:
            cell = plan.cells[row.digest].plain_settings()
            assert cell["model"] == models[cell["dataset"]]


def used(study: Study, name: str) -> list[str]:
    """The paper's values that stand in a table, each as often as it does."""
    spec = study.tables[name]
    experiment = study.experiments[spec["experiment"]]
    known = ("metric", "at", "also", "rows", "columns", "paper")
    fields = {key: spec[key] for key in known if key in spec}
    cells: list[dict[str, Any]] = [row.labels for row in experiment.rows]
    found = []
    for one in Table(**fields).measures():
        for match in match_paper(
            ROOT / PAPER,
            spec["paper"],
            one.metric,
            cells,
            one.labels,
            experiment.axes,
            at=str(one.at),
        ):
            found += [repr(value) for value in match.values]
    return sorted(found)


@pytest.mark.parametrize(
    ("name", "item", "metrics", "count"),
    [
        ("tab1", "TableI", ["test_accuracy", "best_round"], 2 * 130),
        ("tab2", "TableII", ["test_accuracy", "best_round"], 2 * 104),
        ("tab3", "TableIII", ["seconds_training", "seconds_transfers"], 2 * 14),
        ("tab4", "TableIV", ["seconds_unique_list", "seconds_mapping", "seconds_counts"], 27),
        ("tab5", "TableV", ["test_accuracy", "best_round"], 2 * 24),
        ("tab6", "TableVI", ["test_accuracy", "best_round"], 2 * 4),
        ("transfers", "text-V.F", ["tasks_saved"], 1),
    ],
)
def test_every_printed_number_stands_in_one_place(
    study: Study, name: str, item: str, metrics: list[str], count: int
):
    printed = [repr(one) for metric in metrics for one in read_paper(ROOT / PAPER, item, metric)]
    assert len(printed) == count
    rest = Counter(used(study, name)) - Counter(printed)
    assert not Counter(printed) - Counter(used(study, name))
    assert all("text-V.E" in value for value in rest)


@pytest.mark.parametrize(("scale", "share"), [("smoke", 0.004), ("reduced", 0.01)])
def test_cheaper_scales_leave_out_what_is_dear(scale: str, share: float):
    """Ten of each class of CIFAR-100, for ten clients that may all hold it, are a fiftieth."""
    small = [cell.plain_settings() for cell in planned(scale).cells.values()]
    assert "tiny-imagenet" not in {cell["dataset"] for cell in small}
    for cell in small:
        if cell["model"] == "resnet9":
            expected = 0.02 if cell["partition"] == "covering-50" else share
            assert (cell["rounds"], cell["samples"]) == (1, expected)


def test_reduced_keeps_both_ends_of_the_numbers_of_clients():
    rows = planned("reduced").study("stratify").experiments["clients_single"].rows
    cifar10 = {row.labels["clients"] for row in rows if row.labels["dataset"] == "cifar10"}
    assert cifar10 == {10, 100}
