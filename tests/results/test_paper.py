"""Matching a paper's values with results, worked out by hand on a file of a dozen rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from cohort.core.errors import UserError
from cohort.results.paper import doubts, paper_file, read_paper
from cohort.results.paper_match import match_values

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


def cell(strategy: str, **labels: object) -> dict[str, object]:
    return {
        "dataset": "cifar10",
        "model": "lenet5",
        "partition": "iid",
        "strategy": strategy,
        "seed": 0,
    } | labels


def values(
    file: Path, item: str, cells: list[dict[str, object]], at: str = "last"
) -> dict[str, list[float]]:
    curves = match_values(
        read_paper(file, item, "test_accuracy"), cells, ["strategy"], LABELS, at=at
    )
    return {curve.labels["strategy"]: [value.value for value in curve.values] for curve in curves}


def test_a_group_is_matched_by_all_that_its_cells_share(file: Path):
    assert values(file, "TableI", [cell("fedavg"), cell("fedavg", seed=1)]) == {"fedavg": [0.5]}
    assert values(file, "TableI", [cell("fedavg", model="vgg11")]) == {"fedavg": [0.6]}
    assert values(file, "TableI", [cell("fedavg", dataset="mnist")]) == {"fedavg": []}


def test_values_match_by_at_and_metric(file: Path):
    assert values(file, "TableI", [cell("fedavg")], at="max") == {"fedavg": [0.7]}
    assert values(file, "TableI", [cell("fedavg")], at="mean") == {"fedavg": []}


def test_printed_values_take_precedence_over_logs(file: Path):
    assert values(file, "TableI", [cell("loss")]) == {"loss": [0.4]}


def test_labels_that_either_side_leaves_out_match(file: Path):
    assert values(file, "TableII", [cell("fedentopt", **{"selector.buffer": 0.50})]) == {
        "fedentopt": [0.3]
    }
    assert values(file, "TableII", [cell("fedentopt", **{"selector.buffer": 0.25})]) == {
        "fedentopt": [0.2]
    }


def test_two_values_for_one_result_are_refused(file: Path):
    with pytest.raises(
        UserError,
        match=r"two values for strategy fedentopt: 0.3 \(TableII; partition iid; selector.buffer 0.5\) and 0.2",
    ):
        values(file, "TableII", [cell("fedentopt")])
    with pytest.raises(
        UserError,
        match=r"two values for strategy fedavg: 0.5 .*model lenet5.* and 0.6 .*model vgg11",
    ):
        values(file, "TableI", [cell("fedavg"), cell("fedavg", model="vgg11")])


def test_several_items(file: Path):
    cells = [cell("fedavg"), cell("fedentopt", **{"selector.buffer": 0.5})]
    assert values(file, "TableI, TableII", cells) == {"fedavg": [0.5], "fedentopt": [0.3]}


@pytest.mark.parametrize(
    ("item", "curve"),
    [("Fig3", [0.11, 0.22]), ("Fig5", [0.11, 0.22]), ("Fig3/5", [0.11, 0.22]), ("Fig10", [0.1])],
)
def test_a_shared_item_is_found_under_each_of_its_figures_and_curves_are_sorted(
    file: Path, item: str, curve: list[float]
):
    assert values(file, item, [cell("fedavg")], at="") == {"fedavg": curve}


def test_two_curves_for_one_result_are_refused(file: Path):
    with pytest.raises(UserError, match="two values for strategy fedavg"):
        values(file, "Fig3, Fig9", [cell("fedavg")], at="")


@pytest.mark.parametrize("item", ["Fig4", "Fig12", "Table", "TableI,"])
def test_an_unknown_item_is_refused_with_the_known_ones(file: Path, item: str):
    with pytest.raises(
        UserError,
        match=r"which .*study.csv does not hold.*allowed: TableI, TableII, Fig3/5, Fig9-11",
    ):
        read_paper(file, item, "test_accuracy")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("0.5,0.01", "half,0.01", "study.csv, line 2: value is 'half', but must be a number"),
        ("0.5,0.01", "nan,0.01", "line 2: value is 'nan'"),
        (
            "TableI,printed,,cifar10,vgg11",
            "TableI,print,,cifar10,vgg11",
            "line 3: source is 'print', which is not known; did you mean 'printed'",
        ),
        ("doubtful,", "doubt,", "lacks the column 'doubtful'"),
        ("0.5,0.01", "0.5,0.01,9", "line 2: has more columns than the header"),
        ("0.5,0.01", "0.5", "line 2: has fewer columns than the header"),
    ],
)
def test_a_broken_file_is_refused(file: Path, old: str, new: str, sentence: str):
    file.write_text(CSV.replace(old, new, 1))
    with pytest.raises(UserError) as error:
        read_paper(file, "TableI", "test_accuracy")
    assert sentence in str(error.value)


def test_curves_have_a_file_of_their_own():
    assert (
        str(paper_file("aml", {"kind": "curves", "paper": "Fig3"}))
        == "resources/paper_values/aml_curves.csv"
    )
    assert (
        str(paper_file("aml", {"kind": "bars", "paper": "Fig7"}))
        == "resources/paper_values/aml.csv"
    )
    assert str(paper_file("aml", {"paper": "TableI"})) == "resources/paper_values/aml.csv"
    assert paper_file("aml", {"kind": "curves"}) is None


def test_without_a_file_of_curves_they_are_the_values_that_have_a_round():
    file = paper_file("peco", {"kind": "curves", "paper": "Fig10"})
    assert str(file) == "resources/paper_values/peco.csv"
    cell = {"dataset": "cifar10-unit", "model": "lenet5", "partition": "dir-0.1-overlap0.2x1"}
    cells = [cell | {"strategy": name} for name in ("peco", "fedavg")]
    labels = ["dataset", "model", "partition", "strategy"]
    matches = match_values(read_paper(file, "Fig10", "test_accuracy"), cells, ["strategy"], labels)
    points = {
        match.labels["strategy"]: [(value.round, value.value) for value in match.values]
        for match in matches
    }
    assert points == {"peco": [(100, 0.7)], "fedavg": []}


def test_each_doubt_is_stated_once():
    """A value may have several."""
    assert doubts(["swapped; shifted", "", "shifted", "swapped", "other"]) == (
        "swapped; shifted; other"
    )
