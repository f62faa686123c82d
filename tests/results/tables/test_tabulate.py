"""Tables of the nine runs in conftest.py; every number is worked out by hand."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest

from cohort.core.errors import UserError
from cohort.core.sealed_json import to_sealed_json
from cohort.results.comparison import Comparison, Table, best_keys
from cohort.results.series import write_metrics
from tests.results.tables.conftest import Spec, written

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
    "†: a run diverged; it counts with the worst value: the lowest accuracy, chance level at most, the largest loss, never for a target; otherwise with its rounds until then. –: not planned, or no value in these runs."
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
    first = r"\shortstack[r]{40.00$^\dagger$ $\pm$ 42.43 (2) \\{} [0.00, 100.00]}"
    assert rf"iid & {first} & no result yet (n = 0 of 2) \\" in text
    assert r"roles-5 & 10.00$^\dagger$ (1) & -- \\" in text
    assert r"\begin{tabular}{lrr}" in text and text.count("{") == text.count("}")


def contest(frame: pd.DataFrame, tmp_path: Path, **values: list[float]) -> Path:
    """The final values of strategies with a seed each, on one partition."""
    rows = [
        (strategy, seed, value)
        for strategy, results in values.items()
        for seed, value in enumerate(results)
    ]
    cells = pd.DataFrame(rows, columns=["strategy", "seed", "value"])
    cells = cells.assign(partition="iid", status="done", round=8, client=None)
    cells = cells.assign(metric="test_accuracy", digest=[f"k{n}" for n in range(len(cells))])
    file, types = tmp_path / "contest.parquet", frame.dtypes[["metric", "round", "client"]]
    write_metrics(file, cells.astype(types.to_dict()), {})
    return file


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
    strategies = spec["style"] | {"orders": {"partition": ["iid"], "strategy": list("abcd")}}
    lines = written(spec | {"style": strategies}, file, ".csv").splitlines()
    assert [line.split(",")[-1] for line in lines[1:]] == ["1", "1", "0", "0"]
    rows = spec | {"style": strategies, "rows": ["strategy"], "columns": "partition"}
    stars = [line.count("**") for line in written(rows, file, ".md").splitlines()[6:10]]
    assert stars == [2, 2, 0, 0]


def test_runs_without_common_seeds_cannot_be_separated(
    spec: Spec, frame: pd.DataFrame, tmp_path: Path
) -> None:
    file = contest(frame, tmp_path, **CLEAR)
    cells = pd.read_parquet(file)
    cells["seed"] += 10 * (cells["strategy"] == "b")
    write_metrics(file, cells, {})
    best = [line.split(",")[-1] for line in written(spec, file, ".csv").splitlines()[1:]]
    assert best == ["0", "0"]


def test_an_experiment_without_any_run_has_a_table(
    spec: Spec, frame: pd.DataFrame, tmp_path: Path
) -> None:
    missing = frame.assign(status="missing", metric=None, value=float("nan"))
    write_metrics(tmp_path / "missing.parquet", missing.astype(frame.dtypes.to_dict()), {})
    text = written(spec, tmp_path / "missing.parquet", ".md")
    assert "|" not in text and "Rows without any number are left out (3)." in text
    tex = written(spec, tmp_path / "missing.parquet", ".tex")
    assert r"\begin{tabular}{l}" in tex  # LaTeX refuses a table without columns


def test_conditions_are_no_rivals_and_a_low_loss_is_best(
    spec: Spec, frame: pd.DataFrame, tmp_path: Path
) -> None:
    """Without strategies, the values of J are compared on each partition, not the partitions, which lie farther apart."""
    cells = pd.read_parquet(contest(frame, tmp_path, **CLEAR))
    cells["J"] = cells["strategy"].map({"a": "J4", "b": "J8"})
    cells = cells.assign(strategy="fedavg", metric="test_loss")
    easy = cells.assign(
        partition="dir-0.1", value=cells["value"] - 0.5, digest="e" + cells["digest"]
    )
    file = tmp_path / "conditions.parquet"
    write_metrics(file, pd.concat([cells, easy]), {})
    for rows, columns in (("J", "partition"), ("partition", "J")):
        table = spec | {"rows": [rows], "columns": columns, "metric": "test_loss"}
        lines = written(table, file, ".csv").splitlines()[1:]
        best = {frozenset(line.split(",")[:2]) for line in lines if line.endswith("1")}
        assert best == {frozenset({partition, "J8"}) for partition in ("iid", "dir-0.1")}


def test_its_file_holds_a_comparison_whole_and_sealed(spec: Spec, metrics: Path) -> None:
    text = written(spec, metrics, ".json")
    file = metrics.parent / "table.json"
    assert to_sealed_json(asdict(Comparison.read(file))) == text
    content = json.loads(text)
    content["results"][0]["diverged"] += 1
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"table\.json cannot be read as a comparison"):
        Comparison.read(file)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"also": ["test_los"]}, "also names the metric 'test_los', which is not known; did you"),
        ({"also": ["test_loss first"]}, "also: 'first' is not a value of at"),
        ({"metric": "test_loss", "minus": {"loss": "fedavg"}}, "minus cannot subtract test_loss"),
        ({"columns": "J", "minus": {"loss": "fedavg"}}, "minus needs the strategy among the rows"),
        ({"rows": ["client"]}, "test_accuracy is for a table without client among its rows"),
        ({"metric": "accuracy"}, "accuracy is for a table with client among its rows"),
    ],
)
def test_mistakes(fields: Spec, sentence: str) -> None:
    with pytest.raises(UserError) as error:
        Table(**{"metric": "test_accuracy", "rows": ["J"]} | fields).check()
    assert sentence in str(error.value)


def test_bold_has_holms_correction() -> None:
    """Behind by 1, 2, 1.5, 1.2 and -0.1: p = 0.032, clear of one rival and not of three."""
    lead = dict(zip("01234", (1, 2, 1.5, 1.2, -0.1), strict=True))
    runs = {("a",): dict.fromkeys(lead, 50.0)}
    behind = {seed: 50 - by for seed, by in lead.items()}
    assert best_keys(runs | {("b",): behind}, ["strategy"], "high") == {("a",)}
    three = {(name,): behind for name in "bcd"}
    assert best_keys(runs | three, ["strategy"], "high") == set()
