"""One verdict for the same runs on every surface: tables, pages, the command line, README."""

import re
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from cohort.results.claims.judged import write_judged
from cohort.results.comparison import Comparison
from cohort.results.names import Names
from cohort.results.report.page import page_claims, page_table
from cohort.results.series import write_metrics
from cohort.results.tables.tabulate import tabulate
from tests.results.claims.samples import FRAME, claim, final, frame, matrix

result_lines = import_module("cohort.commands.try").result_lines
ACCURACIES = {
    "fedavg": (0.40, 0.41, 0.42, 0.41, 0.40),
    "fedentopt": (0.50, 0.51, 0.53, 0.50, 0.52),
    "loss": (0.44, 0.38, 0.45, 0.39, 0.43),
}
PAPER = """\
item,source,doubtful,strategy,other,metric,at,round,value,sd,runs
TableI,printed,,fedavg,,test_accuracy,last,,0.405,0.008,5
TableI,printed,,fedentopt,,test_accuracy,last,,0.6,0.008,5
TableI,printed,,loss,,test_accuracy,last,,0.43,0.03,5
"""
VERDICTS = {"fedavg": "agrees", "fedentopt": "differs", "loss": "cannot tell"}
"""Differences of 0.3, -8.8 and -1.2 points, with deviations near 1, 1 and 3 points; margin 2."""
AGAINST = {"fedentopt": ("held", "better"), "loss": ("undecided", "undecided")}
"""Whether a strategy is better than FedAvg: as a claim, and on the command line."""
NAMES = Names(orders={}, titles={})


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A table of three strategies with five seeds each, and the metrics behind it."""
    monkeypatch.chdir(tmp_path)
    cells = [
        final(value, strategy=strategy, seed=seed)
        for strategy, values in ACCURACIES.items()
        for seed, value in enumerate(values)
    ]
    write_metrics("main.parquet", frame(cells), {})
    Path("paper.csv").write_text(PAPER)
    return {
        "style": {"orders": {"strategy": list(ACCURACIES)}},
        "experiment": "main",
        "metric": "test_accuracy",
        "rows": ["partition"],
        "paper": "TableI",
        "paper_values": "paper.csv",
        "files": ["tab1.json"],
    }


def columns(file: str, separator: str) -> list[str]:
    """The columns of a table of one row, each with its head."""
    lines = [line for line in Path(file).read_text().splitlines() if separator in line]
    return list(
        map(" ".join, zip(lines[0].split(separator), lines[-1].split(separator), strict=True))
    )


def test_whether_a_paper_agrees(spec: dict[str, Any]) -> None:
    tabulate(spec, "main.parquet", ["tab1.json", "tab1.csv", "tab1.md", "tab1.tex"])
    comparison = Comparison.read("tab1.json")
    page = page_table(spec)
    ((_, entries),) = page["rows"]
    printed = list(result_lines(comparison, NAMES, against_fedavg=False))
    rows = [Path("tab1.csv").read_text().splitlines()]
    rows += [columns("tab1.md", " | "), columns("tab1.tex", " & ")]
    for strategy, verdict in VERDICTS.items():
        assert entries[page["columns"].index(strategy)].verdict == verdict
        texts = [next(row for row in lines if re.search(rf"\b{strategy}\b", row)) for lines in rows]
        texts.append(next(row for row in printed if row.startswith(f"  {strategy} ")))
        assert all(re.search(rf"\b{verdict}\b", text) for text in texts), texts


def test_whether_a_strategy_is_better(spec: dict[str, Any]) -> None:
    tabulate(spec, "main.parquet", ["tab1.json"])
    comparison = Comparison.read("tab1.json")
    printed = list(result_lines(comparison, NAMES, against_fedavg=True))
    for strategy, (verdict, outcome) in AGAINST.items():
        fields = {"along": "strategy", "pairs": [[strategy, "fedavg"]]}
        cells = [final(0, strategy=name, seed=seed) for name in ACCURACIES for seed in range(5)]
        comparisons = claim("gain", **fields).planned_comparisons(matrix(main=cells))
        entry = FRAME | fields | {"kind": "gain"}
        entry["comparisons"] = list(map(asdict, comparisons))
        claims = {"study": "s", "scale": "full", "claims": {"better": entry}}
        write_judged(claims | {"metrics": {"main": "main.parquet"}}, ["claims.json", "claims.csv"])
        quotes = {"better": {"quote": "", "against": "", "reading": ""}}
        ((_, (shown,)),) = page_claims({"claims": ["claims.json"], "quotes": quotes})["groups"]
        assert shown["verdicts"] == [("our runs", verdict)]
        assert f",{verdict}," in Path("claims.csv").read_text()
        assert f" {outcome} (" in next(row for row in printed if row.startswith(f"  {strategy} "))
