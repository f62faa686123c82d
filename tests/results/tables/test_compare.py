"""Comparisons with a paper, of the nine runs in conftest.py; numbers are worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cohort.results.files import write_metrics
from cohort.results.tables.tabulate import tabulate

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
Spec = dict[str, Any]


@pytest.fixture
def compared(spec: Spec, tmp_path: Path) -> Spec:
    """A table's spec with the paper's values to compare with."""
    (tmp_path / "paper.csv").write_text(PAPER)
    return spec | {
        "paper": "TableI",
        "paper_values": str(tmp_path / "paper.csv"),
        "scale": "full",
    }


def written(spec: Spec, metrics: Path, ending: str = ".md") -> str:
    output = metrics.parent / f"table{ending}"
    tabulate(spec, metrics, [output])
    return output.read_text(encoding="utf-8")


def test_strategies_are_columns_with_the_paper_in_each_cell(compared: Spec, metrics: Path) -> None:
    lines = written(compared, metrics).splitlines()
    assert lines[4] == HEAD
    assert lines[6:9] == LINES
    assert lines[10] == (
        "Test accuracy (%), last evaluation: mean ± standard deviation over seeds [95 % interval of the mean] (number of runs). "
        "†: a run diverged; it counts with the worst value: the lowest accuracy, chance level at most, the largest loss, never for a target. Paper: TableI (printed), TableI (derived). "
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
    assert numbers["verdict"].tolist() == [
        "cannot tell",
        "no result",
        "cannot tell",
        "not enough runs",
        "no paper value",
    ]
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


def test_generated_data_is_never_compared_with_a_paper(
    compared: Spec, frame: pd.DataFrame, tmp_path: Path
) -> None:
    write_metrics(
        tmp_path / "some.parquet", frame.assign(generated=[True] + [False] * (len(frame) - 1)), {}
    )
    text = written(compared, tmp_path / "some.parquet")
    assert "Paper" not in text and "53.50" not in text
    assert "Generated stand-in data: no reproduction of any paper." in text
    assert "paper" not in written(compared, tmp_path / "some.parquet", ".csv")
    write_metrics(tmp_path / "none.parquet", frame.assign(generated=False), {})
    assert LINES[1] in written(compared, tmp_path / "none.parquet")


def test_latex_has_both_daggers(compared: Spec, metrics: Path) -> None:
    text = written(compared, metrics, ".tex")
    cell = r"52.00 $\pm$ 2.83 (2) \\ \scriptsize [26.59, 77.41] \\ \scriptsize paper 53.50$^\ddagger$ $\pm$ 1.00 ($-$1.50)"
    assert cell in text and r"40.00$^\dagger$ $\pm$ 42.43 (2)" in text
    assert r"\begin{tabular}{lrr}" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert [row.count(" & ") for row in rows] == [2] * 4, "a head and three partitions"
    assert text.count(r"\begin{") == text.count(r"\end{") and text.count("{") == text.count("}")
