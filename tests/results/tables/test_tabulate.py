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
from cohort.results.files import write_metrics
from cohort.results.tables.layout import Layout, latex
from cohort.results.tables.spec import Table
from cohort.results.tables.tabulate import tabulate

Spec = dict[str, Any]
CLEAR = {"a": [0.80, 0.82, 0.84, 0.81, 0.83], "b": [0.60, 0.62, 0.64, 0.61, 0.63]}
CSV = """\
partition,strategy,metric,at,mean,sd,low,high,n,planned,finished,diverged,best
iid,fedavg,test_accuracy,last,0.4,0.4242640687,0,1,2,2,2,1,0
iid,fedent_opt,test_accuracy,last,,,,,0,2,0,0,0
dir-0.1,fedavg,test_accuracy,last,0.52,0.02828427125,0.2658759053,0.7741240947,2,2,2,0,0
dir-0.1,fedent_opt,test_accuracy,last,0.6,,,,1,2,1,0,0
roles-5,fedavg,test_accuracy,last,0.1,,,,1,1,1,1,0
"""
NOTES = (
    "Test accuracy (%), last evaluation: mean ± standard deviation over seeds [95 % interval of the mean] (number of runs). "
    "†: a run diverged; it counts with the worst value: the lowest accuracy, chance level at most, the largest loss, never for a target. –: not planned, or no value in these runs."
)
MARKDOWN = rf"""**100% & more**

As in Table I

| Partition | Fed\|Avg & co | fedent_opt |
| --- | ---: | ---: |
| iid | 40.00† ± 42.43 (2)<br>[0.00, 100.00] | no result yet (n = 0 of 2) |
| dir-0.1 | 52.00 ± 2.83 (2)<br>[26.59, 77.41] | 60.00 (n = 1 of 2) |
| roles-5 | 10.00† (1) | – |

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


def test_finished_runs_without_a_value_are_not_awaited(
    spec: Spec, frame: pd.DataFrame, metrics: Path
) -> None:
    """FedAvg's runs have another metric only; one of FedEntOpt's is missing."""
    measured = frame["strategy"] != "fedavg"
    write_metrics(metrics, frame.assign(metric=frame["metric"].where(measured, "train_loss")), {})
    text = written(spec, metrics, ".md")
    assert "| dir-0.1 | – (n = 0 of 2) | 60.00 (n = 1 of 2) |" in text
    assert "–: not planned, or no value in these runs." in text


def test_latex_is_escaped(spec: Spec, metrics: Path) -> None:
    text = written(spec, metrics, ".tex")
    assert r"\caption{100\% \& more. As in Table I.}" in text
    assert r"Partition & Fed|Avg \& co & fedent\_opt \\" in text
    assert (
        r"iid & \shortstack[r]{40.00$^\dagger$ $\pm$ 42.43 (2) \\ \scriptsize [0.00, 100.00]} & no result yet (n = 0 of 2) \\"
        in text
    )
    assert r"roles-5 & 10.00$^\dagger$ (1) & -- \\" in text
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")


def test_a_long_title_is_not_broken_inside_a_macro() -> None:
    text = latex(Layout(["J"], ["Runs ~approximately_50%"]), "", "")
    assert r"Runs \\ \textasciitilde{}approximately\_50\%" in text


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


def contest(frame: pd.DataFrame, tmp_path: Path, **values: list[float]) -> Path:
    """The final values of strategies with a seed each, on one partition."""
    rows = [
        (strategy, seed, value)
        for strategy, results in values.items()
        for seed, value in enumerate(results)
    ]
    cells = pd.DataFrame(rows, columns=["strategy", "seed", "value"]).assign(
        partition="iid", status="done", round=8, metric="test_accuracy", client=None
    )
    cells = cells.assign(digest=[f"k{index}" for index in range(len(cells))])
    write_metrics(
        tmp_path / "contest.parquet",
        cells.astype(frame.dtypes[["metric", "round", "client"]].to_dict()),
        {},
    )
    return tmp_path / "contest.parquet"


def test_bold_is_all_that_cannot_be_separated_from_the_best(
    spec: Spec, frame: pd.DataFrame, tmp_path: Path
) -> None:
    """Pairs by seed: `b` is 2.43, -0.60, 0.40, 0 and 0 points behind `a` (p = 0.45), `c` is 1.0 to
    1.2 behind (t = 1.1 / 0.0707 * 5 ** 0.5 = 35), although its own spread is wide; `d` has four
    runs, too few to be best."""
    a = [0.88, 0.86, 0.84, 0.86, 0.86]
    file = contest(
        frame,
        tmp_path,
        a=a,
        b=[a[0] - 0.0243, a[1] + 0.006, a[2] - 0.004, *a[3:]],
        c=[a[0] - 0.010, a[1] - 0.011, a[2] - 0.012, a[3] - 0.010, a[4] - 0.012],
        d=[0.99] * 4,
    )
    strategies = spec["look"] | {"orders": {"partition": ["iid"], "strategy": list("abcd")}}
    lines = written(spec | {"look": strategies}, file, ".csv").splitlines()
    assert [line.split(",")[-1] for line in lines[1:]] == ["1", "1", "0", "0"]
    rows = spec | {"look": strategies, "rows": ["strategy"], "columns": "partition"}
    assert [line.count("**") for line in written(rows, file, ".md").splitlines()[6:10]] == [
        2,
        2,
        0,
        0,
    ]


def test_runs_without_common_seeds_are_compared_unpaired(
    spec: Spec, frame: pd.DataFrame, tmp_path: Path
) -> None:
    file = contest(frame, tmp_path, **CLEAR)
    cells = pd.read_parquet(file)
    cells["seed"] += 10 * (cells["strategy"] == "b")
    write_metrics(file, cells, {})
    best = [line.split(",")[-1] for line in written(spec, file, ".csv").splitlines()[1:]]
    assert best == ["1", "0"]


def test_measures_are_marked_each_by_its_own_best_and_direction(
    spec: Spec, frame: pd.DataFrame, tmp_path: Path
) -> None:
    """`a` is more accurate by 20 points, `b` has the lower loss, and both send 5 MB; a norm is
    neither better high nor low."""
    accurate = pd.read_parquet(contest(frame, tmp_path, **CLEAR))
    is_a = accurate["strategy"] == "a"
    measures = {"test_loss": 2.0 + is_a, "bytes_up": 5e6, "update_norm": 1.0 + is_a}
    tables = [
        accurate,
        *(accurate.assign(metric=key, value=value) for key, value in measures.items()),
    ]
    file = tmp_path / "measures.parquet"
    write_metrics(file, pd.concat(tables).astype({"metric": "string"}), {})
    lines = written(spec | {"also": list(measures)}, file, ".md").splitlines()
    bold = {
        line.split(" | ")[0]: [cell.startswith("**") for cell in line.split(" | ")[1:]]
        for line in lines[6:8]
    }
    assert bold == {"| a": [True, False, True, False], "| b": [False, True, True, False]}
    assert lines[2] == "As in Table I Everywhere: Partition iid, 5 runs."


def test_data_sets_and_partitions_are_not_rivals(
    spec: Spec, frame: pd.DataFrame, tmp_path: Path
) -> None:
    """Without strategies, the values of J are compared on each partition, not the partitions, which
    lie farther apart."""
    cells = pd.read_parquet(contest(frame, tmp_path, **CLEAR))
    cells["J"] = cells["strategy"].map({"a": "J4", "b": "J8"})
    cells["strategy"] = "fedavg"
    easy = cells.assign(
        partition="dir-0.1", value=cells["value"] - 0.5, digest="e" + cells["digest"]
    )
    file = tmp_path / "conditions.parquet"
    write_metrics(file, pd.concat([cells, easy]), {})
    for rows, columns in (("J", "partition"), ("partition", "J")):
        table = spec | {"rows": [rows], "columns": columns}
        lines = written(table, file, ".csv").splitlines()[1:]
        best = {frozenset(line.split(",")[:2]): line[-1] for line in lines}
        assert best == {
            frozenset({partition, J}): mark
            for partition in ("iid", "dir-0.1")
            for J, mark in (("J4", "1"), ("J8", "0"))
        }
    alone = written(
        spec | {"rows": ["dataset"], "columns": "partition"}, _with_dataset(file), ".csv"
    )
    assert {line[-1] for line in alone.splitlines()[1:]} == {"0"}


def _with_dataset(file: Path) -> Path:
    cells = pd.read_parquet(file).query("J == 'J4'")
    write_metrics(file.with_name("dataset.parquet"), cells.assign(dataset="digits"), {})
    return file.with_name("dataset.parquet")


def test_the_lowest_loss_is_best(spec: Spec, frame: pd.DataFrame, tmp_path: Path) -> None:
    file = contest(frame, tmp_path, **CLEAR)
    write_metrics(file, pd.read_parquet(file).assign(metric="test_loss"), {})
    line = written(spec | {"metric": "test_loss"}, file, ".md").splitlines()[6]
    assert line.startswith("| iid | 0.820 ±") and "| **0.620** ±" in line


def test_an_experiment_without_any_run_has_a_table(
    spec: Spec, frame: pd.DataFrame, tmp_path: Path
) -> None:
    missing = frame.assign(
        status="missing", metric=pd.Series([None] * len(frame), dtype="string"), value=float("nan")
    )
    write_metrics(tmp_path / "missing.parquet", missing, {})
    text = written(spec, tmp_path / "missing.parquet", ".md")
    assert "|" not in text and "Rows without any number are left out (3)." in text
    tex = written(spec, tmp_path / "missing.parquet", ".tex")
    assert r"\begin{tabular}{l}" in tex  # LaTeX refuses a table without columns


def test_the_same_numbers_give_the_same_bytes(
    spec: Spec, frame: pd.DataFrame, metrics: Path, tmp_path: Path
) -> None:
    write_metrics(tmp_path / "shuffled.parquet", frame.sample(frac=1, random_state=1), {})
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
