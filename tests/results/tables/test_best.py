"""The best value of a swept setting: chosen on other data than those that are shown, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cohort.core.errors import UserError
from cohort.results.files import write_metrics
from cohort.results.tables.spec import Table
from cohort.results.tables.tabulate import tabulate

SPEC = {
    "look": {"orders": {"strategy": ["fedavg", "loss"], "lr": [0.1, 1]}, "titles": {}},
    "metric": "test_accuracy",
    "rows": ["dataset"],
    "best": "lr",
}
# In the first two of four seeds 0.1 is better for fedavg and 1 for loss, in the others the reverse.
TEST = {
    ("fedavg", 0.1): [0.50, 0.52, 0.30, 0.34],
    ("fedavg", 1): [0.40, 0.40, 0.60, 0.60],
    ("loss", 0.1): [0.10, 0.20, 0.90, 0.90],
    ("loss", 1): [0.20, 0.30, 0.45, 0.55],
}
VALIDATION = {  # which prefer 1 for both
    key: [0.9 if key[1] == 1 else 0.8] * 4 for key in TEST
}


def rows_of(metric: str, values: dict[tuple[str, float], list[float]]) -> list[dict[str, Any]]:
    return [
        {
            **{"digest": f"k-{strategy}-{lr}-{seed}", "study": "s", "experiment": "e", "round": 8},
            **{"dataset": "digits", "strategy": strategy, "lr": lr, "seed": seed, "client": None},
            **{"metric": metric, "value": value, "status": "done"},
        }
        for (strategy, lr), results in values.items()
        for seed, value in enumerate(results)
    ]


def tabulated(folder: Path, rows: list[dict[str, Any]]) -> tuple[pd.DataFrame, str]:
    frame = pd.DataFrame(rows).astype({"metric": "string", "round": "Int64", "client": "Int64"})
    write_metrics(folder / "metrics.parquet", frame, {})
    files = [folder / "t.csv", folder / "t.md"]
    tabulate(SPEC, folder / "metrics.parquet", files)
    return pd.read_csv(files[0]).set_index("strategy"), files[1].read_text(encoding="utf-8")


def test_half_of_the_seeds_choose_and_the_others_are_shown(tmp_path: Path) -> None:
    numbers, text = tabulated(tmp_path, rows_of("test_accuracy", TEST))
    assert numbers["mean"].to_dict() == pytest.approx({"fedavg": 0.32, "loss": 0.50})
    assert numbers["n"].tolist() == numbers["planned"].tolist() == [2, 2]
    said = "Learning rate: 0.1 (fedavg), 1 (loss); best in the mean of the first 2 of 4"
    assert f"{said} seeds; the others are shown." in text


def test_validation_samples_choose_and_all_seeds_are_shown(tmp_path: Path) -> None:
    rows = rows_of("test_accuracy", TEST) + rows_of("validation_accuracy", VALIDATION)
    numbers, text = tabulated(tmp_path, rows)
    assert numbers["mean"].to_dict() == pytest.approx({"fedavg": 0.50, "loss": 0.375})
    assert numbers["n"].tolist() == [4, 4]
    assert "Learning rate: 1 (fedavg, loss); best in the mean on validation" in text


def test_a_single_result_needs_no_name(tmp_path: Path) -> None:
    rows = [row for row in rows_of("test_accuracy", TEST) if row["strategy"] == "loss"]
    assert "Learning rate: 1; best in the mean" in tabulated(tmp_path, rows)[1]


def test_a_single_seed_leaves_none_to_choose_by(tmp_path: Path) -> None:
    rows = [row for row in rows_of("test_accuracy", TEST) if row["seed"] == 0]
    _, text = tabulated(tmp_path, rows)
    assert text == "Learning rate: none; a single seed leaves none to choose by.\n"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"rows": ["lr"]}, "best is 'lr', whose values are already in rows or columns"),
        ({"metric": "update_norm"}, "neither high nor low is better, so that none"),
    ],
)
def test_mistakes(fields: dict[str, Any], sentence: str) -> None:
    table = Table(**({"metric": "test_accuracy", "rows": ["dataset"], "best": "lr"} | fields))
    with pytest.raises(UserError, match=sentence):
        table.check()
