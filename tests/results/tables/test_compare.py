"""Comparisons with a paper, of the nine runs in conftest.py, differences seed by seed, and tables by
client; numbers are worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cohort.results.series import write_metrics
from tests.results.tables.conftest import Spec, written

PAPER = """\
item,source,doubtful,partition,strategy,other,metric,at,round,value,sd
TableI,printed,,iid,fedavg,,test_accuracy,last,,0.4,
TableI,printed,,iid,fedent_opt,,test_accuracy,last,,0.8,0.002
TableI,printed,the row is shifted,dir-0.1,fedavg,,test_accuracy,last,,0.535,0.01
TableI,derived,,dir-0.1,fedent_opt,,test_accuracy,last,,0.61,
"""
HEAD = r"| Partition | Fed\|Avg & co | fedent_opt |"
LINES = [
    "| iid | 40.00† ± 42.43 (2)<br>[0.00, 100.00]<br>paper 40.00 (+0.00)<br>cannot tell | paper 80.00 ± 0.20 |",
    "| dir-0.1 | 52.00 ± 2.83 (2)<br>[26.59, 77.41]<br>paper 53.50‡ ± 1.00 (-1.50)<br>cannot tell | 60.00 (n = 1 of 2)<br>paper 61.00 (-1.00) |",
    "| roles-5 | 10.00† (1) | – |",
]


@pytest.fixture
def compared(spec: Spec, tmp_path: Path) -> Spec:
    """A table's spec with the paper's values to compare with."""
    (tmp_path / "paper.csv").write_text(PAPER)
    paper = {"paper": "TableI", "paper_values": str(tmp_path / "paper.csv")}
    return spec | paper | {"scale": "full"}


def test_strategies_are_columns_with_the_paper_in_each_cell(compared: Spec, metrics: Path) -> None:
    lines = written(compared, metrics).splitlines()
    assert lines[4] == HEAD
    assert lines[6:9] == LINES
    assert lines[10] == (
        "Test accuracy (%), last evaluation: mean ± standard deviation over seeds [95 % interval of the mean] (number of runs). "
        "†: a run diverged; it counts with the worst value: the lowest accuracy, chance level at most, the largest loss, never for a target; otherwise with its rounds until then. Paper: Table I (printed), Table I (derived). "
        "In parentheses after the paper's value: measured minus paper. Agrees: the 90 % interval of the difference lies within 2 points, near 0 and 100 % within half of the distance to them; differs: its 95 % interval lies outside. ‡ doubtful: the row is shifted. –: not planned, or no value in these runs."
    )


def test_measures_joined_in_one_cell(compared: Spec, frame: pd.DataFrame, metrics: Path) -> None:
    """FedAvg's runs have no loss, so their number stands once; one of FedEntOpt's is missing."""
    losses = frame[frame["strategy"] == "fedent_opt"].assign(metric="test_loss")
    write_metrics(metrics, pd.concat([frame, losses]), {})
    table = compared | {"also": ["test_loss"], "joined": True}
    lines = written(table, metrics).splitlines()
    assert lines[4] == HEAD
    assert lines[7] == (
        "| dir-0.1 | 52.00 ± 2.83 / – (2)<br>paper 53.50‡ ± 1.00 (-1.50) / –<br>cannot tell / – | 60.00 / 0.600 (n = 1 of 2)<br>paper 61.00 (-1.00) / – |"
    )
    assert lines[10].startswith("Test accuracy (%), last evaluation / Test loss, last evaluation: ")


def test_csv_has_the_papers_columns(compared: Spec, metrics: Path) -> None:
    written(compared, metrics, ".csv")
    numbers = pd.read_csv(metrics.parent / "table.csv")
    assert " ".join(numbers.columns) == (
        "partition strategy metric at mean sd low high n planned finished diverged best paper paper_sd difference difference_low difference_high margin verdict item source doubtful"
    )
    assert numbers["paper"].tolist()[:4] == [0.4, 0.8, 0.535, 0.61]
    assert numbers["difference"].tolist()[2:4] == [pytest.approx(-0.015), pytest.approx(-0.01)]
    margins = numbers["margin"].dropna().tolist()
    assert margins == [0.02, 0.02, 0.02], "in the unit of the difference, not as shown"
    verdicts = ["cannot tell", "no result", "cannot tell", "not enough runs", "no paper value"]
    assert numbers["verdict"].tolist() == verdicts
    assert numbers["source"].tolist()[:4] == ["printed", "printed", "printed", "derived"]


def test_a_verdict_is_in_the_unit_that_is_shown(
    compared: Spec, frame: pd.DataFrame, tmp_path: Path
) -> None:
    """FedEntOpt on Dir(0.1) has two runs 0.2 points apart, below the paper's one run of 61 %, whose
    variance of 0.02 adds to the 0.01 of our mean. Student's t with one degree of freedom has 6.31 as
    its 95 % quantile, so the 90 % interval reaches 6.31 * sqrt(0.03) = 1.09 points further than the
    difference of our mean, 60.10 or 60.08 %: to 1.99 or 2.01."""
    fedentopt = (frame["strategy"] == "fedent_opt") & (frame["partition"] == "dir-0.1")
    frame.loc[fedentopt, "status"] = "done"
    frame.loc[fedentopt, "metric"] = "test_accuracy"
    metrics = tmp_path / "near.parquet"
    for values, cell in (
        ([0.602, 0.600], "paper 61.00 (-0.90)<br>agrees |"),
        ([0.6018, 0.5998], "paper 61.00 (-0.92)<br>cannot tell |"),
    ):
        frame.loc[fedentopt, "value"] = values
        write_metrics(metrics, frame, {})
        assert cell in written(compared, metrics)


def test_at_a_cheaper_scale_there_is_no_verdict(compared: Spec, metrics: Path) -> None:
    text = written(compared | {"scale": "smoke"}, metrics)
    assert "cannot tell" not in text and "paper 53.50‡ ± 1.00 (-1.50) |" in text
    assert "No verdict: scale smoke is a cheaper version of the paper's runs." in text


# Model, strategy, seed, status, accuracy: the small model gains 0.1 and, diverged to the 0.1 of a
# guess, loses 0.3; the large one loses 0.05 in its one pair of finished runs.
PAIRS = [
    ("small", "without", 0, "done", 0.5),
    ("small", "without", 1, "done", 0.4),
    ("small", "with", 0, "done", 0.6),
    ("small", "with", 1, "diverged", 0.7),
    ("large", "without", 0, "done", 0.65),
    ("large", "without", 1, "missing", float("nan")),
    ("large", "with", 0, "done", 0.6),
    ("large", "with", 1, "done", 0.9),
]
GAINS = """\
item,source,doubtful,model,strategy,other,metric,at,round,value,sd
TableII,printed,,small,with,,test_accuracy_gain,last,,0.0767,
TableII,printed,shifted,large,with,,test_accuracy_gain,last,,-0.0155,
TableII,printed,,small,with,,test_accuracy,last,,0.9,
"""


def test_differences_seed_by_seed(tmp_path: Path) -> None:
    """The gains 0.1 and -0.3 have mean -0.1 and SD 0.2828; accuracies would have one of 0.3536. The
    seed without a partner does not count. Less the paper's, -10 - 7.67 is -17.67, and -5 - -1.55 is
    -3.45; the paper's accuracy is not used."""
    frame = pd.DataFrame(PAIRS, columns=["model", "strategy", "seed", "status", "value"])
    frame = frame.assign(study="s", experiment="main", round=8, client=None, classes=10)
    frame["digest"] = [f"k{index}" for index in range(len(frame))]
    frame["metric"] = ["test_accuracy" if value == value else None for value in frame["value"]]
    file = tmp_path / "metrics.parquet"
    write_metrics(file, frame.astype({"metric": "string", "round": "Int64", "client": "Int64"}), {})
    (tmp_path / "paper.csv").write_text(GAINS)
    orders = {"model": ["small", "large"], "strategy": ["without", "with"]}
    spec: Spec = {"style": {"orders": orders}, "metric": "test_accuracy", "at": "last"}
    spec |= {"rows": ["strategy"], "columns": "model", "minus": {"with": "without"}}
    assert written(spec, file, ".csv").splitlines() == [
        "strategy,model,metric,at,mean,sd,low,high,n,planned,finished,diverged,best",
        "with,small,test_accuracy_gain,last,-0.1,0.2828427125,-2.641240947,2.441240947,2,2,2,1,0",
        "with,large,test_accuracy_gain,last,-0.05,,,,1,2,1,0,0",
    ]
    paper = {"paper": "TableII", "paper_values": str(tmp_path / "paper.csv")}
    small = "-10.00† ± 28.28 (2)<br>[-264.12, +244.12]<br>paper +7.67 (-17.67)<br>cannot tell"
    row = f"| with | {small} | -5.00 (n = 1 of 2)<br>paper -1.55‡ (-3.45) |"
    assert written(spec | paper, file).splitlines()[2] == row


def test_each_client_of_the_first_seed(tmp_path: Path) -> None:
    """Of two seeds, since the clients of the second one are others; client 2 was never chosen."""
    rows: list[dict[str, Any]] = []
    for seed in (0, 1):
        row: dict[str, Any] = {"digest": f"k{seed}", "study": "s", "experiment": "e"}
        row |= {"seed": seed, "strategy": "fedavg", "status": "done", "round": None}
        for client, accuracy in enumerate([0.5, 0.9, None, 0.7]):
            value = 0.1 if seed and accuracy else accuracy
            rows.append(row | {"metric": "batch_accuracy", "client": client, "value": value})
            rows.append(row | {"metric": "selected", "client": client, "value": client + 3.0})
    frame = pd.DataFrame(rows).astype({"metric": "string", "round": "Int64", "client": "Int64"})
    write_metrics(tmp_path / "metrics.parquet", frame, {})
    spec: Spec = {"style": {}, "metric": "batch_accuracy", "also": ["selected"], "rows": ["client"]}
    lines = written(spec, tmp_path / "metrics.parquet").splitlines()
    assert [line for line in lines if line.startswith("| ") and "---" not in line] == [
        "| Client | Mean accuracy of a client's minibatches (%) | Rounds in the cohort |",
        "| 0 | 50.00 | 3 |",
        "| 1 | 90.00 | 4 |",
        "| 2 | – | 5 |",
        "| 3 | 70.00 | 6 |",
    ]
    also = [f"train_loss {round}" for round in range(1, 30)]
    spec = {"style": {}, "metric": "train_loss", "also": also, "rows": ["seed"]}
    written(spec, tmp_path / "metrics.parquet", ".csv")
    numbers = pd.read_csv(tmp_path / "table.csv", dtype=str)
    order = ["last", *map(str, range(1, 30))] * 2
    assert numbers["at"].tolist() == order, "measures stay in their order within equal labels"
