"""Papers' values: matching them with results on a file of a dozen rows, and the committed files."""

import csv
from pathlib import Path
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.models import MODELS
from cohort.partition import parse_partition
from cohort.plan.resolution import HINTS
from cohort.results.paper import SOURCES, doubts, match_values, paper_file, read_papers
from tests.conftest import ROOT

LABELS = ["dataset", "model", "partition", "strategy", "selector.buffer"]
CSV = """\
item,source,doubtful,dataset,model,partition,strategy,seed,selector.buffer,other,metric,at,round,value,sd
TableI,printed,,cifar10,lenet5,iid,fedavg,,,,test_accuracy,last,,0.5,0.01
TableI,printed,,cifar10,vgg11,iid,fedavg,,,,test_accuracy,last,,0.6,
TableI,printed,,cifar10,lenet5,iid,fedavg,,,,test_accuracy,max,,0.7,
TableI,printed,,cifar10,lenet5,iid,fedavg,,,,test_loss,last,,1.5,
TableI,printed,,cifar10,lenet5,iid,loss,,,,test_accuracy,last,,0.4,
TableI,authors' log,,cifar10,lenet5,iid,loss,,,,test_accuracy,last,,0.41,
TableII,printed,,,,iid,fedentopt,,0.5,,test_accuracy,last,,0.3,
TableII,printed,,,,iid,fedentopt,,0.25,,test_accuracy,last,,0.2,
Fig3/5,authors' log,,cifar10,,iid,fedavg,,,,test_accuracy,20,20,0.22,
Fig3/5,authors' log,,cifar10,,iid,fedavg,,,,test_accuracy,3,3,0.11,
Fig9-11,authors' log,unsure,cifar10,,iid,fedavg,,,,test_accuracy,1,1,0.1,
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "study.csv").write_text(CSV)
    return tmp_path / "study.csv"


def cell(strategy: str = "fedavg", **labels: object) -> dict[str, object]:
    """A cell; `b` stands for the label `selector.buffer`."""
    buffer = {"selector.buffer": labels.pop("b")} if "b" in labels else {}
    defaults = {"dataset": "cifar10", "model": "lenet5", "partition": "iid", "seed": 0}
    return {**defaults, "strategy": strategy, **labels, **buffer}


HALF = cell("fedentopt", b=0.50)
TWO_BUFFERS = r"two values for strategy fedentopt: 0.3 \(TableII; partition iid; selector.buffer 0.5\) and 0.2"
TWO_MODELS = "two values for strategy fedavg: 0.5 .*model lenet5.* and 0.6 .*model vgg11"


@pytest.mark.parametrize(
    ("item", "cells", "at", "values"),
    [
        ("TableI", [cell(), cell(seed=1)], "last", {"fedavg": [0.5]}),
        ("TableI", [cell(model="vgg11")], "last", {"fedavg": [0.6]}),
        ("TableI", [cell(dataset="mnist")], "last", {"fedavg": []}),
        ("TableI", [cell()], "max", {"fedavg": [0.7]}),
        ("TableI", [cell("loss")], "last", {"loss": [0.4]}),  # printed before logged
        ("TableI, TableII", [cell(), HALF], "last", {"fedavg": [0.5], "fedentopt": [0.3]}),
        ("Fig3/5", [cell()], "", {"fedavg": [0.11, 0.22]}),  # a curve, sorted
        # two values for one result
        ("TableII", [cell("fedentopt")], "last", TWO_BUFFERS),
        ("TableI", [cell(), cell(model="vgg11")], "last", TWO_MODELS),
        ("Fig3/5, Fig9-11", [cell()], "", "two values for strategy fedavg"),
    ],
)
def test_values_match_what_all_cells_of_a_result_share(
    file: Path, item: str, cells: list[dict[str, object]], at: str, values: Any
) -> None:
    printed = read_papers([file], item, "test_accuracy")[0]
    if isinstance(values, str):
        with pytest.raises(UserError, match=values):
            match_values(printed, cells, ["strategy"], LABELS, at=at)
        return
    matches = match_values(printed, cells, ["strategy"], LABELS, at=at)
    actual = {match.labels["strategy"]: [v.value for v in match.values] for match in matches}
    assert actual == values


@pytest.mark.parametrize("item", ["Fig4", "Fig3", "TableI,"])
def test_an_unknown_item_is_refused_with_the_known_ones(file: Path, item: str) -> None:
    message = r"which is not in .*study.csv.*allowed: TableI, TableII, Fig3/5, Fig9-11"
    with pytest.raises(UserError, match=message):
        read_papers([file], item, "test_accuracy")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("0.5,0.01", "half,0.01", "study.csv, line 2: value is 'half', which it cannot be"),
        ("0.5,0.01", "nan,0.01", "line 2: value is 'nan'"),
        ("0.5,0.01", "0.5,-0.01", "line 2: sd is '-0.01', which it cannot be"),
        ("TableI,printed", "TableI,print", "line 2: source is 'print', which is not known; did yo"),
        ("doubtful,", "doubt,", "lacks the column 'doubtful'"),
        ("0.5,0.01", "0.5,0.01,9", "line 2: has more columns than the header"),
        ("0.5,0.01", "0.5", "line 2: has fewer columns than the header"),
    ],
)
def test_a_broken_file_is_refused(file: Path, old: str, new: str, sentence: str) -> None:
    file.write_text(CSV.replace(old, new, 1))
    with pytest.raises(UserError) as error:
        read_papers([file], "TableI", "test_accuracy")
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("aml curves Fig3", "aml_curves.csv"),
        ("aml bars Fig7", "aml.csv"),
        ("peco curves Fig10", "peco.csv"),  # which has no file of curves
        ("aml curves ", None),
    ],
)
def test_curves_have_a_file_of_their_own(spec: str, name: str | None) -> None:
    study, kind, item = spec.split(" ")
    file = paper_file(study, {"kind": kind, "paper": item})
    assert (file and str(file)) == (name and f"resources/paper_values/{name}")


def test_own_values_of_another_study_hide_none(empty_folder: Path):
    Path("my/paper_values").mkdir(parents=True)
    Path("my/paper_values/aml_mine.csv").touch()
    files = [paper_file(study, {"paper": "Fig7"}) for study in ("aml_mine", "aml")]
    assert files == [Path("my/paper_values/aml_mine.csv"), FOLDER / "aml.csv"]


def test_each_doubt_is_stated_once() -> None:
    texts = ["swapped; shifted", "", "shifted", "swapped", "other"]
    assert doubts(texts) == "swapped; shifted; other"


FOLDER = ROOT / "resources/paper_values"
COUNTS = {"aml": 38 + 2685, "peco": 58, "ucb": 27, "fedentopt": 416, "aml_curves": 2 * 3000}
COUNTS["stratify"] = 323 + 262  # with the best epoch of each accuracy
COLUMNS = ["item", "source", "doubtful", "dataset", "model", "partition", "J", "strategy", "seed"]
LAST_COLUMNS = ["other", "metric", "at", "round", "value", "sd"]
NOT_OURS = (  # partitions that the papers have and that cannot be said here, or not yet
    *("", "centralized", "several", "role Nc in {1,5,10,50}"),
    *("domains-", "roles-", "Dir(0.1);overlap pairs"),
)
# By hand from the papers' pages.
SPOTS = """\
fedentopt | TableI | dataset=cifar10 model=lenet5 partition=dir-0.1 strategy=fedavg | last-10 | 0.4661 | 0.0017
fedentopt | TableI | dataset=cinic10 model=lenet5 partition=classes-2 strategy=fedentopt | last-10 | 0.4141 | 0.0004
fedentopt | TableII-derived | dataset=cifar10 model=lenet5 partition=dir-0.1 strategy=fedprox+fedentopt | last-10 | 0.5251 |
fedentopt | TableIV | dataset=pathmnist-224 model=efficientnet-b3 strategy=scaffold | last-10 | 0.8852 | 0.0002
aml | Fig3 | dataset=cifar100 model=aml-lenet partition=iid J=J4e strategy=fedavg source=printed | last | 0.4492 |
aml | Fig13 | strategy=diversity selector.alpha=0.5 partition=sampled-1-50 source=printed | max | 0.426 |
aml | Fig3/5/6/7 | partition=sampled-50-51 J=J16e | last | 0.3367 |
peco | TableII | dataset=cifar10-unit model=lenet5 partition=dir-0.1-overlap0.2x2 strategy=peco | 41-50 | 0.76 |
ucb | Table:results | strategy=ucb | 10 | 0.53 |
stratify | TableI | dataset=mnist model=lenet5 partition=classes-1 strategy=fedavg | max | 0.1871 |
stratify | TableII | dataset=cifar100 model=resnet9 partition=covering-10 strategy=stratify-uniform | max | 0.7445 |
stratify | TableV | dataset=pacs procedure=stratified-single-weighted1-chunk50 | max | 0.955 |
"""


def rows(name: str) -> list[dict[str, str]]:
    with open(FOLDER / f"{name}.csv", encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("name", COUNTS)
def test_the_format_of_a_file(name: str) -> None:
    table = rows(name)
    assert len(table) == COUNTS[name]
    columns = [column for column in table[0] if column != "runs"]
    assert columns[: len(COLUMNS)] == COLUMNS and columns[-len(LAST_COLUMNS) :] == LAST_COLUMNS
    further = columns[len(COLUMNS) : -len(LAST_COLUMNS)]
    assert all("." in label or label in HINTS for label in further)  # settings
    for row in table:
        assert None not in row and row["item"] and row["metric"] and row["source"] in SOURCES, row
        assert float(row["value"]) < 1e9 and (not row["sd"] or float(row["sd"]) >= 0), row
        is_accuracy = row["metric"] == "test_accuracy" and not row["at"].startswith("first")
        assert not is_accuracy or 0 <= float(row["value"]) <= 1, row
        assert row["metric"] != "test_loss" or 0 < float(row["value"]) < 20, row
        assert all(text == text.strip() for text in row.values()), row
        model, partition = row["model"], row["partition"]
        assert model in MODELS or model == "CNN, ResNet18" or not model or model.islower(), row
        is_ours = partition not in NOT_OURS[:4] and not partition.startswith(NOT_OURS[4:])
        assert not is_ours or str(parse_partition(partition)) == partition, row


def test_every_file_is_known() -> None:
    names = {file.name for file in FOLDER.iterdir()}
    assert names == {"README.md", *(f"{name}.csv" for name in COUNTS)}


@pytest.mark.parametrize("spot", SPOTS.splitlines())
def test_spot_checks(spot: str) -> None:
    study, item, labels, at, value, deviation = (part.strip() for part in spot.split("|"))
    wanted = dict(label.split("=") for label in labels.split())
    source = wanted.pop("source", "")
    metric = "own_samples_accuracy" if study == "ucb" else "test_accuracy"
    results = [
        (value.value, value.sd)
        for value in read_papers([FOLDER / f"{study}.csv"], item, metric)[0]
        if value.at == at and source in ("", value.source)
        if wanted.items() <= value.labels.items()
    ]
    assert results == [(pytest.approx(float(value)), float(deviation) if deviation else None)]
