"""The strategies of a table side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cohort.results.tables.beside import beside


def test_a_diverged_run_counts_and_is_counted(spec: dict[str, Any], metrics: Path) -> None:
    """On even partitions FedAvg has 70 % and, diverged, the 10 % of a guess among ten classes."""
    (shown,) = beside(spec, str(metrics))
    line = next(line for line in shown.lines if "iid" in line.place and "Fed" in line.strategy)
    assert (line.values, line.diverged, line.planned) == ({"0": 70, "1": 10}, 1, 2)
