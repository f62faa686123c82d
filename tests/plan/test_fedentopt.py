"""FedEntOpt's study: what each part of the paper takes, and how its tables look. tests/plan/cells has its cells."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cohort.partition import Pool, parse_partition
from cohort.pipeline.specs import spec_of
from cohort.plan import Plan, Study
from cohort.results.files import write_metrics
from cohort.results.tables.tabulate import tabulate
from tests.conftest import ROOT
from tests.plan.conftest import digests
from tools.cells import plan_all

PAPER = "resources/paper_values/fedentopt.csv"
SHOWN_AGAIN = ("availability_and_full", "rates_and_ten", "convergence", "communication")


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_all("fedentopt")


@pytest.fixture(scope="module")
def study(plan: Plan) -> Study:
    return plan.study("fedentopt")


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


def test_no_two_cells_differ_by_accident(plan: Plan):
    """Each combination that the paper distinguishes has exactly one digest."""
    keys = [
        "dataset",
        "model",
        "partition",
        "strategy",
        "seed",
        "cohort",
        "participation",
        "selector",
        "server",
    ]
    apart = Counter(
        tuple(str(cell.plain_settings()[key]) for key in keys) for cell in plan.cells.values()
    )
    assert len(apart) == len(plan.cells)


def tabulated(plan: Plan, name: str, folder: Path) -> tuple[pd.DataFrame, list[str]]:
    """A table of cells without a record, as CSV and as the lines of Markdown."""
    study = plan.study("fedentopt")
    rows = [
        row.labels | {"digest": row.digest, "status": "missing", "metric": None}
        for row in study.experiments[study.tables[name]["experiment"]].rows
    ]
    frame = pd.DataFrame(rows).assign(
        study="fedentopt", experiment="e", round=None, client=None, value=float("nan")
    )
    frame = frame.astype({"metric": "string", "round": "Int64", "client": "Int64"})
    metrics, files = folder / "metrics.parquet", [folder / f"table.{end}" for end in ("csv", "md")]
    write_metrics(metrics, frame, {})
    tabulate(spec_of(plan, "fedentopt", name) | {"paper_values": str(ROOT / PAPER)}, metrics, files)
    return pd.read_csv(files[0], dtype=str), files[1].read_text().splitlines()


ENDS = {
    "tab1": ("lenet5 cifar10 dir-0.1 fedavg", "vgg11 cifar100-coarse classes-2 fedentopt-dp"),
    "tab2": (
        "dir-0.1 fedprox+fedentopt cifar10 lenet5",
        "classes-2 fedlc+fedentopt cifar100-coarse vgg11",
    ),
    "tab3": (
        "dropout-0.3 cifar10 classes-2 lenet5 fedavg",
        "stragglers-0.5 cifar100-coarse dir-0.1 vgg11 fedentopt",
    ),
    "tab4": (
        "fedavg pathmnist-224 efficientnet-b0",
        "fedentopt brain-tumor-mri-224 efficientnet-b3",
    ),
    "tab6": ("cifar10 classes-2 0", "cifar100-coarse dir-0.1 0.75"),
}


@pytest.mark.parametrize("name", ENDS)
def test_tables_are_in_the_papers_order(plan: Plan, name: str, tmp_path: Path):
    numbers, lines = tabulated(plan, name, tmp_path)
    labels = list(numbers.columns[: list(numbers.columns).index("metric")])
    assert tuple(" ".join(numbers[labels].iloc[row]) for row in (0, -1)) == ENDS[name]
    models = numbers["model"] if "model" in numbers else pd.Series("lenet5", numbers.index)
    assert numbers["paper"].notna().all()
    assert numbers["planned"].eq(models.eq("lenet5").map({True: "5", False: "3"})).all()
    if name == "tab2":  # two models in one cell
        text = "\n".join(lines)
        assert "\n| Partition | Strategy | CIFAR-10 | CINIC-10 | CIFAR-100" in text
        fednova = "paper +41.16 / +13.28 | paper +26.74 / +4.62 | paper +2.09 / +2.67"
        assert f"\n| Dir(0.1) | FedNova + FedEntOpt | {fednova} |" in text
        fedlc = "paper +0.14 / -1.79 | paper -0.25 / +10.62 | paper +0.98 / -0.99"
        assert f"\n| C = 2 | FedLC + FedEntOpt | {fedlc} |" in text


@pytest.mark.parametrize("scale", ["reduced", "smoke"])
def test_the_brain_scans_of_cheaper_scales_can_be_dealt(scale: str):
    small = plan_all("fedentopt", scale)
    (row, *_) = small.study("fedentopt").experiments["medical"].rows
    settings = small.cells[row.digest].plain_settings()
    kinds = np.round(settings["samples"] * np.array([1321, 1339, 1595, 1457])).astype(int)
    pool, scheme = Pool(np.repeat(np.arange(4), kinds)), parse_partition(settings["partition"])
    for seed in range(3):
        parts = scheme.deal(pool, settings["clients"], np.random.default_rng(seed))
        assert min(map(len, parts)) >= 1 and sum(map(len, parts)) == kinds.sum()
