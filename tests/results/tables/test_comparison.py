"""The comparison of a table's runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.core.sealed_json import to_sealed_json
from cohort.results.comparison import Comparison
from cohort.results.tables.tabulate import compare_table, tabulate


def test_a_diverged_run_counts_and_is_counted(spec: dict[str, Any], metrics: Path) -> None:
    """On even partitions FedAvg has 70 % and, diverged, the 10 % of a guess among ten classes."""
    comparison = compare_table(spec, metrics)
    result = next(
        result
        for result in comparison.results
        if (result.labels["partition"], result.labels["strategy"]) == ("iid", "fedavg")
    )
    assert (result.values, result.diverged, result.planned) == ({"0": 0.7, "1": 0.1}, 1, 2)


def test_its_file_holds_it_whole_and_is_sealed(spec: dict[str, Any], metrics: Path) -> None:
    file = metrics.parent / "table.json"
    tabulate(spec, metrics, [file])
    assert to_sealed_json(Comparison.read(file).as_json()) == to_sealed_json(
        compare_table(spec, metrics).as_json()
    )
    content = json.loads(file.read_text())
    content["results"][0]["diverged"] += 1
    file.write_text(json.dumps(content))
    with pytest.raises(
        UserError, match=r"table\.json: cannot be read as a comparison \(its checksum"
    ):
        Comparison.read(file)
