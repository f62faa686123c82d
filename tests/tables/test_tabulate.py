"""Tables of the nine runs in conftest.py; every number is worked out by hand."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest

from cohort.core.components import schema_of
from cohort.tables.spec import Table
from cohort.tables.tabulate import tabulate

Spec = dict[str, Any]
CSV = """\
partition,strategy,metric,at,mean,sd,n,planned,diverged
iid,fedavg,test_accuracy,last,0.4,0.4242640687,2,2,1
iid,fedent_opt,test_accuracy,last,,,0,2,0
dir-0.1,fedavg,test_accuracy,last,0.52,0.02828427125,2,2,0
dir-0.1,fedent_opt,test_accuracy,last,0.6,,1,2,0
roles-5,fedavg,test_accuracy,last,,,0,1,1
"""
NOTES = (
    "Test accuracy (%), last evaluation: mean ± standard deviation over seeds (number of runs). Bold: the best mean. "
    "†: a run diverged; it counts with what it measured before that. –: not planned."
)
MARKDOWN = rf"""**100% & more**

As in Table I

| Partition | Fed\|Avg & co | fedent_opt |
| --- | ---: | ---: |
| iid | 40.00 ± 42.43† (2) | no result yet (n = 0 of 2) |
| dir-0.1 | 52.00 ± 2.83 (2) | **60.00** (n = 1 of 2) |
| roles-5 | diverged (n = 0 of 1) | – |

{NOTES}
"""


def written(spec: Spec, metrics: Path, ending: str) -> str:
    output = metrics.parent / f"table{ending}"
    tabulate(spec, metrics, [output])
    return output.read_text(encoding="utf-8")


def test_csv_holds_the_plain_numbers(spec: Spec, metrics: Path) -> None:
    assert written(spec, metrics, ".csv") == CSV


def test_markdown_is_rounded_and_in_percent(spec: Spec, metrics: Path) -> None:
    assert written(spec, metrics, ".md") == MARKDOWN


def test_latex_is_escaped(spec: Spec, metrics: Path) -> None:
    text = written(spec, metrics, ".tex")
    assert r"\caption{100\% \& more. As in Table I.}" in text
    assert r"Partition & Fed|Avg \& co & fedent\_opt \\" in text
    assert r"iid & 40.00 $\pm$ 42.43$^\dagger$ (2) & no result yet (n = 0 of 2) \\" in text
    assert r"dir-0.1 & 52.00 $\pm$ 2.83 (2) & \textbf{60.00} (n = 1 of 2) \\" in text
    assert r"roles-5 & diverged (n = 0 of 1) & -- \\" in text
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX on this machine")
def test_latex_compiles(spec: Spec, metrics: Path) -> None:
    body = written(spec, metrics, ".tex")
    document = metrics.parent / "document.tex"
    document.write_text(
        f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}{body}\\end{{document}}",
        encoding="utf-8",
    )
    subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", document.name],
        cwd=document.parent,
        check=True,
    )


def test_the_best_is_the_best_strategy_also_when_strategies_are_rows(
    spec: Spec, metrics: Path
) -> None:
    lines = written(
        spec | {"rows": ["strategy"], "columns": "partition"}, metrics, ".md"
    ).splitlines()
    assert (
        lines[6]
        == r"| Fed\|Avg & co | 40.00 ± 42.43† (2) | 52.00 ± 2.83 (2) | diverged (n = 0 of 1) |"
    )
    assert lines[7] == "| fedent_opt | no result yet (n = 0 of 2) | **60.00** (n = 1 of 2) | – |"


def test_the_lowest_loss_is_best(spec: Spec, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.assign(metric=frame["metric"].replace("test_accuracy", "test_loss")).to_parquet(
        tmp_path / "loss.parquet"
    )
    line = written(spec | {"metric": "test_loss"}, tmp_path / "loss.parquet", ".md").splitlines()[7]
    assert line == "| dir-0.1 | **0.520 ± 0.028** (2) | 0.600 (n = 1 of 2) |"


def test_an_experiment_without_any_run_has_a_table(
    spec: Spec, frame: pd.DataFrame, tmp_path: Path
) -> None:
    missing = frame.assign(
        status="missing", metric=pd.Series([None] * len(frame), dtype="string"), value=float("nan")
    )
    missing.to_parquet(tmp_path / "missing.parquet")
    assert "| iid | no result yet (n = 0 of 2) | no result yet (n = 0 of 2) |" in written(
        spec, tmp_path / "missing.parquet", ".md"
    )


def test_the_same_numbers_give_the_same_bytes(
    spec: Spec, frame: pd.DataFrame, metrics: Path, tmp_path: Path
) -> None:
    frame.sample(frac=1, random_state=1).to_parquet(tmp_path / "shuffled.parquet")
    for ending in (".csv", ".md", ".tex"):
        assert written(spec, metrics, ending) == written(
            spec, tmp_path / "shuffled.parquet", ending
        )


def test_the_schema() -> None:
    schema = schema_of(Table)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"metric": "test_accuracy", "rows": ["partition", "J"]}, schema)
    for wrong in (
        {"rows": []},
        {"rows": ["J"], "metric": "class_accuracy"},
        {"rows": ["J"], "colums": "strategy"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"metric": "test_accuracy"} | wrong, schema)


def test_facets_are_rows_and_columns() -> None:
    assert Table(metric="test_loss", rows=["partition", "J"]).facets() == (
        "partition",
        "J",
        "strategy",
    )
