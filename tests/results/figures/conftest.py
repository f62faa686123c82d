from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cohort.results.files import write_metrics
from tests.results.figures.samples import LOOK, Fate, sample


@pytest.fixture
def metrics(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes the sample metrics, perhaps with shuffled rows, and returns the
    file's path."""

    def write(fate: Fate | None = None, shuffle: int | None = None) -> Path:
        frame = sample(fate)
        file = tmp_path / f"metrics-{shuffle}.parquet"
        write_metrics(
            file, frame if shuffle is None else frame.sample(frac=1, random_state=shuffle), {}
        )
        return file

    return write


@pytest.fixture
def spec() -> dict[str, Any]:
    """Learning curves of every strategy, a panel for each partition and J."""
    return {
        "kind": "curves", "study": "demo", "experiment": "main", "title": "Costs $5 & <more>", "caption": "", "look": LOOK,
        "metric": "test_accuracy", "columns": "partition", "rows": "J",
    }  # fmt: skip


@pytest.fixture
def bars(spec: dict[str, Any]) -> dict[str, Any]:
    """The final accuracy of every strategy over the partitions."""
    rest = {key: value for key, value in spec.items() if key not in ("columns", "rows")}
    return rest | {"kind": "bars", "x": "partition", "columns": "J"}
