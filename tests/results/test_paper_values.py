"""The committed values of the papers: format, counts, and spot checks against the papers' text."""

from __future__ import annotations

import csv

import pytest

from cohort.models import MODELS
from cohort.partition import parse_partition
from cohort.plan.resolution import HINTS
from cohort.results.names import METRICS
from cohort.results.paper import SOURCES, read_paper
from tests.conftest import ROOT

FOLDER = ROOT / "resources/paper_values"
COUNTS = {
    "aml": 38 + 2679,
    "peco": 58,
    "ucb": 27,
    "fedentopt": 416,
    "stratify": 323 + 262,  # with the best epoch of each accuracy
    "aml_curves": 2 * 3000,
}
BEFORE, AFTER = (
    ["item", "source", "doubtful", "dataset", "model", "partition", "J", "strategy", "seed"],
    ["other", "metric", "at", "round", "value", "sd"],
)
DATASETS = (
    *(
        "mnist",
        "fashion-mnist",
        "cifar10",
        "cifar10-unit",
        "cifar100",
        "cifar100-coarse",
        "cinic10",
        "tiny-imagenet",
        "covtype",
        "shakespeare",
        "shakespeare-central",
    ),
    *("pathmnist-224", "tissuemnist-224", "brain-tumor-mri-224", "pacs", "digits-dg"),
)
UNSAYABLE = {"centralized", "several", "role Nc in {1,5,10,50}"}
FURTHER = {  # metrics beside accuracy and loss
    "fedentopt": {"test_accuracy_gain", "selection_entropy", "bytes_down"},
    "stratify": {
        *("best_round", "tasks_saved", "seconds_unique_list", "seconds_mapping", "seconds_counts"),
        *("seconds_training", "client_seconds_training", "client_seconds_to_best"),
        "seconds_transfers",
    },
}
COMING = (
    "domains-",
    "roles-",
)  # partitions that the papers have and this project does not have yet

# By hand from the papers' pages.
SPOTS = """\
fedentopt | TableI | dataset=cifar10 model=lenet5 partition=dir-0.1 strategy=fedavg | last-10 | 0.4661 | 0.0017
fedentopt | TableI | dataset=cinic10 model=lenet5 partition=classes-2 strategy=fedentopt | last-10 | 0.4141 | 0.0004
fedentopt | TableI | dataset=cifar100-coarse model=lenet5 partition=dir-0.1 strategy=kl | last-10 | 0.1832 | 0.0001
fedentopt | TableI | dataset=cifar10 model=vgg11 partition=classes-2 strategy=fedentopt-dp | last-10 | 0.6610 | 0.0002
fedentopt | TableII-derived | dataset=cifar10 model=lenet5 partition=dir-0.1 strategy=fedprox+fedentopt | last-10 | 0.5251 |
fedentopt | TableIV | dataset=pathmnist-224 model=efficientnet-b3 strategy=scaffold | last-10 | 0.8852 | 0.0002
fedentopt | TableVI | dataset=cifar10 partition=classes-2 selector.buffer=0.25 | last-10 | 0.5325 | 0.0020
aml | Fig3 | dataset=cifar100 model=aml-lenet partition=iid J=J4e strategy=fedavg source=printed | last | 0.4492 |
aml | Fig3 | partition=iid J=J4e source=printed | max | 0.4548 |
aml | Fig13 | strategy=diversity selector.alpha=0.5 partition=sampled-1-50 source=printed | max | 0.426 |
aml | Fig7 | partition=sampled-50-51 J=J16e | last | 0.3367 |
peco | TableII | dataset=cifar10-unit model=lenet5 partition=dir-0.1-overlap0.2x2 strategy=peco | 41-50 | 0.76 |
peco | TableII | dataset=fashion-mnist model=resnet18 strategy=loss | 21-30 | 0.76 |
ucb | Table:results | strategy=ucb | 10 | 0.53 |
ucb | Table:results | strategy=fedavg | 20 | 0.4938 |
stratify | TableI | dataset=mnist model=lenet5 partition=classes-1 strategy=fedavg | max | 0.1871 |
stratify | TableII | dataset=cifar100 model=resnet9 partition=covering-10 strategy=stratify-uniform | max | 0.7445 |
stratify | TableI | dataset=pacs partition=dirdomains-0.5 strategy=sfl | max | 0.8957 |
stratify | TableV | dataset=pacs procedure=stratified-single-weighted1-chunk50 | max | 0.955 |
"""


def rows(name: str) -> list[dict[str, str]]:
    with open(FOLDER / f"{name}.csv", encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_every_file_is_known():
    assert {file.name for file in FOLDER.iterdir()} == {
        "README.md",
        *(f"{name}.csv" for name in COUNTS),
    }


@pytest.mark.parametrize("name", COUNTS)
def test_the_format_of_a_file(name: str):
    table_rows = rows(name)
    assert len(table_rows) == COUNTS[name]
    columns = [column for column in table_rows[0] if column != "runs"]
    assert columns[: len(BEFORE)] == BEFORE and columns[-len(AFTER) :] == AFTER
    further = columns[len(BEFORE) : -len(AFTER)]
    assert all(
        "." in label or label in HINTS for label in further
    )  # a parameter of a strategy, or a setting
    for row in table_rows:
        assert None not in row and row["item"] and row["metric"] and row["source"] in SOURCES, row
        assert float(row["value"]) < 1e9 and (not row["sd"] or float(row["sd"]) >= 0), row
        assert row["metric"] != "test_accuracy" or 0 <= float(row["value"]) <= 1, row
        assert row["metric"] != "test_loss" or (row["value"] and 0 < float(row["value"]) < 20), row
        assert all(text == text.strip() for text in row.values()), row


@pytest.mark.parametrize("name", COUNTS)
def test_labels_use_our_names_where_we_have_any(name: str):
    for row in rows(name):
        assert row["dataset"] in (*DATASETS, "", "4 workloads"), row
        assert (
            not row["model"]
            or row["model"] in MODELS
            or row["model"] == "CNN, ResNet18"
            or row["model"].islower()
        ), row
        partition = row["partition"]
        if (
            partition
            and partition not in UNSAYABLE
            and not partition.startswith((*COMING, "Dir(0.1);overlap pairs"))
        ):
            assert str(parse_partition(partition)) == partition


@pytest.mark.parametrize("spot", SPOTS.splitlines())
def test_spot_checks(spot: str):
    study, item, words, at, value, deviation = (part.strip() for part in spot.split("|"))
    wanted = dict(word.split("=") for word in words.split())
    source = wanted.pop("source", "")
    metric = "own_samples_accuracy" if study == "ucb" else "test_accuracy"
    values = read_paper(FOLDER / f"{study}.csv", item, metric)
    results = [
        value
        for value in values
        if value.at == at
        and source in ("", value.source)
        and wanted.items() <= value.labels.items()
    ]
    assert [(result.value, result.sd) for result in results] == [
        (pytest.approx(float(value)), float(deviation) if deviation else None)
    ]


def test_curves_end_at_the_tabulated_ends():
    labels = [
        name
        for name in rows("aml")[0]
        if name not in ("source", "doubtful", "at", "round", "value", "sd")
    ]
    ends = {
        tuple(row[name] for name in labels): (row["round"], float(row["value"]))
        for row in rows("aml")
        if row["at"] == "last" and row["source"] == "authors' log"
    }
    last: dict[tuple[str, ...], tuple[str, float]] = {}
    for row in rows("aml_curves"):
        key = tuple(row[name] for name in labels)
        last[key] = max(
            last.get(key, ("0", 0.0)),
            (row["round"], float(row["value"])),
            key=lambda end: int(end[0]),
        )
    shared = ends.keys() & last.keys()
    assert len(shared) == 2 * 57
    assert {key: last[key] for key in shared} == {key: ends[key] for key in shared}


def test_the_files_use_only_these_metrics():
    for name in COUNTS:
        result = {row["metric"] for row in rows(name)} & set(METRICS)
        further = FURTHER.get(name, set())
        assert result <= {"test_accuracy", "test_loss", "own_samples_accuracy"} | further


def test_the_best_epochs_of_stratify_are_those_of_its_accuracies():
    keys = ("item", "dataset", "partition", "strategy", "procedure")
    accuracies, epochs = (
        {
            tuple(row[key] for key in keys): float(row[column])
            for row in rows("stratify")
            if row["metric"] == metric
        }
        for metric, column in (("test_accuracy", "round"), ("best_round", "value"))
    )
    assert accuracies == epochs and len(epochs) == 262


def test_doubtful_values_of_fedentopts_table_three_are_marked():
    doubtful = [row for row in rows("fedentopt") if row["doubtful"]]
    assert len(doubtful) == 30 and {row["item"] for row in doubtful} == {"TableIII"}
