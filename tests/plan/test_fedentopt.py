"""FedEntOpt's study: how many cells each part of the paper takes, what their settings are, and where the paper's numbers stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cohort.partition import Pool, parse_name
from cohort.pipeline.specs import spec_of
from cohort.pipeline.targets import targets
from cohort.plan import Plan, Study, load
from cohort.results.files import write_metrics
from cohort.results.paper import PaperValue, read_paper
from cohort.results.paper_match import match_paper
from cohort.results.tables.spec import Table
from cohort.results.tables.tabulate import tabulate

ROOT = Path(__file__).resolve().parents[2]
PAPER = "resources/paper_values/fedentopt.csv"
SHOWN_AGAIN = ("availability_and_full", "rates_and_ten", "convergence", "communication")
TAB2_ENDS = (
    "dir-0.1 fedprox+fedentopt cifar10 lenet5",
    "classes-2 fedlc+fedentopt cifar100-coarse vgg11",
)
WITH_BUFFER = {
    "fedentopt",
    "fedentopt-dp",
    *(f"{name}+fedentopt" for name in ("fedprox", "fednova", "scaffold", "fedrs", "fedlc")),
}


@pytest.fixture(scope="module")
def brains(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder that stands for the brain images, whose cells are left out where they are not given."""
    return str(tmp_path_factory.mktemp("brains"))


def planned(brains: str, scale: str = "full") -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load(
            {
                "studies": ["fedentopt"],
                "scale": scale,
                "data_paths": {"brain-tumor-mri-224": brains},
            }
        )


@pytest.fixture(scope="module")
def plan(brains: str) -> Plan:
    return planned(brains)


@pytest.fixture(scope="module")
def study(plan: Plan) -> Study:
    return plan.study("fedentopt")


def digests(study: Study, *names: str) -> set[str]:
    return {row.digest for name in names for row in study.experiments[name].rows}


def settings(plan: Plan, study: Study, name: str) -> list[dict[str, Any]]:
    return [plan.cells[row.digest].plain_settings() for row in study.experiments[name].rows]


def values(cells: Iterable[dict[str, Any]], *keys: str) -> set[tuple[Any, ...]]:
    return {tuple(cell[key] for key in keys) for cell in cells}


def test_the_cells_of_each_part_of_the_paper(study: Study):
    """Five seeds of each cell with LeNet-5 and three of each with another network. Table VI has two cells of Table I, Figure 1 all but
    one, and Table II is shown with sixty of them."""
    before: set[str] = set()
    new = {}
    for name in study.experiments:
        new[name] = len(digests(study, name) - before)
        before |= digests(study, name)
    parts = {  # with LeNet-5, with others
        "baselines": (60, 60),
        "combined": (30, 30),
        "availability": (24, 24),
        "medical": (0, 48),
        "buffers": (16 - 2, 0),
        "entropy": (1, 0),
        "rates": (162, 162),
    }
    assert {name: new[name] for name in parts} == {
        name: 5 * small + 3 * large for name, (small, large) in parts.items()
    }
    assert [len(digests(study, name)) for name in ("combined", "buffers", "entropy")] == [
        (5 + 3) * 60,
        5 * 16,
        5 * 3,
    ]
    assert {new[name] for name in SHOWN_AGAIN} == {0}


def test_what_is_shared(study: Study):
    table_one = digests(study, "baselines")
    assert len(digests(study, "combined") & table_one) == (5 + 3) * 30
    assert len(digests(study, "entropy") & table_one) == 5 * 2
    half = {
        row.digest
        for row in study.experiments["buffers"].rows
        if (row.labels["selector.buffer"], row.labels["partition"]) == (0.5, "dir-0.1")
    }
    assert half == digests(study, "buffers") & table_one and len(half) == 5 * 2
    honest = {
        row.digest for row in study.experiments["limits"].rows if row.labels["series"] == "honest"
    }
    assert (
        len(honest & table_one) == 5 * 2
        and digests(study, "limits") & table_one == honest & table_one
    )
    assert digests(study, "convergence") < table_one
    ten = {
        row.digest for row in study.experiments["rates_and_ten"].rows if row.labels["cohort"] == 10
    }
    assert ten < table_one and len(ten) == (5 + 3) * 27


def test_no_two_cells_differ_by_accident(plan: Plan):
    """What the paper tells cells apart by gives one digest each."""
    keys = (
        "dataset",
        "model",
        "partition",
        "strategy",
        "seed",
        "cohort",
        "participation",
        "selector",
        "server",
    )
    apart = Counter(
        tuple(str(cell.plain_settings()[key]) for key in keys) for cell in plan.cells.values()
    )
    assert len(apart) == len(plan.cells) and set(apart.values()) == {1}


def test_settings_of_the_small_images(plan: Plan, study: Study):
    cells = [
        cell
        for name in ("baselines", "combined", "availability", "buffers", "entropy", "rates")
        for cell in settings(plan, study, name)
    ]
    fixed = ("J", "rounds", "batch", "lr", "lr_decay", "momentum", "augmentation")
    assert values(cells, *fixed) == {("J5e", 500, 64, 0.01, 0.98, 0.9, "jitter-flip-gray")}
    assert values(cells, "model", "weight_decay", "evaluate_every") == {
        ("lenet5", 0.0005, "5 until 490, 1"),
        ("vgg11", 0.001, "10 until 490, 1"),
    }
    assert values(cells, "dataset", "clients") == {
        ("cifar10", 100),
        ("cinic10", 200),
        ("cifar100-coarse", 100),
    }
    assert values(settings(plan, study, "baselines"), "dataset", "cohort") == {
        ("cifar10", 10),
        ("cinic10", 20),
        ("cifar100-coarse", 10),
    }
    assert values(settings(plan, study, "rates"), "cohort") == {
        (cohort,) for cohort in range(4, 10)
    }
    concat = [cell for cell in cells if cell["strategy"] == "fedconcat"]
    assert values(concat, "dataset", "procedure") == {
        ("cifar10", "concat-5"),
        ("cinic10", "concat-5"),
        ("cifar100-coarse", "concat-5-balanced1"),
    }
    assert {cell["procedure"] for cell in cells if cell["strategy"] != "fedconcat"} == {"federated"}


def test_settings_of_the_medical_images(plan: Plan, study: Study):
    cells = settings(plan, study, "medical")
    assert values(cells, "rounds", "lr", "weight_decay", "evaluate_every") == {
        (200, 0.001, 0.0005, "10 until 190, 1")
    }
    assert values(cells, "dataset", "partition", "clients", "cohort") == {
        ("pathmnist-224", "dir-0.1", 100, 5),
        ("tissuemnist-224", "dir-0.1", 100, 5),
        ("brain-tumor-mri-224", "dir-0.1-minimum1", 40, 2),
    }


def test_parameters_of_the_strategies(plan: Plan):
    cells = [cell.plain_settings() for cell in plan.cells.values()]
    proximal = [cell for cell in cells if cell["objective"]["name"] == "fedprox"]
    assert {cell["objective"]["mu"] for cell in proximal} == {0.0001}
    assert {cell["strategy"] for cell in proximal} == {"fedprox", "fedprox+fedentopt"}
    swept = {
        name
        for name, experiment in plan.study("fedentopt").experiments.items()
        if "selector.buffer" in experiment.axes
    }
    assert swept == {"buffers", "limits"}
    apart = digests(plan.study("fedentopt"), *swept)
    usual = [
        cell.plain_settings()
        for digest, cell in plan.cells.items()
        if digest not in apart and cell.plain_settings()["strategy"] in WITH_BUFFER
    ]
    chosen = {(cell["partition"], cell["selector"]["buffer"]) for cell in usual}
    assert chosen == {("dir-0.1", 0.5), ("dir-0.1-minimum1", 0.5), ("classes-2", 0.7)}
    assert {
        cell["selector"]["epsilon"] for cell in cells if cell["strategy"] == "fedentopt-dp"
    } == {0.5}
    assert {
        cell["selector"]["liars"] for cell in cells if cell["selector"]["name"] == "entropy"
    } == {0, 0.1}


def measures(plan: Plan, study: Study, name: str) -> list[tuple[Table, list[PaperValue]]]:
    """Each measure of a table with the values of the paper that stand in it."""
    spec = study.tables[name]
    table = Table(
        **{
            key: value
            for key, value in spec.items()
            if key not in ("experiment", "title", "caption")
        }
    )
    experiment = study.experiments[spec["experiment"]]
    rows = [row.labels for row in experiment.rows]
    found = []
    for one in table.measures():
        groups = match_paper(
            ROOT / PAPER,
            spec["paper"],
            one.shown_metric,
            rows,
            one.labels,
            experiment.axes,
            at=one.at,
        )
        found.append((one, [value for group in groups for value in group.values]))
    return found


@pytest.mark.parametrize(
    ("name", "item", "metrics"),
    [
        ("tab1", "TableI", {"test_accuracy": 120}),
        ("tab2", "TableII", {"test_accuracy_gain": 60}),
        ("tab3", "TableIII", {"test_accuracy": 48}),
        ("tab4", "TableIV", {"test_accuracy": 48}),
        ("tab6", "TableVI", {"test_accuracy": 16, "selection_entropy": 16}),
    ],
)
def test_every_printed_number_stands_in_one_place(
    plan: Plan, study: Study, name: str, item: str, metrics: dict[str, int]
):
    found = measures(plan, study, name)
    assert {one.shown_metric: len(used) for one, used in found} == metrics
    for one, used in found:
        printed = read_paper(ROOT / PAPER, item, one.shown_metric)
        assert sorted(map(repr, used)) == sorted(map(repr, printed))


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("tab1", "lenet5 cifar10 dir-0.1 fedavg", "vgg11 cifar100-coarse classes-2 fedentopt-dp"),
        (
            "tab2",
            "dir-0.1 fedprox+fedentopt cifar10 lenet5",
            "classes-2 fedlc+fedentopt cifar100-coarse vgg11",
        ),
        (
            "tab3",
            "dropout-0.3 cifar10 classes-2 lenet5 fedavg",
            "stragglers-0.5 cifar100-coarse dir-0.1 vgg11 fedentopt",
        ),
        (
            "tab4",
            "fedavg pathmnist-224 efficientnet-b0",
            "fedentopt brain-tumor-mri-224 efficientnet-b3",
        ),
        ("tab6", "cifar10 classes-2 0", "cifar100-coarse dir-0.1 0.75"),
    ],
)
def test_tables_are_in_the_papers_order(
    plan: Plan, study: Study, name: str, first: str, last: str, tmp_path: Path
):
    """Cells without a record, so that only their order is to be seen."""
    import pandas as pd

    spec = study.tables[name]
    rows = [
        row.labels | {"digest": row.digest, "status": "missing", "metric": None}
        for row in study.experiments[spec["experiment"]].rows
    ]
    frame = pd.DataFrame(rows).assign(
        study="fedentopt", experiment="e", round=None, client=None, value=float("nan")
    )
    write_metrics(
        tmp_path / "metrics.parquet",
        frame.astype({"metric": "string", "round": "Int64", "client": "Int64"}),
        {},
    )
    told = spec_of(plan, "fedentopt", name) | {"paper_values": str(ROOT / PAPER)}
    tabulate(told, tmp_path / "metrics.parquet", [tmp_path / "table.csv", tmp_path / "table.md"])
    numbers = pd.read_csv(tmp_path / "table.csv", dtype=str)
    labels = list(numbers.columns[: list(numbers.columns).index("metric")])
    assert [" ".join(numbers[labels].iloc[place]) for place in (0, -1)] == [first, last]
    models = numbers["model"] if "model" in numbers else pd.Series("lenet5", numbers.index)
    assert numbers["paper"].notna().all()
    assert numbers["planned"].eq(models.eq("lenet5").map({True: "5", False: "3"})).all()


def test_table_two_has_the_two_models_in_one_cell(plan: Plan, study: Study, tmp_path: Path):
    test_tables_are_in_the_papers_order(plan, study, "tab2", *TAB2_ENDS, tmp_path)
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert any(
        line.startswith("| Dir(0.1) | FedNova + FedEntOpt | CIFAR-10 | +41.16 / +13.28 |")
        for line in lines
    )
    assert any(
        line.startswith("| C = 2 | FedLC + FedEntOpt | CINIC-10 | -0.25 / +10.62 |")
        for line in lines
    )


def test_table_five_is_known_without_a_run(plan: Plan, tmp_path: Path):
    """VGG-11: 9,225,610 weights with ten classes; the paper's 9.2 millions are 36.8 MB."""
    told = spec_of(plan, "fedentopt", "tab5") | {"paper_values": str(ROOT / PAPER)}
    tabulate(told, "", [tmp_path / "tab5.md"])
    lines = (tmp_path / "tab5.md").read_text().splitlines()
    assert len([line for line in lines if line.startswith("| ")]) == 2 + 12
    assert (
        "| CIFAR-10 | LeNet-5 | 10 | 100 | 0.004 | 0.004 | 0.247 | 0.248 | 61.75 | 62.01 |" in lines
    )
    assert (
        "| CIFAR-10 | VGG-11 | 10 | 100 | 0.004 | 0.004 | 36.800 | 36.902 | 9,200 | 9,226 |"
        in lines
    )
    assert (
        "| Brain-Tumor MRI | EfficientNet-B3 | 4 | 40 | 0.00064 | 0.00064 | 47.963 | 42.810 | 74,940 | 66,890 |"
        in lines
    )
    assert dict(targets(plan))["fedentopt_tab5"](None) == [
        f"results/full/tables/fedentopt/tab5.{end}" for end in ("csv", "md", "tex", "json")
    ]


@pytest.mark.parametrize("scale", ["reduced", "smoke"])
def test_cheaper_scales_download_little_and_train_what_they_show(brains: str, scale: str):
    small = planned(brains, scale)
    study = small.study("fedentopt")
    sets = {cell.plain_settings()["dataset"] for cell in small.cells.values()}
    assert sets == {"cifar10", "cifar100-coarse", "brain-tumor-mri-224"}
    assert all(experiment.rows for experiment in study.experiments.values())
    assert {cell.plain_settings()["seed"] for cell in small.cells.values()} == {0}
    again = digests(study, *SHOWN_AGAIN) - digests(
        study, *(set(study.experiments) - set(SHOWN_AGAIN))
    )
    assert scale == "smoke" or not again


@pytest.mark.parametrize("scale", ["reduced", "smoke"])
def test_the_brain_scans_of_cheaper_scales_can_be_dealt(brains: str, scale: str):
    small = planned(brains, scale)
    (deal,) = values(
        settings(small, small.study("fedentopt"), "medical"), "partition", "clients", "samples"
    )
    partition, clients, share = deal
    kinds = np.round(share * np.array([1321, 1339, 1595, 1457])).astype(int)
    for seed in range(3):
        parts = parse_name(partition).deal(
            Pool(np.repeat(np.arange(4), kinds)), clients, np.random.default_rng(seed)
        )
        assert min(map(len, parts)) >= 1 and sum(map(len, parts)) == kinds.sum()


def test_vgg_has_the_size_of_smoke_at_reduced(brains: str):
    small, smaller = (planned(brains, scale) for scale in ("reduced", "smoke"))
    for plan in (small, smaller):
        cells = [
            cell.plain_settings()
            for cell in plan.cells.values()
            if cell.plain_settings()["model"] == "vgg11"
        ]
        assert values(cells, "rounds", "samples") == {(3, 0.02)}
    assert {
        cell.plain_settings()["rounds"]
        for cell in small.cells.values()
        if cell.plain_settings()["model"] == "lenet5"
    } == {100}
    assert {
        cell.plain_settings()["evaluate_every"]
        for cell in small.cells.values()
        if cell.plain_settings()["model"] == "lenet5"
    } == {"1 until 90, 1"}
    assert {
        cell.plain_settings()["lr_decay"]
        for cell in small.cells.values()
        if cell.plain_settings()["model"] == "lenet5"
    } == {0.98}


def test_smoke_shows_every_panel_and_every_hue(brains: str):
    rates = planned(brains, "smoke").study("fedentopt").experiments["rates"].rows
    assert len({(row.labels["model"], row.labels["series"]) for row in rates}) == 6
    assert len({row.labels["strategy"] for row in rates}) == 9


def test_smoke_subtracts_something(brains: str):
    rows = planned(brains, "smoke").study("fedentopt").experiments["combined"].rows
    assert len(rows) == len({row.labels["strategy"] for row in rows}) == 10
